"""cenote.compat.flax held against flax itself: values, shapes, types, errors, and derivatives of every order."""

import flax.linen.pooling as theirs
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cenote.compat import flax as ours
from cenote.compat.flax import linen
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

jax.config.update("jax_enable_x64", True)

NAMES = ("max_pool", "min_pool", "avg_pool")
FLOATS = ("float64", "float32", "float16", "bfloat16")
TYPES = (*FLOATS, "int8", "uint8", "int32", "uint64", "bool")
TOLERANCE = {"float64": 1e-12, "float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}


@st.composite
def windows(draw, least=1):
    """A shape and the arguments of a pooling of it; flax itself fails for pairs with several batch axes."""
    rank = draw(st.integers(1, 3))
    batch = draw(st.lists(st.integers(least, 2), min_size=0, max_size=2))
    shape = (*batch, *(draw(st.integers(least, 6)) for _ in range(rank)), draw(st.integers(least, 2)))
    window = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    strides = draw(st.none() | st.tuples(*[st.integers(1, 3)] * rank))
    rules = st.sampled_from(["SAME", "VALID", "same", "SAME_LOWER"])
    pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=rank, max_size=rank)
    return shape, window, strides, draw(rules if len(batch) > 1 else rules | pairs)


def numbers(shape, seed, dtype="float64", most=None):
    """Distinct ones, or with `most` some that are equal."""
    size = int(np.prod(shape))
    rng = np.random.default_rng(seed)
    cells = rng.permutation(size) if most is None else rng.integers(0, most, size)
    return jnp.asarray(cells.reshape(shape) - (0 if dtype[0] in "ub" else (most or size) // 2)).astype(dtype)


def functions(name, *args, **kw):
    return (lambda x, f=getattr(module, name): f(x, *args, **kw) for module in (ours, theirs))


def close(got, expected, dtype):
    assert got.shape == expected.shape and got.dtype == expected.dtype
    limit = TOLERANCE.get(dtype, 1e-6)
    assert_allclose(np.asarray(got).astype(float), np.asarray(expected).astype(float), rtol=limit, atol=limit)


@settings(deadline=None, max_examples=35)
@given(problem=windows(least=0), name=st.sampled_from(NAMES), dtype=st.sampled_from(TYPES), seed=st.integers(0, 99))
def test_values_shapes_and_types_are_flaxs(problem, name, dtype, seed):
    shape, *args = problem
    if dtype == "bool" and name == "avg_pool":
        return
    # So few that a sum of 64 of them fits a byte: flax's average wraps around there, cenote's does not.
    x = numbers(shape, seed, dtype, most=2 if dtype.endswith("int8") else 9)
    mine, real = functions(name, *args)
    got = mine(x)
    assert isinstance(got, jax.Array)
    expected = real(x)
    # JAX divides integers in its widest type, cenote in f32.
    close(got.astype(expected.dtype) if dtype not in FLOATS else got, expected, dtype)
    # The same for NumPy's arrays, which come back as such.
    plain = getattr(ours, name)(np.asarray(x), *args)
    assert isinstance(plain, np.ndarray)
    assert_array_equal(plain.astype(float), np.asarray(got).astype(float))


@settings(deadline=None, max_examples=15)
@given(problem=windows(), dtype=st.sampled_from(FLOATS), seed=st.integers(0, 99))
def test_averages_without_padding_are_flaxs(problem, dtype, seed):
    shape, *args = problem
    x = numbers(shape, seed, dtype, most=9)
    mine, real = functions("avg_pool", *args, count_include_pad=False)
    # A window of nothing but padding is 0 here, and NaN there.
    close(mine(x), jnp.nan_to_num(real(x)), dtype)


@settings(deadline=None, max_examples=10)
@given(problem=windows(), name=st.sampled_from(NAMES), seed=st.integers(0, 99), tied=st.booleans())
def test_derivatives_are_flaxs(problem, name, seed, tied):
    shape, *args = problem
    # Equal values: the first of a window has the derivative, there as here.
    x = numbers(shape, seed, most=4 if tied else None)
    dx, d2x = numbers(shape, seed + 1), numbers(shape, seed + 2)
    mine, real = functions(name, *args)
    y = mine(x)
    gy = numbers(y.shape, seed + 3)
    assert_allclose(jax.vjp(mine, x)[1](gy)[0], jax.vjp(real, x)[1](gy)[0], rtol=1e-12, atol=1e-12)
    if tied:
        # Forward mode of JAX may choose others of the equal cells than its reverse mode does.
        dy = jax.jvp(mine, (x,), (dx,))[1]
        assert_allclose(jnp.vdot(dy, gy), jnp.vdot(dx, jax.vjp(mine, x)[1](gy)[0]), rtol=1e-12, atol=1e-9)
        return
    for got, expected in zip(*(jax.jvp(f, (x,), (dx,)) for f in (mine, real))):
        assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    # Reverse mode of forward mode, and forward mode of reverse mode.
    for second in (
        lambda f: jax.grad(lambda x: jnp.vdot(jax.jvp(lambda x: f(x) ** 2, (x,), (dx,))[1], gy))(x),
        lambda f: jax.jvp(jax.grad(lambda x: jnp.vdot(f(x) ** 2, gy)), (x,), (d2x,))[1],
    ):
        assert_allclose(second(mine), second(real), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_every_transformation_of_jax_is_flaxs(name, padding):
    x = numbers((2, 3, 4, 1), 5)
    mine, real = functions(name, (2, 2), (1, 2), padding)
    for transform in (
        lambda f: jax.jit(f)(x),
        lambda f: jax.jit(jax.grad(lambda x: (f(x) ** 2).sum()))(x),
        lambda f: jax.vmap(f)(x[:, None]),
        lambda f: jax.vmap(f, in_axes=2, out_axes=1)(jnp.stack([x, -x, x * 2], 2)),
        lambda f: jax.jit(jax.vmap(jax.grad(lambda x: f(x).sum())))(x),
        lambda f: jax.hessian(lambda x: (f(x) ** 3).sum())(x),
        lambda f: jax.jacfwd(jax.jacrev(lambda x: f(x) ** 2))(x),
        lambda f: jax.jacrev(jax.jacfwd(lambda x: f(x) ** 2))(x),
        lambda f: jax.linearize(f, x)[1](x),
        lambda f: jax.linear_transpose(jax.linearize(f, x)[1], x)(f(x))[0],
        lambda f: jax.checkpoint(f)(x),
        lambda f: jax.grad(lambda x: jax.lax.scan(lambda c, _: (f(x).sum() + c, None), 0.0, None, length=3)[0])(x),
    ):
        assert_allclose(transform(mine), transform(real), rtol=1e-12)
    shape = jax.eval_shape(mine, x)
    assert (shape.shape, shape.dtype) == (real(x).shape, real(x).dtype)


@settings(deadline=None, max_examples=6)
@given(problem=windows(), seed=st.integers(0, 99))
def test_folds_of_any_function_are_flaxs(problem, seed):
    (shape, window, strides, padding), folds = problem, (
        (1.0, jax.lax.mul),
        (0.0, jax.lax.add),
        (-jnp.inf, jax.lax.max),
        (2.0, lambda a, b: a + 0.5 * b),
    )  # fmt: skip
    x = numbers(shape, seed) / 8
    for init, reduce_fn in folds:
        got = ours.pool(x, init, reduce_fn, window, strides, padding)
        expected = theirs.pool(x, init, reduce_fn, window, strides, padding)
        assert_allclose(got, expected, rtol=1e-9)
        assert_allclose(ours.pool(np.asarray(x), init, reduce_fn, window, strides, padding), expected, rtol=1e-9)


def test_folds_of_integers_begin_with_the_last_of_them_for_infinity():
    x = numbers((1, 4, 2), 3, "int32")
    for init, reduce_fn in ((-jnp.inf, jax.lax.max), (jnp.inf, jax.lax.min)):
        expected = theirs.pool(x, init, reduce_fn, (2,), None, "SAME")
        assert_array_equal(ours.pool(x, init, reduce_fn, (2,), None, "SAME"), expected)
        assert_array_equal(ours.pool(np.asarray(x), init, reduce_fn, (2,), None, "SAME"), expected)


def test_folds_are_differentiated_by_jax():
    x = numbers((1, 4, 4, 2), 3)
    args = (0.0, lambda a, b: a + b * b, (2, 2), (1, 1), "VALID")
    mine, real = functions("pool", *args)
    # flax has forward mode of these, and reverse mode of sums and extremes alone.
    assert_allclose(jax.jvp(mine, (x,), (x + 1,))[1], jax.jvp(real, (x,), (x + 1,))[1])
    assert_allclose(jax.jacrev(mine)(x), jax.jacfwd(mine)(x))
    assert_allclose(jax.jit(jax.hessian(lambda x: mine(x).sum()))(x).sum(), 2 * 4 * 18)
    for reduce_fn, init in ((jax.lax.add, 0.0), (jax.lax.max, -jnp.inf), (jax.lax.min, jnp.inf)):
        mine, real = (lambda x, f=m.pool: f(x, init, reduce_fn, (2, 2), (1, 1), "SAME").sum() for m in (ours, theirs))
        assert_allclose(jax.grad(mine)(x), jax.grad(real)(x))


def test_names_are_where_flax_has_them():
    import flax.linen
    import flax.nnx
    from cenote.compat.flax import nnx

    for name in ("avg_pool", "max_pool", "pool"):
        for module, real in ((nnx, flax.nnx), (linen, flax.linen), (linen.pooling, flax.linen.pooling)):
            assert hasattr(module, name) and (hasattr(real, name) or hasattr(real.pooling, name))
    y = nnx.max_pool(jnp.zeros((1, 32, 32, 3)), window_shape=(2, 2), strides=(2, 2), padding="VALID")
    assert y.shape == (1, 16, 16, 3)


X = np.zeros((1, 3, 3, 1))


@pytest.mark.parametrize(
    "args",
    [
        ((2, 2), (1,)),
        ((2, 2), None, [(0, 0)]),
        ((2, 2), None, [(0,), (0, 0)]),
        ((2, 2), None, "FULL"),
        ((2, 2), None, 1),
        ((2, 2), None, (1, 1)),
        ((0, 2),),
        ((-1, 2),),
        ((2, 2), (0, 1)),
        ((2, 2), (1, -1)),
        ((2,) * 4,),
        ((2,) * 6,),
        (2,),
        ((2, 2), 2),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_flaxs(name, args):
    for x in (X, jnp.asarray(X)):
        with pytest.raises(Exception) as raised:
            getattr(theirs, name)(x, *args)
        with pytest.raises(raised.type):
            getattr(ours, name)(x, *args)
    with pytest.raises(AttributeError):
        getattr(ours, name)([[1.0]], (1,))


def test_bool_has_no_average_in_either():
    for module in (ours, theirs):
        with pytest.raises(TypeError):
            module.avg_pool(jnp.asarray(X) > 0, (2, 2))


@pytest.mark.parametrize("padding", [((-1, 0), (0, 0)), ((-1, 2), (1, -2)), ((0, 0), (-1, -1))])
@pytest.mark.parametrize("name", NAMES)
def test_negative_padding_takes_cells_away_as_in_flax(name, padding):
    x = numbers((1, 5, 5, 2), 1)
    mine, real = functions(name, (2, 2), None, padding)
    assert_allclose(mine(x), real(x))
    # JAX itself differentiates only sums of such windows.
    dx = numbers(x.shape, 2)
    gy = jax.jvp(mine, (x,), (dx,))[1]
    assert_allclose(jnp.vdot(jax.vjp(mine, x)[1](gy)[0], dx), jnp.vdot(gy, gy))
    if name == "avg_pool":
        assert_allclose(jax.grad(lambda x: mine(x).sum())(x), jax.grad(lambda x: real(x).sum())(x))


def test_windows_of_no_axes_are_the_cells_as_in_flax():
    for name in NAMES:
        mine, real = functions(name, ())
        assert_array_equal(mine(jnp.asarray(X) + 2), real(jnp.asarray(X) + 2))


def test_jax_arrays_come_back_as_jax_arrays():
    import cenote

    for dtype in (jnp.float32, jnp.bfloat16, jnp.int32, jnp.bool_):
        x = jnp.asarray([[0, 1, 0], [0, 0, 1]]).astype(dtype)
        y = cenote.max_pool(x, (2, 2))
        assert isinstance(y, jax.Array) and y.dtype == x.dtype
        assert_array_equal(np.asarray(y).astype(int), [[1, 1]])
    with pytest.raises(TypeError, match="JAX"):
        cenote.max_pool(jnp.ones(3), (2,), out=jnp.ones(2))


# Deliberate differences, one test for each that docs/compat.md lists.


def test_difference_the_average_of_padding_alone_is_zero():
    x, args = jnp.ones((1, 2, 1)), ((1,), None, [(1, 0)], False)
    assert np.isnan(theirs.avg_pool(x, *args)[0, 0, 0])
    assert_array_equal(ours.avg_pool(x, *args)[0, :, 0], [0, 1, 1])


def test_difference_the_first_nan_of_a_window_has_the_derivative():
    x = jnp.asarray([1.0, np.nan, 5.0, 6.0]).reshape(1, 4, 1)
    mine, real = (jax.grad(lambda x, f=m.max_pool: f(x, (4,)).sum())(x)[0, :, 0] for m in (ours, theirs))
    assert_array_equal(mine, [0, 1, 0, 0])
    assert np.argmax(real) != 1


def test_difference_forward_and_reverse_mode_choose_the_same_of_equal_cells():
    x, dx = numbers((1, 3, 6, 1), 32, most=4), numbers((1, 3, 6, 1), 33)
    apart = []
    for f in functions("max_pool", (3, 2), None, [(2, 2), (1, 0)]):
        y, dy = jax.jvp(f, (x,), (dx,))
        gy = numbers(y.shape, 34)
        apart.append(jnp.vdot(dy, gy) - jnp.vdot(dx, jax.vjp(f, x)[1](gy)[0]))
    assert apart[0] == 0 and apart[1] != 0


def test_difference_pairs_work_with_several_batch_axes():
    x = np.arange(12.0).reshape(1, 2, 3, 2)
    with pytest.raises(ValueError):
        theirs.max_pool(jnp.asarray(x), (2,), padding=[(1, 0)])
    assert_array_equal(ours.max_pool(x, (2,), padding=[(1, 0)])[0], ours.max_pool(x[0], (2,), padding=[(1, 0)]))


def test_difference_sequences_need_not_be_tuples():
    x = jnp.asarray(X)
    with pytest.raises(TypeError):
        theirs.max_pool(x, [2, 2], [1, 1])
    assert ours.max_pool(x, [2, 2], [1, 1]).shape == (1, 2, 2, 1)


def test_difference_numpy_arrays_stay_numpy_arrays_of_their_type():
    x = X.astype(np.float16)
    assert isinstance(theirs.max_pool(x, (2, 2)), jax.Array)
    y = ours.avg_pool(x, (2, 2), count_include_pad=False)
    assert isinstance(y, np.ndarray) and y.dtype == np.float16


def test_difference_integers_average_in_f32():
    x = jnp.asarray([[1], [2]])
    assert ours.avg_pool(x, (2,)).dtype == np.float32
    assert theirs.avg_pool(x, (2,)).dtype == np.float64


def test_difference_complex_numbers_are_refused():
    x = jnp.asarray([[1j], [0]])
    assert theirs.avg_pool(x, (2,)).shape == (1, 1)
    with pytest.raises(TypeError, match="type"):
        ours.avg_pool(x, (2,))


def test_difference_folds_have_reverse_mode():
    x = jnp.ones((1, 3, 1))
    mine, real = (lambda x, f=m.pool: f(x, 1.0, jax.lax.mul, (2,), None, "VALID").sum() for m in (ours, theirs))
    with pytest.raises(Exception):
        jax.grad(real)(x)
    assert_array_equal(jax.grad(mine)(x)[0, :, 0], [1, 2, 1])
