// Sparse tensors from arrays and back, coordinates exact or refused.
#include "sparse_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <fmt/core.h>

#include <io/npy.h>

#include "arguments.h"
#include "numbers.h"

namespace cenote::cli {
namespace {

// The columns of an array from `first` on.
View columns(const View& rows, std::int64_t first, std::int64_t count) {
  View part = rows;
  const auto bytes = static_cast<std::int64_t>(size_of(rows.type));
  if (element_count(rows.shape) > 0)
    part.data = static_cast<const std::byte*>(rows.data) + first * rows.strides[1] * bytes;
  part.shape[1] = count;
  return part;
}

// An element as a whole number, if it is one of 64 bits.
template <class T>
std::optional<std::int64_t> whole(T value) {
  if constexpr (std::is_integral_v<T>) {
    if (std::cmp_greater(value, INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(value);
  } else {
    const double number =
        static_cast<double>(static_cast<std::conditional_t<std::is_same_v<T, double>, T, float>>(value));
    if (!(number >= -0x1p63 && number < 0x1p63) || std::floor(number) != number) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
}

template <class T>
auto printed(T value) {
  if constexpr (std::is_arithmetic_v<T>)
    return value;
  else
    return static_cast<float>(value);
}

Array whole_numbers(const std::string& path, const View& view) {
  const Array rows(view);
  Array result(Type::i64, view.shape);
  const auto to = result.values<std::int64_t>();
  const auto width = static_cast<std::size_t>(view.shape[1]);
  visit(view.type, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) {
      const auto from = rows.values<T>();
      for (std::size_t i = 0; i < to.size(); ++i) {
        const auto number = whole(from[i]);
        if (!number) {
          throw std::invalid_argument(fmt::format("{}: row {}, column {} = {}: {} must be a whole number of 64 bits",
                                                  path, i / width, i % width, printed(from[i]),
                                                  i % width == 0 ? "a batch" : "a coordinate"));
        }
        to[i] = *number;
      }
    }
  });
  return result;
}

Array floating(const std::string& path, const View& features) {
  return is_float(features.type) ? Array(features) : to_doubles(path, features);
}

void require_numbers(const std::string& path, const View& view) {
  if (view.rank() != 2) {
    throw std::invalid_argument(fmt::format("{}: shape {}: rows and columns are needed", path, to_string(view.shape)));
  }
  if (view.type == Type::boolean) throw std::invalid_argument(path + ": type bool: must be numbers");
}

SparseRows read_joined(const RowSource& source, const View& rows) {
  const std::int64_t head = 1 + *source.dimension;
  if (rows.shape[1] <= head) {
    reject_value("--dims", std::to_string(*source.dimension),
                 fmt::format("{} has {} columns: batch, {} coordinates and at least one feature need {}", source.path,
                             rows.shape[1], *source.dimension, head + 1));
  }
  return {whole_numbers(source.path, columns(rows, 0, head)),
          floating(source.path, columns(rows, head, rows.shape[1] - head)), rows.type};
}

SparseRows read_two(const RowSource& source, const View& feats) {
  const io::NpyFile file(*source.coords);
  const View& coords = file.view();
  if (coords.type != Type::i32 && coords.type != Type::i64)
    reject_value("--coords", *source.coords, fmt::format("type {}: must be i32 or i64", name(coords.type)));
  if (coords.rank() != 2 || coords.shape[1] < 2 || coords.shape[1] > 1 + max_lattice_dimension) {
    reject_value("--coords", *source.coords,
                 fmt::format("shape {}: must be (rows, 1 + D), batch first, D from 1 to {}", to_string(coords.shape),
                             max_lattice_dimension));
  }
  if (coords.shape[0] != feats.shape[0]) {
    reject_value("--coords", *source.coords,
                 fmt::format("{} rows: must be {}, as many as {} has", coords.shape[0], feats.shape[0], source.path));
  }
  return {Array(coords), floating(source.path, feats), feats.type};
}

// Rejects results that a type of integers, or f64 before it, does not hold. Infinities are those of empty outputs.
void require_fit(const Array& results, Type type) {
  const auto width = static_cast<std::size_t>(results.shape()[1]);
  visit(type, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      const double low = std::max(static_cast<double>(Limits::lowest()), -exact_integers);
      const double high = std::min(static_cast<double>(Limits::max()), exact_integers);
      const auto values = results.values<double>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        if ((values[i] >= low && values[i] <= high) || std::isinf(values[i])) continue;
        throw std::invalid_argument(
            fmt::format("output row {}, feature {}: {} must be from {} to {}: store the features as f64", i / width,
                        i % width, values[i], low, high));
      }
    }
  });
}

template <class T>
T exact_coordinate(std::int64_t value, Type type) {
  const auto stored = [&] {
    if constexpr (std::is_arithmetic_v<T>)
      return static_cast<T>(value);
    else
      return static_cast<T>(static_cast<float>(value));
  }();
  if (whole(stored) == value) return stored;
  throw std::invalid_argument(fmt::format(
      "coordinate {} of the output is not exact in {}: keep coordinates apart with --coords and --out-coords", value,
      name(type)));
}

}  // namespace

SparseRows read_rows(const RowSource& source) {
  const io::NpyFile file(source.path, source.type);
  require_numbers(source.path, file.view());
  return source.coords ? read_two(source, file.view()) : read_joined(source, file.view());
}

Array stored_features(const SparseTensor& y, Reducer reducer, Type input) {
  const bool stays = reducer == Reducer::sum || reducer == Reducer::max || reducer == Reducer::min;
  if (is_float(input) || !stays) return y.feats();
  require_fit(y.feats(), input);
  return from_doubles(y.feats(), input);
}

Array joined(const Array& coords, const Array& feats) {
  const auto rows = static_cast<std::size_t>(coords.shape()[0]);
  const auto head = static_cast<std::size_t>(coords.shape()[1]), tail = static_cast<std::size_t>(feats.shape()[1]);
  Array result(feats.type(), {coords.shape()[0], coords.shape()[1] + feats.shape()[1]});
  const Array wide = coords.type() == Type::i64 ? coords : whole_numbers("coords", coords);
  const auto points = wide.values<std::int64_t>();
  visit(feats.type(), [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) {
      const auto to = result.values<T>();
      const auto features = feats.values<T>();
      for (std::size_t r = 0; r < rows; ++r) {
        T* row = to.data() + r * (head + tail);
        for (std::size_t c = 0; c < head; ++c) row[c] = exact_coordinate<T>(points[r * head + c], feats.type());
        std::copy_n(features.data() + r * tail, tail, row + head);
      }
    }
  });
  return result;
}

}  // namespace cenote::cli
