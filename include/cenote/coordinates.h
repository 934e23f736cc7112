// The rows of a sparse tensor: a set of lattice points, immutable and shared by every tensor that has the same rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cenote/array.h>
#include <cenote/extents.h>
#include <cenote/types.h>

namespace cenote {

class Relation;
struct Kernel;
struct RelateOptions;

/// The highest lattice dimension; a row of coordinates has one number more, the batch.
inline constexpr int max_lattice_dimension = 6;

/// What a caller says about coordinates beside the numbers themselves.
struct CoordinateOptions {
  /// The number of rows of each batch, checked against the batch column. Trailing empty batches are allowed.
  std::optional<std::vector<std::int64_t>> batch_counts{};
  /// The number of batches, at least the highest batch id + 1; that is also its default.
  std::optional<std::int64_t> batch_size{};
  /// Only the first so many rows count; those after them are capacity and are left out.
  std::optional<std::int64_t> active_rows{};
  /// Skips the search for duplicate rows. Where the promise does not hold, relations are unspecified but safe.
  bool assume_unique = false;
};

/// Lattice points of one dimension, in a fixed order, at most 2^31 - 1 of them.
/// All members may be called from several threads at once.
class Coordinates : public std::enable_shared_from_this<Coordinates> {
 public:
  /// Copies rows (batch, then 1 to 6 lattice coordinates) of i32 or i64. Throws std::invalid_argument for a negative
  /// batch id, for duplicate rows (naming two of them), and for options that do not fit the rows.
  static std::shared_ptr<const Coordinates> make(const View& coords, const CoordinateOptions& options = {});

  int dimension() const noexcept;
  std::int64_t rows() const noexcept;
  /// The number of batches.
  std::int64_t batch_size() const noexcept;
  /// i32 or i64.
  Type type() const noexcept;
  /// The rows, (rows, 1 + dimension).
  const Array& array() const;
  /// The number of rows of each batch.
  const std::vector<std::int64_t>& batch_counts() const;

  /// The smallest and the largest number of each column, batch first. Without rows both are zeros.
  Extents low() const;
  Extents high() const;
  /// Whether the rows were seen to differ, or do so by the way they were made; false where it was only assumed.
  bool known_unique() const noexcept;
  /// Whether the rows are known to be in Morton order: batch by batch, nearby points near each other.
  bool morton_ordered() const noexcept;
  /// The rows as i32 in Morton order: by batch, then by the signs of all axes, then by their bits from the highest
  /// level down, the first axis first at each. It depends on the points alone, not on their range. Throws
  /// std::invalid_argument where the range of the coordinates does not fit 128 bits.
  Array morton_order() const;
  /// The same points in Morton order; itself where they are in that order and known to be.
  std::shared_ptr<const Coordinates> sorted() const;

  /// relate(*this, kernel, options), built once and kept with the coordinates. Relations onto targets are not kept.
  Relation relation(const Kernel& kernel, const RelateOptions& options) const;
  Relation relation(const Kernel& kernel) const;
  /// The keys of the relations kept so far, such as "lattice k(2, 2, 2) s(2, 2, 2) p(0, 0, 0) d(1, 1, 1) first_seen".
  std::vector<std::string> kept_relations() const;

  Coordinates(const Coordinates&) = delete;
  Coordinates& operator=(const Coordinates&) = delete;
  ~Coordinates();

  struct Impl;
  /// For the library itself.
  explicit Coordinates(std::unique_ptr<Impl> impl);
  const Impl& impl() const noexcept { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace cenote
