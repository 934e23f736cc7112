"""mygrad's module of this name: the tensor."""

from cenote.tensor import Tensor

__all__ = ["Tensor"]
