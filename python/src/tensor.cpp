// Eager tensors in Python, after mygrad.
#include <cenote/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "arguments.h"
#include "arrays.h"
#include "operation.h"

namespace cenote::python {
namespace {

/// The object itself, to keep alive what looks into it.
using Self = nb::handle_t<Tensor>;

using Constant = std::optional<bool>;

Constant constant_of(nb::handle constant) { return optional_flag("Tensor", "constant", constant); }

/// The memory that `view` has of x, a tensor or an array; null for an array with gaps, or that may not be written.
std::shared_ptr<void> memory_of(nb::handle x, const View& view) {
  void* data = const_cast<void*>(view.data);
  if (nb::isinstance<Tensor>(x)) return {nb::cast<const Tensor&>(x).node(), data};
  if (!is_plain_numpy(x)) return nullptr;
  // Tensors may be let go without the GIL, so it is taken.
  return {data, [owner = nb::borrow(x).release()](void*) noexcept {
            nb::gil_scoped_acquire acquire;
            owner.dec_ref();
          }};
}

/// x in the type that `dtype` names if it is not None, of at least `ndmin` axes; not copied where that can be avoided.
Array data_of(nb::handle x, nb::handle dtype, bool copy, std::int64_t ndmin) {
  const bool is_tensor = nb::isinstance<Tensor>(x);
  const std::optional<Type> type = dtype.is_none() ? std::nullopt : std::optional(parse_dtype("Tensor", dtype));
  std::optional<Input> input;
  if (!is_tensor) input.emplace("Tensor", "x", x, type);
  const View view = is_tensor ? View(nb::cast<const Tensor&>(x).data()) : input->view();
  if (type && view.type != *type) {
    const nb::object converted = to_numpy(Array(view)).attr("astype")(numpy_dtype(*type));
    return data_of(converted, nb::none(), false, ndmin);
  }
  const std::shared_ptr<void> memory = copy ? nullptr : memory_of(x, view);
  Extents shape, strides;
  for (std::int64_t i = view.rank(); i < ndmin; ++i) shape.push_back(1), strides.push_back(1);
  for (int i = 0; i < view.rank(); ++i) shape.push_back(view.shape[i]), strides.push_back(view.strides[i]);
  return memory ? Array(memory, view.type, shape) : Array(View(view.data, view.type, shape, strides));
}

Tensor make(nb::handle x, nb::handle constant = nb::none(), nb::handle dtype = nb::none(), bool copy = true,
            std::int64_t ndmin = 0) {
  return Tensor(data_of(x, dtype, copy, ndmin), constant_of(constant));
}

Tensor tensor_of(nb::handle x) { return nb::isinstance<Tensor>(x) ? nb::cast<Tensor>(x) : make(x); }

/// An operand of x: a tensor, a number of the type of x, or an array, which is a constant.
Tensor operand(const Tensor& x, nb::handle other) {
  if (nb::isinstance<Tensor>(other)) return nb::cast<Tensor>(other);
  const Input input("Tensor", "operand", other, x.type());
  return Tensor(Array(input.view()), true);
}

template <Tensor (*f)(const Tensor&, const Tensor&, Constant)>
Tensor binary(const Tensor& a, nb::handle b) {
  const Tensor other = operand(a, b);
  return without_gil([&] { return f(a, other, {}); });
}
template <Tensor (*f)(const Tensor&, const Tensor&, Constant)>
Tensor reflected(const Tensor& a, nb::handle b) {
  const Tensor other = operand(a, b);
  return without_gil([&] { return f(other, a, {}); });
}
/// The same by name, of any two of which one is a tensor.
template <Tensor (*f)(const Tensor&, const Tensor&, Constant)>
Tensor named(nb::handle a, nb::handle b, nb::handle constant) {
  const bool first = nb::isinstance<Tensor>(a);
  const Tensor x = first ? nb::cast<Tensor>(a) : nb::isinstance<Tensor>(b) ? nb::cast<Tensor>(b) : make(a);
  const Tensor left = operand(x, a), right = operand(x, b);
  const Constant is_constant = constant_of(constant);
  return without_gil([&] { return f(left, right, is_constant); });
}
template <Tensor (*f)(const Tensor&, Constant)>
Tensor unary(nb::handle x, nb::handle constant) {
  const Tensor at = tensor_of(x);
  const Constant is_constant = constant_of(constant);
  return without_gil([&] { return f(at, is_constant); });
}

/// Axes of x in their order; as NumPy's they may be negative, and come in any.
Extents sorted_axes(const char* who, nb::handle axis, const Tensor& x) {
  const int rank = x.shape().size();
  std::set<std::int64_t> axes;
  for (const std::int64_t number : extents_of(who, "axis", axis)) {
    if (number < -rank || number >= rank)
      reject(who, "axis = ", shown(axis), ": must be from ", -rank, " to ", rank - 1, " for a tensor of rank ", rank);
    if (!axes.insert(number < 0 ? number + rank : number).second)
      reject(who, "axis = ", shown(axis), ": must name each axis once");
  }
  Extents result;
  for (const std::int64_t number : axes) result.push_back(number);
  return result;
}

/// A sum or a mean, over all axes or some. Of integers and bool it is NumPy's, and a constant as they are.
template <Reducer reducer, Tensor (*f)(const Tensor&, Constant)>
Tensor total(const char* what, nb::handle x, nb::handle axis, nb::handle keepdims, nb::handle constant) {
  const Tensor at = tensor_of(x);
  const bool keep = flag(what, "keepdims", keepdims);
  const Constant is_constant = constant_of(constant);
  if (!is_float(at.type())) {
    const nb::object value = to_numpy(Array(at.data())).attr(what)(nb::arg("axis") = axis, nb::arg("keepdims") = keep);
    return make(value, nb::bool_(is_constant.value_or(true)));
  }
  if (axis.is_none()) {
    const Tensor result = unary<f>(x, constant);
    return keep ? reshape(result, Extents::filled(at.shape().size(), 1)) : result;
  }
  const Extents axes = sorted_axes(what, axis, at);
  if (axes.size() == 0) return reshape(at, at.shape(), is_constant);
  const bool is_empty =
      std::any_of(axes.begin(), axes.end(), [&](auto i) { return at.shape()[static_cast<int>(i)] == 0; });
  return without_gil([&] {
    const Tensor result = pool(at, {.reducer = reducer, .region = Global{.axes = axes, .keepdims = keep}}, is_constant);
    // The mean of nothing is NaN, where the average of an empty window is 0.
    return reducer == Reducer::avg && is_empty ? result * std::nan("") : result;
  });
}
Tensor total_sum(nb::handle x, nb::handle axis, nb::handle keepdims, nb::handle constant) {
  return total<Reducer::sum, &sum>("sum", x, axis, keepdims, constant);
}
Tensor total_mean(nb::handle x, nb::handle axis, nb::handle keepdims, nb::handle constant) {
  return total<Reducer::avg, &mean>("mean", x, axis, keepdims, constant);
}

/// Looks into the tensor; may be written, as mygrad's may: that is how parameters are trained.
Any data(Self self) {
  Array& array = const_cast<Array&>(nb::cast<const Tensor&>(self).data());
  return to_numpy(array, self, true);
}

void set_data(Self self, nb::handle value) {
  Array& array = const_cast<Array&>(nb::cast<const Tensor&>(self).data());
  const Input input("Tensor", "data", value, array.type());
  if (input.view().data == array.data()) return;
  if (input.view().type != array.type() || input.view().shape != array.shape())
    reject("Tensor", "data of type ", name(input.view().type), " and shape ", to_string(input.view().shape),
           ": must have the tensor's own, ", name(array.type()), " ", to_string(array.shape()));
  const Array copy(input.view());
  if (array.bytes() > 0) std::memcpy(array.data(), copy.data(), array.bytes());
}

Any grad(const Tensor& x) {
  std::shared_ptr<const Array> gradient = x.grad();
  if (!gradient) return nb::none();
  auto* held = new std::shared_ptr<const Array>(gradient);
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::shared_ptr<const Array>*>(p); });
  return to_numpy(*gradient, owner);
}

