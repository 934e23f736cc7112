// Relations: which input rows feed which output rows of a sparse pooling, built once and used many times.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <cenote/array.h>
#include <cenote/coordinates.h>
#include <cenote/extents.h>

namespace cenote {

/// A sparse window. Offsets per axis are -(k/2)..k/2 for an odd and 0..k-1 for an even size, times the dilation.
struct Kernel {
  PerAxis size = 2;
  PerAxis stride = 2;
  PerAxis padding = 0;
  PerAxis dilation = 1;
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// Which outputs exist, and where their windows lie. The input of an edge is at output * stride + offset - padding.
enum class Policy : std::uint8_t {
  /// mlx-lattice: outputs are floor(c / stride) of every input.
  lattice,
  /// Offsets 0..k-1; outputs are those whose window holds an input, as in a pooling of the dense array.
  dense,
  /// MinkowskiEngine: as lattice without padding, but with offsets 0..k-1 where size = stride on every axis.
  minkowski
};

/// The order of output rows. first_seen: as the inputs reach them, and for one input in lexicographic order (at a
/// transposed relation: by kernel id). sorted: lexicographic, batch first.
enum class Order : std::uint8_t { first_seen, sorted };

/// How rows are found. Both give the same relation.
enum class Engine : std::uint8_t { automatic, sorted, hashed };

struct RelateOptions {
  Policy policy = Policy::lattice;
  /// Policy dense: the size of the dense array. Coordinates outside it are an error, and outputs are those that a
  /// pooling of it has, with the same padding on both sides.
  std::optional<Extents> extent{};
  /// The output rows, in this order; those without inputs stay empty. Excludes `order`.
  std::shared_ptr<const Coordinates> targets{};
  /// The default is first_seen; for policy dense it is sorted.
  std::optional<Order> order{};
  Engine engine = Engine::automatic;
};

/// A relation as plain arrays, to be stored. All are checked when they are loaded.
struct RelationArrays {
  /// i32, one number per edge, sorted by (out_row, kernel_id).
  Array in_row, out_row, kernel_id;
  /// The output rows, (outputs, 1 + dimension), i32 or i64.
  Array coords;
  /// i64 (4, dimension): size, stride, padding, dilation.
  Array kernel;
  /// i64 (4): the number of inputs, the number of batches, the policy, 1 for a transposed relation.
  Array facts;
};

/// Edges between the rows of two coordinate sets. Cheap to copy; immutable; all members may be called from several
/// threads at once. Arrays that a route does not need are made when they are first asked for.
class Relation {
 public:
  /// Checks that the arrays fit each other and the input; throws std::invalid_argument where an edge is out of range,
  /// out of order, or not where its kernel id leads. That no edge is missing is not checked.
  static Relation load(std::shared_ptr<const Coordinates> input, const RelationArrays& arrays);
  RelationArrays save() const;

  std::int64_t inputs() const noexcept;
  std::int64_t outputs() const noexcept;
  std::int64_t edges() const noexcept;
  const std::shared_ptr<const Coordinates>& input() const noexcept { return input_; }
  std::shared_ptr<const Coordinates> output() const noexcept;
  /// The kernel with one number per axis.
  Kernel kernel() const;
  /// The product of the kernel's sizes: kernel ids are below it.
  std::int64_t volume() const noexcept;
  bool transposed() const noexcept;

  /// One number per edge, i32; edges are sorted by (out_row, kernel_id).
  const Array& in_row() const;
  const Array& out_row() const;
  const Array& kernel_id() const;
  /// i64 (outputs + 1): the edges of output o are [row_offsets[o], row_offsets[o + 1]).
  const Array& row_offsets() const;

  /// i64 (inputs + 1) and i64 (edges): input i is in the edges input_edges[input_offsets[i] … input_offsets[i + 1]),
  /// ascending.
  const Array& input_offsets() const;
  const Array& input_edges() const;

  /// Where the kernel lets every input feed at most one output: i32 (inputs), that output's row or -1. Otherwise, and
  /// for transposed and loaded relations, nullptr.
  const Array* group() const;
  /// Whether the edges of every output are consecutive inputs and in_row counts 0, 1, 2, …
  bool contiguous() const noexcept;

  /// The route by which the relation was built and why, in a sentence.
  std::string explain() const;

  struct Impl;
  /// For the library itself.
  Relation(std::shared_ptr<const Coordinates> input, std::shared_ptr<const Impl> impl)
      : input_(std::move(input)), impl_(std::move(impl)) {}
  const std::shared_ptr<const Impl>& impl() const noexcept { return impl_; }

 private:
  std::shared_ptr<const Coordinates> input_;
  std::shared_ptr<const Impl> impl_;
};

/// The relation of a sparse pooling. Coordinates are computed in 64 bits; candidates that the lattice or the type of
/// the coordinates does not have are absent. Throws std::invalid_argument for a kernel that is not one, and where the
/// range of the coordinates does not fit a key of 128 bits.
Relation relate(const std::shared_ptr<const Coordinates>& coords, const Kernel& kernel,
                const RelateOptions& options = {});

/// The relation of a transposed pooling: input c feeds c * stride + j * dilation - padding, j in 0..k-1 per axis.
/// Output rows are first seen by (input row, j), or the targets.
Relation relate_transposed(const std::shared_ptr<const Coordinates>& coords, const Kernel& kernel,
                           const std::shared_ptr<const Coordinates>& targets = nullptr,
                           Engine engine = Engine::automatic);

}  // namespace cenote
