"""flax's pooling functions: channels last, any number of batch axes, strides 1 unless given.

The same names are in ``.nnx`` and ``.linen``. On JAX's arrays they work under jit, grad, vjp and jvp; on
NumPy's arrays JAX is not needed. Differences are on the page docs/compat.md.

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
    inputs: Any, window: Sequence[int], strides: Optional[Sequence[int]], padding: Padding
) -> "dict[str, Any]":
    """The arguments of cenote's functions, checked where flax checks them."""
    window = tuple(window)
    strides = (1,) * len(window) if strides is None else tuple(strides)
    assert len(window) == len(strides), f"len({window}) must equal len({strides})"
    rank = len(inputs.shape)
    assert rank > len(window), f"inputs of rank {rank} have no {len(window)} window axes and features"
    if isinstance(padding, str):
        if padding not in ("SAME", "VALID"):
            raise ValueError(f"padding {padding!r}: must be 'SAME', 'VALID' or a sequence of (low, high) pairs")
        sides: Any = padding.lower()
    else:
        sides = tuple(tuple(pair) for pair in padding)
        assert len(sides) == len(window), f"padding {sides} must have one pair per axis of window {window}"
        assert all(len(pair) == 2 for pair in sides), f"each entry in padding {sides} must be length 2"
    return dict(window=window, stride=strides, padding=sides, channels_last=True, allow_empty=True)


def _run(fn: Callable[..., Any], inputs: Any, options: "dict[str, Any]") -> Any:
    if not hasattr(inputs, "shape"):
        inputs = np.asarray(inputs)
    if "jax" in sys.modules and isinstance(inputs, sys.modules["jax"].Array):
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
    return _run(cenote.max_pool, inputs, _options(inputs, window_shape, strides, padding))


def min_pool(
    inputs: Any, window_shape: Sequence[int], strides: Optional[Sequence[int]] = None, padding: Padding = "VALID"
) -> Any:
    """Pools the input by taking the minimum of a window slice.

    >>> import numpy as np
    >>> from cenote.compat.flax import min_pool
    >>> min_pool(np.array([[[1.0], [3.0], [2.0]]]), (2,))[0, :, 0]
    array([1., 2.])
    """
    return _run(cenote.min_pool, inputs, _options(inputs, window_shape, strides, padding))


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
    options = _options(inputs, window_shape, strides, padding)
    options["divisor"] = "window" if count_include_pad else "valid"
    return _run(cenote.avg_pool, inputs, options)


def pool(
    inputs: Any,
    init: Any,
    reduce_fn: Callable[[Any, Any], Any],
    window_shape: Sequence[int],
    strides: Optional[Sequence[int]],
    padding: Padding,
) -> Any:
    """Pools by a function of the caller's, which is called on whole arrays.

    >>> import numpy as np
    >>> from cenote.compat.flax import pool
    >>> pool(np.full((1, 3, 3, 1), 2.0), 1.0, np.multiply, (2, 2), (1, 1), "VALID")[0, :, :, 0]
    array([[16., 16.],
           [16., 16.]])
    """
    options = _options(inputs, window_shape, strides, padding)
    window = options.pop("window")
    return _run(lambda x, **kw: cenote.pool(x, init, reduce_fn, window, **kw), inputs, options)
