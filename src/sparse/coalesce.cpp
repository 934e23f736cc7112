// Duplicate rows made one.
#include <cmath>
#include <type_traits>

#include <cenote/sparse_tensor.h>

#include "sparse/support.h"
#include "sparse/tensor.h"

namespace cenote {

using namespace sparse;

namespace {

/// The wider of a float and its storage: halves are summed in f32 and rounded once.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
Sum<T> merge_channel(const T* x, std::int64_t width, const std::int32_t* rows, std::int64_t n, Merge merge) {
  auto result = static_cast<Sum<T>>(x[rows[0] * width]);
  for (std::int64_t i = 1; i < n && merge != Merge::first; ++i) {
    const auto value = static_cast<Sum<T>>(x[rows[i] * width]);
    if (merge == Merge::max)
      result = result != result || result >= value ? result : value;
    else if (merge == Merge::min)
      result = result != result || result <= value ? result : value;
    else
      result += value;
  }
  return merge == Merge::mean ? result / static_cast<Sum<T>>(n) : result;
}

template <class T>
void merge_rows(const Array& feats, const Buffer<std::int64_t>& offsets, const Buffer<std::int32_t>& order, Merge merge,
                Array& merged) {
  const std::int64_t width = feats.shape()[1];
  const T* x = feats.values<T>().data();
  T* y = merged.values<T>().data();
  for_chunks(Chunks::of(merged.shape()[0], 1 << 10), [&](std::int64_t, std::int64_t first, std::int64_t last) {
    for (std::int64_t o = first; o < last; ++o) {
      const std::int32_t* rows = order.data() + offsets[o];
      for (std::int64_t c = 0; c < width; ++c)
        y[o * width + c] = static_cast<T>(merge_channel(x + c, width, rows, offsets[o + 1] - offsets[o], merge));
    }
  });
}

}  // namespace

SparseTensor SparseTensor::coalesce(Merge merge) const {
  if (coordinates_->known_unique()) return *this;
  Quotient found = distinct("coalesce", coordinates_->impl());
  const std::int64_t n = found.coords->rows();
  Buffer<std::int64_t> offsets(n + 1);
  Buffer<std::int32_t> order(rows());
  group_positions(found.row_of.values<std::int32_t>().data(), rows(), n, offsets.data(), order.data());
  Array merged(type(), {n, channels()});
  visit(type(), [&]<class T>(T) {
    if constexpr (is_float(type_of<T>)) merge_rows<T>(*feats_, offsets, order, merge, merged);
  });
  return SparseTensor(std::move(found.coords), std::move(merged), stride_);
}

SparseTensor SparseTensor::coalesced(const View& coords, const View& feats, Merge merge,
                                     const CoordinateOptions& options, const PerAxis& stride) {
  CoordinateOptions with_duplicates = options;
  with_duplicates.assume_unique = true;
  return SparseTensor(coords, feats, with_duplicates, stride).coalesce(merge);
}

}  // namespace cenote
