// Compiled graphs: derivatives on first use, workspaces, and the checks around a run.
#include "autodiff/program.h"

#include <algorithm>
#include <string_view>

#include "autodiff/derive.h"
#include "core/copy.h"
#include "core/reject.h"
#include "core/views.h"

namespace cenote::graph {
namespace {

using autodiff::Place;
using autodiff::Value;
constexpr std::string_view who = "graph";

std::size_t at(Value value) { return static_cast<std::size_t>(value.id); }

// An array of zeros without memory: every element is the same one.
View zeros(const Signature& signature) {
  alignas(8) static const std::byte zero[8]{};
  return View(zero, signature.type, signature.shape, Extents::filled(signature.shape.size(), 0));
}

const char* text(Mode mode) { return mode == Mode::forward ? "run" : mode == Mode::jvp ? "run_jvp" : "run_vjp"; }

// Holds a workspace for one run.
class Hold {
 public:
  Hold(Workspace::Impl* w, const Program::Impl* program, Mode mode) : workspace_(w) {
    if (w == nullptr) reject(who, "workspace: it was moved from");
    if (w->owner.get() != program) reject(who, "workspace: it was made for another program");
    if (w->mode != mode) reject(who, "workspace: it was made for ", text(w->mode), ", not for ", text(mode));
    if (w->busy.exchange(true, std::memory_order_acquire))
      reject(who, "workspace: another run is using it; every thread needs one of its own");
  }
  ~Hold() { workspace_->busy.store(false, std::memory_order_release); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  Workspace::Impl* workspace_;
};

void check_count(std::string_view what, std::size_t given, std::size_t expected) {
  if (given != expected) reject(who, what, ": ", given, " were given, ", expected, " are needed");
}

void check_array(const std::string& what, const View& given, const Signature& expected) {
  if (given.type != expected.type) reject(who, what, " has type ", name(given.type), ": must be ", name(expected.type));
  if (given.shape != expected.shape) reject(who, what, " has shape ", given.shape, ": must be ", expected.shape);
  check_memory(who, what, given);
}

void check_arrays(const Program::Impl& p, std::span<const View> inputs, std::span<const MutableView> outputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) check_array(p.input_labels[i], inputs[i], p.inputs[i]);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    check_array(p.output_labels[i], outputs[i], p.outputs[i]);
    check_writable(who, p.output_labels[i], outputs[i]);
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (overlap(outputs[i], inputs[k]))
        reject(who, p.output_labels[i], " and ", p.input_labels[k], " overlap in memory: they must not");
    for (std::size_t k = 0; k < i; ++k)
      if (overlap(outputs[i], outputs[k]))
        reject(who, p.output_labels[i], " and ", p.output_labels[k], " overlap in memory: they must not");
  }
}

// Appends the floating-point ones of `derivatives`, one per entry of `of`, to a list that has room for them.
template <class List, class V>
void join(List& list, std::span<const V> plain, std::span<const V> derivatives, const std::vector<Signature>& of) {
  auto next = std::copy(plain.begin(), plain.end(), list.begin());
  for (std::size_t i = 0; i < of.size(); ++i)
    if (is_float(of[i].type)) *next++ = derivatives[i];
}

std::vector<View> seeds(std::string_view what, const std::vector<std::optional<View>>& given,
                        const std::vector<Signature>& of) {
  check_count(what, given.size(), of.size());
  std::vector<View> views(of.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (!is_float(of[i].type) && given[i])
      reject(who, what, "[", i, "]: arrays of ", name(of[i].type), " have no derivative, so it must be nullopt");
    if (is_float(of[i].type)) views[i] = given[i] ? *given[i] : zeros(of[i]);
  }
  return views;
}

std::vector<Array> arrays(const std::vector<Signature>& signatures) {
  std::vector<Array> made;
  made.reserve(signatures.size());
  for (const Signature& s : signatures) made.emplace_back(s.type, s.shape);
  return made;
}

std::vector<std::optional<Array>> derivative_arrays(const std::vector<Signature>& signatures) {
  std::vector<std::optional<Array>> made(signatures.size());
  for (std::size_t i = 0; i < made.size(); ++i)
    if (is_float(signatures[i].type)) made[i].emplace(signatures[i].type, signatures[i].shape);
  return made;
}

std::vector<MutableView> views(std::vector<Array>& arrays) { return {arrays.begin(), arrays.end()}; }

std::vector<MutableView> views(std::vector<std::optional<Array>>& arrays) {
  std::vector<MutableView> result;
  for (auto& array : arrays) result.push_back(array ? MutableView(*array) : MutableView());
  return result;
}

std::vector<Value> joined(std::vector<Value> a, const std::vector<Value>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

template <class Late, class Make>
const std::shared_ptr<const Program::Impl>& make_once(Late& late, Make&& make) {
  std::call_once(late.once, [&] { late.program = make(); });
  return late.program;
}

}  // namespace

Program::Impl::Impl(autodiff::Nodes graph, std::vector<Value> from, std::vector<Value> to, std::size_t seeds)
    : nodes(std::move(graph)), input_values(std::move(from)), output_values(std::move(to)) {
  for (std::size_t i = 0; i < input_values.size(); ++i) {
    const std::string& label = nodes[nodes.node_of(input_values[i])].label;
    const std::string number = "input " + std::to_string(i);
    inputs.push_back(nodes.signature(input_values[i]));
    input_labels.push_back(label.empty() ? number : i < seeds ? number + " (" + label + ")" : "the " + label);
  }
  for (std::size_t i = 0; i < output_values.size(); ++i) {
    outputs.push_back(nodes.signature(output_values[i]));
    output_labels.push_back("output " + std::to_string(i));
  }
  order = autodiff::needed_nodes(nodes, output_values);
  memory = autodiff::plan_memory(nodes, order, input_values, output_values);
}

const std::shared_ptr<const Program::Impl>& Program::Impl::tangents() const {
  return make_once(tangents_, [&] {
    autodiff::Derivative d = autodiff::tangents_of(nodes, input_values, output_values);
    return std::make_shared<const Impl>(std::move(d.nodes), joined(input_values, d.seeds),
                                        joined(output_values, d.results), input_values.size());
  });
}

const std::shared_ptr<const Program::Impl>& Program::Impl::cotangents() const {
  return make_once(cotangents_, [&] {
    autodiff::Derivative d = autodiff::cotangents_of(nodes, input_values, output_values);
    return std::make_shared<const Impl>(std::move(d.nodes), joined(input_values, d.seeds),
                                        joined(output_values, d.results), input_values.size());
  });
}

const std::shared_ptr<const Program::Impl>& Program::Impl::pullback() const {
  return make_once(pullback_, [&] {
    autodiff::Derivative d = autodiff::cotangents_of(nodes, input_values, output_values);
    return std::make_shared<const Impl>(std::move(d.nodes), joined(input_values, d.seeds), std::move(d.results),
                                        input_values.size());
  });
}

Workspace::Impl::Impl(std::shared_ptr<const Program::Impl> made_for, Mode m)
    : owner(std::move(made_for)),
      program(m == Mode::forward ? owner
              : m == Mode::jvp   ? owner->tangents()
                                 : owner->cotangents()),
      mode(m),
      memory(Type::u8, {program->memory.bytes}),
      joined_inputs(program->inputs.size()),
      joined_outputs(program->outputs.size()) {
  for (const int node : program->order) add_step(node);
}

void Workspace::Impl::add_step(int number) {
  const autodiff::Node& node = program->nodes[number];
  steps_.push_back({node.prepared.get(), reads_.size(), node.inputs.size(), writes_.size(), node.outputs.size()});
  for (const Value input : node.inputs) {
    const Place place = program->memory.places[at(input)];
    const Patch patch{reads_.size(), static_cast<std::size_t>(place.index)};
    if (place.kind == Place::Kind::input) reads_of_inputs_.push_back(patch);
    if (place.kind == Place::Kind::output) reads_of_outputs_.push_back(patch);
    reads_.push_back(view(input));
  }
  for (const Value output : node.outputs) {
    const Place place = program->memory.places[at(output)];
    const View made = view(output);
    if (place.kind == Place::Kind::output)
      writes_of_outputs_.push_back({writes_.size(), static_cast<std::size_t>(place.index)});
    writes_.emplace_back(const_cast<void*>(made.data), made.type, made.shape);
  }
}

// Where a value is, as far as that is known before the caller's arrays are.
View Workspace::Impl::view(Value value) {
  const Signature& signature = program->nodes.signature(value);
  const Place place = program->memory.places[at(value)];
  const auto index = static_cast<std::size_t>(place.index);
  switch (place.kind) {
    case Place::Kind::buffer:
      return {memory.values<std::uint8_t>().data() + program->memory.offsets[index], signature.type, signature.shape};
    case Place::Kind::constant: return *program->nodes[place.index].constant;
    case Place::Kind::zeros: return zeros(signature);
    default: return {nullptr, signature.type, signature.shape};
  }
}

void Workspace::Impl::run(std::span<const View> inputs, std::span<const MutableView> outputs) {
  for (const Patch& patch : reads_of_inputs_) reads_[patch.at] = inputs[patch.index];
  for (const Patch& patch : reads_of_outputs_) reads_[patch.at] = outputs[patch.index];
  for (const Patch& patch : writes_of_outputs_) writes_[patch.at] = outputs[patch.index];
  std::byte* scratch = static_cast<std::byte*>(memory.data()) + program->memory.scratch_offset;
  std::size_t now = 0;
  try {
    for (; now < steps_.size(); ++now) {
      const Step& step = steps_[now];
      step.prepared->run(std::span<const View>(reads_).subspan(step.first_read, step.reads),
                         std::span<const MutableView>(writes_).subspan(step.first_write, step.writes), scratch);
    }
  } catch (const std::invalid_argument& error) {
    const int node = program->order[now];
    reject(who, "node ", node, " (", program->nodes[node].name(), "): ", autodiff::without_sender(error.what()));
  }
  // Outputs that no node writes: inputs, constants, zeros, and values that are outputs already.
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Value value = program->output_values[i];
    const Place place = program->memory.places[at(value)];
    const auto index = static_cast<std::size_t>(place.index);
    if (place.kind == Place::Kind::output && index == i) continue;
    const bool is_input = place.kind == Place::Kind::input, is_output = place.kind == Place::Kind::output;
    copy_strided(is_input ? inputs[index] : is_output ? View(outputs[index]) : view(value), outputs[i]);
  }
}

