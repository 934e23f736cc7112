#!/usr/bin/env python3
"""Serves the peers that Python has: jax, onnxruntime, scipy and torch. Without arguments lists those that can be imported.

peers.py NAME THREADS CENOTE answers requests on standard input, each with lines of JSON:
  check PROBLEM          does the peer give cenote's numbers?
  time SECONDS PROBLEM   first that it is ready, then how long it takes
  drop                   forgets the last problem's arrays; no answer
CENOTE is the command line: it explains problems (cenote plan --json) and solves small ones for the comparison.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any, Callable, Optional

PACKAGES = {"jax": "jax", "onnxruntime": "onnxruntime", "scipy": "scipy", "torch": "torch"}


class Absent(Exception):
    """The peer has no such operation."""


@dataclass
class Axis:
    axis: int
    cells: int
    window: int
    stride: int
    dilation: int
    padding: tuple[int, int]
    adaptive: bool
    outputs: int


class Problem:
    """What `cenote plan --json` says about a problem."""

    def __init__(self, cenote: str, text: str) -> None:
        done = subprocess.run([cenote, "plan", "--json", text], capture_output=True, text=True, check=True)
        told: dict[str, Any] = json.loads(done.stdout)
        self.text = text
        self.reducer: str = told["reducer"]
        self.type: str = told["type"]
        self.direction: str = told["direction"]
        self.shape: list[int] = told["shape"]
        self.output_type: str = told["output_type"]
        self.output_shape: list[int] = told["output_shape"]
        self.axes = [Axis(**axis) for axis in told["axes"]]
        self.divisor = told["divisor"]
        self.beta: float = told["beta"]
        self.p = math.inf if told["p"] == "inf" else float(told["p"])
        self.pad: str = told["pad"]
        self.ties: str = told["ties"]
        self.indices: bool = told["index_type"] is not None

    def per_axis(self, get: Callable[[Axis], Any], kept: Any) -> list[Any]:
        """One value for every axis of the array: `kept` for those that are not pooled."""
        values = [kept] * len(self.shape)
        for axis in self.axes:
            values[axis.axis] = get(axis)
        return values

    @property
    def taps(self) -> int:
        return math.prod(axis.window for axis in self.axes)

    @property
    def channels_first(self) -> bool:
        return [axis.axis for axis in self.axes] == list(range(2, len(self.shape)))

    def require(self, **allowed: Any) -> None:
        """Absent unless each attribute named has one of the values given."""
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise Absent(f"no {getattr(self, name)}")


def dtype_of(name: str) -> Any:
    import numpy as np

    if name == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype({"f": "float", "i": "int", "u": "uint"}[name[0]] + name[1:]) if name != "bool" else np.dtype(bool)


def noise(type_name: str, shape: list[int], seed: int) -> Any:
    """Floats within (-1, 1), integers of any value."""
    import numpy as np

    random = np.random.default_rng(seed)
    dtype = dtype_of(type_name)
    if type_name[0] in "iu":
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype, endpoint=True)
    if type_name == "bool":
        return random.integers(0, 2, shape).astype(bool)
    return (2 * random.random(shape, np.float64 if type_name == "f64" else np.float32) - 1).astype(dtype)


# Each peer is a function of a problem and its arrays (x, and gy or dx) that returns the work; the work returns the
# result, finished and ready to be read.


def prepare_jax(problem: Problem, x: Any, other: Any, threads: int) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax

    jax.config.update("jax_enable_x64", True)
    if any(axis.adaptive for axis in problem.axes):
        raise Absent("no bins")
    if problem.indices:
        raise Absent("no indices")
    problem.require(ties=["first"], divisor=["window"])
    options = {
        "window_dimensions": problem.per_axis(lambda axis: axis.window, 1),
        "window_strides": problem.per_axis(lambda axis: axis.stride, 1),
        "window_dilation": problem.per_axis(lambda axis: axis.dilation, 1),
        "padding": problem.per_axis(lambda axis: tuple(axis.padding), (0, 0)),
    }

    def reduce(a: Any, initial: Any, operation: Any) -> Any:
        # A constant, by which JAX knows the reduction as one that it can differentiate.
        return lax.reduce_window(a, np.asarray(initial, a.dtype), operation, **options)

    def lowest(a: Any) -> Any:
        return -jnp.inf if jnp.issubdtype(a.dtype, jnp.floating) else jnp.iinfo(a.dtype).min

    def highest(a: Any) -> Any:
        return jnp.inf if jnp.issubdtype(a.dtype, jnp.floating) else jnp.iinfo(a.dtype).max

    def total(a: Any) -> Any:
        return reduce(a, 0, lax.add)

    def halves_in_float(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        # A sum of halves in halves is another result.
        if problem.type not in ("f16", "bf16"):
            return function
        return lambda a: function(a.astype(jnp.float32)).astype(a.dtype)

    # Padded cells are zeros that count in a smooth max.
    outside = sum(axis.padding[0] + axis.padding[1] for axis in problem.axes) > 0
    if problem.reducer == "smooth_max" and outside and problem.pad == "zero":
        raise Absent("not compared: a smooth max with padding")
    functions: dict[str, Callable[[Any], Any]] = {
        "max": lambda a: reduce(a, lowest(a), lax.max),
        "min": lambda a: reduce(a, highest(a), lax.min),
        "sum": halves_in_float(total),
        "avg": halves_in_float(lambda a: total(a) / problem.taps),
        "smooth_max": lambda a: jnp.log(total(jnp.exp(problem.beta * a))) / problem.beta,
        "lp": lambda a: total(jnp.abs(a) ** problem.p) ** (1 / problem.p),
    }
    function = functions[problem.reducer]
    if problem.reducer == "lp" and problem.p == 2:
        function = lambda a: jnp.sqrt(total(a * a))  # noqa: E731
    if problem.reducer == "lp" and math.isinf(problem.p):
        raise Absent("not compared: the largest magnitude")
    x = jax.device_put(x)
    if problem.direction == "forward":
        run = jax.jit(function).lower(x).compile()
        return lambda: run(x).block_until_ready()
    other = jax.device_put(other)
    if problem.direction == "vjp":
        run = jax.jit(lambda a, g: jax.vjp(function, a)[1](g)[0]).lower(x, other).compile()
    else:
        run = jax.jit(lambda a, d: jax.jvp(function, (a,), (d,))[1]).lower(x, other).compile()
    return lambda: run(x, other).block_until_ready()


def prepare_onnxruntime(problem: Problem, x: Any, other: Any, threads: int) -> Callable[[], Any]:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper

    problem.require(direction=["forward"], divisor=["window", "valid"])
    if not problem.channels_first:
        raise Absent("no channels-last pooling")
    types = {"f16": "FLOAT16", "f32": "FLOAT", "f64": "DOUBLE", "i8": "INT8", "u8": "UINT8"}
    if problem.type not in types:
        raise Absent(f"no pooling of {problem.type}")
    names = {"max": "MaxPool", "avg": "AveragePool", "lp": "LpPool"}
    problem.require(reducer=list(names))
    if any(axis.adaptive for axis in problem.axes):
        raise Absent("no bins")
    whole = all(axis.window == axis.cells and axis.outputs == 1 for axis in problem.axes)
    outputs = ["y", "indices"] if problem.indices else ["y"]
    if whole and not problem.indices:
        node = helper.make_node("Global" + names[problem.reducer], ["x"], outputs)
        if problem.reducer == "lp":
            raise Absent("not compared: a norm of everything")
    else:
        options: dict[str, Any] = {
            "kernel_shape": [axis.window for axis in problem.axes],
            "strides": [axis.stride for axis in problem.axes],
            "dilations": [axis.dilation for axis in problem.axes],
            "pads": [axis.padding[0] for axis in problem.axes] + [axis.padding[1] for axis in problem.axes],
        }
        if problem.reducer == "avg":
            options["count_include_pad"] = int(problem.divisor == "window")
        if problem.reducer == "lp":
            options["p"] = int(problem.p)
        node = helper.make_node(names[problem.reducer], ["x"], outputs, **options)
    kind = getattr(TensorProto, types[problem.type])
    made = [helper.make_tensor_value_info("y", kind, problem.output_shape)]
    if problem.indices:
        made.append(helper.make_tensor_value_info("indices", TensorProto.INT64, problem.output_shape))
    graph = helper.make_graph([node], "pool", [helper.make_tensor_value_info("x", kind, problem.shape)], made)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    model.ir_version = 10
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), settings, ["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no common class
        raise Absent(str(error).splitlines()[0]) from error
    # The binding knows addresses alone: the function below keeps the arrays.
    bound = {name: np.empty(problem.output_shape, np.int64 if name == "indices" else x.dtype) for name in outputs}
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    for name, array in bound.items():
        binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)

    def run() -> Any:
        session.run_with_iobinding(binding)
        return bound["y"]

    return run


def prepare_scipy(problem: Problem, x: Any, other: Any, threads: int) -> Callable[[], Any]:
    import numpy as np
    from scipy import ndimage

    problem.require(direction=["forward"], divisor=["window"], reducer=["max", "min", "avg"])
    if problem.type in ("f16", "bf16", "bool"):
        raise Absent(f"no filter of {problem.type}")
    if problem.indices:
        raise Absent("no indices")
    if any(axis.adaptive or axis.stride != 1 or axis.dilation != 1 for axis in problem.axes):
        raise Absent("no stride")
    # A filter has as many outputs as inputs; the windows that lie inside are a part of them.
    starts = problem.per_axis(lambda axis: axis.window // 2 - axis.padding[0], 0)
    if any(start < 0 or start + out > cells for start, out, cells in zip(starts, problem.output_shape, problem.shape)):
        raise Absent("no padding of more than half a window")
    part = tuple(slice(start, start + out) for start, out in zip(starts, problem.output_shape))
    size = problem.per_axis(lambda axis: axis.window, 1)
    y = np.empty(problem.shape, x.dtype)
    if problem.reducer == "avg":

        def run() -> Any:
            ndimage.uniform_filter(x, size, output=y, mode="constant", cval=0)
            return y[part]

        return run
    filter_ = ndimage.maximum_filter if problem.reducer == "max" else ndimage.minimum_filter
    edge: float
    if x.dtype.kind == "f":
        edge = -math.inf if problem.reducer == "max" else math.inf
    else:
        edge = int(np.iinfo(x.dtype).min if problem.reducer == "max" else np.iinfo(x.dtype).max)

    def run_filter() -> Any:
        filter_(x, size, output=y, mode="constant", cval=edge)
        return y[part]

    return run_filter


def prepare_torch(problem: Problem, x: Any, other: Any, threads: int) -> Callable[[], Any]:
    import numpy as np
    import torch

    torch.set_num_threads(threads)
    forward = problem.direction == "forward"
    problem.require(direction=["forward", "vjp"], divisor=["window", "valid"], ties=["first"])
    problem.require(reducer=["max", "avg", "sum", "lp"] if forward else ["max", "avg"])
    if any(axis.padding[0] != axis.padding[1] for axis in problem.axes):
        raise Absent("no padding of one side")
    if any(axis.dilation != 1 for axis in problem.axes) and problem.reducer != "max":
        raise Absent("no dilated averages")
    rank, adaptive = len(problem.axes), any(axis.adaptive for axis in problem.axes)
    if adaptive and (problem.reducer not in ("max", "avg") or not forward):
        raise Absent("not compared: bins")
    channels = [i for i in range(1, len(problem.shape)) if i not in [axis.axis for axis in problem.axes]]
    if len(problem.shape) != rank + 2 or rank > 3 or len(channels) != 1:
        raise Absent("no such axes")

    def tensor(array: Any) -> Any:
        bits = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if problem.type == "bf16" else None
        # Channels are the second axis wherever they lie.
        return (torch.from_numpy(array) if bits is None else bits).movedim(channels[0], 1)

    def array(made: Any) -> Any:
        made = made.movedim(1, channels[0])
        return made.view(torch.int16).numpy().view(x.dtype) if problem.type == "bf16" else made.numpy()

    size, stride, padding, dilation, outputs = (
        [get(axis) for axis in problem.axes]
        for get in (
            lambda axis: axis.window,
            lambda axis: axis.stride,
            lambda axis: axis.padding[0],
            lambda axis: axis.dilation,
            lambda axis: axis.outputs,
        )
    )
    pool = torch.nn.functional
    average = getattr(pool, f"avg_pool{rank}d")
    options: dict[str, Any] = {"count_include_pad": problem.divisor == "window"}
    functions: dict[str, Callable[[Any], Any]] = {
        "max": lambda a: getattr(pool, f"max_pool{rank}d")(
            a, size, stride, padding, dilation, return_indices=problem.indices
        ),
        "avg": lambda a: average(a, size, stride, padding, **options),
        "sum": lambda a: average(a, size, stride, padding) * problem.taps,
        "lp": lambda a: (average(a.abs() ** problem.p, size, stride, padding) * problem.taps) ** (1 / problem.p),
    }
    function = functions[problem.reducer]
    if adaptive:
        name = f"adaptive_{problem.reducer}_pool{rank}d"
        function = lambda a: getattr(pool, name)(a, outputs)  # noqa: E731
    a = tensor(x)
    if forward:

        def run() -> Any:
            with torch.inference_mode():
                made = function(a)
            return array(made[0] if problem.indices else made)

        return run
    a.requires_grad_()
    y, gy = function(a), tensor(other)
    return lambda: array(torch.autograd.grad(y, a, gy, retain_graph=True)[0])


PREPARE = {"jax": prepare_jax, "onnxruntime": prepare_onnxruntime, "scipy": prepare_scipy, "torch": prepare_torch}


def make_ready(name: str, problem: Problem, threads: int) -> Callable[[], Any]:
    x = noise(problem.type, problem.shape, 1)
    return PREPARE[name](problem, x, other_of(problem), threads)


def other_of(problem: Problem) -> Any:
    """A cotangent of y, a tangent of x, or nothing."""
    if problem.direction == "vjp":
        return noise(problem.output_type, problem.output_shape, 2)
    return noise(problem.type, problem.shape, 2) if problem.direction == "jvp" else None


def solve(cenote: str, problem: Problem, x: Any, other: Any) -> Any:
    """cenote's answer, by its command line."""
    import numpy as np

    def several(get: Callable[[Axis], Any]) -> str:
        return ",".join(str(get(axis)) for axis in problem.axes)

    options = ["--reducer", problem.reducer, "--axes", several(lambda axis: axis.axis)]
    if any(axis.adaptive for axis in problem.axes):
        options += ["--adaptive", several(lambda axis: axis.outputs)]
    else:
        options += ["--window", several(lambda axis: axis.window), "--stride", several(lambda axis: axis.stride)]
        options += ["--dilation", several(lambda axis: axis.dilation)]
        options += ["--padding", several(lambda axis: f"{axis.padding[0]}:{axis.padding[1]}")]
    options += {
        "avg": ["--divisor", str(problem.divisor)],
        "smooth_max": ["--beta", str(problem.beta), "--pad", problem.pad],
        "lp": ["--p", str(problem.p)],
    }.get(problem.reducer, [])
    if problem.type == "bf16":
        options += ["--type", "bf16"]
    with tempfile.TemporaryDirectory() as folder:

        def path(name: str) -> str:
            return os.path.join(folder, name + ".npy")

        np.save(path("x"), x)
        if problem.direction == "forward":
            command = [cenote, "pool", path("x"), path("out")]
        else:
            np.save(path("other"), other)
            side = "--cotangent" if problem.direction == "vjp" else "--tangent"
            command = [cenote, "grad", path("x"), "-o", path("out"), side, path("other")]
        subprocess.run(command + options, check=True, capture_output=True)
        out = np.load(path("out"))
    return out.view(dtype_of("bf16")) if out.dtype.kind == "V" else out


