// Sparse poolings in Python, local, global and back up, and their derivatives.
#include <string>

#include "arguments.h"
#include "operation.h"
#include "sparse.h"

namespace cenote::python {
namespace {

/// A row pullback that remembers which kind of array it came from.
struct PythonRowPullback {
  RowPullback pullback;
  Type type;
  Kind kind;

  Any call(nb::handle gy) const {
    const Input cotangent("pullback", "gy", gy, type);
    return kind.wrap(without_gil([&] { return pullback(cotangent); }));
  }
};

Reduction reduction_of(std::string_view who, Reducer reducer, nb::handle divisor, nb::handle beta, nb::handle p,
                       nb::handle ties, nb::handle empty) {
  Reduction reduction{.reducer = reducer};
  if (PyUnicode_Check(divisor.ptr())) {
    reduction.divisor = choice<EdgeDivisor::Rule>(
        who, "divisor", divisor, {{"count", EdgeDivisor::Rule::count}, {"volume", EdgeDivisor::Rule::volume}});
  } else {
    reduction.divisor = number(who, "divisor", divisor, "\"count\", \"volume\" or a number");
  }
  reduction.beta = number(who, "beta", beta);
  reduction.p = number(who, "p", p);
  reduction.ties = ties_of(who, ties);
  reduction.empty = choice<Empty>(who, "empty", empty, {{"reject", Empty::reject}, {"identity", Empty::identity}});
  return reduction;
}

/// x without features: what a pooling of it says of the rows and the stride of the result.
SparseTensor bare(const SparseTensor& x) { return x.with_feats(Array(x.type(), {x.rows(), 0})); }

const PythonSparse& sparse_of(std::string_view who, nb::handle x) {
  const nb::handle object = nb::isinstance<Probe>(x) ? nb::handle(nb::cast<const Probe&>(x).value) : x;
  if (!nb::isinstance<PythonSparse>(object)) reject_type(who, "x = ", shown(object), ": must be a SparseTensor");
  return nb::cast<const PythonSparse&>(object);
}

/// Runs the operation that `make` builds for x, or returns it where x is a Probe.
template <class F>
Any apply_rows(std::string_view who, nb::handle x, F&& make) {
  const PythonSparse& tensor = sparse_of(who, x);
  RowOperation operation = without_gil([&] { return make(tensor.tensor); });
  if (nb::isinstance<Probe>(x)) return nb::cast(std::move(operation));
  return operation.result(without_gil([&] { return operation.rows(tensor.tensor.feats()); }), tensor.kind);
}

RowOperation over(const SparseTensor& x, const Relation& relation, const Reduction& reduction) {
  return {RowPooling(relation, reduction), pool(bare(x), relation, {.reducer = Reducer::sum})};
}

Any pool_rows(nb::handle x, Reducer reducer, nb::handle relation, nb::handle size, nb::handle stride,
              nb::handle padding, nb::handle dilation, nb::handle policy, nb::handle extent, nb::handle targets,
              nb::handle order, nb::handle divisor, nb::handle beta, nb::handle p, nb::handle ties, nb::handle empty,
              nb::handle return_rows) {
  const char* who = "pool";
  const Reduction reduction = reduction_of(who, reducer, divisor, beta, p, ties, empty);
  const Kernel kernel = kernel_of(who, size, stride, padding, dilation);
  const RelateOptions options = relate_options(who, policy, extent, targets, order, nb::str("automatic"));
  if (!relation.is_none() && !nb::isinstance<Relation>(relation))
    reject_type(who, "relation = ", shown(relation), ": must be a Relation");
  const auto edges = relation.is_none() ? std::nullopt : std::optional(nb::cast<Relation>(relation));
  const auto relate_to = [&](const SparseTensor& t) {
    return edges ? *edges : t.coordinates()->relation(kernel, options);
  };
  if (!flag(who, "return_rows", return_rows))
    return apply_rows(who, x, [&](const SparseTensor& t) { return over(t, relate_to(t), reduction); });
  const PythonSparse& tensor = sparse_of(who, x);
  const RowOperation operation = over(tensor.tensor, relate_to(tensor.tensor), reduction);
  PooledRows pooled = without_gil([&] { return operation.rows.with_rows(tensor.tensor.feats()); });
  return nb::make_tuple(operation.result(std::move(pooled.values), tensor.kind),
                        tensor.kind.wrap(std::move(pooled.rows)));
}

/// The way back up: over a transposed relation. The library's own function says what the result's rows are.
RowOperation transposed(const SparseTensor& x, const Kernel& kernel,
                        const std::shared_ptr<const Coordinates>& targets) {
  SparseTensor frame = pool_transpose(bare(x), kernel, targets);
  return {RowPooling(relate_transposed(x.coordinates(), kernel, frame.coordinates()), {.reducer = Reducer::avg}),
          frame};
}

RowOperation upsampled(const SparseTensor& x, const PerAxis& scale, const std::shared_ptr<const Coordinates>& targets) {
  SparseTensor frame = upsample(bare(x), scale, targets);
  Extents size, step, padding;
  for (int a = 0; a < x.dimension(); ++a) {
    const std::int64_t s = scale.is_scalar() ? scale.values()[0] : scale.values()[a];
    size.push_back(2 * s - 1);
    step.push_back(s);
    padding.push_back(s - 1);
  }
  const Kernel kernel{size, step, padding, 1};
  return {RowPooling::multilinear(relate_transposed(x.coordinates(), kernel, frame.coordinates())), frame};
}

}  // namespace

Any RowOperation::result(Array y, const Kind& kind) const {
  if (!frame) return kind.wrap(std::move(y));
  return nb::cast(PythonSparse{frame->with_feats(std::move(y)), kind});
}

Pair RowOperation::jvp(const PythonSparse& x, nb::handle dx) const {
  const Input along("jvp", "dx", dx, x.tensor.type());
  Linearized pushed = without_gil([&] { return cenote::jvp(rows, x.tensor.feats(), along); });
  return nb::make_tuple(result(std::move(pushed.y), x.kind), x.kind.wrap(std::move(pushed.dy)));
}

Pair RowOperation::vjp(const PythonSparse& x) const {
  auto pulled = without_gil([&] { return cenote::vjp(rows, x.tensor.feats()); });
  return nb::make_tuple(result(std::move(pulled.y), x.kind),
                        PythonRowPullback{std::move(pulled.pullback), x.tensor.type(), x.kind});
}

Any RowOperation::hvp(const PythonSparse& x, nb::handle gy, nb::handle v) const {
  const Input cotangent("hvp", "gy", gy, x.tensor.type()), along("hvp", "v", v, x.tensor.type());
  return x.kind.wrap(without_gil([&] { return cenote::hvp(rows, x.tensor.feats(), cotangent, along); }));
}

void bind_sparse_pool(nb::module_& m) {
  nb::class_<RowOperation>(m, "RowOperation")
      .def("jvp", &RowOperation::jvp)
      .def("vjp", &RowOperation::vjp)
      .def("hvp", &RowOperation::hvp);
  nb::class_<PythonRowPullback>(m, "RowPullback", "Takes cotangents of pooled features back to those of the input.")
      .def("__call__", &PythonRowPullback::call, nb::arg("gy"));
  m.def("sparse_pool", &pool_rows);
  m.def("sparse_global_pool",
        [](nb::handle x, Reducer reducer, nb::handle beta, nb::handle p, nb::handle ties, nb::handle empty) {
          const std::string who = "global_" + std::string(name(reducer)) + "_pool";
          const Reduction reduction = reduction_of(who, reducer, nb::str("count"), beta, p, ties, empty);
          return apply_rows(who, x, [&](const SparseTensor& t) {
            return RowOperation{RowPooling::global(t.coordinates(), reduction), std::nullopt};
          });
        });
  m.def("sparse_pool_transpose", [](nb::handle x, nb::handle size, nb::handle stride, nb::handle padding,
                                    nb::handle dilation, nb::handle targets) {
    const char* who = "pool_transpose";
    const Kernel kernel = kernel_of(who, size, stride, padding, dilation);
    const auto onto = optional_coordinates(who, targets);
    return apply_rows(who, x, [&](const SparseTensor& t) { return transposed(t, kernel, onto); });
  });
  m.def("sparse_upsample", [](nb::handle x, nb::handle scale, nb::handle targets) {
    const PerAxis factor = per_axis("upsample", "scale", scale);
    const auto onto = optional_coordinates("upsample", targets);
    return apply_rows("upsample", x, [&](const SparseTensor& t) { return upsampled(t, factor, onto); });
  });
}

}  // namespace cenote::python
