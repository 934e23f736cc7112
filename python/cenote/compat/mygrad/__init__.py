"""mygrad's Tensor, and max_pool as ``nnet.layers.max_pool``.

>>> import cenote.compat.mygrad as mg
>>> from cenote.compat.mygrad.nnet import max_pool
>>> x = mg.Tensor([[0.0, 10.0, 8.0], [9.0, 7.0, 3.0], [5.0, 0.0, 20.0]])
>>> max_pool(x, pool=(2,), stride=1)
Tensor([[10., 10.],
        [ 9.,  7.],
        [ 5., 20.]])
"""

from typing import Any, Optional

import numpy as np

from cenote._core import InvalidBackprop
from cenote.compat.mygrad import nnet, tensor_base
from cenote.tensor import (
    Tensor,
    add,
    divide,
    exp,
    log,
    mean,
    multiply,
    negative,
    no_autodiff,
    reshape,
    subtract,
    sum,
)

__all__ = [
    "InvalidBackprop",
    "Tensor",
    "add",
    "divide",
    "exp",
    "log",
    "mean",
    "multiply",
    "negative",
    "nnet",
    "no_autodiff",
    "reshape",
    "subtract",
    "sum",
    "tensor",
    "tensor_base",
]


def tensor(
    arr_like: Any, dtype: Any = None, *, constant: Optional[bool] = None, copy: bool = True, ndmin: int = 0
) -> Tensor:
    """A tensor of an array, as mygrad makes it; data is copied unless it is a tensor and ``copy`` is false.

    >>> import cenote.compat.mygrad as mg
    >>> mg.tensor([1, 2], dtype=float, ndmin=2)
    Tensor([[1., 2.]])
    """
    if isinstance(arr_like, Tensor):
        if not copy and dtype is None and constant in (None, arr_like.constant) and arr_like.ndim >= ndmin:
            return arr_like
        arr_like = arr_like.data
    return Tensor(np.array(arr_like, dtype=dtype, ndmin=ndmin), constant=constant)
