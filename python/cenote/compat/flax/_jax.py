"""Poolings of JAX's arrays: callbacks with derivative rules, so that jit, grad, vjp and jvp work."""

from typing import Any, Callable, Dict

import jax  # type: ignore[import-not-found,unused-ignore]
import numpy as np
from jax.custom_derivatives import linear_call  # type: ignore[import-not-found,unused-ignore]

import cenote


def apply(fn: Callable[..., Any], x: Any, options: Dict[str, Any]) -> Any:
    """fn(x, **options) for one of cenote's poolings."""

    def forward(x: Any) -> Any:
        return fn(np.asarray(x), **options)

    def push(x: Any, dx: Any) -> Any:
        return cenote.jvp(fn, np.asarray(x), np.asarray(dx), **options)[1]

    def pull(x: Any, gy: Any) -> Any:
        return cenote.vjp(fn, np.asarray(x), **options)[1](np.asarray(gy))

    # Errors of the arguments appear while the function is traced, and so does the result's shape.
    empty = forward(np.zeros(x.shape, x.dtype)) if 0 in x.shape else None
    if empty is None:
        probe = np.broadcast_to(np.zeros((), x.dtype), x.shape)
        out = _result(fn, probe, options)
    else:
        out = jax.ShapeDtypeStruct(empty.shape, empty.dtype)
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)

    @jax.custom_jvp  # type: ignore[untyped-decorator,unused-ignore]
    def pooled(x: Any) -> Any:
        return jax.pure_callback(forward, out, x, vmap_method="sequential")

    @pooled.defjvp  # type: ignore[untyped-decorator,unused-ignore]
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (dx,) = primals, tangents
        dy = linear_call(
            lambda x, dx: jax.pure_callback(push, out, x, dx, vmap_method="sequential"),
            lambda x, gy: jax.pure_callback(pull, like, x, gy, vmap_method="sequential"),
            x,
            dx,
        )
        return pooled(x), dy

    return pooled(x)


def _result(fn: Callable[..., Any], x: Any, options: Dict[str, Any]) -> Any:
    """Shape and type of the result, from a plan where there is one."""
    if fn in (cenote.max_pool, cenote.min_pool, cenote.avg_pool):
        plan = cenote.plan(fn, x, **options)
        return jax.ShapeDtypeStruct(plan.output_shape, plan.output_dtype)
    result = fn(x, **options)
    return jax.ShapeDtypeStruct(result.shape, result.dtype)
