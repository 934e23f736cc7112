// Dense poolings as families of operations.
#include "autodiff/pool_ops.h"

#include "core/reject.h"
#include "ops/arrays.h"
#include "ops/derivative.h"

namespace cenote::autodiff {
namespace {

class DenseFamily final : public PoolFamily {
 public:
  explicit DenseFamily(const Pooling& pooling)
      : PoolFamily(pooling.reducer, pooling.beta, pooling.p), pooling_(pooling) {}
  std::string name() const override { return std::string(cenote::name(pooling_.reducer)) + "_pool"; }

  Prepared pool(std::span<const Signature> inputs) const override {
    const Plan forward = made(inputs, nullptr, false);
    return {{output_of(forward)}, 0, [forward](auto in, auto out, std::byte*) { forward.run(in[0], out[0]); }};
  }
  Prepared tangent(std::span<const Signature> inputs) const override {
    const Plan forward = made(inputs, "dx", false);
    const auto rule = std::make_shared<const Tangent>(impl(forward));
    return {{output_of(forward)}, rule->scratch(), [forward, rule](auto in, auto out, std::byte* scratch) {
              rule->run(in[0], in[1], with_all_axes(out[0], forward.impl().geometry), scratch);
            }};
  }
  Prepared cotangent(std::span<const Signature> inputs) const override {
    const Plan forward = made(inputs, "gy", true);
    const auto rule = std::make_shared<const Cotangent>(impl(forward));
    return {{inputs[0]}, rule->scratch(), [forward, rule](auto in, auto out, std::byte* scratch) {
              rule->run(in[0], with_all_axes(in[1], forward.impl().geometry), out[0], scratch);
            }};
  }

 private:
  static Signature output_of(const Plan& plan) { return {plan.output_type(), plan.output_shape()}; }
  static ImplPtr impl(const Plan& plan) { return {std::make_shared<Plan>(plan), &plan.impl()}; }

  /// The plan of x. A derivative has a second input, which must have the type and shape that follow from x.
  Plan made(std::span<const Signature> inputs, const char* second, bool of_output) const {
    const Plan result = plan(pooling_, inputs[0].type, inputs[0].shape);
    if (!second) return result;
    check_second(name(), second, inputs, of_output ? output_of(result) : inputs[0]);
    return result;
  }

  Pooling pooling_;
};

}  // namespace

void check_second(const std::string& who, const char* what, std::span<const Signature> inputs,
                  const Signature& expected) {
  if (!is_float(inputs[0].type))
    reject(who, "derivative for type ", cenote::name(inputs[0].type), ": must be f16, bf16, f32 or f64");
  if (inputs[1].type != expected.type)
    reject(who, what, " has type ", cenote::name(inputs[1].type), ": must be ", cenote::name(expected.type));
  if (inputs[1].shape != expected.shape)
    reject(who, what, " has shape ", inputs[1].shape, ": must be ", expected.shape);
}

FamilyPtr family(const Pooling& pooling) { return std::make_shared<DenseFamily>(pooling); }

}  // namespace cenote::autodiff
