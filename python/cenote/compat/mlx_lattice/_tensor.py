"""mlx-lattice's SparseTensor: it has batch counts only where they were given."""

from typing import Any, Optional

from cenote import sparse
from cenote._typing import PerAxis


class SparseTensor(sparse.SparseTensor):
    """Features on lattice points. Global pooling needs ``batch_counts``.

    >>> import numpy as np
    >>> from cenote.compat.mlx_lattice import SparseTensor
    >>> x = SparseTensor(np.array([[0, 0, 0, 0]], np.int32), np.ones((1, 2), np.float32))
    >>> x.batch_counts is None
    True
    """

    def __init__(
        self,
        coords: Any,
        feats: Any,
        stride: PerAxis = 1,
        *,
        batch_counts: Any = None,
        active_rows: Optional[int] = None,
    ) -> None:
        super().__init__(coords, feats, stride=stride, batch_counts=batch_counts, active_rows=active_rows)
        self._counted = batch_counts is not None

    @property
    def batch_counts(self) -> Any:
        return super().batch_counts if self._counted else None
