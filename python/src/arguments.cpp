// Arguments of Python, read and checked for their kind; what their values must be, the library says.
#include "arguments.h"

#include <vector>

#include "arrays.h"
#include "numpy.h"

namespace cenote::python {
namespace {

constexpr const char* one_or_more = "an integer or a sequence of integers";

bool is_boolean(nb::handle value) { return PyBool_Check(value.ptr()) || PyArray_IsScalar(value.ptr(), Bool); }

bool is_integer(nb::handle value) { return PyIndex_Check(value.ptr()) && !is_sequence(value); }

/// Calls f(i, item) for the items of a sequence; others are refused by what is allowed.
template <class F>
void for_each(std::string_view who, const std::string& what, nb::handle values, const char* allowed, F&& f) {
  if (!is_sequence(values)) reject_type(who, what, " = ", shown(values), ": must be ", allowed);
  const nb::object items = nb::steal(PySequence_Fast(values.ptr(), "not a sequence"));
  if (!items.is_valid()) nb::raise_python_error();
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(items.ptr());
  if (size > max_rank) reject(who, what, " has ", size, " entries: must have at most ", max_rank);
  for (Py_ssize_t i = 0; i < size; ++i) f(i, nb::handle(PySequence_Fast_GET_ITEM(items.ptr(), i)));
}

std::string entry(const std::string& what, Py_ssize_t i) { return what + "[" + std::to_string(i) + "]"; }

Extents listed(std::string_view who, const std::string& what, nb::handle values, const char* allowed) {
  Extents result;
  for_each(who, what, values, allowed,
           [&](Py_ssize_t i, nb::handle item) { result.push_back(integer(who, entry(what, i), item)); });
  return result;
}

std::optional<int> optional_rank(std::string_view who, nb::handle rank) {
  if (rank.is_none()) return std::nullopt;
  const std::int64_t value = integer(who, "rank", rank);
  if (value < 1 || value > max_rank) reject(who, "rank = ", value, ": must be from 1 to ", max_rank);
  return static_cast<int>(value);
}

}  // namespace

std::string shown(nb::handle value) {
  std::string text;
  for (const char c : nb::cast<std::string>(nb::repr(value)))
    if (c != '\n')
      text += c;
    else if (!text.ends_with(' '))
      text += ' ';
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

bool is_sequence(nb::handle value) {
  if (PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr()) || !PySequence_Check(value.ptr())) return false;
  if (PySequence_Size(value.ptr()) >= 0) return true;
  // An array of rank 0.
  PyErr_Clear();
  return false;
}

std::int64_t integer(std::string_view who, const std::string& what, nb::handle value) {
  if (!is_integer(value) || is_boolean(value)) reject_type(who, what, " = ", shown(value), ": must be an integer");
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) nb::raise_python_error();
  int overflow = 0;
  const long long result = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) reject(who, what, " = ", shown(value), ": must fit 64 bits");
  return result;
}

double number(std::string_view who, const std::string& what, nb::handle value, const char* allowed) {
  const double result = is_boolean(value) ? -1 : PyFloat_AsDouble(value.ptr());
  if (result != -1 || !(is_boolean(value) || PyErr_Occurred())) return result;
  const bool overflow = PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError);
  PyErr_Clear();
  if (overflow) reject(who, what, " = ", shown(value), ": must be within the range of f64");
  reject_type(who, what, " = ", shown(value), ": must be ", allowed);
}

bool flag(std::string_view who, const std::string& what, nb::handle value) {
  if (value.ptr() == Py_True) return true;
  if (value.ptr() == Py_False) return false;
  if (is_boolean(value)) return PyObject_IsTrue(value.ptr()) == 1;
  const std::int64_t result = is_integer(value) ? integer(who, what, value) : -1;
  if (result != 0 && result != 1) reject_type(who, what, " = ", shown(value), ": must be True or False");
  return result == 1;
}

std::optional<bool> optional_flag(std::string_view who, const std::string& what, nb::handle value) {
  if (value.is_none()) return std::nullopt;
  return flag(who, what, value);
}

Extents integers(std::string_view who, const std::string& what, nb::handle values) {
  return listed(who, what, values, "a sequence of integers");
}

Extents extents_of(std::string_view who, const std::string& what, nb::handle values) {
  if (is_integer(values)) return {integer(who, what, values)};
  return listed(who, what, values, one_or_more);
}

PerAxis per_axis(std::string_view who, const std::string& what, nb::handle values) {
  if (is_integer(values)) return integer(who, what, values);
  return listed(who, what, values, one_or_more);
}

std::optional<Extents> optional_axes(std::string_view who, nb::handle axes) {
  if (axes.is_none()) return std::nullopt;
  return extents_of(who, "axes", axes);
}

