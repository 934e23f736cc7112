"""cenote.compat.torchlean held against an oracle that visits windows one by one, and central differences."""

import itertools

import numpy as np
import pytest
from cenote.compat import torchlean
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

NAMES = ("max_pool", "avg_pool", "smooth_max_pool")


def windows(shape, kernel, stride, padding):
    """The shape of the result, and for each output the cells of its window in row-major order, None for padding."""
    out = [(n + 2 * p - k) // s + 1 for n, k, s, p in zip(shape[1:], kernel, stride, padding)]
    found = {}
    for channel, *place in itertools.product(range(shape[0]), *map(range, out)):
        taps = itertools.product(*map(range, kernel))
        cells = ([o * s + j - p for o, s, j, p in zip(place, stride, tap, padding)] for tap in taps)
        inside = lambda cell: all(0 <= c < n for c, n in zip(cell, shape[1:]))  # noqa: E731
        found[(channel, *place)] = [(channel, *cell) if inside(cell) else None for cell in cells]
    return (shape[0], *out), found


def weights(name, x, cells, beta):
    """The value of one window, and its derivative in each cell."""
    real = [cell for cell in cells if cell is not None]
    if name == "max_pool":
        best = max(real, key=lambda cell: x[cell]) if real else None
        return (x[best], {best: 1.0}) if real else (-np.inf, {})
    if name == "avg_pool":
        return sum(x[cell] for cell in real) / len(cells), {cell: 1 / len(cells) for cell in real}
    powers = {cell: np.exp(beta * x[cell]) for cell in real}
    total = sum(powers.values()) + len(cells) - len(real)
    return np.log(total) / beta, {cell: power / total for cell, power in powers.items()}


@st.composite
def problems(draw):
    rank = draw(st.integers(1, 3))
    shape = (draw(st.integers(1, 2)), *(draw(st.integers(1, 5)) for _ in range(rank)))
    kernel = tuple(draw(st.integers(1, 3)) for _ in range(rank))
    stride = tuple(draw(st.integers(1, 2)) for _ in range(rank))
    padding = tuple(max(draw(st.integers(0, 2)), (k - n + 1) // 2) for k, n in zip(kernel, shape[1:]))
    return np.random.default_rng(draw(st.integers(0, 999))).integers(-3, 4, shape) / 4, kernel, stride, padding


@settings(deadline=None, max_examples=120)
@given(problem=problems(), name=st.sampled_from(NAMES), beta=st.sampled_from([0.5, -2.0]))
def test_values_and_both_derivatives_are_the_oracles(problem, name, beta):
    x, kernel, stride, padding = problem
    args = (kernel, *([beta] if name == "smooth_max_pool" else []), stride, padding)
    function = getattr(torchlean, name)
    shape, cells = windows(x.shape, kernel, stride, padding)
    rng = np.random.default_rng(0)
    dx, gy = rng.integers(-9, 9, x.shape).astype(float), rng.integers(-9, 9, shape).astype(float)
    y, dy, gx = np.empty(shape), np.empty(shape), np.zeros(x.shape)
    for place, window in cells.items():
        y[place], slopes = weights(name, x, window, beta)
        dy[place] = sum(slope * dx[cell] for cell, slope in slopes.items())
        for cell, slope in slopes.items():
            gx[cell] += slope * gy[place]
    assert_allclose(function(x, *args), y, rtol=1e-12, atol=1e-12)
    assert_allclose(function.jvp(x, dx, *args), dy, rtol=1e-10, atol=1e-10)
    assert_allclose(function.vjp(x, gy, *args), gx, rtol=1e-10, atol=1e-10)


def test_two_dimensional_names_are_the_general_functions():
    x = np.random.default_rng(0).random((2, 5, 6))
    k, s, p, beta = (2, 3), 2, 1, 3.0
    for short, args, general, full in (
        ("max_pool2d", (k, s), "max_pool", (k, s)),
        ("max_pool2d_pad", (k, s, p), "max_pool", (k, s, p)),
        ("avg_pool2d", (k, s), "avg_pool", (k, s)),
        ("avg_pool2d_pad", (k, s, p), "avg_pool", (k, s, p)),
        ("smooth_max_pool2d", (k, s, beta), "smooth_max_pool", (k, beta, s)),
    ):
        f, g = getattr(torchlean, short), getattr(torchlean, general)
        y = f(x, *args)
        assert_array_equal(y, g(x, *full))
        assert_array_equal(f.jvp(x, x + 1, *args), g.jvp(x, x + 1, *full))
        assert_array_equal(f.vjp(x, y, *args), g.vjp(x, y, *full))
        assert short in repr(f)


def test_without_spatial_axes_max_and_avg_are_the_identity():
    x = np.array([1.0, 2.0])
    for f in (torchlean.max_pool, torchlean.avg_pool):
        assert f(x, ()) is x and f.jvp(x, x, ()) is x and f.vjp(x, x, ()) is x


def test_equal_cells_give_way_to_the_first_in_both_modes():
    x = np.array([[[2.0, 2.0], [1.0, 2.0]]])
    assert_array_equal(torchlean.max_pool.vjp(x, np.ones((1, 1, 1)), (2, 2)), [[[1, 0], [0, 0]]])
    assert_array_equal(torchlean.max_pool.jvp(x, np.array([[[10.0, 20], [30, 40]]]), (2, 2)), [[[10]]])


def test_difference_a_window_that_does_not_fit_is_an_error():
    # The formula (in - k) / stride + 1 on natural numbers would give an output of size 1.
    for f, args in (
        (torchlean.max_pool, ((3,), 1)),
        (torchlean.avg_pool, ((3,), 1)),
        (torchlean.smooth_max_pool, ((3,), 1.0, 1)),
        (torchlean.max_pool2d, ((3, 3), 1)),
    ):
        x = np.zeros((1, 2) if f is not torchlean.max_pool2d else (1, 2, 2))
        with pytest.raises(ValueError, match="window|fit"):
            f(x, *args)


def test_difference_a_smooth_maximum_does_not_overflow():
    x = np.array([[1000.0, 999.0]])
    with np.errstate(over="ignore"):
        assert np.isinf(np.log(np.exp(x).sum()))
    assert_allclose(torchlean.smooth_max_pool(x, (2,), 1.0), [[1000 + np.log1p(np.exp(-1))]])


def test_mistakes_are_errors():
    x = np.zeros((1, 4, 4))
    for f, args in (
        (torchlean.max_pool, ((2,),)),
        (torchlean.max_pool, ((0, 2),)),
        (torchlean.avg_pool, ((2, 2), 0)),
        (torchlean.max_pool2d, ((2,), 1)),
        (torchlean.smooth_max_pool, ((2, 2), 0.0)),
    ):
        with pytest.raises(ValueError):
            f(x, *args)
    with pytest.raises(ValueError):
        torchlean.max_pool.vjp(x, np.ones((1, 4, 4)), (2, 2))
