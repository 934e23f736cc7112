// The derivative rules of the poolings.
#include "autodiff/pool_ops.h"

#include <cenote/error.h>

namespace cenote::autodiff {
namespace {

class PoolOp : public Op {
 public:
  explicit PoolOp(const Pooling& pooling) : pooling_(pooling) {}
  std::string name() const override { return std::string(cenote::name(pooling_.reducer)) + "_pool"; }
  Prepared prepare(std::span<const Signature> inputs) const override {
    const Plan made = plan(pooling_, inputs[0].type, inputs[0].shape);
    return {
        {{made.output_type(), made.output_shape()}},
        0,
        [made](std::span<const View> in, std::span<const MutableView> out, std::byte*) { made.run(in[0], out[0]); }};
  }
  std::vector<Maybe> jvp(Tracer&, std::span<const Value>, std::span<const Value>,
                         std::span<const Maybe>) const override {
    return {std::nullopt};
  }
  std::vector<Maybe> vjp(Tracer&, std::span<const Value>, std::span<const Value>,
                         std::span<const Maybe>) const override {
    return {std::nullopt};
  }

 private:
  Pooling pooling_;
};

}  // namespace

OpPtr pool_op(const Pooling& pooling) { return std::make_shared<PoolOp>(pooling); }

}  // namespace cenote::autodiff
