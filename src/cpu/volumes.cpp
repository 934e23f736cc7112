// Pools the planes of volumes and joins them, some at a time, while they are in the cache.
#include "cpu/volumes.h"

#include <algorithm>
#include <atomic>

#include "core/parallel.h"
#include "cpu/block.h"
#include "cpu/scratch.h"
#include "plan/portions.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t most_waiting = 4 * waiting_bytes;  // where single rows are long
constexpr std::int64_t behind = 64;                       // bytes that kernels may read and write behind what there is
constexpr std::int64_t most_joined = most_numbered;       // lanes that are joined at a time
constexpr std::int64_t staged = most_joined + 64;         // lanes from part to part of their states

std::int64_t bytes_of(Type type) { return static_cast<std::int64_t>(size_of(type)); }

class Volumes {
 public:
  Volumes(const Plan::Impl& plan, const Layout& layout, const Operands& operands, const Numbering& numbering,
          bool stream, bool alone)
      : plan_(plan),
        layout_(layout),
        operands_(operands),
        numbering_(numbering),
        stream_(stream),
        alone_(alone),
        top_(layout.axes[0]),
        kernels_(kernels(plan.type, plan.pooling.reducer, plan.role)),
        finish_(kernels(plan.output_type, plan.pooling.reducer, plan.role).finish) {
    if (suits()) find_pieces();
  }

  bool applies() const { return tops_.count > 0; }
  std::int64_t tasks() const { return outers_ * strips_.count * tops_.count; }

  bool run(std::int64_t task, const PoolPlanes& pool) const {
    Scratch& scratch = Scratch::around_this_thread();
    scratch.reset();
    Part part = begin(task, scratch);
    std::int64_t made = 0;  // positions of planes before this are in their places
    bool done = true;
    for (std::int64_t o = part.begin, first = 0; done && o < part.end;) {
      const std::int64_t from = top_.span(o).first;
      const auto end_of = [&](std::int64_t output) {
        const Axis::Span span = top_.span(output);
        return span.first + span.count;
      };
      // What is still wanted moves to the front.
      const std::int64_t kept = o == part.begin ? 0 : std::max<std::int64_t>(0, made - from);
      if (kept > 0) move(part, from - first, kept);
      first = from;
      made = from + kept;
      std::int64_t end = o + 1;
      // Planes between windows are left out.
      while (top_.stride <= top_.size && end < part.end && end_of(end) - first <= room_) ++end;
      done = make(part, made, end_of(end - 1), made - first, pool);
      made = end_of(end - 1);
      for (; o < end; ++o) join(part, o, top_.span(o).first - first, top_.span(o).count);
    }
    if (stream_) Emitter::flush();
    scratch.trim();
    return done;
  }

 private:
  // A strip of the rows of all planes, and outputs [begin, end) of the outermost level. Planes lie side by side in
  // `cells`, as do what belongs to them, tangents or numbers, in `beside`.
  struct Part {
    Origin origin;
    std::int64_t begin, end, first, len;  // rows of outputs from `first` on, and outputs of a plane
    Axis rows;
    std::byte *cells, *beside, *stage, *offsets;
  };

  bool suits() const {
    const Plan::Impl& plan = plan_;
    // Levels are the axes that the plan has looked at, unless some were merged.
    if (layout_.kept_top || layout_.depth != static_cast<int>(plan.geometry.axes.size()) || !finish_) return false;
    switch (plan.role) {
      case Role::value:
        if (!kernels_.swept || plan.output_type != plan.type) return false;
        if (plan.traits.counts == Counts::divisor && !plan.planes) return false;
        break;
      case Role::winner:
        if (!kernels_.join_numbered) return false;
        if (!numbering_.applies() && plan.index_type != Type::u8) return false;
        if (layout_.inner.extent > 1 && layout_.inner.beside != 1) return false;
        break;
      case Role::follower:
        if (!kernels_.join || !plan.planes) return false;
        break;
      default: return false;
    }
    // Outputs lie side by side, and indices as they do.
    std::int64_t dense = layout_.inner.extent;
    if (dense > 1 && layout_.inner.y != 1) return false;
    for (std::size_t l = static_cast<std::size_t>(layout_.depth); --l > 0; dense *= layout_.axes[l].out)
      if (layout_.levels[l].y != dense || (plan.role == Role::winner && layout_.levels[l].beside != dense))
        return false;
    return true;
  }

