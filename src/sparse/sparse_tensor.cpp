// Sparse tensors: checks, Morton order, slices, and the way to and from dense arrays.
#include <cenote/sparse_tensor.h>

#include <algorithm>
#include <cstring>

#include "core/copy.h"
#include "core/reject.h"
#include "core/views.h"
#include "sparse/store.h"
#include "sparse/tensor.h"

namespace cenote {

using namespace sparse;

namespace {

constexpr std::string_view who = "SparseTensor";

Extents check_stride(const PerAxis& stride, int dimension) {
  const Extents& given = stride.values();
  if (!stride.is_scalar() && given.size() != dimension)
    reject(who, "stride = ", given, ": must be one integer or one per lattice axis, and coords have ", 1 + dimension,
           " columns, the batch and ", dimension, " axes");
  const Extents result = stride.is_scalar() ? Extents::filled(dimension, given[0]) : given;
  for (int a = 0; a < dimension; ++a)
    if (result[a] < 1) reject(who, "stride[", a, "] = ", result[a], ": must be at least 1");
  return result;
}

template <class T>
double to_double(T value) {
  if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return static_cast<double>(static_cast<float>(value));
}

template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return static_cast<T>(static_cast<float>(value));
}

}  // namespace

namespace sparse {

void check_feats(const View& feats, std::int64_t rows) {
  if (!is_float(feats.type)) reject(who, "feats of ", name(feats.type), ": must be f16, bf16, f32 or f64");
  if (feats.rank() != 2 || feats.shape[1] < 0)
    reject(who, "feats of shape ", feats.shape, ": must be (rows, channels)");
  if (feats.shape[0] != rows) reject(who, "feats of shape ", feats.shape, ": must have as many rows as coords, ", rows);
  if (element_count(feats.shape) > 0) check_memory(who, "feats", feats);
}

Array active_feats(const View& feats, std::int64_t rows) {
  View active = feats;
  active.shape[0] = rows;
  return Array(active);
}

}  // namespace sparse

SparseTensor::SparseTensor(const View& coords, const View& feats, const CoordinateOptions& options,
                           const PerAxis& stride) {
  if (coords.rank() > 0) check_feats(feats, coords.shape[0]);
  coordinates_ = Coordinates::make(coords, options);
  stride_ = check_stride(stride, coordinates_->dimension());
  feats_ = std::make_shared<const Array>(active_feats(feats, coordinates_->rows()));
}

SparseTensor::SparseTensor(std::shared_ptr<const Coordinates> coordinates, Array feats, const PerAxis& stride) {
  if (!coordinates) reject(who, "coordinates is null: coordinates are needed");
  check_feats(feats, coordinates->rows());
  stride_ = check_stride(stride, coordinates->dimension());
  coordinates_ = std::move(coordinates);
  feats_ = std::make_shared<const Array>(std::move(feats));
}

SparseTensor SparseTensor::sorted() const {
  if (coordinates_->morton_ordered()) return *this;
  const Array order = coordinates_->morton_order();
  return SparseTensor(coordinates_->sorted(), take_rows(*feats_, order.values<std::int32_t>().data(), rows()), stride_);
}

SparseTensor SparseTensor::batch(std::int64_t b) const {
  if (b < 0 || b >= batch_size())
    reject(who, "batch(", b, "): must be at least 0 and below batch_size, ", batch_size());
  const Rows all = coordinates_->impl().view();
  std::vector<std::int32_t> order;
  for (std::int64_t i = 0; i < rows(); ++i)
    if (all.at(i, 0) == b) order.push_back(static_cast<std::int32_t>(i));
  const auto n = static_cast<std::int64_t>(order.size());
  Array slice = take_rows(coords(), order.data(), n);
  for (std::int64_t i = 0; i < n; ++i) {
    if (all.wide)
      slice.values<std::int64_t>()[static_cast<std::size_t>(i * all.columns)] = 0;
    else
      slice.values<std::int32_t>()[static_cast<std::size_t>(i * all.columns)] = 0;
  }
  CoordinateOptions options;
  options.batch_size = 1;
  options.assume_unique = true;
  const Range range = range_of(Rows(slice));
  auto made =
      coordinates_->known_unique() ? made_coordinates(std::move(slice), range, 1) : Coordinates::make(slice, options);
  return SparseTensor(std::move(made), take_rows(*feats_, order.data(), n), stride_);
}