void backward(const Tensor& x, nb::handle gradient) {
  if (gradient.is_none()) return without_gil([&] { x.backward(); });
  const Input input("backward", "grad", gradient, x.type());
  if (input.view().type == x.type() || x.constant()) return without_gil([&] { x.backward(input.view()); });
  // As in mygrad the gradient may be of any type of numbers.
  const nb::object converted = to_numpy(Array(input.view())).attr("astype")(numpy_dtype(x.type()));
  const Input exact("backward", "grad", converted);
  without_gil([&] { x.backward(exact.view()); });
}

Tensor reshape_to(nb::handle x, nb::handle shape, nb::handle constant) {
  const Tensor at = tensor_of(x);
  return reshape(at, extents_of("reshape", "shape", shape), constant_of(constant));
}

Tensor reshape_method(Self self, nb::args shape, nb::kwargs options) {
  const nb::object target = shape.size() == 1 ? nb::borrow(shape[0]) : nb::object(shape);
  const nb::object constant = options.contains("constant") ? nb::borrow(options["constant"]) : nb::none();
  if (options.size() > (constant.is_none() ? 0u : 1u)) reject_type("reshape", "only constant is taken by name");
  return reshape_to(self, target, constant);
}

/// Products for whole exponents, which negative numbers have too, otherwise exp(log(x) * exponent).
Tensor power(const Tensor& x, nb::handle exponent) {
  const double e = number("Tensor", "exponent", exponent);
  if (e != std::floor(e) || std::abs(e) > 1024) return exp(log(x) * e);
  if (e == 0) return x * 0.0 + 1.0;
  std::optional<Tensor> result;
  Tensor square = x * 1.0;
  for (int rest = std::abs(static_cast<int>(e)); rest > 0; rest /= 2) {
    if (rest % 2 == 1) result = result ? *result * square : square;
    if (rest > 1) square = square * square;
  }
  return e < 0 ? 1.0 / *result : *result;
}

