// Moves elements between outputs and their winners, which offsets name. Every cell of gx has one owner, so that sums
// need no atomics and come out the same for any number of threads.
#include "cpu/route.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/copy.h"
#include "core/parallel.h"
#include "cpu/collector.h"
#include "cpu/emit.h"
#include "cpu/index_type.h"
#include "cpu/machine.h"
#include "cpu/router.h"
#include "cpu/scratch.h"
#include "cpu/small_planes.h"
#include "cpu/winner_runs.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t block_bytes = 256 << 10;  // sums of one block: a part of L2
// Taps of windows that share no cell from which they are zeros first, past the caches too: of 51 MB, lines of k128 took
// 1.9 ms and 1.6 by sums, those of k512 1.2 and 1.5. Halves need no sums in f32 then: k32 took 2.5 ms and 3.3.
constexpr std::int64_t least_apart_taps = 256, least_apart_halves = 32;
// Zeros of more bytes than this part of the caches are written past them: 25 MB of 32 took 0.30 ms and 0.46.
constexpr std::int64_t part_of_zeros = 2;

/// Cells of one block of type T, summed in the lane type A.
template <class A, class T>
class Sums {
 public:
  Sums(const Router& router, const View& offsets, const View& gy, const MutableView& gx)
      : router_(router), offsets_(offsets), gy_(gy), gx_(gx) {
    std::int64_t step = router.lanes().outputs;
    for (std::size_t l = router.depth(); l-- > 0; step *= router.axis(l).n) steps_[l] = step;
    row_ = step / std::max<std::int64_t>(router.axis(0).n, 1);
    tabled_ = router.find_distances(steps_, distances_);
    transposed_ = router.axis(0).transpose();
    const std::int64_t n = router.axis(0).n, wanted = (4 * thread_limit() + router.slices() - 1) / router.slices();
    // Outputs whose windows reach into several blocks are visited for each of them: blocks are longer than windows.
    const std::int64_t reach = router.axis(0).adaptive ? 1 : 3 * router.axis(0).size * router.axis(0).dilation;
    const std::int64_t most =
        std::max(reach, block_bytes / static_cast<std::int64_t>(sizeof(A)) / std::max<std::int64_t>(row_, 1));
    length_ = std::clamp<std::int64_t>(std::min(most, (n + wanted - 1) / wanted), 1, std::max<std::int64_t>(n, 1));
    blocks_ = (n + length_ - 1) / length_;
    const Axis& along = router.axis(router.depth() - 1);
    if (!along.adaptive && along.size > along.stride && router.full(router.depth() - 1))
      runs_ = winner_runs_functions(type_of<A>, offsets.type);
    // Offsets of a single axis tell taps apart by themselves, unless adding a stride makes them wrap around.
    const std::int64_t numbers = std::int64_t{1} << (8 * std::min<std::size_t>(4, size_of(offsets.type)));
    width_ = router.depth() == 1 && along.size + along.stride <= numbers ? 0 : along.size;
    flush_ = collecting(gx.type, false, true).flush;
    constexpr auto bytes = static_cast<std::int64_t>(sizeof(T));
    const std::int64_t all = element_count(gx.shape) * bytes, given = element_count(gy.shape);
    stream_ = all + given * (bytes + static_cast<std::int64_t>(size_of(offsets.type))) > last_level_cache();
    dense_ = router.lanes().outputs == 1 || router.lanes().cell_step == 1;
    for (std::size_t l = 0; l < router.depth(); ++l) dense_ = dense_ && router.level(l).cell_step == steps_[l];
    const bool apart = router.apart(is_half(gx.type) ? least_apart_halves : least_apart_taps);
    in_place_ = dense_ && (apart || (!stream_ && std::is_same_v<A, T>));
    if (apart) stream_ = all > last_level_cache() / part_of_zeros;
    // Where windows lie like cells, one after the other, all rows of a plane are one.
    const Axis& outer = router.axis(0);
    merged_ = runs_.along && tabled_ && router.lanes().outputs == 1 && router.depth() == 2 && router.full(0) &&
              along.stride == 1 && along.out == along.n && !outer.adaptive && outer.stride == 1 &&
              router.level(1).output_step == 1 && router.level(0).output_step == along.out;
  }

