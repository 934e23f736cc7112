// Running operations on arrays.
#include "autodiff/eager.h"

#include <algorithm>
#include <cassert>

namespace cenote::autodiff {
namespace {

std::vector<Array> run_prepared(const Prepared& prepared, std::span<const View> inputs) {
  std::vector<Array> results;
  std::vector<MutableView> outputs;
  results.reserve(prepared.outputs.size());
  for (const Signature& y : prepared.outputs) outputs.push_back(results.emplace_back(y.type, y.shape));
  Array scratch(Type::u8, {prepared.scratch});
  prepared.run(inputs, outputs, static_cast<std::byte*>(scratch.data()));
  return results;
}

}  // namespace

std::vector<Array> run(const Op& op, std::span<const View> inputs) {
  std::vector<Signature> signatures;
  for (const View& x : inputs) signatures.push_back({x.type, x.shape});
  return run_prepared(op.prepare(signatures), inputs);
}

Value EagerTracer::append(Entry entry) {
  entries_.push_back(std::move(entry));
  return {static_cast<int>(entries_.size()) - 1};
}

Value EagerTracer::borrow(const View& array) { return append({{array.type, array.shape}, array}); }

Value EagerTracer::hold(std::shared_ptr<const Array> array) {
  const View view = *array;
  // Never written: take() moves an array out only where an operation made it.
  return append({{view.type, view.shape}, view, std::const_pointer_cast<Array>(std::move(array))});
}

std::vector<Value> EagerTracer::apply(const OpPtr& op, std::span<const Value> inputs) {
  std::vector<Signature> signatures;
  for (const Value x : inputs) signatures.push_back(signature(x));
  Step step{op->prepare(signatures), {inputs.begin(), inputs.end()}, static_cast<int>(entries_.size())};
  std::vector<Value> values;
  for (const Signature& y : step.prepared.outputs)
    values.push_back(append({y, View(), nullptr, static_cast<int>(steps_.size())}));
  steps_.push_back(std::move(step));
  return values;
}

void EagerTracer::run(Step& step) {
  std::vector<View> inputs;
  for (const Value x : step.inputs) inputs.push_back(at(x).view);
  Value y{step.first_output};
  for (Array& result : run_prepared(step.prepared, inputs)) {
    Entry& entry = at(y);
    entry.array = std::make_shared<Array>(std::move(result));
    entry.view = *entry.array;
    ++y.id;
  }
  step.done = true;
}

// An operation comes after those it needs, so one pass down finds what is needed and one pass up runs it.
void EagerTracer::compute(std::span<const Value> values) {
  std::vector<bool> needed(steps_.size(), false);
  const auto need = [&](Value value) {
    const int step = at(value).step;
    if (step >= 0 && !steps_[static_cast<std::size_t>(step)].done) needed[static_cast<std::size_t>(step)] = true;
  };
  for (const Value value : values) need(value);
  for (std::size_t i = steps_.size(); i-- > 0;)
    if (needed[i])
      for (const Value input : steps_[i].inputs) need(input);
  for (std::size_t i = 0; i < steps_.size(); ++i)
    if (needed[i]) run(steps_[i]);
}

const View& EagerTracer::view(Value value) {
  compute({&value, 1});
  return at(value).view;
}

std::shared_ptr<const Array> EagerTracer::share(Value value) {
  compute({&value, 1});
  const Entry& entry = at(value);
  return entry.array ? entry.array : std::make_shared<const Array>(entry.view);
}

std::vector<Array> EagerTracer::take(std::span<const Value> values) {
  compute(values);
  std::vector<Array> arrays;
  arrays.reserve(values.size());
  for (; !values.empty(); values = values.subspan(1)) {
    Entry& entry = at(values[0]);
    assert(entry.step < 0 || entry.array);
    const bool again = std::find(values.begin() + 1, values.end(), values[0]) != values.end();
    if (again || entry.step < 0 || entry.array.use_count() > 1) {
      arrays.emplace_back(entry.view);
    } else {
      arrays.push_back(std::move(*entry.array));
      entry.array = nullptr;
    }
  }
  return arrays;
}

}  // namespace cenote::autodiff