  void find_pieces() {
    const Axis& rows = layout_.axes[1];
    row_ = layout_.inner.extent;
    for (std::size_t l = 2; l < static_cast<std::size_t>(layout_.depth); ++l) row_ *= layout_.axes[l].out;
    const std::int64_t cell =
        bytes_of(plan_.type) * (plan_.role == Role::follower ? 2 : 1) + (plan_.role == Role::winner);
    // Those of a window, and what the next one needs more, if it needs some again.
    const std::int64_t together = std::min(top_.stride > top_.size ? top_.size : top_.size + top_.stride, top_.n);
    strips_ = Pieces::of(rows.out, std::max(waiting_bytes / together / cell / row_, least_part(rows)));
    const std::int64_t plane = strips_.length * row_ * cell;
    if (plane > most_waiting / together) return;
    room_ = std::min(std::max(together, waiting_bytes / plane), top_.n);
    for (int i = 0; i < layout_.outer_count; ++i) outers_ *= layout_.outer[static_cast<std::size_t>(i)].extent;
    const std::int64_t wanted = alone_ ? 1 : 4 * std::int64_t{thread_limit()}, have = outers_ * strips_.count;
    tops_ =
        Pieces::of(top_.out, have < wanted ? std::max(ceil_div(top_.out * have, wanted), least_part(top_)) : top_.out);
  }

  Part begin(std::int64_t task, Scratch& scratch) const {
    Part part{};
    const std::int64_t top = task % tops_.count, strip = task / tops_.count % strips_.count;
    std::int64_t outer = task / tops_.count / strips_.count;
    for (int i = layout_.outer_count - 1; i >= 0; --i) {
      const Loop& loop = layout_.outer[static_cast<std::size_t>(i)];
      part.origin.add(loop, outer % loop.extent);
      outer /= loop.extent;
    }
    part.begin = tops_.begin(top);
    part.end = tops_.end(top);
    part.first = strips_.begin(strip);
    std::int64_t cells = 0;
    part.rows = part_of(layout_.axes[1], part.first, strips_.end(strip), cells);
    part.origin.x += cells * layout_.levels[1].x;
    part.origin.y += part.first * layout_.levels[1].y;
    part.origin.beside += part.first * layout_.levels[1].beside;
    part.len = part.rows.out * row_;
    const std::int64_t bytes = bytes_of(plan_.type), lane = bytes_of(plan_.lane_type);
    part.cells = scratch.take(room_ * part.len * bytes + behind);
    if (plan_.role == Role::follower) part.beside = scratch.take(room_ * part.len * bytes + behind);
    if (plan_.role == Role::winner) part.beside = scratch.take(room_ * part.len + behind);
    part.stage = scratch.take(2 * staged * lane);
    if (numbering_.applies()) part.offsets = scratch.take(part.len + behind);
    return part;
  }

  void move(const Part& part, std::int64_t from, std::int64_t count) const {
    const auto to_front = [&](std::byte* planes, std::int64_t bytes) {
      std::copy_n(planes + from * part.len * bytes, count * part.len * bytes, planes);
    };
    to_front(part.cells, bytes_of(plan_.type));
    if (part.beside) to_front(part.beside, plan_.role == Role::winner ? 1 : bytes_of(plan_.type));
  }

  // The planes at positions [begin, end), from place `to` on.
  bool make(const Part& part, std::int64_t begin, std::int64_t end, std::int64_t to, const PoolPlanes& pool) const {
    if (begin == end) return true;
    Layout planes = layout_;
    planes.outer_count = 1;
    planes.outer[0] = {end - begin, layout_.levels[0].x, part.len, part.len, 0};
    planes.depth = layout_.depth - 1;
    for (std::size_t l = 0; l < static_cast<std::size_t>(planes.depth); ++l) {
      planes.levels[l] = layout_.levels[l + 1];
      planes.levels[l].beside = planes.levels[l].y;
      planes.axes[l] = layout_.axes[l + 1];
    }
    planes.inner.beside = planes.inner.y;
    planes.axes[0] = part.rows;
    const std::int64_t bytes = bytes_of(plan_.type);
    Operands operands = operands_;
    operands.x.data =
        static_cast<const std::byte*>(operands_.x.data) + (part.origin.x + begin * layout_.levels[0].x) * bytes;
    operands.y.data = part.cells + to * part.len * bytes;
    // Values first: one array after the other comes into the cache.
    if (plan_.planes && !pool(*plan_.planes, planes, operands)) return false;
    if (plan_.role == Role::follower) operands.y.data = part.beside + to * part.len * bytes;
    if (plan_.role == Role::winner) {
      operands.indices.type = Type::u8;
      operands.indices.data = part.beside + to * part.len;
      operands.as_offsets = true;
    }
    return (plan_.planes && plan_.role == Role::value) || pool(plan_, planes, operands);
  }

