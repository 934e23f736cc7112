"""Derivatives: the adjoint law, differences, second order, and folds of the caller's."""

import cenote
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

FUNCTIONS = {
    "max": (cenote.max_pool, ()),
    "min": (cenote.min_pool, ()),
    "sum": (cenote.sum_pool, ()),
    "avg": (cenote.avg_pool, ()),
    "smooth_max": (cenote.smooth_max_pool, (0.7,)),
    "lp": (cenote.lp_pool, (3.0,)),
}


@settings(deadline=None, max_examples=60)
@given(
    name=st.sampled_from(sorted(FUNCTIONS)),
    shape=st.lists(st.integers(1, 6), min_size=2, max_size=4),
    window=st.integers(1, 3),
    stride=st.integers(1, 3),
    padding=st.sampled_from([0, 1, 2, "same", "same_lower"]),
    dilation=st.integers(1, 2),
    draw_number=st.integers(0, 99),
)
def test_the_adjoint_law_holds(name, shape, window, stride, padding, dilation, draw_number):
    fn, extra = FUNCTIONS[name]
    rng = np.random.default_rng(draw_number)
    x, dx = rng.integers(-3, 4, shape).astype(float), rng.random(shape)
    args = ((window, window), *extra)
    kw = dict(stride=stride, padding=padding, dilation=dilation, allow_empty=True)
    y, dy = cenote.jvp(fn, x, dx, *args, **kw)
    y2, pullback = cenote.vjp(fn, x, *args, **kw)
    gy = rng.random(y.shape)
    assert_array_equal(y, y2)
    assert_allclose(np.vdot(dy, gy), np.vdot(dx, pullback(gy)), rtol=1e-10, atol=1e-12)


def test_functions_that_end_in_a_pooling_are_differentiated():
    x = np.array([1.0, 2, 3, 4])
    y, pullback = cenote.vjp(lambda x: cenote.sum_pool(x, (2,), stride=2), x)
    assert_array_equal(pullback([1.0, 2.0]), [1, 1, 2, 2])
    with pytest.raises(TypeError, match="fn"):
        cenote.vjp(lambda x: 3, x)


def test_second_order():
    x, v = np.array([1.0, 2, 3]), np.array([1.0, 0, 0])
    h = cenote.hvp(cenote.smooth_max_pool, x, [1.0], v, (3,), 1.0)
    assert_allclose(h, [0.0819250691, -0.0220330446, -0.0598920245], rtol=1e-8)
    _, pullback = cenote.vjp(cenote.smooth_max_pool, x, (3,), 1.0)
    gx, dgx = cenote.jvp(pullback, [1.0], [0.0], v)
    assert_allclose(dgx, h)
    gx2, second = cenote.vjp(pullback, [1.0])
    assert_array_equal(gx, gx2)
    hx, hgy = second(v)
    assert_allclose(hx, h)
    assert_allclose(hgy, [gx @ v])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: cenote.jvp(cenote.max_pool, x, np.ones(3), (2,)),
        lambda x: cenote.vjp(cenote.max_pool, x, (2,))[1](np.ones(4)),
        lambda x: cenote.vjp(cenote.max_pool, x, (2,))[1](np.ones(3, np.float32)),
        lambda x: cenote.vjp(cenote.max_pool, x.astype(int), (2,)),
        lambda x: cenote.vjp(cenote.max_pool, x, (2,), return_indices=True),
    ],
)
def test_derivatives_check_what_they_are_given(call):
    with pytest.raises(ValueError):
        call(np.ones(4))


def test_folds():
    assert_array_equal(cenote.pool(np.full((3, 3), 2.0), 1, np.multiply, (2, 2)), np.full((2, 2), 16.0))
    x = -np.arange(1.0, 17).reshape(4, 4)
    assert_array_equal(cenote.pool(x, 0, np.maximum, (2, 2), stride=2), np.zeros((2, 2)))
    # Padding is skipped, and a window without a cell is init.
    assert_array_equal(cenote.pool([5, 6], 7, np.add, (1,), padding=1), [7, 12, 13, 7])
    # Strictly from left to right.
    assert_array_equal(cenote.pool([1.0, 2, 3], 0, lambda a, b: b - a, (3,)), [2.0])
    calls = []
    cenote.pool(np.zeros((50, 50)), 0, lambda a, b: calls.append(a.shape) or a + b, (3, 2))
    assert len(calls) == 6 and calls[0] == (48, 49)


def test_huge_windows_cost_what_their_cells_cost():
    y = cenote.pool(np.ones((2, 2)), 0, np.add, (2**20, 2**20), padding=2**19)
    assert y.shape == (3, 3) and y[1, 1] == 4


@settings(deadline=None, max_examples=60)
@given(
    shape=st.lists(st.integers(1, 6), min_size=2, max_size=3),
    window=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    stride=st.integers(1, 3),
    padding=st.integers(0, 4),
    dilation=st.integers(1, 3),
    draw_number=st.integers(0, 99),
)
def test_folds_equal_the_reducers(shape, window, stride, padding, dilation, draw_number):
    x = np.random.default_rng(draw_number).integers(-9, 10, shape).astype(np.float64)
    kw = dict(stride=stride, padding=padding, dilation=dilation, allow_empty=True)
    for associative in (False, True):
        got = cenote.pool(x, -np.inf, np.maximum, window, associative=associative, **kw)
        assert_array_equal(got, cenote.max_pool(x, window, **kw))
        got = cenote.pool(x, 0, np.add, window, associative=associative, **kw)
        assert_array_equal(got, cenote.sum_pool(x, window, **kw))
    partials = lambda a, b: (np.ones_like(a), np.ones_like(b))
    dx = x + 1
    y, dy = cenote.jvp(cenote.pool, x, dx, 0, np.add, window, partials=partials, **kw)
    assert_array_equal(dy, cenote.sum_pool(dx, window, **kw))
    y, pullback = cenote.vjp(cenote.pool, x, 0, np.add, window, partials=partials, **kw)
    _, expected = cenote.vjp(cenote.sum_pool, x, window, **kw)
    assert_array_equal(pullback(y), expected(y))


def test_a_product_has_the_partials_of_a_product():
    x = np.array([2.0, 3, 5, 0, 7])
    product = dict(init=1, reduce_fn=np.multiply, window=(3,), partials=lambda a, b: (b, a))
    y, pullback = cenote.vjp(cenote.pool, x, **product)
    assert_array_equal(y, [30, 0, 0])
    assert_array_equal(pullback(np.ones(3)), [15, 10, 6, 15 + 35, 0])


def test_a_fold_without_partials_has_no_derivative():
    with pytest.raises(NotImplementedError, match="partials"):
        cenote.vjp(cenote.pool, np.ones(3), 0, np.add, (2,))
    with pytest.raises(NotImplementedError, match="first order"):
        cenote.hvp(cenote.pool, np.ones(3), np.ones(2), np.ones(3), 0, np.add, (2,), partials=lambda a, b: (1, 1))


def test_folds_of_halves_round_once():
    x = np.ones((64, 64), np.float16)
    y = cenote.pool(x, 0, np.add, (64, 64))
    assert y.dtype == np.float16 and y[0, 0] == 4096
    seen = []
    cenote.pool(x, 0, lambda a, b: seen.append(a.dtype) or a + b, (1, 1))
    assert seen == [np.float32]


def test_a_fold_that_changes_the_shape_is_refused():
    with pytest.raises(ValueError, match="reduce_fn"):
        cenote.pool(np.ones(4), 0, lambda a, b: 0.0, (2,))
