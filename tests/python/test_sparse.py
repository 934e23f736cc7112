"""Sparse pooling: the facts of the semantics page, a slow oracle, derivatives, pickles, and what is refused."""

import itertools
import pickle

import cenote
import numpy as np
import pytest
from cenote import nn, sparse
from cenote.sparse import SparseTensor
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal


def line(xs, feats, dimension=3, **kw):
    coords = np.zeros((len(xs), 1 + dimension), np.int32)
    coords[:, 1] = xs
    return SparseTensor(coords, np.array(feats, np.float32).reshape(len(xs), -1), **kw)


def test_three_in_a_row():
    x, kw = line([0, 1, 2], [1, 2, 3]), dict(kernel_size=(3, 1, 1), stride=1)
    r = sparse.relate(x, **kw)
    assert_array_equal(r.in_row, [0, 1, 0, 1, 2, 1, 2])
    assert_array_equal(r.out_row, [0, 0, 1, 1, 1, 2, 2])
    assert_array_equal(r.kernel_id, [1, 2, 0, 1, 2, 0, 1])
    assert_array_equal(r.row_offsets, [0, 2, 5, 7])
    for mode, values, gradient in (
        ("sum", [3, 6, 5], [2, 3, 2]),
        ("max", [2, 3, 3], [0, 1, 2]),
        ("avg", [1.5, 2, 2.5], [5 / 6, 4 / 3, 5 / 6]),
    ):
        y, pullback = cenote.vjp(sparse.pool, x, mode=mode, **kw)
        assert_allclose(y.feats[:, 0], values)
        assert_allclose(pullback(np.ones((3, 1), np.float32))[:, 0], gradient, rtol=1e-6)
        assert_allclose(sparse.pool(x, mode=mode, relation=r).feats, y.feats)


def test_ties():
    x, kw = line([0, 1, 2], [2, 2, 1]), dict(mode="max", kernel_size=(3, 1, 1), stride=1)
    for ties, back, forth in (("first", [2, 1, 0], [10, 10, 20]), ("split", [1, 2, 0], [15, 15, 20])):
        _, pullback = cenote.vjp(sparse.pool, x, ties=ties, **kw)
        assert_array_equal(pullback(np.ones((3, 1), np.float32))[:, 0], back)
        _, dy = cenote.jvp(sparse.pool, x, [[10], [20], [30]], ties=ties, **kw)
        assert_array_equal(dy[:, 0], forth)


def test_strides_negatives_and_batches():
    y = sparse.pool3d(line([-3, -2, -1, 0], [1, 2, 3, 4]), kernel_size=(2, 1, 1), stride=(2, 1, 1))
    assert_array_equal(y.coords[:, 1], [-2, -1, 0])
    assert_array_equal(y.feats[:, 0], [1, 5, 4])
    assert y.stride == (2, 1, 1)
    coords = np.array([[1, 0], [0, 0], [1, 1], [0, 3]])
    y = sparse.pool(SparseTensor(coords, np.arange(1.0, 5)[:, None]))
    assert_array_equal(y.coords, [[1, 0], [0, 0], [0, 1]])
    assert_array_equal(y.feats[:, 0], [4, 2, 4])
    assert y.batch_counts == (2, 1)


def test_an_empty_row_of_a_maximum_is_an_error():
    x = line([2], [1])
    with pytest.raises(ValueError, match="row 0"):
        sparse.max_pool3d(x, kernel_size=3, stride=3)
    assert sparse.pool(x, mode="max", kernel_size=3, stride=3, empty="identity").feats[0, 0] == -np.inf


def test_global_pools():
    x = SparseTensor(np.array([[0, 0], [0, 1], [1, 0], [1, 2]]), np.array([[1.0], [2], [3], [5]]))
    assert_array_equal(sparse.global_sum_pool(x), [[3], [8]])
    assert_array_equal(sparse.global_avg_pool(x), [[1.5], [4]])
    assert_array_equal(sparse.global_max_pool(x), [[2], [5]])
    assert_array_equal(sparse.global_min_pool(x), [[1], [3]])
    more = SparseTensor(x.coords, x.feats, batch_counts=[2, 2, 0])
    assert_array_equal(sparse.global_sum_pool(more), [[3], [8], [0]])
    with pytest.raises(ValueError, match="batch 2"):
        sparse.global_max_pool(more)
    y, pullback = cenote.vjp(sparse.global_avg_pool, x)
    assert_array_equal(pullback(np.array([[1.0], [2.0]])), [[0.5], [0.5], [1], [1]])


