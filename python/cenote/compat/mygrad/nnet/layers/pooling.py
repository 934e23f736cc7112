"""mygrad.nnet.layers: max-pooling over trailing axes, where windows must tile the data exactly."""

from numbers import Integral
from typing import Any, Optional, Tuple, Union

import numpy as np

import cenote
from cenote.tensor import Tensor

__all__ = ["max_pool"]


def max_pool(
    x: Any, pool: Tuple[int, ...], stride: Union[int, Tuple[int, ...]], *, constant: Optional[bool] = None
) -> Tensor:
    """Max-pooling over the last N dimensions of a data batch, N being the length of ``pool``.

    As mygrad's it raises AssertionError for a pool or a stride that is none, and ValueError where windows do not tile
    the data.

    >>> import numpy as np
    >>> from cenote.compat.mygrad.nnet.layers import max_pool
    >>> max_pool(np.zeros((10, 3, 12, 12)), (2, 2), (2, 1)).shape
    (10, 3, 6, 11)
    """
    tensor = x if isinstance(x, Tensor) else Tensor(x)
    assert isinstance(pool, (tuple, list, np.ndarray)), f"pool = {pool!r}: must be a tuple of integers"
    window = tuple(pool)
    assert all(isinstance(i, Integral) and i >= 1 for i in window), f"pool = {window}: must be integers from 1"
    assert len(window) <= tensor.ndim, f"pool = {window}: x has {tensor.ndim} axes"
    steps = [int(s) for s in np.asarray([stride] * len(window) if isinstance(stride, Integral) else stride, dtype=int)]
    assert len(steps) == len(window), f"stride = {steps}: must have one entry per axis of pool = {window}"
    assert all(s >= 1 for s in steps), f"stride = {steps}: must be at least 1"
    if constant is False and tensor.dtype.kind in "biu":
        raise ValueError(f"constant = False: a tensor of {tensor.dtype} must be a constant")
    result: Tensor = cenote.max_pool(tensor, window, stride=steps, exact=True, constant=constant)
    return result
