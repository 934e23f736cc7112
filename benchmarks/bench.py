#!/usr/bin/env python3
"""Times problems by cenote, by a copy of as many bytes, and by the peers that are there, all in one run.

Row by row, and several rounds of each: cenote with its copy, then one peer after the other, on the same number of
threads of the same processors. A peer that needs longer than the limit is stopped, and the limit is shown as the least
that it takes. Before a kind of row is timed, a small one is compared with cenote's result.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import pathlib
import resource
import selectors
import subprocess
import sys
import time
from typing import Any, Optional

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import plots  # noqa: E402

PEERS = ["onednn", "torch", "jax", "onnxruntime", "scipy", "opencv"]
# A peer's arrays of this size are given back to the system by ending its process.
LARGE = 400_000_000
# To import, compile and make arrays.
PATIENCE = 120.0
# Of a processor. Who gets less was interrupted, and calls longer than a time slice were so every time: then even the
# best of many is too long. With several threads only the worst is noticed.
FAIR_SHARE = 0.9


def fail(text: str) -> None:
    print(f"bench.py: {text}", file=sys.stderr)
    sys.exit(2)


class Stopped(Exception):
    """A peer did not answer in time, or ended."""


class Worker:
    """A process that serves one peer, started when it is first asked."""

    def __init__(self, command: list[str], environment: dict[str, str], cpus: set[int], log: Any) -> None:
        self.command, self.environment, self.cpus, self.log = command, environment, cpus, log
        self.process: Optional[subprocess.Popen[bytes]] = None
        self.pending = b""

    def start(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            self.pending = b""
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                env=self.environment,
                preexec_fn=lambda: os.sched_setaffinity(0, self.cpus),
            )
        return self.process

    def send(self, request: str) -> None:
        process = self.start()
        assert process.stdin is not None
        try:
            process.stdin.write(request.encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.stop()

    def receive(self, limit: float) -> dict[str, Any]:
        """The next line of JSON. Throws Stopped, and ends the process, after `limit` seconds without one."""
        if self.process is None or self.process.stdout is None:
            raise Stopped("ended")
        until = time.monotonic() + limit
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while True:
                line, found, rest = self.pending.partition(b"\n")
                if found:
                    self.pending = rest
                    if line.startswith(b"{"):
                        answer: dict[str, Any] = json.loads(line)
                        return answer
                    continue
                left = until - time.monotonic()
                if left <= 0 or not selector.select(left):
                    self.stop()
                    raise Stopped("late")
                data = os.read(self.process.stdout.fileno(), 65536)
                if not data:
                    self.stop()
                    raise Stopped("ended")
                self.pending += data

    def cpu_seconds(self) -> float:
        """What the process has computed so far."""
        if self.process is None:
            return 0.0
        words = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        pass
            self.process = None


def small(plan: dict[str, Any]) -> str:
    """The same problem with as few cells as show what it does."""
    shape = [min(n, 5) for n in plan["shape"]]
    for axis in plan["axes"]:
        reach = (axis["window"] - 1) * axis["dilation"] + 1 + 4 * axis["stride"] - sum(axis["padding"])
        whole = axis["window"] == axis["cells"] and axis["outputs"] == 1
        least = 9 if whole else 23 if axis["adaptive"] else max(reach, axis["window"] // 2 + 3)
        shape[axis["axis"]] = min(axis["cells"], least)
    words = plan["problem"].split()
    words[2] = "x".join(str(n) for n in shape)
    return " ".join(words)


def kind(problem: str) -> str:
    words = problem.split()
    return " ".join(words[:2] + [str(words[2].count("x"))] + words[3:])


class Bench:
    def __init__(self, options: argparse.Namespace, cpus: set[int], log: Any) -> None:
        self.options, self.cpus, self.log = options, cpus, log
        self.workers: dict[str, Worker] = {}
        self.versions: dict[str, str] = {}
        self.absent: dict[str, str] = {}
        self.checked: dict[tuple[str, str], dict[str, Any]] = {}
        self.environment = dict(os.environ)
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"):
            self.environment[name] = str(options.threads)
        # Peers allocate their results in each call. Memory that is kept, in large pages, spares them the page faults
        # that cenote, which runs into memory of its caller's, does not have either.
        self.environment["GLIBC_TUNABLES"] = (
            "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184"
        )
        self.environment["JAX_PLATFORMS"] = "cpu"

    def find_peers(self) -> None:
        found: dict[str, tuple[str, list[str]]] = {}
        threads = str(self.options.threads)
        here = pathlib.Path(self.options.peers_program)
        if here.exists():
            for name, version in self.listed([str(here)]):
                found[name] = (version, [str(here), name, threads])
        script = str(HERE / "peers.py")
        if pathlib.Path(self.options.python).exists():
            for name, version in self.listed([self.options.python, script]):
                # libtorch and PyTorch are one peer.
                if version != "absent" or name not in found:
                    found[name] = (version, [self.options.python, script, name, threads, self.options.cenote])
        for name in self.options.peers:
            version, command = found.get(name, ("absent", []))
            if version == "absent":
                self.absent[name] = "not installed, or not built in"
                continue
            self.versions[name] = version
            self.workers[name] = Worker(command, self.environment, self.cpus, self.log)

    def listed(self, command: list[str]) -> list[tuple[str, str]]:
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment, check=False)
        lines = [line.split() for line in done.stdout.splitlines()]
        return [(words[0], words[1]) for words in lines if len(words) == 2]

    def cenote(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.options.cenote, *arguments],
            capture_output=True,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, self.cpus),
        )
        if done.returncode != 0:
            fail(done.stderr.strip().removeprefix("cenote: "))
        return done.stdout

    def plans(self, problems: list[str]) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.cenote("plan", "--json", *problems).splitlines()]

    def check(self, name: str, plan: dict[str, Any]) -> dict[str, Any]:
        key = (name, kind(plan["problem"]))
        if key not in self.checked:
            worker = self.workers[name]
            worker.send("check " + small(plan))
            try:
                self.checked[key] = worker.receive(PATIENCE)
            except Stopped as stopped:
                self.checked[key] = {"status": "failed", "note": f"the comparison was not answered ({stopped})"}
        return dict(self.checked[key])  # the row adds times of its own

    def time_peer(self, name: str, plan: dict[str, Any]) -> dict[str, Any]:
        worker = self.workers[name]
        worker.send(f"time {self.options.min_time} {plan['problem']}")
        try:
            answer = worker.receive(PATIENCE)
        except Stopped as stopped:
            late = str(stopped) == "late"
            return {"status": "failed", "note": f"not ready after {PATIENCE:g} s" if late else "ended"}
        if answer["status"] != "ready":
            return answer
        computed, start = worker.cpu_seconds(), time.monotonic()
        try:
            answer = worker.receive(self.options.limit)
            answer["share"] = (worker.cpu_seconds() - computed) / max(time.monotonic() - start, 1e-9)
            return answer
        except Stopped as stopped:
            if str(stopped) == "late":
                return {"status": "stopped", "least_seconds": self.options.limit}
            return {"status": "failed", "note": "ended"}

    def row(self, plan: dict[str, Any]) -> dict[str, Any]:
        problem: str = plan["problem"]
        row: dict[str, Any] = {"problem": problem, "peers": {}}
        for name in self.workers:
            row["peers"][name] = self.check(name, plan)
        open_ = [name for name, told in row["peers"].items() if told["status"] in ("same", "differs")]
        for _ in range(self.options.rounds):
            computed, start = children_seconds(), time.monotonic()
            told = json.loads(
                self.cenote(
                    "bench", "--json", "--threads", str(self.options.threads), "--min-time", str(self.options.min_time),
                    problem,
                )
            )  # fmt: skip
            share = (children_seconds() - computed) / (time.monotonic() - start)
            if told["results"][0]["best_seconds"] < row.get("best_seconds", math.inf):
                row["share"] = share
            self.merge(row, told["results"][0])
            row["simd"] = told["simd"]
            for name in list(open_):
                answer = self.time_peer(name, plan)
                entry = row["peers"][name]
                if answer["status"] == "timed":
                    if answer["best_seconds"] < entry.get("best_seconds", math.inf):
                        entry["best_seconds"], entry["share"] = answer["best_seconds"], answer["share"]
                elif "best_seconds" not in entry:
                    entry.update(answer)
                # What takes seconds does not become more certain.
                if answer["status"] != "timed" or answer["best_seconds"] > 1:
                    open_.remove(name)
        for name, worker in self.workers.items():
            if plan["bytes"] > LARGE:
                worker.stop()
            elif worker.process is not None:
                worker.send("drop")
            entry = row["peers"][name]
            seconds = entry.get("best_seconds", entry.get("least_seconds"))
            if seconds is not None:
                entry["efficiency"] = row["copy_seconds"] / seconds
                entry["times_cenote"] = seconds / row["best_seconds"]
        return row

    @staticmethod
    def merge(row: dict[str, Any], result: dict[str, Any]) -> None:
        copy = result["bytes"] / result["copy_gigabytes_per_second"] * 1e-9
        row["algorithm"], row["bytes"] = result["algorithm"], result["bytes"]
        row["best_seconds"] = min(result["best_seconds"], row.get("best_seconds", math.inf))
        row["copy_seconds"] = min(copy, row.get("copy_seconds", math.inf))
        row["copy_gigabytes_per_second"] = row["bytes"] / row["copy_seconds"] * 1e-9
        row["efficiency"] = row["copy_seconds"] / row["best_seconds"]

    def stop(self) -> None:
        for worker in self.workers.values():
            worker.stop()


def children_seconds() -> float:
    """What the processes that have ended have computed."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def machine(cpus: int) -> str:
    name = "an unnamed processor"
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{name}, {cpus} core{'s' if cpus != 1 else ''}"


