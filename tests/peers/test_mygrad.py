"""cenote.compat.mygrad held against mygrad itself: values, gradients, constants, errors, and how tensors look."""

import cenote.compat.mygrad as ours
import mygrad as theirs
import numpy as np
import pytest
from cenote.compat.mygrad.nnet.layers import max_pool as our_pool
from hypothesis import given, settings
from hypothesis import strategies as st
from mygrad.nnet.layers import max_pool as their_pool
from numpy.testing import assert_array_equal


@st.composite
def problems(draw):
    rank = draw(st.integers(1, 3))
    kept = draw(st.lists(st.integers(1, 2), max_size=2))
    window = [draw(st.integers(1, 3)) for _ in range(rank)]
    stride = [draw(st.integers(1, 3)) for _ in range(rank)]
    count = [draw(st.integers(1, 3)) for _ in range(rank)]
    shape = kept + [k + s * (n - 1) for k, s, n in zip(window, stride, count)]
    x = np.random.default_rng(draw(st.integers(0, 999))).integers(0, 5, shape).astype(float)
    return x, tuple(window), tuple(stride)


@settings(deadline=None, max_examples=60)
@given(problem=problems(), constant=st.none() | st.booleans())
def test_values_and_gradients_are_mygrads(problem, constant):
    a, window, stride = problem
    x, y = ours.Tensor(a), theirs.tensor(a)
    got, expected = our_pool(x, window, stride, constant=constant), their_pool(y, window, stride, constant=constant)
    assert_array_equal(got.data, expected.data)
    assert got.constant == expected.constant
    assert repr(got) == repr(expected)
    got.sum().backward()
    expected.sum().backward()
    assert (x.grad is None) == (y.grad is None)
    if x.grad is not None:
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
