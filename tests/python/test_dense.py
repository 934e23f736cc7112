"""The facts of the semantics page through the Python functions, and errors as Python's."""

import math

import cenote
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal


def test_max_pool_with_its_gradient():
    x = np.array([[0.0, 10, 8], [2, 7, 3], [5, 7, 20]])
    y, pullback = cenote.vjp(cenote.max_pool, x, (2, 2))
    assert_array_equal(y, [[10, 10], [7, 20]])
    assert_array_equal(pullback(np.ones((2, 2))), [[0, 2, 0], [0, 1, 0], [0, 0, 1]])


def test_trailing_axes_and_strides():
    assert cenote.max_pool(np.zeros((10, 3, 12, 12)), (2, 2), stride=(2, 1)).shape == (10, 3, 6, 11)


def test_channels_last_and_axes():
    x = np.arange(9.0).reshape(1, 3, 3, 1)
    expected = np.array([[4, 5], [7, 8.0]]).reshape(1, 2, 2, 1)
    assert_array_equal(cenote.max_pool(x, (2, 2), channels_last=True), expected)
    assert_array_equal(cenote.max_pool(x, 2, axes=(1, 2)), expected)
    assert_array_equal(cenote.max_pool(x, (2, 2), axes=[-3, -2]), expected)


def test_padding_in_all_its_forms():
    x = np.array([[-3.0, -1], [-2, -5]])
    for padding in (1, (1, 1), ((1, 1), (1, 1)), [1, (1, 1)], "same"):
        assert_array_equal(cenote.max_pool(x, (3, 3), padding=padding), np.full((2, 2), -1.0))
    assert_array_equal(cenote.avg_pool([1.0, 2, 3, 4], (4,), padding="same"), [1.5, 2.5, 2.25, 1.75])
    assert_array_equal(cenote.avg_pool([1.0, 2, 3, 4], (4,), padding="same_lower"), [0.75, 1.5, 2.5, 2.25])


def test_indices_of_all_kinds():
    x = np.array([[1, 2], [3, 4]])
    _, offset = cenote.max_pool(x, (2, 2), padding=1, return_indices=True, index_kind="offset")
    assert offset.dtype == np.uint8
    assert_array_equal(offset, [[3, 3, 2], [3, 3, 2], [1, 1, 0]])
    _, plane = cenote.max_pool(x, (2, 2), padding=1, return_indices=True)
    assert_array_equal(plane, [[0, 1, 1], [2, 3, 3], [2, 3, 3]])
    _, column = cenote.max_pool(x[None], (2, 2), return_indices=True, index_kind="tensor_column")
    assert_array_equal(column, [[[3]]])


def test_ties():
    for ties, expected in (("first", [1, 0, 0]), ("split", [0.5, 0.5, 0])):
        _, pullback = cenote.vjp(cenote.max_pool, [2.0, 2.0, 1.0], (3,), ties=ties)
        assert_array_equal(pullback([1.0]), expected)


def test_avg_divisors():
    x = [1.0, 2, 3, 4]
    cases = {"window": [1, 3, 4 / 3], "clipped": [1, 3, 2], "valid": [1.5, 3, 4], 2: [1.5, 4.5, 2]}
    for divisor, expected in cases.items():
        assert_allclose(cenote.avg_pool(x, (3,), stride=2, padding=1, ceil=True, divisor=divisor), expected)


def test_smooth_max_and_lp():
    assert_allclose(cenote.smooth_max_pool([1.0, 2, 3], (3,), 1.0), [3.4076059644], rtol=1e-10)
    assert_allclose(cenote.smooth_max_pool([-3.0], (2,), 1.0, padding=1), [0.0485873516] * 2, rtol=1e-8)
    assert cenote.smooth_max_pool([-3.0], (1,), 1.0, padding=1, pad="ignore")[0] == -math.inf
    assert_array_equal(cenote.lp_pool([3.0, 4.0], (2,), 2), [5.0])
    assert_array_equal(cenote.lp_pool([3.0, -4.0], (2,), math.inf), [4.0])


def test_adaptive_and_global():
    x = np.arange(1.0, 6)
    assert_array_equal(cenote.adaptive_avg_pool(x, (3,)), [1.5, 3, 4.5])
    assert_array_equal(cenote.adaptive_max_pool(x.reshape(1, 5), (None, 3)), [[2, 4, 5]])
    x = np.arange(24).reshape(1, 2, 3, 4)
    assert cenote.global_max_pool(x).shape == (1, 2, 1, 1)
    assert_array_equal(cenote.global_sum_pool(x, axes=(1, 2, 3), keepdims=False), [276])
    assert_array_equal(cenote.global_min_pool(x, channels_last=True, keepdims=False), [[0, 1, 2, 3]])


