"""mlx-lattice's pooling modules.

>>> from cenote.compat.mlx_lattice import nn
>>> nn.MaxPool3d(kernel_size=3, stride=1)
MaxPool3d(kernel_size=3, stride=1)
"""

from cenote.compat.mlx_lattice.ops import pool
from cenote.nn import Module

__all__ = ["AvgPool3d", "GlobalAvgPool", "GlobalMaxPool", "GlobalSumPool", "MaxPool3d", "Pool3d", "SumPool3d"]


class Pool3d(Module):
    """pool3d with its options."""

    _function = staticmethod(pool.pool3d)


class SumPool3d(Module):
    """sum_pool3d with its options."""

    _function = staticmethod(pool.sum_pool3d)


class AvgPool3d(Module):
    """avg_pool3d with its options."""

    _function = staticmethod(pool.avg_pool3d)


class MaxPool3d(Module):
    """max_pool3d with its options."""

    _function = staticmethod(pool.max_pool3d)


class GlobalSumPool(Module):
    """global_sum_pool as a module."""

    _function = staticmethod(pool.global_sum_pool)


class GlobalAvgPool(Module):
    """global_avg_pool as a module."""

    _function = staticmethod(pool.global_avg_pool)


class GlobalMaxPool(Module):
    """global_max_pool as a module."""

    _function = staticmethod(pool.global_max_pool)
