"""mlx-lattice's sparse pooling: SparseTensor, ``ops.pool`` and ``nn``, on NumPy's arrays or any with DLPack."""

from cenote.compat.mlx_lattice import nn, ops
from cenote.compat.mlx_lattice._tensor import SparseTensor

__all__ = ["SparseTensor", "nn", "ops"]
