// What a compiled graph holds, and what its runs do.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <cenote/graph.h>

#include "autodiff/memory.h"
#include "autodiff/nodes.h"

namespace cenote::graph {

struct Program::Impl {
  /// Inputs from number `seeds` on are tangents or cotangents.
  Impl(autodiff::Nodes graph, std::vector<autodiff::Value> from, std::vector<autodiff::Value> to, std::size_t seeds);
  Impl(autodiff::Nodes graph, const std::vector<autodiff::Value>& from, std::vector<autodiff::Value> to)
      : Impl(std::move(graph), from, std::move(to), from.size()) {}

  autodiff::Nodes nodes;
  std::vector<autodiff::Value> input_values, output_values;
  std::vector<Signature> inputs, outputs;
  /// "input 0 (x)", for errors.
  std::vector<std::string> input_labels, output_labels;
  /// The nodes to run.
  std::vector<int> order;
  autodiff::Memory memory;

  /// The program that computes outputs and derivatives, or only the cotangents; made on first use.
  const std::shared_ptr<const Impl>& tangents() const;
  const std::shared_ptr<const Impl>& cotangents() const;
  const std::shared_ptr<const Impl>& pullback() const;

 private:
  struct Late {
    std::once_flag once;
    std::shared_ptr<const Impl> program;
  };
  mutable Late tangents_, cotangents_, pullback_;
};

struct Workspace::Impl {
  Impl(std::shared_ptr<const Program::Impl> made_for, Mode mode);

  /// Runs the nodes. The caller holds the workspace and has checked the arrays.
  void run(std::span<const View> inputs, std::span<const MutableView> outputs);

  std::shared_ptr<const Program::Impl> owner, program;
  Mode mode;
  Array memory;
  std::atomic<bool> busy{false};
  /// Inputs and derivatives one after the other, as the derivative program takes them.
  std::vector<View> joined_inputs;
  std::vector<MutableView> joined_outputs;

 private:
  struct Step {
    const autodiff::Prepared* prepared = nullptr;
    std::size_t first_read = 0, reads = 0, first_write = 0, writes = 0;
  };
  /// An entry of reads or writes that is the caller's array number `index`.
  struct Patch {
    std::size_t at = 0, index = 0;
  };
  void add_step(int node);
  View view(autodiff::Value value);

  std::vector<Step> steps_;
  std::vector<View> reads_;
  std::vector<MutableView> writes_;
  std::vector<Patch> reads_of_inputs_, reads_of_outputs_, writes_of_outputs_;
};

}  // namespace cenote::graph
