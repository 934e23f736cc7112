// The tracer that works on arrays: it runs operations, each when one of its values is first asked for.
#pragma once

#include <deque>
#include <utility>

#include "autodiff/op.h"

namespace cenote::autodiff {

/// Values live as long as the tracer. What rules make in vain, as the cotangents of constants, is never computed.
/// Not for several threads at once.
class EagerTracer final : public Tracer {
 public:
  /// A value whose memory must outlive the tracer.
  Value borrow(const View& array);
  /// A value that the tracer owns, or shares.
  Value hold(Array array) { return hold(std::make_shared<const Array>(std::move(array))); }
  Value hold(std::shared_ptr<const Array> array);

  std::vector<Value> apply(const OpPtr& op, std::span<const Value> inputs) override;
  const Signature& signature(Value value) const override { return at(value).signature; }

  const View& view(Value value);
  /// The array of a value, without a copy unless it is borrowed.
  std::shared_ptr<const Array> share(Value value);
  /// The arrays of values, which may repeat; those that only the tracer has are moved out, and gone from it then.
  std::vector<Array> take(std::span<const Value> values);
  Array take(Value value) { return std::move(take(std::span<const Value>(&value, 1)).front()); }

 private:
  // The array is null while the value is not computed, and where it is borrowed.
  struct Entry {
    Signature signature;
    View view;
    std::shared_ptr<Array> array{};
    int step = -1;
  };
  struct Step {
    Prepared prepared;
    std::vector<Value> inputs;
    int first_output;
    bool done = false;
  };
  Entry& at(Value value) { return entries_[static_cast<std::size_t>(value.id)]; }
  const Entry& at(Value value) const { return entries_[static_cast<std::size_t>(value.id)]; }
  Value append(Entry entry);
  void compute(std::span<const Value> values);
  void run(Step& step);

  // Deques, so that signatures stay where they are while operations are applied.
  std::deque<Entry> entries_;
  std::deque<Step> steps_;
};

/// Runs an operation on arrays and allocates its outputs.
std::vector<Array> run(const Op& op, std::span<const View> inputs);

}  // namespace cenote::autodiff
