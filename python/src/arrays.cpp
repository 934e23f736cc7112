// Arrays of Python: NumPy's by its C interface, all others by DLPack.
#include "arrays.h"

#include <cstdint>
#include <cstring>
#include <string>

#include <nanobind/ndarray.h>

#include "arguments.h"
#include "numpy.h"

namespace cenote::python {
namespace {

constexpr std::string_view known_types = "bool, an integer of 8 to 64 bits, float16, bfloat16, float32 or float64";

std::string class_name(nb::handle object) { return nb::cast<std::string>(nb::str(nb::inst_name(object))); }

std::optional<Type> type_of_size(char kind, npy_intp bytes) {
  const auto pick = [&](std::optional<Type> b1, std::optional<Type> b2, std::optional<Type> b4,
                        std::optional<Type> b8) {
    return bytes == 1 ? b1 : bytes == 2 ? b2 : bytes == 4 ? b4 : bytes == 8 ? b8 : std::nullopt;
  };
  switch (kind) {
    case 'b': return pick(Type::boolean, {}, {}, {});
    case 'i': return pick(Type::i8, Type::i16, Type::i32, Type::i64);
    case 'u': return pick(Type::u8, Type::u16, Type::u32, Type::u64);
    case 'f': return pick({}, Type::f16, Type::f32, Type::f64);
    default: return {};
  }
}

std::optional<Type> type_of_descr(PyArray_Descr* descr) {
  if (PyTypeNum_ISUSERDEF(descr->type_num)) {
    const std::string_view name = descr->typeobj->tp_name;
    return name.ends_with("bfloat16") ? std::optional(Type::bf16) : std::nullopt;
  }
  return type_of_size(descr->kind, PyDataType_ELSIZE(descr));
}

int type_number(Type type) {
  switch (type) {
    case Type::f16: return NPY_HALF;
    case Type::f32: return NPY_FLOAT;
    case Type::f64: return NPY_DOUBLE;
    case Type::i8: return NPY_INT8;
    case Type::i16: return NPY_INT16;
    case Type::i32: return NPY_INT32;
    case Type::i64: return NPY_INT64;
    case Type::u8: return NPY_UINT8;
    case Type::u16: return NPY_UINT16;
    case Type::u32: return NPY_UINT32;
    case Type::u64: return NPY_UINT64;
    default: return NPY_BOOL;
  }
}

PyArray_Descr* make_descr(Type type) {
  if (type != Type::bf16) return PyArray_DescrFromType(type_number(type));
  PyArray_Descr* descr = nullptr;
  const nb::object scalar = nb::module_::import_("ml_dtypes").attr("bfloat16");
  if (!PyArray_DescrConverter(scalar.ptr(), &descr)) nb::raise_python_error();
  return descr;
}

PyArrayObject* array_of(nb::handle object) { return reinterpret_cast<PyArrayObject*>(object.ptr()); }

/// The element type of a NumPy array; only native ones can be read.
Type checked_type(std::string_view who, std::string_view what, PyArrayObject* array) {
  PyArray_Descr* descr = PyArray_DESCR(array);
  const auto dtype = [&] { return nb::cast<std::string>(nb::str(nb::handle(reinterpret_cast<PyObject*>(descr)))); };
  const std::optional<Type> type = type_of_descr(descr);
  if (!type) reject_type(who, what, " has dtype ", dtype(), ": must be ", known_types);
  if (!PyArray_ISNOTSWAPPED(array))
    reject_type(who, what, " has dtype ", dtype(), " of foreign byte order: convert it with ", what, ".astype(", what,
                ".dtype.newbyteorder('='))");
  return *type;
}

/// Strides in elements, or nullopt where a stride is no multiple of the element or the data are misaligned.
std::optional<Extents> element_strides(PyArrayObject* array) {
  Extents strides;
  const npy_intp bytes = PyDataType_ELSIZE(PyArray_DESCR(array));
  if (!PyArray_ISALIGNED(array)) return std::nullopt;
  for (int i = 0; i < PyArray_NDIM(array); ++i) {
    const bool used = PyArray_DIM(array, i) > 1;
    if (used && PyArray_STRIDE(array, i) % bytes != 0) return std::nullopt;
    strides.push_back(used ? PyArray_STRIDE(array, i) / bytes : 1);
  }
  return strides;
}

Extents numpy_shape(std::string_view who, std::string_view what, PyArrayObject* array) {
  if (PyArray_NDIM(array) > max_rank)
    reject(who, what, " of rank ", PyArray_NDIM(array), ": must be at most ", max_rank);
  Extents shape;
  for (int i = 0; i < PyArray_NDIM(array); ++i) shape.push_back(PyArray_DIM(array, i));
  return shape;
}

void check_class(std::string_view who, std::string_view what, nb::handle object) {
  if (!PyArray_CheckExact(object.ptr()) && nb::hasattr(object, "mask"))
    reject_type(who, what, " is a masked array: masks are not taken into account; give ", what, ".filled(…)");
}

constexpr nb::dlpack::dtype bfloat16{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bfloat), 16, 1};

std::optional<Type> type_of_dlpack(nb::dlpack::dtype dtype) {
  if (dtype == bfloat16) return Type::bf16;
  if (dtype.lanes != 1) return {};
  switch (static_cast<nb::dlpack::dtype_code>(dtype.code)) {
    case nb::dlpack::dtype_code::Bool: return type_of_size('b', dtype.bits / 8);
    case nb::dlpack::dtype_code::Int: return type_of_size('i', dtype.bits / 8);
    case nb::dlpack::dtype_code::UInt: return type_of_size('u', dtype.bits / 8);
    case nb::dlpack::dtype_code::Float: return type_of_size('f', dtype.bits / 8);
    default: return {};
  }
}

nb::dlpack::dtype dlpack_of(Type type) {
  if (type == Type::bf16) return bfloat16;
  const auto code = type == Type::boolean ? nb::dlpack::dtype_code::Bool
                    : is_float(type)      ? nb::dlpack::dtype_code::Float
                    : type >= Type::u8    ? nb::dlpack::dtype_code::UInt
                                          : nb::dlpack::dtype_code::Int;
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * size_of(type)), 1};
}

