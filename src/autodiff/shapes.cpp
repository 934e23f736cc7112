// Operations that move elements and compute nothing: reshape, broadcast, detach.
#include <cstring>

#include "autodiff/checks.h"
#include "autodiff/language.h"
#include "autodiff/loops.h"

namespace cenote::autodiff {
namespace {

Maybe apply(Tracer& t, const OpPtr& op, Maybe x) { return x ? Maybe(t.apply_one(op, {*x})) : Maybe(); }

bool is_row_major(const Extents& shape, const Extents& strides) {
  std::int64_t step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

/// The place of the element at a row-major position.
std::int64_t place(const Extents& shape, const Extents& strides, std::int64_t position) {
  std::int64_t at = 0;
  for (int i = shape.size() - 1; i >= 0; --i) {
    at += position % shape[i] * strides[i];
    position /= shape[i];
  }
  return at;
}

/// Copies elements in row-major order between shapes. Where both arrays have gaps they go one by one.
void copy_reshaped(const View& x, const MutableView& y) {
  const std::int64_t size = element_count(x.shape);
  if (size == 0) return;
  if (is_row_major(y.shape, y.strides)) return copy_broadcast(x, MutableView(y.data, y.type, x.shape));
  if (is_row_major(x.shape, x.strides)) return copy_broadcast(View(x.data, x.type, y.shape), y);
  detail::parallel_parts(size, parallel_grain, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin)
      std::memcpy(byte_at(bytes_of(y), y.type, place(y.shape, y.strides, begin)),
                  byte_at(bytes_of(x), x.type, place(x.shape, x.strides, begin)), size_of(x.type));
  });
}

class Reshape final : public Op {
 public:
  explicit Reshape(const Extents& shape) : shape_(shape) {}
  std::string name() const override { return "reshape"; }

  Prepared prepare(std::span<const Signature> inputs) const override {
    return {
        {{inputs[0].type, resolve(inputs[0].shape)}},
        0,
        [](std::span<const View> in, std::span<const MutableView> out, std::byte*) { copy_reshaped(in[0], out[0]); }};
  }
  std::vector<Maybe> jvp(Tracer& t, std::span<const Value>, std::span<const Value> outputs,
                         std::span<const Maybe> tangents) const override {
    return {apply(t, reshape_op(t.signature(outputs[0]).shape), tangents[0])};
  }
  std::vector<Maybe> vjp(Tracer& t, std::span<const Value> inputs, std::span<const Value>,
                         std::span<const Maybe> cotangents) const override {
    return {apply(t, reshape_op(t.signature(inputs[0]).shape), cotangents[0])};
  }

 private:
  /// The shape with the extent in place of a -1.
  Extents resolve(const Extents& from) const {
    const std::int64_t size = element_count(from);
    Extents shape = shape_;
    int open = -1;
    for (int i = 0; i < shape.size(); ++i) {
      if (shape[i] < -1)
        reject("reshape", "shape[", i, "] = ", shape[i], ": must be at least 0, or -1 for what is left");
      if (shape[i] != -1) continue;
      if (open >= 0) reject("reshape", "shape ", shape_, ": at most one extent may be -1");
      shape[open = i] = 1;
    }
    const std::int64_t known = element_count(shape);
    if (open >= 0 && known > 0 && size % known == 0) shape[open] = size / known;
    if (element_count(shape) != size || (open >= 0 && known == 0))
      reject("reshape", "shape ", shape_, ": must have the ", size, " elements of x, of shape ", from);
    return shape;
  }

  Extents shape_;
};

class Broadcast final : public Op {
 public:
  explicit Broadcast(const Extents& shape) : shape_(shape) {}
  std::string name() const override { return "broadcast"; }

  Prepared prepare(std::span<const Signature> inputs) const override {
    if (!broadcasts(inputs[0].shape, shape_))
      reject("broadcast", "x has shape ", inputs[0].shape, ": must broadcast to ", shape_,
             ": counted from the last, axes must be equal or 1");
    element_count(shape_);
    return {{{inputs[0].type, shape_}}, 0, [](std::span<const View> in, std::span<const MutableView> out, std::byte*) {
              copy_broadcast(in[0], out[0]);
            }};
  }
  std::vector<Maybe> jvp(Tracer& t, std::span<const Value>, std::span<const Value>,
                         std::span<const Maybe> tangents) const override {
    return {apply(t, broadcast_op(shape_), tangents[0])};
  }
  std::vector<Maybe> vjp(Tracer& t, std::span<const Value> inputs, std::span<const Value>,
                         std::span<const Maybe> cotangents) const override {
    return {apply(t, sum_to_op(t.signature(inputs[0]).shape), cotangents[0])};
  }

 private:
  Extents shape_;
};

class Detach final : public Op {
 public:
  std::string name() const override { return "detach"; }
  Prepared prepare(std::span<const Signature> inputs) const override {
    return {{inputs[0]}, 0, [](std::span<const View> in, std::span<const MutableView> out, std::byte*) {
              copy_broadcast(in[0], out[0]);
            }};
  }
  std::vector<Maybe> jvp(Tracer&, std::span<const Value>, std::span<const Value>,
                         std::span<const Maybe>) const override {
    return {std::nullopt};
  }
  std::vector<Maybe> vjp(Tracer&, std::span<const Value>, std::span<const Value>,
                         std::span<const Maybe>) const override {
    return {std::nullopt};
  }
};

}  // namespace

OpPtr reshape_op(const Extents& shape) { return std::make_shared<Reshape>(shape); }
OpPtr broadcast_op(const Extents& shape) { return std::make_shared<Broadcast>(shape); }
OpPtr detach_op() {
  static const OpPtr op = std::make_shared<Detach>();
  return op;
}

}  // namespace cenote::autodiff
