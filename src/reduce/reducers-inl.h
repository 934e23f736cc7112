// The reducers, each written once against an abstract number N: a scalar, a SIMD pack or a CUDA thread's register.
// This is text without a guard: whoever includes it says in which region of which target it is compiled
// (CENOTE_REGION_BEGIN, CENOTE_REGION_END, CENOTE_FN, and CENOTE_LONG_FN for what is too long to inline everywhere) and
// has made numbers.h or pack-inl.h known there.

CENOTE_REGION_BEGIN

/// What a reduction carries while it is under way: P numbers.
template <class N, int P>
struct Parts {
  static constexpr int count = P;
  N part[P];
};

template <class Flags, class N, int P>
CENOTE_FN Parts<N, P> choose(Flags yes, const Parts<N, P>& a, const Parts<N, P>& b) {
  Parts<N, P> result;
  for (int i = 0; i < P; ++i) result.part[i] = select(yes, a.part[i], b.part[i]);
  return result;
}

/// a times a weight; what has none does not count, not even an infinity.
template <class N>
CENOTE_FN N weighed(N a, N weight) {
  return select(weight == number<N>(0), weight, a * weight);
}

/// Joins two ranges of cells whose weights hang on a cell p: part 0 is p, 1 a sum S, and 2, if there, a sum of weights.
template <class R, class N, int P>
CENOTE_FN Parts<N, P> join_here(const R& reducer, const Parts<N, P>& a, const Parts<N, P>& b) {
  const auto keep = reducer.keeps(a.part[0], b.part[0]);
  Parts<N, P> result;
  result.part[0] = select(keep, a.part[0], b.part[0]);
  const N other = select(keep, b.part[0], a.part[0]);
  for (int i = 1; i < P; ++i) {
    const N scale = i == 1 ? reducer.shrink(other, result.part[0]) : reducer.gain(other, result.part[0]);
    result.part[i] = select(keep, a.part[i] + weighed(b.part[i], scale), weighed(a.part[i], scale) + b.part[i]);
  }
  return result;
}
template <class R, class N, int P>
CENOTE_LONG_FN Parts<N, P> join(const R& reducer, const Parts<N, P>& a, const Parts<N, P>& b) {
  return join_here(reducer, a, b);
}

// A reducer says:
//   parts                how many numbers it carries
//   integers             whether it is defined for integers
//   picks                whether its value is one of the cells, so that it has a winner; then keeps(a, b) chooses
//   weighs               whether every cell has a weight in it, see below
//   identity, lift       of nothing, of one cell
//   neutral              if there is one: a cell that changes no result, whatever stands beside it
//   combine(a, b)        of two neighbouring ranges of cells, a before b
//   lower(a, n)          the value; n is what `counts` names: a divisor, the logarithm of a number of padded cells, or
//                        unused
// One that weighs its cells also says how the value depends on them. Its state is the cell p that scales the others and
// a sum S; the derivative in a cell x is slope(x) * gain(place(x), p) / spread(S):
//   place, slope         of a cell
//   gain(from, to)       what a weight shrinks by when p moves; gain(a, b) * gain(b, c) = gain(a, c)
//   shrink(from, to)     the same for S
//   spread(S)            what weights are divided by
//   close(a, n)          the state with the padded cells in it
//   keeps(p, q)          whether p stays when windows are joined; nearer(p, q), whether it stays the other way round
//   farthest<N>          what any p is nearer than
//   light                if there, gains are so short that derivatives are joined in place
//   tames                if there, sums of powers are plain numbers where cells are tame: tame_power, tame_slope and
//                        lower_tame make and lower them, tame_cells says of which magnitudes
enum class Counts { none, divisor, padded };

/// Tangents beside which cells may be tame.
template <class T>
CENOTE_FN Bounds tame_tangents() {
  const double most = std::ldexp(1.0, std::numeric_limits<T>::max_exponent * 7 / 16);
  return {1 / most, most};
}

/// The largest or the smallest cell. NaN goes beyond anything, and of equal cells the first stays.
template <bool Largest>
struct Extreme {
  static constexpr int parts = 1;
  static constexpr bool integers = true, picks = true, weighs = false;
  static constexpr Counts counts = Counts::none;
  CENOTE_FN explicit Extreme(const Params&) {}

