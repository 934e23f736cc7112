"""Poolings of dense arrays: signatures and documentation; the work is done by the C++ library."""

from typing import Any, Optional, Sequence, Union

from cenote import _core
from cenote._typing import Array, Axes, Padding, PerAxis

_MAX, _MIN = _core.Reducer.max, _core.Reducer.min
_SUM, _AVG = _core.Reducer.sum, _core.Reducer.avg
_SMOOTH_MAX, _LP = _core.Reducer.smooth_max, _core.Reducer.lp


def max_pool(
    x: Array,
    window: PerAxis,
    *,
    stride: PerAxis = 1,
    padding: Padding = "valid",
    dilation: PerAxis = 1,
    channels_last: bool = False,
    ceil: bool = False,
    exact: bool = False,
    allow_empty: bool = False,
    axes: Axes = None,
    ties: str = "first",
    return_indices: bool = False,
    index_kind: str = "plane",
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """The largest element of each window; NaN wins, and of equal values the first.

    The pooled axes are the last ``len(window)``, those before the last one with ``channels_last``, or ``axes``.
    ``padding`` is "valid", "same", "same_lower", an integer or a sequence of integers and (low, high) pairs; padded
    cells never win. ``ceil`` adds a window where a remainder is left, ``exact`` makes a remainder an error, and
    ``allow_empty`` gives an axis of size 0 where a window does not fit. ``ties`` says who gets the derivative of equal
    values, "first" or "split". With ``return_indices`` the result is (values, indices), counted as ``index_kind``
    says: "offset", "plane", "tensor" or "tensor_column". ``out`` is an array to write into. ``constant`` is for a
    :class:`cenote.Tensor`.

    >>> import cenote
    >>> cenote.max_pool([[0, 10, 8], [2, 7, 3], [5, 7, 20]], (2, 2))
    array([[10, 10],
           [ 7, 20]])
    >>> cenote.max_pool([1.0, 5.0, 2.0, 4.0], (2,), stride=2, return_indices=True)
    (array([5., 4.]), array([1, 3]))
    """
    return _core.window_pool(
        _MAX, x, window, stride, padding, dilation, channels_last, ceil, exact, allow_empty, axes,
        ties, (return_indices, index_kind), out, constant,
    )  # fmt: skip


def min_pool(
    x: Array,
    window: PerAxis,
    *,
    stride: PerAxis = 1,
    padding: Padding = "valid",
    dilation: PerAxis = 1,
    channels_last: bool = False,
    ceil: bool = False,
    exact: bool = False,
    allow_empty: bool = False,
    axes: Axes = None,
    ties: str = "first",
    return_indices: bool = False,
    index_kind: str = "plane",
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """The smallest element of each window; NaN wins, and of equal values the first. See :func:`max_pool`.

    >>> import cenote
    >>> cenote.min_pool([[3, 1, 2], [4, 0, 5]], (3,))
    array([[1],
           [0]])
    """
    return _core.window_pool(
        _MIN, x, window, stride, padding, dilation, channels_last, ceil, exact, allow_empty, axes,
        ties, (return_indices, index_kind), out, constant,
    )  # fmt: skip


def sum_pool(
    x: Array,
    window: PerAxis,
    *,
    stride: PerAxis = 1,
    padding: Padding = "valid",
    dilation: PerAxis = 1,
    channels_last: bool = False,
    ceil: bool = False,
    exact: bool = False,
    allow_empty: bool = False,
    axes: Axes = None,
    dtype: Any = None,
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """The sum of each window. Integers wrap in their own type unless ``dtype`` is a wider one. See :func:`max_pool`.

    >>> import cenote, numpy as np
    >>> x = np.array([200, 100, 50], dtype=np.uint8)
    >>> cenote.sum_pool(x, (2,))
    array([ 44, 150], dtype=uint8)
    >>> cenote.sum_pool(x, (2,), dtype="u32")
    array([300, 150], dtype=uint32)
    """
    return _core.window_pool(
        _SUM, x, window, stride, padding, dilation, channels_last, ceil, exact, allow_empty, axes,
        dtype, None, out, constant,
    )  # fmt: skip


def avg_pool(
    x: Array,
    window: PerAxis,
    *,
    stride: PerAxis = 1,
    padding: Padding = "valid",
    dilation: PerAxis = 1,
    channels_last: bool = False,
    ceil: bool = False,
    exact: bool = False,
    allow_empty: bool = False,
    axes: Axes = None,
    divisor: Union[str, float] = "window",
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """The sum of each window divided by ``divisor``. See :func:`max_pool`.

    "window" divides by all cells of the window, "valid" by those that are not padding, "clipped" by those inside the
    padded array, so that the overhang of ``ceil`` does not count; or give a number.

    >>> import cenote
    >>> cenote.avg_pool([1.0, 2.0, 3.0, 4.0], (3,), stride=2, padding=1, ceil=True)
    array([1.        , 3.        , 1.33333333])
    >>> cenote.avg_pool([1.0, 2.0, 3.0, 4.0], (3,), stride=2, padding=1, ceil=True, divisor="clipped")
    array([1., 3., 2.])
    """
    return _core.window_pool(
        _AVG, x, window, stride, padding, dilation, channels_last, ceil, exact, allow_empty, axes,
        divisor, None, out, constant,
    )  # fmt: skip


def smooth_max_pool(
    x: Array,
    window: PerAxis,
    beta: float,
    *,
    stride: PerAxis = 1,
    padding: Padding = "valid",
    dilation: PerAxis = 1,
    channels_last: bool = False,
    ceil: bool = False,
    exact: bool = False,
    allow_empty: bool = False,
    axes: Axes = None,
    pad: str = "zero",
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """``log(sum(exp(beta * x))) / beta`` of each window, without overflow. See :func:`max_pool`.

    A negative ``beta`` gives a smooth minimum. Padded cells are zeros that count, or nothing: ``pad`` is "zero" or
    "ignore".

    >>> import cenote
    >>> cenote.smooth_max_pool([1.0, 2.0, 3.0], (3,), 10.0)
    array([3.00000454])
    """
    return _core.window_pool(
        _SMOOTH_MAX, x, window, stride, padding, dilation, channels_last, ceil, exact, allow_empty, axes,
        beta, pad, out, constant,
    )  # fmt: skip


def lp_pool(
    x: Array,
    window: PerAxis,
    p: float,
    *,
    stride: PerAxis = 1,
    padding: Padding = "valid",
    dilation: PerAxis = 1,
    channels_last: bool = False,
    ceil: bool = False,
    exact: bool = False,
    allow_empty: bool = False,
    axes: Axes = None,
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """``sum(abs(x)**p)**(1/p)`` of each window, without overflow; p is at least 1, and may be infinite.

    See :func:`max_pool`.

    >>> import cenote
    >>> cenote.lp_pool([3.0, 4.0, 0.0], (2,), 2)
    array([5., 4.])
    """
    return _core.window_pool(
        _LP, x, window, stride, padding, dilation, channels_last, ceil, exact, allow_empty, axes,
        p, None, out, constant,
    )  # fmt: skip


def adaptive_max_pool(
    x: Array,
    output: Union[int, Sequence[Optional[int]]],
    *,
    channels_last: bool = False,
    axes: Axes = None,
    ties: str = "first",
    return_indices: bool = False,
    index_kind: str = "plane",
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """The largest element of each bin, where there are as many bins as ``output`` says; None keeps an axis.

    >>> import cenote
    >>> cenote.adaptive_max_pool([1, 2, 3, 4, 5], (3,))
    array([2, 4, 5])
    """
    return _core.adaptive_pool(_MAX, x, output, channels_last, axes, ties, (return_indices, index_kind), out, constant)


def adaptive_avg_pool(
    x: Array,
    output: Union[int, Sequence[Optional[int]]],
    *,
    channels_last: bool = False,
    axes: Axes = None,
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """The average of each bin, where there are as many bins as ``output`` says; None keeps an axis.

    >>> import cenote
    >>> cenote.adaptive_avg_pool([1.0, 2.0, 3.0, 4.0, 5.0], (3,))
    array([1.5, 3. , 4.5])
    """
    return _core.adaptive_pool(_AVG, x, output, channels_last, axes, "window", None, out, constant)


def global_max_pool(
    x: Array,
    *,
    rank: Optional[int] = None,
    channels_last: bool = False,
    axes: Axes = None,
    keepdims: bool = True,
    ties: str = "first",
    return_indices: bool = False,
    index_kind: str = "plane",
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """The largest element over whole axes: those after the first two, the last ``rank``, or ``axes``.

    With ``channels_last`` all between the first and the last are pooled. Pooled axes stay with size 1, or are dropped
    without ``keepdims``.

    >>> import cenote
    >>> cenote.global_max_pool([[[1, 2], [3, 4]]])
    array([[[2],
            [4]]])
    """
    return _core.global_pool(_MAX, x, rank, channels_last, axes, keepdims, ties, (return_indices, index_kind), out, constant)


def global_min_pool(
    x: Array,
    *,
    rank: Optional[int] = None,
    channels_last: bool = False,
    axes: Axes = None,
    keepdims: bool = True,
    ties: str = "first",
    return_indices: bool = False,
    index_kind: str = "plane",
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """The smallest element over whole axes. See :func:`global_max_pool`.

    >>> import cenote
    >>> cenote.global_min_pool([[[1, 2], [3, 4]]], keepdims=False)
    array([[1, 3]])
    """
    return _core.global_pool(_MIN, x, rank, channels_last, axes, keepdims, ties, (return_indices, index_kind), out, constant)


def global_sum_pool(
    x: Array,
    *,
    rank: Optional[int] = None,
    channels_last: bool = False,
    axes: Axes = None,
    keepdims: bool = True,
    dtype: Any = None,
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """The sum over whole axes. See :func:`global_max_pool` and :func:`sum_pool`.

    >>> import cenote
    >>> cenote.global_sum_pool([1.0, 2.0, 3.5], rank=1)
    array([6.5])
    """
    return _core.global_pool(_SUM, x, rank, channels_last, axes, keepdims, dtype, None, out, constant)


def global_avg_pool(
    x: Array,
    *,
    rank: Optional[int] = None,
    channels_last: bool = False,
    axes: Axes = None,
    keepdims: bool = True,
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """The average over whole axes. See :func:`global_max_pool`.

    >>> import cenote
    >>> cenote.global_avg_pool([1.0, 2.0, 3.0], rank=1, keepdims=False)
    array(2.)
    """
    return _core.global_pool(_AVG, x, rank, channels_last, axes, keepdims, "window", None, out, constant)
