"""The Python functions beside flax on XLA, mygrad, scipy.ndimage, scikit-image and onnxruntime, in one run.

Every row is one problem, every peer a process of its own on the same cores, so that one that takes too long is stopped
and shown with a lower bound. Efficiency is the bytes that a pooling must read and write, over the time, over the
bandwidth of a copy in the same run. Results of peers are held against cenote's.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

import numpy as np

PEERS = ("cenote", "cenote out=", "flax/XLA", "onnxruntime", "scipy.ndimage", "scikit-image", "mygrad")


class Row:
    """A problem: reducer, shape with channels first, window, stride, padding on both sides, and whether it is a vjp."""

    def __init__(self, name, reducer, shape, window, stride=1, padding=0, vjp=False):
        self.name, self.reducer, self.shape, self.window = name, reducer, shape, window
        self.stride, self.padding, self.vjp = stride, padding, vjp

    @property
    def output(self):
        kept = len(self.shape) - len(self.window)
        sizes = zip(self.shape[kept:], self.window)
        return self.shape[:kept] + tuple((n + 2 * self.padding - k) // self.stride + 1 for n, k in sizes)

    @property
    def bytes(self):
        """x and y once each; of a vjp also gy and gx."""
        return 4 * (np.prod(self.shape) + np.prod(self.output)) * (2 if self.vjp else 1)

    def x(self):
        return np.random.default_rng(0).random(self.shape, dtype=np.float32)


def rows(quick):
    n = 4 if quick else 1
    return [
        Row("max 2x2 stride 2", "max", (8, 64, 112 // n, 112 // n), (2, 2), 2),
        Row("max 3x3 stride 2 padded", "max", (8, 64, 112 // n, 112 // n), (3, 3), 2, 1),
        Row("avg 3x3 same", "avg", (8, 64, 56 // n, 56 // n), (3, 3), 1, 1),
        Row("max 31x31 of a picture", "max", (2048 // n, 2048 // n), (31, 31), 1, 15),
        Row("avg 31x31 of a picture", "avg", (2048 // n, 2048 // n), (31, 31), 1, 15),
        Row("max 255x255 of a picture", "max", (2048 // n, 2048 // n), (255 // n | 1,) * 2, 1, (255 // n | 1) // 2),
        Row("avg of 8x8 blocks", "avg", (4096 // n, 4096 // n), (8, 8), 8),
        Row("gradient of max 2x2 stride 2", "max", (8, 64, 112 // n, 112 // n), (2, 2), 2, vjp=True),
        Row("max 2x2 of 8x8 cells", "max", (8, 8), (2, 2), 2),
    ]


def cenote_call(row, threads, out=False):
    import cenote

    cenote.set_threads(threads)
    x, function = row.x(), {"max": cenote.max_pool, "avg": cenote.avg_pool}[row.reducer]
    options = dict(window=row.window, stride=row.stride, padding=row.padding)
    if row.vjp:
        if out:
            return None
        gy = np.ones(row.output, np.float32)
        return lambda: cenote.vjp(function, x, **options)[1](gy)
    if out:
        options["out"] = np.zeros(row.output, np.float32)
    return lambda: function(x, **options)


def flax_call(row, threads):
    import jax
    from flax import linen

    x = row.x()
    # flax wants channels last; a picture has one channel. Its average divides by the whole window, as cenote's does.
    x = x[..., None] if x.ndim == 2 else np.moveaxis(x, 1, -1)
    pool = {"max": linen.max_pool, "avg": linen.avg_pool}[row.reducer]
    padding = ((row.padding, row.padding),) * 2

    def forward(x):
        return pool(x, row.window, (row.stride,) * 2, padding)

    run = jax.jit(jax.grad(lambda x: forward(x).sum()) if row.vjp else forward)
    x = jax.device_put(np.ascontiguousarray(x))
    return lambda: run(x).block_until_ready()


def onnxruntime_call(row, threads):
    import onnx
    import onnxruntime

    if row.vjp:
        return None
    x = row.x()
    x = x[None, None] if x.ndim == 2 else x
    kind = {"max": "MaxPool", "avg": "AveragePool"}[row.reducer]
    more = {"count_include_pad": 1} if row.reducer == "avg" else {}
    node = onnx.helper.make_node(
        kind, ["x"], ["y"], kernel_shape=row.window, strides=[row.stride] * 2, pads=[row.padding] * 4, **more
    )
    described = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in "xy"]
    graph = onnx.helper.make_graph([node], "pool", described[:1], described[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"x": x})[0]


def scipy_call(row, threads):
    from scipy import ndimage

    # Filters have stride 1 and the picture's size.
    if row.vjp or row.output != row.shape:
        return None
    x, size = row.x(), (1,) * (len(row.shape) - 2) + tuple(row.window)
    if row.reducer == "max":
        return lambda: ndimage.maximum_filter(x, size, mode="constant", cval=-np.inf)
    return lambda: ndimage.uniform_filter(x, size, mode="constant")


def skimage_call(row, threads):
    from skimage.measure import block_reduce

    if row.vjp or row.padding or (row.stride,) * 2 != tuple(row.window):
        return None
    x, block = row.x(), (1,) * (len(row.shape) - 2) + tuple(row.window)
    return lambda: block_reduce(x, block, {"max": np.max, "avg": np.mean}[row.reducer])


def mygrad_call(row, threads):
    import mygrad
    from mygrad.nnet.layers import max_pool

    if row.reducer != "max" or row.padding:
        return None
    x = mygrad.tensor(row.x())

    def run():
        y = max_pool(x, row.window, row.stride)
        if not row.vjp:
            return y.data
        y.sum().backward()
        return x.grad

    return run


CALLS = dict(
    zip(
        PEERS,
        (
            cenote_call,
            lambda row, threads: cenote_call(row, threads, out=True),
            flax_call,
            onnxruntime_call,
            scipy_call,
            skimage_call,
            mygrad_call,
        ),
    )
)


def on_cores(threads):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def best_time(call, least):
    """The shortest of several calls that take at least so long together; short ones are timed in groups."""
    begin = time.perf_counter()
    call()
    group = max(1, int(2e-3 / max(time.perf_counter() - begin, 1e-9)))
    best, end = np.inf, time.perf_counter() + least
    while True:
        begin = time.perf_counter()
        for _ in range(group):
            call()
        now = time.perf_counter()
        best = min(best, (now - begin) / group)
        if now > end:
            return best


def one(row, peer, threads, least):
    """In a process of its own: says that it is ready, and then the time."""
    on_cores(threads)
    try:
        call = CALLS[peer](row, threads)
    except ImportError as error:
        print(json.dumps({"absent": str(error)}), flush=True)
        return
    print(json.dumps({"ready": call is not None}), flush=True)
    if call is not None:
        total = float(np.asarray(call()).sum(dtype=np.float64))
        print(json.dumps({"time": best_time(call, least), "sum": total}), flush=True)


def measured(number, peer, args):
    """What a process says: a time, a lower bound, that the peer is absent, or None if it has no such pooling."""
    command = [sys.executable, __file__, "--one", str(number), peer, "--threads", str(args.threads)]
    command += ["--least", str(args.least)] + (["--quick"] if args.quick else [])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    said = json.loads(process.stdout.readline() or '{"absent": "it failed"}')
    if not said.get("ready"):
        process.wait()
        return said if "absent" in said else None
    with concurrent.futures.ThreadPoolExecutor(1) as reader:
        line = reader.submit(process.stdout.readline)
        try:
            return json.loads(line.result(args.limit) or '{"absent": "it failed"}')
        except concurrent.futures.TimeoutError:
            return {"above": args.limit}
        finally:
            process.kill()
            process.wait()


def copy_bandwidth(threads):
    """Bytes read and written per second by a copy of 256 MiB in as many threads."""
    x = np.ones(1 << 26, np.float32)
    y = np.empty_like(x)
    parts = list(zip(np.array_split(x, threads), np.array_split(y, threads)))
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        seconds = best_time(lambda: list(pool.map(lambda part: np.copyto(part[1], part[0]), parts)), 0.5)
    return 2 * x.nbytes / seconds


def shown(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1 or unit == "µs":
            return f"{seconds * scale:.3g} {unit}"


def table(result):
    lines = ["| problem | " + " | ".join(PEERS) + " | efficiency |", "| --- " * (len(PEERS) + 2) + "|"]
    for row in result["rows"]:
        cells = []
        for peer in PEERS:
            said = row["peers"].get(peer)
            cells.append("" if said is None else f"> {said['above']:g} s" if "above" in said else
                         shown(said["time"]) if "time" in said else "absent")  # fmt: skip
        lines.append(f"| {row['name']} | " + " | ".join(cells) + f" | {row['efficiency']:.2f} |")
    return "\n".join(lines)


COLOURS = ("#1f5fbf", "#7fa8e0", "#e0731d", "#3a9d5d", "#8a5cc2", "#c2a21c", "#b0413e")


def plot(result):
    """Bars on a logarithmic scale: how many times as long as cenote each peer takes."""
    left, width, bar, gap, top = 235, 520, 13, 12, 54
    most = 1e5
    place = lambda ratio: left + width * np.log10(min(max(ratio, 0.1), most) / 0.1) / np.log10(most / 0.1)  # noqa: E731
    parts, y = [], top
    for row in result["rows"]:
        times = {p: s for p, s in row["peers"].items() if s and ("time" in s or "above" in s) and p != "cenote"}
        base, begin = row["peers"]["cenote"]["time"], y
        for peer, said in times.items():
            seconds, more = said.get("time", said.get("above")), "" if "time" in said else "&gt; "
            at, from_one = place(seconds / base), place(1)
            x, w = min(at, from_one), max(abs(at - from_one), 1)
            colour = COLOURS[PEERS.index(peer)]
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{bar - 2}" fill="{colour}"/>')
            ratio = f"{seconds / base:.2g}" if seconds < 99 * base else f"{seconds / base:.0f}"
            parts.append(f'<text x="{max(at, from_one) + 4:.1f}" y="{y + 9}">{more}{ratio}</text>')
            y += bar
        parts.append(f'<text x="{left - 60}" y="{(begin + y) / 2 + 4:.0f}" text-anchor="end">{row["name"]}</text>')
        y += gap
    for power in range(-1, 6):
        x, stroke = place(10.0**power), "#ddd" if power else "#444"
        parts.insert(0, f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 8}" y2="{y}" stroke="{stroke}"/>')
        parts.append(f'<text x="{x:.1f}" y="{top - 12}" text-anchor="middle">{10.0**power:g}</text>')
    parts.append(f'<text x="{left - 60}" y="{top - 12}" text-anchor="end">time, times that of cenote</text>')
    x = 10
    for peer, colour in list(zip(PEERS, COLOURS))[1:]:
        parts.append(f'<rect x="{x}" y="8" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 14}" y="17">{peer}</text>')
        x += 34 + 7 * len(peer)
    style = 'font-family="sans-serif" font-size="11" fill="#222"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{y + 6}" {style}>'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--limit", type=float, default=10.0, help="seconds after which a peer is stopped")
    parser.add_argument("--least", type=float, default=0.5, help="seconds that a peer is timed for")
    parser.add_argument("--quick", action="store_true", help="small problems")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("bench"), help="folder of JSON and plot")
    parser.add_argument("--one", nargs=2, metavar=("ROW", "PEER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    problems = rows(args.quick)
    if args.one:
        return one(problems[int(args.one[0])], args.one[1], args.threads, args.least)

    on_cores(args.threads)
    result = dict(machine=platform.processor() or platform.machine(), threads=args.threads, rows=[])
    # The best of a copy between rows, as times are the best of theirs: other work on the machine slows both.
    copies = []
    for number, row in enumerate(problems):
        copies.append(copy_bandwidth(args.threads))
        peers = {peer: measured(number, peer, args) for peer in PEERS}
        fastest = min(peers[p]["time"] for p in PEERS[:2] if peers[p] and "time" in peers[p])
        for peer, said in peers.items():
            if said and "absent" in said:
                print(f"{peer} is absent: {said['absent']}", file=sys.stderr)
            elif said and "sum" in said:
                assert np.isclose(said["sum"], peers["cenote"]["sum"], rtol=1e-3), (row.name, peer, peers)
        result["rows"].append(dict(name=row.name, bytes=int(row.bytes), seconds=fastest, peers=peers))
    result["copy_bytes_per_second"] = max(copies)
    for row in result["rows"]:
        row["efficiency"] = row["bytes"] / row["seconds"] / max(copies)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "python.json").write_text(json.dumps(result, indent=1) + "\n")
    (args.out / "python.svg").write_text(plot(result))
    print(f"{args.threads} threads, a copy moves {result['copy_bytes_per_second'] / 1e9:.1f} GB/s\n")
    print(table(result))


if __name__ == "__main__":
    main()
