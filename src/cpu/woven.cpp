// Turns small planes, so that lanes run across them, and their outputs back.
#include "cpu/woven.h"

#include "cpu/scratch.h"
#include "cpu/transpose.h"

namespace cenote::cpu {

Woven::Woven(const Plan::Impl& plan, const Layout& layout, const Operands& operands, const Numbering& numbering,
             bool stream)
    : plan_(plan), layout_(layout), operands_(operands), numbering_(numbering), stream_(stream) {
  if ((plan.role != Role::value && plan.role != Role::winner) || layout.inner.extent > 1) return;
  if (!plan.algorithm.weaves()) return;
  // Of lines alone, those of a kept axis.
  const Axis& top = layout.axes[0];
  lines_ =
      layout.depth == 2 && top.size == 1 && top.stride == 1 && top.low == 0 && top.out == top.n && !top.irregular();
  if (!lines_ && layout.outer_count == 0) return;
  const Loop& beside = this->beside();
  const auto bytes = static_cast<std::int64_t>(size_of(plan.type));
  const std::int64_t least = least_woven / bytes;
  if (beside.extent < (plan.algorithm.weave == Weave::always ? 2 : least)) return;
  // Cells and outputs lie side by side, and numbers are those within a plane.
  for (int l = layout.depth - 1; l >= (lines_ ? 1 : 0); --l) {
    const Loop& loop = layout.levels[static_cast<std::size_t>(l)];
    const Axis& axis = layout.axes[static_cast<std::size_t>(l)];
    if (loop.x != cells_ || loop.y != outputs_ || (plan.role == Role::winner && loop.beside != loop.y)) return;
    if (__builtin_mul_overflow(cells_, axis.n, &cells_) || __builtin_mul_overflow(outputs_, axis.out, &outputs_))
      return;
  }
  bool within = beside.place == 0;
  for (int i = 0; i < layout.outer_count; ++i) within = within && layout.outer[static_cast<std::size_t>(i)].place == 0;
  if (!within && !numbering.applies()) return;
  if (cells_ == 0 || std::max(cells_, outputs_) > largest_woven / least_woven) return;
  for (int i = 0; i < outer_count(); ++i) outers_ *= layout.outer[static_cast<std::size_t>(i)].extent;
  const std::int64_t most = std::clamp(woven_bytes / bytes / cells_ / least * least, least, most_woven / bytes);
  // Whole packs of planes, but for the last.
  groups_ = Pieces::of(beside.extent, most);
  groups_.length = ceil_div(groups_.length, least) * least;
  groups_.count = ceil_div(beside.extent, groups_.length);
}

Woven::Group Woven::begin(std::int64_t i) const {
  Group group;
  std::int64_t outer = i / groups_.count;
  for (int l = outer_count() - 1; l >= 0; --l) {
    const Loop& loop = layout_.outer[static_cast<std::size_t>(l)];
    group.origin.add(loop, outer % loop.extent);
    outer /= loop.extent;
  }
  const std::int64_t first = groups_.begin(i % groups_.count);
  group.origin.add(beside(), first);
  const std::int64_t planes = group.planes = groups_.end(i % groups_.count) - first;
  const auto bytes = static_cast<std::int64_t>(size_of(plan_.type)),
             y_bytes = static_cast<std::int64_t>(size_of(plan_.output_type));
  Scratch& scratch = Scratch::around_this_thread();
  scratch.reset();
  // Kernels may read a pack behind what there is.
  std::byte* const x = scratch.take(cells_ * planes * bytes + 64);
  transpose(bytes, static_cast<const std::byte*>(operands_.x.data) + group.origin.x * bytes, beside().x, planes, cells_,
            x, planes, planes * beside().x, 0);
  group.operands.x.data = x;
  group.operands.y.data = scratch.take(outputs_ * planes * y_bytes);
  if (plan_.index_type) {
    group.operands.as_offsets = numbering_.applies();
    group.operands.indices.type = numbering_.applies() ? numbering_.type() : *plan_.index_type;
    group.operands.indices.data =
        scratch.take(outputs_ * planes * static_cast<std::int64_t>(size_of(group.operands.indices.type)));
  }
  group.layout = layout_;
  group.layout.outer_count = 0;
  group.layout.inner = {planes, 1, 1, 1, 0};
  if (lines_) {
    group.layout.levels[0] = Loop{};
    group.layout.axes[0] = Axis{1, 1, 1, 1, 0, 0, 1, false};
  }
  for (int l = 0; l < layout_.depth; ++l) {
    Loop& loop = group.layout.levels[static_cast<std::size_t>(l)];
    loop.x *= planes;
    loop.y *= planes;
    loop.beside = loop.y;
  }
  return group;
}

void Woven::end(const Group& group) const {
  const auto back = [&](const MutableView& from, const MutableView& to, std::int64_t at, std::int64_t apart,
                        Type type) {
    const auto bytes = static_cast<std::int64_t>(size_of(type));
    transpose(bytes, from.data, group.planes, outputs_, group.planes, static_cast<std::byte*>(to.data) + at * bytes,
              apart, 0, group.planes * apart);
  };
  back(group.operands.y, operands_.y, group.origin.y, beside().y, plan_.output_type);
  if (numbering_.applies()) {
    // Offsets first, of which a plane is side by side then.
    const Type type = group.operands.indices.type;
    const auto bytes = static_cast<std::int64_t>(size_of(type));
    MutableView offsets;
    offsets.data = Scratch::around_this_thread().take(group.planes * outputs_ * bytes);
    back(group.operands.indices, offsets, 0, outputs_, type);
    auto* const to = static_cast<std::int64_t*>(operands_.indices.data) + group.origin.beside;
    const int top = lines_ ? 1 : 0;
    for (std::int64_t i = 0; i < group.planes; ++i)
      numbering_(numbering_.whole(top), static_cast<std::byte*>(offsets.data) + i * outputs_ * bytes,
                 to + i * beside().beside, group.origin.place + i * beside().place, stream_, top);
    if (stream_) Emitter::flush();
  } else if (plan_.index_type) {
    back(group.operands.indices, operands_.indices, group.origin.beside, beside().beside, *plan_.index_type);
  }
  Scratch::around_this_thread().trim();
}

}  // namespace cenote::cpu
