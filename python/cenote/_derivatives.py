"""Derivatives of every pooling: forward mode, reverse mode and second order, and plans."""

from typing import Any, Callable, Optional, Sequence, Tuple, Union

from cenote import _core
from cenote._fold import written
from cenote._typing import Array


class _Unpool:
    """max_unpool as an operation: linear in y."""

    def __init__(self, *arguments: Any) -> None:
        self.indices, self.shape, *self.plane = arguments

    def _forward(self, y: Array) -> Any:
        return _core.max_unpool(y, self.indices, self.shape, *self.plane)

    def jvp(self, y: Array, dy: Array) -> Tuple[Any, Any]:
        return self._forward(y), self._forward(dy)

    def vjp(self, y: Array) -> Tuple[Any, Callable[[Array], Any]]:
        return self._forward(y), lambda gx: _core.max_unpool_vjp(gx, self.indices, *self.plane)

    def hvp(self, y: Array, gx: Array, v: Array) -> Any:
        self._forward(y), self._forward(v)
        return v * 0


def max_unpool(
    y: Array,
    indices: Array,
    shape: Sequence[int],
    *,
    rank: Optional[int] = None,
    channels_last: bool = False,
    axes: Union[None, int, Sequence[int]] = None,
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """Writes each value of y at its plane index into zeros of ``shape``; of several, the last stays.

    The plane is made of the axes after the first two, of those between the first and the last with ``channels_last``,
    of the last ``rank``, or of ``axes``. Indices are int64 and checked before anything is written.

    >>> import cenote
    >>> y, indices = cenote.max_pool([[[1.0, 5.0, 2.0, 4.0]]], (2,), stride=2, return_indices=True)
    >>> cenote.max_unpool(y, indices, (1, 1, 4))
    array([[[0., 5., 0., 4.]]])
    """
    if constant is not None and not isinstance(y, _core.Tensor):
        raise TypeError("[max_unpool] constant: only a cenote.Tensor takes it")
    if out is not None and isinstance(y, (_core.Probe, _core.Var, _core.Tensor)):
        raise ValueError("[max_unpool] out: only results of arrays are written into it")
    if isinstance(y, _core.Probe):
        return _Unpool(indices, shape, rank, channels_last, axes)
    if isinstance(y, _core.Var):
        return _core.var_max_unpool(y, indices, shape, rank, channels_last, axes)
    if isinstance(y, _core.Tensor):
        return _core.tensor_max_unpool(y, indices, shape, rank, channels_last, axes, constant)
    result = _core.max_unpool(y, indices, shape, rank, channels_last, axes)
    return written("max_unpool", result, out)


def _describe(who: str, fn: Callable[..., Any], x: Any, args: Tuple[Any, ...], kw: "dict[str, Any]") -> Any:
    """What fn does to its first argument, as an operation."""
    if not callable(fn):
        raise TypeError(f"[{who}] fn = {fn!r}: must be a function of cenote, or one that ends in such a function")
    operation = fn(_core.Probe(x), *args, **kw)
    if not all(hasattr(operation, name) for name in ("jvp", "vjp", "hvp")):
        raise TypeError(f"[{who}] fn = {fn!r}: must return the result of one function of cenote for its first argument")
    return operation


def _array(who: str, x: Any) -> Any:
    """Lists and numbers as arrays, so that all steps see one and the same."""
    return _core.to_numpy(who, "x", x) if isinstance(x, (list, tuple, int, float)) else x


def _signature(x: Any) -> Tuple[Any, Any]:
    """The shape and the dtype of x, or x itself where it is such a pair."""
    if isinstance(x, tuple) and len(x) == 2 and not isinstance(x[1], (list, tuple, int, float)):
        return x
    x = _array("plan", x)
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        raise TypeError(f"[plan] x = {x!r}: must be an array, a list or a number, or a pair (shape, dtype)")
    return x.shape, x.dtype


def jvp(fn: Any, x: Any, dx: Any, *args: Any, **kw: Any) -> Tuple[Any, Any]:
    """Forward mode: ``fn(x, *args, **kw)`` and its derivative along ``dx``.

    ``fn`` is a pooling of this package, or a function that ends in one. Of a pullback that :func:`vjp` returned,
    ``jvp(pullback, gy, dgy, dx)`` is the value and the derivative along ``dgy`` and a tangent ``dx`` of x.

    >>> import cenote
    >>> cenote.jvp(cenote.max_pool, [1.0, 0.0, 5.0, 3.0], [10.0, 20.0, 30.0, 40.0], (2,), stride=2)
    (array([1., 5.]), array([10., 30.]))
    """
    if isinstance(fn, _core.Pullback):
        return fn.jvp(x, dx, *args, **kw)  # type: ignore[return-value,unused-ignore]
    x = _array("jvp", x)
    result: Tuple[Any, Any] = _describe("jvp", fn, x, args, kw).jvp(x, dx)
    return result


def vjp(fn: Any, x: Any, *args: Any, **kw: Any) -> Tuple[Any, Callable[[Any], Any]]:
    """Reverse mode: ``fn(x, *args, **kw)`` and the pullback that takes a cotangent of it to one of x.

    ``fn`` is a pooling of this package, or a function that ends in one. Of a pullback, ``vjp(pullback, gy)`` is its
    value and a function that takes a cotangent of it to those of x and of gy.

    >>> import cenote
    >>> y, pullback = cenote.vjp(cenote.avg_pool, [1.0, 2.0, 3.0, 4.0], (2,), stride=2)
    >>> pullback([1.0, 10.0])
    array([0.5, 0.5, 5. , 5. ])
    """
    if isinstance(fn, _core.Pullback):
        return fn.vjp(x, *args, **kw)  # type: ignore[return-value,unused-ignore]
    x = _array("vjp", x)
    result: Tuple[Any, Callable[[Any], Any]] = _describe("vjp", fn, x, args, kw).vjp(x)
    return result


def hvp(fn: Callable[..., Any], x: Any, gy: Any, v: Any, *args: Any, **kw: Any) -> Any:
    """Second order: the second derivative of ``<gy, fn(x, *args, **kw)>`` at x, times ``v``.

    >>> import cenote
    >>> cenote.hvp(cenote.smooth_max_pool, [1.0, 2.0, 3.0], [1.0], [1.0, 0.0, 0.0], (3,), 1.0)
    array([ 0.08192507, -0.02203304, -0.05989202])
    """
    x = _array("hvp", x)
    return _describe("hvp", fn, x, args, kw).hvp(x, gy, v)


def plan(fn: Union[str, Callable[..., Any]], x: Any = None, *args: Any, **kw: Any) -> _core.Plan:
    """A pooling, checked once for arrays of one type and shape, to be run many times.

    Give a problem string, or a function with its arguments: x is an array, a list, or a pair (shape, dtype).

    >>> import cenote, numpy as np
    >>> plan = cenote.plan(cenote.max_pool, ((2, 4), "f32"), (2,), stride=2)
    >>> plan.output_shape
    (2, 2)
    >>> plan(np.array([[1, 2, 3, 4], [8, 7, 6, 5]], np.float32))
    array([[2., 4.],
           [8., 6.]], dtype=float32)
    """
    if isinstance(fn, str):
        if x is not None or args or kw:
            raise TypeError(f"[plan] fn = {fn!r}: a problem string says everything; must be the only argument")
        return _core.plan_problem(fn)
    shape, dtype = _signature(x)
    operation = _describe("plan", fn, x, args, kw)
    if not isinstance(operation, _core.PoolingOperation):
        raise TypeError(f"[plan] fn = {fn!r}: must be a dense pooling without a function of its own")
    return _core.plan_operation(operation, shape, dtype)


def explain(problem: str) -> str:
    """How a problem, given as one line of text, would be solved, and why.

    >>> import cenote
    >>> print(cenote.explain("max f32 32x64x112x112 k3 s2 p1").split(" -> ")[0])
    max f32 32x64x112x112 k3x3 s2x2 p1x1
    """
    return _core.plan_problem(problem).explain()