/// The DLPack capsule of an object in the memory of this machine. `write` asks for one that says whether it may be.
nb::object capsule_of(std::string_view who, std::string_view what, nb::handle object, bool write) {
  if (nb::hasattr(object, "__dlpack_device__")) {
    const auto device = nb::cast<nb::tuple>(object.attr("__dlpack_device__")());
    const auto type = nb::cast<int>(nb::int_(device[0]));
    // Memory of the host, pinned or not.
    if (type != 1 && type != 3 && type != 11)
      unsupported(who, what, " is a ", class_name(object), " on another device (DLPack device type ", type,
                  "): only arrays in the memory of the CPU can be pooled in this build");
  }
  const auto versioned = [&] { return object.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(1, 0)); };
  try {
    return write ? versioned() : object.attr("__dlpack__")();
  } catch (nb::python_error& error) {
    // Read-only memory is exported only with a version, old exporters know none.
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_BufferError)) throw;
    try {
      return write ? object.attr("__dlpack__")() : versioned();
    } catch (nb::python_error&) {
      throw error;
    }
  }
}

template <class Tensor>
Tensor tensor_of(std::string_view who, std::string_view what, nb::handle capsule, nb::handle object) {
  Tensor tensor;
  if (!nb::try_cast(capsule, tensor, false))
    reject_type(who, what, " is a ", class_name(object), " whose memory cannot be ",
                std::is_same_v<Tensor, nb::ndarray<>> ? "written" : "read");
  if (tensor.ndim() > static_cast<std::size_t>(max_rank))
    reject(who, what, " of rank ", tensor.ndim(), ": must be at most ", max_rank);
  return tensor;
}

template <class Tensor>
Type tensor_type(std::string_view who, std::string_view what, const Tensor& tensor) {
  const std::optional<Type> type = type_of_dlpack(tensor.dtype());
  if (!type)
    reject_type(who, what, " has DLPack type code ", int{tensor.dtype().code}, " of ", int{tensor.dtype().bits},
                " bits: must be ", known_types);
  return *type;
}

template <class Tensor>
std::pair<Extents, Extents> tensor_layout(const Tensor& tensor) {
  Extents shape, strides;
  for (std::size_t i = 0; i < tensor.ndim(); ++i) {
    shape.push_back(static_cast<std::int64_t>(tensor.shape(i)));
    strides.push_back(tensor.stride(i));
  }
  return {shape, strides};
}

void check_aligned(std::string_view who, std::string_view what, const void* data, Type type) {
  if (reinterpret_cast<std::uintptr_t>(data) % size_of(type) != 0)
    reject(who, what, " is misaligned: its elements must lie at multiples of their size");
}

bool has_dlpack(nb::handle object) { return nb::hasattr(nb::handle(object.type()), "__dlpack__"); }

/// Says what NumPy said about an argument.
[[noreturn]] void reject_unread(std::string_view who, std::string_view what, nb::handle object) {
  nb::python_error error;
  const auto reason = [&] { return nb::cast<std::string>(nb::str(error.value())); };
  if (error.matches(PyExc_TypeError)) reject_type(who, what, " = ", shown(object), ": ", reason());
  if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_OverflowError)) throw error;
  reject(who, what, " = ", shown(object), ": ", reason());
}

