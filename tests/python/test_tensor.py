"""Eager tensors: mygrad's rules for constants, gradients, graphs that are released, and operators."""

import gc
import threading
import weakref

import cenote
import numpy as np
import pytest
from cenote import Tensor
from numpy.testing import assert_allclose, assert_array_equal


def test_mygrads_example():
    x = Tensor([[0.0, 10.0, 8.0], [2.0, 7.0, 3.0], [5.0, 7.0, 20.0]])
    out = cenote.max_pool(x, (2, 2))
    assert repr(out) == "Tensor([[10., 10.],\n        [ 7., 20.]])"
    out.sum().backward()
    assert_array_equal(x.grad, [[0, 2, 0], [0, 1, 0], [0, 0, 1]])


def test_constants():
    assert not Tensor([1.0]).constant and Tensor([1]).constant and Tensor([True]).constant
    assert Tensor([1.0], constant=True).constant
    with pytest.raises(ValueError):
        Tensor([1], constant=False)
    x = Tensor([1.0, 2.0])
    assert (Tensor([1.0], constant=True) * 2).constant
    stopped = cenote.max_pool(x, (2,), constant=True)
    assert stopped.constant
    stopped.backward()
    assert x.grad is None


def test_a_dtype_converts_whatever_comes():
    for data in ([1, 2], np.array([1, 2]), np.array([1.0, 2.0]), Tensor([1.0, 2.0]), Tensor([1, 2])):
        x = Tensor(data, dtype=np.float32)
        assert x.dtype == np.float32 and not x.constant
        assert_array_equal(x.data, [1, 2])
    assert Tensor([1.5], dtype=int).constant
    assert Tensor(np.arange(3), dtype=float).dtype == np.float64


def test_operators_of_both_sides():
    x = Tensor([1.0, 2.0])
    for got, expected in (
        (x + 1, [2, 3]),
        (1 + x, [2, 3]),
        (x - [1, 1], [0, 1]),
        (3 - x, [2, 1]),
        (x * np.array([2.0, 3.0]), [2, 6]),
        (np.array([2.0, 3.0]) * x, [2, 6]),
        (x / 2, [0.5, 1]),
        (2 / x, [2, 1]),
        (-x, [-1, -2]),
        (x**2, [1, 4]),
        (x**0.5, np.sqrt([1, 2])),
        (cenote.tensor.exp(x), np.exp([1, 2])),
    ):
        assert isinstance(got, Tensor) and not got.constant
        assert_allclose(got.data, expected)


def test_backward():
    x, w = Tensor([1.0, 2.0, 3.0]), Tensor(2.0)
    loss = ((w * x - [2, 3, 5]) ** 2).mean()
    loss.backward()
    assert_allclose(x.grad, 2 * (2 * np.array([1, 2, 3]) - [2, 3, 5]) * 2 / 3)
    assert x.grad.dtype == np.float64 and w.grad.shape == ()
    assert x.null_grad() is x and x.grad is None
    with pytest.raises(cenote.InvalidBackprop):
        loss.backward()
    assert issubclass(cenote.InvalidBackprop, RuntimeError)


def test_a_gradient_given():
    x = Tensor(np.zeros((2, 3), np.float32))
    (x * 2).backward([1, 2, 3])
    assert_array_equal(x.grad, [[2, 4, 6]] * 2)
    with pytest.raises(ValueError):
        (x * 2).backward(np.zeros(4, np.float32))


def test_using_a_tensor_clears_its_gradient():
    x = Tensor([1.0])
    (x * 2).backward()
    assert_array_equal(x.grad, [2])
    y = x * 3
    assert x.grad is None
    y.backward()


def test_no_autodiff_is_a_context_and_a_decorator_per_thread():
    x = Tensor([1.0, 2.0])

    @cenote.no_autodiff
    def untracked():
        return x * 2

    y = untracked()
    y.backward()
    assert x.grad is None
    with cenote.no_autodiff:
        other = []
        thread = threading.Thread(target=lambda: other.append(x * 2))
        thread.start()
        thread.join()
    other[0].backward()
    assert_array_equal(x.grad, [2, 2])


def test_data_can_be_trained():
    w = Tensor(np.array([5.0, -3.0]))
    for _ in range(60):
        ((w - [1.0, 2.0]) ** 2).sum().backward()
        w.data -= 0.2 * w.grad
    assert_allclose(w.data, [1, 2], atol=1e-6)
    with pytest.raises(ValueError):
        w.data = np.zeros(3)


def test_every_pooling_takes_tensors():
    a = np.random.default_rng(0).random((1, 2, 6))
    for fn, args in (
        (cenote.max_pool, ((2,),)),
        (cenote.min_pool, ((2,),)),
        (cenote.sum_pool, ((2,),)),
        (cenote.avg_pool, ((2,),)),
        (cenote.smooth_max_pool, ((2,), 1.0)),
        (cenote.lp_pool, ((2,), 3.0)),
        (cenote.adaptive_max_pool, ((3,),)),
        (cenote.adaptive_avg_pool, ((3,),)),
        (cenote.global_max_pool, ()),
        (cenote.global_avg_pool, ()),
        (cenote.global_sum_pool, ()),
        (cenote.global_min_pool, ()),
    ):
        x = Tensor(a)
        y = fn(x, *args)
        assert isinstance(y, Tensor)
        y.backward()
        expected, pullback = cenote.vjp(fn, a, *args)
        assert_array_equal(y.data, expected)
        assert_allclose(x.grad, pullback(np.ones_like(expected)))
    x = Tensor(a)
    y, indices = cenote.max_pool(x, (2,), stride=2, return_indices=True)
    back = cenote.max_unpool(y, indices, a.shape)
    back.backward()
    assert isinstance(indices, np.ndarray) and x.grad.sum() == 6
    with pytest.raises(ValueError, match="out"):
        cenote.max_pool(x, (2,), out=np.zeros(5))


