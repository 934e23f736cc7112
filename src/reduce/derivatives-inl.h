// Derivatives as reductions, made of any reducer that weighs its cells. Text that reducers-inl.h includes at its end.

CENOTE_REGION_BEGIN

/// The largest or smallest cell as a reducer that weighs: all cells equal to it share in it, S of them.
template <bool Largest>
struct Shared {
  static constexpr int parts = 2;
  static constexpr bool integers = false, picks = false, weighs = true;
  static constexpr Counts counts = Counts::none;
  CENOTE_FN explicit Shared(const Params& params) : extreme(params) {}
  Extreme<Largest> extreme;

  template <class N>
  CENOTE_FN Parts<N, 2> identity() const {
    return {{extreme.template identity<N>().part[0], number<N>(0)}};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> lift(N x) const {
    return {{x, number<N>(1)}};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> combine(Parts<N, 2> a, Parts<N, 2> b) const {
    return join(*this, a, b);
  }
  template <class N>
  CENOTE_FN auto keeps(N a, N b) const {
    return extreme.keeps(a, b);
  }
  template <class N>
  CENOTE_FN auto nearer(N a, N b) const {
    return (Largest ? a <= b : b <= a) | is_nan(b);
  }
  /// NaN goes beyond anything, here too.
  template <class N>
  CENOTE_FN N farthest() const {
    return number<N>(std::numeric_limits<double>::quiet_NaN());
  }
  template <class N>
  CENOTE_FN N place(N x) const {
    return x;
  }
  template <class N>
  CENOTE_FN N slope(N) const {
    return number<N>(1);
  }
  template <class N>
  CENOTE_FN N gain(N from, N to) const {
    const N one = number<N>(1), zero = number<N>(0);
    return select(from == to, one, select(is_nan(from), select(is_nan(to), one, zero), zero));
  }
  template <class N>
  CENOTE_FN N shrink(N from, N to) const {
    return gain(from, to);
  }
  template <class N>
  CENOTE_FN N spread(N sum) const {
    return sum;
  }
  template <class State, class N>
  CENOTE_FN State close(const State& a, N) const {
    return a;
  }
};

/// The reducer whose weights are R's.
template <class R>
struct Weighing {
  using type = R;
};
template <bool Largest>
struct Weighing<Extreme<Largest>> {
  using type = Shared<Largest>;
};

/// The derivative along a tangent of a reducer that picks: the tangent of what it picks.
template <class R>
struct Follower {
  static constexpr int parts = 2, inputs = 2;
  R base;
  CENOTE_FN explicit Follower(const Params& params) : base(params) {}

  template <class Cell>
  static constexpr Cell neutral() {
    return R::template neutral<Cell>();
  }
  template <class N>
  CENOTE_FN Parts<N, 2> identity() const {
    return {{base.template identity<N>().part[0], number<N>(0)}};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> lift(N x, N dx) const {
    return {{x, dx}};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> combine(const Parts<N, 2>& a, const Parts<N, 2>& b) const {
    const auto keep = base.keeps(a.part[0], b.part[0]);
    const Parts<N, 1> x{{a.part[0]}}, y{{b.part[0]}};
    return {{base.combine(x, y).part[0], select(keep, a.part[1], b.part[1])}};
  }
  template <class N>
  CENOTE_FN N lower(const Parts<N, 2>& a, N) const {
    return a.part[1];
  }
};

/// A sum of weight * dx over what weights are divided by, and 0 of no cells or zeros; never a negative zero, whose sign
/// would hang on the order of things.
template <class R, class N>
CENOTE_FN N quotient_of(const R& reducer, N weights, N sum) {
  const N zero = number<N>(0);
  return select(sum == zero, zero, weights / reducer.spread(sum) + zero);
}

/// The derivative along a tangent: the sum of weight * dx over a window, together with what the weights need.
template <class R>
struct Tangent {
  static constexpr int parts = 3, inputs = 2;
  R base;
  CENOTE_FN explicit Tangent(const Params& params) : base(params) {}

  template <class N>
  CENOTE_FN Parts<N, 3> identity() const {
    const Parts<N, 2> none = base.template identity<N>();
    return {{none.part[0], none.part[1], number<N>(0)}};
  }
  template <class N>
  CENOTE_FN Parts<N, 3> lift(N x, N dx) const {
    const Parts<N, 2> cell = base.lift(x);
    return {{cell.part[0], cell.part[1], base.slope(x) * dx}};
  }
  template <class N>
  CENOTE_FN Parts<N, 3> combine(const Parts<N, 3>& a, const Parts<N, 3>& b) const {
    if constexpr (requires { R::light; })
      return join_here(base, a, b);
    else
      return join(base, a, b);
  }
  /// A window without cells has no derivative to speak of: 0.
  template <class N>
  CENOTE_FN N lower(Parts<N, 3> a, N n) const {
    const Parts<N, 3> whole = base.close(a, n);
    return quotient_of(base, whole.part[2], whole.part[1]);
  }
};

/// The derivative the other way: for one cell, the sum of weight * gy over the windows that hold it. Its cells are
/// windows, given by their p and gy / spread(S); of the windows under way the p nearest to the cell is kept.
template <class R>
struct Cotangent;
/// Whether it may become a plain sum.
template <class C>
struct MayBeTame {};
template <>
struct MayBeTame<Cotangent<SmoothMax>> {
  static constexpr bool tames = true;
};
template <class R>
struct Cotangent : MayBeTame<Cotangent<R>> {
  static constexpr int parts = 2, inputs = 2;
  R base;
  CENOTE_FN explicit Cotangent(const Params& params) : base(params) {}

  template <class N>
  CENOTE_FN Parts<N, 2> identity() const {
    return {{base.template farthest<N>(), number<N>(0)}};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> lift(N p, N g) const {
    return {{p, g}};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> combine(const Parts<N, 2>& a, const Parts<N, 2>& b) const {
    if constexpr (requires { R::light; })
      return here(a, b);
    else
      return away(a, b);
  }
  /// The sum for the cell x; 0 where no window holds it, even a NaN.
  template <class N>
  CENOTE_FN N lower(Parts<N, 2> a, N x) const {
    const N none = select(a.part[0] == base.template farthest<N>(), a.part[1], number<N>(1));
    const N value = base.slope(x) * weighed(a.part[1], base.gain(base.place(x), a.part[0]));
    return select(none == number<N>(0), number<N>(0), value);
  }

  // Sums of windows that are tame, all as if their p were the origin.
  template <class N>
  CENOTE_FN N tame_power(N p, N g) const {
    return g * base.tame_loss(p);
  }
  template <class N>
  CENOTE_FN N lower_tame(N sum, N x) const {
    return base.slope(x) * (sum * base.tame_gain(base.place(x)));
  }

 private:
  template <class N>
  CENOTE_FN Parts<N, 2> here(const Parts<N, 2>& a, const Parts<N, 2>& b) const {
    const N p = a.part[0], q = b.part[0];
    const auto keep = base.nearer(p, q);
    const N near = select(keep, p, q), scale = base.gain(near, select(keep, q, p));
    return {{near, select(keep, a.part[1] + weighed(b.part[1], scale), weighed(a.part[1], scale) + b.part[1])}};
  }
  template <class N>
  CENOTE_LONG_FN Parts<N, 2> away(const Parts<N, 2>& a, const Parts<N, 2>& b) const {
    return here(a, b);
  }
};

CENOTE_REGION_END
