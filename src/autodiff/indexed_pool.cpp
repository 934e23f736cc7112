// A pooling whose indices are values of the graph too, for gather and max_unpool.
#include "autodiff/indexed_pool.h"

#include "autodiff/pool_ops.h"

namespace cenote::autodiff {
namespace {

class IndexedPool final : public Op {
 public:
  explicit IndexedPool(const Pooling& pooling) : pooling_(pooling), plain_(pool_op(without_indices(pooling))) {}

  std::string name() const override { return plain_->name() + "_with_indices"; }
  Prepared prepare(std::span<const Signature> inputs) const override {
    const Plan made = plan(pooling_, inputs[0].type, inputs[0].shape);
    return {{{made.output_type(), made.output_shape()}, {*made.index_type(), made.output_shape()}},
            0,
            [made](std::span<const View> in, std::span<const MutableView> out, std::byte*) {
              made.run(in[0], out[0], out[1]);
            }};
  }
  std::vector<Maybe> jvp(Tracer& tracer, std::span<const Value> inputs, std::span<const Value> outputs,
                         std::span<const Maybe> tangents) const override {
    return {plain_->jvp(tracer, inputs, outputs.first(1), tangents).front(), std::nullopt};
  }
  std::vector<Maybe> vjp(Tracer& tracer, std::span<const Value> inputs, std::span<const Value> outputs,
                         std::span<const Maybe> cotangents) const override {
    return plain_->vjp(tracer, inputs, outputs.first(1), cotangents.first(1));
  }

 private:
  static Pooling without_indices(Pooling pooling) {
    pooling.indices.reset();
    return pooling;
  }
  Pooling pooling_;
  OpPtr plain_;
};

}  // namespace

OpPtr indexed_pool_op(const Pooling& pooling) { return std::make_shared<IndexedPool>(pooling); }

}  // namespace cenote::autodiff
