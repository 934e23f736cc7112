// The smooth max. Text that reducers-inl.h includes among the others.

CENOTE_REGION_BEGIN

/// 2^f for |f| <= 1/2, by a polynomial; 1 at 0.
template <class N>
CENOTE_FN N two_to_fraction(N f) {
  constexpr double few[] = {0.693147188116349,    0.24022650761348438,   0.05550356682386405,
                            0.009618082183394121, 0.0013391093247266345, 0.0001545336197353356};
  constexpr double many[] = {0.6931471805599453,     0.240226506959101,      0.0555041086648216,
                             0.009618129107606541,   0.001333355814641675,   0.00015403530442319546,
                             1.5252733830147138e-05, 1.3215442232969344e-06, 1.0178062256646543e-07,
                             7.072656799362923e-09,  4.454998363104869e-10};
  constexpr bool short_lanes = sizeof(typename LaneOf<N>::type) == 4;
  N sum = number<N>(short_lanes ? few[5] : many[10]);
  for (int i = short_lanes ? 4 : 9; i >= 0; --i) sum = mul_add(sum, f, number<N>(short_lanes ? few[i] : many[i]));
  return mul_add(sum, f, number<N>(1));
}

/// log(sum(exp(beta*x)))/beta, carried as the extreme cell p and the sum of 2^(t(x) - r(p)), where t(x) is beta*x in
/// units of log(2) and r(p) the whole number next to t(p): so states are joined by powers of two. Beyond 2^22 there is
/// no room for fractions beside whole numbers, and r is t itself.
struct SmoothMax {
  static constexpr int parts = 2;
  static constexpr bool integers = false, picks = false, weighs = true;
  static constexpr bool light = true, tames = true;
  static constexpr Counts counts = Counts::padded;
  CENOTE_FN explicit SmoothMax(const Params& params)
      : crowded(params.crowded),
        tame(params.tame),
        near(params.near),
        narrow(params.beta, params.origin),
        wide(params.beta, params.origin) {}
  /// With an origin of 0, powers of such cells, and sums of many, are normal numbers; beside tangents, also the ratio
  /// of two of them times a tangent is.
  template <class T>
  CENOTE_FN Bounds tame_cells(bool tangents = false) const {
    const double doublings = crowded ? std::numeric_limits<T>::max_exponent * (tangents ? 0.25 : 0.375) : 0;
    const double most =
        doublings / 1.45 / (sizeof(T) == 4 ? static_cast<double>(narrow.beta) : static_cast<double>(wide.beta));
    constexpr double greatest = std::numeric_limits<T>::max();
    return {0, most < greatest ? most : greatest};
  }
  /// The parameters for cells of which low and high are the least and the greatest. Results come out the same, bit for
  /// bit, whether sums are tame or not.
  template <class N>
  CENOTE_FN static Params tamed(Params params, N low, N high) {
    const SmoothMax reducer(params);
    const N p = reducer.place(low), q = reducer.place(high),
            widest = number<N>(std::numeric_limits<N>::max_exponent * 0.75);
    const N from = reducer.nearest(p), to = reducer.nearest(q);
    const bool wholes = params.crowded && all(reducer.whole(p)) && all(reducer.whole(q));
    params.tame = wholes && magnitude(to - from) <= widest;
    params.near = wholes && !params.tame;
    params.origin = static_cast<double>((from <= to ? to : from) - reducer.anchor<N>());
    return params;
  }

