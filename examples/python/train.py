"""A pooling layer, trained: does a noisy signal hold a certain wave, somewhere?

A filter slides over the signal, a pooling keeps one number of all positions, and a logistic unit decides. Where the
wave is does not matter to a smooth maximum, which lets the filter learn it; an average drowns it in the noise.
Everything is made of cenote.Tensor: the filter's products are summed by a pooling too.
"""

import argparse
import pathlib

import cenote
import numpy as np
from pictures import plot, side_by_side, write_png

LENGTH, TAPS = 96, 17
WAVE = np.sin(np.linspace(0, 3 * np.pi, TAPS)) * np.hanning(TAPS)


def noisy(count, rng):
    """Signals as windows of the filter's length, every second with the wave at a random place; +1 or -1 for each."""
    x, present = rng.normal(0, 0.35, (count, LENGTH)), np.arange(count) % 2
    for i in np.nonzero(present)[0]:
        at = rng.integers(LENGTH - TAPS)
        x[i, at : at + TAPS] += 1.3 * WAVE
    return np.lib.stride_tricks.sliding_window_view(x, TAPS, axis=1), 2.0 * present - 1


def scores(windows, weights, pooling):
    """How much each signal looks like the wave: a filter, a pooling over positions, a scale and an offset."""
    filters, scale, offset = weights
    products = cenote.sum_pool(filters * windows, (TAPS,))
    return pooling(products.reshape(len(windows), -1)) * scale + offset


POOLINGS = {
    "smooth maximum": lambda x: cenote.smooth_max_pool(x, (x.shape[1],), beta=4.0).reshape(-1),
    "average": lambda x: cenote.avg_pool(x, (x.shape[1],)).reshape(-1),
}


def train(pooling, steps, rng):
    weights = [cenote.Tensor(rng.normal(0, 0.1, TAPS)), cenote.Tensor(1.0), cenote.Tensor(-1.0)]
    losses = []
    for _ in range(steps):
        windows, sign = noisy(64, rng)
        loss = cenote.tensor.log(cenote.tensor.exp(-(scores(windows, weights, pooling) * sign)) + 1).mean()
        loss.backward()
        losses.append(loss.item())
        for weight in weights:
            weight.data -= 0.5 * weight.grad
    windows, sign = noisy(500, np.random.default_rng(99))
    with cenote.no_autodiff:
        right = (scores(windows, weights, pooling).data > 0) == (sign > 0)
    return weights, losses, right.mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("train.png"))
    parser.add_argument("--quick", action="store_true", help="fewer steps")
    args = parser.parse_args()

    steps = 80 if args.quick else 400
    found = {name: train(pooling, steps, np.random.default_rng(3)) for name, pooling in POOLINGS.items()}
    for name, (_, losses, right) in found.items():
        print(f"{name}: loss {np.mean(losses[:10]):.2f} -> {np.mean(losses[-10:]):.2f}, right in {right:.0%}")
    (filters, *_), curve, right = found["smooth maximum"]
    learned = filters.data / np.abs(filters.data).max()
    example = np.random.default_rng(5).normal(0, 0.35, LENGTH)
    example[50 : 50 + TAPS] += 1.3 * WAVE
    grey, blue, orange = (170, 170, 170), (30, 90, 200), (230, 120, 20)
    smooth = lambda ys: np.convolve(ys, np.ones(9) / 9, "valid")  # noqa: E731
    write_png(
        args.out,
        side_by_side(
            plot({blue: example}),
            plot({grey: WAVE / np.abs(WAVE).max(), blue: learned}),
            plot({orange: smooth(found["average"][1]), blue: smooth(curve)}, low=0.0),
        ),
    )
    assert right > 0.8 > found["average"][2]


if __name__ == "__main__":
    main()
