// Calls a user's functions with arrays as they want them: all present, row-major, without gaps.
#include "autodiff/user_op.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <cenote/error.h>

#include "core/copy.h"
#include "core/reject.h"

namespace cenote::autodiff {
namespace {

using graph::UserNode;
using Node = std::shared_ptr<const UserNode>;

std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }
std::int64_t bytes_of(const Signature& s) {
  return element_count(s.shape) * static_cast<std::int64_t>(size_of(s.type));
}
bool without_gaps(const View& view) {
  const Extents plain = row_major_strides(view.shape);
  for (int i = 0; i < view.rank(); ++i)
    if (view.shape[i] > 1 && view.strides[i] != plain[i]) return false;
  return true;
}

// One array that a function is called with: an array of the operation, zeros, or nothing.
struct Argument {
  static constexpr int zeros = -1, nothing = -2;
  int source = nothing;
  Signature signature{};
  std::int64_t offset = 0;
};

/// Lays out the arguments of a call in scratch: their views, and memory for those that must be copied.
class Call {
 public:
  Call(std::vector<Argument> reads, std::vector<Argument> writes)
      : reads_(std::move(reads)), writes_(std::move(writes)) {
    bytes_ = aligned(static_cast<std::int64_t>(reads_.size() * sizeof(View)));
    write_views_ = bytes_;
    bytes_ += aligned(static_cast<std::int64_t>(writes_.size() * sizeof(MutableView)));
    for (auto* list : {&reads_, &writes_}) {
      for (Argument& argument : *list) {
        argument.offset = bytes_;
        if (argument.source != Argument::nothing) bytes_ += aligned(bytes_of(argument.signature));
      }
    }
  }
  std::int64_t bytes() const noexcept { return bytes_; }

  template <class F>
  void operator()(std::span<const View> inputs, std::span<const MutableView> outputs, std::byte* scratch, F&& f) const {
    View* reads = reinterpret_cast<View*>(scratch);
    for (std::size_t i = 0; i < reads_.size(); ++i) new (reads + i) View(read(reads_[i], inputs, scratch));
    MutableView* writes = reinterpret_cast<MutableView*>(scratch + write_views_);
    for (std::size_t i = 0; i < writes_.size(); ++i) new (writes + i) MutableView(write(writes_[i], outputs, scratch));
    f(std::span<const View>(reads, reads_.size()), std::span<const MutableView>(writes, writes_.size()));
    for (std::size_t i = 0; i < writes_.size(); ++i) {
      if (writes_[i].source == Argument::nothing) continue;
      const MutableView& target = outputs[static_cast<std::size_t>(writes_[i].source)];
      if (target.data != writes[i].data) copy_strided(writes[i], target);
    }
  }

 private:
  static View read(const Argument& argument, std::span<const View> inputs, std::byte* scratch) {
    if (argument.source == Argument::nothing) return {};
    const MutableView copy(scratch + argument.offset, argument.signature.type, argument.signature.shape);
    if (argument.source == Argument::zeros) {
      std::memset(copy.data, 0, static_cast<std::size_t>(bytes_of(argument.signature)));
      return copy;
    }
    const View& given = inputs[static_cast<std::size_t>(argument.source)];
    if (without_gaps(given)) return {given.data, given.type, given.shape};
    copy_strided(given, copy);
    return copy;
  }
  static MutableView write(const Argument& argument, std::span<const MutableView> outputs, std::byte* scratch) {
    if (argument.source == Argument::nothing) return {};
    const MutableView& given = outputs[static_cast<std::size_t>(argument.source)];
    void* data = without_gaps(given) ? given.data : scratch + argument.offset;
    return {data, given.type, given.shape};
  }

  std::vector<Argument> reads_, writes_;
  std::int64_t write_views_ = 0, bytes_ = 0;
};

std::vector<Argument> all_of(std::span<const Signature> signatures) {
  std::vector<Argument> arguments;
  for (const Signature& s : signatures) arguments.push_back({static_cast<int>(arguments.size()), s});
  return arguments;
}

std::vector<Signature> signatures_of(const Tracer& tracer, std::span<const Value> values) {
  std::vector<Signature> result;
  for (const Value value : values) result.push_back(tracer.signature(value));
  return result;
}

/// The first derivative of a user's node: of (inputs, outputs, the derivatives that are not zero), linear in the last.
class UserDerivativeOp final : public Op {
 public:
  enum class Direction { jvp, vjp };
  UserDerivativeOp(Node node, Direction direction, std::vector<Signature> inputs, std::vector<Signature> outputs,
                   std::span<const Maybe> given)
      : node_(std::move(node)), direction_(direction), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
    for (const Maybe& derivative : given) given_.push_back(derivative.has_value());
  }

  std::string name() const override { return node_->name + (direction_ == Direction::jvp ? "_jvp" : "_vjp"); }