def test_a_fold_with_partials_takes_tensors():
    product = dict(init=1, reduce_fn=np.multiply, window=(2,))
    x = Tensor([1.0, 5.0, 2.0, 4.0])
    y = cenote.pool(x, **product, partials=lambda a, b: (b, a))
    assert isinstance(y, Tensor) and not y.constant
    (y * 2).sum().backward()
    assert_array_equal(y.data, [5, 10, 8])
    assert_array_equal(x.grad, [10, 6, 18, 4])
    assert cenote.pool(x, **product, constant=True).constant
    with pytest.raises(NotImplementedError, match="partials"):
        cenote.pool(x, **product)
    with pytest.raises(TypeError, match="constant"):
        cenote.pool(x.data, **product, constant=True)


def test_numpy_reads_tensors():
    x = Tensor([[1.0, 2.0]])
    assert np.asarray(x).shape == x.shape == (1, 2) and x.ndim == 2 and x.size == 2 and len(x) == 1
    assert float(Tensor(2.5)) == 2.5 and Tensor(2.5).item() == 2.5
    assert Tensor([1.0], dtype="f32").dtype == np.float32
    assert x.reshape(2, 1).shape == x.reshape((2, -1)).shape == (2, 1)


def test_tensors_share_memory_on_request_where_they_can():
    a = np.arange(6.0)
    x = Tensor(a, copy=False)
    assert np.shares_memory(x.data, a)
    x.data -= 1
    assert a[0] == -1
    # The memory lives as long as a tensor has it.
    kept = weakref.ref(a)
    second = Tensor(x, copy=False, ndmin=3)
    del a
    gc.collect()
    assert kept() is not None and second.shape == (1, 1, 6) and np.shares_memory(second.data, x.data)
    y = cenote.max_pool(second, (2,)).sum()
    y.backward()
    assert second.grad.shape == (1, 1, 6) and x.grad is None
    del x, second, y
    gc.collect()
    assert kept() is None
    for other in (np.arange(6.0)[::2], np.broadcast_to(1.0, 6), np.arange(6.0).reshape(2, 3).T, [1.0, 2.0]):
        copied = Tensor(other, copy=False)
        assert not np.shares_memory(copied.data, other)
        assert_array_equal(copied.data, other)
        copied.data += 1
    assert Tensor(np.arange(6), copy=False, dtype="f32").dtype == np.float32
    for x in (np.arange(4.0), Tensor([1.0, 2.0])):
        assert not np.shares_memory(Tensor(x).data, np.asarray(x))


def test_shared_memory_may_be_let_go_by_any_thread():
    for _ in range(20):
        x = Tensor(np.arange(1000.0), copy=False)
        y = cenote.max_pool(x, (2,)).sum()
        held = [x, y]
        del x, y
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()


@pytest.mark.parametrize("axis", [None, 0, -1, (), (0, 2), (-1, 0), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "i4"])
def test_sums_and_means_are_over_all_axes_or_some(axis, keepdims, dtype):
    a = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for name in ("sum", "mean"):
        x = Tensor(a)
        y = getattr(x, name)(axis, keepdims)
        expected = getattr(a, name)(axis=axis, keepdims=keepdims)
        assert (y.shape, y.dtype, y.constant) == (expected.shape, expected.dtype, x.constant)
        assert_allclose(y.data, expected)
        assert_array_equal(getattr(cenote.tensor, name)(x, axis, keepdims).data, y.data)
        y.backward()
        if not x.constant:
            assert_allclose(x.grad, np.ones_like(a) * (1 if name == "sum" else expected.size / a.size))


def test_the_mean_of_nothing_is_nan():
    x = Tensor(np.zeros((3, 0)))
    assert np.isnan(x.mean().data) and np.isnan(x.mean(axis=1).data).all() and x.mean(axis=0).shape == (0,)
    assert_array_equal(x.sum(axis=1).data, np.zeros(3))
    assert Tensor(2.0).sum(keepdims=True).data == 2 and Tensor(np.ones((1,) * 12)).mean(keepdims=True).ndim == 12


@pytest.mark.parametrize("exponent", [-3, -1, 0, 1, 2, 5, 16, 17, 21])
def test_whole_powers_of_negative_numbers(exponent):
    a = np.array([-1.5, 0.5, 2.0])
    x = Tensor(a)
    y = x**exponent
    y.backward()
    assert_allclose(y.data, a**exponent)
    assert_allclose(x.grad, exponent * a ** float(exponent - 1))


def test_functions_without_recording_may_return_arrays():
    double = cenote.no_autodiff(lambda x: x * 2, to_numpy=True)
    assert type(double(Tensor([1.0]))) is np.ndarray
    assert bool(Tensor(1.0)) and not bool(Tensor(0.0))
