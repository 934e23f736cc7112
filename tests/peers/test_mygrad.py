"""cenote.compat.mygrad held against mygrad itself: values, gradients, constants, errors, and how tensors look."""

import inspect

import cenote.compat.mygrad as ours
import mygrad as theirs
import numpy as np
import pytest
from cenote.compat.mygrad.nnet.layers import max_pool as our_pool
from hypothesis import given, settings
from hypothesis import strategies as st
from mygrad.nnet.layers import max_pool as their_pool
from numpy.testing import assert_array_equal


TYPES = ("f8", "f8", "f4", "f2", "i4", "u1", "?")


@st.composite
def problems(draw):
    rank = draw(st.integers(1, 3))
    kept = draw(st.lists(st.integers(1, 2), max_size=2))
    window = [draw(st.integers(1, 3)) for _ in range(rank)]
    stride = [draw(st.integers(1, 3)) for _ in range(rank)]
    count = [draw(st.integers(1, 3)) for _ in range(rank)]
    shape = kept + [k + s * (n - 1) for k, s, n in zip(window, stride, count)]
    x = np.random.default_rng(draw(st.integers(0, 999))).integers(0, 5, shape).astype(draw(st.sampled_from(TYPES)))
    if x.dtype.kind == "f" and draw(st.booleans()):
        special = np.random.default_rng(draw(st.integers(0, 999))).random(shape) < 0.2
        x[special] = draw(st.sampled_from([np.nan, np.inf]))
    return x, draw(st.sampled_from([tuple, list, np.array]))(window), draw(st.sampled_from([tuple, list]))(stride)


@settings(deadline=None, max_examples=300)
@given(problem=problems(), constant=st.none() | st.booleans(), back=st.sampled_from(["sum", "plain", "integers"]))
def test_values_and_gradients_are_mygrads(problem, constant, back):
    a, window, stride = problem
    x, y = ours.Tensor(a), theirs.tensor(a)
    if a.dtype.kind != "f" and constant is False:
        for pool, tensor in ((our_pool, x), (their_pool, y)):
            with pytest.raises(ValueError):
                pool(tensor, window, stride, constant=constant)
        return
    got, expected = our_pool(x, window, stride, constant=constant), their_pool(y, window, stride, constant=constant)
    assert_array_equal(got.data, expected.data)
    assert (got.dtype, got.constant, repr(got)) == (expected.dtype, expected.constant, repr(expected))
    for result in (got, expected):
        if back == "integers":
            result.backward(np.arange(result.size).reshape(result.shape))
        else:
            (result.sum() if back == "sum" else result).backward()
    assert (x.grad is None) == (y.grad is None)
    if x.grad is not None:
        assert x.grad.dtype == y.grad.dtype
        assert_array_equal(x.grad, y.grad)


@pytest.mark.parametrize(
    "shape, window, stride",
    [
        ((1, 2, 2, 2), (3, 3, 3), 1),
        ((1, 2, 2, 2), (1, 1, 1), 3),
        ((4,), (2,), 3),
        ((4,), (2,), 0),
        ((4,), (2,), (1, 1)),
        ((4,), (2, 2), 1),
        ((4,), (-1,), 1),
        ((4,), (0,), 1),
        ((4,), (2,), "a"),
        ((4,), (1.5,), 1),
        ((4,), 2, 1),
    ],
)
def test_errors_are_mygrads(shape, window, stride):
    with pytest.raises(Exception) as theirs_raised:
        their_pool(theirs.tensor(np.zeros(shape)), window, stride)
    with pytest.raises(theirs_raised.type):
        our_pool(ours.Tensor(np.zeros(shape)), window, stride)


def test_integers_are_constants():
    a = np.arange(4)
    assert our_pool(ours.Tensor(a), (2,), 1).constant == their_pool(theirs.tensor(a), (2,), 1).constant


def test_graphs_are_cleared_as_mygrads_are():
    for module, pool in ((ours, our_pool), (theirs, their_pool)):
        x = module.Tensor([1.0, 5.0, 2.0]) if module is ours else module.tensor([1.0, 5.0, 2.0])
        y = pool(x, (2,), 1)
        loss = (y * y).sum()
        loss.backward()
        assert_array_equal(x.grad, [0, 20, 0])
        # Using a tensor again clears its gradient.
        again = pool(x, (2,), 1)
        assert x.grad is None
        again.backward()
        assert_array_equal(x.grad, [0, 2, 0])
        assert x.null_grad() is x and x.grad is None
        with module.no_autodiff:
            z = pool(x, (2,), 1)
        z.backward()
        assert x.grad is None


WAYS = [
    {},
    {"dtype": np.float32},
    {"dtype": float, "ndmin": 3},
    {"constant": True},
    {"copy": False},
    {"copy": False, "ndmin": 2},
    {"copy": False, "dtype": float, "ndmin": 2, "constant": True},
    {"ndmin": -1},
]