def read_list(path: str) -> list[str]:
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except OSError as error:
        fail(f"--list {path}: {error.strerror}")
    problems = [line.partition("#")[0].strip() for line in lines]
    return [problem for problem in problems if problem]


def shown(entry: dict[str, Any]) -> str:
    """What the table says about a peer."""
    if "times_cenote" not in entry:
        return "failed" if entry["status"] == "failed" else "-"
    interrupted = "?" if entry.get("share", 1) < FAIR_SHARE else ""
    return plots.times(entry).replace(" ", "") + "x" + ("*" if entry.get("status") == "differs" else "") + interrupted


def head(width: int, peers: list[str]) -> str:
    return f"{'problem':<{width}} {'ms':>9} {'copy GB/s':>9} {'eff.':>5}" + "".join(f" {name:>11}" for name in peers)


def line(row: dict[str, Any], width: int, peers: list[str]) -> str:
    interrupted = "?" if row["share"] < FAIR_SHARE else " "
    text = f"{row['problem']:<{width}} {row['best_seconds'] * 1e3:>9.3f}{interrupted}"
    text += f"{row['copy_gigabytes_per_second']:>9.1f} {row['efficiency']:>5.2f}"
    return text + "".join(f" {shown(row['peers'][name]):>11}" for name in peers)