  void run() const {
    if (row_ == 0 || router_.axis(0).n == 0) return;
    in_tasks(router_.slices() * blocks_, length_ * row_, [&](std::int64_t i) { block(i / blocks_, i % blocks_); });
  }

 private:
  void block(std::int64_t slice, std::int64_t number) const {
    const std::int64_t begin = number * length_, end = std::min(router_.axis(0).n, begin + length_);
    const RouteAxis at = router_.slice(slice);
    const std::int64_t size = (end - begin) * row_;
    T* const cells = static_cast<T*>(gx_.data) + (at.cell_step + begin * steps_[0]);
    if (in_place_) {
      clear(cells, size);
      return add_block(at, begin, end, cells);
    }
    Scratch& scratch = Scratch::of_this_thread();
    const auto mark = scratch.mark();
    const std::int64_t past = before(cells);
    A* memory = reinterpret_cast<A*>(scratch.take((past + size + unit) * static_cast<std::int64_t>(sizeof(A))));
    A* sums = memory + past;
    std::fill(sums, sums + size, A{0});
    add_block(at, begin, end, sums);
    if (dense_) {
      Stage stage{memory, 1, stream_, reinterpret_cast<std::byte*>(cells - past), past, past + size};
      flush_(stage);
      if (stream_) Emitter::flush();
    } else {
      write(begin, end, at.cell_step, sums);
    }
    scratch.release(mark);
  }

