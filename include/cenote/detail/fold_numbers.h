// The arrays of a fold's derivatives as plain and dual numbers, and the checks of what a caller hands in.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <cenote/array.h>
#include <cenote/detail/fold_space.h>
#include <cenote/dual.h>
#include <cenote/types.h>

namespace cenote::detail {

/// Rejects an x of a type that has no derivative.
void check_differentiable(const View& x);
/// Rejects a tangent or cotangent that is not of the given type and shape; `what` is its name.
void check_direction(const char* what, const View& view, Type type, const Extents& shape);

/// The elements in row-major order, in the type that they compute in.
Array to_numbers(const View& elements);
/// Numbers, rounded to the type they stand for.
Array from_numbers(Array numbers, Type type);

/// Elements that are worth a thread's while to copy.
inline constexpr std::int64_t copied_at_once = 1 << 16;

template <class C>
using DualNumbers = std::unique_ptr<Dual<C>[]>;

/// Values with their tangents, or with tangents of 0 if those are null.
template <class C>
DualNumbers<C> join(const Array& values, const Array* tangents) {
  auto result = std::make_unique_for_overwrite<Dual<C>[]>(static_cast<std::size_t>(values.size()));
  const C* value = static_cast<const C*>(values.data());
  const C* tangent = tangents ? static_cast<const C*>(tangents->data()) : nullptr;
  parallel_parts(values.size(), copied_at_once, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) result[i] = Dual<C>(value[i], tangent ? tangent[i] : C{0});
  });
  return result;
}

/// One part of dual numbers as an array of `type`.
template <class C>
Array part(const DualNumbers<C>& numbers, C Dual<C>::*member, Type type, const Extents& shape) {
  Array result(type_of<C>, shape);
  C* to = static_cast<C*>(result.data());
  parallel_parts(result.size(), copied_at_once, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = numbers[i].*member;
  });
  return from_numbers(std::move(result), type);
}

}  // namespace cenote::detail
