// The tracer that runs operations at once, on arrays that it holds or borrows.
#pragma once

#include <deque>

#include "autodiff/op.h"

namespace cenote::autodiff {

/// Values live as long as the tracer. Not for several threads at once.
class EagerTracer final : public Tracer {
 public:
  /// A value whose memory must outlive the tracer.
  Value borrow(const View& array);
  /// A value that the tracer owns, or shares.
  Value hold(Array array) { return hold(std::make_shared<const Array>(std::move(array))); }
  Value hold(std::shared_ptr<const Array> array);

  std::vector<Value> apply(const OpPtr& op, std::span<const Value> inputs) override;
  const Signature& signature(Value value) const override { return at(value).signature; }

  const View& view(Value value) const { return at(value).view; }
  /// The array of a value, without a copy unless it is borrowed.
  std::shared_ptr<const Array> share(Value value) const;
  /// The arrays of values, which may repeat; those that the tracer made are moved out, and gone from it then.
  std::vector<Array> take(std::span<const Value> values);
  Array take(Value value) { return std::move(take(std::span<const Value>(&value, 1)).front()); }

 private:
  // `held` keeps the memory of the view, if it is not borrowed; `made` is the same array, if an operation made it here.
  struct Entry {
    Signature signature;
    View view;
    std::shared_ptr<const Array> held{};
    std::shared_ptr<Array> made{};
  };
  const Entry& at(Value value) const { return entries_[static_cast<std::size_t>(value.id)]; }
  Value append(Entry entry);

  // A deque, so that signatures stay where they are while operations are applied.
  std::deque<Entry> entries_;
};

/// Runs an operation on arrays and allocates its outputs.
std::vector<Array> run(const Op& op, std::span<const View> inputs);

}  // namespace cenote::autodiff
