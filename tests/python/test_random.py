"""Random problems of every kind held against an oracle in NumPy that visits windows one by one."""

import itertools

import cenote
import ml_dtypes
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

FLOATS = ("f8", "f4", "f2", ml_dtypes.bfloat16)
INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
UNIT = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-3, "bfloat16": 2e-2}


def sides(rule, n, k, s, d):
    e = (k - 1) * d + 1
    if rule in ("same", "same_lower"):
        out = -(-n // s)
        total = max((out - 1) * s + e - n, 0)
        low, high = total // 2, total - total // 2
        return (low, high, out) if rule == "same" else (high, low, out)
    low, high = (0, 0) if rule == "valid" else rule
    return low, high, None


def windows(problem):
    """For each axis the outputs, each as (positions of real cells, of all taps, taps inside the padded axis)."""
    result = []
    for n, k, s, d, rule in zip(*(problem[name] for name in ("spatial", "window", "stride", "dilation", "rules"))):
        low, high, out = sides(rule, n, k, s, d)
        free = n + low + high - (k - 1) * d - 1
        if out is None:
            out = free // s + 1 if free >= 0 else 0
            if problem["ceil"] and free >= 0 and free % s and out * s < n + low:
                out += 1
        axis = []
        for o in range(out):
            taps = [o * s - low + j * d for j in range(k)]
            axis.append(([t for t in taps if 0 <= t < n], k, sum(-low <= t < n + high for t in taps)))
        result.append(axis)
    return result


def reduced(name, cells, taps, clipped, option):
    """The value of one window of float64 or integer cells."""
    if name in ("max", "min"):
        nan = cells[cells != cells]
        return nan[0] if len(nan) else (cells.max() if name == "max" else cells.min()) if len(cells) else None
    if name == "sum":
        return cells.sum()
    if name == "avg":
        divisor = {"window": taps, "valid": len(cells), "clipped": clipped}.get(option, option)
        return cells.sum() / divisor if len(cells) else 0.0
    if name == "lp":
        return (np.abs(cells) ** option).sum() ** (1 / option)
    padded = np.concatenate([cells, np.zeros(taps - len(cells))])
    return np.log(np.exp(option * padded).sum()) / option


@st.composite
def problems(draw, types=FLOATS + INTEGERS + ("?",)):
    rank = draw(st.integers(1, 3))
    axis = lambda low, high: [draw(st.integers(low, high)) for _ in range(rank)]  # noqa: E731
    kept = [draw(st.integers(0, 3)) for _ in range(draw(st.integers(0, 2)))]
    spatial, layout = axis(0, 6), draw(st.sampled_from(["first", "last", "axes"]))
    rule = draw(st.sampled_from(["valid", "same", "same_lower", "pairs"]))
    rules = [(draw(st.integers(0, 4)), draw(st.integers(0, 4))) if rule == "pairs" else rule for _ in range(rank)]
    return dict(
        spatial=spatial,
        kept=kept or [1],
        layout=layout,
        window=axis(1, 4),
        stride=axis(1, 3),
        dilation=axis(1, 2),
        rules=rules,
        rule=rule,
        ceil=rule in ("valid", "pairs") and draw(st.booleans()),
        dtype=np.dtype(draw(st.sampled_from(types))),
        special=draw(st.booleans()),
        view=draw(st.sampled_from(["plain", "reversed", "sliced", "transposed"])),
        seed=draw(st.integers(0, 999)),
    )


def array(problem):
    """Cells with ties, some NaN and infinite; the pooled axes last, and the same as an array with other strides."""
    rng = np.random.default_rng(problem["seed"])
    shape = [*problem["kept"], *problem["spatial"]]
    x = rng.integers(0, 9, shape).astype(problem["dtype"])
    if problem["dtype"].name in UNIT:
        x = (x - problem["dtype"].type(4)).astype(problem["dtype"])
        if problem["special"]:
            x[rng.random(shape) < 0.1] = np.nan
            x[rng.random(shape) < 0.1] = -np.inf
    if problem["view"] == "reversed":
        x = np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    elif problem["view"] == "sliced":
        wide = np.zeros((*shape[:-1], 2 * shape[-1]), x.dtype)
        wide[..., ::2] = x
        x = wide[..., ::2]
    elif problem["view"] == "transposed":
        x = np.ascontiguousarray(x.T).T
    return x


def options(problem, x):
    """The array in its layout, the options that go with it, and how to bring the pooled axes back to the end."""
    rank, kept = len(problem["spatial"]), len(problem["kept"])
    padding = tuple(problem["rules"]) if problem["rule"] == "pairs" else problem["rule"]
    given = dict(stride=problem["stride"], dilation=problem["dilation"], padding=padding, allow_empty=True)
    if problem["ceil"]:
        given["ceil"] = True
    if problem["layout"] == "first":
        return x, given, lambda y: y
    given.update({"channels_last": True} if problem["layout"] == "last" else {"axes": range(kept - 1, kept - 1 + rank)})
    return np.moveaxis(x, 0, -1), given, lambda y: np.moveaxis(y, -1, 0)


def oracle(name, problem, x, option=None):
    axes = windows(problem)
    result = np.empty([*problem["kept"], *map(len, axes)], object)
    for place in itertools.product(*(range(len(axis)) for axis in axes)):
        parts = [axis[o] for axis, o in zip(axes, place)]
        taps, clipped = np.prod([p[1] for p in parts]), np.prod([p[2] for p in parts])
        index = np.ix_(*(p[0] for p in parts))
        for kept in np.ndindex(*problem["kept"]):
            cells = x[kept][index].ravel()
            result[(*kept, *place)] = reduced(name, cells, taps, clipped, option)
    return result


@settings(deadline=None, max_examples=150)
@given(problem=problems())
def test_extremes_and_their_indices(problem):
    x = array(problem)
    exact = x.astype(np.float64) if problem["dtype"].name in UNIT else x
    given, kw, back = options(problem, x)
    for name, function in (("max", cenote.max_pool), ("min", cenote.min_pool)):
        expected = oracle(name, problem, exact)
        values, indices = function(given, problem["window"], return_indices=True, **kw)
        assert_array_equal(np.asarray(function(given, problem["window"], **kw)).view(np.uint8), values.view(np.uint8))
        values, indices = back(values), back(indices)
        assert values.dtype == x.dtype and values.shape == expected.shape
        for place in np.ndindex(expected.shape):
            value, index = expected[place], indices[place]
            if value is None:
                assert index == -1
                continue
            got = values[place]
            assert got == value or (value != value and got != got)
            cell = x[place[: len(problem["kept"])]].ravel()[index]
            assert cell == got or (cell != cell and got != got)


@settings(deadline=None, max_examples=100)
@given(problem=problems(types=FLOATS), divisor=st.sampled_from(["window", "valid", "clipped", 2.5]))
def test_sums_averages_norms_and_smooth_maxima(problem, divisor):
    problem["special"] = False
    x = array(problem)
    given, kw, back = options(problem, x)
    exact = x.astype(np.float64)
    limit = UNIT[problem["dtype"].name]
    for name, function, args, more, option in (
        ("sum", cenote.sum_pool, (), {}, None),
        ("avg", cenote.avg_pool, (), {"divisor": divisor}, divisor),
        ("lp", cenote.lp_pool, (3,), {}, 3),
        ("smooth_max", cenote.smooth_max_pool, (0.7,), {}, 0.7),
    ):
        # What ceil hangs over does not exist, for a smooth maximum either; the oracle counts all taps.
        if name == "smooth_max" and problem["ceil"]:
            continue
        expected = oracle(name, problem, exact, option).astype(np.float64)
        got = back(function(given, problem["window"], *args, **more, **kw))
        assert got.dtype == x.dtype and got.shape == expected.shape
        assert_allclose(got.astype(np.float64), expected, rtol=limit, atol=limit * 40)


@settings(deadline=None, max_examples=60)
@given(problem=problems(types=INTEGERS))
def test_sums_and_averages_of_integers(problem):
    x = array(problem)
    given, kw, back = options(problem, x)
    expected = oracle("sum", problem, x.astype(np.int64)).astype(np.int64)
    wide = "u64" if x.dtype.kind == "u" else "i64"
    assert_array_equal(back(cenote.sum_pool(given, problem["window"], dtype=wide, **kw)), expected)
    assert_array_equal(back(cenote.sum_pool(given, problem["window"], **kw)), expected.astype(x.dtype))
    averages = oracle("avg", problem, x.astype(np.int64), "valid").astype(np.float32)
    assert_array_equal(back(cenote.avg_pool(given, problem["window"], divisor="valid", **kw)), averages)


@settings(deadline=None, max_examples=60)
@given(problem=problems(types=("f8",)))
def test_forward_and_reverse_mode_are_adjoint(problem):
    problem["special"] = False
    x, kw, _ = options(problem, array(problem))
    rng = np.random.default_rng(1)
    for function, args, more in (
        (cenote.max_pool, (), {}),
        (cenote.min_pool, (), {"ties": "split"}),
        (cenote.sum_pool, (), {}),
        (cenote.avg_pool, (), {"divisor": "valid"}),
        (cenote.lp_pool, (2.5,), {}),
        (cenote.smooth_max_pool, (-1.5,), {"pad": "ignore"}),
    ):
        dx = rng.standard_normal(x.shape)
        y, dy = cenote.jvp(function, x, dx, problem["window"], *args, **more, **kw)
        gy = rng.standard_normal(y.shape)
        gx = cenote.vjp(function, x, problem["window"], *args, **more, **kw)[1](gy)
        assert gx.shape == x.shape
        assert_allclose(np.vdot(dy, gy), np.vdot(dx, gx), rtol=1e-9, atol=1e-9)
