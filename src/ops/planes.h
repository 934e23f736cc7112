// Moves between an array and places in the planes of a larger one, which plane indices name.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <cenote/array.h>
#include <cenote/pooling.h>

namespace cenote {

/// Which axes of an array of shape `whole` are planes, and that arrays of shape `part` with i64 indices fit it.
class Planes {
 public:
  /// Throws std::invalid_argument; `who` stands in the errors.
  Planes(std::string who, const Extents& part, const Extents& whole, const Plane& plane);

  /// Every index must lie in its plane.
  void check(const View& indices) const;

  // Precondition below: checked indices, shapes as given, equal types. None allocates.
  /// Writes part into whole, which holds zeros where nothing is written; of several, the last in row-major order stays.
  void put(const View& part, const View& indices, const MutableView& whole) const;
  /// Reads part from whole.
  void take(const View& whole, const View& indices, const MutableView& part) const;
  /// As take, but 0 for all that `put` would overwrite. `order` has an i64 for each element of whole.
  void take_last(const View& whole, const View& indices, const MutableView& part, std::int64_t* order) const;
  /// The adjoint of take: sums at the indices, in row-major order; halves are summed in f32. `sums` has room for whole
  /// in the compute type.
  void add(const View& part, const View& indices, const MutableView& whole, void* sums) const;

 private:
  struct Loop {
    std::int64_t n = 1, part = 0, index = 0, whole = 0;
  };
  struct Layout;
  Layout lay_out(const Extents& part_strides, const Extents& index_strides, const Extents& whole_strides) const;
  /// Calls visit(part, index, whole) with the place of every element, those of one plane in row-major order and from
  /// one thread.
  template <class Visit>
  void each(const Layout& layout, const View& indices, const Visit& visit) const;

  std::string who_;
  Extents part_, whole_, pooled_;
  std::int64_t plane_size_ = 1;
};

}  // namespace cenote
