"""Pooling at memory speed: differentiable window reductions of dense arrays and sparse tensors."""

from cenote._core import Plan, set_threads, threads

__all__ = ["Plan", "set_threads", "threads"]
