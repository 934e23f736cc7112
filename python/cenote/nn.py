"""Modules: poolings with their options, to be called on arrays, Tensors or sparse tensors."""

import inspect
from typing import Any, Callable, ClassVar, Dict

import cenote
from cenote import sparse
from cenote.sparse import SparseTensor

__all__ = [
    "AdaptiveAvgPool",
    "AdaptiveMaxPool",
    "AvgPool",
    "AvgPool3d",
    "GlobalAvgPool",
    "GlobalMaxPool",
    "GlobalMinPool",
    "GlobalSumPool",
    "LpPool",
    "MaxPool",
    "MaxPool3d",
    "MinPool",
    "Module",
    "Pool3d",
    "SmoothMaxPool",
    "SumPool",
    "SumPool3d",
]


class Module:
    """A function with its options. Options are those of the function, checked when the module is made."""

    _function: ClassVar[Callable[..., Any]]

    def __init__(self, *args: Any, **options: Any) -> None:
        signature = inspect.signature(type(self)._function)
        bound = signature.bind(None, *args, **options).arguments
        first = next(iter(signature.parameters))
        if "out" in bound or "constant" in bound:
            raise TypeError(f"{type(self).__name__}: out and constant belong to a call, not to a module")
        self.options: Dict[str, Any] = {name: value for name, value in bound.items() if name != first}

    def __call__(self, x: Any) -> Any:
        return type(self)._function(x, **self.options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.options == getattr(other, "options", None)

    def __hash__(self) -> int:
        return hash(repr(self))


class MaxPool(Module):
    """:func:`cenote.max_pool` with its options.

    >>> from cenote import nn
    >>> layer = nn.MaxPool((2,), stride=2)
    >>> layer
    MaxPool(window=(2,), stride=2)
    >>> layer([1, 5, 2, 4])
    array([5, 4])
    """

    _function = staticmethod(cenote.max_pool)


class MinPool(Module):
    """:func:`cenote.min_pool` with its options.

    >>> from cenote import nn
    >>> nn.MinPool((2,))([1, 5, 2])
    array([1, 2])
    """

    _function = staticmethod(cenote.min_pool)


class SumPool(Module):
    """:func:`cenote.sum_pool` with its options.

    >>> from cenote import nn
    >>> nn.SumPool((2,))([1, 5, 2])
    array([6, 7])
    """

    _function = staticmethod(cenote.sum_pool)


class AvgPool(Module):
    """:func:`cenote.avg_pool` with its options.

    >>> from cenote import nn
    >>> nn.AvgPool((2,), padding="same", divisor="valid")([1.0, 5.0, 2.0])
    array([3. , 3.5, 2. ])
    """

    _function = staticmethod(cenote.avg_pool)


class SmoothMaxPool(Module):
    """:func:`cenote.smooth_max_pool` with its options.

    >>> from cenote import nn
    >>> nn.SmoothMaxPool((3,), beta=10.0)
    SmoothMaxPool(window=(3,), beta=10.0)
    """

    _function = staticmethod(cenote.smooth_max_pool)


class LpPool(Module):
    """:func:`cenote.lp_pool` with its options.

    >>> from cenote import nn
    >>> nn.LpPool((2,), p=2)([3.0, 4.0])
    array([5.])
    """

    _function = staticmethod(cenote.lp_pool)


class AdaptiveMaxPool(Module):
    """:func:`cenote.adaptive_max_pool` with its options.

    >>> from cenote import nn
    >>> nn.AdaptiveMaxPool((3,))([1, 2, 3, 4, 5])
    array([2, 4, 5])
    """

    _function = staticmethod(cenote.adaptive_max_pool)


class AdaptiveAvgPool(Module):
    """:func:`cenote.adaptive_avg_pool` with its options.

    >>> from cenote import nn
    >>> nn.AdaptiveAvgPool((3,))([1.0, 2.0, 3.0, 4.0, 5.0])
    array([1.5, 3. , 4.5])
    """

    _function = staticmethod(cenote.adaptive_avg_pool)


def _either(dense: Callable[..., Any], rows: Callable[..., Any]) -> Callable[..., Any]:
    """The dense function, but the sparse one for a SparseTensor."""

    def function(x: Any, **options: Any) -> Any:
        return rows(x, **options) if isinstance(x, SparseTensor) else dense(x, **options)

    function.__signature__ = inspect.signature(dense)  # type: ignore[attr-defined]
    return function


class GlobalMaxPool(Module):
    """The largest element over whole axes, or of each batch of a SparseTensor.

    >>> from cenote import nn
    >>> nn.GlobalMaxPool(rank=1)([1, 5, 2])
    array([5])
    """

    _function = staticmethod(_either(cenote.global_max_pool, sparse.global_max_pool))


class GlobalMinPool(Module):
    """The smallest element over whole axes, or of each batch of a SparseTensor.

    >>> from cenote import nn
    >>> nn.GlobalMinPool(rank=1)([1, 5, 2])
    array([1])
    """

    _function = staticmethod(_either(cenote.global_min_pool, sparse.global_min_pool))


class GlobalSumPool(Module):
    """The sum over whole axes, or of each batch of a SparseTensor.

    >>> from cenote import nn
    >>> nn.GlobalSumPool(rank=1)([1, 5, 2])
    array([8])
    """

    _function = staticmethod(_either(cenote.global_sum_pool, sparse.global_sum_pool))


class GlobalAvgPool(Module):
    """The average over whole axes, or of each batch of a SparseTensor.

    >>> from cenote import nn
    >>> nn.GlobalAvgPool()
    GlobalAvgPool()
    """

    _function = staticmethod(_either(cenote.global_avg_pool, sparse.global_avg_pool))


class Pool3d(Module):
    """:func:`cenote.sparse.pool3d` with its options.

    >>> from cenote import nn
    >>> nn.Pool3d(mode="max", kernel_size=3)
    Pool3d(mode='max', kernel_size=3)
    """

    _function = staticmethod(sparse.pool3d)


class SumPool3d(Module):
    """:func:`cenote.sparse.sum_pool3d` with its options.

    >>> from cenote import nn
    >>> nn.SumPool3d()
    SumPool3d()
    """

    _function = staticmethod(sparse.sum_pool3d)


class AvgPool3d(Module):
    """:func:`cenote.sparse.avg_pool3d` with its options.

    >>> from cenote import nn
    >>> nn.AvgPool3d(kernel_size=(2, 2, 1))
    AvgPool3d(kernel_size=(2, 2, 1))
    """

    _function = staticmethod(sparse.avg_pool3d)


class MaxPool3d(Module):
    """:func:`cenote.sparse.max_pool3d` with its options.

    >>> from cenote import nn
    >>> nn.MaxPool3d(stride=1)
    MaxPool3d(stride=1)
    """

    _function = staticmethod(sparse.max_pool3d)
