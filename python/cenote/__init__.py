"""Pooling at memory speed: differentiable window reductions of dense arrays and sparse tensors."""

from cenote._core import InvalidBackprop, Plan, Pullback, set_threads, simd_target, threads, version
from cenote._dense import (
    adaptive_avg_pool,
    adaptive_max_pool,
    avg_pool,
    global_avg_pool,
    global_max_pool,
    global_min_pool,
    global_sum_pool,
    lp_pool,
    max_pool,
    min_pool,
    smooth_max_pool,
    sum_pool,
)
from cenote._derivatives import explain, hvp, jvp, max_unpool, plan, vjp
from cenote._fold import pool
from cenote.tensor import Tensor, no_autodiff

# After the functions above, which the modules are made of.
from cenote import graph, nn, sparse, tensor  # noqa: E402  isort: skip

__version__: str = version()

__all__ = [
    "InvalidBackprop",
    "Plan",
    "Pullback",
    "Tensor",
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "avg_pool",
    "explain",
    "global_avg_pool",
    "global_max_pool",
    "global_min_pool",
    "global_sum_pool",
    "graph",
    "hvp",
    "jvp",
    "lp_pool",
    "max_pool",
    "max_unpool",
    "min_pool",
    "nn",
    "no_autodiff",
    "plan",
    "pool",
    "set_threads",
    "simd_target",
    "smooth_max_pool",
    "sparse",
    "sum_pool",
    "tensor",
    "threads",
    "vjp",
]
