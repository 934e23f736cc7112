"""Operations on sparse tensors."""

from cenote.compat.mlx_lattice.ops import pool

__all__ = ["pool"]