Array SparseTensor::to_dense(const Extents& extent, double fill) const {
  if (extent.size() != dimension())
    reject("to_dense", "extent ", extent, ": must have one number per lattice axis, ", dimension());
  const Rows all = coordinates_->impl().view();
  for (int a = 1; a <= dimension(); ++a) {
    if (extent[a - 1] < 0) reject("to_dense", "extent[", a - 1, "] = ", extent[a - 1], ": must be at least 0");
    for (std::int64_t i = 0; i < rows(); ++i)
      if (all.at(i, a) < 0 || all.at(i, a) >= extent[a - 1])
        reject("to_dense", "coords row ", i, " is ", row_text(all, i), ": coordinate ", a - 1, " must be in [0, ",
               extent[a - 1], "), the extent");
  }
  Extents shape{batch_size(), channels()};
  for (const std::int64_t n : extent) shape.push_back(n);
  Array dense(type(), shape);
  const std::int64_t plane = element_count(extent), width = channels();
  visit(type(), [&]<class T>(T) {
    if constexpr (is_float(type_of<T>)) {
      T* to = dense.values<T>().data();
      const T* from = feats_->values<T>().data();
      std::fill_n(to, dense.size(), from_double<T>(fill));
      for (std::int64_t i = 0; i < rows(); ++i) {
        std::int64_t cell = 0;
        for (int a = 1; a <= dimension(); ++a) cell = cell * extent[a - 1] + all.at(i, a);
        for (std::int64_t c = 0; c < width; ++c) to[(all.at(i, 0) * width + c) * plane + cell] = from[i * width + c];
      }
    }
  });
  return dense;
}

namespace {

/// The cells with a channel other than `fill`: their positions batch * plane + cell, ascending.
template <class T>
std::vector<std::int64_t> filled_cells(const T* x, std::int64_t batches, std::int64_t channels, std::int64_t plane,
                                       double fill) {
  std::vector<std::int64_t> cells;
  for (std::int64_t b = 0; b < batches; ++b) {
    for (std::int64_t cell = 0; cell < plane; ++cell) {
      bool differs = false;
      for (std::int64_t c = 0; c < channels && !differs; ++c) {
        const double value = to_double(x[(b * channels + c) * plane + cell]);
        differs = !(value == fill || (value != value && fill != fill));
      }
      if (differs) cells.push_back(b * plane + cell);
    }
  }
  return cells;
}

}  // namespace

SparseTensor SparseTensor::from_dense(const View& dense, double fill) {
  if (!is_float(dense.type)) reject("from_dense", "an array of ", name(dense.type), ": must be f16, bf16, f32 or f64");
  const int dimension = dense.rank() - 2;
  if (dimension < 1 || dimension > max_lattice_dimension)
    reject("from_dense", "an array of shape ", dense.shape, ": must be (batch, channels, n1 … nD), D from 1 to ",
           max_lattice_dimension);
  if (element_count(dense.shape) > 0) check_memory("from_dense", "the array", dense);
  const Array x(dense);
  const std::int64_t batches = x.shape()[0], channels = x.shape()[1];
  std::int64_t plane = 1;
  bool wide = false;
  for (int a = 2; a < x.rank(); ++a) {
    plane *= x.shape()[a];
    wide = wide || x.shape()[a] > INT32_MAX;
  }
  const auto cells = visit(x.type(), [&]<class T>(T) -> std::vector<std::int64_t> {
    if constexpr (is_float(type_of<T>))
      return filled_cells(x.values<T>().data(), batches, channels, x.size() > 0 ? plane : 0, fill);
    else
      return {};
  });
  const auto n = static_cast<std::int64_t>(cells.size());
  if (n > most_rows) reject("from_dense", n, " rows: there may be at most ", most_rows);
  Array coords(Type::i64, {n, 1 + dimension}), feats(x.type(), {n, channels});
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t at = cells[static_cast<std::size_t>(i)];
    const std::int64_t batch = at / plane, cell = at % plane;
    const std::size_t bytes = size_of(x.type());
    for (std::int64_t c = 0; c < channels; ++c)
      std::memcpy(static_cast<std::byte*>(feats.data()) + static_cast<std::size_t>(i * channels + c) * bytes,
                  static_cast<const std::byte*>(x.data()) +
                      static_cast<std::size_t>((batch * channels + c) * plane + cell) * bytes,
                  bytes);
    at = cell;
    for (int a = dimension; a >= 1; --a) {
      coords.at<std::int64_t>({i, a}) = at % x.shape()[a + 1];
      at /= x.shape()[a + 1];
    }
    coords.at<std::int64_t>({i, 0}) = batch;
  }
  if (!wide) {
    Array narrow(Type::i32, coords.shape());
    convert_line(Type::i32, narrow.data(), Type::i64, coords.data(), 1, coords.size());
    coords = std::move(narrow);
  }
  const Range range = range_of(Rows(coords));
  return SparseTensor(made_coordinates(std::move(coords), range, batches), std::move(feats));
}

}  // namespace cenote
