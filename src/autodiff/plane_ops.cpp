// Moves by plane indices as differentiable operations: gather and its adjoint, max_unpool and its adjoint. All are
// linear in the array they move, so that their rules are each other.
#include <cstring>

#include "autodiff/pool_ops.h"
#include "core/reject.h"
#include "ops/planes.h"

namespace cenote::autodiff {
namespace {

OpPtr scatter_op(const Extents& shape, const Plane& plane);
OpPtr unpool_cotangent_op(const Plane& plane);

/// An operation on (a, indices), linear in a: it goes from the whole array to its parts, or back.
class PlaneOp : public Op {
 public:
  std::vector<Maybe> jvp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> d) const override {
    if (!d[0]) return {std::nullopt};
    return {t.apply_one(same(), {*d[0], in[1]})};
  }
  std::vector<Maybe> vjp(Tracer& t, std::span<const Value> in, std::span<const Value>,
                         std::span<const Maybe> g) const override {
    if (!g[0]) return {std::nullopt, std::nullopt};
    return {t.apply_one(adjoint(t.signature(in[0]).shape), {*g[0], in[1]}), std::nullopt};
  }

 protected:
  virtual OpPtr same() const = 0;
  /// The other way, into an array of the given shape.
  virtual OpPtr adjoint(const Extents& shape) const = 0;

  Planes planes(std::span<const Signature> inputs, const Extents& part, const Extents& whole,
                const Plane& plane) const {
    if (inputs[1].type != Type::i64) reject(name(), "indices of type ", cenote::name(inputs[1].type), ": must be i64");
    if (inputs[1].shape != part) reject(name(), "indices of shape ", inputs[1].shape, ": must have ", part);
    return Planes(name(), part, whole, plane);
  }
};

class GatherOp final : public PlaneOp {
 public:
  GatherOp(const Plane& plane, bool last) : plane_(plane), last_(last) {}
  std::string name() const override { return last_ ? "max_unpool_cotangent" : "gather"; }
  Prepared prepare(std::span<const Signature> in) const override {
    const Planes p = planes(in, in[1].shape, in[0].shape, plane_);
    const std::int64_t order = last_ ? element_count(in[0].shape) * 8 : 0;
    return {{{in[0].type, in[1].shape}}, order, [p, last = last_](auto x, auto y, std::byte* scratch) {
              p.check(x[1]);
              if (last)
                p.take_last(x[0], x[1], y[0], reinterpret_cast<std::int64_t*>(scratch));
              else
                p.take(x[0], x[1], y[0]);
            }};
  }

 protected:
  OpPtr same() const override { return std::make_shared<GatherOp>(plane_, last_); }
  OpPtr adjoint(const Extents& shape) const override {
    return last_ ? unpool_op(shape, plane_) : scatter_op(shape, plane_);
  }

 private:
  Plane plane_;
  bool last_;
};

/// Into zeros of a shape: sums (the adjoint of gather), or values of which the last stays (max_unpool).
class ScatterOp final : public PlaneOp {
 public:
  ScatterOp(const Extents& shape, const Plane& plane, bool sums) : shape_(shape), plane_(plane), sums_(sums) {}
  std::string name() const override { return sums_ ? "gather_cotangent" : "max_unpool"; }
  Prepared prepare(std::span<const Signature> in) const override {
    const Planes p = planes(in, in[0].shape, shape_, plane_);
    const std::int64_t wide = sums_ ? element_count(shape_) * 8 : 0;
    return {{{in[0].type, shape_}}, wide, [p, sums = sums_](auto y, auto x, std::byte* scratch) {
              p.check(y[1]);
              if (sums) return p.add(y[0], y[1], x[0], scratch);
              std::memset(x[0].data, 0, static_cast<std::size_t>(element_count(x[0].shape)) * size_of(x[0].type));
              p.put(y[0], y[1], x[0]);
            }};
  }

 protected:
  OpPtr same() const override { return std::make_shared<ScatterOp>(shape_, plane_, sums_); }
  OpPtr adjoint(const Extents&) const override { return sums_ ? gather_op(plane_) : unpool_cotangent_op(plane_); }

 private:
  Extents shape_;
  Plane plane_;
  bool sums_;
};

OpPtr scatter_op(const Extents& shape, const Plane& plane) { return std::make_shared<ScatterOp>(shape, plane, true); }
OpPtr unpool_cotangent_op(const Plane& plane) { return std::make_shared<GatherOp>(plane, true); }

}  // namespace

OpPtr gather_op(const Plane& plane) { return std::make_shared<GatherOp>(plane, false); }
OpPtr unpool_op(const Extents& shape, const Plane& plane) { return std::make_shared<ScatterOp>(shape, plane, false); }

}  // namespace cenote::autodiff
