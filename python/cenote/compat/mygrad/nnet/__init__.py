"""mygrad.nnet, as far as pooling goes."""

from cenote.compat.mygrad.nnet import layers
from cenote.compat.mygrad.nnet.layers import max_pool

__all__ = ["layers", "max_pool"]
