// Derivatives of row poolings: the same reductions over the edges of outputs, or over those of inputs.
#include <cmath>
#include <limits>

#include "core/copy.h"
#include "cpu/segments.h"
#include "ops/row_pooling.h"

namespace cenote {
namespace {

using Impl = RowPooling::Impl;

Type lane_of(Type type) { return is_half(type) ? Type::f32 : type; }

bool is_infinite_lp(const Impl& pooling, Type type) {
  const double largest =
      type == Type::f64 ? std::numeric_limits<double>::max() : static_cast<double>(std::numeric_limits<float>::max());
  return pooling.reduction.reducer == Reducer::lp && pooling.params.p > largest;
}

std::int64_t rounded(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Working memory, handed out piece by piece.
class Arena {
 public:
  explicit Arena(std::byte* memory) : next_(memory) {}
  MutableView rows(Type type, std::int64_t rows, std::int64_t width) {
    const MutableView view(next_, type, {rows, width});
    next_ += rounded(rows * width * static_cast<std::int64_t>(size_of(type)));
    return view;
  }
  std::int32_t* winners(std::int64_t rows, std::int64_t width) {
    return static_cast<std::int32_t*>(this->rows(Type::i32, rows, width).data);
  }

 private:
  std::byte* next_;
};

/// Calls f(first, last) for parts of n elements, possibly at once.
template <class F>
void in_parts(std::int64_t n, const F& f) {
  sparse::for_chunks(sparse::Chunks::of(n),
                     [&](std::int64_t, std::int64_t first, std::int64_t last) { f(first, last); });
}

/// The elements of one array without gaps as another type, narrower or wider.
void convert(const View& from, const MutableView& to) {
  const auto from_bytes = static_cast<std::int64_t>(size_of(from.type));
  const auto to_bytes = static_cast<std::int64_t>(size_of(to.type));
  in_parts(element_count(from.shape), [&](std::int64_t first, std::int64_t last) {
    const std::byte* source = static_cast<const std::byte*>(from.data) + first * from_bytes;
    std::byte* target = static_cast<std::byte*>(to.data) + first * to_bytes;
    if (to_bytes < from_bytes)
      narrow_line(to.type, target, from.type, source, last - first);
    else
      convert_line(to.type, target, from.type, source, 1, last - first);
  });
}

/// to[i] = f(a[i], b[i]) for arrays without gaps, all in one lane type.
template <class F>
void each(const View& a, const View& b, const MutableView& to, const F& f) {
  const auto go = [&]<class T>(T) {
    const T *x = static_cast<const T*>(a.data), *y = static_cast<const T*>(b.data);
    T* z = static_cast<T*>(to.data);
    in_parts(element_count(a.shape), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) z[i] = f(x[i], y[i]);
    });
  };
  a.type == Type::f64 ? go(double{}) : go(float{});
}

/// -1, 0 or 1; NaN stays.
template <class T>
T sign(T x) {
  return x > 0 ? T{1} : x < 0 ? T{-1} : x;
}

cpu::RowPass pass_over(const Impl& pooling, const sparse::Segments& segments, const View& x, const MutableView& y) {
  cpu::RowPass pass;
  pass.segments = segments;
  pass.width = x.shape[1];
  pass.x = x.data;
  pass.x_step = x.shape[1];
  pass.y = y.data;
  pass.y_step = x.shape[1];
  pass.divisor = pooling.divisor;
  pass.stream = true;
  pass.params = pooling.params;
  return pass;
}

/// From the second array to the first, both of one lane type.
std::int64_t plane(const View& first, const View& second) {
  return (static_cast<const std::byte*>(second.data) - static_cast<const std::byte*>(first.data)) /
         static_cast<std::int64_t>(size_of(first.type));
}

void linear_cotangent(const Impl& pooling, const View& gy, const MutableView& gx) {
  cpu::RowPass pass = pass_over(pooling, pooling.rows->backward(), gy, gx);
  const cpu::RowTable& table = cpu::row_table(gy.type);
  pass.source_divisors = pooling.divisors();
  if (pooling.weighed()) pass.weights = pooling.weights.data();
  // What all outputs are divided by may as well divide the sum.
  const bool scaled = pooling.weighed() || pooling.divides_by_edges();
  const Reducer reducer = scaled ? Reducer::sum : pooling.reduction.reducer;
  cpu::reduce_rows(scaled ? table.scaled[static_cast<int>(reducer)] : table.at(Role::value, reducer), pass, gy.type);
}

void weighed_tangent(const Impl& pooling, const View& x, const View& dx, const MutableView& dy) {
  cpu::RowPass pass = pass_over(pooling, pooling.rows->forward(), x, dy);
  pass.x_plane = plane(x, dx);
  cpu::reduce_rows(cpu::row_table(x.type).at(Role::tangent, pooling.reduction.reducer), pass, x.type);
}

/// gx, in the lane type like all others; `scaled` is gy and becomes what weights are multiplied by.
void weighed_cotangent(const Impl& pooling, const View& x, const View& gy, const MutableView& gx, Arena arena) {
  const std::int64_t width = x.shape[1];
  const MutableView place = arena.rows(x.type, pooling.rows->outputs(), width);
  const MutableView scaled = arena.rows(x.type, pooling.rows->outputs(), width);
  const cpu::RowTable& table = cpu::row_table(x.type);
  cpu::RowPass states = pass_over(pooling, pooling.rows->forward(), x, place);
  states.second = scaled.data;
  states.stream = false;
  cpu::reduce_rows(table.at(Role::states, pooling.reduction.reducer), states, x.type);
  each(gy, scaled, scaled, [](auto g, auto spread) { return g / spread; });
  cpu::RowPass back = pass_over(pooling, pooling.rows->backward(), place, gx);
  back.x_plane = plane(place, scaled);
  back.cells = x.data;
  cpu::reduce_rows(table.at(Role::cotangent, pooling.reduction.reducer), back, x.type);
}

/// The rows with the largest magnitudes, which win in an infinite norm. All in the lane type. `cells` takes as much as
/// x and may be used for other things afterwards.
std::int32_t* largest_magnitudes(const Impl& pooling, const View& x, const MutableView& cells, Arena& arena) {
  const std::int64_t width = x.shape[1], outputs = pooling.rows->outputs();
  const MutableView values = arena.rows(x.type, outputs, width);
  std::int32_t* winners = arena.winners(outputs, width);
  each(x, x, cells, [](auto a, auto) { return std::fabs(a); });
  cpu::RowPass pass = pass_over(pooling, pooling.rows->forward(), cells, values);
  pass.winners = winners;
  pass.stream = false;
  cpu::reduce_rows(cpu::row_table(x.type).at(Role::winner, Reducer::max), pass, x.type);
  return winners;
}

/// Runs `formula` on the arrays themselves, or on copies in f32 where they are halves.
template <class Formula>
void in_lanes(const View& a, const View& b, const MutableView& to, Arena& arena, const Formula& formula) {
  if (!is_half(a.type)) return formula(a, b, to);
  const auto like = [&](const View& view) { return arena.rows(Type::f32, view.shape[0], view.shape[1]); };
  const MutableView wide_a = like(a), wide_b = like(b), result = like(to);
  convert(a, wide_a);
  convert(b, wide_b);
  formula(View(wide_a), View(wide_b), result);
  convert(result, to);
}

}  // namespace

