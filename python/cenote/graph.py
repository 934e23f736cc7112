"""Graphs, after TorchLean: built once from shapes, compiled, and run many times in both derivative modes.

>>> import cenote, numpy as np
>>> builder = cenote.graph.Builder()
>>> x = builder.input((1, 4), "f64")
>>> y = cenote.max_pool(x, (2,), stride=2) + builder.constant(np.array([[1.0, 2.0]]))
>>> program = builder.compile([y])
>>> program.forward([np.array([[1.0, 5.0, 2.0, 4.0]])])
[array([[6., 6.]])]
>>> program.vjp([np.array([[1.0, 5.0, 2.0, 4.0]])], [np.array([[1.0, 10.0]])])[1]
[array([[ 0.,  1.,  0., 10.]])]
"""

from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import cenote
from cenote import _core
from cenote._core import Program, Var
from cenote._core import var_add as add
from cenote._core import var_detach as detach
from cenote._core import var_div as div
from cenote._core import var_exp as exp
from cenote._core import var_log as log
from cenote._core import var_mean as mean
from cenote._core import var_mul as mul
from cenote._core import var_neg as neg
from cenote._core import var_relu as relu
from cenote._core import var_reshape as reshape
from cenote._core import var_scale as scale
from cenote._core import var_sub as sub
from cenote._core import var_sum as sum

__all__ = [
    "Builder",
    "Program",
    "UserNode",
    "Var",
    "add",
    "avg_pool2d",
    "avg_pool2d_pad",
    "detach",
    "div",
    "exp",
    "gather",
    "log",
    "max_pool2d",
    "max_pool2d_pad",
    "mean",
    "mul",
    "neg",
    "relu",
    "reshape",
    "scale",
    "smooth_max_pool2d",
    "sub",
    "sum",
]

Signature = Tuple[Tuple[int, ...], Any]


@dataclass(frozen=True)
class UserNode:
    """A node of a graph that a caller defines, with Python functions on NumPy arrays.

    ``forward(*inputs)`` returns the output, or a tuple of them. ``shape(*signatures)`` returns the (shape, dtype) of
    the output, or a list of such pairs; without it that of the first input. ``jvp(inputs, tangents)`` returns the
    tangents of the outputs, and ``vjp(inputs, cotangents)`` the cotangents of the inputs. A graph that needs one that
    is missing is refused with NotImplementedError.

    >>> import cenote, numpy as np
    >>> square = cenote.graph.UserNode(
    ...     "square",
    ...     forward=lambda x: x * x,
    ...     jvp=lambda inputs, tangents: 2 * inputs[0] * tangents[0],
    ...     vjp=lambda inputs, cotangents: 2 * inputs[0] * cotangents[0],
    ... )
    >>> builder = cenote.graph.Builder()
    >>> (y,) = builder.call(square, [builder.input((2,), "f64")])
    >>> builder.compile([y]).jvp([[3.0, 4.0]], [[1.0, 1.0]])
    ([array([ 9., 16.])], [array([6., 8.])])
    """

    name: str
    forward: Callable[..., Any]
    shape: Optional[Callable[..., Union[Signature, List[Signature]]]] = None
    jvp: Optional[Callable[[List[Any], List[Any]], Any]] = None
    vjp: Optional[Callable[[List[Any], List[Any]], Any]] = None


class Builder(_core.Builder):
    """Appends nodes, and checks types and shapes as they come.

    The poolings of this package, and the functions of this module, take the variables that it gives.

    >>> import cenote
    >>> builder = cenote.graph.Builder()
    >>> cenote.avg_pool(builder.input((3, 8, 8)), (2, 2), stride=2)
    Var(f32, (3, 4, 4))
    """

    def call(self, node: UserNode, inputs: Sequence[Var]) -> List[Var]:
        """The outputs of a node of the caller's own."""
        if not isinstance(node, UserNode):
            raise TypeError(f"[call] node = {node!r}: must be a UserNode")
        return self.add_node(node.name, node.shape, node.forward, node.jvp, node.vjp, inputs)


def gather(
    x: Var,
    indices: Var,
    *,
    rank: Optional[int] = None,
    channels_last: bool = False,
    axes: Union[None, int, Sequence[int]] = None,
) -> Var:
    """The elements of x at plane indices, shaped as the indices.

    >>> import cenote, numpy as np
    >>> builder = cenote.graph.Builder()
    >>> x = builder.input((1, 1, 4), "f64")
    >>> y = cenote.graph.gather(x, builder.constant(np.array([[[3, 0]]])))
    >>> builder.compile([y]).forward([[[[1.0, 5.0, 2.0, 4.0]]]])
    [array([[[4., 1.]]])]
    """
    return _core.var_gather(x, indices, rank, channels_last, axes)


def max_pool2d(x: Var, window: Sequence[int], stride: int) -> Any:
    """TorchLean's form: the last two axes, one stride.

    >>> import cenote
    >>> cenote.graph.max_pool2d(cenote.graph.Builder().input((3, 8, 8)), (2, 2), 2)
    Var(f32, (3, 4, 4))
    """
    return cenote.max_pool(x, _two(window), stride=stride)


def max_pool2d_pad(x: Var, window: Sequence[int], stride: int, padding: int) -> Any:
    """TorchLean's form: the last two axes, one stride, one padding.

    >>> import cenote
    >>> cenote.graph.max_pool2d_pad(cenote.graph.Builder().input((3, 8, 8)), (3, 3), 2, 1)
    Var(f32, (3, 4, 4))
    """
    return cenote.max_pool(x, _two(window), stride=stride, padding=padding)


def avg_pool2d(x: Var, window: Sequence[int], stride: int) -> Any:
    """TorchLean's form: the last two axes, one stride.

    >>> import cenote
    >>> cenote.graph.avg_pool2d(cenote.graph.Builder().input((3, 8, 8)), (2, 2), 2)
    Var(f32, (3, 4, 4))
    """
    return cenote.avg_pool(x, _two(window), stride=stride)


def avg_pool2d_pad(x: Var, window: Sequence[int], stride: int, padding: int) -> Any:
    """TorchLean's form: the last two axes, one stride, one padding; padded cells count.

    >>> import cenote
    >>> cenote.graph.avg_pool2d_pad(cenote.graph.Builder().input((3, 8, 8)), (3, 3), 2, 1)
    Var(f32, (3, 4, 4))
    """
    return cenote.avg_pool(x, _two(window), stride=stride, padding=padding)


def smooth_max_pool2d(x: Var, window: Sequence[int], stride: int, beta: float) -> Any:
    """TorchLean's form: the last two axes, one stride.

    >>> import cenote
    >>> cenote.graph.smooth_max_pool2d(cenote.graph.Builder().input((3, 8, 8)), (2, 2), 2, 1.0)
    Var(f32, (3, 4, 4))
    """
    return cenote.smooth_max_pool(x, _two(window), beta, stride=stride)


def _two(window: Sequence[int]) -> Tuple[int, ...]:
    extents = tuple(window) if hasattr(window, "__len__") else (window,)
    if len(extents) != 2:
        raise ValueError(f"[pool2d] window = {window!r}: must have two extents")
    return extents
