"""Sparse pooling: features on the points of a lattice, in any number of dimensions from 1 to 6."""

from typing import Any, Optional, Sequence, Union

from cenote import _core
from cenote._core import Relation, SparseTensor
from cenote._typing import Array, PerAxis

__all__ = [
    "Relation",
    "SparseTensor",
    "avg_pool3d",
    "global_avg_pool",
    "global_max_pool",
    "global_min_pool",
    "global_pool",
    "global_sum_pool",
    "max_pool3d",
    "pool",
    "pool3d",
    "pool_transpose",
    "relate",
    "relate_transposed",
    "sum_pool3d",
    "upsample",
]

Rows = Union[SparseTensor, Array]


def _reducer(who: str, mode: str) -> _core.Reducer:
    try:
        return _core.Reducer[mode]
    except (KeyError, TypeError):
        names = ", ".join(f'"{reducer.name}"' for reducer in _core.Reducer)
        raise ValueError(f"[{who}] mode = {mode!r}: must be one of {names}") from None


def _load_tensor(*state: Any) -> SparseTensor:
    return _core.sparse_tensor(*state)


def _load_relation(*state: Any) -> Relation:
    return _core.load_relation(*state)


def relate(
    x: Rows,
    *,
    kernel_size: PerAxis = 2,
    stride: PerAxis = 2,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    policy: str = "lattice",
    extent: Optional[Sequence[int]] = None,
    targets: Optional[Rows] = None,
    order: Optional[str] = None,
    engine: str = "automatic",
) -> Relation:
    """Which rows of x feed which rows of a pooling of it; x is a SparseTensor, or rows of coordinates.

    ``policy`` says which outputs exist: "lattice", those of mlx-lattice; "dense", those whose window holds an input, in
    an array of size ``extent`` if given; "minkowski", those of MinkowskiEngine. With ``targets`` the output rows are
    those. ``order`` is "first_seen" or "sorted", ``engine`` "automatic", "sorted" or "hashed": the result is the same.

    >>> import numpy as np
    >>> from cenote import sparse
    >>> r = sparse.relate(np.array([[0, 0], [0, 1], [0, 2]]), kernel_size=3, stride=1)
    >>> r
    Relation(inputs=3, outputs=3, edges=7, volume=3)
    >>> r.in_row.tolist(), r.out_row.tolist(), r.kernel_id.tolist()
    ([0, 1, 0, 1, 2, 1, 2], [0, 0, 1, 1, 1, 2, 2], [1, 2, 0, 1, 2, 0, 1])
    """
    return _core.relate(x, kernel_size, stride, padding, dilation, policy, extent, targets, order, engine)


def relate_transposed(
    x: Rows,
    *,
    kernel_size: PerAxis = 2,
    stride: PerAxis = 2,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    targets: Optional[Rows] = None,
) -> Relation:
    """The relation of a transposed pooling: row c feeds ``c * stride + j * dilation - padding``, j below the size.

    >>> import numpy as np
    >>> from cenote import sparse
    >>> sparse.relate_transposed(np.array([[0, 3]])).coords.tolist()
    [[0, 6], [0, 7]]
    """
    return _core.relate_transposed(x, kernel_size, stride, padding, dilation, targets)


def pool(
    x: SparseTensor,
    *,
    mode: str = "sum",
    kernel_size: PerAxis = 2,
    stride: PerAxis = 2,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    policy: str = "lattice",
    extent: Optional[Sequence[int]] = None,
    targets: Optional[Rows] = None,
    order: Optional[str] = None,
    relation: Optional[Relation] = None,
    divisor: Union[str, float] = "count",
    beta: float = 1.0,
    p: float = 2.0,
    ties: str = "first",
    empty: str = "reject",
    return_rows: bool = False,
) -> Any:
    """Reduces the rows in each window of x to one: "sum", "avg", "max", "min", "smooth_max" or "lp".

    The windows are those of :func:`relate`, or of a ``relation`` that it made. ``divisor`` of an average is "count",
    the rows in the window, "volume", the cells of the window, or a number. A max, min or smooth max of no row is an
    error, or with ``empty="identity"`` an infinity. With ``return_rows`` a max or min returns also the row of x that
    each feature came from.

    >>> import numpy as np
    >>> from cenote import sparse
    >>> x = sparse.SparseTensor(np.array([[0, i] for i in range(4)]), np.array([[1.0], [2], [3], [4]]))
    >>> y = sparse.pool(x, mode="max")
    >>> y.coords.tolist(), y.feats.tolist(), y.stride
    ([[0, 0], [0, 1]], [[2.0], [4.0]], (2,))
    """
    return _core.sparse_pool(
        x, _reducer("pool", mode), relation, kernel_size, stride, padding, dilation, policy, extent, targets, order,
        divisor, beta, p, ties, empty, return_rows,
    )  # fmt: skip


def pool_transpose(
    x: SparseTensor,
    *,
    kernel_size: PerAxis = 2,
    stride: PerAxis = 2,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    targets: Optional[Rows] = None,
) -> Any:
    """The average of the rows that reach each point of a finer lattice, or of ``targets``.

    >>> import numpy as np
    >>> from cenote import sparse
    >>> x = sparse.SparseTensor(np.array([[0, 0], [0, 1]]), np.array([[2.0], [6]]), stride=2)
    >>> sparse.pool_transpose(x, kernel_size=3, padding=1, targets=np.array([[0, 0], [0, 1], [0, 2]])).feats.tolist()
    [[2.0], [4.0], [6.0]]
    """
    return _core.sparse_pool_transpose(x, kernel_size, stride, padding, dilation, targets)


