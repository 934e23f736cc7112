"""Mistakes in arguments: the kind of error, and that it names the argument, its value and what is allowed."""

import copy
import inspect
import pickle

import cenote
import numpy as np
import pytest
from cenote import graph, nn, sparse
from numpy.testing import assert_array_equal

X = np.arange(16.0).reshape(4, 4)
ROWS = sparse.SparseTensor(np.array([[0, 0, 0, 0], [0, 1, 0, 0]], np.int32), np.array([[1.0], [2.0]]))
ONES = np.ones((4, 3))


def of_sums(a, b):
    """The partial derivatives of a + b."""
    return 1, 1


def maximum(x=X, window=(2,), **options):
    return lambda: cenote.max_pool(x, window, **options)


def fold(x=X, init=0, reduce_fn=np.add, **options):
    return lambda: cenote.pool(x, init, reduce_fn, (2,), **options)


def variable():
    return graph.Builder().input((4, 4), "f64")


def program():
    builder = graph.Builder()
    return builder.compile([builder.input((4, 4), "f64")])


@pytest.mark.parametrize(
    "call, kind, said",
    [
        # The array.
        (maximum(None), TypeError, ["x = None", "array"]),
        (maximum("abc"), TypeError, ["x = 'abc'", "float32"]),
        (maximum([1, None]), TypeError, ["x = [1, None]"]),
        (maximum([[1, 2], [3]]), ValueError, ["x = [[1, 2], [3]]"]),
        (maximum(ROWS), TypeError, ["x = SparseTensor"]),
        (maximum(5.0), ValueError, ["rank 0", "at least one axis"]),
        (lambda: cenote.adaptive_max_pool(5.0, (1,)), ValueError, ["rank 0", "at least one axis"]),
        (lambda: cenote.global_max_pool(np.array(3.0), rank=1), ValueError, ["rank 0", "at least one axis"]),
        # Windows and paddings.
        (maximum(window="2"), TypeError, ["window = '2'", "sequence of integers"]),
        (maximum(window={2}), TypeError, ["window = {2}", "sequence of integers"]),
        (maximum(window={2: 3}), TypeError, ["window = {2: 3}"]),
        (maximum(window=np.array([2.0])), TypeError, ["window[0]", "2.0", "integer"]),
        (maximum(window=(np.True_,)), TypeError, ["window[0]", "True", "integer"]),
        (maximum(padding=None), TypeError, ["padding = None", '"same"', "(low, high)"]),
        (maximum(padding=b"same"), TypeError, ["padding = b'same'", '"same"']),
        (maximum(padding=("same",)), TypeError, ["padding[0] = 'same'", "(low, high)"]),
        (maximum(axes=()), ValueError, ["axes = ()", "at least one"]),
        (lambda: cenote.global_max_pool(X, axes=()), ValueError, ["axes = ()", "at least one"]),
        (lambda: cenote.adaptive_max_pool(X, "ab"), TypeError, ["output = 'ab'", "None"]),
        # Options.
        (maximum(ceil=None), TypeError, ["ceil = None", "True or False"]),
        (maximum(ceil=2), TypeError, ["ceil = 2", "True or False"]),
        (maximum(ceil=0.5), TypeError, ["ceil = 0.5", "True or False"]),
        (maximum(return_indices="yes"), TypeError, ["return_indices = 'yes'", "True or False"]),
        (maximum(return_indices=True, index_kind=None), ValueError, ["index_kind = None", '"plane"']),
        (maximum(index_kind="junk"), ValueError, ["index_kind = 'junk'", '"plane"']),
        (lambda: cenote.sum_pool(X, (2,), dtype="junk"), TypeError, ["[sum_pool] dtype = 'junk'", "float64"]),
        (lambda: cenote.sum_pool(X, (2,), dtype=5), TypeError, ["dtype = 5", "float64"]),
        (lambda: cenote.sum_pool(X, (2,), dtype=complex), TypeError, ["dtype", "complex", "float64"]),
        (lambda: cenote.avg_pool(X, (2,), divisor=True), TypeError, ["divisor = True", '"valid"', "number"]),
        (lambda: cenote.avg_pool(X, (2,), divisor=np.False_), TypeError, ["divisor", "False", "number"]),
        (lambda: cenote.avg_pool(X, (2,), divisor=None), TypeError, ["divisor = None", '"valid"', "number"]),
        (lambda: cenote.avg_pool(X, (2,), divisor=10**400), ValueError, ["divisor = 1000", "range"]),
        (lambda: cenote.smooth_max_pool(X, (2,), True), TypeError, ["beta = True", "number"]),
        (lambda: cenote.lp_pool(X, (2,), True), TypeError, ["p = True", "number"]),
        (lambda: sparse.pool(ROWS, mode="avg", divisor=True), TypeError, ["divisor = True", '"volume"']),
        # Arrays to write into.
        (maximum(out=np.zeros((4, 3), np.float32)), ValueError, ["out has type f32", "f64 (4, 3)"]),
        (maximum(out=np.zeros((3, 3))), ValueError, ["out", "(3, 3)", "(4, 3)"]),
        (maximum(out=(ONES, np.zeros((4, 3), np.int32)), return_indices=True), ValueError, ["out[1]", "i32", "i64"]),
        (fold(out=np.broadcast_to(np.zeros(1), (4, 3))), ValueError, ["out is read-only"]),
        (fold(out=np.zeros((3, 3))), ValueError, ["out", "(3, 3)", "(4, 3)"]),
        (lambda: cenote.plan(cenote.max_pool, X, (2,))(X, np.zeros(3)), ValueError, ["out", "(3,)", "(4, 3)"]),
        (lambda: cenote.vjp(cenote.max_pool, X, (2,), out=ONES), ValueError, ["out"]),
        (lambda: cenote.vjp(cenote.pool, X, 0, np.add, (2,), out=ONES), ValueError, ["out"]),
        (lambda: cenote.max_unpool(variable(), variable(), (4, 4), out=X), ValueError, ["out"]),
        (lambda: cenote.max_unpool(X, X, (4, 4), constant=True), TypeError, ["constant"]),
        # Plans.
        (lambda: cenote.explain(5), TypeError, ["problem = 5", "max f32"]),
        (lambda: cenote.explain(None), TypeError, ["problem = None"]),
        (lambda: cenote.plan(5, X), TypeError, ["fn = 5", "function"]),
        (lambda: cenote.plan(cenote.max_pool), TypeError, ["x = None", "(shape, dtype)"]),
        (lambda: cenote.plan(sparse.max_pool3d, ROWS), TypeError, ["x = SparseTensor"]),
        (lambda: cenote.plan("max f32 4x4 k2x2", X), TypeError, ["only argument"]),
        (lambda: cenote.plan(cenote.max_pool, ((4, 4), "junk"), (2,)), TypeError, ["dtype = 'junk'"]),
        (lambda: cenote.plan(cenote.max_pool, ((4, 4), None), (2,)), TypeError, ["dtype = None"]),
        # Derivatives.
        (lambda: cenote.jvp(None, X, X), TypeError, ["[jvp] fn = None", "function"]),
        (lambda: cenote.jvp(cenote.max_pool, X, None, (2,)), TypeError, ["dx = None"]),
        (lambda: cenote.vjp(cenote.max_pool, X, (2,))[1](None), TypeError, ["gy = None"]),
        (lambda: cenote.vjp(lambda x: cenote.max_pool(x * 2, (2,)), X), TypeError, ["before the pooling", "Tensor"]),
        (lambda: cenote.vjp(lambda x: cenote.max_pool(2 - x, (2,)), X), TypeError, ["before the pooling"]),
        (lambda: cenote.vjp(lambda x: cenote.max_pool(np.exp(x), (2,)), X), TypeError, ["fn", "first argument"]),
        (lambda: cenote.vjp(lambda x: cenote.max_pool(x, (2,)) + 1, X), TypeError, ["result", "Tensor"]),
        (lambda: cenote.jvp(sparse.max_pool3d, ROWS, ROWS), TypeError, ["dx = SparseTensor"]),
        (lambda: cenote.plan(cenote.max_pool, [[1], []], (2,)), ValueError, ["[plan] x = [[1], []]"]),
        (lambda: cenote.vjp(cenote.pool, X, 0, np.add, (2,), partials=of_sums)[1](None), TypeError, ["gy = None"]),
        (lambda: cenote.jvp(cenote.pool, X, "a", 0, np.add, (2,), partials=of_sums), TypeError, ["dx = 'a'"]),
        # Folds.
        (fold(init=None), TypeError, ["init = None", "number"]),
        (fold(init="a"), TypeError, ["init = 'a'", "number"]),
        (fold(init=1j), TypeError, ["init = 1j", "number"]),
        (fold(init=[1, 2]), TypeError, ["init = [1, 2]", "number"]),
        (fold(X.astype(np.uint8), 10**30), ValueError, ["init = 1000", "uint8"]),
        (fold(init=10**400), ValueError, ["init", "range of float64"]),
        (fold(X.astype(np.uint8), np.inf), ValueError, ["init = inf", "uint8"]),
        (fold(X > 3, 2), ValueError, ["init = 2", "bool"]),
        (fold(reduce_fn=None), TypeError, ["reduce_fn = None", "function"]),
        (fold(reduce_fn=lambda a, b: a + 1j), TypeError, ["reduce_fn", "complex128", "float64"]),
        (fold(partials=5), TypeError, ["partials = 5", "function"]),
        (fold(associative="x"), TypeError, ["associative = 'x'", "True or False"]),
        (fold(None), TypeError, ["[pool] x = None"]),
        (fold(X.astype(object)), TypeError, ["[pool] x has dtype object"]),
        (fold(X.astype(complex)), TypeError, ["[pool] x has dtype complex128"]),
        (fold(np.ma.array(X, mask=X > 3)), TypeError, ["[pool] x is a masked array"]),
        (lambda: cenote.vjp(cenote.pool, X, 0, np.add, (2,), partials=np.add), ValueError, ["partials", "pair"]),
        # Tensors.
        (lambda: cenote.Tensor(X) + None, TypeError, ["operand = None"]),
        (lambda: cenote.Tensor(X) + "a", TypeError, ["operand = 'a'"]),
        (lambda: cenote.Tensor(X).backward([1, None]), TypeError, ["grad = [1, None]"]),
        (lambda: cenote.Tensor(X, dtype="junk"), TypeError, ["dtype = 'junk'"]),
        (lambda: cenote.Tensor(X, ndmin=13), ValueError, ["ndmin = 13", "12"]),
        (lambda: cenote.Tensor(X, ndmin=1.5), TypeError, ["ndmin = 1.5", "integer"]),
        (lambda: cenote.Tensor(X, copy="no"), TypeError, ["copy = 'no'", "True or False"]),
        (lambda: cenote.Tensor(X).sum(axis=2), ValueError, ["[sum] axis = 2", "from -2 to 1"]),
        (lambda: cenote.Tensor(X).mean(axis=(0, -2)), ValueError, ["[mean] axis = (0, -2)", "once"]),
        (lambda: cenote.Tensor(X).reshape(None), TypeError, ["shape = None", "integer"]),
        (lambda: cenote.max_pool(cenote.Tensor(X), (2,), constant=3), TypeError, ["constant = 3"]),
        (lambda: bool(cenote.Tensor(X)), ValueError, ["ambiguous"]),
        # Graphs.
        (lambda: program().forward(None), TypeError, ["inputs = None", "list"]),
        (lambda: program().jvp([X], None), TypeError, ["tangents = None", "list"]),
        (lambda: program().forward([None]), TypeError, ["inputs[0] = None"]),
        (lambda: graph.Builder().compile(variable()), TypeError, ["outputs = Var", "list"]),
        (lambda: graph.Builder().compile([X]), TypeError, ["outputs[0] = array", "Var"]),
        (lambda: graph.Builder().call(None, [variable()]), TypeError, ["node = None", "UserNode"]),
        (lambda: graph.Builder().call(graph.UserNode("mine", None), []), TypeError, ["[mine] forward = None"]),
        (lambda: graph.Builder().call(graph.UserNode("mine", abs, vjp=5), []), TypeError, ["[mine] vjp = 5", "None"]),
        (lambda: graph.Builder().call(graph.UserNode("mine", abs), [X]), TypeError, ["inputs[0] = array", "Var"]),
        (lambda: graph.Builder().input((2,), "junk"), TypeError, ["dtype = 'junk'"]),
        (lambda: graph.Builder().input(5), TypeError, ["shape = 5", "sequence of integers"]),
        (lambda: graph.reshape(variable(), None), TypeError, ["shape = None"]),
        (lambda: graph.gather(variable(), X), TypeError, ["indices = array", "Builder.constant"]),
        (lambda: graph.max_pool2d(variable(), 2, 2), ValueError, ["window = 2", "two extents"]),
        (lambda: cenote.max_unpool(variable(), X, (4, 4)), TypeError, ["indices = array", "Builder.constant"]),
        (lambda: cenote.pool(variable(), 0, np.add, (2,), out=X), ValueError, ["out"]),
        (lambda: cenote.pool(variable(), 0, np.add, (9,)), ValueError, ["window of extent 9"]),
        # Sparse tensors and the rest.
        (lambda: sparse.max_pool3d(X), TypeError, ["x = array", "SparseTensor"]),
        (lambda: sparse.SparseTensor([[0, 0]], [[1.0]], batch_counts="a"), TypeError, ["batch_counts = 'a'"]),
        (lambda: nn.MaxPool3d()(X), TypeError, ["x = array", "SparseTensor"]),
        (lambda: cenote.set_threads(True), TypeError, ["count = True", "integer"]),
    ],
)
def test_mistakes_name_the_argument_its_value_and_what_is_allowed(call, kind, said):
    with pytest.raises(kind) as error:
        call()
    assert type(error.value) is kind
    for text in said:
        assert text in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("window", [np.array([2, 2]), [np.int32(2), np.uint8(2)], range(2, 4), np.array((2, 2), "O")])
