"""Graphs: built once, run many times, with nodes of the caller's own."""

import gc

import cenote
import numpy as np
import pytest
from cenote import graph
from numpy.testing import assert_allclose, assert_array_equal


def network():
    builder = graph.Builder()
    x = builder.input((1, 6, 6), "f64", "x")
    y = graph.relu(cenote.max_pool(x, (2, 2), stride=2) - builder.constant(np.full((1, 1, 1), 0.5)))
    return builder.compile([graph.sum(cenote.smooth_max_pool(y, (2, 2), 2.0)), y])


def test_programs_equal_the_functions():
    a = np.random.default_rng(0).random((1, 6, 6))
    program = network()
    total, y = program.forward([a])
    expected = np.maximum(cenote.max_pool(a, (2, 2), stride=2) - 0.5, 0)
    assert_array_equal(y, expected)
    assert_allclose(total, cenote.smooth_max_pool(expected, (2, 2), 2.0).sum())
    assert program.inputs == (((1, 6, 6), np.dtype(np.float64)),)
    assert "max_pool" in repr(program) and "digraph" in program.dot()


def test_the_adjoint_law_holds():
    rng = np.random.default_rng(1)
    a, da = rng.random((1, 6, 6)), rng.random((1, 6, 6))
    program = network()
    gy = [np.array(0.7), rng.random((1, 3, 3))]
    _, tangents = program.jvp([a], [da])
    _, (gx,) = program.vjp([a], gy)
    assert_allclose(sum(np.vdot(t, g) for t, g in zip(tangents, gy)), np.vdot(da, gx))
    _, (only,) = program.vjp([a], [1.0, None])
    assert only.shape == a.shape


def test_indices_are_constants():
    builder = graph.Builder()
    x = builder.input((1, 1, 4), "f64")
    y, indices = cenote.max_pool(x, (2,), stride=2, return_indices=True)
    back = cenote.max_unpool(y, indices, (1, 1, 4))
    program = builder.compile([back, graph.gather(x, indices), indices])
    a = np.array([[[1.0, 5, 4, 2]]])
    out, gathered, where = program.forward([a])
    assert_array_equal(out, [[[0, 5, 4, 0]]])
    assert_array_equal(gathered, [[[5, 4]]])
    _, cotangents = program.vjp([a], [np.ones((1, 1, 4)), None, None])
    assert_array_equal(cotangents[0], [[[0, 1, 1, 0]]])


CUBE = graph.UserNode(
    "cube",
    forward=lambda x: x**3,
    jvp=lambda inputs, tangents: 3 * inputs[0] ** 2 * tangents[0],
    vjp=lambda inputs, cotangents: 3 * inputs[0] ** 2 * cotangents[0],
)


def test_nodes_of_the_callers_own():
    builder = graph.Builder()
    x = builder.input((3,), "f32")
    (y,) = builder.call(CUBE, [x])
    program = builder.compile([cenote.max_pool(y, (2,))])
    del builder, x, y
    gc.collect()
    a = np.array([1, 3, 2], np.float32)
    assert_array_equal(program.forward([a])[0], [27, 27])
    _, (gx,) = program.vjp([a], [np.ones(2, np.float32)])
    assert_array_equal(gx, [0, 54, 0])
    _, (dy,) = program.jvp([a], [a])
    assert_array_equal(dy, [81, 81])


def test_a_node_with_two_outputs_of_other_shapes():
    split = graph.UserNode(
        "split",
        shape=lambda x: [((x[0][0] // 2,), x[1]), ((2,), "i64")],
        forward=lambda x: (x[::2], np.array([1, 2])),
    )
    builder = graph.Builder()
    first, second = builder.call(split, [builder.input((4,), "f64")])
    assert first.shape == (2,) and second.dtype == np.int64
    program = builder.compile([first, second])
    assert_array_equal(program.forward([[1, 2, 3, 4]])[0], [1, 3])
    with pytest.raises(NotImplementedError, match="split"):
        program.jvp([[1, 2, 3, 4]], [[1, 2, 3, 4]])
    with pytest.raises(NotImplementedError, match="split"):
        program.vjp([[1, 2, 3, 4]], [[1, 2], None])


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16"])
@pytest.mark.parametrize("associative", [False, True])
def test_a_fold_of_a_variable_is_a_node(dtype, associative):
    options = dict(init=1, reduce_fn=np.multiply, window=(2, 3), stride=(1, 2), padding=1, associative=associative)
    options["partials"] = lambda a, b: (b, a)
    a = np.random.default_rng(0).random((2, 4, 5)).astype({"f64": "f8", "f32": "f4", "f16": "f2"}[dtype])
    builder = graph.Builder()
    x = builder.input(a.shape, dtype)
    y = cenote.pool(x, **options)
    expected, pullback = cenote.vjp(cenote.pool, a, **options)
    assert y.shape == expected.shape and y.dtype == expected.dtype
    program = builder.compile([graph.scale(y, 2)])
    assert_array_equal(program.forward([a])[0], 2 * expected)
    assert_array_equal(program.jvp([a], [a])[1][0], 2 * cenote.jvp(cenote.pool, a, a, **options)[1])
    assert_array_equal(program.vjp([a], [np.ones_like(expected)])[1][0], pullback(np.full_like(expected, 2)))


def test_a_fold_of_a_variable_without_partials_runs_forward():
    builder = graph.Builder()
    program = builder.compile([cenote.pool(builder.input((4,), "i32"), 0, np.bitwise_xor, (2,))])
    assert_array_equal(program.forward([np.array([1, 2, 3, 4], np.int32)])[0], [3, 1, 7])
    program = builder.compile([cenote.pool(builder.input((4,), "f64"), 0, np.add, (2,))])
    with pytest.raises(NotImplementedError, match="pool"):
        program.vjp([np.zeros(4, np.int32), np.zeros(4)], [np.ones(3)])


def test_errors_of_a_node_reach_the_caller():
    def fail(x):
        raise KeyError("mine")

    builder = graph.Builder()
    (y,) = builder.call(graph.UserNode("fails", forward=fail), [builder.input((2,))])
    with pytest.raises(KeyError, match="mine"):
        builder.compile([y]).forward([np.ones(2, np.float32)])
    (y,) = builder.call(graph.UserNode("wrong", forward=lambda x: x[:1]), [builder.input((2,))])
    with pytest.raises(ValueError, match="wrong"):
        builder.compile([y]).forward([np.ones(2, np.float32)] * 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda b, x: cenote.max_pool(x, (9, 9)),
        lambda b, x: x + b.input((5,)),
        lambda b, x: x + graph.Builder().input((4, 4)),
        lambda b, x: b.compile([]),
        lambda b, x: b.compile([x]).forward([]),
        lambda b, x: b.compile([x]).forward([np.ones((4, 5), np.float32)]),
        lambda b, x: b.compile([x]).forward([np.ones((4, 4))]),
        lambda b, x: b.compile([x]).vjp([np.ones((4, 4), np.float32)], [np.ones(4, np.float32)]),
        lambda b, x: graph.max_pool2d(x, (2,), 1),
        lambda b, x: b.input((2,), "f99"),
    ],
)
def test_a_callers_mistake_is_an_error(call):
    builder = graph.Builder()
    with pytest.raises((ValueError, TypeError)):
        call(builder, builder.input((4, 4)))