  // Lines of the cache are the same in sums and in gx: the cells of one, and those of it that lie before a cell.
  static constexpr std::int64_t unit = 64 / sizeof(A);
  static std::int64_t before(const T* cells) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(cells) / sizeof(T) % unit);
  }

  void clear(T* cells, std::int64_t size) const {
    if (!stream_) return void(std::memset(static_cast<void*>(cells), 0, static_cast<std::size_t>(size) * sizeof(T)));
    alignas(64) static A zeros[Stage::lanes];  // read only
    for (std::int64_t i = 0, count; i < size; i += count) {
      const std::int64_t past = before(cells + i);
      count = std::min(Stage::room - past, size - i);
      Stage stage{zeros, 1, true, reinterpret_cast<std::byte*>(cells + i - past), past, past + count};
      flush_(stage);
    }
    Emitter::flush();
  }

  // Outputs of the outermost level that reach these cells: those of the first and the last cell that any reaches, or of
  // all cells where windows are dilated.
  std::pair<std::int64_t, std::int64_t> reaching(std::int64_t begin, std::int64_t end) const {
    const Axis& axis = router_.axis(0);
    if (begin == 0 && end == axis.n) return {0, axis.out};
    std::int64_t from = axis.out, to = 0;
    const auto include = [&](std::int64_t cell) {
      const Axis::Span span = transposed_.span(cell);
      if (span.count == 0) return false;
      from = std::min(from, span.first);
      to = std::max(to, span.first + (span.count - 1) * transposed_.step() + 1);
      return true;
    };
    const bool dense = axis.dilation == 1;
    for (std::int64_t cell = begin; cell < end; ++cell)
      if (include(cell) && dense) break;
    for (std::int64_t cell = end - 1; dense && cell >= begin; --cell)
      if (include(cell)) break;
    return {from, to};
  }

  // To sums in the lane type, or to cells that are 0 and get one output at most.
  template <class Cell>
  void add_block(const RouteAxis& at, std::int64_t begin, std::int64_t end, Cell* sums) const {
    const auto [from, to] = reaching(begin, end);
    const std::int64_t size = (end - begin) * row_;
    visit_index_type(offsets_.type, [&, from = from, to = to]<class Offset>(Offset) {
      if (merged_) {
        const std::int64_t width = router_.axis(1).out, base = -begin * row_ - router_.axis(0).low * steps_[0];
        return add_line<Offset>(Places{}, at, base, size, from * width, to * width, sums);
      }
      router_.rows(from, to, at, true, [&](const Places& o, const RouteAxis& row) {
        add_row<Offset>(o, row, begin * row_, size, from, to, sums);
      });
    });
  }

  // One row of outputs; with a single level the row is the part of it that reaches the block.
  template <class Offset, class Cell>
  void add_row(const Places& outer, const RouteAxis& row, std::int64_t shift, std::int64_t size, std::int64_t from,
               std::int64_t to, Cell* sums) const {
    const std::size_t last = router_.depth() - 1;
    Places o = outer;
    std::int64_t base = -shift;
    for (std::size_t l = 0; l < last; ++l) base += router_.start(l, o[l]) * steps_[l];
    const std::int64_t first = last == 0 ? from : 0, stop = last == 0 ? to : router_.axis(last).out;
    if (router_.lanes().outputs > 1)
      add_lanes<Offset>(o, row, base, size, first, stop, sums);
    else
      add_line<Offset>(o, row, base, size, first, stop, sums);
  }

  // Windows beside each other, of one row or of all rows of a plane.
  template <class Offset, class Cell>
  void add_line(Places o, const RouteAxis& row, std::int64_t base, std::int64_t size, std::int64_t first,
                std::int64_t stop, Cell* sums) const {
    const std::size_t last = router_.depth() - 1;
    const RouteAxis& level = router_.level(last);
    const Axis& axis = router_.axis(last);
    if (!runs_.along || !tabled_) return add_each<Offset>(o, row, base, size, first, stop, sums);
    const std::int64_t apart = axis.stride * steps_[last], width = axis.out;
    const std::int64_t outputs = merged_ ? router_.axis(0).out * width : width;
    const std::int64_t row_step = merged_ ? router_.level(0).offset_step : 0;
    const bool direct =
        gy_.type == type_of<A> && level.output_step == 1 && level.offset_step == 1 && (!merged_ || row_step == width);
    constexpr std::size_t most = WinnerRuns::most;
    std::array<A, most> values;
    std::array<A, most + WinnerRuns::group> joined;
    std::array<std::int32_t, most + WinnerRuns::group> ends;
    std::array<Offset, most + 1> numbers{};
    for (std::int64_t begin = first / WinnerRuns::group * WinnerRuns::group; begin < stop; begin += WinnerRuns::most) {
      const std::int64_t count = std::min(WinnerRuns::most, stop - begin);
      const auto* offsets = static_cast<const Offset*>(offsets_.data) + row.offset_step;
      const A* gy = static_cast<const A*>(gy_.data) + row.output_step + begin;
      if (direct && begin + WinnerRuns::most >= outputs) {
        std::copy_n(gy, count, values.data());
        std::copy_n(offsets + begin, count, numbers.data());
        gy = values.data();
        offsets = numbers.data();
      } else if (!direct) {
        read(row.output_step + begin * level.output_step, level.output_step, count, values.data());
        for (std::int64_t i = 0, y = begin / width, x = begin % width; i < count; ++i) {
          numbers[static_cast<std::size_t>(i)] = offsets[y * row_step + x * level.offset_step];
          if (++x == width) x = 0, ++y;
        }
        gy = values.data();
        offsets = numbers.data();
      } else {
        offsets += begin;
      }
      const std::int64_t runs = runs_.along({gy, offsets, count, width_, axis.stride, joined.data(), ends.data()});
      const std::int64_t start = base + (begin * axis.stride - axis.low) * steps_[last];
      for (std::size_t r = 0; r < static_cast<std::size_t>(runs); ++r)
        add(start + ends[r] * apart + distances_[static_cast<std::int64_t>(offsets[ends[r]])], size, joined[r], sums);
    }
  }
  // The same where neighbours hardly have one winner.
  template <class Offset, class Cell>
  void add_each(Places o, const RouteAxis& row, std::int64_t base, std::int64_t size, std::int64_t first,
                std::int64_t stop, Cell* sums) const {
    const std::size_t last = router_.depth() - 1;
    const RouteAxis& level = router_.level(last);
    const Axis& axis = router_.axis(last);
    const bool plain = tabled_ && router_.full(last);
    std::array<A, WinnerRuns::most> values;
    for (std::int64_t begin = first; begin < stop; begin += WinnerRuns::most) {
      const std::int64_t count = std::min(WinnerRuns::most, stop - begin),
                         at = row.output_step + begin * level.output_step;
      const bool direct = gy_.type == type_of<A>;
      if (!direct) read(at, level.output_step, count, values.data());
      const A* gy = direct ? static_cast<const A*>(gy_.data) + at : values.data();
      const std::int64_t gy_step = direct ? level.output_step : 1;
      const auto* offsets = static_cast<const Offset*>(offsets_.data) + row.offset_step + begin * level.offset_step;
      const std::int64_t start = base + (begin * axis.stride - axis.low) * steps_[last];
      for (std::int64_t i = 0; plain && i < count; ++i)
        add(start + i * axis.stride * steps_[last] +
                distances_[static_cast<std::int64_t>(offsets[i * level.offset_step])],
            size, gy[i * gy_step], sums);
      for (std::int64_t i = 0; !plain && i < count; ++i) {
        o[last] = begin + i;
        if (router_.empty(last, o[last])) continue;
        add(base + router_.start(last, o[last]) * steps_[last] + far(o, offsets[i * level.offset_step]), size,
            gy[i * gy_step], sums);
      }
    }
  }

  // Windows whose lanes lie beside each other.
  template <class Offset, class Cell>
  void add_lanes(Places& o, const RouteAxis& row, std::int64_t base, std::int64_t size, std::int64_t first,
                 std::int64_t stop, Cell* sums) const {
    const std::size_t last = router_.depth() - 1;
    const RouteAxis &level = router_.level(last), &lanes = router_.lanes();
    if (runs_.lanes && tabled_ && lanes.outputs >= WinnerRuns::group / 2)
      return join_lanes<Offset>(row, base, size, first, stop, sums);
    std::array<A, WinnerRuns::most> values;
    for (std::int64_t c = 0; c < lanes.outputs; c += WinnerRuns::most) {
      const std::int64_t n = std::min<std::int64_t>(WinnerRuns::most, lanes.outputs - c);
      for (o[last] = first; o[last] < stop; ++o[last]) {
        if (router_.empty(last, o[last])) continue;
        const auto* offsets = static_cast<const Offset*>(offsets_.data) + row.offset_step +
                              o[last] * level.offset_step + c * lanes.offset_step;
        const std::int64_t window = base + router_.start(last, o[last]) * steps_[last] + c;
        read(row.output_step + o[last] * level.output_step + c * lanes.output_step, lanes.output_step, n,
             values.data());
        for (std::int64_t i = 0; i < n; ++i)
          add(window + i + far(o, offsets[i * lanes.offset_step]), size, values[static_cast<std::size_t>(i)], sums);
      }
    }
  }
  // The same where neighbours often have one winner, and are sent to it together.
  template <class Offset, class Cell>
  void join_lanes(const RouteAxis& row, std::int64_t base, std::int64_t size, std::int64_t first, std::int64_t stop,
                  Cell* sums) const {
    const std::size_t last = router_.depth() - 1;
    const RouteAxis &level = router_.level(last), &lanes = router_.lanes();
    const Axis& axis = router_.axis(last);
    constexpr std::int64_t most = LaneRuns::most, group = WinnerRuns::group;
    std::array<A, most * group> values;
    std::array<Offset, most * group> numbers;
    std::array<A, most * group + group> joined;
    std::array<std::int32_t, most * group + group> ends;
    for (std::int64_t c = 0; c < lanes.outputs; c += most) {
      const std::int64_t n = std::min<std::int64_t>(most, lanes.outputs - c);
      const bool whole = n % group == 0;
      for (std::int64_t w = first, count; w < stop; w += count) {
        count = std::min(stop - w, group - w % group);
        const std::int64_t at = row.output_step + w * level.output_step + c * lanes.output_step;
        const A* gy = static_cast<const A*>(gy_.data) + at;
        const auto* offsets =
            static_cast<const Offset*>(offsets_.data) + row.offset_step + w * level.offset_step + c * lanes.offset_step;
        std::int64_t gy_step = level.output_step, offset_step = level.offset_step;
        if (!whole || gy_.type != type_of<A> || lanes.output_step != 1) {
          for (std::int64_t i = 0; i < count; ++i)
            read(at + i * gy_step, lanes.output_step, n, values.data() + i * most);
          gy = values.data();
          gy_step = most;
        }
        if (!whole || lanes.offset_step != 1) {
          for (std::int64_t i = 0; i < count; ++i)
            for (std::int64_t k = 0; k < n; ++k)
              numbers[static_cast<std::size_t>(i * most + k)] = offsets[i * offset_step + k * lanes.offset_step];
          offsets = numbers.data();
          offset_step = most;
        }
        const std::int64_t runs =
            runs_.lanes({gy, offsets, gy_step, offset_step, count, n, width_, axis.stride, joined.data(), ends.data()});
        const std::int64_t start = base + (w * axis.stride - axis.low) * steps_[last] + c;
        const std::int64_t apart = axis.stride * steps_[last];
        for (std::size_t r = 0; r < static_cast<std::size_t>(runs); ++r) {
          const auto end = static_cast<std::uint32_t>(ends[r]);
          const std::int64_t i = end / most, lane = end % most;
          add(start + i * apart + lane + distances_[static_cast<std::int64_t>(offsets[i * offset_step + lane])], size,
              joined[r], sums);
        }
      }
    }
  }

  // Cells of other blocks are theirs to add.
  template <class Cell>
  static void add(std::int64_t cell, std::int64_t size, A value, Cell* sums) {
    if (static_cast<std::uint64_t>(cell) >= static_cast<std::uint64_t>(size)) return;
    if constexpr (std::is_same_v<Cell, A>)
      sums[cell] += value;
    else
      sums[cell] = Cell(A{0} + value);
  }
  std::int64_t far(const Places& o, std::int64_t offset) const {
    return tabled_ ? distances_[offset] : router_.distance(o, offset, steps_);
  }
  void read(std::int64_t at, std::int64_t step, std::int64_t n, A* values) const {
    convert_line(type_of<A>, values, gy_.type,
                 static_cast<const std::byte*>(gy_.data) + at * static_cast<std::int64_t>(size_of(gy_.type)), step, n);
  }

  // The cells [begin, end) of the outermost level, to where they belong in gx.
  void write(std::int64_t begin, std::int64_t end, std::int64_t slice, const A* sums) const {
    const std::size_t depth = router_.depth(), last = depth - 1;
    const RouteAxis& lanes = router_.lanes();
    const bool by_lanes = lanes.outputs > 1;
    const std::int64_t n = by_lanes ? lanes.outputs : last == 0 ? end - begin : router_.axis(last).n;
    const std::int64_t step = by_lanes ? lanes.cell_step : router_.level(last).cell_step;
    const auto bytes = static_cast<std::int64_t>(size_of(gx_.type));
    const std::size_t loops = by_lanes ? depth : last;
    Scratch& scratch = Scratch::of_this_thread();
    const auto mark = scratch.mark();
    std::byte* narrow = scratch.take(n * 8);
    Places cell{};
    cell[0] = begin;
    const std::int64_t lines = n > 0 ? (end - begin) * row_ / n : 0;
    for (std::int64_t line = 0; line < lines; ++line, sums += n) {
      std::int64_t at = slice;
      // A single level without lanes is one line, and begins where the block does.
      for (std::size_t l = 0; l < std::max<std::size_t>(loops, 1); ++l) at += cell[l] * router_.level(l).cell_step;
      const void* values = sums;
      if (gx_.type != type_of<A>) {
        narrow_line(gx_.type, narrow, type_of<A>, sums, n);
        values = narrow;
      }
      scatter_line(gx_.type, static_cast<std::byte*>(gx_.data) + at * bytes, step, values, n);
      std::size_t l = loops;
      while (l-- > 0 && ++cell[l] == router_.axis(l).n && l > 0) cell[l] = 0;
    }
    scratch.release(mark);
  }

  const Router& router_;
  const View& offsets_;
  const View& gy_;
  const MutableView& gx_;
  Places steps_{};
  std::int64_t row_ = 0, length_ = 1, blocks_ = 1;
  Distances distances_;
  bool tabled_ = false;
  Axis transposed_;
  WinnerRunsFunctions runs_{};
  std::int64_t width_ = 0;  // that runs are told
  bool merged_ = false;
  void (*flush_)(Stage&);
  bool stream_, dense_;  // past the caches; blocks of gx have no gaps,
  bool in_place_;        // and are sums themselves
};

}  // namespace