def notes(rows: list[dict[str, Any]], peers: list[str]) -> list[str]:
    """What a reader must know about the peers' columns, each once."""
    said: dict[str, list[str]] = {}
    for row in rows:
        for name in peers:
            entry = row["peers"][name]
            if entry["status"] == "differs":
                text = f"{name}: its result differs (*), by up to {entry['difference']:.2g} on a small problem"
            elif entry.get("note") and entry["status"] != "absent":
                text = f"{name}: {entry['note']}"
            else:
                continue
            said.setdefault(text, []).append(row["problem"])
    more = {text: f" and {len(found) - 1} more" if len(found) > 1 else "" for text, found in said.items()}
    return [f"{text}: {found[0]}{more[text]}" for text, found in said.items()]


def slower(rows: list[dict[str, Any]], peers: list[str]) -> list[str]:
    """Rows on which a peer is ahead."""
    ahead = []
    for row in rows:
        for name in peers:
            entry = row["peers"][name]
            if "best_seconds" in entry and entry["times_cenote"] < 1:
                ahead.append(f"{name} is ahead, {1 / entry['times_cenote']:.2f} times: {row['problem']}")
    return ahead


def arguments() -> argparse.Namespace:
    root = HERE.parent
    parser = argparse.ArgumentParser(prog="bench.py", description=__doc__.split("\n")[0])
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help="problems, one string each")
    parser.add_argument("--list", action="append", default=[], metavar="FILE", help="a file of problems, one per line")
    parser.add_argument("--threads", type=int, default=1, help="of cenote, of the copy and of every peer (1)")
    parser.add_argument("--min-time", type=float, default=0.2, metavar="SECONDS", help="per row and round (0.2)")
    parser.add_argument("--rounds", type=int, default=3, help="of cenote and all peers, per row (3)")
    parser.add_argument("--limit", type=float, default=10, metavar="SECONDS", help="when a peer is stopped (10)")
    parser.add_argument("--peers", default=",".join(PEERS), metavar="NAMES", help=f"some of {','.join(PEERS)}, or none")
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    parser.add_argument("--plots", metavar="FOLDER", help="draw bench-window.svg and bench-peers.svg there")
    parser.add_argument("--page", metavar="FILE", help="replace the table of this Markdown page")
    parser.add_argument("--cenote", default=str(root / "build/release/bin/cenote"), help=argparse.SUPPRESS)
    parser.add_argument("--peers-program", default=str(root / "build/release/bin/bench_peers"), help=argparse.SUPPRESS)
    parser.add_argument("--python", default=str(root / ".venv-bench/bin/python"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    available = len(os.sched_getaffinity(0))
    if not 1 <= options.threads <= available:
        fail(f"--threads {options.threads}: from 1 to the {available} processors of this machine")
    if not options.min_time > 0:
        fail(f"--min-time {options.min_time:g}: more than 0")
    if options.rounds < 1:
        fail(f"--rounds {options.rounds}: at least 1")
    if not options.limit > 0:
        fail(f"--limit {options.limit:g}: more than 0")
    options.peers = [] if options.peers == "none" else options.peers.split(",")
    for name in options.peers:
        if name not in PEERS:
            fail(f"--peers {name}: some of {', '.join(PEERS)}, or none")
    for path in options.list:
        options.problems += read_list(path)
    if not options.problems:
        fail("a problem or --list is needed (see bench.py --help)")
    if not pathlib.Path(options.cenote).exists():
        fail(f"{options.cenote} is not there: make bench builds it")
    return options


def run(options: argparse.Namespace, log: Any) -> dict[str, Any]:
    cpus = set(sorted(os.sched_getaffinity(0))[-options.threads :])
    bench = Bench(options, cpus, log)
    rows: list[dict[str, Any]] = []
    try:
        plans = bench.plans(list(dict.fromkeys(options.problems)))
        bench.find_peers()
        peers = list(bench.workers)
        about = machine(len(os.sched_getaffinity(0)))
        print(f"{about}; {options.threads} thread(s); a copy has efficiency 1; peers: their time divided by cenote's")
        for name, version in bench.versions.items():
            print(f"  {name} {version}")
        for name, why in bench.absent.items():
            print(f"  {name} is skipped: {why}")
        width = max(len(plan["problem"]) for plan in plans)
        print(head(width, peers), flush=True)
        loads = []
        for plan in plans:
            rows.append(bench.row(plan))
            loads.append(os.getloadavg()[0])
            print(line(rows[-1], width, peers), flush=True)
    finally:
        bench.stop()
    for text in notes(rows, peers) + slower(rows, peers):
        print(text)
    # One process at a time is this run's own; what else ran took turns with it.
    others = max(0.0, sum(loads) / len(loads) - options.threads)
    marked = sum(row["share"] < FAIR_SHARE for row in rows)
    if marked:
        print(f"?: it had less than {FAIR_SHARE:g} of a processor, its time may be too long: {marked} of cenote's rows")
    if others > 0.5:
        print(f"other programs had a load of {others:.1f} meanwhile: a quiet machine gives other figures")
    return {
        "machine": about,
        "simd": rows[0]["simd"],
        "threads": options.threads,
        "date": datetime.date.today().isoformat(),
        "limit_seconds": options.limit,
        "other_load": round(others, 1),
        "peers": bench.versions,
        "absent": bench.absent,
        "results": rows,
    }


def main() -> None:
    options = arguments()
    with open(os.devnull, "w", encoding="utf-8") as log:
        results = run(options, log)
    if options.json:
        pathlib.Path(options.json).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    if options.plots:
        plots.draw(results, pathlib.Path(options.plots))
    if options.page:
        plots.write_table(results, pathlib.Path(options.page))


if __name__ == "__main__":
    main()