Rule rule_of(const Impl& pooling, Type type) {
  if (is_infinite_lp(pooling, type)) return Rule::routed;
  if (pooling.traits.weighs) return Rule::weighed;
  if (!pooling.traits.picks) return Rule::linear;
  return pooling.reduction.ties == Ties::split ? Rule::weighed : Rule::routed;
}

std::int64_t row_scratch(const Impl& pooling, const Signature& x) {
  const Rule rule = rule_of(pooling, x.type);
  if (rule == Rule::linear) return 0;
  const std::int64_t width = x.shape[1];
  const auto bytes = [&](std::int64_t rows) {
    return rounded(rows * width * static_cast<std::int64_t>(size_of(lane_of(x.type))));
  };
  const std::int64_t in = bytes(pooling.rows->inputs()), out = bytes(pooling.rows->outputs());
  // Values and winners of a routed rule, states of a weighed one; magnitudes; copies of halves.
  return 3 * out + (is_infinite_lp(pooling, x.type) ? 2 * in : 0) + (is_half(x.type) ? 2 * in + out : 0);
}

void routed_tangent(const Impl& pooling, const std::int32_t* winners, const View& dx, const MutableView& dy) {
  cpu::RowPass pass = pass_over(pooling, pooling.rows->forward(), dx, dy);
  pass.routes = winners;
  cpu::reduce_rows(cpu::row_table(dx.type).forth, pass, dx.type);
}

