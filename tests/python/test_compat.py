"""The compat modules by themselves, without the systems that they stand for."""

import cenote
import numpy as np
import pytest
from cenote.compat import flax, mlx_lattice, mygrad, torchlean
from cenote.compat.flax import linen, nnx
from cenote.compat.mygrad.nnet.layers import max_pool
from cenote.compat.mygrad.tensor_base import Tensor
from numpy.testing import assert_allclose, assert_array_equal


def test_flax_pools_channels_last():
    x = np.arange(9.0).reshape(1, 3, 3, 1)
    expected = np.array([[4, 5], [7, 8.0]]).reshape(1, 2, 2, 1)
    for module in (flax, nnx, linen, linen.pooling):
        assert_array_equal(module.max_pool(x, (2, 2)), expected)
    # Without and with several batch axes.
    assert_array_equal(flax.max_pool(x[0], (2, 2)), expected[0])
    assert_array_equal(flax.max_pool(np.stack([x, x]), (2, 2)), np.stack([expected] * 2))
    assert flax.max_pool(x, (5, 5)).shape == (1, 0, 0, 1)


def test_flax_averages():
    x = np.array([[1.0, 2], [3, 4]]).reshape(1, 2, 2, 1)
    got = flax.avg_pool(x, (2, 2), padding="SAME")
    assert_array_equal(got[0, :, :, 0], [[2.5, 1.5], [1.75, 1]])
    got = flax.avg_pool(x, (2, 2), padding="SAME", count_include_pad=False)
    assert_array_equal(got[0, :, :, 0], [[2.5, 3], [3.5, 4]])
    got = flax.avg_pool(np.arange(1.0, 6).reshape(1, 5, 1), (2,), (2,), [(2, 3)])
    assert_array_equal(got[0, :, 0], [0, 1.5, 3.5, 2.5, 0])


def test_flax_errors():
    x = np.zeros((1, 3, 3, 1))
    with pytest.raises(AssertionError):
        flax.max_pool(x, (2, 2), strides=(1,))
    with pytest.raises(AssertionError):
        flax.max_pool(x, (2, 2), padding=[(0, 0)])
    with pytest.raises(RuntimeError):
        flax.max_pool(x, (2, 2), padding="FULL")
    with pytest.raises(TypeError):
        flax.max_pool(x, (2, 0))


def test_mygrad_tiles_exactly():
    x = Tensor(np.arange(8.0).reshape(1, 2, 2, 2))
    for pool, stride in (((3, 3, 3), 1), ((1, 1, 1), 3)):
        with pytest.raises(ValueError):
            max_pool(x, pool, stride)
    for pool, stride in (((1, 1), 0), ((1, 1), (1,)), (2, 1), ((1.5,), 1), ((1,) * 5, 1)):
        with pytest.raises(AssertionError):
            max_pool(x, pool, stride)
    out = max_pool(x, (2, 2), 1)
    assert isinstance(out, mygrad.Tensor) and not out.constant
    out.sum().backward()
    assert x.grad.sum() == 2
    assert max_pool(x, (2, 2), 1, constant=True).constant
    # A gradient may be given in any type of numbers.
    max_pool(x, (2, 2), 1).backward(np.arange(2).reshape(1, 2, 1, 1))
    assert_array_equal(x.grad.reshape(2, 4), [[0, 0, 0, 0], [0, 0, 0, 1]])


def test_torchlean():
    x = np.array([[[1.0, 0], [5, 3]]])
    assert_array_equal(torchlean.max_pool(x, (2, 2), 1, 0), [[[5]]])
    assert_array_equal(torchlean.max_pool2d_pad(np.array([[[-3.0]]]), (2, 2), 1, 1), np.full((1, 2, 2), -3.0))
    assert_array_equal(torchlean.max_pool2d_pad.vjp(np.array([[[-3.0]]]), np.ones((1, 2, 2)), (2, 2), 1, 1), [[[4]]])
    assert_array_equal(torchlean.avg_pool2d(np.full((1, 3, 3), 2.0), (2, 2), 1), np.full((1, 2, 2), 2.0))
    got = torchlean.smooth_max_pool2d(np.arange(1.0, 10).reshape(1, 3, 3), (2, 2), 1, 0.5)
    assert_allclose(got[0], 6.3509805243 + np.array([[0, 1], [3, 4]]), rtol=1e-10)
    point = np.array([1.0, 2.0])
    assert torchlean.max_pool(point, ()) is point and torchlean.avg_pool.vjp(point, point, ()) is point
    with pytest.raises(ValueError):
        torchlean.max_pool(x, (2,))
    with pytest.raises(ValueError):
        torchlean.max_pool(x, (3, 3))


def test_mlx_lattice():
    coords = np.array([[0, 0, 0, 0], [0, 1, 0, 0], [0, 2, 0, 0]], np.int32)
    feats = np.array([[2], [2], [1]], np.float32)
    x = mlx_lattice.SparseTensor(coords, feats)
    pool = mlx_lattice.ops.pool
    with pytest.raises(ValueError, match="batch_counts"):
        pool.global_sum_pool(x)
    counted = mlx_lattice.SparseTensor(coords, feats, batch_counts=[3])
    assert_array_equal(pool.global_sum_pool(counted), [[5]])
    _, pullback = cenote.vjp(pool.max_pool3d, x, kernel_size=(3, 1, 1), stride=1)
    assert_array_equal(pullback(np.ones((3, 1), np.float32))[:, 0], [1, 2, 0])
    assert_array_equal(mlx_lattice.nn.SumPool3d(kernel_size=1)(x).feats, [[2], [1]])
    with pytest.raises(ValueError):
        pool.pool3d(x, mode="min")
    with pytest.raises(TypeError):
        pool.pool3d(x, "sum")