void fetch(const Plan::Impl& plan, const View& offsets, const View& dx, const MutableView& dy) {
  const Router router(plan, offsets, dy, dx);
  const std::size_t last = router.depth() - 1;
  Places steps{};
  for (std::size_t l = 0; l <= last; ++l) steps[l] = router.level(l).cell_step;
  Distances distances;
  const bool tabled = router.find_distances(steps, distances);
  const RouteAxis &level = router.level(last), &lanes = router.lanes();
  const auto [inside, outside] = router.axis(last).interior();
  const auto copy = [&]<class Bits, class Offset>(std::int64_t slice, Bits, Offset) {
    const RouteAxis at = router.slice(slice);
    router.rows(0, router.axis(0).out, at, false, [&](const Places& outer, const RouteAxis& row) {
      Places o = outer;
      std::int64_t base = at.cell_step;
      bool none = false;
      for (std::size_t l = 0; l < last; ++l) {
        base += router.start(l, o[l]) * steps[l];
        none = none || router.empty(l, o[l]);
      }
      const std::int64_t out = router.axis(last).out, apart = router.axis(last).stride * steps[last];
      const auto one = [&](std::int64_t w) {
        o[last] = w;
        const bool empty = none || router.empty(last, w);
        const std::int64_t window = base + router.start(last, w) * steps[last];
        const auto* from = static_cast<const Offset*>(offsets.data) + row.offset_step + w * level.offset_step;
        Bits* to = static_cast<Bits*>(dy.data) + row.output_step + w * level.output_step;
        for (std::int64_t c = 0; c < lanes.outputs; ++c) {
          const auto offset = static_cast<std::int64_t>(from[c * lanes.offset_step]);
          const std::int64_t far = empty ? 0 : tabled ? distances[offset] : router.distance(o, offset, steps);
          to[c * lanes.output_step] =
              empty ? Bits{0} : static_cast<const Bits*>(dx.data)[window + c * lanes.cell_step + far];
        }
      };
      // Windows inside need neither a look at the borders nor more than a table.
      const bool plain = tabled && !none && lanes.outputs == 1 && inside < outside;
      for (std::int64_t w = 0; w < (plain ? inside : out); ++w) one(w);
      if (!plain) return;
      const auto* from = static_cast<const Offset*>(offsets.data) + row.offset_step;
      Bits* to = static_cast<Bits*>(dy.data) + row.output_step;
      const Bits* cells = static_cast<const Bits*>(dx.data) + (base - router.axis(last).low * steps[last]);
      for (std::int64_t w = inside; w < outside; ++w)
        to[w * level.output_step] =
            cells[w * apart + distances[static_cast<std::int64_t>(from[w * level.offset_step])]];
      for (std::int64_t w = outside; w < out; ++w) one(w);
    });
  };
  in_tasks(router.slices(), outputs_of_slice(router), [&](std::int64_t i) {
    visit_index_type(offsets.type, [&](auto offset) {
      switch (size_of(dx.type)) {
        case 2: return copy(i, std::uint16_t{}, offset);
        case 4: return copy(i, std::uint32_t{}, offset);
        default: return copy(i, std::uint64_t{}, offset);
      }
    });
  });
}