/// Lists and numbers as an array; NumPy's scalars know their type.
nb::object from_any(std::string_view who, std::string_view what, nb::handle object, std::optional<Type> like) {
  const bool convert = like && !PyArray_CheckScalar(object.ptr());
  const bool is_number = PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr());
  // On the way to a type NumPy makes numbers of None and of text: what there is without it must be numbers already.
  if (convert && !is_number) from_any(who, what, object, {});
  PyArray_Descr* descr = convert ? make_descr(*like) : nullptr;
  nb::object array = nb::steal(PyArray_FromAny(object.ptr(), descr, 0, 0, NPY_ARRAY_DEFAULT, nullptr));
  if (!array.is_valid()) reject_unread(who, what, object);
  if (!type_of_descr(PyArray_DESCR(array_of(array))))
    reject_type(who, what, " = ", shown(object), ": must be an array, a list or a number, of ", known_types);
  return array;
}

}  // namespace

Kind::Kind(nb::handle object) {
  for (nb::handle base : nb::cast<nb::tuple>(object.type().attr("__mro__"))) {
    const auto module_name = nb::cast<std::string>(base.attr("__module__"));
    const std::string_view root = std::string_view(module_name).substr(0, module_name.find('.'));
    // The caller has an array of theirs: the modules are loaded already.
    if (root == "torch") from_dlpack_ = nb::module_::import_("torch").attr("from_dlpack");
    if (root == "jaxlib" || root == "jax") from_dlpack_ = nb::module_::import_("jax.dlpack").attr("from_dlpack");
    if (from_dlpack_.is_valid()) return;
  }
  if (!nb::hasattr(object, "__array_namespace__")) return;
  const nb::object space = object.attr("__array_namespace__")();
  if (nb::hasattr(space, "from_dlpack")) from_dlpack_ = space.attr("from_dlpack");
}

nb::object Kind::wrap(Array array) const {
  if (!from_dlpack_.is_valid()) return to_numpy(std::move(array));
  std::size_t shape[max_rank];
  for (int i = 0; i < array.rank(); ++i) shape[i] = static_cast<std::size_t>(array.shape()[i]);
  const Type type = array.type();
  const auto rank = static_cast<std::size_t>(array.rank());
  auto* held = new Array(std::move(array));
  const nb::capsule owner(held, [](void* memory) noexcept { delete static_cast<Array*>(memory); });
  const nb::ndarray<nb::array_api> tensor(held->data(), rank, shape, owner, nullptr, dlpack_of(type),
                                          nb::device::cpu::value);
  return from_dlpack_(nb::cast(tensor));
}

Input::Input(std::string_view who, std::string_view what, nb::handle object, std::optional<Type> like) {
  if (PyArray_Check(object.ptr())) {
    check_class(who, what, object);
    owner_ = nb::borrow(object);
  } else if (has_dlpack(object)) {
    read_dlpack(who, what, object);
    return;
  } else {
    owner_ = from_any(who, what, object, like);
  }
  read_numpy(who, what);
}

void Input::read_numpy(std::string_view who, std::string_view what) {
  const Type type = checked_type(who, what, array_of(owner_));
  const Extents shape = numpy_shape(who, what, array_of(owner_));
  std::optional<Extents> strides = element_strides(array_of(owner_));
  if (!strides) {
    owner_ = nb::steal(PyArray_NewCopy(array_of(owner_), NPY_CORDER));
    if (!owner_.is_valid()) nb::raise_python_error();
    strides = element_strides(array_of(owner_));
  }
  view_ = View(PyArray_DATA(array_of(owner_)), type, shape, *strides);
}

void Input::read_dlpack(std::string_view who, std::string_view what, nb::handle object) {
  using Tensor = nb::ndarray<nb::ro>;
  const auto tensor = tensor_of<Tensor>(who, what, capsule_of(who, what, object, false), object);
  const auto [shape, strides] = tensor_layout(tensor);
  view_ = View(tensor.data(), tensor_type(who, what, tensor), shape, strides);
  kind_ = Kind(object);
  // The tensor lives as long as this capsule does.
  owner_ = nb::capsule(new Tensor(tensor), [](void* held) noexcept { delete static_cast<Tensor*>(held); });
  check_aligned(who, what, view_.data, view_.type);
}

