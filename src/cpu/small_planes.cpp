// Chooses how the gradients of small planes are made, and makes them.
#include "cpu/small_planes.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/parallel.h"
#include "cpu/collector.h"
#include "cpu/emit.h"
#include "cpu/machine.h"
#include "cpu/scatter.h"
#include "cpu/scratch.h"
#include "cpu/transpose.h"
#include "plan/choose.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t task_cells = 1 << 14;  // what one task should make at least
constexpr std::int64_t most_cells = 8192;     // of a plane whose outputs are sent one by one, and of its outputs
constexpr std::int64_t staged_cells = 2048;   // that are written at once: a part of L1

// Cells of a line up to which these ways are faster than lanes along it, as measured in f32: where planes are turned;
// where outputs are sent one by one, windows of two or three cells two apart, on lines of an odd number of cells too,
// and those of up to five at every place.
constexpr std::int64_t longest_woven_line = 32, longest_sent_line = 56, longest_odd_sent_line = 96;
constexpr std::int64_t longest_dense_line = 20, widest_sent = 5;
// The same where cells ask the windows of three rows and columns around them.
constexpr std::int64_t longest_asking_line = 64;

/// Planes without gaps, one after the other.
struct Batch {
  std::int64_t count, outputs, cells;
  std::int64_t output_step, offset_step, cell_step;  // from one to the next
  const View& offsets;
  const View& gy;
  const MutableView& gx;
  double divisor;

  std::int64_t bytes() const { return static_cast<std::int64_t>(size_of(gx.type)); }
  template <class Body>
  void in_tasks(std::int64_t together, const Body& body) const {
    const std::int64_t groups = (count + together - 1) / together, most = 1 + task_cells / (together * cells);
    parallel_for((groups + most - 1) / most, [&](std::int64_t task) {
      Scratch& scratch = Scratch::of_this_thread();
      const auto mark = scratch.mark();
      const std::int64_t begin = task * most * together;
      body(scratch, begin, std::min(count, begin + most * together));
      scratch.release(mark);
    });
  }
};

// Turned: as many at a time as make a few packs.
bool weave(const Batch& planes, const Router& router) {
  const std::int64_t bytes = planes.bytes(), least = least_woven / bytes, outputs = planes.outputs;
  const std::int64_t cells = planes.cells;
  if (planes.count < least || std::max(cells, outputs) > largest_woven / least_woven) return false;
  const std::int64_t most = std::clamp(woven_bytes / bytes / cells / least * least, least, most_woven / bytes);
  if (!Collector::applies(router.turned(most), planes.offsets, planes.gy, planes.gx)) return false;
  const bool routed = planes.offsets.data != nullptr;
  const Router across = router.turned(most);
  planes.in_tasks(most, [&](Scratch& scratch, std::int64_t begin, std::int64_t end) {
    std::byte* const turned_gy = scratch.take(most * outputs * bytes);
    std::byte* const turned_offsets = scratch.take(most * outputs);
    std::byte* const turned_gx = scratch.take(most * cells * bytes);
    const View some_offsets = routed ? View(turned_offsets, Type::u8, {outputs, most}) : View();
    const View some_gy(turned_gy, planes.gy.type, {outputs, most});
    const MutableView some_gx(turned_gx, planes.gx.type, {cells, most});
    const Collector collector(across, some_offsets, some_gy, some_gx, planes.divisor);
    // The last ones may be fewer: the lanes of others are made, too, of whatever there is.
    if (end % most != 0) {
      std::memset(turned_gy, 0, static_cast<std::size_t>(most * outputs * bytes));
      std::memset(turned_offsets, 0, static_cast<std::size_t>(most * outputs));
    }
    for (std::int64_t first = begin; first < end; first += most) {
      const std::int64_t count = std::min(most, end - first);
      const auto turn = [&](std::int64_t size, const void* from, std::int64_t step, std::byte* to) {
        transpose(size, static_cast<const std::byte*>(from) + first * step * size, step, count, outputs, to, most,
                  count * step);
      };
      turn(bytes, planes.gy.data, planes.output_step, turned_gy);
      if (routed) turn(1, planes.offsets.data, planes.offset_step, turned_offsets);
      collector.run_here();
      transpose(bytes, turned_gx, most, cells, count,
                static_cast<std::byte*>(planes.gx.data) + first * planes.cell_step * bytes, planes.cell_step, 0,
                count * planes.cell_step);
    }
  });
  return true;
}

