"""A laser scan of a street, thinned: one point per voxel, at the average of its points, and coarser levels from there.

A scanner sees what is near a hundred times as densely as what is far. Voxels even that out: points become rows of a
sparse tensor, rows of one voxel are averaged, and each further level is a pooling of the one before.
"""

import argparse
import pathlib

import cenote
import numpy as np
from cenote import sparse
from pictures import side_by_side, write_png

# Crowns of trees, and cars: the middle, the radius, and from where to where they reach up.
ROUND = [(8, 5, 1.6, 1, 4), (-14, 5, 2, 1, 5), (20, -4, 1.8, 1, 5), (5, -4, 1.1, -2, 0), (-9, -4, 1.1, -2, 0)]


def street(count, rng):
    """Points (x, y, z) in metres as a scanner at the origin sees them: ground, two rows of houses, trees, cars."""
    angle, height = rng.uniform(0, 2 * np.pi, count), rng.uniform(-0.45, 0.25, count)
    ray = np.stack([np.cos(angle), np.sin(angle), height], 1)
    reach = np.full(count, np.inf)

    def hit(distance, where):
        reach[:] = np.where(where & (distance > 0) & (distance < reach), distance, reach)

    with np.errstate(divide="ignore", invalid="ignore"):
        hit(-1.8 / ray[:, 2], np.ones(count, bool))
        for wall in (-9.0, 11.0):
            distance = wall / ray[:, 1]
            x, z = distance * ray[:, 0], distance * ray[:, 2]
            hit(distance, (z < 6 + 2 * np.sin(np.floor(x / 12))) & (np.mod(x, 12) > 0.8))
        for x, y, radius, low, high in ROUND:
            flat = ray[:, :2]
            along = flat @ [x, y]
            inside = along**2 - (flat**2).sum(1) * (x * x + y * y - radius**2)
            distance = (along - np.sqrt(inside)) / (flat**2).sum(1)
            hit(distance, (inside > 0) & (distance * ray[:, 2] > low) & (distance * ray[:, 2] < high))
    seen = reach < 40
    return (ray * reach[:, None])[seen] + rng.normal(0, 0.015, (seen.sum(), 3))


def voxels(points, size):
    """One row per voxel: features are the average position and how many points there were."""
    coords = np.floor(points / size).astype(np.int32)
    rows = np.concatenate([np.zeros((len(coords), 1), np.int32), coords], 1)
    feats = np.concatenate([points, np.ones((len(points), 1))], 1).astype(np.float64)
    sums = sparse.SparseTensor.coalesced(rows, feats, merge="sum")
    return sums.with_feats(sums.feats / sums.feats[:, 3:])


def seen_from_above(points, size=300, metres=26.0):
    """Higher points are lighter and warmer; what nothing hit is dark."""
    place = ((points[:, :2] + metres) / (2 * metres) * size).astype(int)
    inside = ((place >= 0) & (place < size)).all(1)
    place, z = place[inside], points[inside, 2]
    order = np.argsort(z, kind="stable")
    place, tone = place[order], ((z[order] + 2) / 9).clip(0, 1)[:, None]
    picture = np.full((size, size, 3), (16, 20, 30), np.uint8)
    colour = (1 - tone) * (70, 120, 190) + tone * (255, 220, 140)
    for down, right in ((0, 0), (0, 1), (1, 0), (1, 1)):
        picture[(size - 1 - place[:, 1] + down).clip(0, size - 1), (place[:, 0] + right).clip(0, size - 1)] = colour
    return picture


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("thin.png"))
    parser.add_argument("--quick", action="store_true", help="fewer points")
    args = parser.parse_args()

    points = street(60_000 if args.quick else 400_000, np.random.default_rng(0))
    fine = voxels(points, 0.25)
    levels = [fine]
    for _ in range(2):
        levels.append(sparse.avg_pool3d(levels[-1], kernel_size=2, stride=2))
    print(f"{len(points)} points -> {' -> '.join(str(len(level)) for level in levels)} voxels of 0.25, 0.5 and 1 m")
    shown = (points, fine.feats[:, :3], levels[2].feats[:, :3])
    write_png(args.out, side_by_side(*map(seen_from_above, shown)))

    # Whatever is averaged lies in its voxel, and the gradient of a level spreads evenly over the one below.
    assert np.abs(levels[1].feats[:, :3] / 0.5 - levels[1].coords[:, 1:] - 0.5).max() <= 0.5 + 1e-9
    _, pullback = cenote.vjp(sparse.avg_pool3d, levels[1], kernel_size=2, stride=2)
    spread = pullback(np.ones_like(levels[2].feats))
    assert np.isclose(spread.sum(), levels[2].feats.size)


if __name__ == "__main__":
    main()
