// Poolings of rows as families of operations, and jvp, vjp and hvp of them as functions of arrays.
#include <optional>

#include "autodiff/eager.h"
#include "autodiff/pool_ops.h"
#include "core/copy.h"
#include "core/reject.h"
#include "core/views.h"
#include "ops/arrays.h"
#include "ops/row_pooling.h"

namespace cenote {
namespace autodiff {
namespace {

using RowImpl = std::shared_ptr<const RowPooling::Impl>;

class RowFamily final : public PoolFamily {
 public:
  explicit RowFamily(const RowPooling& pooling)
      : PoolFamily(pooling.reduction().reducer, pooling.reduction().beta, pooling.reduction().p),
        rows_(pooling.impl()) {}
  std::string name() const override { return rows_->who; }

  Prepared pool(std::span<const Signature> inputs) const override {
    return {{output_of(inputs[0])}, 0, [rows = rows_](auto in, auto out, std::byte*) {
              reduce_values(*rows, in[0], out[0]);
            }};
  }
  Prepared tangent(std::span<const Signature> inputs) const override {
    const Signature y = output_of(inputs[0]);
    check_second(name(), "dx", inputs, inputs[0]);
    return {{y}, row_scratch(*rows_, inputs[0]), [rows = rows_](auto in, auto out, std::byte* scratch) {
              row_tangent(*rows, in[0], in[1], out[0], scratch);
            }};
  }
  Prepared cotangent(std::span<const Signature> inputs) const override {
    check_second(name(), "gy", inputs, output_of(inputs[0]));
    return {{inputs[0]}, row_scratch(*rows_, inputs[0]), [rows = rows_](auto in, auto out, std::byte* scratch) {
              row_cotangent(*rows, in[0], in[1], out[0], scratch);
            }};
  }

 private:
  /// The type and shape of y, once those of x are seen to be right.
  Signature output_of(const Signature& x) const {
    check_feats(*rows_, "x", x, rows_->rows->inputs());
    return {x.type, {rows_->rows->outputs(), x.shape[1]}};
  }

  RowImpl rows_;
};

}  // namespace

FamilyPtr family(const RowPooling& pooling) { return std::make_shared<RowFamily>(pooling); }

}  // namespace autodiff

namespace {

/// The array itself, or a copy without gaps that `made` keeps. Checked.
View dense_rows(const RowPooling::Impl& pooling, const char* what, const View& view, std::int64_t rows,
                std::optional<Array>& made) {
  check_rows(pooling, what, view, rows);
  if (view.strides == row_major_strides(view.shape)) return view;
  return made.emplace(view);
}

void check_like(const RowPooling::Impl& pooling, const char* what, const View& view, const View& x) {
  if (view.type != x.type)
    reject(pooling.who, what, " has type ", name(view.type), ": must be ", name(x.type), ", that of x");
  if (view.rank() != 2 || view.shape[1] != x.shape[1])
    reject(pooling.who, what, " has shape ", view.shape, ": must have as many channels as x, ", x.shape[1]);
}

/// Working memory for derivatives, aligned.
Array scratch_for(const RowPooling::Impl& pooling, Type type, std::int64_t width) {
  return Array(Type::u8, {row_scratch(pooling, {type, {pooling.rows->inputs(), width}})});
}

}  // namespace

/// Rows that won serve where they do, x where weights do; a linear pooling needs neither.
struct RowPullback::Impl {
  RowPooling pooling;
  Type type;
  std::int64_t width;
  std::optional<Array> winners{}, x{};
};

Linearized jvp(const RowPooling& pooling, const View& x, const View& dx) {
  const RowPooling::Impl& impl = *pooling.impl();
  std::optional<Array> x_copy, dx_copy;
  const View at = dense_rows(impl, "x", x, pooling.inputs(), x_copy);
  check_like(impl, "dx", dx, x);
  const View along = dense_rows(impl, "dx", dx, pooling.inputs(), dx_copy);
  const Extents shape{pooling.outputs(), x.shape[1]};
  Linearized result{Array(x.type, shape), Array(x.type, shape)};
  Array scratch = scratch_for(impl, x.type, x.shape[1]);
  row_tangent(impl, at, along, result.dy, static_cast<std::byte*>(scratch.data()));
  reduce_values(impl, at, result.y);
  return result;
}

DifferentiatedRows vjp(const RowPooling& pooling, const View& x) {
  const RowPooling::Impl& impl = *pooling.impl();
  std::optional<Array> x_copy;
  const View at = dense_rows(impl, "x", x, pooling.inputs(), x_copy);
  auto back = std::make_shared<RowPullback::Impl>(RowPullback::Impl{pooling, x.type, x.shape[1]});
  Array y(x.type, {pooling.outputs(), x.shape[1]});
  const Rule rule = rule_of(impl, x.type);
  if (rule == Rule::routed && impl.traits.picks) {
    back->winners.emplace(Type::i32, y.shape());
    reduce_winners(impl, at, y, back->winners->values<std::int32_t>().data());
  } else {
    reduce_values(impl, at, y);
    if (rule != Rule::linear) back->x.emplace(at);
  }
  return {std::move(y), RowPullback(std::move(back))};
}

void RowPullback::run(const View& gy, const MutableView& gx) const {
  const RowPooling::Impl& impl = *impl_->pooling.impl();
  const Extents shape{impl_->pooling.inputs(), impl_->width};
  check_view(impl.who, "gy", gy, impl_->type, {impl_->pooling.outputs(), impl_->width});
  check_view(impl.who, "gx", gx, impl_->type, shape);
  check_writable(impl.who, "gx", gx);
  if (overlap(gy, gx)) reject(impl.who, "gx overlaps gy in memory: it must not");
  if (gx.strides != row_major_strides(shape)) return copy_strided((*this)(gy), gx);
  std::optional<Array> copy;
  const View back = dense_rows(impl, "gy", gy, impl_->pooling.outputs(), copy);
  if (element_count(shape) == 0) return;
  if (impl_->winners) return routed_cotangent(impl, impl_->winners->values<std::int32_t>().data(), back, gx);
  Array scratch = scratch_for(impl, impl_->type, impl_->width);
  row_cotangent(impl, impl_->x ? View(*impl_->x) : View(), back, gx, static_cast<std::byte*>(scratch.data()));
}

Array RowPullback::operator()(const View& gy) const {
  Array gx(impl_->type, {impl_->pooling.inputs(), impl_->width});
  run(gy, gx);
  return gx;
}

Array hvp(const RowPooling& pooling, const View& x, const View& gy, const View& v) {
  const RowPooling::Impl& impl = *pooling.impl();
  std::optional<Array> copies[3];
  const View at = dense_rows(impl, "x", x, pooling.inputs(), copies[0]);
  check_like(impl, "gy", gy, x);
  check_like(impl, "v", v, x);
  const View back = dense_rows(impl, "gy", gy, pooling.outputs(), copies[1]);
  const View along = dense_rows(impl, "v", v, pooling.inputs(), copies[2]);
  autodiff::EagerTracer tracer;
  const autodiff::Maybe bent =
      autodiff::curve(tracer, autodiff::family(pooling), tracer.borrow(at), tracer.borrow(back), tracer.borrow(along));
  return bent ? tracer.take(*bent) : Array::zeros(x.type, x.shape);
}

}  // namespace cenote