  template <class Cell>
  static constexpr Cell neutral() {
    using Limits = std::numeric_limits<Cell>;
    if (Limits::has_infinity) return Largest ? -Limits::infinity() : Limits::infinity();
    return Largest ? Limits::lowest() : Limits::max();
  }
  template <class N>
  CENOTE_FN Parts<N, 1> identity() const {
    return {{Largest ? lowest<N>() : highest<N>()}};
  }
  template <class N>
  CENOTE_FN Parts<N, 1> lift(N x) const {
    return {{x}};
  }
  template <class N>
  CENOTE_FN auto keeps(N a, N b) const {
    return (Largest ? b <= a : a <= b) | is_nan(a);
  }
  template <class N>
  CENOTE_FN Parts<N, 1> combine(Parts<N, 1> a, Parts<N, 1> b) const {
    return {{further<Largest>(a.part[0], b.part[0])}};
  }
  template <class N>
  CENOTE_FN N lower(Parts<N, 1> a, N) const {
    return a.part[0];
  }
};
using Max = Extreme<true>;
using Min = Extreme<false>;

/// The sum.
struct Sum {
  static constexpr int parts = 1;
  static constexpr bool integers = true, picks = false, weighs = false;
  static constexpr Counts counts = Counts::none;
  CENOTE_FN explicit Sum(const Params&) {}

  template <class Cell>
  static constexpr Cell neutral() {
    return Cell{0};
  }
  template <class N>
  CENOTE_FN Parts<N, 1> identity() const {
    return {{number<N>(0)}};
  }
  template <class N>
  CENOTE_FN Parts<N, 1> lift(N x) const {
    return {{x}};
  }
  template <class N>
  CENOTE_FN Parts<N, 1> combine(Parts<N, 1> a, Parts<N, 1> b) const {
    return {{add(a.part[0], b.part[0])}};
  }
  template <class N>
  CENOTE_FN N lower(Parts<N, 1> a, N) const {
    return a.part[0];
  }
};

/// The sum divided by n. Integers are summed as such and divided by whoever asked.
struct Avg : Sum {
  static constexpr bool integers = false;
  static constexpr Counts counts = Counts::divisor;
  CENOTE_FN explicit Avg(const Params& params) : Sum(params) {}

  /// n is a number, or what stands for one that all lanes are divided by.
  template <class N, class Count>
  CENOTE_FN N lower(Parts<N, 1> a, const Count& n) const {
    return a.part[0] / n;
  }
};

CENOTE_REGION_END

#include "reduce/smooth_max-inl.h"

CENOTE_REGION_BEGIN

/// sum(abs(x)^p)^(1/p), carried as the largest magnitude m and the sum of (abs(x)/u)^p. The unit u is m, or where
/// powers are simple the power of two below it: then plain sums of powers differ by a power of two alone.
struct Lp {
  static constexpr int parts = 2;
  static constexpr bool integers = false, picks = false, weighs = true;
  static constexpr bool tames = true;
  static constexpr Counts counts = Counts::none;
  CENOTE_FN explicit Lp(const Params& params) : p(params.p) {}
  double p;
  /// Squares of such cells, and sums of many, are normal numbers; beside tangents, also the ratio of two of them times
  /// a tangent is.
  template <class T>
  CENOTE_FN Bounds tame_cells(bool tangents = false) const {
    const double most = std::ldexp(1.0, std::numeric_limits<T>::max_exponent * (tangents ? 2 : 3) / 8);
    return {1 / most, simple() ? most : 0};
  }
  /// The parameters for cells whose magnitudes, but for zeros, lie between low and high. Results come out the same, bit
  /// for bit, whether sums are tame or not.
  template <class N>
  CENOTE_FN static Params tamed(Params params, N low, N high) {
    const Bounds bounds = Lp(params).tame_cells<N>();
    params.tame = low >= static_cast<N>(bounds.low) && high <= static_cast<N>(bounds.high);
    return params;
  }

