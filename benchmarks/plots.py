"""Draws the results of bench.py as SVG: time against window size, and the efficiency of every row beside its peers'."""

from __future__ import annotations

import json
import math
import pathlib
import re
import sys
from html import escape
from typing import Any, Optional

COLOURS = {
    "cenote": "#0b6e8a",
    "onednn": "#e07b39",
    "torch": "#c0392b",
    "jax": "#8e5bb5",
    "onnxruntime": "#4c9f50",
    "scipy": "#7a5c3e",
    "opencv": "#d4a017",
    "copy": "#888888",
}
NAMES = {"onednn": "oneDNN", "torch": "PyTorch", "jax": "JAX (XLA)", "onnxruntime": "ONNX Runtime", "opencv": "OpenCV"}


class Drawing:
    def __init__(self, width: float, height: float) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" font-family="sans-serif" font-size="12" fill="#222">',
            '<rect width="100%" height="100%" fill="white"/>',
        ]

    def text(self, x: float, y: float, text: str, anchor: str = "start", **more: Any) -> None:
        extra = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(text)}</text>')

    def line(self, points: list[tuple[float, float]], colour: str, width: float = 1, dash: str = "") -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        style = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"{style}/>')

    def dot(self, x: float, y: float, colour: str, radius: float = 4, bound: str = "") -> None:
        """A filled circle; an open triangle that points up or left where the value is only a bound."""
        if not bound:
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}"/>')
            return
        r = radius + 1
        corners = {"up": [(0, -r), (r, r), (-r, r)], "left": [(-r, 0), (r, -r), (r, r)]}[bound]
        path = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
        self.parts.append(f'<polygon points="{path}" fill="white" stroke="{colour}" stroke-width="1.5"/>')

    def legend(self, x: float, y: float, systems: list[str]) -> None:
        for i, system in enumerate(systems):
            if system == "copy":
                self.line([(x - 7, y + 18 * i), (x + 7, y + 18 * i)], COLOURS[system], 1.5, "5 4")
            else:
                self.dot(x, y + 18 * i, COLOURS[system])
            self.text(x + 12, y + 4 + 18 * i, NAMES.get(system, system))

    def write(self, path: pathlib.Path) -> None:
        path.write_text("\n".join(self.parts) + "\n</svg>\n")


