"""cenote.compat.flax held against flax itself: values, shapes, errors, and derivatives under jit, grad and jvp."""

import flax.nnx as theirs
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cenote.compat import flax as ours
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

jax.config.update("jax_enable_x64", True)


@st.composite
def problems(draw):
    rank = draw(st.integers(1, 3))
    batch = draw(st.lists(st.integers(1, 2), min_size=0, max_size=2))
    spatial = draw(st.lists(st.integers(1, 6), min_size=rank, max_size=rank))
    window = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    strides = draw(st.none() | st.tuples(*[st.integers(1, 3)] * rank))
    pairs = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=rank, max_size=rank)
    rules = st.sampled_from(["SAME", "VALID"])
    # flax itself fails for pairs with several batch axes: see the test of that difference.
    padding = draw(rules if len(batch) > 1 else rules | pairs)
    draw_number = draw(st.integers(0, 999))
    x = np.random.default_rng(draw_number).permutation(int(np.prod([*batch, *spatial, 2]))).astype(np.float64)
    return x.reshape([*batch, *spatial, 2]), window, strides, padding


def both(name, x, *args, **kw):
    got = np.asarray(getattr(ours, name)(x, *args, **kw))
    return got, np.asarray(getattr(theirs, name)(jnp.asarray(x), *args, **kw))


@settings(deadline=None, max_examples=40)
@given(problem=problems(), name=st.sampled_from(["max_pool", "min_pool", "avg_pool"]))
def test_values_and_shapes_are_flaxs(problem, name):
    got, expected = both(name, *problem)
    assert got.shape == expected.shape
    assert_allclose(got, expected, rtol=1e-12)


@settings(deadline=None, max_examples=25)
@given(problem=problems())
def test_averages_without_padding_are_flaxs(problem):
    got, expected = both("avg_pool", *problem, count_include_pad=False)
    # A window of nothing but padding is 0 here, and NaN there.
    assert_allclose(got, np.where(np.isnan(expected), 0, expected), rtol=1e-12)


@settings(deadline=None, max_examples=15)
@given(problem=problems(), name=st.sampled_from(["max_pool", "min_pool", "avg_pool"]))
def test_derivatives_are_flaxs(problem, name):
    x, *args = problem
    x = jnp.asarray(x)
    dx = jnp.asarray(np.random.default_rng(0).random(x.shape))
    mine, real = (lambda x: getattr(ours, name)(x, *args)), (lambda x: getattr(theirs, name)(x, *args))
    y, dy = jax.jvp(mine, (x,), (dx,))
    y2, dy2 = jax.jvp(real, (x,), (dx,))
    assert isinstance(y, jax.Array)
    assert_allclose(y, y2, rtol=1e-12)
    assert_allclose(dy, dy2, rtol=1e-12)
    g = jnp.asarray(np.random.default_rng(1).random(y.shape))
    assert_allclose(jax.vjp(mine, x)[1](g)[0], jax.vjp(real, x)[1](g)[0], rtol=1e-12)


def test_under_jit_and_grad():
    x = jnp.arange(16.0).reshape(1, 4, 4, 1)
    loss = jax.jit(jax.grad(lambda x: (ours.max_pool(x, (2, 2), (2, 2)) ** 2).sum()))
    expected = jax.grad(lambda x: (theirs.max_pool(x, (2, 2), (2, 2)) ** 2).sum())
    assert_allclose(loss(x), expected(x))


def test_pairs_with_several_batch_axes_work_here():
    x = np.arange(12.0).reshape(1, 2, 3, 2)
    with pytest.raises(ValueError):
        theirs.max_pool(jnp.asarray(x), (2,), padding=[(1, 0)])
    assert_array_equal(ours.max_pool(x, (2,), padding=[(1, 0)])[0], ours.max_pool(x[0], (2,), padding=[(1, 0)]))


def test_the_average_of_padding_alone_is_zero_here():
    x, args = np.ones((1, 2, 1)), ((1,), None, [(1, 0)], False)
    assert np.isnan(theirs.avg_pool(jnp.asarray(x), *args)[0, 0, 0])
    assert_array_equal(ours.avg_pool(x, *args)[0, :, 0], [0, 1, 1])


def test_custom_folds_are_flaxs():
    x = np.random.default_rng(0).random((2, 5, 5, 3))
    got = ours.pool(x, 1.0, np.multiply, (2, 2), (1, 2), "SAME")
    expected = theirs.pool(jnp.asarray(x), 1.0, jax.lax.mul, (2, 2), (1, 2), "SAME")
    assert_allclose(got, expected)
    assert_allclose(ours.pool(jnp.asarray(x), 1.0, jax.lax.mul, (2, 2), (1, 2), "SAME"), expected)


@pytest.mark.parametrize("call", [dict(strides=(1,)), dict(padding=[(0, 0)]), dict(padding=[(0,), (0, 0)])])
def test_errors_are_flaxs(call):
    x = np.zeros((1, 3, 3, 1))
    for module in (ours, theirs):
        with pytest.raises(AssertionError):
            module.max_pool(x, (2, 2), **call)


def test_jax_arrays_come_back_as_jax_arrays():
    import cenote

    for dtype in (jnp.float32, jnp.bfloat16, jnp.int32, jnp.bool_):
        x = jnp.asarray([[0, 1, 0], [0, 0, 1]]).astype(dtype)
        y = cenote.max_pool(x, (2, 2))
        assert isinstance(y, jax.Array) and y.dtype == x.dtype
        assert_array_equal(np.asarray(y).astype(int), [[1, 1]])
    with pytest.raises(TypeError, match="JAX"):
        cenote.max_pool(jnp.ones(3), (2,), out=jnp.ones(2))