bool send(const Plan::Impl& plan, const View& offsets, const View& gy, const MutableView& gx, Sending sending) {
  if (element_count(gx.shape) == 0) return true;
  const Router router(plan, offsets, gy, gx);
  const auto may = [&](Sending way) { return sending == Sending::automatic || sending == way; };
  if (may(Sending::small) && send_small(router, offsets, gy, gx, 1)) return true;
  if (may(Sending::asked) && Collector::applies(router, offsets, gy, gx)) {
    Collector(router, offsets, gy, gx).run();
    return true;
  }
  if (!may(Sending::together)) return false;
  const Router line = router.as_line();
  switch (gx.type) {
    case Type::f64: Sums<double, double>(line, offsets, gy, gx).run(); break;
    case Type::f16: Sums<float, f16>(line, offsets, gy, gx).run(); break;
    case Type::bf16: Sums<float, bf16>(line, offsets, gy, gx).run(); break;
    default: Sums<float, float>(line, offsets, gy, gx).run();
  }
  return true;
}

bool spread(const Plan::Impl& plan, const View& gy, const MutableView& gx, double divisor) {
  if (element_count(gx.shape) == 0) return true;
  const View none;
  const Router router(plan, none, gy, gx);
  if (send_small(router, none, gy, gx, divisor)) return true;
  if (!Collector::applies(router, none, gy, gx)) return false;
  Collector(router, none, gy, gx, divisor).run();
  return true;
}

}  // namespace cenote::cpu
