// Makes a Plan: every check of a caller's request happens here.
#include <cenote/plan.h>

#include <cmath>
#include <limits>

#include <cenote/problem.h>

#include "core/checked.h"
#include "core/reject.h"
#include "plan/impl.h"
#include "plan/portions.h"

namespace cenote {
namespace {

std::string function_name(const Pooling& pooling) {
  const char* prefix = std::holds_alternative<Adaptive>(pooling.region) ? "adaptive_"
                       : std::holds_alternative<Global>(pooling.region) ? "global_"
                                                                        : "";
  return prefix + std::string(name(pooling.reducer)) + "_pool";
}

bool widens(Type from, Type to) {
  return from == to ||
         (size_of(to) > size_of(from) && ((is_float(from) && is_float(to)) || (is_integer(from) && is_integer(to))));
}

void check_types(const Plan::Impl& plan) {
  const Pooling& pooling = plan.pooling;
  const bool average = plan.traits.counts == Counts::divisor;
  if (plan.type == Type::boolean && !plan.traits.picks)
    reject(plan.who, "type bool: ", name(pooling.reducer), " is defined for numbers");
  if (is_integer(plan.type) && !plan.traits.integers && !average)
    reject(plan.who, "type ", name(plan.type), ": must be f16, bf16, f32 or f64");
  if (pooling.dtype && pooling.reducer != Reducer::sum)
    reject(plan.who, "dtype = ", name(*pooling.dtype), ": only sums take one");
  if (pooling.dtype && !widens(plan.type, *pooling.dtype))
    reject(plan.who, "dtype = ", name(*pooling.dtype), ": must be ", name(plan.type), " or a wider type of its kind");
  if (pooling.indices && !plan.traits.picks) reject(plan.who, "indices: only max and min have a winner");
  if (pooling.ties == Ties::split && !plan.traits.picks) reject(plan.who, "ties = split: only max and min have ties");
}

// A number as the kernels will see it.
double in_compute_type(double value, Type type) {
  return type == Type::f64 || is_integer(type) ? value : static_cast<double>(static_cast<float>(value));
}

void check_params(const Plan::Impl& plan) {
  const Pooling& pooling = plan.pooling;
  if (pooling.reducer == Reducer::smooth_max) {
    const double beta = in_compute_type(pooling.beta, plan.type);
    if (!std::isfinite(beta) || beta == 0)
      reject(plan.who, "beta = ", pooling.beta, ": must be finite and not 0 in ",
             plan.type == Type::f64 ? "f64" : "f32, the compute type of ",
             plan.type == Type::f64 ? "" : name(plan.type));
  }
  if (pooling.reducer == Reducer::lp && !(pooling.p >= 1))
    reject(plan.who, "p = ", pooling.p, ": must be at least 1 (infinity is the largest magnitude)");
  const double divisor = pooling.divisor.number();
  if (plan.traits.counts == Counts::divisor && !(std::isfinite(divisor) && divisor > 0))
    reject(plan.who, "divisor = ", divisor, ": must be finite and greater than 0");
}

// The narrowest type for the row-major number of a tap.
Type offset_type(const Plan::Impl& plan) {
  Checked taps = 1;
  for (const Axis& axis : plan.geometry.axes) taps = taps * Checked(axis.size);
  if (!taps.ok()) reject(plan.who, "indices offset: the window's number of cells must fit 64 bits");
  return taps.value() <= 256                ? Type::u8
         : taps.value() <= 65536            ? Type::u16
         : taps.value() <= INT64_C(1) << 31 ? Type::i32
                                            : Type::i64;
}

// Cells of a window that can be real, over all axes: what numbers of winners must hold.
bool many_cells(const Geometry& geometry) {
  Checked cells = 1;
  for (const Axis& axis : geometry.axes) cells = cells * Checked(real_cells(axis));
  return !cells.ok() || cells.value() > std::numeric_limits<std::int32_t>::max();
}

Type lane_type(const Plan::Impl& plan) {
  if (plan.pooling.indices) {
    const bool wide = many_cells(plan.geometry);
    switch (plan.type) {
      case Type::f16:
      case Type::bf16:
      case Type::f32: return wide ? Type::f64 : Type::f32;
      case Type::i8:
      case Type::i16:
      case Type::i32: return wide ? Type::i64 : Type::i32;
      case Type::u8:
      case Type::u16:
      case Type::boolean:
      case Type::u32: return wide ? Type::u64 : Type::u32;
      default: return plan.type;
    }
  }
  if (is_integer(plan.type) && plan.traits.counts == Counts::divisor)
    return plan.type == Type::u64 ? Type::u64 : Type::i64;
  const Type result = plan.pooling.dtype.value_or(plan.type);
  if (is_half(result) && plan.traits.picks) return Type::i16;
  return is_half(result) ? Type::f32 : result == Type::boolean ? Type::u8 : result;
}

// Whether sums are divided in f64 after the kernels: those of integers, and those whose divisor f32 cannot hold.
bool divides_late(const Plan::Impl& plan) {
  if (plan.traits.counts != Counts::divisor) return false;
  double largest = 1;
  for (const Axis& axis : plan.geometry.axes) largest *= static_cast<double>(axis.size);
  if (plan.pooling.divisor.rule() == Divisor::Rule::number) largest = plan.pooling.divisor.number();
  using Limits = std::numeric_limits<float>;
  return is_integer(plan.type) ||
         (plan.lane_type == Type::f32 && !(largest >= Limits::min() && largest <= Limits::max()));
}

// The count that all windows share, if they do.
std::optional<double> shared_count(const Plan::Impl& plan) {
  if (plan.traits.counts == Counts::none) return 0.0;
  bool all_inside = true, adaptive = false;
  double taps = 1;
  for (const Axis& axis : plan.geometry.axes) {
    all_inside = all_inside && (axis.out == 0 || axis.interior() == std::pair<std::int64_t, std::int64_t>(0, axis.out));
    adaptive = adaptive || axis.adaptive;
    taps *= static_cast<double>(axis.size);
  }
  if (plan.traits.counts == Counts::padded) {
    const bool none = all_inside || adaptive || plan.pooling.pad == SmoothPadding::ignore;
    return none ? std::optional(-std::numeric_limits<double>::infinity()) : std::nullopt;  // the logarithm of 0
  }
  if (plan.pooling.divisor.rule() == Divisor::Rule::number) return plan.pooling.divisor.number();
  if (all_inside) return taps;
  if (adaptive || plan.pooling.divisor.rule() != Divisor::Rule::window) return std::nullopt;
  return taps;
}

// Whether every window holds at least two cells.
bool crowded(const Geometry& geometry) {
  std::int64_t least = 1;
  for (const Axis& axis : geometry.axes) {
    if (axis.out == 0) return false;
    // Those at the ends of an axis have the fewest, unless gaps let others miss its cells; bins differ by one or two.
    const bool inside = axis.interior() == std::pair<std::int64_t, std::int64_t>(0, axis.out);
    const std::int64_t fewest = axis.adaptive        ? axis.n / axis.out
                                : inside             ? axis.size
                                : axis.dilation == 1 ? std::min(axis.span(0).count, axis.span(axis.out - 1).count)
                                                     : 0;
    least = std::min<std::int64_t>(2, least * std::clamp<std::int64_t>(fewest, 0, 2));
  }
  return least >= 2;
}

std::int64_t total_bytes(const Plan::Impl& plan) {
  const auto size = [](Type type) { return Checked(static_cast<std::int64_t>(size_of(type))); };
  Checked outputs = 1;
  for (const std::int64_t n : plan.geometry.output_shape) outputs = outputs * Checked(n);
  Checked bytes = Checked(element_count(plan.shape)) * size(plan.type) + outputs * size(plan.output_type);
  if (plan.index_type) bytes = bytes + outputs * size(*plan.index_type);
  if (!bytes.ok())
    reject(plan.who, "output of shape ", plan.geometry.output_shape, " for x of shape ", plan.shape,
           ": the bytes of both must fit 64 bits");
  return bytes.value();
}

// The most that a window's cells can add up to, of so many bits each.
double largest_sum(const Plan::Impl& plan, int bits) {
  double cells = 1;
  for (const Axis& axis : plan.geometry.axes)
    cells *= static_cast<double>(axis.adaptive ? axis.n / axis.out + 2 : real_cells(axis));
  return std::ldexp(cells, bits);
}

// The narrowest type that holds the sums of integers, or the one of 64 bits.
Type exact_type(const Plan::Impl& plan) {
  const int bits = 8 * static_cast<int>(size_of(plan.type));
  const bool is_signed =
      plan.type == Type::i8 || plan.type == Type::i16 || plan.type == Type::i32 || plan.type == Type::i64;
  const auto holds = [&](int width) { return width > bits && largest_sum(plan, bits) <= std::ldexp(1.0, width); };
  if (holds(16)) return is_signed ? Type::i16 : Type::u16;
  if (holds(32)) return is_signed ? Type::i32 : Type::u32;
  return is_signed ? Type::i64 : Type::u64;
}

States states_of(const Plan::Impl& plan) {
  const bool alike = plan.count.has_value() && !plan.divides_late, places = plan.pooling.indices.has_value();
  // Of numbers beside values there is a kernel for lanes of four bytes and more.
  const bool joins = places              ? size_of(plan.lane_type) >= 4
                     : plan.traits.picks ? true
                                         : !plan.traits.weighs && plan.type == plan.lane_type;
  return {.bytes = (places ? 2 : plan.traits.parts) * static_cast<std::int64_t>(size_of(plan.lane_type)),
          .cell_bytes = static_cast<std::int64_t>(size_of(plan.type)),
          .weighs = plan.traits.weighs,
          .places = places,
          .alike = alike,
          .by_planes = alike && joins && plan.output_type == plan.type};
}

// An average that is better divided after its sums are made: as those.
void prepare_sums(Plan::Impl& plan) {
  if (plan.traits.counts != Counts::divisor) return;
  const bool whole = is_integer(plan.type);
  if (!whole && (plan.count || plan.divides_late)) return;
  auto sums = std::make_shared<Plan::Impl>(plan);
  sums->pooling.reducer = Reducer::sum;
  sums->traits = traits(Reducer::sum);
  sums->count = 0.0;
  sums->divides_late = false;
  if (whole) sums->type = sums->lane_type = exact_type(plan);
  sums->output_type = sums->lane_type;
  sums->algorithm = choose(sums->geometry, sums->shape, states_of(*sums));
  if (whole) {
    const double exact = 0x1p24, divisor = plan.pooling.divisor.number();
    const Divisor::Rule rule = plan.pooling.divisor.rule();
    const bool given = rule == Divisor::Rule::number;
    double taps = 1;  // that clipped windows may be divided by, padded ones too
    for (const Axis& axis : plan.geometry.axes) taps *= static_cast<double>(axis.size);
    plan.in_doubles =
        largest_sum(plan, 8 * static_cast<int>(size_of(plan.type))) > exact ||
        (given ? static_cast<double>(static_cast<float>(divisor)) != divisor || divisor < 1 || divisor > exact
               : plan.count.value_or(rule == Divisor::Rule::clipped ? taps : 1) > exact);
  }
  plan.sums = std::move(sums);
}

}  // namespace

void prepare_planes(Plan::Impl& plan) {
  const bool averages = plan.traits.counts == Counts::divisor;
  if (!plan.algorithm.joins_planes || (plan.role != Role::follower && (plan.role != Role::value || !averages))) return;
  auto planes = std::make_shared<Plan::Impl>(plan);
  planes->role = Role::value;
  if (averages) {
    planes->pooling.reducer = Reducer::sum;
    planes->traits = traits(Reducer::sum);
    planes->count = 0.0;
  }
  plan.planes = std::move(planes);
}

Plan plan(const Pooling& pooling, Type type, const Extents& shape) {
  auto plan = std::make_shared<Plan::Impl>();
  plan->pooling = pooling;
  plan->who = function_name(pooling);
  plan->type = type;
  plan->shape = shape;
  plan->traits = traits(pooling.reducer);
  check_types(*plan);
  check_params(*plan);
  plan->geometry = resolve(plan->who, pooling.region, shape);
  const bool average = plan->traits.counts == Counts::divisor;
  plan->output_type = average && is_integer(type) ? Type::f32 : pooling.dtype.value_or(type);
  plan->lane_type = lane_type(*plan);
  if (pooling.indices) plan->role = Role::winner;
  if (pooling.indices) plan->index_type = *pooling.indices == IndexKind::offset ? offset_type(*plan) : Type::i64;
  plan->params = {in_compute_type(pooling.beta, type), in_compute_type(pooling.p, type)};
  plan->params.crowded = crowded(plan->geometry);
  plan->count = shared_count(*plan);
  plan->divides_late = divides_late(*plan);
  plan->bytes = total_bytes(*plan);
  const States states = states_of(*plan);
  plan->algorithm = choose(plan->geometry, shape, states);
  prepare_planes(*plan);
  prepare_sums(*plan);
  prepare_portions(*plan, states);
  return Plan(std::move(plan));
}

Type Plan::input_type() const noexcept { return impl_->type; }
const Extents& Plan::input_shape() const noexcept { return impl_->shape; }
Type Plan::output_type() const noexcept { return impl_->output_type; }
const Extents& Plan::output_shape() const noexcept { return impl_->geometry.output_shape; }
std::optional<Type> Plan::index_type() const noexcept { return impl_->index_type; }
const Pooling& Plan::pooling() const noexcept { return impl_->pooling; }
const Extents& Plan::pooled() const noexcept { return impl_->geometry.pooled; }
const std::vector<Axis>& Plan::axes() const noexcept { return impl_->geometry.axes; }
std::int64_t Plan::bytes() const noexcept { return impl_->bytes; }
std::int64_t Plan::scratch_bytes() const noexcept {
  const std::int64_t scratch = impl_->algorithm.scratch;
  return impl_->sums ? std::max(scratch, impl_->sums->algorithm.scratch + waiting_bytes) : scratch;
}

std::string Plan::explain() const {
  const Problem problem{impl_->pooling, impl_->type, impl_->shape, Problem::Direction::forward};
  const Algorithm& algorithm = impl_->sums ? impl_->sums->algorithm : impl_->algorithm;
  return to_string(problem) + " -> " + to_string(output_shape()) + " " + std::string(name(output_type())) + ": " +
         algorithm.name + ", " + algorithm.reason + (impl_->sums ? "; sums are divided a slice at a time" : "");
}

std::string_view name(Reducer reducer) noexcept {
  switch (reducer) {
#define CENOTE_ITEM(name, struct_name) \
  case Reducer::name: return #name;
    CENOTE_REDUCERS(CENOTE_ITEM)
#undef CENOTE_ITEM
  }
  return "";
}

Reducer parse_reducer(std::string_view text) {
  std::string known;
  for (const Reducer reducer : all_reducers) {
    if (name(reducer) == text) return reducer;
    known += (known.empty() ? "" : ", ") + std::string(name(reducer));
  }
  reject("reducer", "'", text, "': the reducers are ", known);
}

}  // namespace cenote
