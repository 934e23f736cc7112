"""Poolings as primitives of JAX, with rules for derivatives of every order and for batches.

A pooling, its tangent and its cotangent are three primitives, and each is the derivative or the transpose of another.
"""

from typing import Any, Callable, Dict, Tuple

import jax  # type: ignore[import-not-found,unused-ignore]
import jax.numpy as jnp  # type: ignore[import-not-found,unused-ignore]
import numpy as np
from jax.extend.core import Primitive  # type: ignore[import-not-found,unused-ignore]
from jax.interpreters import ad, batching, mlir  # type: ignore[import-not-found,unused-ignore]

import cenote
from cenote._fold import taps

# The operands of a tangent and of a cotangent: the x at which they are taken, which an average does not need, and dx
# or gy. `fn` and `options` say which pooling it is, `shape` and `dtype` what x is.
Options = Tuple[Tuple[str, Any], ...]


def _value(x: Any, *, fn: Callable[..., Any], options: Options, **_: Any) -> Any:
    return fn(x, **dict(options))


def _tangent(*operands: Any, fn: Callable[..., Any], options: Options, **_: Any) -> Any:
    *at, dx = operands
    return cenote.jvp(fn, at[0], dx, **dict(options))[1] if at else fn(dx, **dict(options))


def _cotangent(*operands: Any, fn: Callable[..., Any], options: Options, shape: Any, dtype: Any) -> Any:
    *at, gy = operands
    x = at[0] if at else np.broadcast_to(np.zeros((), dtype), shape)
    gx = cenote.vjp(fn, x, **dict(options))[1](gy)
    return gx if at else _as_kind(gx, gy)


def _as_kind(gx: Any, gy: Any) -> Any:
    return jnp.asarray(gx) if isinstance(gy, jax.Array) else gx


def _output(*_: Any, fn: Callable[..., Any], options: Options, shape: Any, dtype: Any) -> Any:
    """Errors of the arguments appear here, while a function is traced."""
    plan = cenote.plan(fn, (shape, dtype), **dict(options))
    return jax.core.ShapedArray(plan.output_shape, plan.output_dtype)


def _input(*_: Any, shape: Any, dtype: Any, **__: Any) -> Any:
    return jax.core.ShapedArray(shape, dtype)


def _primitive(name: str, function: Callable[..., Any], result: Callable[..., Any]) -> Any:
    primitive = Primitive(f"cenote_{name}")

    def called_back(*operands: Any, **params: Any) -> Any:
        def on_host(*arrays: Any) -> Any:
            return np.asarray(function(*map(np.asarray, arrays), **params))

        return jax.pure_callback(on_host, result(*operands, **params), *operands)

    def at_once(*operands: Any, **params: Any) -> Any:
        # Arrays in this machine's memory are read where they lie.
        devices = {device for operand in operands for device in operand.devices()}
        near = len(devices) == 1 and devices.pop().platform == "cpu"
        return (function if near else called_back)(*operands, **params)

    def batched(operands: Any, axes: Any, *, shape: Any, **params: Any) -> Tuple[Any, int]:
        # Poolings take any number of leading axes: a batch is one more.
        size = next(x.shape[axis] for x, axis in zip(operands, axes) if axis is not None)
        first = (
            jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
            for x, axis in zip(operands, axes)
        )
        return primitive.bind(*first, shape=(size, *shape), **params), 0

    primitive.def_impl(at_once)
    primitive.def_abstract_eval(result)
    mlir.register_lowering(primitive, mlir.lower_fun(called_back, multiple_results=False))
    batching.primitive_batchers[primitive] = batched
    return primitive


_value_p = _primitive("pool", _value, _output)
_tangent_p = _primitive("pool_tangent", _tangent, _output)
_cotangent_p = _primitive("pool_cotangent", _cotangent, _input)


def _differentiate(dx: Any, x: Any, *, fn: Callable[..., Any], **params: Any) -> Any:
    return _tangent_p.bind(*(() if fn is cenote.avg_pool else (x,)), dx, fn=fn, **params)


def _linear(primitive: Any, transposed: Any) -> None:
    """Both are linear in their last operand, and do not change with x but where the winners do."""

    def jvp(primals: Any, tangents: Any, **params: Any) -> Tuple[Any, Any]:
        y = primitive.bind(*primals, **params)
        if type(tangents[-1]) is ad.Zero:
            return y, jnp.zeros_like(y)
        return y, primitive.bind(*primals[:-1], tangents[-1], **params)

    def transpose(cotangent: Any, *operands: Any, **params: Any) -> Any:
        at = operands[:-1]
        return [None] * len(at) + [transposed.bind(*at, cotangent, **params)]

    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transpose


ad.defjvp(_value_p, _differentiate)
_linear(_tangent_p, _cotangent_p)
_linear(_cotangent_p, _tangent_p)


def apply(fn: Callable[..., Any], x: Any, options: Dict[str, Any]) -> Any:
    """fn(x, **options) for max_pool, min_pool or avg_pool."""
    return _value_p.bind(x, fn=fn, options=tuple(options.items()), shape=x.shape, dtype=np.dtype(x.dtype))


def fold(x: Any, init: Any, reduce_fn: Callable[[Any, Any], Any], options: Dict[str, Any]) -> Any:
    """The fold of each window in JAX's own operations, so that JAX differentiates it."""
    shape, steps = taps(x.shape, **options)
    result = jnp.full(shape, init, x.dtype)
    for box, tap in steps:
        part = reduce_fn(result[box], x[tap]).astype(x.dtype)
        result = part if part.shape == result.shape else result.at[box].set(part)
    return result