Any as_array(Self self, nb::handle dtype, nb::handle copy) {
  nb::object array = data(self);
  if (!dtype.is_none()) return array.attr("astype")(dtype);
  return copy.ptr() == Py_True ? array.attr("copy")() : array;
}

/// As mygrad shows them.
std::string shown_tensor(Self self) {
  const nb::object text = nb::repr(data(self));
  return nb::cast<std::string>(text.attr("replace")("array", "Tensor").attr("replace")("\n", "\n "));
}

const char* const document = R"(An array, the operation that made it, and its gradient.

Floating-point data is a variable unless ``constant`` is true; integers and bool are constants. ``backward()`` leaves
the gradient of the tensor's sum on every variable that it was made of, and releases the graph. Operators broadcast as
NumPy's do; numbers, lists and arrays are constants to them. With ``copy=False`` a tensor, or a NumPy array without gaps
that may be written, is not copied: both have the same memory. ``ndmin`` puts axes of size 1 before the others.

>>> import cenote
>>> x = cenote.Tensor([[0.0, 10.0, 8.0], [2.0, 7.0, 3.0], [5.0, 7.0, 20.0]])
>>> y = cenote.max_pool(x, (2, 2))
>>> y
Tensor([[10., 10.],
        [ 7., 20.]])
>>> y.sum().backward()
>>> x.grad
array([[0., 2., 0.],
       [0., 1., 0.],
       [0., 0., 1.]])
)";

}  // namespace

Any pool_tensor(std::string_view who, const Tensor& x, Pooling pooling, nb::handle out, nb::handle constant) {
  if (!out.is_none()) reject(who, "out: a Tensor is not written into");
  const Constant is_constant = constant_of(constant);
  const auto indices = pooling.indices;
  pooling.indices.reset();
  Any values = nb::cast(without_gil([&] { return pool(x, pooling, is_constant); }));
  if (!indices) return values;
  pooling.indices = indices;
  Pooled pooled = without_gil([&] { return pool_with_indices(x.data(), pooling); });
  return nb::make_tuple(values, to_numpy(std::move(pooled.indices)));
}

