// The dense poolings: one binding per kind of region, and max_unpool.
#include <string>

#include <cenote/autodiff.h>
#include <cenote/detail/fold_space.h>
#include <cenote/plan.h>
#include <cenote/pooling.h>
#include <nanobind/stl/string.h>

#include "arguments.h"
#include "arrays.h"
#include "operation.h"

namespace cenote::python {
namespace {

/// The arrays to write: given ones, or new ones.
class Target {
 public:
  Target(std::string_view who, std::string_view what, nb::handle given, Type type, const Extents& shape) {
    if (given.is_none()) {
      array_.emplace(type, shape);
    } else {
      output_.emplace(who, what, given, type, shape);
    }
  }
  MutableView view() { return output_ ? output_->view() : MutableView(*array_); }
  nb::object result(const Kind& kind) { return output_ ? output_->object() : kind.wrap(std::move(*array_)); }

 private:
  std::optional<Array> array_;
  std::optional<Output> output_;
};

Any run_with_indices(std::string_view who, const Input& x, const Plan& plan, nb::handle out) {
  nb::object values_out = nb::none(), indices_out = nb::none();
  if (!out.is_none()) {
    if (!nb::isinstance<nb::tuple>(out) || nb::len(out) != 2)
      reject_type(who, "out with return_indices: must be a pair of arrays (values, indices)");
    values_out = out[0];
    indices_out = out[1];
  }
  Target values(who, "out[0]", values_out, plan.output_type(), plan.output_shape());
  Target indices(who, "out[1]", indices_out, *plan.index_type(), plan.output_shape());
  without_gil([&] { plan.run(x, values.view(), indices.view()); });
  return nb::make_tuple(values.result(x.kind()), indices.result(x.kind()));
}

Any run(std::string_view who, const Input& x, const Plan& plan, nb::handle out) {
  if (plan.index_type()) return run_with_indices(who, x, plan, out);
  Target values(who, "out", out, plan.output_type(), plan.output_shape());
  without_gil([&] { plan.run(x, values.view()); });
  return values.result(x.kind());
}

Any unpool(nb::handle y, nb::handle indices, nb::handle shape, nb::handle rank, nb::handle channels_last,
           nb::handle axes) {
  const char* who = "max_unpool";
  const Plane plane = plane_of(who, rank, channels_last, axes);
  const Extents extents = integers(who, "shape", shape);
  const Input values(who, "y", y), places(who, "indices", indices);
  return values.kind().wrap(without_gil([&] { return max_unpool(values, places, extents, plane); }));
}

Any unpool_vjp(nb::handle gx, nb::handle indices, nb::handle rank, nb::handle channels_last, nb::handle axes) {
  const char* who = "max_unpool";
  const Plane plane = plane_of(who, rank, channels_last, axes);
  const Input cotangent(who, "gx", gx), places(who, "indices", indices);
  return cotangent.kind().wrap(without_gil([&] { return max_unpool_vjp(cotangent, places, plane); }));
}

/// The output's shape, and for each pooled axis its number, cells, window, stride, dilation, low padding and outputs.
Pair window_geometry(const std::string& who, nb::handle shape, const WindowArguments& arguments) {
  const detail::Geometry geometry =
      detail::fold_geometry(who.c_str(), arguments.parse(who), integers(who, "shape", shape));
  nb::list extents, axes;
  for (const std::int64_t extent : geometry.output_shape) extents.append(extent);
  for (int i = 0; i < geometry.pooled.size(); ++i) {
    const Axis& axis = geometry.axes[static_cast<std::size_t>(i)];
    axes.append(nb::make_tuple(geometry.pooled[i], axis.n, axis.size, axis.stride, axis.dilation, axis.low, axis.out));
  }
  return nb::make_tuple(nb::tuple(extents), axes);
}

std::string name_of(Reducer reducer, const char* prefix) { return prefix + std::string(name(reducer)) + "_pool"; }

}  // namespace

Any apply(std::string_view who, nb::handle x, const Pooling& pooling, nb::handle out, nb::handle constant) {
  if (!is_numpy(x)) {
    if (nb::isinstance<Probe>(x)) {
      if (!out.is_none()) reject(who, "out: derivatives and plans return new arrays; leave it out");
      return nb::cast(PoolingOperation{pooling});
    }
    if (nb::isinstance<Tensor>(x)) return pool_tensor(who, nb::cast<const Tensor&>(x), pooling, out, constant);
    if (nb::isinstance<graph::Var>(x)) return pool_var(who, nb::cast<const graph::Var&>(x), pooling, out, constant);
  }
  if (!constant.is_none()) reject_type(who, "constant: only a cenote.Tensor takes it");
  const Input input(who, "x", x);
  return run(who, input, plan(pooling, input.view().type, input.view().shape), out);
}

void bind_dense(nb::module_& m) {
  m.def("window_pool", [](Reducer reducer, nb::handle x, nb::handle window, nb::handle stride, nb::handle padding,
                          nb::handle dilation, nb::handle channels_last, nb::handle ceil, nb::handle exact,
                          nb::handle allow_empty, nb::handle axes, nb::handle option, nb::handle second, nb::handle out,
                          nb::handle constant) {
    const std::string who = name_of(reducer, "");
    Pooling pooling = pooling_of(who, reducer, option, second);
    const WindowArguments arguments{window, stride, padding, dilation, channels_last, ceil, exact, allow_empty, axes};
    pooling.region = arguments.parse(who);
    return apply(who, x, pooling, out, constant);
  });
  m.def("adaptive_pool", [](Reducer reducer, nb::handle x, nb::handle output, nb::handle channels_last, nb::handle axes,
                            nb::handle option, nb::handle second, nb::handle out, nb::handle constant) {
    const std::string who = name_of(reducer, "adaptive_");
    Pooling pooling = pooling_of(who, reducer, option, second);
    pooling.region = adaptive_of(who, output, channels_last, axes);
    return apply(who, x, pooling, out, constant);
  });
  m.def("global_pool",
        [](Reducer reducer, nb::handle x, nb::handle rank, nb::handle channels_last, nb::handle axes,
           nb::handle keepdims, nb::handle option, nb::handle second, nb::handle out, nb::handle constant) {
          const std::string who = name_of(reducer, "global_");
          Pooling pooling = pooling_of(who, reducer, option, second);
          pooling.region = global_of(who, rank, channels_last, axes, keepdims);
          return apply(who, x, pooling, out, constant);
        });
  m.def(
      "window_geometry",
      [](const std::string& who, nb::handle shape, nb::handle window, nb::handle stride, nb::handle padding,
         nb::handle dilation, nb::handle channels_last, nb::handle ceil, nb::handle exact, nb::handle allow_empty,
         nb::handle axes) {
        return window_geometry(who, shape,
                               {window, stride, padding, dilation, channels_last, ceil, exact, allow_empty, axes});
      },
      nb::arg("who"), nb::arg("shape"), nb::arg("window"), nb::arg("stride"), nb::arg("padding"), nb::arg("dilation"),
      nb::arg("channels_last"), nb::arg("ceil"), nb::arg("exact"), nb::arg("allow_empty"), nb::arg("axes"));
  m.def("to_numpy", [](const std::string& who, const std::string& what, nb::handle x) -> Any {
    auto* input = new Input(who, what, x);
    const nb::capsule owner(input, [](void* held) noexcept { delete static_cast<Input*>(held); });
    if (is_numpy(x)) return nb::borrow(x);
    return to_numpy(input->view(), owner);
  });
  m.def("to_kind", [](nb::object array, nb::handle x) -> Any {
    if (is_numpy(x)) return array;
    return Input("pool", "x", x).kind().wrap(Array(Input("pool", "x", array).view()));
  });
  m.def("check_output", [](const std::string& who, nb::handle out, nb::handle shape, nb::handle dtype) {
    Output(who, "out", out, parse_dtype(who, dtype), integers(who, "shape", shape));
  });
  m.def("max_unpool", &unpool);
  m.def("max_unpool_vjp", &unpool_vjp);
}

}  // namespace cenote::python