  Prepared prepare(std::span<const Signature> all) const override {
    std::vector<Argument> reads = all_of(all.first(primals()));
    int next = static_cast<int>(primals());
    for (std::size_t i = 0; i < from().size(); ++i) {
      const bool exists = is_float(from()[i].type);
      reads.push_back({!exists ? Argument::nothing : given_[i] ? next++ : Argument::zeros, from()[i]});
    }
    Prepared prepared;
    std::vector<Argument> writes;
    for (const Signature& s : to()) {
      const bool exists = is_float(s.type);
      writes.push_back({exists ? static_cast<int>(prepared.outputs.size()) : Argument::nothing, s});
      if (exists) prepared.outputs.push_back(s);
    }
    const Call call(std::move(reads), std::move(writes));
    prepared.scratch = call.bytes();
    const std::size_t n = inputs_.size(), m = outputs_.size();
    prepared.run = [call, n, m, node = node_, forward = direction_ == Direction::jvp](auto in, auto out,
                                                                                      auto* scratch) {
      call(in, out, scratch, [&](std::span<const View> reads_now, std::span<const MutableView> writes_now) {
        (forward ? node->jvp : node->vjp)(reads_now.first(n), reads_now.subspan(n, m), reads_now.subspan(n + m),
                                          writes_now);
      });
    };
    return prepared;
  }

  // Linear in the derivatives; in the node's own inputs nothing is known.
  std::vector<Maybe> jvp(Tracer& tracer, std::span<const Value> inputs, std::span<const Value>,
                         std::span<const Maybe> tangents) const override {
    const auto primal = tangents.first(primals()), linear = tangents.subspan(primals());
    if (std::any_of(primal.begin(), primal.end(), [](const Maybe& t) { return t.has_value(); })) refuse();
    std::vector<Value> arguments(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(primals()));
    std::vector<Maybe> given(from().size());
    for (std::size_t i = 0, next = 0; i < given.size(); ++i) {
      if (!given_[i]) continue;
      given[i] = linear[next++];
      if (given[i]) arguments.push_back(*given[i]);
    }
    const auto same = std::make_shared<UserDerivativeOp>(node_, direction_, inputs_, outputs_, given);
    const std::vector<Value> made = tracer.apply(same, arguments);
    return {made.begin(), made.end()};
  }
  std::vector<Maybe> vjp(Tracer&, std::span<const Value>, std::span<const Value>,
                         std::span<const Maybe>) const override {
    refuse();
  }

 private:
  [[noreturn]] void refuse() const { throw Unsupported("[" + name() + "] nodes of users have first derivatives only"); }
  std::size_t primals() const noexcept { return inputs_.size() + outputs_.size(); }
  const std::vector<Signature>& from() const noexcept { return direction_ == Direction::jvp ? inputs_ : outputs_; }
  const std::vector<Signature>& to() const noexcept { return direction_ == Direction::jvp ? outputs_ : inputs_; }

  Node node_;
  Direction direction_;
  std::vector<Signature> inputs_, outputs_;
  std::vector<bool> given_;
};

class UserOp final : public Op {
 public:
  explicit UserOp(const UserNode& node) : node_(std::make_shared<const UserNode>(node)) {}

  std::string name() const override { return node_->name; }

  Prepared prepare(std::span<const Signature> inputs) const override {
    Prepared prepared;
    prepared.outputs = node_->shape(inputs);
    if (prepared.outputs.empty()) reject(name(), "its shape function gives no output: a node must have at least one");
    const Call call(all_of(inputs), all_of(prepared.outputs));
    prepared.scratch = call.bytes();
    prepared.run = [call, node = node_](auto in, auto out, auto* scratch) {
      call(in, out, scratch, [&](auto reads, auto writes) { node->forward(reads, writes); });
    };
    return prepared;
  }

  std::vector<Maybe> jvp(Tracer& tracer, std::span<const Value> inputs, std::span<const Value> outputs,
                         std::span<const Maybe> tangents) const override {
    if (!node_->jvp) throw Unsupported("[" + name() + "] the node was defined without a jvp, so tangents cannot pass");
    return derive(UserDerivativeOp::Direction::jvp, tracer, inputs, outputs, tangents, outputs);
  }
  std::vector<Maybe> vjp(Tracer& tracer, std::span<const Value> inputs, std::span<const Value> outputs,
                         std::span<const Maybe> cotangents) const override {
    if (!node_->vjp)
      throw Unsupported("[" + name() + "] the node was defined without a vjp, so cotangents cannot pass");
    return derive(UserDerivativeOp::Direction::vjp, tracer, inputs, outputs, cotangents, inputs);
  }

 private:
  // Derivatives of the values `of`, of which only floating-point ones have any.
  std::vector<Maybe> derive(UserDerivativeOp::Direction direction, Tracer& tracer, std::span<const Value> inputs,
                            std::span<const Value> outputs, std::span<const Maybe> given,
                            std::span<const Value> of) const {
    std::vector<Value> arguments(inputs.begin(), inputs.end());
    arguments.insert(arguments.end(), outputs.begin(), outputs.end());
    for (const Maybe& derivative : given)
      if (derivative) arguments.push_back(*derivative);
    const auto op = std::make_shared<UserDerivativeOp>(node_, direction, signatures_of(tracer, inputs),
                                                       signatures_of(tracer, outputs), given);
    const std::vector<Value> made = tracer.apply(op, arguments);
    std::vector<Maybe> result(of.size());
    for (std::size_t i = 0, next = 0; i < of.size(); ++i)
      if (is_float(tracer.signature(of[i]).type)) result[i] = made[next++];
    return result;
  }

  Node node_;
};

}  // namespace

OpPtr user_op(const UserNode& node) {
  if (node.name.empty()) reject("graph", "a node without a name: it needs one");
  if (!node.shape || !node.forward) reject("graph", "node ", node.name, ": it needs a shape and a forward function");
  return std::make_shared<UserOp>(node);
}

}  // namespace cenote::autodiff
