"""cenote.compat.mlx_lattice held against an oracle in plain Python, and what mlx-lattice documents, one test each."""

import inspect
import itertools
import pickle

import cenote
import numpy as np
import pytest
from cenote.compat.mlx_lattice import SparseTensor, nn, ops
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

pool = ops.pool
FUNCTIONS = {"sum": pool.sum_pool3d, "avg": pool.avg_pool3d, "max": pool.max_pool3d}
MODULES = {"sum": nn.SumPool3d, "avg": nn.AvgPool3d, "max": nn.MaxPool3d}


def three(value):
    return (value,) * 3 if isinstance(value, int) else tuple(value)


def relation(coords, kernel_size, stride, padding, dilation):
    """Output coordinates, and for each the input rows that feed it, in the order of the kernel."""
    sizes, strides, paddings, dilations = map(three, (kernel_size, stride, padding, dilation))
    offsets = [[(j - k // 2 if k % 2 else j) * d for j in range(k)] for k, d in zip(sizes, dilations)]
    rows = {tuple(c): i for i, c in enumerate(coords.tolist())}
    if strides == (1, 1, 1) and paddings == (0, 0, 0):
        outputs = list(rows)
    else:
        outputs = list(dict.fromkeys((b, *(c // s for c, s in zip(p, strides))) for b, *p in rows))
    edges = []
    for batch, *place in outputs:
        cells = (
            (batch, *(o * s + t - p for o, s, t, p in zip(place, strides, taps, paddings)))
            for taps in itertools.product(*offsets)
        )
        edges.append([rows[cell] for cell in cells if cell in rows])
    return outputs, edges


def reduced(mode, feats, edges):
    zero = np.zeros(feats.shape[1])
    rows = [feats[e].astype(float) for e in edges]
    if mode == "max":
        return np.array([r.max(0) for r in rows])
    return np.array([zero if not len(r) else r.sum(0) if mode == "sum" else r.mean(0) for r in rows])


def pulled_back(mode, feats, edges, gy):
    """A maximum shares what it gets among equal rows."""
    gx = np.zeros(feats.shape)
    for e, g in zip(edges, gy):
        if mode != "max":
            np.add.at(gx, e, g / len(e) if mode == "avg" and e else g)
        elif e:
            equal = feats[e] == feats[e].max(0)
            np.add.at(gx, e, equal * g / equal.sum(0))
    return gx


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    spread = draw(st.integers(1, 6))
    every = np.unique(rng.integers([0, -spread, -spread, -spread], [3, spread, spread, spread], (40, 4)), axis=0)
    coords = rng.permutation(every)[: draw(st.integers(1, 40))].astype(draw(st.sampled_from([np.int32, np.int64])))
    feats = rng.integers(-3, 4, (len(coords), draw(st.integers(1, 5)))).astype(np.float32)
    limits = dict(kernel_size=(1, 4), stride=(1, 3), padding=(0, 2), dilation=(1, 2))
    one_or_three = {name: st.integers(*limit) | st.tuples(*[st.integers(*limit)] * 3) for name, limit in limits.items()}
    window = {name: draw(extents) for name, extents in one_or_three.items()}
    return coords, feats, window


@settings(deadline=None, max_examples=60)
@given(problem=problems(), mode=st.sampled_from(["sum", "avg", "max"]))
def test_local_pooling_is_the_oracles(problem, mode):
    coords, feats, window = problem
    outputs, edges = relation(coords, **window)
    x = SparseTensor(coords, feats, stride=(1, 2, 3))
    if mode == "max" and not all(edges):
        with pytest.raises(ValueError, match="row"):
            pool.max_pool3d(x, **window)
        return
    y, pullback = cenote.vjp(FUNCTIONS[mode], x, **window)
    assert_array_equal(y.coords, np.array(outputs))
    assert y.coords.dtype == coords.dtype and y.feats.dtype == feats.dtype
    assert_allclose(y.feats, reduced(mode, feats, edges), rtol=1e-6)
    assert y.stride == tuple(a * b for a, b in zip((1, 2, 3), three(window["stride"])))
    gy = np.random.default_rng(0).integers(-4, 5, y.feats.shape).astype(np.float32)
    assert_allclose(pullback(gy), pulled_back(mode, feats, edges, gy), rtol=1e-5, atol=1e-5)
    dx = np.random.default_rng(1).integers(-4, 5, feats.shape).astype(np.float32)
    _, dy = cenote.jvp(FUNCTIONS[mode], x, dx, **window)
    assert_allclose(np.vdot(dy, gy), np.vdot(dx, pullback(gy)), rtol=1e-4, atol=1e-3)
    for same in (pool.pool3d(x, mode=mode, **window), MODULES[mode](**window)(x), nn.Pool3d(mode=mode, **window)(x)):
        assert_array_equal(same.feats, y.feats)


@settings(deadline=None, max_examples=30)
@given(problem=problems(), more=st.integers(0, 2))
def test_global_pooling_is_the_oracles(problem, more):
    coords, feats, _ = problem
    counts = np.bincount(coords[:, 0], minlength=3 + more)
    x = SparseTensor(coords, feats, batch_counts=counts)
    rows = [feats[coords[:, 0] == batch].astype(float) for batch in range(len(counts))]
    zero = np.zeros(feats.shape[1])
    for function, module, expected in (
        (pool.global_sum_pool, nn.GlobalSumPool, [r.sum(0) for r in rows]),
        (pool.global_avg_pool, nn.GlobalAvgPool, [r.mean(0) if len(r) else zero for r in rows]),
    ):
        y = function(x)
        assert isinstance(y, np.ndarray) and y.shape == (len(counts), feats.shape[1])
        assert_allclose(y, np.array(expected), rtol=1e-6)
        assert_array_equal(module()(x), y)
    if counts.all():
        assert_array_equal(pool.global_max_pool(x), [r.max(0) for r in rows])
        assert_array_equal(nn.GlobalMaxPool()(x), pool.global_max_pool(x))
    else:
        with pytest.raises(ValueError, match="batch"):
            pool.global_max_pool(x)


def line(xs, f, **kw):
    return SparseTensor(np.array([[0, x, 0, 0] for x in xs], np.int32), np.array(f, np.float32)[:, None], **kw)


@pytest.mark.parametrize("function", [pool.pool3d, pool.sum_pool3d, pool.avg_pool3d, pool.max_pool3d])
def test_signatures_are_the_documented_ones(function):
    parameters = list(inspect.signature(function).parameters.values())
    defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    mode = {"mode": "sum"} if function is pool.pool3d else {}
    assert defaults == {**mode, "kernel_size": 2, "stride": 2, "padding": 0, "dilation": 1}
    assert [p.name for p in parameters][0] == "x"


def test_sums_and_averages_of_no_row_are_zero():
    # One voxel at 2, stride 3: the output at 0 looks at -1, 0 and 1.
    x = line([2], [5])
    window = dict(kernel_size=3, stride=3)
    assert_array_equal(pool.sum_pool3d(x, **window).feats, [[0]])
    assert_array_equal(pool.avg_pool3d(x, **window).feats, [[0]])


def test_a_maximum_of_no_row_is_refused():
    with pytest.raises(ValueError, match="row 0"):
        pool.max_pool3d(line([2], [5]), kernel_size=3, stride=3)


def test_an_average_is_divided_by_the_rows_that_contribute():
    y = pool.avg_pool3d(line([0, 1, 2], [1, 2, 3]), kernel_size=(3, 1, 1), stride=1)
    assert_array_equal(y.feats[:, 0], [1.5, 2, 2.5])


def test_global_pooling_needs_batch_counts():
    for function in (pool.global_sum_pool, pool.global_avg_pool, pool.global_max_pool):
        with pytest.raises(ValueError, match="batch_counts"):
            function(line([0, 1], [1, 2]))
        assert function(line([0, 1], [1, 2], batch_counts=[2])).shape == (1, 1)


def test_empty_batches_are_zero_rows_but_for_a_maximum():
    x = line([0, 1], [1, 2], batch_counts=[2, 0])
    assert_array_equal(pool.global_avg_pool(x), [[1.5], [0]])
    assert_array_equal(pool.global_sum_pool(x), [[3], [0]])
    with pytest.raises(ValueError):
        pool.global_max_pool(x)


def test_local_pooling_keeps_the_batches_for_a_global_one():
    y = pool.sum_pool3d(line([0, 1, 2], [1, 2, 3], batch_counts=[3, 0]))
    assert_array_equal(y.batch_counts, [2, 0])
    assert_array_equal(pool.global_sum_pool(y), [[6], [0]])


def test_modes_are_sum_max_and_avg():
    for mode in ("min", "mean", None):
        with pytest.raises(ValueError, match="mode"):
            pool.pool3d(line([0], [1]), mode=mode)


def test_a_tensor_of_another_dimension_is_refused():
    x = SparseTensor(np.array([[0, 1, 2]], np.int32), np.ones((1, 1), np.float32))
    with pytest.raises(ValueError, match="dimension"):
        pool.sum_pool3d(x)


def test_a_modules_options_are_shown():
    assert repr(nn.MaxPool3d(kernel_size=3)) == "MaxPool3d(kernel_size=3)"
    assert repr(nn.GlobalMaxPool()) == "GlobalMaxPool()"
    with pytest.raises(TypeError):
        nn.SumPool3d(window=2)


def test_difference_the_jvp_of_a_maximum_shares_at_ties_as_its_vjp_does():
    x = line([0, 1, 2], [2, 2, 1])
    window = dict(kernel_size=(3, 1, 1), stride=1)
    _, pullback = cenote.vjp(pool.max_pool3d, x, **window)
    assert_array_equal(pullback(np.ones((3, 1), np.float32))[:, 0], [1, 2, 0])
    _, dy = cenote.jvp(pool.max_pool3d, x, np.array([[10], [20], [30]], np.float32), **window)
    assert_array_equal(dy[:, 0], [15, 15, 20])


def test_tensors_can_be_pickled():
    x = line([0, 1], [1, 2], batch_counts=[2])
    y = pickle.loads(pickle.dumps(x))
    assert_array_equal(pool.global_sum_pool(y), [[3]])


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_difference_features_may_be_of_any_floating_point_type(dtype):
    x = SparseTensor(np.zeros((1, 4), np.int32), np.ones((1, 2), dtype))
    assert pool.sum_pool3d(x).feats.dtype == dtype
