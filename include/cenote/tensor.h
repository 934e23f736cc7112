// Eager tensors, after mygrad: arrays that remember how they were made, so that backward() can say how they matter.
#pragma once

#include <memory>
#include <optional>

#include <cenote/array.h>
#include <cenote/plan.h>
#include <cenote/pooling.h>
#include <cenote/row_pooling.h>

namespace cenote {

namespace graph {
struct UserNode;
}

/// A handle of an array, of the operation that made it, and of its gradient; copies of a handle share all three.
/// A tensor, and those that were made of it, may be used by one thread at a time.
class Tensor {
 public:
  /// Floating-point data is a variable unless `constant` is true. Integers and bool are constants: for them false
  /// throws std::invalid_argument.
  explicit Tensor(Array data, std::optional<bool> constant = std::nullopt);

  const Array& data() const noexcept;
  Type type() const noexcept { return data().type(); }
  const Extents& shape() const noexcept { return data().shape(); }
  /// True if no gradient flows into the tensor.
  bool constant() const noexcept;

  /// The gradient of the last backward() that reached the tensor, of its type and shape; null before, and after the
  /// tensor was used in a new operation.
  std::shared_ptr<const Array> grad() const noexcept;
  /// Forgets the gradient.
  const Tensor& null_grad() const noexcept;

  /// Leaves on every variable that the tensor was made of the gradient of the tensor's sum, then releases the graph.
  /// On a constant it only releases the graph. Throws InvalidBackprop where a part of the graph was released before.
  void backward() const;
  /// The same for the sum of the tensor times `grad`, of the tensor's type, which must broadcast to its shape.
  void backward(const View& grad) const;

  Tensor sum(std::optional<bool> constant = {}) const;
  Tensor mean(std::optional<bool> constant = {}) const;
  Tensor reshape(const Extents& shape, std::optional<bool> constant = {}) const;

  struct Node;
  explicit Tensor(std::shared_ptr<Node> node) noexcept;
  const std::shared_ptr<Node>& node() const noexcept { return node_; }

 private:
  std::shared_ptr<Node> node_;
};

/// While one lives, operations of its thread do not record: their results remember nothing and no gradient is cleared.
class NoAutodiff {
 public:
  NoAutodiff() noexcept;
  ~NoAutodiff();
  NoAutodiff(const NoAutodiff&) = delete;
  NoAutodiff& operator=(const NoAutodiff&) = delete;
};

// The result of an operation is a constant if all its inputs are, or if `constant` is true, which also stops gradients.

// Binary operations broadcast as NumPy does and want equal floating-point types; a number takes the tensor's type.
Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, double b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, double b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, double b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, double b);
Tensor operator/(double a, const Tensor& b);
Tensor operator-(const Tensor& x);

/// The operators by name, for those who want to say `constant`.
Tensor add(const Tensor& a, const Tensor& b, std::optional<bool> constant = {});
Tensor subtract(const Tensor& a, const Tensor& b, std::optional<bool> constant = {});
Tensor multiply(const Tensor& a, const Tensor& b, std::optional<bool> constant = {});
Tensor divide(const Tensor& a, const Tensor& b, std::optional<bool> constant = {});
Tensor negative(const Tensor& x, std::optional<bool> constant = {});

Tensor exp(const Tensor& x, std::optional<bool> constant = {});
Tensor log(const Tensor& x, std::optional<bool> constant = {});
/// max(x, 0); the derivative at 0 is 0.
Tensor relu(const Tensor& x, std::optional<bool> constant = {});
/// The sum and the mean of all elements, of rank 0. Without elements they are 0 and NaN.
Tensor sum(const Tensor& x, std::optional<bool> constant = {});
Tensor mean(const Tensor& x, std::optional<bool> constant = {});
/// The same elements under another shape, of which one extent may be -1.
Tensor reshape(const Tensor& x, const Extents& shape, std::optional<bool> constant = {});

// The poolings, as in pooling.h.
Tensor pool(const Tensor& x, const Pooling& pooling, std::optional<bool> constant = {});
Tensor max_pool(const Tensor& x, const Window& window, std::optional<bool> constant = {});
Tensor min_pool(const Tensor& x, const Window& window, std::optional<bool> constant = {});
Tensor sum_pool(const Tensor& x, const Window& window, std::optional<Type> dtype = {},
                std::optional<bool> constant = {});
Tensor avg_pool(const Tensor& x, const Window& window, Divisor divisor = Divisor::Rule::window,
                std::optional<bool> constant = {});
Tensor smooth_max_pool(const Tensor& x, const Window& window, double beta, SmoothPadding pad = SmoothPadding::zero,
                       std::optional<bool> constant = {});
Tensor lp_pool(const Tensor& x, const Window& window, double p, std::optional<bool> constant = {});
Tensor adaptive_max_pool(const Tensor& x, const Adaptive& region, std::optional<bool> constant = {});
Tensor adaptive_avg_pool(const Tensor& x, const Adaptive& region, std::optional<bool> constant = {});
Tensor global_max_pool(const Tensor& x, const Global& region = {}, std::optional<bool> constant = {});
Tensor global_min_pool(const Tensor& x, const Global& region = {}, std::optional<bool> constant = {});
Tensor global_sum_pool(const Tensor& x, const Global& region = {}, std::optional<Type> dtype = {},
                       std::optional<bool> constant = {});
Tensor global_avg_pool(const Tensor& x, const Global& region = {}, std::optional<bool> constant = {});
Tensor max_unpool(const Tensor& y, const View& indices, const Extents& shape, const Plane& plane = {},
                  std::optional<bool> constant = {});

/// A pooling of the rows of a sparse tensor: x is its features.
Tensor pool(const Tensor& x, const RowPooling& pooling, std::optional<bool> constant = {});

/// An operation of the caller's own with one output, as in graph.h: its forward and, for backward(), its vjp.
Tensor call(const graph::UserNode& node, const Tensor& x, std::optional<bool> constant = {});

/// mygrad.nnet: the same operation under mygrad's parameters.
namespace nnet {

/// Max-pooling over the last pool.size() axes; windows must end where the data ends, a remainder is an error.
Tensor max_pool(const Tensor& x, const Extents& pool, const PerAxis& stride, std::optional<bool> constant = {});

}  // namespace nnet
}  // namespace cenote