def test_unpool_and_its_derivatives():
    y, indices = np.array([[[5.0, 4.0]]]), np.array([[[1, 3]]])
    assert_array_equal(cenote.max_unpool(y, indices, (1, 1, 4)), [[[0, 5, 0, 4]]])
    x, pullback = cenote.vjp(cenote.max_unpool, y, indices, (1, 1, 4))
    assert_array_equal(pullback(np.array([[[1.0, 2, 3, 4]]])), [[[2, 4]]])
    x, dx = cenote.jvp(cenote.max_unpool, y, y * 2, indices, (1, 1, 4))
    assert_array_equal(dx, 2 * x)
    for bad in (-1, 4, -(10**12)):
        with pytest.raises(ValueError):
            cenote.max_unpool(y, np.array([[[bad, 3]]]), (1, 1, 4))


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: cenote.max_pool(x, (2, 0)), r"\[max_pool\] window\[1\] = 0: every window extent must be at least 1"),
        (lambda x: cenote.max_pool(x, ()), "window"),
        (lambda x: cenote.max_pool(x, 2), "axes"),
        (lambda x: cenote.max_pool(x, (2, 2), stride=0), r"\[max_pool\] stride"),
        (lambda x: cenote.max_pool(x, (2, 2), stride=(1, 1, 1)), r"\[max_pool\] stride"),
        (lambda x: cenote.max_pool(x, (2, 2), dilation=-3), "dilation"),
        (lambda x: cenote.max_pool(x, (2, 2), padding=-1), "padding"),
        (lambda x: cenote.max_pool(x, (2,), padding=(1, 2)), "padding"),
        (lambda x: cenote.max_pool(x, (2, 2), padding="full"), "padding = 'full'"),
        (lambda x: cenote.max_pool(x, (10**19, 2)), "64 bits"),
        (lambda x: cenote.max_pool(x, (2**63 - 1, 2)), "window|fit"),
        (lambda x: cenote.max_pool(x, (9, 9)), "does not fit"),
        (lambda x: cenote.max_pool(x, (1,) * 13), "window"),
        (lambda x: cenote.max_pool(x, (2, 2), ties="last"), "ties = 'last'"),
        (lambda x: cenote.max_pool(x, (2, 2), return_indices=True, index_kind="flat"), "index_kind = 'flat'"),
        (lambda x: cenote.avg_pool(x, (2, 2), divisor=0), "divisor"),
        (lambda x: cenote.avg_pool(x, (2, 2), divisor="all"), "divisor = 'all'"),
        (lambda x: cenote.smooth_max_pool(x, (2, 2), 0.0), "beta"),
        (lambda x: cenote.smooth_max_pool(x.astype("f4"), (2, 2), 1e300), "beta"),
        (lambda x: cenote.lp_pool(x, (2, 2), 0), "p = 0"),
        (lambda x: cenote.adaptive_max_pool(x, (0, 1)), "output"),
        (lambda x: cenote.adaptive_max_pool(x, 3), "output = 3"),
        (lambda x: cenote.set_threads(-1), "count = -1"),
        (lambda x: cenote.explain("median f32 3 k1"), "median"),
    ],
)
def test_a_callers_mistake_is_a_value_error(call, text):
    with pytest.raises(ValueError, match=text):
        call(np.ones((3, 3)))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: cenote.max_pool(x, (2.0, 2)),
        lambda x: cenote.max_pool(x, "22"),
        lambda x: cenote.max_pool(x, None),
        lambda x: cenote.max_pool(x, (True, 2)),
        lambda x: cenote.max_pool(x, (2, 2), ceil="no"),
        lambda x: cenote.max_pool(x, (2, 2), padding=1.5),
        lambda x: cenote.lp_pool(x, (2, 2), "two"),
        lambda x: cenote.max_pool(x, (2, 2), 1),
        lambda x: cenote.max_pool(x, (2, 2), constant=True),
    ],
)
def test_an_argument_of_the_wrong_kind_is_a_type_error(call):
    with pytest.raises(TypeError):
        call(np.ones((3, 3)))


def test_empty_results():
    assert cenote.max_pool(np.zeros((2, 3)), (4,), allow_empty=True).shape == (2, 0)
    assert cenote.max_pool(np.zeros((0, 3)), (2,)).shape == (0, 2)


def test_plans():
    x = np.random.default_rng(0).random((2, 8, 8), dtype=np.float32)
    plan = cenote.plan(cenote.avg_pool, x, (3, 3), stride=2, padding="same")
    assert_array_equal(plan(x), cenote.avg_pool(x, (3, 3), stride=2, padding="same"))
    assert plan.input_shape == (2, 8, 8) and plan.output_shape == (2, 4, 4)
    out = np.empty((2, 4, 4), np.float32)
    assert plan(x, out=out) is out
    assert "avg f32" in plan.explain() and "avg f32" in repr(plan)
    gy = np.ones((2, 4, 4), np.float32)
    _, pullback = cenote.vjp(cenote.avg_pool, x, (3, 3), stride=2, padding="same")
    assert_array_equal(plan.vjp(x, gy), pullback(gy))
    assert cenote.plan("max f32 4x4 k2x2").output_shape == (3, 3)
    with pytest.raises(ValueError):
        plan(x[:1])


def test_threads_can_be_set():
    before = cenote.threads()
    cenote.set_threads(1)
    assert cenote.threads() == 1
    cenote.set_threads(0)
    assert cenote.threads() == before


def test_out_of_a_fold_and_of_an_unpooling_must_fit():
    x, y, indices = np.ones((4, 4)), np.ones((1, 1, 2)), np.array([[[0, 3]]])
    for call, right in (
        (lambda out: cenote.pool(x, 0, np.add, (2, 2), out=out), np.zeros((3, 3))),
        (lambda out: cenote.max_unpool(y, indices, (1, 1, 4), out=out), np.zeros((1, 1, 4))),
    ):
        assert call(right) is right and right.any()
        for wrong in (np.zeros(right.shape, int), np.zeros((1, *right.shape)), np.zeros(right.shape[:-1])):
            with pytest.raises(ValueError, match="out"):
                call(wrong)
        with pytest.raises(TypeError, match="out"):
            call([0.0])


def test_what_a_fold_begins_with_must_be_of_its_type():
    for init in (0.5, np.inf, np.nan, 300):
        with pytest.raises(ValueError, match="init"):
            cenote.pool(np.arange(4, dtype=np.uint8), init, np.add, (2,))
    assert_array_equal(cenote.pool(np.arange(4, dtype=np.uint8), 250, np.maximum, (2,)), [250] * 3)
    assert cenote.pool([1.0], -np.inf, np.maximum, (2,), padding=1)[0] == 1
