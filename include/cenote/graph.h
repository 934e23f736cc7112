// Graphs: built once from shapes, compiled into programs that run many times, forward and in both derivative modes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cenote/array.h>
#include <cenote/plan.h>
#include <cenote/pooling.h>
#include <cenote/row_pooling.h>
#include <cenote/signature.h>

namespace cenote::graph {

class Program;
class Var;

/// A node that a caller defines. The functions get arrays that are row-major without gaps and must not keep them; they
/// may be called from several threads at once. Derivatives leave out nothing: an array of zeros stands for exact zeros.
struct UserNode {
  std::string name;
  /// Types and shapes of the outputs, given those of the inputs; throws std::invalid_argument for what it cannot take.
  std::function<std::vector<Signature>(std::span<const Signature> inputs)> shape;
  /// Writes every element of the outputs.
  std::function<void(std::span<const View> inputs, std::span<const MutableView> outputs)> forward;
  /// Writes the outputs' tangents; without it, jvp of a graph whose tangents reach the node is an Unsupported error.
  /// Integer and bool arrays have none: their places hold a view without data, here and below.
  std::function<void(std::span<const View> inputs, std::span<const View> outputs, std::span<const View> tangents,
                     std::span<const MutableView> output_tangents)>
      jvp = nullptr;
  /// Writes the inputs' cotangents; without it, vjp of a graph whose cotangents reach the node is an Unsupported error.
  std::function<void(std::span<const View> inputs, std::span<const View> outputs, std::span<const View> cotangents,
                     std::span<const MutableView> input_cotangents)>
      vjp = nullptr;
};

/// Appends nodes, and checks types and shapes as they come. Errors say which node, what it wants and what it was given.
class Builder {
 public:
  Builder();

  /// An input of the program, in the order of these calls. The name is for errors and pictures.
  Var input(Type type, const Extents& shape, const std::string& name = "");
  /// A fixed array, copied; its derivative is zero.
  Var constant(const View& array);
  /// The outputs of a node of the caller's own.
  std::vector<Var> call(const UserNode& node, const std::vector<Var>& inputs);
  /// A program for these outputs, at least one: inputs and constants may be among them, and any more than once.
  /// Nodes that none of them needs are left out. The builder may grow on and be compiled again.
  Program compile(const std::vector<Var>& outputs) const;

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

/// A handle on a node's value. It keeps its builder's nodes alive; operations on handles of two builders are errors.
class Var {
 public:
  /// Stands for nothing yet; only assignment and destruction are allowed.
  Var() = default;
  Extents shape() const { return signature().shape; }
  Type type() const { return signature().type; }
  Signature signature() const;

  Var(std::shared_ptr<Builder::Impl> builder, int id) : builder_(std::move(builder)), id_(id) {}
  const std::shared_ptr<Builder::Impl>& builder() const noexcept { return builder_; }
  int id() const noexcept { return id_; }

