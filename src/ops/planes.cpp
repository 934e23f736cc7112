// Moves between an array and places in the planes of a larger one, and max_unpool, which is one of them.
#include "ops/planes.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include <cenote/detail/fold_space.h>

#include "core/checked.h"
#include "core/copy.h"
#include "core/reject.h"
#include "core/views.h"
#include "plan/geometry.h"

namespace cenote {
namespace {

bool contains(const Extents& list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Only the size of an element matters where it is copied.
template <class Visit>
void visit_size(Type type, const Visit& visit) {
  switch (size_of(type)) {
    case 1: return visit(std::uint8_t{});
    case 2: return visit(std::uint16_t{});
    case 4: return visit(std::uint32_t{});
    default: return visit(std::uint64_t{});
  }
}

}  // namespace

/// Slices are the kept axes, each with planes of its own; `line` is the last axis, pooled or not.
struct Planes::Layout {
  std::array<Loop, max_rank> slices{}, inside{};
  std::size_t slice_count = 0, inside_count = 0;
  Loop line;
  // Extents and strides of the plane, innermost first; one entry if the pooled axes are neighbours.
  std::array<std::pair<std::int64_t, std::int64_t>, max_rank> plane{};
  std::size_t plane_count = 0;

  std::int64_t place(std::int64_t index) const noexcept {
    if (plane_count == 1) return index * plane[0].second;
    std::int64_t result = 0;
    for (std::size_t i = 0; i < plane_count; ++i) {
      result += index % plane[i].first * plane[i].second;
      index /= plane[i].first;
    }
    return result;
  }
};

Planes::Planes(std::string who, const Extents& part, const Extents& whole, const Plane& plane)
    : who_(std::move(who)), part_(part), whole_(whole) {
  if (part.size() != whole.size()) reject(who_, "shape ", whole, ": must have ", part.size(), " axes, as many as y");
  pooled_ = plane_axes(who_, whole.size(), plane.rank, plane.channels_last, plane.axes);
  element_count(whole);
  for (int i = 0; i < whole.size(); ++i)
    if (!contains(pooled_, i) && part[i] != whole[i])
      reject(who_, "shape[", i, "] = ", whole[i], ": must be that of y, ", part[i], ", as the axis is not pooled");
  Checked size = 1;
  for (const std::int64_t axis : pooled_) size = size * Checked(whole[static_cast<int>(axis)]);
  if (!size.ok()) reject(who_, "shape ", whole, ": the size of its planes must fit 64 bits");
  plane_size_ = size.value();
}

Planes::Layout Planes::lay_out(const Extents& part_strides, const Extents& index_strides,
                               const Extents& whole_strides) const {
  Layout layout;
  const int last = whole_.size() - 1;
  for (int i = 0; i <= last; ++i) {
    const bool kept = !contains(pooled_, i);
    const Loop loop{part_[i], part_strides[i], index_strides[i], kept ? whole_strides[i] : 0};
    if (i == last)
      layout.line = loop;
    else if (kept)
      layout.slices[layout.slice_count++] = loop;
    else
      layout.inside[layout.inside_count++] = loop;
  }
  bool joined = true;
  for (int i = 0; i + 1 < pooled_.size(); ++i) {
    const auto axis = static_cast<int>(pooled_[i]), next = static_cast<int>(pooled_[i + 1]);
    joined = joined && whole_strides[axis] == whole_strides[next] * whole_[next];
  }
  if (joined) {
    layout.plane[layout.plane_count++] = {plane_size_, whole_strides[static_cast<int>(pooled_[pooled_.size() - 1])]};
  } else {
    for (int i = pooled_.size() - 1; i >= 0; --i)
      layout.plane[layout.plane_count++] = {whole_[static_cast<int>(pooled_[i])],
                                            whole_strides[static_cast<int>(pooled_[i])]};
  }
  return layout;
}

// Every index must lie in its plane; the first that does not, in row-major order, is named.
void Planes::check(const View& indices) const {
  if (element_count(indices.shape) == 0) return;
  const int last = indices.rank() - 1;
  const std::int64_t n = indices.shape[last], step = indices.strides[last];
  const auto* data = static_cast<const std::int64_t*>(indices.data);
  detail::Counter lines;
  for (int i = 0; i < last; ++i) lines.add(indices.shape[i]);
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> first_bad{none};
  const auto line_at = [&](const detail::Counter& at) {
    const std::int64_t* line = data;
    for (int i = 0; i < last; ++i) line += at[static_cast<std::size_t>(i)] * indices.strides[i];
    return line;
  };
  const auto inside = [&](std::int64_t index) {
    return static_cast<std::uint64_t>(index) < static_cast<std::uint64_t>(plane_size_);
  };
  const std::int64_t grain = std::max<std::int64_t>(1, 65536 / n);
  detail::parallel_parts(lines.total(), grain, [&](std::int64_t begin, std::int64_t end) {
    detail::Counter at = lines;
    at.seek(begin);
    for (; begin < end; ++begin, at.next()) {
      const std::int64_t* line = line_at(at);
      bool good = true;
      for (std::int64_t i = 0; i < n; ++i) good = good && inside(line[i * step]);
      if (good) continue;
      std::int64_t i = 0, seen = first_bad.load();
      while (inside(line[i * step])) ++i;
      while (begin * n + i < seen && !first_bad.compare_exchange_weak(seen, begin * n + i)) continue;
      return;
    }
  });
  const std::int64_t bad = first_bad.load();
  if (bad == none) return;
  lines.seek(bad / n);
  Extents index = indices.shape;
  for (int i = 0; i < last; ++i) index[i] = lines[static_cast<std::size_t>(i)];
  index[last] = bad % n;
  reject(who_, "indices", index, " = ", line_at(lines)[bad % n * step], ": must be from 0 to ", plane_size_ - 1,
         ", inside its plane of ", plane_size_, " elements");
}

template <class Visit>
void Planes::each(const Layout& layout, const View& indices, const Visit& visit) const {
  if (element_count(part_) == 0) return;
  const Loop& line = layout.line;
  // A kept last axis is shared out too, so that one picture with its channels last is done by all threads.
  const std::int64_t block = line.whole == 0 ? line.n : std::min<std::int64_t>(line.n, 64);
  detail::Counter slices;
  for (std::size_t i = 0; i < layout.slice_count; ++i) slices.add(layout.slices[i].n);
  slices.add((line.n + block - 1) / block);
  detail::parallel_parts(slices.total(), 1, [&](std::int64_t number, std::int64_t end) {
    for (detail::Counter at = slices; number < end; ++number) {
      at.seek(number);
      Loop from;
      from.part = from.index = from.whole = 0;
      for (std::size_t i = 0; i < layout.slice_count; ++i) {
        from.part += at[i] * layout.slices[i].part;
        from.index += at[i] * layout.slices[i].index;
        from.whole += at[i] * layout.slices[i].whole;
      }
      const std::int64_t first = at[layout.slice_count] * block, stop = std::min(line.n, first + block);
      detail::Counter rows;
      for (std::size_t i = 0; i < layout.inside_count; ++i) rows.add(layout.inside[i].n);
      do {
        Loop row = from;
        for (std::size_t i = 0; i < layout.inside_count; ++i) {
          row.part += rows[i] * layout.inside[i].part;
          row.index += rows[i] * layout.inside[i].index;
        }
        for (std::int64_t o = first; o < stop; ++o) {
          const std::int64_t index = static_cast<const std::int64_t*>(indices.data)[row.index + o * line.index];
          visit(row.part + o * line.part, row.whole + o * line.whole + layout.place(index));
        }
      } while (rows.next());
    }
  });
}

void Planes::put(const View& part, const View& indices, const MutableView& whole) const {
  const bool normalise = part.type == Type::boolean;
  visit_size(part.type, [&]<class Unit>(Unit) {
    const auto* from = static_cast<const Unit*>(part.data);
    auto* to = static_cast<Unit*>(whole.data);
    // A bool is any byte, and becomes 0 or 1.
    each(lay_out(part.strides, indices.strides, whole.strides), indices,
         [=](std::int64_t p, std::int64_t w) { to[w] = normalise ? static_cast<Unit>(from[p] != 0) : from[p]; });
  });
}

void Planes::take(const View& whole, const View& indices, const MutableView& part) const {
  visit_size(part.type, [&]<class Unit>(Unit) {
    const auto* from = static_cast<const Unit*>(whole.data);
    auto* to = static_cast<Unit*>(part.data);
    each(lay_out(part.strides, indices.strides, whole.strides), indices,
         [=](std::int64_t p, std::int64_t w) { to[p] = from[w]; });
  });
}

void Planes::take_last(const View& whole, const View& indices, const MutableView& part, std::int64_t* order) const {
  const Extents numbers = row_major_strides(part_);
  // Whoever comes last leaves its number.
  each(lay_out(numbers, indices.strides, row_major_strides(whole_)), indices,
       [=](std::int64_t p, std::int64_t w) { order[w] = p; });
  take(whole, indices, part);
  visit_size(part.type, [&]<class Unit>(Unit) {
    auto* to = static_cast<Unit*>(part.data);
    const Layout places = lay_out(numbers, indices.strides, row_major_strides(whole_));
    const bool dense = part.strides == numbers;
    each(places, indices, [&](std::int64_t p, std::int64_t w) {
      if (order[w] == p) return;
      std::int64_t at = p;
      if (!dense) {
        at = 0;
        for (int i = part_.size() - 1; i >= 0; --i) {
          at += p % part_[i] * part.strides[i];
          p /= part_[i];
        }
      }
      to[at] = Unit{0};
    });
  });
}

void Planes::add(const View& part, const View& indices, const MutableView& whole, void* sums) const {
  const auto go = [&]<class A>(A) {
    const MutableView total(sums, type_of<A>, whole_);
    std::memset(sums, 0, static_cast<std::size_t>(element_count(whole_)) * sizeof(A));
    auto* to = static_cast<A*>(sums);
    const auto bytes = static_cast<std::int64_t>(size_of(part.type));
    const auto* from = static_cast<const std::byte*>(part.data);
    const Type type = part.type;
    each(lay_out(part.strides, indices.strides, total.strides), indices, [=](std::int64_t p, std::int64_t w) {
      A value{};
      convert_line(type_of<A>, &value, type, from + p * bytes, 1, 1);
      to[w] += value;
    });
    copy_strided(total, whole);
  };
  part.type == Type::f64 ? go(double{}) : go(float{});
}

Array max_unpool(const View& y, const View& indices, const Extents& shape, const Plane& plane) {
  constexpr const char* who = "max_unpool";
  if (y.rank() != shape.size()) reject(who, "shape ", shape, ": must have ", y.rank(), " axes, as many as y");
  if (indices.type != Type::i64) reject(who, "indices of type ", name(indices.type), ": must be i64");
  if (indices.shape != y.shape) reject(who, "indices of shape ", indices.shape, ": must have that of y, ", y.shape);
  check_memory(who, "y", y);
  check_memory(who, "indices", indices);
  const Planes planes(who, y.shape, shape, plane);
  planes.check(indices);
  Array x = Array::zeros(y.type, shape);
  planes.put(y, indices, x);
  return x;
}

}  // namespace cenote