def difference(a: Any, b: Any) -> float:
    """The largest, relative to the larger of 1 and the value; infinite where only one of the two is NaN."""
    import numpy as np

    p, q = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
    if p.shape != q.shape:
        return math.inf
    differ = ~((p == q) | (np.isnan(p) & np.isnan(q)))
    if not differ.any():
        return 0.0
    apart = np.abs(p[differ] - q[differ]) / np.maximum(1, np.abs(q[differ]))
    return math.inf if np.isnan(apart).any() else float(apart.max())


TOLERANCE = {"f16": 4e-3, "bf16": 3e-2, "f32": 2e-5}


def check(name: str, threads: int, cenote: str, problem: Problem) -> dict[str, Any]:
    import numpy as np

    x, other = noise(problem.type, problem.shape, 1), other_of(problem)
    least = TOLERANCE.get(problem.output_type, 1e-10)
    apart = difference(PREPARE[name](problem, x, other, threads)(), solve(cenote, problem, x, other))
    note = ""
    if problem.reducer in ("max", "min") and problem.type in ("f32", "f64", "f16", "bf16") and other is None:
        x.reshape(-1)[::11] = np.nan  # at every place of a window
        if difference(PREPARE[name](problem, x, other, threads)(), solve(cenote, problem, x, other)) > least:
            note = "NaN is treated differently"
    return {"status": "same" if apart <= least else "differs", "difference": min(apart, 1e300), "note": note}


