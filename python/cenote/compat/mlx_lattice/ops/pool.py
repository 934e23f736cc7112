"""mlx-lattice's pooling operations. A maximum shares its derivative among equal rows, as there.

>>> import numpy as np
>>> from cenote.compat.mlx_lattice import SparseTensor, ops
>>> x = SparseTensor(np.array([[0, i, 0, 0] for i in range(4)], np.int32), np.array([[1.0], [2], [3], [4]], np.float32))
>>> ops.pool.sum_pool3d(x).feats.tolist()
[[3.0], [7.0]]
"""

from typing import Any

from cenote import _core, sparse
from cenote._typing import PerAxis

__all__ = [
    "avg_pool3d",
    "global_avg_pool",
    "global_max_pool",
    "global_sum_pool",
    "max_pool3d",
    "pool3d",
    "sum_pool3d",
]


def pool3d(
    x: Any,
    *,
    mode: str = "sum",
    kernel_size: PerAxis = 2,
    stride: PerAxis = 2,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
) -> Any:
    """Local sparse pooling in three dimensions with mode sum, max or avg."""
    if mode not in ("sum", "max", "avg"):
        raise ValueError(f"[pool3d] mode = {mode!r}: must be 'sum', 'max' or 'avg'")
    if getattr(x, "dimension", 3) != 3:
        raise ValueError(f"[pool3d] x of lattice dimension {x.dimension}: must be 3")
    ties = _ties(mode)
    return sparse.pool(
        x, mode=mode, kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation, ties=ties
    )


def sum_pool3d(
    x: Any, *, kernel_size: PerAxis = 2, stride: PerAxis = 2, padding: PerAxis = 0, dilation: PerAxis = 1
) -> Any:
    """Local sparse sum pooling."""
    return pool3d(x, mode="sum", kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)


def avg_pool3d(
    x: Any, *, kernel_size: PerAxis = 2, stride: PerAxis = 2, padding: PerAxis = 0, dilation: PerAxis = 1
) -> Any:
    """Local sparse average pooling, over the rows that contribute."""
    return pool3d(x, mode="avg", kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)


def max_pool3d(
    x: Any, *, kernel_size: PerAxis = 2, stride: PerAxis = 2, padding: PerAxis = 0, dilation: PerAxis = 1
) -> Any:
    """Local sparse max pooling; every output row needs a contributing row."""
    return pool3d(x, mode="max", kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)


def _ties(mode: str) -> str:
    return "split" if mode == "max" else "first"


def _global(x: Any, mode: str) -> Any:
    tensor: Any = x.value if isinstance(x, _core.Probe) else x
    if getattr(tensor, "batch_counts", 0) is None:
        raise ValueError(f"[global_{mode}_pool] x has no batch_counts: global pooling needs them")
    return sparse.global_pool(x, mode=mode, ties=_ties(mode))


def global_sum_pool(x: Any) -> Any:
    """The sum of each batch, (B, C)."""
    return _global(x, "sum")


def global_avg_pool(x: Any) -> Any:
    """The average of each batch, (B, C); empty batches are zero."""
    return _global(x, "avg")


def global_max_pool(x: Any) -> Any:
    """The maximum of each batch, (B, C); empty batches are refused."""
    return _global(x, "max")
