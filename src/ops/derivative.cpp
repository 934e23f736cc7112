// Derivatives as poolings: derived plans over the same or the transposed windows, run by the same kernels.
#include "ops/derivative.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/copy.h"
#include "core/parallel.h"
#include "core/reject.h"
#include "cpu/execute.h"
#include "cpu/route.h"
#include "cpu/slices.h"
#include "ops/arrays.h"
#include "ops/tame_cotangent.h"
#include "plan/portions.h"

namespace cenote {
namespace {

constexpr std::int64_t alignment = 64;

std::int64_t rounded(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
std::int64_t bytes_of(Type type) { return static_cast<std::int64_t>(size_of(type)); }
Type lane_of(Type type) { return is_half(type) ? Type::f32 : type; }

bool is_infinite_lp(const Plan::Impl& plan) {
  const double largest = plan.type == Type::f64 ? std::numeric_limits<double>::max()
                                                : static_cast<double>(std::numeric_limits<float>::max());
  return plan.pooling.reducer == Reducer::lp && plan.params.p > largest;
}

std::shared_ptr<Plan::Impl> with_role(const Plan::Impl& plan, Role role, int parts) {
  auto result = std::make_shared<Plan::Impl>(plan);
  result->role = role;
  result->index_type.reset();
  result->lane_type = lane_of(plan.type);
  if (role == Role::states) result->output_type = result->lane_type;
  const States states{.bytes = parts * bytes_of(result->lane_type),
                      .cell_bytes = bytes_of(result->type),
                      .weighs = true,
                      .by_planes = role == Role::follower && plan.type == result->lane_type};
  result->algorithm = choose(plan.geometry, plan.shape, states);
  prepare_planes(*result);
  prepare_portions(*result, states);
  return result;
}

// The plan that goes from outputs to cells: `type` is what it reads.
std::shared_ptr<Plan::Impl> transposed(const Plan::Impl& plan, Role role, Type type) {
  auto result = std::make_shared<Plan::Impl>(plan);
  result->role = role;
  result->planes.reset();
  result->sums.reset();
  result->portions.reset();
  if (role == Role::value) result->pooling.reducer = Reducer::sum;
  result->index_type.reset();
  result->divides_late = false;
  result->count = 0.0;
  result->type = type;
  result->lane_type = lane_of(type);
  result->output_type = plan.type;
  result->shape = plan.geometry.kept_shape;
  for (Axis& axis : result->geometry.axes) axis = axis.transpose();
  result->geometry.kept_shape = result->geometry.output_shape = plan.shape;
  const bool sums = role == Role::value;
  // Kernels that make planes at once want windows that begin with the first cell, or before it.
  bool plain = sums;
  for (const Axis& axis : result->geometry.axes) plain = plain && axis.low >= 0;
  result->algorithm = choose(result->geometry, result->shape,
                             {.bytes = (sums ? 1 : 2) * bytes_of(result->lane_type),
                              .cell_bytes = bytes_of(type),
                              .weighs = !sums,
                              .alike = plain,
                              .by_planes = plain && type == result->lane_type && type == plan.type});
  return result;
}

// The elements of x, without gaps, in another type.
Array contiguous(const View& x, Type type) {
  Array copy(type, x.shape);
  copy_strided(x, MutableView(copy));
  return copy;
}

// y[i] = f(x[i], y[i]) for two arrays without gaps.
template <class F>
void each_pair(const Array& x, Array& y, const F& f) {
  const auto go = [&]<class T>(T) {
    const auto a = x.values<T>();
    const auto b = y.values<T>();
    for (std::size_t i = 0; i < a.size(); ++i) b[i] = f(a[i], b[i]);
  };
  x.type() == Type::f64 ? go(double{}) : go(float{});
}

template <class T>
T sign(T x) {
  return x > 0 ? T{1} : x < 0 ? T{-1} : x;
}

// Magnitudes of x, in the lane type: their largest wins in an infinite norm.
Array magnitudes(const View& x) {
  Array result = contiguous(x, lane_of(x.type));
  each_pair(result, result, [](auto a, auto) { return std::fabs(a); });
  return result;
}

// a * b, in the lane type.
Array product(const Array& a, const View& b) {
  Array result = contiguous(b, a.type());
  each_pair(a, result, [](auto s, auto t) { return s * t; });
  return result;
}

Array signs(const View& x) {
  Array result = contiguous(x, lane_of(x.type));
  each_pair(result, result, [](auto a, auto) { return sign(a); });
  return result;
}

}  // namespace

Rule rule_of(const Plan::Impl& plan) {
  if (is_infinite_lp(plan)) return Rule::routed;
  if (plan.traits.weighs) return Rule::weighed;
  if (!plan.traits.picks) return Rule::linear;
  return plan.pooling.ties == Ties::split ? Rule::weighed : Rule::routed;
}

ImplPtr winners_of(const Plan::Impl& plan) {
  Pooling pooling = plan.pooling;
  pooling.indices = IndexKind::offset;
  Type type = plan.type;
  if (is_infinite_lp(plan)) {
    pooling.reducer = Reducer::max;
    type = lane_of(type);
  }
  auto result = std::make_shared<Plan::Impl>(cenote::plan(pooling, type, plan.shape).impl());
  result->who = plan.who;
  return result;
}

namespace {

// The winners' offsets of x, in scratch memory.
View find_winners(const Plan::Impl& winners, const View& x, std::byte* scratch) {
  const Extents& shape = winners.geometry.kept_shape;
  const MutableView offsets(scratch, *winners.index_type, shape);
  const std::int64_t bytes = rounded(element_count(shape) * bytes_of(*winners.index_type));
  const MutableView y(scratch + bytes, winners.output_type, shape);
  cpu::execute(winners, {.x = x, .y = y, .indices = offsets});
  return offsets;
}

std::int64_t winners_scratch(const Plan::Impl& winners) {
  const std::int64_t outputs = element_count(winners.geometry.kept_shape);
  return rounded(outputs * bytes_of(*winners.index_type)) + rounded(outputs * bytes_of(winners.output_type));
}

}  // namespace

Tangent::Tangent(ImplPtr forward) : forward_(std::move(forward)), rule_(rule_of(*forward_)) {
  if (rule_ == Rule::weighed) part_ = with_role(*forward_, Role::tangent, 3);
  if (rule_ != Rule::routed) return;
  if (!is_infinite_lp(*forward_)) follower_ = with_role(*forward_, Role::follower, 2);
  part_ = winners_of(*forward_);
  scratch_ = winners_scratch(*part_);
}

void Tangent::run(const View& x, const View& dx, const MutableView& dy, std::byte* scratch) const {
  if (rule_ == Rule::linear) return void(cpu::execute(*forward_, {.x = dx, .y = dy}));
  const auto apart = static_cast<const std::byte*>(dx.data) - static_cast<const std::byte*>(x.data);
  const bool alike = x.strides == dx.strides && apart != 0 && apart % bytes_of(x.type) == 0;
  if (rule_ == Rule::routed) {
    if (follower_ && alike && cpu::execute(*follower_, {.x = x, .y = dy, .x_plane = apart / bytes_of(x.type)})) return;
    if (!is_infinite_lp(*forward_)) return cpu::fetch(*part_, find_winners(*part_, x, scratch), dx, dy);
    const Array largest = magnitudes(x), tangent = product(signs(x), dx);
    Array result(tangent.type(), dy.shape);
    cpu::fetch(*part_, find_winners(*part_, largest, scratch), tangent, result);
    return copy_strided(result, dy);
  }
  if (alike) return void(cpu::execute(*part_, {.x = x, .y = dy, .x_plane = apart / bytes_of(x.type)}));
  // One array after the other, so that a step from x leads to dx everywhere.
  const std::int64_t n = element_count(x.shape), bytes = bytes_of(x.type);
  Array both(x.type, {2, std::max<std::int64_t>(n, 1)});
  auto* memory = static_cast<std::byte*>(both.data());
  copy_strided(x, MutableView(memory, x.type, x.shape));
  copy_strided(dx, MutableView(memory + n * bytes, x.type, x.shape));
  cpu::execute(*part_, {.x = View(memory, x.type, x.shape), .y = dy, .x_plane = n});
}

void Tangent::run_saved(const View& offsets, const View& dx, const MutableView& dy) const {
  cpu::fetch(*part_, offsets, dx, dy);
}

Cotangent::Cotangent(ImplPtr forward, bool may_be_tame) : forward_(std::move(forward)), rule_(rule_of(*forward_)) {
  const Plan::Impl& plan = *forward_;
  outputs_ = element_count(plan.geometry.kept_shape);
  if (rule_ == Rule::routed) {
    part_ = winners_of(plan);
    scratch_ = winners_scratch(*part_);
  } else if (rule_ == Rule::weighed) {
    part_ = with_role(plan, Role::states, 2);
    transposed_ = transposed(plan, Role::cotangent, part_->lane_type);
    scratch_ = 2 * rounded(outputs_ * bytes_of(part_->lane_type));
    if (may_be_tame) tame_ = TameCotangent::make(plan);
    if (tame_) scratch_ = std::max(scratch_, tame_->scratch());
  } else if (plan.traits.counts == Counts::none || plan.count) {
    auto sums = transposed(plan, Role::value, plan.output_type);
    if (plan.traits.counts != Counts::none) {
      // The same divisor for all: sums are divided once.
      sums->pooling.reducer = Reducer::avg;
      sums->count = plan.count;
    }
    prepare_planes(*sums);
    transposed_ = sums;
  } else {
    auto sums = transposed(plan, Role::value, lane_of(plan.output_type));
    prepare_planes(*sums);
    transposed_ = sums;
    scratch_ = rounded(outputs_ * bytes_of(transposed_->type));
    for (const Axis& axis : plan.geometry.axes) {
      std::vector<double> counts;
      for (std::int64_t o = 0; o < axis.out; ++o)
        counts.push_back(static_cast<double>(
            plan.pooling.divisor.rule() == Divisor::Rule::clipped ? axis.clipped(o) : axis.span(o).count));
      counts_.push_back(std::move(counts));
    }
  }
}

void Cotangent::run(const View& x, const View& gy, const MutableView& gx, std::byte* scratch) const {
  if (rule_ == Rule::linear) return run_linear(gy, gx, scratch);
  if (rule_ == Rule::weighed) return run_weighed(x, gy, gx, scratch);
  if (!is_infinite_lp(*forward_)) return void(cpu::send(*part_, find_winners(*part_, x, scratch), gy, gx));
  // The winners' signs are what counts: a cell that wins nothing gets 0, even a NaN.
  const Array largest = magnitudes(x);
  const View offsets = find_winners(*part_, largest, scratch);
  Array won(largest.type(), gy.shape);
  cpu::fetch(*part_, offsets, signs(x), won);
  cpu::send(*part_, offsets, product(won, gy), gx);
}

void Cotangent::run_saved(const View& offsets, const View& gy, const MutableView& gx) const {
  cpu::send(*part_, offsets, gy, gx);
}

void Cotangent::run_linear(const View& gy, const MutableView& gx, std::byte* scratch) const {
  View source = gy;
  if (forward_->traits.counts != Counts::none && !forward_->count) {
    const MutableView quotients(scratch, transposed_->type, gy.shape);
    if (!cpu::divide_outputs(*forward_, gx, gy, quotients)) divide(gy, scratch, nullptr);
    source = quotients;
  }
  bool sweeps = true;  // windows one step apart are those of a pooling
  for (const Axis& axis : forward_->geometry.axes) sweeps = sweeps && axis.stride == 1 && axis.out != 1;
  const double divisor = forward_->traits.counts == Counts::none ? 1 : forward_->count.value_or(1);
  if (!sweeps && cpu::spread(*forward_, source, gx, divisor)) return;
  cpu::execute(*transposed_, {.x = source, .y = gx});
}

void Cotangent::run_weighed(const View& x, const View& gy, const MutableView& gx, std::byte* scratch) const {
  if (tame_ && tame_->run(x, gy, gx, scratch)) return;
  const Type lane = part_->lane_type;
  std::byte* second = scratch + rounded(outputs_ * bytes_of(lane));
  cpu::execute(*part_, {.x = x, .y = MutableView(scratch, lane, gy.shape), .second = second});
  divide(gy, second, second);
  cpu::execute(*transposed_, {.x = View(scratch, lane, gy.shape),
                              .y = gx,
                              .x_plane = rounded(outputs_ * bytes_of(lane)) / bytes_of(lane),
                              .cells = x});
}

// quotients = gy / divisors, or by what the average divides by. One true division each, in double precision.
void Cotangent::divide(const View& gy, void* quotients, const void* divisors) const {
  const int last = gy.rank() - 1;
  const std::int64_t n = gy.shape[last], rows = n > 0 ? outputs_ / n : 0;
  const Extents& pooled = forward_->geometry.pooled;
  const auto go = [&]<class A>(A) {
    const std::int64_t together = std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(n, 1));
    parallel_for((rows + together - 1) / together, [&](std::int64_t task) {
      for (std::int64_t row = task * together; row < std::min(rows, (task + 1) * together); ++row) {
        std::int64_t rest = row, at = 0;
        double outer = forward_->count.value_or(1);
        const double* along = nullptr;
        for (int i = last, level = pooled.size() - 1; i >= 0; --i) {
          const std::int64_t o = i == last ? 0 : rest % gy.shape[i];
          if (i != last) rest /= gy.shape[i];
          at += o * gy.strides[i];
          if (level < 0 || pooled[level] != i) continue;
          if (!counts_.empty() && !forward_->count) {
            const std::vector<double>& counts = counts_[static_cast<std::size_t>(level)];
            if (i == last)
              along = counts.data();
            else
              outer *= counts[static_cast<std::size_t>(o)];
          }
          --level;
        }
        A* to = static_cast<A*>(quotients) + row * n;
        const A* by = divisors ? static_cast<const A*>(divisors) + row * n : nullptr;
        const auto quotient = [&](A g, std::int64_t i) {
          if (by) return g / by[i];
          const double d = along ? outer * along[i] : outer;
          return static_cast<A>(static_cast<double>(g) / (d > 0 ? d : 1));
        };
        std::array<A, 256> some;
        for (std::int64_t i = 0; i < n; i += 256) {
          const std::int64_t count = std::min<std::int64_t>(256, n - i);
          convert_line(type_of<A>, some.data(), gy.type,
                       static_cast<const std::byte*>(gy.data) + (at + i * gy.strides[last]) * bytes_of(gy.type),
                       gy.strides[last], count);
          for (std::int64_t j = 0; j < count; ++j) to[i + j] = quotient(some[static_cast<std::size_t>(j)], i + j);
        }
      }
    });
  };
  transposed_->type == Type::f64 ? go(double{}) : go(float{});
}

}  // namespace cenote