Workspace::Workspace(const Program& program, Mode mode) : impl_(std::make_unique<Impl>(program.impl(), mode)) {}
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;
Workspace::~Workspace() = default;
std::int64_t Workspace::bytes() const noexcept { return impl_ ? impl_->program->memory.bytes : 0; }

const std::vector<Signature>& Program::inputs() const noexcept { return impl_->inputs; }
const std::vector<Signature>& Program::outputs() const noexcept { return impl_->outputs; }
Program Program::jvp_program() const { return Program(impl_->tangents()); }
Program Program::vjp_program() const { return Program(impl_->pullback()); }
int Program::node_count() const noexcept { return static_cast<int>(impl_->order.size()); }
int Program::buffer_count() const noexcept { return static_cast<int>(impl_->memory.buffers.size()); }
std::int64_t Program::workspace_bytes() const noexcept { return impl_->memory.bytes; }

void Program::run(std::span<const View> inputs, std::span<const MutableView> outputs, Workspace& workspace) const {
  check_count("inputs", inputs.size(), impl_->inputs.size());
  check_count("outputs", outputs.size(), impl_->outputs.size());
  const Hold hold(workspace.impl_.get(), impl_.get(), Mode::forward);
  check_arrays(*impl_, inputs, outputs);
  workspace.impl_->run(inputs, outputs);
}

