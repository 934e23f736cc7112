// The reducers, each written once against an abstract number N: a scalar, a SIMD pack or a CUDA thread's register.
// This is text without a guard: whoever includes it says in which region of which target it is compiled
// (CENOTE_REGION_BEGIN, CENOTE_REGION_END, CENOTE_FN, and CENOTE_LONG_FN for what is too long to inline everywhere) and
// has made numbers.h or pack-inl.h known there.

CENOTE_REGION_BEGIN

/// What a reduction carries while it is under way: P numbers.
template <class N, int P>
struct Parts {
  N part[P];
};

// A reducer says:
//   parts                how many numbers it carries
//   integers             whether it is defined for integers
//   picks                whether its value is one of the cells, so that it has a winner; then keeps(a, b) chooses
//   identity, lift       of nothing, of one cell
//   neutral              if there is one: a cell that changes no result, whatever stands beside it
//   combine(a, b)        of two neighbouring ranges of cells, a before b
//   lower(a, n)          the value; n is what `counts` names: a divisor, the logarithm of a number of padded cells, or
//                        unused
enum class Counts { none, divisor, padded };

/// The largest or the smallest cell. NaN goes beyond anything, and of equal cells the first stays.
template <bool Largest>
struct Extreme {
  static constexpr int parts = 1;
  static constexpr bool integers = true, picks = true;
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
  static constexpr bool integers = true, picks = false;
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

  template <class N>
  CENOTE_FN N lower(Parts<N, 1> a, N n) const {
    return a.part[0] / n;
  }
};

/// log(sum(exp(beta*x)))/beta, carried as the extreme cell p and the sum of exp(beta*(x-p)), which is 1 where x = p.
struct SmoothMax {
  static constexpr int parts = 2;
  static constexpr bool integers = false, picks = false;
  static constexpr Counts counts = Counts::padded;
  CENOTE_FN explicit SmoothMax(const Params& params) : beta(params.beta) {}
  double beta;

  template <class N>
  CENOTE_FN Parts<N, 2> identity() const {
    return {{beta > 0 ? lowest<N>() : highest<N>(), number<N>(0)}};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> lift(N x) const {
    return {{x, number<N>(1)}};
  }
  template <class N>
  CENOTE_LONG_FN Parts<N, 2> combine(Parts<N, 2> a, Parts<N, 2> b) const {
    const N p = a.part[0], q = b.part[0];
    const auto keep = (beta > 0 ? q <= p : p <= q) | is_nan(p);
    const N top = select(keep, p, q), other = select(keep, q, p);
    // Halved before subtracting: the difference of two large numbers of unlike sign must not overflow.
    const N half = number<N>(0.5), one = number<N>(1);
    const N gap = number<N>(2) * (number<N>(beta) * (other * half - top * half));
    const N scale = select(other == top, one, exponential(gap));
    return {{top, select(keep, a.part[1] + b.part[1] * scale, a.part[1] * scale + b.part[1])}};
  }
  /// n is the logarithm of the number of padded cells: as many zeros are one cell of value n/beta.
  template <class N>
  CENOTE_FN N lower(Parts<N, 2> a, N n) const {
    const Parts<N, 2> whole = combine(a, lift(n / number<N>(beta)));
    return whole.part[0] + logarithm(whole.part[1]) / number<N>(beta);
  }
};

/// sum(abs(x)^p)^(1/p), carried as the largest magnitude m and the sum of (abs(x)/m)^p.
struct Lp {
  static constexpr int parts = 2;
  static constexpr bool integers = false, picks = false;
  static constexpr Counts counts = Counts::none;
  CENOTE_FN explicit Lp(const Params& params) : p(params.p) {}
  double p;

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
    return {{magnitude(x), number<N>(1)}};
  }
  template <class N>
  CENOTE_LONG_FN Parts<N, 2> combine(Parts<N, 2> a, Parts<N, 2> b) const {
    const N m = a.part[0], k = b.part[0];
    const auto keep = (k <= m) | is_nan(m);
    const N top = select(keep, m, k), other = select(keep, k, m);
    if (infinite<N>()) return {{top, number<N>(1)}};
    const N scale = power(select(other == top, number<N>(1), other / top));
    return {{top, select(keep, a.part[1] + b.part[1] * scale, a.part[1] * scale + b.part[1])}};
  }
  template <class N>
  CENOTE_FN N lower(Parts<N, 2> a, N) const {
    const N sum = a.part[1];
    if (infinite<N>()) return a.part[0];
    if (p == 1) return a.part[0] * sum;
    if (p == 2) return a.part[0] * square_root(sum);
    // The largest cell may be 0 or infinite, with a sum of at least 1: neither meets its opposite here.
    return a.part[0] * exponential(logarithm(sum) / number<N>(p));
  }

 private:
  template <class N>
  CENOTE_FN bool infinite() const {
    return p > static_cast<double>(std::numeric_limits<typename LaneOf<N>::type>::max());
  }
  template <class N>
  CENOTE_FN N power(N ratio) const {
    if (p == 1) return ratio;
    if (p == 2) return ratio * ratio;
    return exponential(number<N>(p) * logarithm(ratio));
  }
};

/// A number and where it came from.
template <class N>
struct Place {
  N value;
  typename IndexOf<N>::type index;
};

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