 private:
  std::shared_ptr<Builder::Impl> builder_;
  int id_ = -1;
};

/// The first output of a node of the caller's own that reads x, as Builder::call.
Var call(const UserNode& node, const Var& x);
/// The same elements with derivative zero.
Var detach(const Var& x);

/// Any pooling without indices, described by a value; the functions below are short forms of it.
Var pool(const Var& x, const Pooling& pooling);
/// As the functions of pooling.h with these names.
Var max_pool(const Var& x, const Window& window);
Var min_pool(const Var& x, const Window& window);
Var sum_pool(const Var& x, const Window& window, std::optional<Type> dtype = std::nullopt);
Var avg_pool(const Var& x, const Window& window, Divisor divisor = Divisor::Rule::window);
Var smooth_max_pool(const Var& x, const Window& window, double beta, SmoothPadding pad = SmoothPadding::zero);
Var lp_pool(const Var& x, const Window& window, double p);
Var adaptive_max_pool(const Var& x, const Adaptive& region);
Var adaptive_avg_pool(const Var& x, const Adaptive& region);
Var global_max_pool(const Var& x, const Global& region = {});
Var global_min_pool(const Var& x, const Global& region = {});
Var global_sum_pool(const Var& x, const Global& region = {}, std::optional<Type> dtype = std::nullopt);
Var global_avg_pool(const Var& x, const Global& region = {});

/// A pooling of the rows of a sparse tensor: x is its features.
Var pool(const Var& x, const RowPooling& pooling);

/// Values and where they came from.
struct Pooled {
  Var values;
  Var indices;
};
/// Max or min with indices, of the kind that `pooling.indices` names (plane if it names none), for gather and
/// max_unpool.
Pooled pool_with_indices(const Var& x, const Pooling& pooling);
Pooled max_pool_with_indices(const Var& x, const Window& window, IndexKind kind = IndexKind::plane);
Pooled min_pool_with_indices(const Var& x, const Window& window, IndexKind kind = IndexKind::plane);

/// TorchLean's 2-D forms: the last two axes are pooled with one stride and one padding on every side.
Var max_pool2d(const Var& x, const Extents& window, std::int64_t stride);
Var max_pool2d_pad(const Var& x, const Extents& window, std::int64_t stride, std::int64_t padding);
/// Divides by the size of the window, padded cells counted.
Var avg_pool2d(const Var& x, const Extents& window, std::int64_t stride);
Var avg_pool2d_pad(const Var& x, const Extents& window, std::int64_t stride, std::int64_t padding);
Var smooth_max_pool2d(const Var& x, const Extents& window, std::int64_t stride, double beta);

/// The elements of x at plane indices (i64, checked when the program runs), shaped as the indices.
Var gather(const Var& x, const Var& indices, const Plane& plane = {});
/// Writes each value of y at its plane index into zeros of `shape`; of several, the last stays.
Var max_unpool(const Var& y, const Var& indices, const Extents& shape, const Plane& plane = {});

/// Element by element, broadcast as NumPy does; equal floating-point types.
Var add(const Var& a, const Var& b);
Var sub(const Var& a, const Var& b);
Var mul(const Var& a, const Var& b);
Var div(const Var& a, const Var& b);
Var neg(const Var& x);
Var exp(const Var& x);
Var log(const Var& x);
/// max(x, 0), with derivative 0 at 0.
Var relu(const Var& x);
/// x times a fixed number.
Var scale(const Var& x, double factor);
/// The same elements in row-major order under another shape; one extent may be -1.
Var reshape(const Var& x, const Extents& shape);
/// Of all elements, as an array of rank 0.
Var sum(const Var& x);
Var mean(const Var& x);

inline Var operator+(const Var& a, const Var& b) { return add(a, b); }
inline Var operator-(const Var& a, const Var& b) { return sub(a, b); }
inline Var operator*(const Var& a, const Var& b) { return mul(a, b); }
inline Var operator/(const Var& a, const Var& b) { return div(a, b); }
inline Var operator-(const Var& x) { return neg(x); }

/// What a run computes: the outputs; with tangents; with cotangents of the inputs.
enum class Mode { forward, jvp, vjp };

/// The memory of a program's runs, for one run at a time: one Workspace per thread. It keeps its program alive.
class Workspace {
 public:
  explicit Workspace(const Program& program, Mode mode = Mode::forward);
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;
  ~Workspace();
  /// Memory for values between nodes, and working memory of nodes.
  std::int64_t bytes() const noexcept;

  struct Impl;

 private:
  friend class Program;
  std::unique_ptr<Impl> impl_;
};

/// A compiled graph: immutable, cheap to copy, and safe to run from several threads.
///
/// Lists of derivatives have one entry per input or output. Those of integers and bool are empty: nullopt in the forms
/// that allocate, and a view that is ignored in the run forms.
class Program {
 public:
  struct Tangents {
    std::vector<Array> outputs;
    std::vector<std::optional<Array>> tangents;
  };
  struct Cotangents {
    std::vector<Array> outputs;
    std::vector<std::optional<Array>> cotangents;
  };

  const std::vector<Signature>& inputs() const noexcept;
  const std::vector<Signature>& outputs() const noexcept;

  /// The outputs.
  std::vector<Array> forward(const std::vector<View>& inputs) const;
  /// The outputs and their tangents along tangents of the inputs, of which nullopt is zero.
  Tangents jvp(const std::vector<View>& inputs, const std::vector<std::optional<View>>& tangents) const;
  /// The outputs and the inputs' cotangents for cotangents of the outputs, of which nullopt is zero. An input that no
  /// output depends on gets zeros.
  Cotangents vjp(const std::vector<View>& inputs, const std::vector<std::optional<View>>& cotangents) const;

  /// The same into memory of the caller's, which must not overlap. Allocates nothing, except that threads of the
  /// library get their working memory when they first need it. An error while nodes run leaves outputs half written.
  void run(std::span<const View> inputs, std::span<const MutableView> outputs, Workspace& workspace) const;
  void run_jvp(std::span<const View> inputs, std::span<const View> tangents, std::span<const MutableView> outputs,
               std::span<const MutableView> output_tangents, Workspace& workspace) const;
  void run_vjp(std::span<const View> inputs, std::span<const View> cotangents, std::span<const MutableView> outputs,
               std::span<const MutableView> input_cotangents, Workspace& workspace) const;

  /// A program of inputs, then tangents of those that are floating-point; its outputs are the outputs, then their
  /// tangents. Made on first use, as is the next.
  Program jvp_program() const;
  /// A program of inputs, then cotangents of the outputs that are floating-point; its outputs are the cotangents of the
  /// inputs that are floating-point. Its own jvp and vjp are second derivatives.
  Program vjp_program() const;

  /// Operations that a run executes, and the buffers that their values share.
  int node_count() const noexcept;
  int buffer_count() const noexcept;
  /// What a Workspace for `run` holds.
  std::int64_t workspace_bytes() const noexcept;
  /// One line per node: number, operation, what it reads, type, shape, and the buffer or output it writes.
  std::string describe() const;
  /// The same as a Graphviz graph.
  std::string dot() const;

  struct Impl;
  explicit Program(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<const Impl>& impl() const noexcept { return impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace cenote::graph
