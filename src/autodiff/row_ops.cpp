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

/// An array without gaps: the one given, or a copy.
struct Gapless {
  std::optional<Array> copy{};
  View view;
  explicit Gapless(const View& of) : view(of) {
    if (of.strides != row_major_strides(of.shape)) view = copy.emplace(of);
  }
};

/// A result without gaps that ends up in the array given.
struct GaplessResult {
  std::optional<Array> copy{};
  MutableView view, target;
  explicit GaplessResult(const MutableView& of) : view(of), target(of) {
    if (of.strides != row_major_strides(of.shape)) view = copy.emplace(of.type, of.shape);
  }
  ~GaplessResult() {
    if (copy) copy_strided(*copy, target);
  }
  GaplessResult(const GaplessResult&) = delete;
  GaplessResult& operator=(const GaplessResult&) = delete;
};

class RowFamily final : public PoolFamily {
 public:
  explicit RowFamily(const RowPooling& pooling)
      : PoolFamily(pooling.reduction().reducer, pooling.reduction().beta, pooling.reduction().p),
        rows_(pooling.impl()) {}
  std::string name() const override { return rows_->who; }

  Prepared pool(std::span<const Signature> inputs) const override {
    return {{output_of(inputs[0])}, 0, [rows = rows_](auto in, auto out, std::byte*) {
              const Gapless x(in[0]);
              const GaplessResult y(out[0]);
              reduce_values(*rows, x.view, y.view);
            }};
  }
  Prepared tangent(std::span<const Signature> inputs) const override {
    const Signature y = output_of(inputs[0]);
    check_second(name(), "dx", inputs, inputs[0]);
    return {{y}, row_scratch(*rows_, inputs[0]), [rows = rows_](auto in, auto out, std::byte* scratch) {
              const Gapless x(in[0]), dx(in[1]);
              const GaplessResult dy(out[0]);
              row_tangent(*rows, x.view, dx.view, dy.view, scratch);
            }};
  }
  Prepared cotangent(std::span<const Signature> inputs) const override {
    check_second(name(), "gy", inputs, output_of(inputs[0]));
    return {{inputs[0]}, row_scratch(*rows_, inputs[0]), [rows = rows_](auto in, auto out, std::byte* scratch) {
              const Gapless x(in[0]), gy(in[1]);
              const GaplessResult gx(out[0]);
              row_cotangent(*rows, x.view, gy.view, gx.view, scratch);
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

/// The rows without gaps, once they are checked.
autodiff::Gapless checked_rows(const RowPooling::Impl& pooling, const char* what, const View& view, std::int64_t rows) {
  check_rows(pooling, what, view, rows);
  return autodiff::Gapless(view);
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
  const auto at = checked_rows(impl, "x", x, pooling.inputs());
  check_like(impl, "dx", dx, x);
  const auto along = checked_rows(impl, "dx", dx, pooling.inputs());
  const Extents shape{pooling.outputs(), x.shape[1]};
  Linearized result{Array(x.type, shape), Array(x.type, shape)};
  Array scratch = scratch_for(impl, x.type, x.shape[1]);
  row_tangent(impl, at.view, along.view, result.dy, static_cast<std::byte*>(scratch.data()));
  reduce_values(impl, at.view, result.y);
  return result;
}

DifferentiatedRows vjp(const RowPooling& pooling, const View& x) {
  const RowPooling::Impl& impl = *pooling.impl();
  const auto at = checked_rows(impl, "x", x, pooling.inputs());
  auto back = std::make_shared<RowPullback::Impl>(RowPullback::Impl{pooling, x.type, x.shape[1]});
  Array y(x.type, {pooling.outputs(), x.shape[1]});
  const Rule rule = rule_of(impl, x.type);
  if (rule == Rule::routed && impl.traits.picks) {
    back->winners.emplace(Type::i32, y.shape());
    reduce_winners(impl, at.view, y, back->winners->values<std::int32_t>().data());
  } else {
    reduce_values(impl, at.view, y);
    if (rule != Rule::linear) back->x.emplace(at.view);
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
  if (element_count(shape) == 0) return;
  const autodiff::Gapless back(gy);
  const autodiff::GaplessResult to(gx);
  if (impl_->winners) return routed_cotangent(impl, impl_->winners->values<std::int32_t>().data(), back.view, to.view);
  Array scratch = scratch_for(impl, impl_->type, impl_->width);
  row_cotangent(impl, impl_->x ? View(*impl_->x) : View(), back.view, to.view, static_cast<std::byte*>(scratch.data()));
}

Array RowPullback::operator()(const View& gy) const {
  Array gx(impl_->type, {impl_->pooling.inputs(), impl_->width});
  run(gy, gx);
  return gx;
}

Array hvp(const RowPooling& pooling, const View& x, const View& gy, const View& v) {
  const RowPooling::Impl& impl = *pooling.impl();
  check_rows(impl, "x", x, pooling.inputs());
  check_like(impl, "gy", gy, x);
  check_like(impl, "v", v, x);
  check_rows(impl, "gy", gy, pooling.outputs());
  check_rows(impl, "v", v, pooling.inputs());
  autodiff::EagerTracer tracer;
  const autodiff::Maybe bent =
      autodiff::curve(tracer, autodiff::family(pooling), tracer.borrow(x), tracer.borrow(gy), tracer.borrow(v));
  return bent ? tracer.take(*bent) : Array::zeros(x.type, x.shape);
}

}  // namespace cenote