void bind_tensor(nb::module_& m) {
  nb::class_<Tensor> tensor(m, "Tensor", document);
  // NumPy leaves operators between its arrays and tensors to the tensors.
  tensor.attr("__array_ufunc__") = nb::none();
  tensor
      .def(
          "__init__",
          [](Tensor* self, nb::handle x, nb::handle dtype, nb::handle constant, nb::handle copy, nb::handle ndmin) {
            const std::int64_t axes = integer("Tensor", "ndmin", ndmin);
            if (axes > max_rank) reject("Tensor", "ndmin = ", axes, ": must be at most ", max_rank);
            new (self) Tensor(make(x, constant, dtype, flag("Tensor", "copy", copy), axes));
          },
          nb::arg("x"), nb::kw_only(), nb::arg("dtype") = nb::none(), nb::arg("constant") = nb::none(),
          nb::arg("copy") = true, nb::arg("ndmin") = 0)
      .def_prop_rw("data", &data, &set_data)
      .def_prop_ro("grad", &grad)
      .def_prop_ro("constant", &Tensor::constant)
      .def("null_grad",
           [](Self self) {
             nb::cast<const Tensor&>(self).null_grad();
             return Any(nb::borrow(self));
           })
      .def("backward", &backward, nb::arg("grad") = nb::none())
      .def_prop_ro("shape", [](Self self) { return Any(data(self).attr("shape")); })
      .def_prop_ro("dtype", [](Self self) { return Any(data(self).attr("dtype")); })
      .def_prop_ro("ndim", [](const Tensor& x) { return x.shape().size(); })
      .def_prop_ro("size", [](const Tensor& x) { return x.data().size(); })
      .def("item", [](Self self) { return Any(data(self).attr("item")()); })
      .def("sum", &total_sum, nb::arg("axis") = nb::none(), nb::arg("keepdims") = false, nb::kw_only(),
           nb::arg("constant") = nb::none())
      .def("mean", &total_mean, nb::arg("axis") = nb::none(), nb::arg("keepdims") = false, nb::kw_only(),
           nb::arg("constant") = nb::none())
      .def("reshape", &reshape_method,
           nb::sig("def reshape(self, *shape: object, constant: bool | None = None) -> Tensor"))
      .def("__pow__", &power)
      .def("__array__", &as_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def("__len__", [](Self self) { return nb::len(data(self)); })
      .def("__bool__",
           [](Self self) {
             const int result = PyObject_IsTrue(data(self).ptr());
             if (result < 0) nb::raise_python_error();
             return result == 1;
           })
      .def("__reduce__",
           [](Self self) {
             const Tensor& x = nb::cast<const Tensor&>(self);
             return Any(nb::make_tuple(nb::module_::import_("cenote.tensor").attr("_load"),
                                       nb::make_tuple(to_numpy(Array(x.data())), x.constant())));
           })
      .def("__float__", [](Self self) { return nb::cast<double>(nb::float_(data(self).attr("item")())); })
      .def("__repr__", &shown_tensor)
      .def("__add__", &binary<&add>, nb::is_operator())
      .def("__radd__", &reflected<&add>, nb::is_operator())
      .def("__sub__", &binary<&subtract>, nb::is_operator())
      .def("__rsub__", &reflected<&subtract>, nb::is_operator())
      .def("__mul__", &binary<&multiply>, nb::is_operator())
      .def("__rmul__", &reflected<&multiply>, nb::is_operator())
      .def("__truediv__", &binary<&divide>, nb::is_operator())
      .def("__rtruediv__", &reflected<&divide>, nb::is_operator())
      .def("__neg__", [](const Tensor& x) { return without_gil([&] { return negative(x); }); });
  m.def("tensor_add", &named<&add>);
  m.def("tensor_subtract", &named<&subtract>);
  m.def("tensor_multiply", &named<&multiply>);
  m.def("tensor_divide", &named<&divide>);
  m.def("tensor_negative", &unary<&negative>);
  m.def("tensor_exp", &unary<&cenote::exp>);
  m.def("tensor_log", &unary<&cenote::log>);
  m.def("tensor_relu", &unary<&relu>);
  m.def("tensor_sum", &total_sum);
  m.def("tensor_mean", &total_mean);
  m.def("tensor_reshape", &reshape_to);
  m.def("tensor_max_unpool", [](const Tensor& y, nb::handle indices, nb::handle shape, nb::handle rank,
                                nb::handle channels_last, nb::handle axes, nb::handle constant) {
    const Plane plane = plane_of("max_unpool", rank, channels_last, axes);
    const Extents extents = integers("max_unpool", "shape", shape);
    const Input places("max_unpool", "indices", indices);
    const Constant is_constant = constant_of(constant);
    return without_gil([&] { return max_unpool(y, places, extents, plane, is_constant); });
  });
  nb::class_<NoAutodiff>(m, "NoAutodiff").def(nb::init<>());
}

}  // namespace cenote::python
