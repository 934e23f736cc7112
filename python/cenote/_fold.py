"""The generic pool: a fold of the caller's over windows, called on whole arrays, never once per element."""

import itertools
from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Tuple

import numpy as np

from cenote import _core
from cenote._typing import Array, Axes, Padding, PerAxis

Index = Tuple[slice, ...]
Steps = Iterable[Tuple[Index, Index]]
Reduce = Callable[[Any, Any], Any]


class _Axis(NamedTuple):
    """One pooled axis: its number, and the window of output o at ``o * stride - low + j * dilation``, j < size."""

    number: int
    n: int
    size: int
    stride: int
    dilation: int
    low: int
    out: int

    def taps(self) -> List[Tuple[slice, slice]]:
        """For each tap that meets a real cell: the outputs for which it does, and those cells."""
        result = []
        first = max(0, -((((self.out - 1) * self.stride) - self.low) // self.dilation)) if self.out else self.size
        for j in range(first, min(self.size, (self.n - 1 + self.low) // self.dilation + 1)):
            shift = j * self.dilation - self.low
            begin = max(0, -(shift // self.stride))
            end = min(self.out, (self.n - 1 - shift) // self.stride + 1)
            if begin < end:
                cell = begin * self.stride + shift
                result.append((slice(begin, end), slice(cell, (end - 1) * self.stride + shift + 1, self.stride)))
        return result

    def spans(self) -> Tuple[Any, Any]:
        """The first real cell of each window, and how many there are."""
        start = np.arange(self.out) * self.stride - self.low
        skip = np.where(start < 0, -(start // self.dilation), 0)
        stop = np.minimum(self.size, np.maximum(0, (self.n - 1 - start) // self.dilation + 1))
        return start + skip * self.dilation, np.maximum(stop - skip, 0)


class Fold:
    """A custom pooling but for the array; an operation that jvp and vjp differentiate."""

    def __init__(
        self, init: Any, reduce_fn: Reduce, window: Tuple[Any, ...], associative: bool, partials: Optional[Reduce]
    ) -> None:
        if not callable(reduce_fn):
            raise TypeError(f"[pool] reduce_fn = {reduce_fn!r}: must be a function of two arrays")
        if partials is not None and not callable(partials):
            raise TypeError(f"[pool] partials = {partials!r}: must be a function of two arrays, or None")
        if not isinstance(associative, (bool, np.bool_)):
            raise TypeError(f"[pool] associative = {associative!r}: must be True or False")
        if not _is_number(init):
            raise TypeError(f"[pool] init = {init!r}: must be a number")
        self.init, self.reduce_fn, self.window = init, reduce_fn, window
        self.associative, self.partials = associative, partials

    def __call__(self, x: Array) -> Any:
        cells = _numbers(_read(x))
        shape, axes = self._geometry(cells)
        fn = _on_kind(self.reduce_fn, x)
        if self.associative:
            result = self._fold_axes(fn, cells, shape, axes)
        else:
            result = self._start(cells, shape)
            for box, tap in _steps(cells.ndim, axes):
                _store(result[box], fn(result[box], cells[tap]))
        return self._finish(result, x)

    def jvp(self, x: Array, dx: Array) -> Tuple[Any, Any]:
        fn, partials, cells, shape, axes = self._differentiable(x)
        tangents = _checked("dx", dx, x, cells.shape)
        value, tangent = self._start(cells, shape), np.zeros(shape, cells.dtype)
        for box, tap in _steps(cells.ndim, axes):
            by_left, by_right = partials(value[box], cells[tap])
            tangent[box] = by_left * tangent[box] + by_right * tangents[tap]
            _store(value[box], fn(value[box], cells[tap]))
        return self(x) if self.associative else self._finish(value, x), self._finish(tangent, x)

    def vjp(self, x: Array) -> Tuple[Any, Callable[[Array], Any]]:
        fn, partials, cells, shape, axes = self._differentiable(x)
        value, passed = self._start(cells, shape), []
        for box, tap in _steps(cells.ndim, axes):
            by_left, by_right = partials(value[box], cells[tap])
            passed.append((box, tap, np.array(by_left), np.array(by_right)))
            _store(value[box], fn(value[box], cells[tap]))

        def pullback(gy: Array) -> Any:
            rest = np.array(_checked("gy", gy, x, shape))
            gx = np.zeros_like(cells)
            for box, tap, by_left, by_right in reversed(passed):
                gx[tap] += rest[box] * by_right
                rest[box] *= by_left
            return self._finish(gx, x)

        return self(x) if self.associative else self._finish(value, x), pullback

    def record(self, x: _core.Tensor, constant: Optional[bool]) -> _core.Tensor:
        """The fold of a tensor, which remembers it."""
        if self.partials is None and not (x.constant or constant):
            raise NotImplementedError("[pool] a Tensor that is not constant needs partials(a, b), for its derivatives")
        return _core.tensor_call(x, "pool", self._signature, self, self._pull, constant)

    def append(self, x: _core.Var) -> _core.Var:
        """The fold of a graph's variable, as a node of the graph."""
        pulls = self.partials is not None
        return _core.var_call(
            x, "pool", self._signature, self, self._push if pulls else None, self._pull if pulls else None
        )

    def _signature(self, x: Tuple[Any, Any]) -> Tuple[Any, Any]:
        return _core.window_geometry("pool", x[0], *self.window)[0], x[1]

    def _push(self, inputs: Any, tangents: Any) -> Any:
        return self.jvp(inputs[0], tangents[0])[1]

    def _pull(self, inputs: Any, cotangents: Any) -> Any:
        return self.vjp(inputs[0])[1](cotangents[0])

    def hvp(self, x: Array, gy: Array, v: Array) -> Any:
        raise NotImplementedError("[hvp] pool: partials give derivatives of first order only")

    def _geometry(self, cells: Any) -> Tuple[Tuple[int, ...], List[_Axis]]:
        shape, axes = _core.window_geometry("pool", cells.shape, *self.window)
        return shape, [_Axis(*axis) for axis in axes]

    def _start(self, cells: Any, shape: Tuple[int, ...]) -> Any:
        if cells.dtype.kind in "biu":
            bounds = np.iinfo(cells.dtype) if cells.dtype.kind in "iu" else None
            low, high = (bounds.min, bounds.max) if bounds else (0, 1)
            if not low <= self.init <= high or self.init != int(self.init):
                raise ValueError(f"[pool] init = {self.init!r}: must be a value of {cells.dtype}, the type of x")
        try:
            return np.full(shape, self.init, cells.dtype)
        except OverflowError:
            raise ValueError(f"[pool] init is beyond the range of {cells.dtype}, the type of x") from None

    def _finish(self, numbers: Any, x: Array) -> Any:
        return _core.to_kind(numbers.astype(_read(x).dtype, copy=False), x)

    def _differentiable(self, x: Array) -> Any:
        if self.partials is None:
            raise NotImplementedError(
                "[pool] derivatives need partials(a, b), which returns those of reduce_fn in a and in b"
            )
        cells = _numbers(_read(x))
        if cells.dtype.kind != "f":
            raise ValueError(f"[pool] x has dtype {cells.dtype}: only floating-point types have derivatives")
        given = _on_kind(self.partials, x)

        def partials(a: Any, b: Any) -> Any:
            result = given(a, b)
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise ValueError(f"[pool] partials returned {type(result).__name__}: must be a pair of arrays")
            return result

        return _on_kind(self.reduce_fn, x), partials, cells, *self._geometry(cells)

    def _fold_axes(self, fn: Reduce, cells: Any, shape: Tuple[int, ...], axes: List[_Axis]) -> Any:
        """Innermost axis first, one call per cell of a line instead of one per cell of the window."""
        result = self._start(cells, shape)
        index: List[Any] = [np.arange(n) for n in shape]
        for axis in reversed(axes):
            first, count = axis.spans()
            alive = np.nonzero(count)[0]
            first, count, index[axis.number] = first[alive], count[alive], alive
            line = np.take(cells, first, axis.number)
            for t in range(1, int(count.max(initial=0))):
                chosen = np.nonzero(count > t)[0]
                place = (slice(None),) * axis.number + (chosen,)
                there = np.take(cells, first[chosen] + t * axis.dilation, axis.number)
                value = np.empty_like(there)
                _store(value, fn(line[place], there))
                line[place] = value
            cells = line
        value = np.empty_like(cells)
        _store(value, fn(np.full_like(cells, self.init), cells))
        result[np.ix_(*index)] = value
        return result


def _is_number(value: Any) -> bool:
    if isinstance(value, (int, float)):
        return True
    if isinstance(value, (str, bytes)) or np.ndim(value) != 0 or np.iscomplexobj(value):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _read(x: Array) -> Any:
    """x as an array of NumPy's around the same memory."""
    return _core.to_numpy("pool", "x", x)


def _numbers(x: Any) -> Any:
    """The array in the type that it is computed in: halves as f32."""
    half = x.dtype == np.float16 or x.dtype.name == "bfloat16"
    cells = x.astype(np.float32) if half else x.view()
    cells.flags.writeable = False
    return cells


def _checked(what: str, array: Array, x: Array, shape: Tuple[int, ...]) -> Any:
    dtype, given = _read(x).dtype, _core.to_numpy("pool", what, array)
    if not hasattr(array, "shape"):
        given = given.astype(dtype)
    if given.shape != tuple(shape) or given.dtype != dtype:
        raise ValueError(f"[pool] {what} has dtype {given.dtype} and shape {given.shape}: must be {dtype} {shape}")
    return _numbers(given)


def taps(shape: Tuple[int, ...], **window: Any) -> Tuple[Tuple[int, ...], Steps]:
    """The shape of a pooling's result, and its taps in row-major order, as (outputs, cells)."""
    defaults = dict(stride=1, padding="valid", dilation=1, channels_last=False, ceil=False, exact=False)
    out, axes = _core.window_geometry("pool", shape, **{**defaults, "allow_empty": False, "axes": None, **window})
    return out, _steps(len(shape), [_Axis(*axis) for axis in axes])


def _steps(rank: int, axes: List[_Axis]) -> Steps:
    """The taps in row-major order, as (outputs, cells)."""

    def place(*taps: Tuple[slice, slice]) -> Tuple[Index, Index]:
        box, tap = [slice(None)] * rank, [slice(None)] * rank
        for axis, (outputs, cells) in zip(axes, taps):
            box[axis.number], tap[axis.number] = outputs, cells
        return tuple(box), tuple(tap)

    return itertools.starmap(place, itertools.product(*(axis.taps() for axis in axes)))


def _store(to: Any, value: Any) -> None:
    value = np.asarray(value)
    if value.shape != to.shape:
        raise ValueError(f"[pool] reduce_fn returned shape {value.shape} for two arrays of shape {to.shape}")
    if not np.can_cast(value.dtype, to.dtype, "same_kind"):
        raise TypeError(f"[pool] reduce_fn returned {value.dtype} for two arrays of {to.dtype}: must be of their kind")
    np.copyto(to, value)


def written(who: str, result: Any, out: Any) -> Any:
    """The result, or ``out`` with the result in it, which must be an array of its type and shape."""
    if out is None:
        return result
    _core.check_output(who, out, tuple(result.shape), result.dtype)
    out[...] = result
    return out


def _on_kind(fn: Reduce, x: Array) -> Reduce:
    """torch's functions want torch's tensors; all others take NumPy's arrays."""
    if not type(x).__module__.startswith("torch"):
        return fn
    import torch  # type: ignore[import-not-found,unused-ignore]

    def on_tensors(a: Any, b: Any) -> Any:
        result = fn(torch.from_numpy(a.copy()), torch.from_numpy(b.copy()))
        return tuple(r.numpy() for r in result) if isinstance(result, tuple) else result.numpy()

    return on_tensors


def pool(
    x: Array,
    init: Any,
    reduce_fn: Reduce,
    window: PerAxis,
    *,
    stride: PerAxis = 1,
    padding: Padding = "valid",
    dilation: PerAxis = 1,
    channels_last: bool = False,
    ceil: bool = False,
    exact: bool = False,
    allow_empty: bool = False,
    axes: Axes = None,
    associative: bool = False,
    partials: Optional[Reduce] = None,
    out: Any = None,
    constant: Optional[bool] = None,
) -> Any:
    """Folds the cells of each window by a function of yours, ``reduce_fn(a, b)``, beginning with ``init``.

    Cells are taken in row-major order, and padding is skipped; a window without a cell gives ``init``. The function is
    called on whole arrays: ``a`` holds what was folded so far, ``b`` the next cell of each window. Halves are computed
    in f32 and rounded once. With ``associative`` neighbours may be combined first, which takes fewer calls. For
    derivatives give ``partials(a, b)``, which returns those of ``reduce_fn`` in a and in b. The windows are those of
    :func:`cenote.max_pool`. Of a graph's variable the fold is a node, which calls the functions when a program runs.

    >>> import cenote, numpy as np
    >>> cenote.pool(np.arange(10), 1, np.multiply, (2,))
    array([ 0,  2,  6, 12, 20, 30, 42, 56, 72])
    """
    arguments = (window, stride, padding, dilation, channels_last, ceil, exact, allow_empty, axes)
    fold = Fold(init, reduce_fn, arguments, associative, partials)
    if out is not None and isinstance(x, (_core.Probe, _core.Var, _core.Tensor)):
        raise ValueError("[pool] out: only results of arrays are written into it")
    if isinstance(x, _core.Probe):
        return fold
    if isinstance(x, _core.Tensor):
        return fold.record(x, constant)
    if constant is not None:
        raise TypeError("[pool] constant: only a cenote.Tensor takes it")
    if isinstance(x, _core.Var):
        return fold.append(x)
    result = fold(x if hasattr(x, "shape") else _read(x))
    return written("pool", result, out)
