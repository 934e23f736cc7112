// Running operations at once.
#include "autodiff/eager.h"

#include <algorithm>
#include <utility>

namespace cenote::autodiff {

std::vector<Array> run(const Op& op, std::span<const View> inputs) {
  std::vector<Signature> signatures;
  for (const View& x : inputs) signatures.push_back({x.type, x.shape});
  const Prepared prepared = op.prepare(signatures);
  std::vector<Array> results;
  std::vector<MutableView> outputs;
  results.reserve(prepared.outputs.size());
  for (const Signature& y : prepared.outputs) outputs.push_back(results.emplace_back(y.type, y.shape));
  Array scratch(Type::u8, {prepared.scratch});
  prepared.run(inputs, outputs, static_cast<std::byte*>(scratch.data()));
  return results;
}

Value EagerTracer::append(Entry entry) {
  entries_.push_back(std::move(entry));
  return {static_cast<int>(entries_.size()) - 1};
}

Value EagerTracer::borrow(const View& array) { return append({{array.type, array.shape}, array}); }

Value EagerTracer::hold(std::shared_ptr<const Array> array) {
  const View view = *array;
  return append({{view.type, view.shape}, view, std::move(array)});
}

std::vector<Value> EagerTracer::apply(const OpPtr& op, std::span<const Value> inputs) {
  std::vector<View> views;
  for (const Value x : inputs) views.push_back(view(x));
  std::vector<Value> values;
  for (Array& y : run(*op, views)) {
    const auto made = std::make_shared<Array>(std::move(y));
    const View view = *made;
    values.push_back(append({{view.type, view.shape}, view, made, made}));
  }
  return values;
}

std::shared_ptr<const Array> EagerTracer::share(Value value) const {
  const Entry& entry = at(value);
  return entry.held ? entry.held : std::make_shared<const Array>(entry.view);
}

std::vector<Array> EagerTracer::take(std::span<const Value> values) {
  std::vector<Array> arrays;
  arrays.reserve(values.size());
  for (; !values.empty(); values = values.subspan(1)) {
    Entry& entry = entries_[static_cast<std::size_t>(values[0].id)];
    const bool again = std::find(values.begin() + 1, values.end(), values[0]) != values.end();
    // `held` is one more owner.
    if (again || !entry.made || entry.made.use_count() > 2) {
      arrays.emplace_back(entry.view);
    } else {
      arrays.push_back(std::move(*entry.made));
      entry = {entry.signature, View()};
    }
  }
  return arrays;
}

}  // namespace cenote::autodiff
