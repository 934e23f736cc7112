// Cuts poolings that weigh their cells into portions.
#include "plan/portions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/apart.h"
#include "plan/phases.h"

namespace cenote {
namespace {

constexpr std::int64_t portion_bytes = 192
                                       << 10;  // of lanes that are kept of its cells, about: less than a core's cache
constexpr std::int64_t largest_portion = 768 << 10;  // where there are no smaller ones
constexpr std::int64_t most_pieces = 1 << 16;        // of a plane
constexpr std::size_t most_kinds = 8;                // of portions: more are those of long padding
constexpr double most_exponent = 4;                  // of lp: up to there powers are products

std::int64_t bytes_of(Type type) { return static_cast<std::int64_t>(size_of(type)); }

// Whether sums of powers are as good as states where cells are tame.
bool has_sums(const Plan::Impl& plan) {
  if (plan.role != Role::value && plan.role != Role::tangent) return false;
  if (plan.output_type != plan.type || element_count(plan.shape) == 0 || element_count(plan.geometry.kept_shape) == 0)
    return false;
  const double p = plan.params.p, beta = std::fabs(plan.params.beta);
  if (plan.pooling.reducer == Reducer::lp) return p <= most_exponent && p == std::floor(p);
  return plan.pooling.reducer == Reducer::smooth_max && plan.params.crowded &&
         beta <= (plan.type == Type::f64 ? 1e300 : 1e30);
}

// Whether one kernel makes planes of sums as it reads them, which is faster: windows share at most one row, and are
// pairs or threes two apart, or of channels. Of smooth max none may reach over an end.
bool are_made_at_once(const Plan::Impl& plan) {
  const std::vector<Axis>& axes = plan.geometry.axes;
  const bool lp = plan.pooling.reducer == Reducer::lp;
  if (axes.size() > 2 || (lp && plan.params.p > 2) || (plan.role == Role::tangent && plan.type != plan.lane_type))
    return false;
  for (const Axis& axis : axes)
    if (axis.irregular() || axis.dilation > 1 ||
        (!lp && axis.interior() != std::pair<std::int64_t, std::int64_t>(0, axis.out)))
      return false;
  const Axis &across = axes[0], &line = axes.back();
  const bool shares_rows = axes.size() == 2 && across.size > across.stride + 1;
  const bool few = plan.algorithm.along_lines ? line.stride == 2 && (line.size == 2 || line.size == 3) && line.low < 2
                                              : line.size <= most_rows_first && !plan.algorithm.few_beside;
  return few && !shares_rows && across.size <= most_rows_first;
}

// Whether sums are faster than what is chosen without them: for tangents as a rule, and else for windows of planes,
// unless powers are no products of theirs.
bool are_better_summed(const Plan::Impl& plan) {
  if (are_made_at_once(plan)) return false;
  if (plan.role == Role::tangent || (plan.pooling.reducer == Reducer::lp && plan.params.p > 2)) return true;
  const std::vector<Axis>& axes = plan.geometry.axes;
  return axes.size() == 2 && plan.algorithm.along_lines && axes[0].size > 1 && axes[0].out > 1 && axes[1].out > 1;
}

Plan::Impl with_shape(const Plan::Impl& whole, const Extents& shape, const Extents& kept, const Axis& top) {
  Plan::Impl part = whole;
  part.portions = nullptr;
  part.shape = shape;
  part.geometry.axes[0] = top;
  part.geometry.kept_shape = part.geometry.output_shape = kept;
  part.bytes = 0;  // portions stay on their thread, and in its cache
  return part;
}

}  // namespace

Axis part_of(const Axis& axis, std::int64_t begin, std::int64_t end, std::int64_t& from) noexcept {
  from = std::clamp<std::int64_t>(begin * axis.stride - axis.low, 0, axis.n);
  const std::int64_t to = (end - 1) * axis.stride - axis.low + (axis.size - 1) * axis.dilation + 1;
  Axis part = axis;
  part.n = std::clamp<std::int64_t>(to, from, axis.n) - from;
  part.low += from - begin * axis.stride;
  part.out = end - begin;
  return part;
}

Portions::Portions(const Plan::Impl& whole, std::int64_t cell_bytes) : top_(whole.geometry.axes[0]) {
  const Extents &shape = whole.shape, &kept = whole.geometry.kept_shape;
  const int top = static_cast<int>(whole.geometry.pooled[0]);
  cells_ = element_count(shape);
  outputs_ = element_count(kept);
  const auto fits = [&] { return std::max(cells_, outputs_) <= portion_bytes / cell_bytes; };
  for (int i = 0; i < top && !fits(); ++i) {
    outers_ *= along_;
    along_ = shape[i];
    cells_ /= shape[i];
    outputs_ /= shape[i];
    axis_ = i;
  }
  const std::int64_t larger = std::max(cells_, outputs_);
  length_ = std::clamp<std::int64_t>(portion_bytes / cell_bytes / larger, 1, along_);
  const std::int64_t rows = top_.out, overlap = std::min((top_.size - 1) * top_.dilation / top_.stride, rows);
  if (!fits() && !top_.irregular() && rows > 1) {
    const std::int64_t row = std::max(cells_ / top_.n, outputs_ / rows);
    const std::int64_t length =
        portion_bytes / cell_bytes / row / std::max<std::int64_t>(1, std::min(top_.stride, top_.n));
    // Portions repeat what they share.
    if (length >= std::max<std::int64_t>(overlap, 1)) {
      cuts_planes_ = true;
      outers_ *= along_;
      along_ = rows;
      length_ = std::min(length, rows);
      cells_ /= top_.n;
      outputs_ /= rows;
      axis_ = top;
    }
  }
  pieces_ = ceil_div(along_, length_);
}

const Portion* Portions::find(const Axis& top, std::int64_t planes) const noexcept {
  for (const Portion& kind : kinds_)
    if (kind.planes == planes && kind.top == top) return &kind;
  return nullptr;
}

Portions::Place Portions::at(std::int64_t i) const noexcept {
  const std::int64_t outer = i / pieces_, begin = i % pieces_ * length_, end = std::min(begin + length_, along_);
  if (!cuts_planes_)
    return {find(top_, end - begin), (outer * along_ + begin) * cells_, (outer * along_ + begin) * outputs_};
  std::int64_t from = 0;
  const Axis part = part_of(top_, begin, end, from);
  return {find(part, 1), (outer * top_.n + from) * cells_, (outer * along_ + begin) * outputs_};
}

bool Portions::add_kinds(const Plan::Impl& whole, const States& states) {
  const std::int64_t lane = bytes_of(whole.lane_type);
  for (std::int64_t i = 0; i < pieces_; ++i) {
    const std::int64_t begin = i * length_, end = std::min(begin + length_, along_);
    std::int64_t from = 0;
    const Axis part = cuts_planes_ ? part_of(top_, begin, end, from) : top_;
    const std::int64_t planes = cuts_planes_ ? 1 : end - begin;
    if (find(part, planes)) continue;
    Extents shape = whole.shape, kept = whole.geometry.kept_shape;
    for (int axis = 0; axis < axis_; ++axis) shape[axis] = kept[axis] = 1;
    if (cuts_planes_) {
      shape[axis_] = part.n;
      kept[axis_] = part.out;
    } else if (axis_ >= 0) {
      shape[axis_] = kept[axis_] = planes;
    }
    Plan::Impl weighed = with_shape(whole, shape, kept, part), sums = weighed;
    weighed.algorithm = choose(weighed.geometry, shape, states);
    sums.pooling.reducer = Reducer::sum;
    sums.role = Role::value;
    sums.traits = traits(Reducer::sum);
    sums.type = sums.output_type = whole.lane_type;
    sums.count = 0.0;
    sums.algorithm =
        choose(sums.geometry, shape, {.bytes = lane, .cell_bytes = lane, .alike = true, .by_planes = true});
    const std::int64_t cells = element_count(shape), outputs = element_count(kept);
    most_cells_ = std::max(most_cells_, cells);
    most_outputs_ = std::max(most_outputs_, outputs);
    kinds_.push_back({part, planes, cells, outputs, std::make_shared<const Plan::Impl>(std::move(sums)),
                      std::make_shared<const Plan::Impl>(std::move(weighed))});
    if (kinds_.size() > most_kinds) return false;
  }
  return true;
}

std::shared_ptr<const Portions> Portions::of(const Plan::Impl& whole, const States& states) {
  // Beside powers there are products of as many tangents.
  const std::int64_t bytes = bytes_of(whole.lane_type) * (whole.role == Role::tangent ? 2 : 1);
  std::shared_ptr<Portions> result(new Portions(whole, bytes));
  if (result->pieces_ > most_pieces || !result->add_kinds(whole, states)) return nullptr;
  return std::max(result->most_cells_, result->most_outputs_) <= largest_portion / bytes ? result : nullptr;
}

void prepare_portions(Plan::Impl& plan, const States& states) {
  plan.portions = has_sums(plan) ? Portions::of(plan, states) : nullptr;
  if (!plan.portions || !are_better_summed(plan)) return;
  plan.algorithm.by_sums = true;
  // What is left of cells and of windows, beside what their own pooling may need as well.
  const std::int64_t lanes = plan.portions->most_cells() + plan.portions->most_outputs();
  const std::int64_t bytes = lanes * bytes_of(plan.lane_type) * (plan.role == Role::tangent ? 2 : 1);
  plan.algorithm.scratch += std::min(bytes, std::numeric_limits<std::int64_t>::max() - plan.algorithm.scratch);
  plan.algorithm.reason += "; where cells are tame, plain sums of their powers are made of some at a time";
}

}  // namespace cenote
