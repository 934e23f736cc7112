"""Pictures without a library for them: arrays as PNG files, and curves drawn into arrays."""

import struct
import zlib

import numpy as np


def write_png(path, picture):
    """Writes rows of bytes, grey (h, w) or coloured (h, w, 3)."""
    picture = np.ascontiguousarray(picture, np.uint8)
    height, width = picture.shape[:2]
    rows = picture.reshape(height, -1)
    raw = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()
    header = struct.pack(">2I5B", width, height, 8, 0 if picture.ndim == 2 else 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in ((b"IHDR", header), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b"")):
            file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))


def side_by_side(*pictures, gap=12):
    """Pictures of one height in a row, on white."""
    height = pictures[0].shape[0]
    white = np.full((height, gap, *pictures[0].shape[2:]), 255, np.uint8)
    return np.concatenate([part for picture in pictures for part in (picture, white)][:-1], axis=1)


def plot(curves, height=220, width=320, low=None, high=None):
    """Curves as {colour: values}, from the left edge to the right, over a line at zero."""
    canvas = np.full((height, width, 3), 255, np.uint8)
    values = np.concatenate([np.asarray(ys, float) for ys in curves.values()])
    low, high = (values.min() if low is None else low), (values.max() if high is None else high)
    row = lambda y: ((high - y) / (high - low) * (height - 21) + 10).astype(int).clip(0, height - 1)  # noqa: E731
    if low <= 0 <= high:
        canvas[row(np.zeros(1))[0]] = 200
    for colour, ys in curves.items():
        # Each column is filled from where the curve enters it to where it leaves.
        edges = row(np.interp(np.linspace(0, len(ys) - 1, width + 1), np.arange(len(ys)), ys))
        for column, (enters, leaves) in enumerate(zip(edges, edges[1:])):
            canvas[max(min(enters, leaves) - 1, 0) : max(enters, leaves) + 2, column] = colour
    return canvas