def test_half_precision_sums_in_single():
    x = SparseTensor(line([0, 1, 2], [0, 0, 0]).coords, np.array([[4096], [1], [-4096]], np.float16))
    assert sparse.pool(x, kernel_size=(3, 1, 1), stride=1).feats[1, 0] == 1


def test_back_up():
    x = SparseTensor(np.array([[0, 0], [0, 1]]), np.array([[2.0], [6]]), stride=2)
    y = sparse.pool_transpose(x)
    assert_array_equal(y.coords[:, 1], [0, 1, 2, 3])
    assert_array_equal(y.feats[:, 0], [2, 2, 6, 6])
    assert y.stride == (1,)
    y, pullback = cenote.vjp(sparse.upsample, x, 2)
    _, dy = cenote.jvp(sparse.upsample, x, x.feats, 2)
    assert_allclose(np.vdot(dy, y.feats), np.vdot(x.feats, pullback(y.feats)))
    with pytest.raises(ValueError, match="stride"):
        sparse.pool_transpose(x, stride=3)


def oracle(coords, feats, mode, k, s, d):
    """mlx-lattice's pooling, edge by edge."""
    offsets = range(-(k // 2), k // 2 + 1) if k % 2 else range(k)
    rows = {tuple(c): i for i, c in enumerate(coords.tolist())}
    outputs = list(dict.fromkeys((c[0], *(v // s for v in c[1:])) for c in rows))
    result = []
    for o in outputs:
        windows = itertools.product(offsets, repeat=len(o) - 1)
        taps = [(o[0], *(v * s + j * d for v, j in zip(o[1:], js))) for js in windows]
        found = [feats[rows[t]] for t in taps if t in rows]
        if not found:
            result.append(np.zeros(feats.shape[1]) if mode in ("sum", "avg") else None)
            continue
        result.append({"sum": np.sum, "avg": np.mean, "max": np.max, "min": np.min}[mode](found, axis=0))
    return np.array(outputs), result


@settings(deadline=None, max_examples=80)
@given(
    dimension=st.integers(1, 4),
    n=st.integers(0, 40),
    mode=st.sampled_from(["sum", "avg", "max", "min"]),
    k=st.integers(1, 3),
    s=st.integers(1, 3),
    d=st.integers(1, 2),
    wide=st.booleans(),
    draw_number=st.integers(0, 999),
)
def test_local_pools_equal_the_oracle(dimension, n, mode, k, s, d, wide, draw_number):
    rng = np.random.default_rng(draw_number)
    coords = np.unique(rng.integers(-4, 5, (n, 1 + dimension)), axis=0)
    coords[:, 0] = np.abs(coords[:, 0]) % 2
    coords = rng.permutation(np.unique(coords, axis=0)).astype(np.int64 if wide else np.int32)
    feats = rng.integers(-5, 6, (len(coords), 2)).astype(np.float64)
    x = SparseTensor(coords.reshape(-1, 1 + dimension), feats)
    rows, expected = oracle(coords, feats, mode, k, s, d)
    kw = dict(mode=mode, kernel_size=k, stride=s, dilation=d)
    if any(row is None for row in expected):
        with pytest.raises(ValueError, match="row"):
            sparse.pool(x, **kw)
        return
    y = sparse.pool(x, **kw)
    assert_array_equal(y.coords, rows.reshape(y.coords.shape))
    assert_allclose(y.feats, np.array(expected).reshape(y.feats.shape), rtol=1e-12)
    dx, gy = rng.random(feats.shape), rng.random(y.feats.shape)
    _, dy = cenote.jvp(sparse.pool, x, dx, **kw)
    _, pullback = cenote.vjp(sparse.pool, x, **kw)
    assert_allclose(np.vdot(dy, gy), np.vdot(dx, pullback(gy)), atol=1e-10)
    assert_array_equal(cenote.hvp(sparse.pool, x, gy, dx, **kw), np.zeros_like(feats))


def test_dense_policy_equals_a_dense_pooling():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((2, 3, 7, 6)) < 0.3, rng.random((2, 3, 7, 6)), 0)
    x = SparseTensor.from_dense(dense)
    y = sparse.pool(x, mode="sum", kernel_size=3, stride=2, padding=1, policy="dense", extent=(7, 6))
    expected = cenote.sum_pool(dense, (3, 3), stride=2, padding=1)
    assert_allclose(y.to_dense(expected.shape[2:]), expected)
    assert_array_equal(x.to_dense((7, 6)), dense)


def test_rows_that_won():
    y, rows = sparse.pool(line([0, 1, 2, 3], [1, 5, 7, 2]), mode="max", return_rows=True)
    assert_array_equal(rows, [[1], [2]])


def test_tensors_and_relations_survive_pickling():
    x = line([0, 5, 3], [1, 2, 3], batch_size=4, stride=(2, 4, 8))
    z = pickle.loads(pickle.dumps(x))
    assert_array_equal(z.coords, x.coords)
    assert_array_equal(z.feats, x.feats)
    assert (z.stride, z.batch_size, z.batch_counts) == (x.stride, x.batch_size, x.batch_counts)
    r = sparse.relate(x, kernel_size=3, stride=1)
    s = pickle.loads(pickle.dumps(r))
    assert_array_equal(s.in_row, r.in_row)
    assert_array_equal(s.kernel_id, r.kernel_id)
    assert s.kernel == r.kernel
    assert_array_equal(sparse.pool(z, relation=s).feats, sparse.pool(x, relation=r).feats)


def test_duplicates_are_named_or_merged():
    coords = np.array([[0, 1], [0, 2], [0, 1]])
    with pytest.raises(ValueError, match="0 and 2|2 and 0"):
        SparseTensor(coords, np.ones((3, 1)))
    merged = SparseTensor.coalesced(coords, np.array([[1.0], [2], [3]]), merge="sum")
    assert_array_equal(merged.feats, [[4], [2]])


@pytest.mark.parametrize(
    "make",
    [
        lambda: SparseTensor(np.zeros((2, 1), int), np.ones((2, 1))),
        lambda: SparseTensor(np.zeros((1, 4)), np.ones((1, 1))),
        lambda: SparseTensor(np.array([[0, 1]]), np.ones((2, 1))),
        lambda: SparseTensor(np.array([[-1, 1]]), np.ones((1, 1))),
        lambda: SparseTensor(np.array([[0, 1]]), np.ones((1, 1)), batch_counts=[2]),
        lambda: SparseTensor(np.array([[0, 1]]), np.ones((1, 1)), batch_counts=[-1, 2]),
        lambda: SparseTensor(np.array([[0, 1]]), np.ones((1, 1)), active_rows=2),
        lambda: SparseTensor(np.array([[0, 1]]), np.ones((1, 1), int)),
        lambda: sparse.pool(line([0], [1]), kernel_size=0),
        lambda: sparse.pool(line([0], [1]), mode="median"),
        lambda: sparse.pool(line([0], [1]), policy="other"),
        lambda: sparse.pool(line([0], [1]), relation=sparse.relate(line([1], [1]))),
        lambda: sparse.pool3d(line([0], [1], dimension=2)),
        lambda: cenote.vjp(sparse.pool, line([0], [1]))[1](np.ones((2, 1), np.float32)),
    ],
)
def test_a_callers_mistake_is_a_value_error(make):
    with pytest.raises(ValueError):
        make()


def test_what_is_no_sparse_tensor_is_a_type_error():
    with pytest.raises(TypeError, match="SparseTensor"):
        sparse.pool(np.ones((2, 2)))
    with pytest.raises(TypeError, match="Relation"):
        sparse.pool(line([0], [1]), relation=3)


def test_coordinates_at_the_end_of_their_range():
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    x = SparseTensor(np.array([[0, low], [0, high]], np.int32), np.ones((2, 1)))
    assert_array_equal(sparse.pool(x, kernel_size=3, stride=1).feats, [[1], [1]])


def test_modules():
    assert repr(nn.MaxPool((2, 2), stride=2)) == "MaxPool(window=(2, 2), stride=2)"
    assert nn.MaxPool((2,)) == nn.MaxPool((2,)) != nn.MaxPool((3,))
    x = line([0, 1, 2, 3], [1, 2, 3, 4])
    assert_array_equal(nn.SumPool3d()(x).feats, sparse.sum_pool3d(x).feats)
    assert_array_equal(nn.Pool3d(mode="max")(x).feats, sparse.max_pool3d(x).feats)
    assert_array_equal(nn.GlobalMaxPool()(x), [[4]])
    assert_array_equal(nn.GlobalMaxPool()(np.ones((1, 1, 4))), [[[1]]])
    layer = pickle.loads(pickle.dumps(nn.AvgPool((2,), divisor="valid")))
    assert layer == nn.AvgPool((2,), divisor="valid")
    y, pullback = cenote.vjp(nn.MaxPool((2,)), np.array([1.0, 3, 2]))
    assert_array_equal(pullback([1.0, 1.0]), [0, 2, 0])
    with pytest.raises(TypeError):
        nn.MaxPool((2,), strides=2)
