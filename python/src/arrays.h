// Arrays of Python as views without a copy, and results as arrays of the caller's kind.
#pragma once

#include <optional>
#include <string_view>

#include <cenote/array.h>
#include <nanobind/nanobind.h>

namespace cenote::python {

namespace nb = nanobind;

/// What stubs call Any, and pairs of it.
struct Any : nb::object {
  Any(nb::object object) : nb::object(std::move(object)) {}
  using nb::object::object;
  static constexpr auto Name = nb::detail::const_name("typing.Any");
};
using Pair = nb::typed<nb::tuple, nb::any, nb::any>;

/// Which kind of array a caller has, so that results can be of the same: NumPy's, or a class that speaks DLPack.
class Kind {
 public:
  /// NumPy's.
  Kind() = default;
  /// That of an object with __dlpack__.
  explicit Kind(nb::handle object);
  bool is_numpy() const noexcept { return !from_dlpack_.is_valid(); }
  /// An array of this kind around the same memory.
  nb::object wrap(Array array) const;

 private:
  nb::object from_dlpack_;
};

/// An array argument. Keeps the memory alive; to be made and destroyed with the GIL held.
class Input {
 public:
  /// Takes arrays as they are, and lists and numbers as arrays of type `like` (default: what NumPy makes of them).
  Input(std::string_view who, std::string_view what, nb::handle object, std::optional<Type> like = {});
  const View& view() const noexcept { return view_; }
  operator const View&() const noexcept { return view_; }
  const Kind& kind() const noexcept { return kind_; }

 private:
  void read_numpy(std::string_view who, std::string_view what);
  void read_dlpack(std::string_view who, std::string_view what, nb::handle object);

  nb::object owner_;
  View view_;
  Kind kind_;
};

/// An array of the caller's that is written.
class Output {
 public:
  Output(std::string_view who, std::string_view what, nb::handle object);
  /// The same, of one type and shape.
  Output(std::string_view who, std::string_view what, nb::handle object, Type type, const Extents& shape);
  const MutableView& view() const noexcept { return view_; }
  const nb::object& object() const noexcept { return object_; }

 private:
  nb::object object_, owner_;
  MutableView view_;
};

/// Whether an object is an array or can become one, rather than a class of this module.
bool is_numpy(nb::handle object) noexcept;
/// Whether it is an array of NumPy's that may be written, row-major and without gaps.
bool is_plain_numpy(nb::handle object) noexcept;

/// A NumPy array around the same memory.
nb::object to_numpy(Array array);
/// A NumPy array of memory that `owner` keeps alive, read-only unless asked for otherwise.
nb::object to_numpy(const View& view, nb::handle owner, bool writable = false);

/// An element type by its name here ("f32"), by NumPy's or torch's dtype, or by anything that NumPy takes for one.
Type parse_dtype(std::string_view who, nb::handle dtype);
/// NumPy's dtype; for bf16 that of ml_dtypes.
nb::object numpy_dtype(Type type);

/// Runs f without the GIL.
template <class F>
decltype(auto) without_gil(F&& f) {
  nb::gil_scoped_release release;
  return f();
}

}  // namespace cenote::python
