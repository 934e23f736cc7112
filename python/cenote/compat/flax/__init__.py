"""flax's pooling functions: channels last, any number of batch axes, strides 1 unless given.

The same names are in ``.nnx``, ``.linen`` and ``.linen.pooling``. On JAX's arrays they work under jit, vmap and
derivatives of every order; on NumPy's arrays JAX is not needed. Differences are on the page docs/compat.md.

>>> import numpy as np
>>> from cenote.compat import flax
>>> x = np.arange(9.0).reshape(1, 3, 3, 1)
>>> flax.max_pool(x, (2, 2))[0, :, :, 0]
array([[4., 5.],
       [7., 8.]])
>>> flax.avg_pool(x, (2, 2), strides=(2, 2), padding="SAME", count_include_pad=False)[0, :, :, 0]
array([[2. , 3.5],
       [6.5, 8. ]])
"""

import sys
from typing import Any, Callable, Optional, Sequence, Tuple, Union

import numpy as np

import cenote

__all__ = ["avg_pool", "max_pool", "min_pool", "pool"]

Padding = Union[str, Sequence[Tuple[int, int]]]


def _options(
    inputs: Any, window_shape: Sequence[int], strides: Optional[Sequence[int]], padding: Padding
) -> Tuple[Any, "dict[str, Any]"]:
    """The inputs and the arguments of cenote's functions, checked where flax and XLA check them, as they do."""
    rank, window = len(inputs.shape), tuple(window_shape)
    strides = tuple(strides or (1,) * len(window))
    assert len(window) == len(strides), f"len({window}) must equal len({strides})"
    assert rank > len(window), f"inputs of rank {rank} have no {len(window)} window axes and features"
    for name, extents in (("window_shape", window), ("strides", strides)):
        if not all(extent > 0 for extent in extents):
            raise TypeError(f"{name} {extents}: every extent must be at least 1")
    if isinstance(padding, str):
        sides: Any = padding.lower()
        if sides not in ("same", "valid", "same_lower"):
            raise RuntimeError(f"padding {padding!r}: must be 'SAME', 'VALID', 'SAME_LOWER' or (low, high) pairs")
    else:
        sides = tuple(tuple(pair) for pair in padding)
        assert len(sides) == len(window), f"padding {sides} must have one pair per axis of window {window}"
        assert all(len(pair) == 2 for pair in sides), f"each entry in padding {sides} must be length 2"
        inputs, sides = _crop(inputs, sides)
    return inputs, dict(window=window, stride=strides, padding=sides, channels_last=True, allow_empty=True)


def _crop(inputs: Any, sides: Tuple[Tuple[int, int], ...]) -> Tuple[Any, Tuple[Tuple[int, int], ...]]:
    """Negative padding, as XLA has it, takes cells away."""
    if all(low >= 0 and high >= 0 for low, high in sides):
        return inputs, sides
    kept = len(inputs.shape) - len(sides) - 1
    cut = (slice(max(-low, 0), max(n + min(high, 0), 0)) for n, (low, high) in zip(inputs.shape[kept:], sides))
    return inputs[(slice(None),) * kept + tuple(cut)], tuple((max(low, 0), max(high, 0)) for low, high in sides)


def _is_jax(x: Any) -> bool:
    return "jax" in sys.modules and isinstance(x, sys.modules["jax"].Array)


def _run(fn: Callable[..., Any], inputs: Any, options: "dict[str, Any]") -> Any:
    if not options["window"]:
        # Windows of no axes are the cells themselves.
        options.update(window=(1,), stride=(1,), padding="valid", channels_last=False)
    if _is_jax(inputs):
        from cenote.compat.flax import _jax

        return _jax.apply(fn, inputs, options)
    return fn(inputs, **options)


def max_pool(
    inputs: Any, window_shape: Sequence[int], strides: Optional[Sequence[int]] = None, padding: Padding = "VALID"
) -> Any:
    """Pools the input by taking the maximum of a window slice.

    >>> import numpy as np
    >>> from cenote.compat.flax import max_pool
    >>> max_pool(np.array([[[1.0], [3.0], [2.0]]]), (2,))[0, :, 0]
    array([3., 3.])
    """
    return _run(cenote.max_pool, *_options(inputs, window_shape, strides, padding))


def min_pool(
    inputs: Any, window_shape: Sequence[int], strides: Optional[Sequence[int]] = None, padding: Padding = "VALID"
) -> Any:
    """Pools the input by taking the minimum of a window slice.

    >>> import numpy as np
    >>> from cenote.compat.flax import min_pool
    >>> min_pool(np.array([[[1.0], [3.0], [2.0]]]), (2,))[0, :, 0]
    array([1., 2.])
    """
    return _run(cenote.min_pool, *_options(inputs, window_shape, strides, padding))


def avg_pool(
    inputs: Any,
    window_shape: Sequence[int],
    strides: Optional[Sequence[int]] = None,
    padding: Padding = "VALID",
    count_include_pad: bool = True,
) -> Any:
    """Pools the input by taking the average over a window.

    >>> import numpy as np
    >>> from cenote.compat.flax import avg_pool
    >>> avg_pool(np.array([[[1.0], [3.0], [2.0]]]), (2,))[0, :, 0]
    array([2. , 2.5])
    """
    inputs, options = _options(inputs, window_shape, strides, padding)
    if inputs.dtype == bool:
        raise TypeError("inputs of bool: only numbers have an average")
    options["divisor"] = "window" if count_include_pad else "valid"
    if not count_include_pad and _is_jax(inputs):
        # flax divides by a count of JAX's default type, which makes halves wider.
        jnp = sys.modules["jax"].numpy
        inputs = inputs.astype(jnp.promote_types(inputs.dtype, jnp.ones(()).dtype))
    return _run(cenote.avg_pool, inputs, options)


def pool(
    inputs: Any,
    init: Any,
    reduce_fn: Callable[[Any, Any], Any],
    window_shape: Sequence[int],
    strides: Optional[Sequence[int]],
    padding: Padding,
) -> Any:
    """Pools by a function of the caller's, which is called on whole arrays; JAX differentiates it on JAX's.

    >>> import numpy as np
    >>> from cenote.compat.flax import pool
    >>> pool(np.full((1, 3, 3, 1), 2.0), 1.0, np.multiply, (2, 2), (1, 1), "VALID")[0, :, :, 0]
    array([[16., 16.],
           [16., 16.]])
    """
    inputs, options = _options(inputs, window_shape, strides, padding)
    if np.dtype(inputs.dtype).kind in "iu" and np.isinf(init):
        # Infinity is the last of the integers, as in XLA.
        limits = np.iinfo(np.dtype(inputs.dtype))
        init = limits.max if init > 0 else limits.min
    if _is_jax(inputs):
        from cenote.compat.flax import _jax

        return _jax.fold(inputs, init, reduce_fn, options)
    window = options.pop("window")
    return cenote.pool(inputs, init, reduce_fn, window, **options)