Output::Output(std::string_view who, std::string_view what, nb::handle object) : object_(nb::borrow(object)) {
  if (PyArray_Check(object.ptr())) {
    PyArrayObject* array = array_of(object);
    check_class(who, what, object);
    const Type type = checked_type(who, what, array);
    if (!PyArray_ISWRITEABLE(array)) reject(who, what, " is read-only: it must be an array that can be written");
    const std::optional<Extents> strides = element_strides(array);
    if (!strides) reject(who, what, " is misaligned: its elements must lie at multiples of their size");
    view_ = MutableView(PyArray_DATA(array), type, numpy_shape(who, what, array), *strides);
    return;
  }
  if (!has_dlpack(object)) reject_type(who, what, " is a ", class_name(object), ": must be an array");
  const auto module_name = nb::cast<std::string>(object.type().attr("__module__"));
  if (module_name.starts_with("jax")) reject_type(who, what, " is a JAX array: those cannot be written");
  using Tensor = nb::ndarray<>;
  const auto tensor = tensor_of<Tensor>(who, what, capsule_of(who, what, object, true), object);
  const auto [shape, strides] = tensor_layout(tensor);
  view_ = MutableView(tensor.data(), tensor_type(who, what, tensor), shape, strides);
  check_aligned(who, what, view_.data, view_.type);
  owner_ = nb::capsule(new Tensor(tensor), [](void* held) noexcept { delete static_cast<Tensor*>(held); });
}

Output::Output(std::string_view who, std::string_view what, nb::handle object, Type type, const Extents& shape)
    : Output(who, what, object) {
  if (view_.type != type || view_.shape != shape)
    reject(who, what, " has type ", name(view_.type), " and shape ", to_string(view_.shape), ": must be ", name(type),
           " ", to_string(shape));
}

bool is_numpy(nb::handle object) noexcept { return PyArray_Check(object.ptr()); }
bool is_plain_numpy(nb::handle object) noexcept { return is_numpy(object) && PyArray_ISCARRAY(array_of(object)); }

nb::object to_numpy(Array array) {
  npy_intp shape[max_rank];
  for (int i = 0; i < array.rank(); ++i) shape[i] = array.shape()[i];
  PyArray_Descr* descr = make_descr(array.type());
  auto* held = new Array(std::move(array));
  nb::capsule owner(held, [](void* memory) noexcept { delete static_cast<Array*>(memory); });
  nb::object result = nb::steal(PyArray_NewFromDescr(&PyArray_Type, descr, held->rank(), shape, nullptr, held->data(),
                                                     NPY_ARRAY_CARRAY, nullptr));
  if (!result.is_valid()) nb::raise_python_error();
  if (held->data() != nullptr && PyArray_SetBaseObject(array_of(result), owner.release().ptr()) != 0)
    nb::raise_python_error();
  return result;
}

nb::object to_numpy(const View& view, nb::handle owner, bool writable) {
  npy_intp shape[max_rank], strides[max_rank];
  for (int i = 0; i < view.rank(); ++i) {
    shape[i] = view.shape[i];
    strides[i] = view.strides[i] * static_cast<npy_intp>(size_of(view.type));
  }
  const int flags = NPY_ARRAY_ALIGNED | (writable ? NPY_ARRAY_WRITEABLE : 0);
  nb::object result = nb::steal(PyArray_NewFromDescr(&PyArray_Type, make_descr(view.type), view.rank(), shape, strides,
                                                     const_cast<void*>(view.data), flags, nullptr));
  if (!result.is_valid()) nb::raise_python_error();
  if (view.data != nullptr && PyArray_SetBaseObject(array_of(result), nb::borrow(owner).release().ptr()) != 0)
    nb::raise_python_error();
  return result;
}

Type parse_dtype(std::string_view who, nb::handle dtype) {
  const auto refuse = [&] { reject_type(who, "dtype = ", shown(dtype), ": must be ", known_types); };
  // NumPy takes None for float64.
  if (dtype.is_none()) refuse();
  auto text = nb::cast<std::string>(nb::str(dtype));
  if (text.starts_with("torch.")) text = text.substr(6);
  if (text == "bfloat16") return Type::bf16;
  for (int i = 0; i < type_count; ++i)
    if (name(static_cast<Type>(i)) == text) return static_cast<Type>(i);
  const nb::str torch_name(text.c_str());
  const bool torch = !nb::isinstance<nb::str>(dtype) && nb::cast<std::string>(nb::str(dtype)).starts_with("torch.");
  PyArray_Descr* descr = nullptr;
  if (!PyArray_DescrConverter(torch ? torch_name.ptr() : dtype.ptr(), &descr)) {
    PyErr_Clear();
    refuse();
  }
  const nb::object held = nb::steal(reinterpret_cast<PyObject*>(descr));
  const std::optional<Type> type = type_of_descr(descr);
  if (!type || PyDataType_ISBYTESWAPPED(descr)) refuse();
  return *type;
}

nb::object numpy_dtype(Type type) { return nb::steal(reinterpret_cast<PyObject*>(make_descr(type))); }

}  // namespace cenote::python
