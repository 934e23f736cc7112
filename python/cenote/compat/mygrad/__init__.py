"""mygrad's Tensor, and max_pool as ``nnet.layers.max_pool``.

>>> import cenote.compat.mygrad as mg
>>> from cenote.compat.mygrad.nnet import max_pool
>>> x = mg.Tensor([[0.0, 10.0, 8.0], [9.0, 7.0, 3.0], [5.0, 0.0, 20.0]])
>>> max_pool(x, pool=(2,), stride=1)
Tensor([[10., 10.],
        [ 9.,  7.],
        [ 5., 20.]])
"""

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
    "tensor_base",
]