@pytest.mark.parametrize("kw", WAYS)
@pytest.mark.parametrize("data", [[1, 2], [[1.5, 2]], np.arange(3), np.arange(3.0), 2.5])
def test_tensors_are_made_as_mygrads_are(data, kw):
    for got, expected in ((ours.tensor(data, **kw), theirs.tensor(data, **kw)),
                          (ours.Tensor(data, **kw), theirs.Tensor(data, **kw)),
                          (ours.Tensor(x=data, **kw), theirs.Tensor(x=data, **kw))):  # fmt: skip
        assert (repr(got), got.dtype, got.shape) == (repr(expected), expected.dtype, expected.shape)
        assert got.constant == expected.constant
        assert np.shares_memory(got.data, data) == np.shares_memory(expected.data, data)


@pytest.mark.parametrize("kw", WAYS)
@pytest.mark.parametrize("data", [[1.5, 2.0], np.arange(3)])
def test_tensors_of_tensors_are_made_as_mygrads_are(data, kw):
    for make in ("tensor", "Tensor"):
        results = []
        for module in (ours, theirs):
            x = module.Tensor(data)
            y = getattr(module, make)(x, **kw)
            shared = np.shares_memory(x.data, y.data)
            results.append((repr(y), y.dtype, y.shape, y.constant, y is x))
            # A view that mygrad makes of a tensor is a copy here, with the same gradients.
            if not (make == "tensor" and y.ndim > x.ndim):
                results[-1] += (shared,)
            if not y.constant:
                y.sum().backward()
                results[-1] += (None if x.grad is None else x.grad.tolist(),)
        assert results[0] == results[1]


@pytest.mark.parametrize("kw", [{"ndmin": "a"}, {"ndmin": 1.5}, {"constant": 5}, {"dtype": complex}, {"dtype": "junk"}])
def test_tensors_are_refused_as_mygrads_are(kw):
    for make in ("tensor", "Tensor"):
        with pytest.raises(Exception) as theirs_raised:
            getattr(theirs, make)([1.0], **kw)
        with pytest.raises(theirs_raised.type):
            getattr(ours, make)([1.0], **kw)


@pytest.mark.parametrize("axis, keepdims", [(None, False), (None, True), (0, False), (-1, True), ((0, 2), False)])
def test_sums_and_means_are_mygrads(axis, keepdims):
    a = np.random.default_rng(0).random((2, 3, 4))
    for name in ("sum", "mean"):
        made = []
        for module in (ours, theirs):
            x = module.Tensor(a)
            y = getattr(x, name)(axis=axis, keepdims=keepdims)
            assert_array_equal(getattr(module, name)(x, axis, keepdims).data, y.data)
            (y * y).sum().backward()
            made.append((y, x.grad))
        (y, gradient), (expected, expected_gradient) = made
        assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(y.data, expected.data)
        np.testing.assert_allclose(gradient, expected_gradient)


def test_signatures_are_mygrads():
    def names(function):
        return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]

    for function, like in ((our_pool, their_pool), (ours.tensor, theirs.tensor), (ours.sum, theirs.sum),
                           (ours.mean, theirs.mean), (ours.no_autodiff, theirs.no_autodiff)):  # fmt: skip
        assert names(function) == names(like)


def test_names_are_where_mygrad_has_them():
    import cenote.compat.mygrad.nnet.layers.pooling
    import cenote.compat.mygrad.tensor_base
    import mygrad.nnet.layers.pooling

    assert cenote.compat.mygrad.nnet.layers.pooling.max_pool is cenote.compat.mygrad.nnet.max_pool is our_pool
    assert mygrad.nnet.layers.pooling.max_pool is mygrad.nnet.layers.max_pool
    assert cenote.compat.mygrad.tensor_base.Tensor is ours.Tensor
    assert issubclass(ours.InvalidBackprop, Exception)


# Deliberate differences, one test for each that docs/compat.md lists.


def test_difference_tensors_have_fewer_operations():
    assert hasattr(theirs, "einsum") and not hasattr(ours, "einsum")
    with pytest.raises(ValueError, match="type"):
        ours.Tensor(np.ones(2, np.float32)) + ours.Tensor(np.ones(2))
    assert (theirs.tensor(np.ones(2, np.float32)) + theirs.tensor(np.ones(2))).dtype == np.float64


def test_difference_views_with_gaps_are_copied():
    for a in (np.arange(6.0)[::2], np.broadcast_to(1.0, 3)):
        assert not np.shares_memory(ours.Tensor(a, copy=False).data, a)
        assert np.shares_memory(theirs.Tensor(a, copy=False).data, a)


def test_difference_functions_have_no_out_where_and_dtype():
    extra = {"out", "where", "dtype"}
    for name in ("add", "subtract", "multiply", "divide", "negative", "exp", "log"):
        assert extra <= set(inspect.signature(getattr(theirs, name)).parameters)
        assert not extra & set(inspect.signature(getattr(ours, name)).parameters)


def test_difference_an_empty_batch_has_a_gradient():
    a = np.zeros((0, 4))
    x, y = ours.Tensor(a), theirs.tensor(a)
    our_pool(x, (2,), 2).sum().backward()
    assert x.grad.shape == (0, 4)
    with pytest.raises(ValueError):
        their_pool(y, (2,), 2).sum().backward()
