// Extents, row-major layout, and arrays that own their memory.
#include <cenote/array.h>

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/checked.h"
#include "core/copy.h"
#include "core/memory.h"
#include "core/reject.h"

namespace cenote {
namespace {

// Asking for more than the machine has would be granted by an overcommitting kernel and fail when touched.
std::int64_t memory_limit() {
  static const std::int64_t limit = [] {
    const Checked bytes = Checked(sysconf(_SC_PHYS_PAGES)) * Checked(sysconf(_SC_PAGE_SIZE));
    return bytes.ok() && bytes.value() > 0 ? bytes.value() : INT64_MAX;
  }();
  return limit;
}

std::byte* allocate(Type type, const Extents& shape) {
  const Checked bytes = Checked(element_count(shape)) * Checked(static_cast<std::int64_t>(size_of(type)));
  if (!bytes.ok() || bytes.value() > memory_limit())
    reject("array", "shape ", shape, " of ", name(type), ": the size must not exceed this machine's memory of ",
           memory_limit(), " bytes");
  return static_cast<std::byte*>(allocate_memory(static_cast<std::size_t>(bytes.value())));
}

}  // namespace

Extents::Extents(std::span<const std::int64_t> values) {
  for (const std::int64_t value : values) push_back(value);
}

Extents Extents::filled(int rank, std::int64_t value) {
  Extents result;
  for (int i = 0; i < rank; ++i) result.push_back(value);
  return result;
}

void Extents::push_back(std::int64_t value) {
  if (size_ == max_rank) reject("extents", "more than ", max_rank, " axes: the rank must be at most ", max_rank);
  values_[static_cast<std::size_t>(size_++)] = value;
}

std::string to_string(const Extents& extents) {
  std::string text = "(";
  for (int i = 0; i < extents.size(); ++i) text += (i ? ", " : "") + std::to_string(extents[i]);
  return text + (extents.size() == 1 ? ",)" : ")");
}

Extents row_major_strides(const Extents& shape) {
  Extents strides = shape;
  std::int64_t step = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    strides[i] = step;
    const Checked next = Checked(step) * Checked(shape[i] > 0 ? shape[i] : 1);
    step = next.ok() ? next.value() : 0;  // such a shape has no array; element_count says so
  }
  return strides;
}

std::int64_t element_count(const Extents& shape) {
  Checked count = 1;
  bool empty = false;
  for (int i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) reject("array", "shape[", i, "] = ", shape[i], ": every extent must be at least 0");
    empty = empty || shape[i] == 0;
    if (shape[i] > 0) count = count * Checked(shape[i]);
  }
  if (!count.ok()) reject("array", "shape ", shape, ": the number of elements must fit 64 bits");
  return empty ? 0 : count.value();
}

void Array::Free::operator()(std::byte* memory) const noexcept {
  if (!shared) std::free(memory);
}

Array::Array() : Array(Type::f32, Extents{0}) {}

Array::Array(Type type, const Extents& shape)
    : memory_(allocate(type, shape)), type_(type), shape_(shape), size_(element_count(shape)) {}

Array::Array(const View& view) : Array(view.type, view.shape) { copy_strided(view, *this); }

Array::Array(std::shared_ptr<void> memory, Type type, const Extents& shape)
    : type_(type), shape_(shape), size_(element_count(shape)) {
  if (!memory && size_ > 0) reject("array", "memory is null: shape ", shape, " has ", size_, " elements");
  if (reinterpret_cast<std::uintptr_t>(memory.get()) % size_of(type) != 0)
    reject("array", "memory is misaligned: elements of ", name(type), " must lie at multiples of ", size_of(type));
  auto* elements = static_cast<std::byte*>(memory.get());
  memory_ = {elements, Free{std::move(memory)}};
}

Array::Array(Array&& other) noexcept
    : memory_(std::move(other.memory_)),
      type_(other.type_),
      shape_(std::exchange(other.shape_, Extents{0})),
      size_(std::exchange(other.size_, 0)) {}

Array& Array::operator=(Array other) noexcept {
  memory_ = std::move(other.memory_);
  type_ = other.type_;
  shape_ = other.shape_;
  size_ = other.size_;
  return *this;
}

Array Array::zeros(Type type, const Extents& shape) {
  Array result(type, shape);
  if (result.bytes() > 0) std::memset(result.data(), 0, result.bytes());
  return result;
}

void Array::require(Type type) const {
  if (type != type_) reject("array", "element type ", name(type), ": the array holds ", name(type_));
}

void Array::assign(const void* values, std::size_t count) {
  if (count != static_cast<std::size_t>(size_))
    reject("array", count, " values for shape ", shape_, ": exactly ", size_, " are needed");
  if (bytes() > 0) std::memcpy(data(), values, bytes());
}

std::size_t Array::offset(const Extents& index) const {
  if (index.size() != rank()) reject("array", "index ", index, ": shape ", shape_, " needs one number per axis");
  std::int64_t result = 0;
  for (int i = 0; i < rank(); ++i) {
    if (index[i] < 0 || index[i] >= shape_[i]) reject("array", "index ", index, ": outside shape ", shape_);
    result = result * shape_[i] + index[i];
  }
  return static_cast<std::size_t>(result);
}

}  // namespace cenote
