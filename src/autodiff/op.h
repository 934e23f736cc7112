// A differentiable operation: how it runs, and its derivatives written in terms of other operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cenote/array.h>
#include <cenote/signature.h>

namespace cenote::autodiff {

/// A value that rules speak about: its number in the Tracer that made it.
struct Value {
  int id = -1;
  friend bool operator==(Value, Value) = default;
};

/// A derivative; nothing stands for exact zeros.
using Maybe = std::optional<Value>;

/// An operation made ready for inputs of known types and shapes. Running it is thread-safe and allocates nothing.
struct Prepared {
  std::vector<Signature> outputs;
  /// Bytes of working memory that run needs, aligned to 64; what they hold before and after means nothing.
  std::int64_t scratch = 0;
  std::function<void(std::span<const View> inputs, std::span<const MutableView> outputs, std::byte* scratch)> run;
};

class Tracer;

/// Immutable, so that nodes of several graphs share it.
class Op {
 public:
  virtual ~Op() = default;
  /// As in errors and pictures: "max_pool", "add".
  virtual std::string name() const = 0;
  /// Checks the inputs and gets ready. Throws std::invalid_argument.
  virtual Prepared prepare(std::span<const Signature> inputs) const = 0;

  /// Tangents of the outputs, given those of the inputs.
  virtual std::vector<Maybe> jvp(Tracer& tracer, std::span<const Value> inputs, std::span<const Value> outputs,
                                 std::span<const Maybe> tangents) const = 0;
  /// Cotangents of the inputs, given those of the outputs. Inputs that are not floating-point get nothing.
  virtual std::vector<Maybe> vjp(Tracer& tracer, std::span<const Value> inputs, std::span<const Value> outputs,
                                 std::span<const Maybe> cotangents) const = 0;
};
using OpPtr = std::shared_ptr<const Op>;

/// Where rules apply operations: at once to arrays, or as nodes of a graph.
class Tracer {
 public:
  virtual ~Tracer() = default;
  virtual std::vector<Value> apply(const OpPtr& op, std::span<const Value> inputs) = 0;
  virtual const Signature& signature(Value value) const = 0;

  /// An operation with one output.
  Value apply_one(const OpPtr& op, std::initializer_list<Value> inputs) {
    return apply(op, std::span<const Value>(inputs.begin(), inputs.size())).front();
  }
};

}  // namespace cenote::autodiff
