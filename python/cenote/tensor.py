"""Eager tensors, after mygrad: arrays that remember how they were made, so that backward() can say how they matter."""

import functools
import threading
from typing import Any, Callable, List, Optional, Sequence, TypeVar, Union

import numpy as np

from cenote import _core
from cenote._core import Tensor
from cenote._typing import Axes

__all__ = [
    "Tensor",
    "add",
    "divide",
    "exp",
    "log",
    "mean",
    "multiply",
    "negative",
    "no_autodiff",
    "relu",
    "reshape",
    "subtract",
    "sum",
]

Constant = Optional[bool]
Function = TypeVar("Function", bound=Callable[..., Any])


class _NoAutodiff:
    """A context and a decorator in which operations of this thread do not record. See mygrad's of the same name.

    >>> import cenote
    >>> x = cenote.Tensor([1.0, 2.0])
    >>> with cenote.no_autodiff:
    ...     y = x * 2
    >>> y.backward()
    >>> x.grad is None
    True
    """

    def __init__(self) -> None:
        self._threads = threading.local()

    def _held(self) -> List[_core.NoAutodiff]:
        if not hasattr(self._threads, "held"):
            self._threads.held = []
        held: List[_core.NoAutodiff] = self._threads.held
        return held

    def __enter__(self) -> "_NoAutodiff":
        self._held().append(_core.NoAutodiff())
        return self

    def __exit__(self, *error: Any) -> None:
        self._held().pop()

    def __call__(self, func: Function, to_numpy: bool = False) -> Function:
        """The function without recording; with ``to_numpy`` what it returns is made an array of NumPy's."""

        @functools.wraps(func)
        def untracked(*args: Any, **kw: Any) -> Any:
            with self:
                result = func(*args, **kw)
            return np.asarray(result) if to_numpy else result

        return untracked  # type: ignore[return-value]

    def __repr__(self) -> str:
        return "cenote.no_autodiff"


no_autodiff = _NoAutodiff()

Operand = Union[Tensor, Any]


def _load(data: Any, constant: bool) -> Tensor:
    return Tensor(data, constant=constant, copy=False)


def add(a: Operand, b: Operand, *, constant: Constant = None) -> Tensor:
    """a + b, broadcast as NumPy does; equal floating-point types.

    >>> import cenote
    >>> cenote.tensor.add(cenote.Tensor([1.0, 2.0]), 1)
    Tensor([2., 3.])
    """
    return _core.tensor_add(a, b, constant)


def subtract(a: Operand, b: Operand, *, constant: Constant = None) -> Tensor:
    """a - b, broadcast as NumPy does; equal floating-point types.

    >>> import cenote
    >>> cenote.tensor.subtract(3, cenote.Tensor([1.0, 2.0]))
    Tensor([2., 1.])
    """
    return _core.tensor_subtract(a, b, constant)


def multiply(a: Operand, b: Operand, *, constant: Constant = None) -> Tensor:
    """a * b, broadcast as NumPy does; equal floating-point types.

    >>> import cenote
    >>> cenote.tensor.multiply(cenote.Tensor([1.0, 2.0]), [3, 4])
    Tensor([3., 8.])
    """
    return _core.tensor_multiply(a, b, constant)


def divide(a: Operand, b: Operand, *, constant: Constant = None) -> Tensor:
    """a / b, broadcast as NumPy does; equal floating-point types.

    >>> import cenote
    >>> cenote.tensor.divide(cenote.Tensor([1.0, 2.0]), 4)
    Tensor([0.25, 0.5 ])
    """
    return _core.tensor_divide(a, b, constant)


def negative(x: Operand, *, constant: Constant = None) -> Tensor:
    """-x.

    >>> import cenote
    >>> cenote.tensor.negative([1.0, -2.0])
    Tensor([-1.,  2.])
    """
    return _core.tensor_negative(x, constant)


def exp(x: Operand, *, constant: Constant = None) -> Tensor:
    """The exponential of each element.

    >>> import cenote
    >>> cenote.tensor.exp([0.0])
    Tensor([1.])
    """
    return _core.tensor_exp(x, constant)


def log(x: Operand, *, constant: Constant = None) -> Tensor:
    """The natural logarithm of each element.

    >>> import cenote
    >>> cenote.tensor.log([1.0])
    Tensor([0.])
    """
    return _core.tensor_log(x, constant)


def relu(x: Operand, *, constant: Constant = None) -> Tensor:
    """max(x, 0); the derivative at 0 is 0.

    >>> import cenote
    >>> cenote.tensor.relu([-1.0, 2.0])
    Tensor([0., 2.])
    """
    return _core.tensor_relu(x, constant)


def sum(x: Operand, axis: Axes = None, keepdims: bool = False, *, constant: Constant = None) -> Tensor:
    """The sum over ``axis``, one or several, or of all elements. With ``keepdims`` the axes stay, with size 1.

    >>> import cenote
    >>> cenote.tensor.sum([1.0, 2.0])
    Tensor(3.)
    >>> cenote.tensor.sum([[1.0, 2.0], [3.0, 4.0]], axis=1)
    Tensor([3., 7.])
    """
    return _core.tensor_sum(x, axis, keepdims, constant)


def mean(x: Operand, axis: Axes = None, keepdims: bool = False, *, constant: Constant = None) -> Tensor:
    """The mean over ``axis``, one or several, or of all elements. With ``keepdims`` the axes stay, with size 1.

    >>> import cenote
    >>> cenote.tensor.mean([1.0, 2.0])
    Tensor(1.5)
    >>> cenote.tensor.mean([[1.0, 2.0], [3.0, 4.0]], axis=1)
    Tensor([1.5, 3.5])
    """
    return _core.tensor_mean(x, axis, keepdims, constant)


def reshape(x: Operand, shape: Union[int, Sequence[int]], *, constant: Constant = None) -> Tensor:
    """The same elements under another shape, of which one extent may be -1.

    >>> import cenote
    >>> cenote.tensor.reshape([1.0, 2.0], (2, 1))
    Tensor([[1.],
            [2.]])
    """
    return _core.tensor_reshape(x, shape, constant)
