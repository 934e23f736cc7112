// Row poolings: checks, and the forward reductions.
#include "ops/row_pooling.h"

#include <cmath>
#include <limits>

#include "core/copy.h"
#include "core/reject.h"
#include "core/views.h"
#include "cpu/segments.h"
#include "ops/arrays.h"
#include "sparse/relation.h"

namespace cenote {
namespace {

void check_reduction(const std::string& who, const Reduction& reduction) {
  if (name(reduction.reducer).empty()) reject(who, "reducer = ", static_cast<int>(reduction.reducer), ": is none");
  const Traits of = traits(reduction.reducer);
  if (reduction.reducer == Reducer::smooth_max && (!std::isfinite(reduction.beta) || reduction.beta == 0))
    reject(who, "beta = ", reduction.beta, ": must be finite and not 0");
  if (reduction.reducer == Reducer::lp && !(reduction.p >= 1))
    reject(who, "p = ", reduction.p, ": must be at least 1 (infinity is the largest magnitude)");
  const double number = reduction.divisor.number();
  if (of.counts == Counts::divisor && !(std::isfinite(number) && number > 0))
    reject(who, "divisor = ", number, ": must be finite and greater than 0");
  if (reduction.ties == Ties::split && !of.picks) reject(who, "ties = split: only max and min have ties");
}

/// Whether an output without inputs has no value of its own.
bool needs_rows(const Reduction& reduction) {
  return traits(reduction.reducer).picks || reduction.reducer == Reducer::smooth_max;
}

void check_empty(const RowPooling::Impl& pooling) {
  if (!needs_rows(pooling.reduction) || pooling.reduction.empty == Empty::identity) return;
  const std::optional<std::int64_t> row = pooling.rows->first_empty();
  if (!row) return;
  if (!pooling.rows->relation())
    reject(pooling.who, "batch ", *row, " has no rows: every batch must have one, or empty must be identity");
  const auto output = pooling.rows->relation()->output();
  reject(pooling.who, "output row ", *row, " at ", sparse::row_text(output->impl().view(), *row),
         " has no inputs: every row must have one, or empty must be identity");
}

std::string name_of(const Reduction& reduction) { return std::string(name(reduction.reducer)) + "_pool"; }

}  // namespace

RowPooling::Impl::Impl(std::string name, const Reduction& how, std::unique_ptr<const sparse::Incidence> incidence)
    : who(std::move(name)),
      reduction(how),
      traits(cenote::traits(how.reducer)),
      params{how.beta, how.p},
      rows(std::move(incidence)) {
  check_reduction(who, reduction);
  // A smooth max counts padded cells by the logarithm of their number: there are none.
  if (traits.counts == Counts::padded) divisor = -std::numeric_limits<double>::infinity();
  if (traits.counts == Counts::divisor && reduction.divisor.rule() == EdgeDivisor::Rule::number)
    divisor = reduction.divisor.number();
  if (traits.counts == Counts::divisor && reduction.divisor.rule() == EdgeDivisor::Rule::volume)
    divisor = rows->relation() ? static_cast<double>(rows->relation()->volume()) : 1;
}

bool RowPooling::Impl::divides_by_edges() const noexcept {
  return traits.counts == Counts::divisor && !weighed() && reduction.divisor.rule() == EdgeDivisor::Rule::count;
}

const double* RowPooling::Impl::divisors() const {
  if (weighed()) return weight_sums.data();
  if (!divides_by_edges()) return nullptr;
  const auto make = [&] {
    const std::int64_t* offsets = rows->forward().offsets;
    std::vector<double> counts(static_cast<std::size_t>(rows->outputs()));
    for (std::size_t o = 0; o < counts.size(); ++o)
      counts[o] = static_cast<double>(std::max<std::int64_t>(offsets[o + 1] - offsets[o], 1));
    return counts;
  };
  return counts_.get(make).data();
}

RowPooling::RowPooling(const Relation& relation, const Reduction& reduction) {
  auto impl =
      std::make_shared<Impl>(name_of(reduction), reduction, std::make_unique<sparse::Incidence>(relation, false));
  check_empty(*impl);
  impl_ = std::move(impl);
}

RowPooling RowPooling::global(const std::shared_ptr<const Coordinates>& coords, const Reduction& reduction) {
  const std::string who = "global_" + name_of(reduction);
  if (!coords) reject(who, "coords is null: coordinates are needed");
  if (traits(reduction.reducer).counts == Counts::divisor && reduction.divisor.rule() == EdgeDivisor::Rule::volume)
    reject(who, "divisor = volume: only windows have one; must be count or a number");
  auto impl = std::make_shared<Impl>(who, reduction, std::make_unique<sparse::Incidence>(coords));
  check_empty(*impl);
  return RowPooling(std::move(impl));
}

RowPooling RowPooling::multilinear(const Relation& relation) {
  constexpr const char* who = "upsample";
  const Kernel kernel = relation.kernel();
  const Extents &size = kernel.size.values(), &stride = kernel.stride.values();
  for (int a = 0; a < size.size(); ++a)
    if (!relation.transposed() || size[a] != 2 * stride[a] - 1 || kernel.padding.values()[a] != stride[a] - 1 ||
        kernel.dilation.values()[a] != 1)
      reject(who, "a relation of kernel size ", size, ", stride ", stride, ", padding ", kernel.padding.values(),
             ": must be transposed, of size 2 * stride - 1, padding stride - 1 and dilation 1");
  auto impl = std::make_shared<Impl>(who, Reduction{.reducer = Reducer::avg},
                                     std::make_unique<sparse::Incidence>(relation, true));
  impl->weights.assign(static_cast<std::size_t>(relation.volume()), 1.0);
  for (std::size_t id = 0; id < impl->weights.size(); ++id) {
    auto rest = static_cast<std::int64_t>(id);
    for (int a = size.size() - 1; a >= 0; --a) {
      const std::int64_t s = stride[a], i = rest % size[a];
      rest /= size[a];
      impl->weights[id] *= 1 - static_cast<double>(std::abs(i - (s - 1))) / static_cast<double>(s);
    }
  }
  const sparse::Segments& edges = impl->rows->forward();
  impl->weight_sums.assign(static_cast<std::size_t>(relation.outputs()), 0.0);
  for (std::int64_t o = 0; o < relation.outputs(); ++o) {
    double& sum = impl->weight_sums[static_cast<std::size_t>(o)];
    for (std::int64_t e = edges.offsets[o]; e < edges.offsets[o + 1]; ++e)
      sum += impl->weights[static_cast<std::size_t>(edges.id[e])];
    if (sum == 0) sum = 1;  // nothing reaches it, and 0 is its value
  }
  return RowPooling(std::move(impl));
}

std::int64_t RowPooling::inputs() const noexcept { return impl_->rows->inputs(); }
std::int64_t RowPooling::outputs() const noexcept { return impl_->rows->outputs(); }
const Reduction& RowPooling::reduction() const noexcept { return impl_->reduction; }

void check_feats(const RowPooling::Impl& pooling, const char* what, const Signature& feats, std::int64_t rows) {
  if (!is_float(feats.type))
    reject(pooling.who, what, " has type ", name(feats.type), ": must be f16, bf16, f32 or f64");
  if (feats.shape.size() != 2 || feats.shape[0] != rows || feats.shape[1] < 0)
    reject(pooling.who, what, " has shape ", feats.shape, ": must be (", rows, ", channels)");
  const auto beta = static_cast<float>(pooling.reduction.beta);
  if (pooling.reduction.reducer == Reducer::smooth_max && feats.type != Type::f64 &&
      (!std::isfinite(beta) || beta == 0))
    reject(pooling.who, "beta = ", pooling.reduction.beta, ": must be finite and not 0 in f32, the compute type of ",
           name(feats.type));
}

void check_rows(const RowPooling::Impl& pooling, const char* what, const View& view, std::int64_t rows) {
  check_feats(pooling, what, {view.type, view.shape}, rows);
  if (element_count(view.shape) > 0) check_memory(pooling.who, what, view);
}

namespace {

/// A view whose channels lie side by side: the one given, or a copy that `made` keeps.
View side_by_side(const View& view, Array& made) {
  if (view.strides[1] == 1 || view.shape[1] <= 1) return view;
  made = Array(view);
  return made;
}

void check_output(const RowPooling::Impl& pooling, const View& x, const MutableView& y) {
  check_view(pooling.who, "y", y, x.type, {pooling.rows->outputs(), x.shape[1]});
  check_writable(pooling.who, "y", y);
  if (overlap(x, y)) reject(pooling.who, "x and y overlap in memory: they must not");
}

cpu::RowPass forward_pass(const RowPooling::Impl& pooling, const View& x, const MutableView& y) {
  cpu::RowPass pass;
  pass.segments = pooling.rows->forward();
  pass.width = x.shape[1];
  pass.x = x.data;
  pass.x_step = x.strides[0];
  pass.y = y.data;
  pass.y_step = y.strides[0];
  pass.divides_by_edges = pooling.divides_by_edges();
  pass.divisor = pooling.divisor;
  pass.stream = true;
  pass.params = pooling.params;
  return pass;
}

}  // namespace

void reduce_values(const RowPooling::Impl& pooling, const View& x, const MutableView& y) {
  if (x.shape[1] == 0 || pooling.rows->outputs() == 0) return;
  cpu::RowPass pass = forward_pass(pooling, x, y);
  const cpu::RowTable& table = cpu::row_table(x.type);
  const Reducer reducer = pooling.reduction.reducer;
  if (!pooling.weighed()) return cpu::reduce_rows(table.at(Role::value, reducer), pass, x.type);
  pass.weights = pooling.weights.data();
  pass.divisors = pooling.divisors();
  cpu::reduce_rows(table.scaled[static_cast<int>(reducer)], pass, x.type);
}

void reduce_winners(const RowPooling::Impl& pooling, const View& x, const MutableView& y, std::int32_t* winners) {
  if (x.shape[1] == 0 || pooling.rows->outputs() == 0) return;
  cpu::RowPass pass = forward_pass(pooling, x, y);
  pass.winners = winners;
  cpu::reduce_rows(cpu::row_table(x.type).at(Role::winner, pooling.reduction.reducer), pass, x.type);
}

void RowPooling::run(const View& x, const MutableView& y) const {
  check_rows(*impl_, "x", x, inputs());
  check_output(*impl_, x, y);
  Array rows;
  const View source = side_by_side(x, rows);
  if (y.strides[1] == 1 || y.shape[1] <= 1) return reduce_values(*impl_, source, y);
  Array values(x.type, y.shape);
  reduce_values(*impl_, source, values);
  copy_strided(values, y);
}

Array RowPooling::operator()(const View& x) const {
  check_rows(*impl_, "x", x, inputs());
  Array y(x.type, {outputs(), x.shape[1]});
  Array rows;
  reduce_values(*impl_, side_by_side(x, rows), y);
  return y;
}

PooledRows RowPooling::with_rows(const View& x) const {
  if (!impl_->traits.picks) reject(impl_->who, "with_rows: only max and min have a row that won");
  check_rows(*impl_, "x", x, inputs());
  const Extents shape{outputs(), x.shape[1]};
  PooledRows result{Array(x.type, shape), Array(Type::i32, shape)};
  Array rows;
  reduce_winners(*impl_, side_by_side(x, rows), result.values, result.rows.values<std::int32_t>().data());
  return result;
}

}  // namespace cenote
