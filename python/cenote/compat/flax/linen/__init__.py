"""The same functions under flax.linen's name."""

from cenote.compat.flax import avg_pool, max_pool, min_pool, pool
from cenote.compat.flax.linen import pooling

__all__ = ["avg_pool", "max_pool", "min_pool", "pool", "pooling"]
