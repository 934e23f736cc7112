// Random reductions of rows: over relations, transposed ones and batches, with features of every kind and layout.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <rapidcheck.h>

#include <cenote/sparse.h>

#include "arrays.h"
#include "random_problem.h"
#include "random_relation.h"
#include "row_oracle.h"
#include "show.h"

namespace cenote::test {

/// What feeds the outputs of a row pooling.
enum class Feeding { local, transposed, global };

/// Everything that decides the outcome of a row pooling; the features follow from `data` and `number`.
struct RowCase {
  Request request;
  Feeding feeding = Feeding::local;
  bool sorted = false;
  Engine engine = Engine::automatic;
  Reduction reduction{};
  Type type = Type::f32;
  std::int64_t channels = 1;
  Layout x, y, dx, gy;
  Data data = Data::few, slopes = Data::few;
  std::uint64_t number = 0;
};

inline std::ostream& operator<<(std::ostream& out, const RowCase& c) {
  const auto list = [&](const std::vector<std::int64_t>& values) {
    for (const std::int64_t v : values) out << " " << v;
  };
  constexpr const char* feedings[] = {"local", "transposed", "global"};
  const reference::SparseProblem& p = c.request.problem;
  out << name(c.reduction.reducer) << " " << name(c.type) << " " << p.inputs.size() << " rows of " << c.channels << ", "
      << feedings[static_cast<int>(c.feeding)] << " policy " << static_cast<int>(p.policy) << " size";
  list(p.kernel.size);
  out << " stride";
  list(p.kernel.stride);
  out << " padding";
  list(p.kernel.padding);
  out << " dilation";
  list(p.kernel.dilation);
  out << (c.sorted ? " sorted" : "") << " engine " << static_cast<int>(c.engine) << (p.targets ? " targets" : "")
      << (p.extent ? " extent" : "") << "; divisor " << static_cast<int>(c.reduction.divisor.rule()) << " beta "
      << c.reduction.beta << " p " << c.reduction.p << (c.reduction.ties == Ties::split ? " split" : "");
  show(out, "x", c.x);
  show(out, "y", c.y);
  return out << "; data " << static_cast<int>(c.data) << " slopes " << static_cast<int>(c.slopes) << " number "
             << c.number;
}

inline Reduction draw_reduction(Reducer reducer, Ties ties) {
  using detail::one_of;
  Reduction r{.reducer = reducer, .ties = ties, .empty = one_of<Empty>({Empty::reject, Empty::identity})};
  r.divisor = one_of<EdgeDivisor>({EdgeDivisor::Rule::count, EdgeDivisor::Rule::volume, 2.5});
  r.beta = one_of<double>({1, 0.5, -2, 8, -0.25, 100});
  r.p = one_of<double>({2, 1, 3, inf, 1.5, 2.5});
  return r;
}

/// Three dimensions are what most clouds have.
inline int draw_dimension() { return detail::one_of<int>({3, 1, 3, 2, 3, 4, 3, 5, 3, 6}); }

/// Few channels, whole vectors of them, and some more.
inline std::int64_t draw_channels() {
  return detail::one_of<std::int64_t>({1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64, 65, 70});
}

inline rc::Gen<RowCase> row_cases(Reducer reducer, Ties ties) {
  return rc::gen::exec([=] {
    using namespace detail;
    RowCase c;
    c.request = draw_request(draw_dimension());
    c.feeding = one_of<Feeding>({Feeding::local, Feeding::local, Feeding::local, Feeding::transposed, Feeding::global});
    c.sorted = chance(40);
    c.engine = one_of<Engine>({Engine::automatic, Engine::sorted, Engine::hashed});
    c.reduction = draw_reduction(reducer, ties);
    c.type = one_of<Type>({Type::f32, Type::f64, Type::f16, Type::bf16});
    c.channels = draw_channels();
    c.data = one_of<Data>({Data::few, Data::unit, Data::special, Data::any_exponent, Data::offset, Data::spikes});
    c.slopes = one_of<Data>({Data::few, Data::unit});
    c.x = layout(2, true);
    c.y = layout(2, false);
    c.dx = chance(40) ? c.x : layout(2, true);
    c.gy = layout(2, true);
    c.number = static_cast<std::uint64_t>(between(0, 1 << 20));
    return c;
  });
}

/// A case made ready: the pooling, the oracle's relation, and the features.
struct RowGiven {
  std::shared_ptr<const Coordinates> input;
  reference::SparseRelation relation;
  std::int64_t volume = 1;
  std::optional<RowPooling> pooling;
  std::optional<Strided> x;