  template <class Cell>
  static constexpr Cell neutral() {
    return Cell{0};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> identity() const {
    return {{number<N>(0), number<N>(0)}};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> lift(N x) const {
    return {{magnitude(x), digits(magnitude(x), p)}};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> combine(Parts<N, 2> a, Parts<N, 2> b) const {
    return infinite<N>() ? Parts<N, 2>{{select(keeps(a.part[0], b.part[0]), a.part[0], b.part[0]), number<N>(1)}}
                         : join(*this, a, b);
  }
  template <class N>
  CENOTE_FN N lower(Parts<N, 2> a, N) const {
    const N sum = a.part[1];
    if (infinite<N>()) return a.part[0];
    // The largest cell may be 0 or infinite, with a sum of at least 1: neither meets its opposite here.
    return unit(a.part[0]) * (simple() ? lower_tame(sum) : exponential(logarithm(sum) / number<N>(p)));
  }

  // Sums that are tame and all that is carried. Zeros are tame in any company.
  template <class N>
  CENOTE_FN static N looked_at(N x) {
    return select(x == number<N>(0), number<N>(1), magnitude(x));
  }
  template <class N>
  CENOTE_FN N tame_power(N x) const {
    return p == 1 ? magnitude(x) : x * x;
  }
  template <class N>
  CENOTE_FN N tame_slope(N x, N) const {
    return p == 1 ? sign(x) : x;
  }
  template <class N>
  CENOTE_FN N lower_tame(N sum) const {
    return p == 1 ? sum : square_root(sum);
  }
  template <class N>
  CENOTE_FN N lower_tame(N sum, N) const {
    return lower_tame(sum);
  }

  template <class N>
  CENOTE_FN auto keeps(N m, N k) const {
    return (k <= m) | is_nan(m);
  }
  template <class N>
  CENOTE_FN auto nearer(N m, N k) const {
    return (m <= k) | is_nan(m);
  }
  template <class N>
  CENOTE_FN N farthest() const {
    return highest<N>();
  }
  template <class N>
  CENOTE_FN N place(N x) const {
    return magnitude(x);
  }
  /// The sign of x, 0 at 0, times what its unit leaves of it.
  template <class N>
  CENOTE_FN N slope(N x) const {
    return sign(x) * digits(magnitude(x), p - 1);
  }
  template <class N>
  CENOTE_FN N gain(N from, N to) const {
    const N r = ratio(unit(from), unit(to));
    if (p == 1 || p >= 2) return power(r, p - 1);
    // The power is a number where the ratio is none any more: such a ratio is moved up before, and its power down.
    using Limits = std::numeric_limits<typename LaneOf<N>::type>;
    constexpr int up = Limits::max_exponent * 3 / 4, down = Limits::max_exponent / 2;
    const auto fits =
        (number<N>(static_cast<double>(Limits::min())) <= r) | (to == highest<N>()) | (from == number<N>(0));
    const N lifted = (from * number<N>(std::ldexp(1.0, up))) / (to * number<N>(std::ldexp(1.0, -down)));
    const N half_back = select(fits, number<N>(1), number<N>(std::exp2((1 - p) * (up + down) / 2)));
    return power(select(fits, r, lifted), p - 1) * half_back * half_back;
  }
  template <class N>
  CENOTE_FN N shrink(N from, N to) const {
    return power(ratio(unit(from), unit(to)), p);
  }
  template <class N>
  CENOTE_FN N spread(N sum) const {
    return power(sum, (p - 1) / p);
  }
  template <class State, class N>
  CENOTE_FN State close(const State& a, N) const {
    return a;
  }

 private:
  CENOTE_FN bool simple() const { return p == 1 || p == 2; }
  template <class N>
  CENOTE_FN N sign(N x) const {
    const N zero = number<N>(0), one = number<N>(1);
    return select((x == zero) | is_nan(x), x, select(zero <= x, one, zero - one));
  }
  template <class N>
  CENOTE_FN N unit(N m) const {
    return simple() ? select((m == number<N>(0)) | is_nan(m), m, binade(m)) : m;
  }
  /// (m / unit(m))^exponent, 1 where both are 0 or infinite.
  template <class N>
  CENOTE_FN N digits(N m, double exponent) const {
    return simple() ? power(ratio(m, unit(m)), exponent) : number<N>(1);
  }
  template <class N>
  CENOTE_FN bool infinite() const {
    return p > static_cast<double>(std::numeric_limits<typename LaneOf<N>::type>::max());
  }
  template <class N>
  CENOTE_FN N ratio(N from, N to) const {
    return select(from == to, number<N>(1), from / to);
  }
  template <class N>
  CENOTE_FN N power(N base, double exponent) const {
    if (exponent == 0) return number<N>(1);
    if (exponent == 0.5) return square_root(base);
    if (exponent == 1) return base;
    if (exponent == 2) return base * base;
    if (exponent == 3) return base * base * base;
    return exponential(number<N>(exponent) * logarithm(base));
  }
};

/// A number and where it came from.
template <class N>
struct Place {
  N value;
  typename IndexOf<N>::type index;
};

template <class Flags, class N>
CENOTE_FN Place<N> choose(Flags yes, const Place<N>& a, const Place<N>& b) {
  return {select(yes, a.value, b.value), select(yes, a.index, b.index)};
}

/// A reducer that picks, together with the place of its pick.
template <class R>
struct Winner {
  static constexpr bool integers = R::integers;
  R base;
  CENOTE_FN explicit Winner(const Params& params) : base(params) {}

  template <class N>
  CENOTE_FN Place<N> combine(Place<N> a, Place<N> b) const {
    const auto keep = base.keeps(a.value, b.value);
    return {select(keep, a.value, b.value), select(keep, a.index, b.index)};
  }
};

CENOTE_REGION_END

#include "reduce/derivatives-inl.h"
#include "reduce/tame-inl.h"