  template <class N>
  CENOTE_FN Parts<N, 2> identity() const {
    return {{lowest<N>(), number<N>(0)}};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> lift(N x) const {
    const N p = place(x);
    if (near) {
      const N whole = nearest(p);
      return {{whole, near_mantissa(p, whole)}};
    }
    return {{p, tame ? tame_power_at(p) : mantissa(p)}};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> combine(Parts<N, 2> a, Parts<N, 2> b) const {
    const N p = a.part[0], q = b.part[0];
    if (tame) return {{select(q <= p, p, q), a.part[1] + b.part[1]}};
    return combine_any(a, b);
  }
  template <class N>
  CENOTE_FN Parts<N, 2> combine_any(Parts<N, 2> a, Parts<N, 2> b) const {
    const N p = a.part[0], q = b.part[0];
    if (near) return joined(a, b, q <= p, p - q);
    const auto keep = keeps(p, q);
    const N top = select(keep, p, q);
    if (!all(whole(top)) && !all(whole(top) | (a.part[1] + b.part[1] == number<N>(0))))
      return far_combine(p, a.part[1], q, b.part[1]);
    return joined(a, b, keep, nearest(p) - nearest(q));
  }
  template <class N>
  CENOTE_FN N lower(Parts<N, 2> a, N n) const {
    const Parts<N, 2> cells = close(a, n);
    const N p = cells.part[0], sum = cells.part[1];
    if (!crowded) return lower_from(p, sum);
    // Of no cells at all that is infinite already.
    if (near) return logarithm_over_beta(sum, p - anchor<N>());
    const N value = logarithm_over_beta(sum, nearest(p) - anchor<N>());
    return all(whole(p)) ? value : select(whole(p), value, lower_from(p, sum));
  }

  // Sums that are tame and all that is carried, in units of 2^origin.
  template <class N>
  CENOTE_FN static N looked_at(N x) {
    return x;
  }
  template <class N>
  CENOTE_FN N tame_power(N x) const {
    const auto& s = scale<N>();
    return tame_power_at(x, number<N>(s.sign * s.high), number<N>(s.sign * s.low));
  }
  template <class N>
  CENOTE_FN N tame_slope(N, N power) const {
    return power;
  }
  template <class N>
  CENOTE_FN N lower_tame(N sum) const {
    return logarithm_over_beta(sum, number<N>(scale<N>().origin) - anchor<N>());
  }
  template <class N>
  CENOTE_FN N lower_tame(N sum, N n) const {
    const auto none = n == lowest<N>();
    return lower_tame(all(none) ? sum : select(none, sum, sum + tame_power_at(n / number<N>(scale<N>().beta))));
  }

  /// gain(p, q) and gain(q, p) where r(q) is the origin.
  template <class N>
  CENOTE_FN N tame_gain(N p) const {
    return two_to_whole(nearest(p) - number<N>(scale<N>().origin));
  }
  template <class N>
  CENOTE_FN N tame_loss(N p) const {
    return two_to_whole(number<N>(scale<N>().origin) - nearest(p));
  }

  template <class N>
  CENOTE_FN auto keeps(N p, N q) const {
    return (q <= p) | is_nan(p);
  }
  template <class N>
  CENOTE_FN auto nearer(N p, N q) const {
    return (p <= q) | is_nan(p);
  }
  template <class N>
  CENOTE_FN N farthest() const {
    return highest<N>();
  }
  template <class N>
  CENOTE_FN N place(N x) const {
    return number<N>(scale<N>().sign) * x;
  }
  template <class N>
  CENOTE_FN N slope(N x) const {
    return mantissa(place(x));
  }
  /// At most 1: from <= to.
  template <class N>
  CENOTE_FN N gain(N from, N to) const {
    if (!all(whole(to))) return far_gain(from, to);
    return two_to_whole(nearest(from) - nearest(to));
  }
  template <class N>
  CENOTE_FN N shrink(N from, N to) const {
    return gain(from, to);
  }
  template <class N>
  CENOTE_FN N spread(N sum) const {
    return sum;
  }
  /// n is the logarithm of the number of padded cells: as many zeros are one cell of value n/beta.
  template <class State, class N>
  CENOTE_FN State close(const State& a, N n) const {
    State cells = a;
    if (tame) cells.part[1] = a.part[1] * two_to_whole(number<N>(scale<N>().origin) - nearest(a.part[0]));
    const auto none = n == lowest<N>();
    if (all(none)) return cells;
    State padded = a;
    const N p = n / number<N>(scale<N>().beta);
    padded.part[0] = near ? nearest(p) : p;
    padded.part[1] = mantissa(p);
    for (int i = 2; i < State::count; ++i) padded.part[i] = number<N>(0);
    if constexpr (State::count == parts)
      return choose(none, cells, combine_any(cells, padded));
    else
      return choose(none, cells, join(*this, cells, padded));
  }

 private:
  bool crowded, tame, near;
  static constexpr double most_whole = 1 << 22, margin = 1 << 11;  // 2^-margin is 0

  template <class T>
  static constexpr double two_to_digits() {
    double result = 1;
    for (int i = 1; i < std::numeric_limits<T>::digits; ++i) result *= 2;
    return result;
  }

  /// Constants in the lane type T: beta > 0, as cells change sign where it is not, and t(x)/x in two numbers;
  /// the origin of tame sums beside an anchor.
  template <class T>
  struct Scale {
    T sign, beta, high, low, origin;
    bool inverts;  // whether 1 / beta is a normal number
    T factor;      // sign / beta where it is, and the sign elsewhere
    T doubling;    // the same times log(2)
    T far, whole;  // the x where r is no whole number any more, and where none beside it that has a weight is

    CENOTE_FN Scale(double signed_beta, double whole_number)
        : sign(signed_beta > 0 ? T{1} : T{-1}),
          beta(sign * static_cast<T>(signed_beta)),
          origin(static_cast<T>(1.5 * two_to_digits<T>() + whole_number)) {
      constexpr double log2_e = 1.4426950408889634, log2_e_rest = 2.0355273740931033e-17;
      constexpr double most = std::numeric_limits<T>::max();
      const double b = beta, product = b * log2_e;
      inverts = 1 / beta >= std::numeric_limits<T>::min() && 1 / beta <= std::numeric_limits<T>::max();
      factor = inverts ? sign / beta : sign;
      doubling = static_cast<T>(sign * 0.6931471805599453 / (inverts ? b : 1.0));
      // A product too large for T is cut elsewhere, and then nothing but 0 is small.
      const bool fits = product <= most;
      high = fits ? static_cast<T>(product) : beta;
      low = static_cast<T>(fits ? (product - high) + (std::fma(b, log2_e, -product) + b * log2_e_rest)
                                : b * (log2_e - 1));
      const double reach = fits ? most_whole / product : 0;
      far = static_cast<T>(reach < most ? reach : most);
      whole = static_cast<T>(reach < most ? reach * (1 - margin / most_whole) : most);
    }
  };
  Scale<float> narrow;
  Scale<double> wide;
  template <class N>
  CENOTE_FN const auto& scale() const {
    if constexpr (std::is_same_v<typename LaneOf<N>::type, float>)
      return narrow;
    else
      return wide;
  }

  template <class N>
  CENOTE_FN auto far(N p) const {
    return number<N>(scale<N>().far) <= magnitude(p);
  }
  /// Whether r is a whole number for p, and for all others that have a weight beside it.
  template <class N>
  CENOTE_FN auto whole(N p) const {
    return magnitude(p) <= number<N>(scale<N>().whole);
  }
  /// A number so large that its last digit stands for 1.
  template <class N>
  CENOTE_FN N anchor() const {
    return number<N>(1.5 * two_to_digits<typename LaneOf<N>::type>());
  }
  /// r(p) + anchor, for p that are not far.
  template <class N>
  CENOTE_FN N nearest(N p) const {
    return mul_add(p, number<N>(scale<N>().high), anchor<N>());
  }
  /// The states of whole numbers `gap` apart, of which the first is the greater where that is kept.
  template <class N, class Flags>
  CENOTE_FN Parts<N, 2> joined(const Parts<N, 2>& a, const Parts<N, 2>& b, Flags keep, N gap) const {
    const N weight = two_to_whole(minus_magnitude(gap));
    return {{select(keep, a.part[0], b.part[0]),
             select(keep, a.part[1], b.part[1]) + select(keep, b.part[1], a.part[1]) * weight}};
  }
  /// 2^(t(p) - r(p)).
  template <class N>
  CENOTE_FN N mantissa(N p) const {
    return select(far(p), number<N>(1), near_mantissa(p));
  }
  template <class N>
  CENOTE_FN N near_mantissa(N p) const {
    return near_mantissa(p, nearest(p));
  }
  template <class N>
  CENOTE_FN N near_mantissa(N p, N whole) const {
    return near_mantissa(p, whole, number<N>(scale<N>().high), number<N>(scale<N>().low));
  }
  template <class N>
  CENOTE_FN N near_mantissa(N p, N whole, N high, N low) const {
    return two_to_fraction(mul_add(p, low, fused(p, high, anchor<N>() - whole)));
  }
  template <class N>
  CENOTE_FN N tame_power_at(N p) const {
    return tame_power_at(p, number<N>(scale<N>().high), number<N>(scale<N>().low));
  }
  /// The same of cells that have not changed sign: the two factors have instead.
  template <class N>
  CENOTE_FN N tame_power_at(N p, N high, N low) const {
    const N whole = mul_add(p, high, anchor<N>());
    return moved(near_mantissa(p, whole, high, low), number<N>(scale<N>().origin), whole);
  }
  /// log(sum * 2^whole) / beta, with the sign.
  template <class N>
  CENOTE_FN N logarithm_over_beta(N sum, N whole) const {
    const auto& s = scale<N>();
    const N value = scaled_logarithm(sum, whole, number<N>(s.factor), number<N>(s.doubling));
    return s.inverts ? value : value / number<N>(s.beta);
  }
  /// Exactly p where there is no other cell. Where there is none at all p is infinite, and no logarithm changes that.
  template <class N>
  CENOTE_FN N lower_from(N p, N sum) const {
    return number<N>(scale<N>().sign) * p + logarithm_over_beta(sum / mantissa(p), number<N>(0));
  }
  template <class N>
  CENOTE_LONG_FN Parts<N, 2> far_combine(N p, N p_sum, N q, N q_sum) const {
    return join(*this, Parts<N, 2>{{p, p_sum}}, Parts<N, 2>{{q, q_sum}});
  }
  template <class N>
  CENOTE_LONG_FN N far_gain(N from, N to) const {
    const N zero = number<N>(0);
    const N wholes =
        select(far(from), zero, nearest(from) - anchor<N>()) - select(far(to), zero, nearest(to) - anchor<N>());
    const N gap = select(far(from), from, zero) - select(far(to), to, zero);
    const N most = fused(gap, number<N>(scale<N>().high), wholes), nothing = number<N>(-margin);
    const N exponent = select(most <= nothing, nothing, mul_add(gap, number<N>(scale<N>().low), most));
    const N integer = (exponent + anchor<N>()) - anchor<N>();
    return select(from == to, number<N>(1), two_to_fraction(exponent - integer) * two_to_whole(integer));
  }
};

CENOTE_REGION_END