def test_windows_may_be_any_sequence_of_integers(window):
    assert_array_equal(cenote.max_pool(X, window), cenote.max_pool(X, tuple(int(k) for k in window)))
    assert_array_equal(cenote.max_pool(X, np.array(2), axes=np.array(1), ceil=np.True_), cenote.max_pool(X, (2,)))
    assert_array_equal(cenote.max_pool(X, (3,), stride=2, ceil=1), cenote.max_pool(X, (3,), stride=2, ceil=True))


@pytest.mark.parametrize("x", [[1.0, 5.0, 2.0], (1.0, 5.0, 2.0), (1.0, 5.0), [[1, 2], [3, 4]], ((1, 2), (3, 4))])
def test_plans_are_made_of_lists(x):
    plan = cenote.plan(cenote.max_pool, x, (2,))
    array = np.array(x)
    assert (plan.input_shape, plan.input_dtype) == (array.shape, array.dtype)
    assert_array_equal(plan(x), cenote.max_pool(x, (2,)))


def test_tensors_can_be_copied_and_pickled():
    for x in (cenote.Tensor(X), cenote.Tensor(X, constant=True), cenote.Tensor(np.arange(3))):
        for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert_array_equal(made.data, x.data)
            assert (made.dtype, made.constant) == (x.dtype, x.constant)
            assert not np.shares_memory(made.data, x.data)