class LogScale:
    def __init__(self, low: float, high: float, begin: float, end: float) -> None:
        self.low, self.high, self.begin, self.end = math.log(low), math.log(high), begin, end

    def __call__(self, value: float) -> float:
        share = (math.log(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)


def decades(low: float, high: float) -> list[float]:
    return [10.0**e for e in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]


def label(value: float) -> str:
    return f"{value:g}"


def window_of(problem: str) -> Optional[int]:
    found = re.search(r" k(\d+)\b", problem)
    return int(found.group(1)) if found else None


def without_window(problem: str) -> str:
    """The problem but for the window and the padding that goes with it."""
    return re.sub(r" [kp]\d\S*", "", problem)


def sweeps(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows that differ in nothing but the window, of at least five sizes."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if window_of(row["problem"]) is not None:
            groups.setdefault(without_window(row["problem"]), []).append(row)
    long = {key: found for key, found in groups.items() if len(found) >= 5}
    return {key: sorted(found, key=lambda row: window_of(row["problem"]) or 0) for key, found in long.items()}


def seconds_of(row: dict[str, Any], system: str) -> tuple[Optional[float], bool]:
    """A system's time in a row, and whether it is only the least that it takes."""
    if system in ("cenote", "copy"):
        return row["best_seconds" if system == "cenote" else "copy_seconds"], False
    entry = row["peers"].get(system, {})
    return entry.get("best_seconds", entry.get("least_seconds")), "least_seconds" in entry


def caption(results: dict[str, Any]) -> str:
    threads, load = results["threads"], results["other_load"]
    rows = results["results"]
    interrupted = sum(row["share"] < 0.9 for row in rows)
    busy = f", beside a load of {load:g}: {interrupted} of {len(rows)} rows interrupted" if load > 0.5 else ""
    many = "s" if threads != 1 else ""
    return f"{results['machine']}, {results['simd']}, {threads} thread{many}, {results['date']}{busy}"


def draw_panel(
    drawing: Drawing, title: str, rows: list[dict[str, Any]], systems: list[str], left: float, top: float
) -> None:
    width, height = 380.0, 300.0
    windows = [window_of(row["problem"]) or 1 for row in rows]
    times = [s for row in rows for system in systems if (s := seconds_of(row, system)[0]) is not None]
    low, high = min(times) * 1e3 / 1.5, max(times) * 1e3 * 1.5
    x = LogScale(min(windows) / 1.15, max(windows) * 1.15, left, left + width)
    y = LogScale(low, high, top + height, top)
    drawing.text(left + width / 2, top - 10, title, "middle", font_weight="bold")
    for value in decades(low, high):
        drawing.line([(left, y(value)), (left + width, y(value))], "#e4e4e4")
        drawing.text(left - 6, y(value) + 4, label(value), "end")
    shown = -math.inf
    for window in windows:
        drawing.line([(x(window), top + height), (x(window), top + height + 4)], "#222")
        if x(window) - shown >= 24:
            drawing.text(x(window), top + height + 17, str(window), "middle")
            shown = x(window)
    drawing.line([(left, top), (left, top + height), (left + width, top + height)], "#222")
    drawing.text(left + width / 2, top + height + 36, "window size k", "middle")
    middle = f"rotate(-90 {left - 42:.0f} {top + height / 2:.0f})"
    drawing.text(left - 42, top + height / 2, "milliseconds", "middle", transform=middle)
    for system in reversed(systems):
        taken = [(k, *seconds_of(row, system)) for k, row in zip(windows, rows)]
        points = [(x(k), y(s * 1e3), bound) for k, s, bound in taken if s is not None]
        ours, dash = system == "cenote", "5 4" if system == "copy" else ""
        drawing.line([point[:2] for point in points], COLOURS[system], 2.5 if ours else 1.5, dash)
        for px, py, bound in points if not dash else []:
            drawing.dot(px, py, COLOURS[system], 4 if ours else 3, "up" if bound else "")


def present(rows: list[dict[str, Any]], systems: list[str]) -> list[str]:
    return [system for system in systems if any(seconds_of(row, system)[0] is not None for row in rows)]


def draw_windows(results: dict[str, Any], path: pathlib.Path) -> bool:
    groups = sweeps(results["results"])
    if not groups:
        return False
    across = min(2, len(groups))
    down = math.ceil(len(groups) / across)
    drawing = Drawing(across * 450 + 140, down * 380 + 40)
    systems = ["cenote", *results["peers"], "copy"]
    for i, (title, rows) in enumerate(groups.items()):
        draw_panel(drawing, title, rows, present(rows, systems), 60 + 450 * (i % across), 40 + 380 * (i // across))
    drawing.legend(across * 450 + 25, 50, present([row for rows in groups.values() for row in rows], systems))
    drawing.text(60, down * 380 + 26, caption(results) + "; open triangles: stopped there", fill="#666")
    drawing.write(path)
    return True


def draw_peers(results: dict[str, Any], path: pathlib.Path) -> bool:
    swept = {row["problem"] for rows in sweeps(results["results"]).values() for row in rows}
    rows = [row for row in results["results"] if row["problem"] not in swept]
    if not rows:
        return False
    systems = present(rows, ["cenote", *results["peers"]])
    values = [row["copy_seconds"] / s for row in rows for system in systems if (s := seconds_of(row, system)[0])]
    left, width, top, step = 330.0, 500.0, 44.0, 19.0
    low, high = min(values) / 1.3, max(1.6, max(values) * 1.2)
    bottom = top + step * len(rows)
    x = LogScale(low, high, left, left + width)
    drawing = Drawing(left + width + 150, bottom + 70)
    drawing.text(left, 20, "efficiency: 1 is the speed of a copy", font_weight="bold")
    for value in decades(low, high):
        drawing.line([(x(value), top - 8), (x(value), bottom)], "#222" if value == 1 else "#dddddd")
        drawing.text(x(value), bottom + 16, label(value), "middle")
    drawing.text(left + width / 2, bottom + 34, "efficiency", "middle")
    for i, row in enumerate(rows):
        y = top + step * (i + 0.5)
        drawing.text(left - 10, y + 4, row["problem"], "end", font_size=11)
        drawing.line([(left, y), (left + width, y)], "#f0f0f0")
        for system in reversed(systems):
            seconds, bound = seconds_of(row, system)
            if seconds:
                size = 5 if system == "cenote" else 3.5
                drawing.dot(x(row["copy_seconds"] / seconds), y, COLOURS[system], size, "left" if bound else "")
    drawing.legend(left + width + 25, top + 10, systems)
    drawing.text(20, bottom + 58, caption(results) + "; open triangles: stopped, slower than that", fill="#666")
    drawing.write(path)
    return True


def draw(results: dict[str, Any], folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, function in [("bench-window.svg", draw_windows), ("bench-peers.svg", draw_peers)]:
        if function(results, folder / name):
            print(f"{folder / name} is drawn")


BEGIN, END = "<!-- measured -->\n", "<!-- end of measured -->\n"


def times(entry: dict[str, Any]) -> str:
    """How many times cenote's time a peer takes."""
    if "times_cenote" not in entry:
        return ""
    ratio = entry["times_cenote"]
    return ("> " if "least_seconds" in entry else "") + f"{ratio:.{0 if ratio >= 100 else 1 if ratio >= 10 else 2}f}"


def table(results: dict[str, Any]) -> str:
    peers = list(results["peers"])
    versions = ", ".join(f"{NAMES.get(name, name)} {version}" for name, version in results["peers"].items())
    lines = [caption(results) + (f"; peers: {versions}" if versions else "") + ".", ""]
    columns = ["problem", "ms", "copy GB/s", "efficiency", *(NAMES.get(name, name) for name in peers)]
    lines += ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    for row in results["results"]:
        copy = f"{row['copy_gigabytes_per_second']:.0f}"
        cells = [row["problem"], f"{row['best_seconds'] * 1e3:.3g}", copy, f"{row['efficiency']:.2f}"]
        lines.append("| " + " | ".join(cells + [times(row["peers"][name]) for name in peers]) + " |")
    return "\n".join(lines) + "\n"


def write_table(results: dict[str, Any], page: pathlib.Path) -> None:
    """Puts the table where the page has one, between two comments."""
    text = page.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"bench.py: {page}: it has no {BEGIN.strip()} with {END.strip()} behind it")
    page.write_text(before + begin + table(results) + end + after)
    print(f"{page} has the new table")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: plots.py RESULTS.json FOLDER [PAGE.md]")
    told = json.loads(pathlib.Path(sys.argv[1]).read_text())
    draw(told, pathlib.Path(sys.argv[2]))
    if len(sys.argv) == 4:
        write_table(told, pathlib.Path(sys.argv[3]))