  explicit RowGiven(RowCase& c) {
    reference::SparseProblem& p = c.request.problem;
    input = coordinates(p.inputs, c.request.dimension, c.request.wide);
    if (c.sorted) {
      input = input->sorted();
      p.inputs = rows_of(input->array());
    }
    relate_rows(c);
    make_pooling(c);
    x.emplace(c.type, Extents{input->rows(), c.channels}, c.x);
    fill(*x, c.data, c.number);
  }

  View features() const { return std::as_const(*x).view(); }
  RowOracle oracle(const RowCase& c) const { return RowOracle(c.reduction, relation, volume, features()); }
  Extents output_shape(const RowCase& c) const { return {pooling->outputs(), c.channels}; }

 private:
  void relate_rows(const RowCase& c) {
    const reference::SparseProblem& p = c.request.problem;
    relation = c.feeding == Feeding::global  ? reference::sparse_global(p.inputs, input->batch_size())
               : c.feeding == Feeding::local ? reference::sparse_relation(p)
                                             : reference::sparse_transposed(p);
    if (c.feeding == Feeding::global) return;
    for (const std::int64_t k : p.kernel.size) volume *= k;
  }

  RowPooling made(const RowCase& c) const {
    const Kernel kernel = kernel_of(c.request.problem.kernel);
    const RelateOptions options = options_of(c.request, c.engine);
    if (c.feeding == Feeding::global) return RowPooling::global(input, c.reduction);
    if (c.feeding == Feeding::local) return RowPooling(relate(input, kernel, options), c.reduction);
    return RowPooling(relate_transposed(input, kernel, options.targets, c.engine), c.reduction);
  }

  /// A row that is empty and must not be has to be named; then the case goes on with such rows allowed.
  void make_pooling(RowCase& c) {
    // Batches have no kernel whose cells could be counted.
    if (c.feeding == Feeding::global && c.reduction.divisor.rule() == EdgeDivisor::Rule::volume)
      c.reduction.divisor = EdgeDivisor::Rule::count;
    const Reducer r = c.reduction.reducer;
    const bool needs = r == Reducer::max || r == Reducer::min || r == Reducer::smooth_max;
    std::vector<bool> fed(relation.outputs.size(), false);
    for (const auto& edge : relation.edges) fed[static_cast<std::size_t>(edge.out_row)] = true;
    const auto empty = std::find(fed.begin(), fed.end(), false);
    if (needs && c.reduction.empty == Empty::reject && empty != fed.end()) {
      const auto refused = rejects([&] { made(c); }, {std::string(name(r)), std::to_string(empty - fed.begin())});
      if (!refused) RC_FAIL(refused.message());
      c.reduction.empty = Empty::identity;
    }
    pooling = made(c);
  }
};

/// A reducer, and who gets the derivative at ties.
struct RowKind {
  Reducer reducer;
  Ties ties = Ties::first;
};
inline constexpr RowKind row_kinds[] = {
    {Reducer::max}, {Reducer::min}, {Reducer::max, Ties::split}, {Reducer::min, Ties::split},
    {Reducer::sum}, {Reducer::avg}, {Reducer::smooth_max},       {Reducer::lp}};
inline std::string row_label(const testing::TestParamInfo<RowKind>& info) {
  return std::string(name(info.param.reducer)) + (info.param.ties == Ties::split ? "_split" : "");
}

}  // namespace cenote::test
