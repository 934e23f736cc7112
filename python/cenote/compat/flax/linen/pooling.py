"""The same functions where flax.linen defines them."""

from cenote.compat.flax import avg_pool, max_pool, min_pool, pool

__all__ = ["avg_pool", "max_pool", "min_pool", "pool"]