Padding padding_of(std::string_view who, nb::handle padding) {
  if (PyUnicode_Check(padding.ptr()))
    return choice<Padding::Rule>(
        who, "padding", padding,
        {{"valid", Padding::Rule::valid}, {"same", Padding::Rule::same}, {"same_lower", Padding::Rule::same_lower}});
  if (is_integer(padding)) return integer(who, "padding", padding);
  std::vector<Padding::Sides> sides;
  const char* const allowed =
      "\"valid\", \"same\", \"same_lower\", an integer, or a sequence of integers and (low, high) pairs";
  const char* const one_allowed = "an integer or (low, high)";
  for_each(who, "padding", padding, allowed, [&](Py_ssize_t i, nb::handle item) {
    if (is_integer(item)) {
      sides.emplace_back(integer(who, entry("padding", i), item));
      return;
    }
    const Extents pair = listed(who, entry("padding", i), item, one_allowed);
    if (pair.size() != 2) reject(who, entry("padding", i), " = ", shown(item), ": must be ", one_allowed);
    sides.emplace_back(pair[0], pair[1]);
  });
  return Padding(std::move(sides));
}

Window WindowArguments::parse(std::string_view who) const {
  return {.size = per_axis(who, "window", window),
          .stride = per_axis(who, "stride", stride),
          .dilation = per_axis(who, "dilation", dilation),
          .padding = padding_of(who, padding),
          .ceil = flag(who, "ceil", ceil),
          .exact = flag(who, "exact", exact),
          .allow_empty = flag(who, "allow_empty", allow_empty),
          .channels_last = flag(who, "channels_last", channels_last),
          .axes = optional_axes(who, axes)};
}

Adaptive adaptive_of(std::string_view who, nb::handle output, nb::handle channels_last, nb::handle axes) {
  Adaptive region{.channels_last = flag(who, "channels_last", channels_last), .axes = optional_axes(who, axes)};
  const auto extent = [&](const std::string& what, nb::handle item) -> std::optional<std::int64_t> {
    if (item.is_none()) return std::nullopt;
    return integer(who, what, item);
  };
  if (is_integer(output)) {
    if (!region.axes)
      reject(who, "output = ", shown(output), ": one integer needs axes; give one entry per pooled axis");
    region.output.assign(static_cast<std::size_t>(region.axes->size()), extent("output", output));
    return region;
  }
  for_each(who, "output", output, "a sequence of integers, and None for an axis to keep",
           [&](Py_ssize_t i, nb::handle item) { region.output.push_back(extent(entry("output", i), item)); });
  return region;
}

Global global_of(std::string_view who, nb::handle rank, nb::handle channels_last, nb::handle axes,
                 nb::handle keepdims) {
  return {.rank = optional_rank(who, rank),
          .channels_last = flag(who, "channels_last", channels_last),
          .axes = optional_axes(who, axes),
          .keepdims = flag(who, "keepdims", keepdims)};
}

Plane plane_of(std::string_view who, nb::handle rank, nb::handle channels_last, nb::handle axes) {
  return {.rank = optional_rank(who, rank),
          .channels_last = flag(who, "channels_last", channels_last),
          .axes = optional_axes(who, axes)};
}

IndexKind index_kind_of(std::string_view who, nb::handle kind) {
  return choice<IndexKind>(who, "index_kind", kind,
                           {{"offset", IndexKind::offset},
                            {"plane", IndexKind::plane},
                            {"tensor", IndexKind::tensor},
                            {"tensor_column", IndexKind::tensor_column}});
}

Ties ties_of(std::string_view who, nb::handle ties) {
  return choice<Ties>(who, "ties", ties, {{"first", Ties::first}, {"split", Ties::split}});
}

Pooling pooling_of(std::string_view who, Reducer reducer, nb::handle option, nb::handle second) {
  Pooling pooling{.reducer = reducer};
  switch (reducer) {
    case Reducer::max:
    case Reducer::min:
      pooling.ties = ties_of(who, option);
      if (const IndexKind kind = index_kind_of(who, second[1]); flag(who, "return_indices", second[0]))
        pooling.indices = kind;
      break;
    case Reducer::sum:
      if (!option.is_none()) pooling.dtype = parse_dtype(who, option);
      break;
    case Reducer::avg:
      if (!PyUnicode_Check(option.ptr())) {
        pooling.divisor = number(who, "divisor", option, "\"window\", \"valid\", \"clipped\" or a number");
      } else {
        pooling.divisor = choice<Divisor::Rule>(
            who, "divisor", option,
            {{"window", Divisor::Rule::window}, {"valid", Divisor::Rule::valid}, {"clipped", Divisor::Rule::clipped}});
      }
      break;
    case Reducer::smooth_max:
      pooling.beta = number(who, "beta", option);
      pooling.pad =
          choice<SmoothPadding>(who, "pad", second, {{"zero", SmoothPadding::zero}, {"ignore", SmoothPadding::ignore}});
      break;
    case Reducer::lp: pooling.p = number(who, "p", option); break;
  }
  return pooling;
}

}  // namespace cenote::python
