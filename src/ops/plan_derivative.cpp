// Derivatives of a plan into the caller's memory: every array is checked against what the plan derives itself.
#include "ops/plan_derivative.h"

#include "core/reject.h"
#include "cpu/route.h"
#include "ops/arrays.h"

namespace cenote {
namespace {

void check_differentiable(const Plan::Impl& plan) {
  if (!is_float(plan.type))
    reject(plan.who, "derivative for type ", name(plan.type), ": must be f16, bf16, f32 or f64");
}

void check_result(const std::string& who, const char* what, const MutableView& view, Type type, const Extents& shape,
                  std::initializer_list<const View*> inputs) {
  check_view(who, what, view, type, shape);
  check_writable(who, what, view);
  for (const View* input : inputs)
    if (overlap(*input, view)) reject(who, what, " overlaps an input in memory: it must not");
}

// Offsets that a caller hands in are data from outside.
View checked_offsets(const Plan::Impl& plan, const View& offsets) {
  if (rule_of(plan) != Rule::routed || !plan.traits.picks)
    reject(plan.who, "offsets: only max and min whose ties go to the first have a derivative from them");
  const ImplPtr winners = winners_of(plan);
  check_view(plan.who, "offsets", offsets, *winners->index_type, plan.geometry.output_shape);
  const View all = with_all_axes(offsets, plan.geometry);
  cpu::check_offsets(*winners, all);
  return all;
}

}  // namespace

Plan::Plan(std::shared_ptr<const Impl> impl)
    : impl_(std::move(impl)), derivatives_(std::make_shared<Derivatives>(impl_)) {}

void Plan::jvp(const View& x, const View& dx, const MutableView& dy) const {
  const Impl& plan = *impl_;
  check_differentiable(plan);
  check_view(plan.who, "x", x, plan.type, plan.shape);
  check_view(plan.who, "dx", dx, plan.type, plan.shape);
  check_result(plan.who, "dy", dy, plan.output_type, plan.geometry.output_shape, {&x, &dx});
  const Tangent& tangent = derivatives_->tangent();
  derivatives_->with_scratch(
      tangent.scratch(), [&](std::byte* scratch) { tangent.run(x, dx, with_all_axes(dy, plan.geometry), scratch); });
}

void Plan::vjp(const View& x, const View& gy, const MutableView& gx) const {
  const Impl& plan = *impl_;
  check_differentiable(plan);
  check_view(plan.who, "x", x, plan.type, plan.shape);
  check_view(plan.who, "gy", gy, plan.output_type, plan.geometry.output_shape);
  check_result(plan.who, "gx", gx, plan.type, plan.shape, {&x, &gy});
  const Cotangent& cotangent = derivatives_->cotangent();
  derivatives_->with_scratch(cotangent.scratch(), [&](std::byte* scratch) {
    cotangent.run(x, with_all_axes(gy, plan.geometry), gx, scratch);
  });
}

void Plan::jvp_from_offsets(const View& offsets, const View& dx, const MutableView& dy) const {
  const Impl& plan = *impl_;
  check_differentiable(plan);
  check_view(plan.who, "dx", dx, plan.type, plan.shape);
  check_result(plan.who, "dy", dy, plan.output_type, plan.geometry.output_shape, {&offsets, &dx});
  const View all = checked_offsets(plan, offsets);
  derivatives_->tangent().run_saved(all, dx, with_all_axes(dy, plan.geometry));
}

void Plan::vjp_from_offsets(const View& offsets, const View& gy, const MutableView& gx) const {
  const Impl& plan = *impl_;
  check_differentiable(plan);
  check_view(plan.who, "gy", gy, plan.output_type, plan.geometry.output_shape);
  check_result(plan.who, "gx", gx, plan.type, plan.shape, {&offsets, &gy});
  const View all = checked_offsets(plan, offsets);
  derivatives_->cotangent().run_saved(all, with_all_axes(gy, plan.geometry), gx);
}

}  // namespace cenote
