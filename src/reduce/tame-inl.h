// Reducers that weigh, of cells so tame that their powers are plain numbers. Text that reducers-inl.h includes at its
// end.

CENOTE_REGION_BEGIN

/// The sum of R's powers and what R makes of it: the same bits as R's own, of cells that lie within R's tame_cells().
template <class R>
struct Tame {
  static constexpr int parts = 1;
  static constexpr bool is_tame = true, is_calm = true;
  R base;
  CENOTE_FN explicit Tame(const Params& params) : base(params) {}

  /// For cells that no window holds, and for those whose power is 0.
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
    return {{base.tame_power(x)}};
  }
  template <class N>
  CENOTE_FN Parts<N, 1> combine(const Parts<N, 1>& a, const Parts<N, 1>& b) const {
    return {{a.part[0] + b.part[0]}};
  }
  template <class N>
  CENOTE_FN N lower(const Parts<N, 1>& a, N) const {
    return base.lower_tame(a.part[0]);
  }
};

/// The same for the derivative along a tangent, whose own cells lie within tame_tangents().
template <class R>
struct TameTangent {
  static constexpr int parts = 2, inputs = 2;
  static constexpr bool is_tame = true, is_calm = true;
  R base;
  CENOTE_FN explicit TameTangent(const Params& params) : base(params) {}

  template <class Cell>
  static constexpr Cell neutral() {
    return Cell{0};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> identity() const {
    return {{number<N>(0), number<N>(0)}};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> lift(N x, N dx) const {
    const N power = base.tame_power(x);
    return {{power, base.tame_slope(x, power) * dx}};
  }
  template <class N>
  CENOTE_FN Parts<N, 2> combine(const Parts<N, 2>& a, const Parts<N, 2>& b) const {
    return {{a.part[0] + b.part[0], a.part[1] + b.part[1]}};
  }
  template <class N>
  CENOTE_FN N lower(const Parts<N, 2>& a, N) const {
    return quotient_of(base, a.part[1], a.part[0]);
  }
};

CENOTE_REGION_END