  // Output o of so many planes from place `first` on.
  void join(const Part& part, std::int64_t o, std::int64_t first, std::int64_t count) const {
    const std::int64_t bytes = bytes_of(plan_.type), y_bytes = bytes_of(plan_.output_type);
    const std::byte* cells = part.cells + first * part.len * bytes;
    auto* y = static_cast<std::byte*>(operands_.y.data) + (part.origin.y + o * layout_.levels[0].y) * y_bytes;
    const std::int64_t beside = part.origin.beside + o * layout_.levels[0].beside;
    std::byte* offsets = numbering_.applies()         ? part.offsets
                         : plan_.role == Role::winner ? static_cast<std::byte*>(operands_.indices.data) + beside
                                                      : nullptr;
    const Axis window{.n = count, .size = count, .out = 1};
    for (std::int64_t i = 0; i < part.len; i += most_joined) {
      const std::int64_t len = std::min(most_joined, part.len - i);
      const auto plane = [&](std::int64_t k) { return cells + (k * part.len + i) * bytes; };
      if (plan_.role == Role::winner) {
        const std::int64_t taps = layout_.axes[1].size * layout_.axes[2].size;
        const auto* numbers = reinterpret_cast<const std::uint8_t*>(part.beside) + first * part.len + i;
        kernels_.join_numbered({plane(0), numbers, part.len, count, top_.span(o).tap * taps, taps, len, y + i * y_bytes,
                                reinterpret_cast<std::uint8_t*>(offsets) + i, stream_,
                                stream_ && !numbering_.applies()});
        continue;
      }
      std::int64_t apart = 0;
      if (plan_.role == Role::value) {
        Pass pass{};
        pass.axis = &window;
        pass.end = pass.rows = 1;
        pass.src = plane(0);
        pass.step = part.len;
        pass.len = len;
        pass.dst = part.stage;
        pass.params = plan_.params;
        kernels_.rows(pass);
      } else {
        apart = staged;
        Join join{plane(0), nullptr, (part.beside - part.cells) / bytes, 0, 0, part.stage, apart, len, plan_.params};
        if (count == 1) kernels_.join(join);
        for (std::int64_t k = 1; k < count; ++k) {
          join.b = const_cast<std::byte*>(plane(k));
          join.b_plane = (part.beside - part.cells) / bytes;
          kernels_.join(join);
          join.a = part.stage;
          join.a_plane = apart;
        }
      }
      finish_({part.stage, apart, len, nullptr, *plan_.count, y + i * y_bytes, nullptr, stream_, plan_.params});
    }
    if (!numbering_.applies()) return;
    const Axis& tail = layout_.axes[2];
    auto* const indices = static_cast<std::int64_t*>(operands_.indices.data) + beside;
    const std::int64_t place = part.origin.place + (o * top_.stride - top_.low) * layout_.levels[0].place;
    const auto* const numbers = reinterpret_cast<const std::uint8_t*>(offsets);
    if (numbering_.slice(numbers, part.first * row_, part.len, indices, place, stream_)) return;
    numbering_({part.first, part.first + part.rows.out, 0, tail.out, layout_.inner.extent}, offsets, indices, place,
               stream_, 1);
  }

  const Plan::Impl& plan_;
  const Layout& layout_;
  const Operands& operands_;
  const Numbering& numbering_;
  const bool stream_, alone_;
  const Axis& top_;
  const Kernels kernels_;
  void (*const finish_)(const Finish&);
  std::int64_t row_ = 1, room_ = 1, outers_ = 1;  // outputs of a step along level 1; planes that there is room for
  Pieces strips_, tops_;                          // of the outputs of levels 1 and 0
};

}  // namespace

bool pool_volumes(const Plan::Impl& plan, const Layout& layout, const Operands& operands, const Numbering& numbering,
                  bool stream, bool alone, const PoolPlanes& pool) {
  if (!plan.algorithm.by_planes || !plan.algorithm.joins_planes || layout.depth < 3) return false;
  const Volumes volumes(plan, layout, operands, numbering, stream, alone);
  if (!volumes.applies()) return false;
  std::atomic<bool> done{true};
  const auto run = [&](std::int64_t task) {
    if (done && !volumes.run(task, pool)) done = false;
  };
  if (!alone)
    parallel_for(volumes.tasks(), run);
  else
    for (std::int64_t task = 0; task < volumes.tasks(); ++task) run(task);
  return done;
}

}  // namespace cenote::cpu