// Cell by cell, of planes that have a window of few taps around each.
bool gather(const Batch& planes, const Router& router) {
  if (planes.offsets.type != Type::u8 || planes.gy.type != planes.gx.type || is_half(planes.gx.type) ||
      planes.cells != planes.outputs || planes.cells > most_cells ||
      (planes.count > 1 &&
       (planes.cell_step != planes.cells || planes.output_step != planes.cells || planes.offset_step != planes.cells)))
    return false;
  Dense call{};
  std::int64_t taps = 1;
  std::int64_t step = planes.cells;
  for (std::size_t l = 0; l < router.depth(); ++l) {
    const Axis& axis = router.axis(l);
    if (axis.irregular() || axis.stride > 1 || axis.dilation > 1 || axis.out != axis.n || !router.full(l) ||
        axis.size > Dense::most_taps || taps * axis.size > Dense::most_taps)
      return false;
    step /= axis.n;
    // From the last on, so that none is overwritten before it is read.
    for (std::int64_t tap = taps; tap-- > 0;) {
      const std::int32_t shift = call.shift[static_cast<std::size_t>(tap)];
      for (std::int64_t i = axis.size; i-- > 0;)
        call.shift[static_cast<std::size_t>(tap * axis.size + i)] =
            shift + static_cast<std::int32_t>((i - axis.low) * step);
    }
    taps *= axis.size;
  }
  // Where windows are wider than rows, taps do not come in order.
  call.taps = static_cast<int>(taps);
  if (!std::is_sorted(call.shift.begin(), call.shift.begin() + call.taps)) return false;
  const std::int64_t bytes = planes.bytes();
  call.total = planes.count * planes.cells;
  call.stream = call.total * (2 * bytes + 1) > last_level_cache();
  call.offsets = static_cast<const std::uint8_t*>(planes.offsets.data);
  call.gy = planes.gy.data;
  call.gx = planes.gx.data;
  planes.in_tasks(1, [&](Scratch&, std::int64_t begin, std::int64_t end) {
    Dense part = call;
    part.begin = begin * planes.cells;
    part.end = end * planes.cells;
    cpu::gather(planes.gx.type, part);
    if (part.stream) Emitter::flush();
  });
  return true;
}