def measure(work: Callable[[], Any], least: float) -> dict[str, Any]:
    def seconds(times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - start) / times

    first = seconds(1)
    times = []
    if first >= 1:  # long enough to be timed once
        times = [first]
    else:
        batch = max(1, min(1000, int(20e-6 / max(seconds(1), 1e-9))))
        total = 0.0
        while total < least or (len(times) < 3 and total < 10 * least):
            times.append(seconds(batch))
            total += times[-1] * batch
    times.sort()
    return {"status": "timed", "best_seconds": times[0], "median_seconds": times[len(times) // 2], "runs": len(times)}


def answer(told: dict[str, Any]) -> None:
    print(json.dumps(told), flush=True)


def serve(name: str, threads: int, cenote: str) -> None:
    kept: Optional[tuple[str, Callable[[], Any]]] = None
    for line in sys.stdin:
        request, _, rest = line.strip().partition(" ")
        if request == "drop":
            kept = None
            continue
        try:
            if request == "check":
                answer(check(name, threads, cenote, Problem(cenote, rest)))
                continue
            least, _, text = rest.partition(" ")
            if kept is None or kept[0] != text:
                kept = None
                kept = (text, make_ready(name, Problem(cenote, text), threads))
            answer({"status": "ready"})
            answer(measure(kept[1], float(least)))
        except Absent as absent:
            answer({"status": "absent", "note": str(absent)})
        except Exception as error:  # whatever a peer throws is its answer
            text = (str(error).splitlines() or [""])[0][:200]
            answer({"status": "failed", "note": f"{type(error).__name__}: {text}"})


def list_peers() -> None:
    for name, package in PACKAGES.items():
        try:
            print(name, importlib.import_module(package).__version__)
            if name == "onnxruntime":
                importlib.import_module("onnx")
        except ImportError:
            print(name, "absent")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        list_peers()
    elif len(sys.argv) == 4 and sys.argv[1] in PREPARE:
        serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        sys.exit("usage: peers.py [NAME THREADS CENOTE]")
