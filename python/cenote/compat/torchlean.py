"""TorchLean's poolings: channels first, no batch, on arrays [C] + spatial, with forward, jvp and vjp of each.

``max_pool(x, kernel, stride, padding)`` pools all axes but the first; each function has ``.jvp(x, dx, …)`` and
``.vjp(x, gy, …)``. Padding is symmetric: ignored by a maximum, zeros that count for an average and a smooth maximum.
Without spatial axes max and avg are the identity. A window that does not fit is an error, not an output of size 1.

>>> from cenote.compat import torchlean
>>> import numpy as np
>>> x = np.array([[[1.0, 0.0], [5.0, 3.0]]])
>>> torchlean.max_pool(x, (2, 2))
array([[[5.]]])
>>> torchlean.max_pool.jvp(x, np.array([[[10.0, 20.0], [30.0, 40.0]]]), (2, 2))
array([[[30.]]])
>>> torchlean.max_pool2d.vjp(x, np.array([[[1.0]]]), (2, 2), 1)
array([[[0., 0.],
        [1., 0.]]])
"""

from typing import Any, Callable, Sequence, Union

import numpy as np

import cenote

__all__ = [
    "Pooling",
    "avg_pool",
    "avg_pool2d",
    "avg_pool2d_pad",
    "max_pool",
    "max_pool2d",
    "max_pool2d_pad",
    "smooth_max_pool",
    "smooth_max_pool2d",
]

Extents = Union[int, Sequence[int]]


class Pooling:
    """One of TorchLean's poolings: call it, or ask for its derivatives."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, x: Any, *args: Any, **kw: Any) -> Any:
        return self._function(x, *args, **kw)

    def jvp(self, x: Any, dx: Any, *args: Any, **kw: Any) -> Any:
        """The derivative at x along dx."""
        if _rank(x) == 1:
            self._function(x, *args, **kw)
            return dx
        return cenote.jvp(self._function, x, dx, *args, **kw)[1]

    def vjp(self, x: Any, gy: Any, *args: Any, **kw: Any) -> Any:
        """The cotangent of x for a cotangent gy of the result."""
        if _rank(x) == 1:
            self._function(x, *args, **kw)
            return gy
        return cenote.vjp(self._function, x, *args, **kw)[1](gy)

    def __repr__(self) -> str:
        return f"cenote.compat.torchlean.{self.__name__}"


def _rank(x: Any) -> int:
    return len(x.shape) if hasattr(x, "shape") else np.ndim(x)


def _window(who: str, x: Any, kernel: Sequence[int]) -> "tuple[int, ...]":
    window = tuple(kernel)
    if len(window) != _rank(x) - 1:
        raise ValueError(f"[{who}] kernel = {window}: must have one extent per axis of x after its channels")
    return window


@Pooling
def max_pool(x: Any, kernel: Sequence[int], stride: Extents = 1, padding: Extents = 0) -> Any:
    """The largest cell of each window, channel by channel; padding is ignored, ties go to the first."""
    window = _window("max_pool", x, kernel)
    return cenote.max_pool(x, window, stride=stride, padding=padding) if window else x


@Pooling
def avg_pool(x: Any, kernel: Sequence[int], stride: Extents = 1, padding: Extents = 0) -> Any:
    """The sum of each window divided by all its cells, padded ones counted."""
    window = _window("avg_pool", x, kernel)
    return cenote.avg_pool(x, window, stride=stride, padding=padding) if window else x


@Pooling
def smooth_max_pool(x: Any, kernel: Sequence[int], beta: float, stride: Extents = 1, padding: Extents = 0) -> Any:
    """log(sum(exp(beta * x))) / beta of each window; padded cells are zeros that count."""
    return cenote.smooth_max_pool(x, _window("smooth_max_pool", x, kernel), beta, stride=stride, padding=padding)


def _two(who: str, x: Any, kernel: Sequence[int]) -> "tuple[int, ...]":
    if _rank(x) != 3 or len(kernel) != 2:
        raise ValueError(f"[{who}] x must have rank 3 and the kernel two extents: got {_rank(x)} and {tuple(kernel)}")
    return tuple(kernel)


@Pooling
def max_pool2d(x: Any, kernel: Sequence[int], stride: int) -> Any:
    """max_pool of one image, with one stride."""
    return cenote.max_pool(x, _two("max_pool2d", x, kernel), stride=stride)


@Pooling
def max_pool2d_pad(x: Any, kernel: Sequence[int], stride: int, padding: int) -> Any:
    """max_pool of one image, with one stride and one padding."""
    return cenote.max_pool(x, _two("max_pool2d_pad", x, kernel), stride=stride, padding=padding)


@Pooling
def avg_pool2d(x: Any, kernel: Sequence[int], stride: int) -> Any:
    """avg_pool of one image, with one stride."""
    return cenote.avg_pool(x, _two("avg_pool2d", x, kernel), stride=stride)


@Pooling
def avg_pool2d_pad(x: Any, kernel: Sequence[int], stride: int, padding: int) -> Any:
    """avg_pool of one image, with one stride and one padding."""
    return cenote.avg_pool(x, _two("avg_pool2d_pad", x, kernel), stride=stride, padding=padding)


@Pooling
def smooth_max_pool2d(x: Any, kernel: Sequence[int], stride: int, beta: float) -> Any:
    """smooth_max_pool of one image, with one stride."""
    return cenote.smooth_max_pool(x, _two("smooth_max_pool2d", x, kernel), beta, stride=stride)