def upsample(x: SparseTensor, scale: PerAxis, *, targets: Optional[Rows] = None) -> Any:
    """Multilinear upsampling: a point is the weighted mean of the rows near it.

    >>> import numpy as np
    >>> from cenote import sparse
    >>> x = sparse.SparseTensor(np.array([[0, 0], [0, 1]]), np.array([[2.0], [6]]), stride=2)
    >>> sparse.upsample(x, 2, targets=np.array([[0, 0], [0, 1], [0, 2], [0, 3]])).feats.tolist()
    [[2.0], [4.0], [6.0], [6.0]]
    """
    return _core.sparse_upsample(x, scale, targets)


def global_pool(
    x: SparseTensor, *, mode: str = "sum", beta: float = 1.0, p: float = 2.0, ties: str = "first", empty: str = "reject"
) -> Any:
    """One row per batch, (batches, channels). An empty batch is 0, or for a max, min or smooth max an error.

    >>> import numpy as np
    >>> from cenote import sparse
    >>> x = sparse.SparseTensor(np.array([[0, 0], [0, 1], [1, 5]]), np.array([[1.0], [2], [3]]))
    >>> sparse.global_pool(x, mode="avg")
    array([[1.5],
           [3. ]])
    """
    return _core.sparse_global_pool(x, _reducer("global_pool", mode), beta, p, ties, empty)


def global_sum_pool(x: SparseTensor) -> Any:
    """The sum of the rows of each batch, (batches, channels).

    >>> import numpy as np
    >>> from cenote import sparse
    >>> sparse.global_sum_pool(sparse.SparseTensor(np.array([[0, 0], [0, 1]]), np.array([[1.0], [2]])))
    array([[3.]])
    """
    return global_pool(x, mode="sum")


def global_avg_pool(x: SparseTensor) -> Any:
    """The average of the rows of each batch, (batches, channels).

    >>> import numpy as np
    >>> from cenote import sparse
    >>> sparse.global_avg_pool(sparse.SparseTensor(np.array([[0, 0], [0, 1]]), np.array([[1.0], [2]])))
    array([[1.5]])
    """
    return global_pool(x, mode="avg")


def global_max_pool(x: SparseTensor) -> Any:
    """The largest of the rows of each batch, (batches, channels); an empty batch is an error.

    >>> import numpy as np
    >>> from cenote import sparse
    >>> sparse.global_max_pool(sparse.SparseTensor(np.array([[0, 0], [0, 1]]), np.array([[1.0], [2]])))
    array([[2.]])
    """
    return global_pool(x, mode="max")


def global_min_pool(x: SparseTensor) -> Any:
    """The smallest of the rows of each batch, (batches, channels); an empty batch is an error.

    >>> import numpy as np
    >>> from cenote import sparse
    >>> sparse.global_min_pool(sparse.SparseTensor(np.array([[0, 0], [0, 1]]), np.array([[1.0], [2]])))
    array([[1.]])
    """
    return global_pool(x, mode="min")


def pool3d(
    x: SparseTensor,
    *,
    mode: str = "sum",
    kernel_size: PerAxis = 2,
    stride: PerAxis = 2,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
) -> Any:
    """Local pooling of a tensor of three dimensions, under mlx-lattice's name: "sum", "avg", "max" or "min".

    >>> import numpy as np
    >>> from cenote import sparse
    >>> x = sparse.SparseTensor(np.array([[0, i, 0, 0] for i in range(4)]), np.array([[1.0], [2], [3], [4]]))
    >>> sparse.pool3d(x).feats.tolist()
    [[3.0], [7.0]]
    """
    if getattr(x, "dimension", 3) != 3:
        raise ValueError(f"[{mode}_pool3d] x of lattice dimension {x.dimension}: must be 3; pool takes any dimension")
    return pool(x, mode=mode, kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)


def sum_pool3d(
    x: SparseTensor, *, kernel_size: PerAxis = 2, stride: PerAxis = 2, padding: PerAxis = 0, dilation: PerAxis = 1
) -> Any:
    """The sum of the rows in each window. See :func:`pool3d`.

    >>> import numpy as np
    >>> from cenote import sparse
    >>> x = sparse.SparseTensor(np.array([[0, i, 0, 0] for i in range(4)]), np.array([[1.0], [2], [3], [4]]))
    >>> sparse.sum_pool3d(x, kernel_size=1).feats.tolist()
    [[1.0], [3.0]]
    """
    return pool3d(x, mode="sum", kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)


def avg_pool3d(
    x: SparseTensor, *, kernel_size: PerAxis = 2, stride: PerAxis = 2, padding: PerAxis = 0, dilation: PerAxis = 1
) -> Any:
    """The average of the rows in each window. See :func:`pool3d`.

    >>> import numpy as np
    >>> from cenote import sparse
    >>> x = sparse.SparseTensor(np.array([[0, i, 0, 0] for i in range(4)]), np.array([[1.0], [2], [3], [4]]))
    >>> sparse.avg_pool3d(x).feats.tolist()
    [[1.5], [3.5]]
    """
    return pool3d(x, mode="avg", kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)


def max_pool3d(
    x: SparseTensor, *, kernel_size: PerAxis = 2, stride: PerAxis = 2, padding: PerAxis = 0, dilation: PerAxis = 1
) -> Any:
    """The largest of the rows in each window. See :func:`pool3d`.

    >>> import numpy as np
    >>> from cenote import sparse
    >>> x = sparse.SparseTensor(np.array([[0, i, 0, 0] for i in range(4)]), np.array([[1.0], [2], [3], [4]]))
    >>> sparse.max_pool3d(x).feats.tolist()
    [[2.0], [4.0]]
    """
    return pool3d(x, mode="max", kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation)