// Output by output, of as many planes at a time as stay in L1.
bool scatter(const Batch& planes, const Router& router) {
  if (planes.offsets.type != Type::u8 || planes.gy.type != planes.gx.type || is_half(planes.gx.type) ||
      planes.cells > most_cells || planes.outputs > most_cells)
    return false;
  const bool touch =
      planes.cell_step == planes.cells && planes.output_step == planes.outputs && planes.offset_step == planes.outputs;
  const std::int64_t most = std::max(planes.cells, planes.outputs);
  const std::int64_t together = touch ? std::max<std::int64_t>(1, staged_cells / most) : 1;
  Scatter call{};
  std::array<std::int32_t, most_cells> starts;
  call.starts = starts.data();
  call.apart = true;
  std::int64_t count = together, taps = 1, step = 1;
  for (std::int64_t i = 0; i < together; ++i)
    starts[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i * planes.cells);
  std::int64_t cells = planes.cells;
  for (std::size_t l = 0; l < router.depth(); ++l) {
    const Axis& axis = router.axis(l);
    if (axis.irregular() || !router.full(l)) return false;
    call.apart = call.apart && axis.size <= axis.stride;
    cells /= axis.n;
    // From the last on, so that none is overwritten before it is read.
    for (std::int64_t i = count; i-- > 0;) {
      const std::int32_t start = starts[static_cast<std::size_t>(i)];
      for (std::int64_t o = axis.out; o-- > 0;)
        starts[static_cast<std::size_t>(i * axis.out + o)] =
            start + static_cast<std::int32_t>(router.start(l, o) * cells);
    }
    count *= axis.out;
  }
  for (std::size_t l = router.depth() - 1; l > 0; --l) {
    const Axis& axis = router.axis(l);
    const auto more = static_cast<std::int32_t>(step * (axis.n - axis.size));
    taps *= axis.size;
    step *= axis.n;
    call.level[static_cast<std::size_t>(call.levels++)] = {static_cast<std::int32_t>(taps), more};
  }
  const std::int64_t bytes = planes.bytes(), unit = 64 / bytes;
  const bool stream =
      touch && planes.count * (planes.cells * bytes + planes.outputs * (bytes + 1)) > last_level_cache();
  const auto flush = collecting(planes.gx.type, false, true).flush;
  planes.in_tasks(together, [&](Scratch& scratch, std::int64_t begin, std::int64_t end) {
    Scatter part = call;
    std::byte* const memory = stream ? scratch.take((together * planes.cells + 2 * unit) * bytes) : nullptr;
    for (std::int64_t first = begin; first < end; first += together) {
      const std::int64_t some = std::min(together, end - first);
      part.outputs = some * planes.outputs;
      part.cells = some * planes.cells;
      part.offsets = static_cast<const std::uint8_t*>(planes.offsets.data) + first * planes.offset_step;
      part.gy = static_cast<const std::byte*>(planes.gy.data) + first * planes.output_step * bytes;
      std::byte* const to = static_cast<std::byte*>(planes.gx.data) + first * planes.cell_step * bytes;
      // Lines of the cache are the same in the stage and in gx.
      const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to)) / bytes % unit;
      part.gx = stream ? memory + past * bytes : to;
      cpu::scatter(planes.gx.type, part);
      if (!stream) continue;
      Stage stage{memory, 1, true, to - past * bytes, past, past + part.cells};
      flush(stage);
    }
    if (stream) Emitter::flush();
  });
  return true;
}

}  // namespace

bool send_small(const Router& router, const View& offsets, const View& gy, const MutableView& gx, double divisor) {
  const auto kept = router.planes();
  const bool routed = offsets.data != nullptr;
  if (!kept || router.lanes().outputs > 1) return false;
  std::int64_t outputs = 1, cells = 1;
  for (std::size_t l = router.depth(); l-- > 0;) {
    const RouteAxis& level = router.level(l);
    if (level.output_step != outputs || (routed && level.offset_step != outputs) || level.cell_step != cells ||
        __builtin_mul_overflow(outputs, router.axis(l).out, &outputs) ||
        __builtin_mul_overflow(cells, router.axis(l).n, &cells))
      return false;
  }
  if (cells == 0 || outputs == 0) return false;
  const Batch planes{
      kept->outputs, outputs, cells, kept->output_step, kept->offset_step, kept->cell_step, offsets, gy, gx, divisor};
  const Axis& line = router.axis(router.depth() - 1);
  if (!routed || is_half(gx.type)) return router.depth() > 1 && line.n <= longest_woven_line && weave(planes, router);
  const std::int64_t longest = line.stride == 1 ? (line.size <= widest_sent ? longest_dense_line : 0)
                               : line.stride == 2 && line.size <= 3
                                   ? (line.n % 2 ? longest_odd_sent_line : longest_sent_line)
                                   : most_cells;
  return (line.n <= longest_asking_line && gather(planes, router)) || (line.n <= longest && scatter(planes, router));
}

}  // namespace cenote::cpu