void routed_cotangent(const Impl& pooling, const std::int32_t* winners, const View& gy, const MutableView& gx) {
  cpu::RowPass pass = pass_over(pooling, pooling.rows->backward(), gy, gx);
  pass.routes = winners;
  cpu::reduce_rows(cpu::row_table(gy.type).back, pass, gy.type);
}

void row_tangent(const Impl& pooling, const View& x, const View& dx, const MutableView& dy, std::byte* scratch) {
  Arena arena(scratch);
  const Rule rule = rule_of(pooling, dx.type);
  if (element_count(dy.shape) == 0) return;
  if (rule == Rule::linear) return reduce_values(pooling, dx, dy);
  if (rule == Rule::weighed)
    return in_lanes(x, dx, dy, arena,
                    [&](const View& a, const View& da, const MutableView& to) { weighed_tangent(pooling, a, da, to); });
  if (!is_infinite_lp(pooling, x.type)) {
    const MutableView values = arena.rows(x.type, dy.shape[0], dy.shape[1]);
    std::int32_t* winners = arena.winners(dy.shape[0], dy.shape[1]);
    reduce_winners(pooling, x, values, winners);
    return routed_tangent(pooling, winners, dx, dy);
  }
  in_lanes(x, dx, dy, arena, [&](const View& a, const View& da, const MutableView& to) {
    const MutableView cells = arena.rows(a.type, a.shape[0], a.shape[1]);
    const std::int32_t* winners = largest_magnitudes(pooling, a, cells, arena);
    each(a, da, cells, [](auto x0, auto dx0) { return sign(x0) * dx0; });
    routed_tangent(pooling, winners, cells, to);
  });
}

void row_cotangent(const Impl& pooling, const View& x, const View& gy, const MutableView& gx, std::byte* scratch) {
  Arena arena(scratch);
  const Rule rule = rule_of(pooling, gy.type);
  if (element_count(gx.shape) == 0) return;
  if (rule == Rule::linear) return linear_cotangent(pooling, gy, gx);
  if (rule == Rule::weighed)
    return in_lanes(x, gy, gx, arena, [&](const View& a, const View& g, const MutableView& to) {
      weighed_cotangent(pooling, a, g, to, arena);
    });
  if (!is_infinite_lp(pooling, x.type)) {
    const MutableView values = arena.rows(x.type, gy.shape[0], gy.shape[1]);
    std::int32_t* winners = arena.winners(gy.shape[0], gy.shape[1]);
    reduce_winners(pooling, x, values, winners);
    return routed_cotangent(pooling, winners, gy, gx);
  }
  in_lanes(x, gy, gx, arena, [&](const View& a, const View& g, const MutableView& to) {
    // The winners' signs are what counts: a cell that wins nothing gets 0, even a NaN.
    const MutableView cells = arena.rows(a.type, a.shape[0], a.shape[1]);
    const MutableView won = arena.rows(a.type, g.shape[0], g.shape[1]);
    const std::int32_t* winners = largest_magnitudes(pooling, a, cells, arena);
    each(a, a, cells, [](auto x0, auto) { return sign(x0); });
    routed_tangent(pooling, winners, cells, won);
    each(won, g, won, [](auto s, auto g0) { return s * g0; });
    routed_cotangent(pooling, winners, won, to);
  });
}

}  // namespace cenote
