"""Even light on a photographed page: a closing by a large window finds the paper, whatever the light on it.

The largest pixel of each 61 x 61 neighbourhood, and then the smallest of those, is the picture without its dark
strokes: the paper. Divided by it, the page is white and the strokes are black. A window of that size costs little more
than a small one.
"""

import argparse
import pathlib

import cenote
import numpy as np
from pictures import side_by_side, write_png

# Letters of 5 x 7 dots, a row of each as five bits.
FONT = {
    "c": (0, 0, 14, 16, 16, 17, 14),
    "e": (0, 0, 14, 17, 31, 16, 14),
    "n": (0, 0, 22, 25, 17, 17, 17),
    "o": (0, 0, 14, 17, 17, 17, 14),
    "t": (8, 8, 28, 8, 8, 9, 6),
    " ": (0,) * 7,
}


def page(lines, letters, scale, seed=0):
    """Lines of words under a lamp on the left, with a shadow and some noise, as bytes."""
    rng = np.random.default_rng(seed)
    ink = np.zeros((lines * 12 + 6, letters * 6 + 6))
    for line in range(lines):
        text = "".join(rng.choice(["cenote ", "note ", "once ", "tent ", "to "]) for _ in range(letters))[:letters]
        for place, letter in enumerate(text):
            dots = [[row >> (4 - bit) & 1 for bit in range(5)] for row in FONT[letter]]
            ink[line * 12 + 5 : line * 12 + 12, place * 6 + 4 : place * 6 + 9] = dots
    ink = np.kron(ink, np.ones((scale, scale)))
    down, across = np.mgrid[: ink.shape[0], : ink.shape[1]] / np.array(ink.shape)[:, None, None]
    light = 90 + 150 * np.exp(-3 * ((across - 0.15) ** 2 + (down - 0.3) ** 2))
    light *= 1 - 0.45 / (1 + np.exp(-60 * (across - 0.62 - 0.2 * down)))
    return (light * (1 - 0.7 * ink) + rng.normal(0, 2, ink.shape)).clip(0, 255).astype(np.uint8)


def paper(picture, size):
    """A closing: the maximum of each window, and the minimum of those."""
    window = dict(window=(size, size), padding="same")
    return cenote.min_pool(cenote.max_pool(picture, **window), **window)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("morphology.png"))
    parser.add_argument("--quick", action="store_true", help="a smaller page")
    args = parser.parse_args()

    picture = page(lines=5 if args.quick else 9, letters=14 if args.quick else 20, scale=3)
    background = paper(picture, size=61)
    # The corners of a closing are square; an average makes them soft.
    background = cenote.avg_pool(background.astype(np.float32), (31, 31), padding="same", divisor="valid")
    flat = (255 * (picture / background).clip(0, 1)).astype(np.uint8)
    write_png(args.out, side_by_side(picture, background.astype(np.uint8), flat))

    # One threshold now separates ink from paper everywhere.
    dark = flat < 160
    before = picture < 160
    print(f"{args.out}: a threshold finds {before.mean():.0%} ink before, {dark.mean():.0%} after")
    assert 0.05 < dark.mean() < 0.25 < before.mean()


if __name__ == "__main__":
    main()