WINDOWED = dict(stride=1, padding="valid", dilation=1, channels_last=False, ceil=False, exact=False, allow_empty=False)
EXTREME = dict(ties="first", return_indices=False, index_kind="plane")
LAST = dict(out=None, constant=None)


@pytest.mark.parametrize(
    "name, positional, named",
    [
        ("max_pool", ["x", "window"], dict(WINDOWED, axes=None, **EXTREME, **LAST)),
        ("min_pool", ["x", "window"], dict(WINDOWED, axes=None, **EXTREME, **LAST)),
        ("sum_pool", ["x", "window"], dict(WINDOWED, axes=None, dtype=None, **LAST)),
        ("avg_pool", ["x", "window"], dict(WINDOWED, axes=None, divisor="window", **LAST)),
        ("smooth_max_pool", ["x", "window", "beta"], dict(WINDOWED, axes=None, pad="zero", **LAST)),
        ("lp_pool", ["x", "window", "p"], dict(WINDOWED, axes=None, **LAST)),
        (
            "pool",
            ["x", "init", "reduce_fn", "window"],
            dict(WINDOWED, axes=None, associative=False, partials=None, **LAST),
        ),
        ("adaptive_max_pool", ["x", "output"], dict(channels_last=False, axes=None, **EXTREME, **LAST)),
        ("adaptive_avg_pool", ["x", "output"], dict(channels_last=False, axes=None, **LAST)),
        *(
            (f"global_{name}_pool", ["x"], dict(rank=None, channels_last=False, axes=None, keepdims=True, **LAST, **own))
            for name, own in (("max", EXTREME), ("min", EXTREME), ("sum", dict(dtype=None)), ("avg", {}))
        ),
        ("max_unpool", ["y", "indices", "shape"], dict(rank=None, channels_last=False, axes=None, **LAST)),
    ],
)
def test_signatures_are_those_of_the_documentation(name, positional, named):
    parameters = inspect.signature(getattr(cenote, name)).parameters
    assert [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD] == positional
    assert {p.name: p.default for p in parameters.values() if p.kind is p.KEYWORD_ONLY} == named


@pytest.mark.parametrize(
    "fn, names",
    [
        (cenote.jvp, "fn x dx args kw"),
        (cenote.vjp, "fn x args kw"),
        (cenote.hvp, "fn x gy v args kw"),
        (cenote.plan, "fn x args kw"),
        (cenote.explain, "problem"),
    ],
)
def test_derivatives_and_plans_take_a_function_and_its_arguments(fn, names):
    assert list(inspect.signature(fn).parameters) == names.split()