void Program::run_jvp(std::span<const View> inputs, std::span<const View> tangents,
                      std::span<const MutableView> outputs, std::span<const MutableView> output_tangents,
                      Workspace& workspace) const {
  check_count("inputs", inputs.size(), impl_->inputs.size());
  check_count("tangents", tangents.size(), impl_->inputs.size());
  check_count("outputs", outputs.size(), impl_->outputs.size());
  check_count("output tangents", output_tangents.size(), impl_->outputs.size());
  Workspace::Impl* w = workspace.impl_.get();
  const Hold hold(w, impl_.get(), Mode::jvp);
  join(w->joined_inputs, inputs, tangents, impl_->inputs);
  join(w->joined_outputs, outputs, output_tangents, impl_->outputs);
  check_arrays(*w->program, w->joined_inputs, w->joined_outputs);
  w->run(w->joined_inputs, w->joined_outputs);
}

void Program::run_vjp(std::span<const View> inputs, std::span<const View> cotangents,
                      std::span<const MutableView> outputs, std::span<const MutableView> input_cotangents,
                      Workspace& workspace) const {
  check_count("inputs", inputs.size(), impl_->inputs.size());
  check_count("cotangents", cotangents.size(), impl_->outputs.size());
  check_count("outputs", outputs.size(), impl_->outputs.size());
  check_count("input cotangents", input_cotangents.size(), impl_->inputs.size());
  Workspace::Impl* w = workspace.impl_.get();
  const Hold hold(w, impl_.get(), Mode::vjp);
  join(w->joined_inputs, inputs, cotangents, impl_->outputs);
  join(w->joined_outputs, outputs, input_cotangents, impl_->inputs);
  check_arrays(*w->program, w->joined_inputs, w->joined_outputs);
  w->run(w->joined_inputs, w->joined_outputs);
}

std::vector<Array> Program::forward(const std::vector<View>& inputs) const {
  std::vector<Array> outputs = arrays(impl_->outputs);
  Workspace workspace(*this);
  run(inputs, views(outputs), workspace);
  return outputs;
}

Program::Tangents Program::jvp(const std::vector<View>& inputs,
                               const std::vector<std::optional<View>>& tangents) const {
  const std::vector<View> given = seeds("tangents", tangents, impl_->inputs);
  Tangents result{arrays(impl_->outputs), derivative_arrays(impl_->outputs)};
  Workspace workspace(*this, Mode::jvp);
  run_jvp(inputs, given, views(result.outputs), views(result.tangents), workspace);
  return result;
}

Program::Cotangents Program::vjp(const std::vector<View>& inputs,
                                 const std::vector<std::optional<View>>& cotangents) const {
  const std::vector<View> given = seeds("cotangents", cotangents, impl_->outputs);
  Cotangents result{arrays(impl_->outputs), derivative_arrays(impl_->inputs)};
  Workspace workspace(*this, Mode::vjp);
  run_vjp(inputs, given, views(result.outputs), views(result.cotangents), workspace);
  return result;
}

}  // namespace cenote::graph
