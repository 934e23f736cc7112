"""Names for the types of arguments."""

from typing import Any, Optional, Sequence, Tuple, Union

#: An array of NumPy, of anything with DLPack, a list or a number. Results are of the same kind.
Array = Any
#: One integer for every axis, or one per axis.
PerAxis = Union[int, Sequence[int]]
#: A rule by name, one integer for every side, or an entry per axis: both sides, or (low, high).
Padding = Union[str, int, Sequence[Union[int, Tuple[int, int]]]]
Axes = Optional[PerAxis]
