// Arrays: one that owns its memory and views that borrow it, of any rank, with strides.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <cenote/extents.h>
#include <cenote/types.h>

namespace cenote {

/// Strides, counted in elements, of a row-major array without gaps.
Extents row_major_strides(const Extents& shape);

/// The number of elements; throws std::invalid_argument if an extent is negative or the product exceeds 64 bits.
std::int64_t element_count(const Extents& shape);

/// A borrowed, read-only array. Strides count elements and may be negative or zero.
/// The memory must outlive the view and be aligned to the element size.
struct View {
  const void* data = nullptr;
  Type type = Type::f32;
  Extents shape;
  Extents strides;

  View() = default;
  View(const void* data, Type type, const Extents& shape)
      : data(data), type(type), shape(shape), strides(row_major_strides(shape)) {}
  View(const void* data, Type type, const Extents& shape, const Extents& strides)
      : data(data), type(type), shape(shape), strides(strides) {}
  template <class T>
  View(const T* data, const Extents& shape) : View(data, type_of<T>, shape) {}

  int rank() const noexcept { return shape.size(); }
};

/// A borrowed array that may be written. Strides may be negative but no two elements may share memory.
struct MutableView {
  void* data = nullptr;
  Type type = Type::f32;
  Extents shape;
  Extents strides;

  MutableView() = default;
  MutableView(void* data, Type type, const Extents& shape)
      : data(data), type(type), shape(shape), strides(row_major_strides(shape)) {}
  MutableView(void* data, Type type, const Extents& shape, const Extents& strides)
      : data(data), type(type), shape(shape), strides(strides) {}
  template <class T>
  MutableView(T* data, const Extents& shape) : MutableView(data, type_of<T>, shape) {}

  operator View() const noexcept { return View(data, type, shape, strides); }
  int rank() const noexcept { return shape.size(); }
};

/// An array that owns its memory: row-major, without gaps, aligned to 64 bytes unless the memory came from elsewhere.
/// Copies are deep.
class Array {
 public:
  /// A rank-1 f32 array without elements.
  Array();
  /// Uninitialised elements. Throws std::invalid_argument for a negative extent or a size beyond this machine's memory.
  Array(Type type, const Extents& shape);
  /// Elements copied from `values`, whose number must be that of the shape.
  template <class T>
  Array(const Extents& shape, std::span<const T> values) : Array(type_of<T>, shape) {
    assign(values.data(), values.size());
  }
  template <class T>
  Array(const Extents& shape, const std::vector<T>& values) : Array(shape, std::span<const T>(values)) {}
  template <class T>
  Array(const Extents& shape, std::initializer_list<T> values)
      : Array(shape, std::span<const T>(values.begin(), values.size())) {}
  /// Copies the elements of a view in row-major order.
  explicit Array(const View& view);
  /// Elements that lie at `memory`, row-major, without gaps and aligned to their size. Others may share them: what one
  /// writes the other sees. Throws std::invalid_argument where there is no memory for the elements of the shape.
  Array(std::shared_ptr<void> memory, Type type, const Extents& shape);

  Array(const Array& other) : Array(View(other)) {}
  Array(Array&& other) noexcept;
  Array& operator=(Array other) noexcept;
  ~Array() = default;

  static Array zeros(Type type, const Extents& shape);

  Type type() const noexcept { return type_; }
  const Extents& shape() const noexcept { return shape_; }
  int rank() const noexcept { return shape_.size(); }
  std::int64_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(size_) * size_of(type_); }

  const void* data() const noexcept { return memory_.get(); }
  void* data() noexcept { return memory_.get(); }
  /// The elements in row-major order; throws std::invalid_argument if T is not the array's type.
  template <class T>
  std::span<const T> values() const {
    require(type_of<T>);
    return {static_cast<const T*>(data()), static_cast<std::size_t>(size_)};
  }
  template <class T>
  std::span<T> values() {
    require(type_of<T>);
    return {static_cast<T*>(data()), static_cast<std::size_t>(size_)};
  }
  /// One element; the index is checked.
  template <class T>
  const T& at(const Extents& index) const {
    return values<T>()[offset(index)];
  }
  template <class T>
  T& at(const Extents& index) {
    return values<T>()[offset(index)];
  }

  operator View() const noexcept { return View(data(), type_, shape_); }
  operator MutableView() noexcept { return MutableView(data(), type_, shape_); }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
    /// Keeps memory from elsewhere; empty for an array's own.
    std::shared_ptr<void> shared;
  };
  void require(Type type) const;
  void assign(const void* values, std::size_t count);
  std::size_t offset(const Extents& index) const;

  std::unique_ptr<std::byte, Free> memory_;
  Type type_ = Type::f32;
  Extents shape_;
  std::int64_t size_ = 0;
};

}  // namespace cenote
