// Runs poolings that weigh their cells as sums of powers.
#include "cpu/power_sums.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/parallel.h"
#include "cpu/machine.h"
#include "cpu/scratch.h"
#include "plan/portions.h"
#include "reduce/reducers.h"

namespace cenote::cpu {
namespace {

constexpr std::int64_t slack = 128;  // bytes that whole packs may be written behind an array

std::int64_t bytes_of(Type type) { return static_cast<std::int64_t>(size_of(type)); }

// One thread's memory for what is made of a portion. Not the kernels' own, which they release. A thread that waits may
// begin another portion, and end it, in between.
class Memory {
 public:
  Memory() : mark_(of_this_thread().mark()) {}
  ~Memory() { of_this_thread().release(mark_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* take(std::int64_t count, Type type) { return of_this_thread().take(count * bytes_of(type) + slack); }

 private:
  static Scratch& of_this_thread() {
    static thread_local Scratch scratch;
    return scratch;
  }
  const Scratch::Mark mark_;
};

class PowerSums {
 public:
  PowerSums(const Plan::Impl& plan, const Operands& operands)
      : plan_(plan),
        operands_(operands),
        rule_(*tame_rule(plan, plan.role)),
        stream_(plan.algorithm.past_caches || plan.bytes > last_level_cache() / 8 * 7) {}

  void run(std::int64_t i) const {
    const auto [portion, cell, output] = plan_.portions->at(i);
    const Type type = plan_.type, lane = plan_.lane_type;
    const auto* x = static_cast<const std::byte*>(operands_.x.data) + cell * bytes_of(type);
    auto* y = static_cast<std::byte*>(operands_.y.data) + output * bytes_of(type);
    Memory memory;
    const auto sum = [&](const std::byte* powers) {
      std::byte* sums = memory.take(portion->outputs, lane);
      const Plan::Impl& plan = *portion->sums;
      execute(plan, {.x = View(powers, lane, plan.shape), .y = MutableView(sums, lane, plan.geometry.kept_shape)});
      return sums;
    };
    std::byte* powers = memory.take(portion->cells, lane);
    bool wild = false;
    if (plan_.role == Role::tangent) {
      std::byte* products = memory.take(portion->cells, lane);
      tame_tangents(rule_, x, x + operands_.x_plane * bytes_of(type), powers, products, portion->cells);
      std::byte *sums = sum(powers), *weighed = sum(products);
      add_padded(*portion->weighed, rule_, sums);
      wild = divide_sums(rule_, sums, weighed, y, portion->outputs, stream_);
    } else {
      tame_cells(rule_, x, powers, portion->cells);
      std::byte* sums = sum(powers);
      add_padded(*portion->weighed, rule_, sums);
      wild = value_sums(rule_, sums, y, portion->outputs, stream_);
    }
    if (!wild) return;
    const Plan::Impl& careful = *portion->weighed;
    std::byte* others = memory.take(portion->outputs, type);
    execute(careful, {.x = View(x, type, careful.shape),
                      .y = MutableView(others, type, careful.geometry.kept_shape),
                      .x_plane = operands_.x_plane});
    mend(type, others, y, portion->outputs);
  }

 private:
  const Plan::Impl& plan_;
  const Operands& operands_;
  const TameRule rule_;
  const bool stream_;
};

// Visits the windows of one plane, from the outermost pooled axis on, that hold padded cells, and some others:
// use(first output, outputs that lie there side by side, cells that are padded).
template <class Use>
void each_padded(const Geometry& geometry, const Use& use) {
  const Extents &kept = geometry.kept_shape, &pooled = geometry.pooled;
  std::int64_t beside = 1;
  for (int i = static_cast<int>(pooled[pooled.size() - 1]) + 1; i < kept.size(); ++i) beside *= kept[i];
  const auto last = static_cast<std::size_t>(pooled.size() - 1);
  const auto [inside, outside] = geometry.axes[last].interior();
  const auto walk = [&](const auto& self, int i, int level, std::int64_t at, double real, double all) -> void {
    if (level == pooled.size()) return all > real ? use(at * beside, beside, all - real) : void();
    if (pooled[level] != i) {
      for (std::int64_t o = 0; o < kept[i]; ++o) self(self, i + 1, level, at * kept[i] + o, real, all);
      return;
    }
    const Axis& axis = geometry.axes[static_cast<std::size_t>(level)];
    // Of a row whose other cells are real, only the ends are visited.
    const bool ends = static_cast<std::size_t>(level) == last && real == all && inside < outside;
    for (std::int64_t o = 0; o < kept[i]; ++o) {
      if (ends && o == inside) o = outside;
      if (o >= kept[i]) break;
      self(self, i + 1, level + 1, at * kept[i] + o, real * static_cast<double>(axis.span(o).count),
           all * static_cast<double>(axis.clipped(o)));
    }
  };
  walk(walk, static_cast<int>(pooled[0]), 0, 0, 1, 1);
}

}  // namespace

std::optional<TameRule> tame_rule(const Plan::Impl& plan, Role role) {
  const bool lp = plan.pooling.reducer == Reducer::lp, wide = plan.type == Type::f64;
  const auto within = [](int low, int high) { return Bounds{std::ldexp(1.0, low), std::ldexp(1.0, high)}; };
  const Bounds given = wide ? within(-500, 300) : within(-60, 40);
  if (lp) {
    const double p = plan.params.p;
    if (p != 1 && p != 2 && p != 3 && p != 4) return std::nullopt;
    const auto weight = static_cast<Weight>(static_cast<int>(Weight::sign) + static_cast<int>(p) - 1);
    if (p <= 2) return TameRule{plan.type, weight, plan.params, wide ? within(-400, 300) : within(-50, 40), given};
    const int times = static_cast<int>(p), high = (wide ? 400 : 60) / times;
    // What goes back is divided by powers of roots before it is weighed.
    if (role == Role::cotangent)
      return TameRule{plan.type, weight, plan.params, within((wide ? -600 : -80) / times, high), given};
    const Bounds beside = wide ? within(-300, 300) : within(-40, 40);
    return TameRule{plan.type, weight, plan.params, within((wide ? -900 : -108) / times, high), beside};
  }
  const double beta = std::fabs(plan.params.beta);
  if (plan.pooling.reducer != Reducer::smooth_max || !plan.params.crowded || beta > (wide ? 1e300 : 1e30))
    return std::nullopt;
  Params params = plan.params;
  params.tame = true;
  const double doublings = wide ? 300 : 40;
  return TameRule{plan.type, Weight::power, params, {0, doublings * std::numbers::ln2 / beta}, given};
}

void add_padded(const Plan::Impl& plan, const TameRule& rule, void* sums) {
  if (plan.count) return;
  const Extents& kept = plan.geometry.kept_shape;
  std::int64_t plane = 1;
  for (int i = static_cast<int>(plan.geometry.pooled[0]); i < kept.size(); ++i) plane *= kept[i];
  const std::int64_t planes = element_count(kept) / plane;
  Memory memory;
  const auto add = [&]<class A>(A) {
    // All planes are alike.
    A* more = reinterpret_cast<A*>(memory.take(plane, type_of<A>));
    std::fill_n(more, plane, A{0});
    const A zero = scalar::SmoothMax(rule.params).tame_power(A{0});
    each_padded(plan.geometry, [&](std::int64_t first, std::int64_t outputs, double cells) {
      std::fill_n(more + first, outputs, zero * static_cast<A>(cells));
    });
    for (std::int64_t i = 0; i < planes; ++i) add_sums(type_of<A>, more, static_cast<A*>(sums) + i * plane, plane);
  };
  plan.lane_type == Type::f64 ? add(double{}) : add(float{});
}

bool pool_by_sums(const Plan::Impl& plan, const Operands& operands) {
  if (!plan.algorithm.by_sums || !plan.portions) return false;
  if (!lies_side_by_side(operands.x) || !lies_side_by_side(operands.y)) return false;
  const PowerSums sums(plan, operands);
  parallel_for(plan.portions->count(), [&](std::int64_t i) { sums.run(i); });
  return true;
}

}  // namespace cenote::cpu
