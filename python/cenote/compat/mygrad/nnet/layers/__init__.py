"""mygrad.nnet.layers, as far as pooling goes."""

from cenote.compat.mygrad.nnet.layers import pooling
from cenote.compat.mygrad.nnet.layers.pooling import max_pool

__all__ = ["max_pool", "pooling"]
