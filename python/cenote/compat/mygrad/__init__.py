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
    """A tensor of an array, as mygrad makes it. With ``copy=False`` a tensor that fits is returned as it is.

    >>> import cenote.compat.mygrad as mg
    >>> mg.tensor([1, 2], dtype=float, ndmin=2)
    Tensor([[1., 2.]])
    """
    fits = isinstance(arr_like, Tensor) and (dtype is None or arr_like.dtype == np.dtype(dtype))
    if fits and copy is False and constant in (None, arr_like.constant):
        missing = max(ndmin - arr_like.ndim, 0)
        return reshape(arr_like, (1,) * missing + arr_like.shape) if missing else arr_like
    return Tensor(arr_like, dtype=dtype, constant=constant, copy=copy, ndmin=ndmin)
