"""Time to fuse one image: 20 passes of 100 boxes with 80 classes, in the worst and the typical case.

python -m benchmarks.fusion
"""

from __future__ import annotations

import time

import numpy as np

from probox.fusion import fuse_candidates, fuse_samples

CLASSES = [str(number) for number in range(80)]


def passes(one_class: bool) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return boxes and label probabilities of 20 jittered views of 100 objects."""
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 500, (100, 2))
    objects = np.concatenate([corner, corner + rng.uniform(20, 200, (100, 2))], axis=1)
    labels = np.zeros(100, int) if one_class else rng.integers(0, 80, 100)
    boxes = [objects + rng.normal(0, 2, objects.shape) for _ in range(20)]
    probs = [rng.dirichlet(np.full(80, 0.1), 100) * 0.5 for _ in range(20)]
    for rows in probs:
        rows[np.arange(100), labels] += 0.5
    return boxes, probs


def main() -> None:
    """Print the minimum of 30 runs of each."""
    for one_class in (False, True):
        boxes, probs = passes(one_class)
        stacked = np.concatenate(boxes), np.concatenate(probs)
        runs = {
            "samples, same label": lambda b=boxes, p=probs: fuse_samples(b, p, classes=CLASSES),
            "samples, similar": lambda b=boxes, p=probs: fuse_samples(b, p, classes=CLASSES, label_affinity="similar"),
            "samples, any label": lambda b=boxes, p=probs: fuse_samples(b, p, classes=CLASSES, label_affinity="none"),
            "candidates": lambda s=stacked: fuse_candidates(*s, classes=CLASSES),
        }
        for name, run in runs.items():
            seconds = []
            for _ in range(30):
                start = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - start)
            which = "objects of one class" if one_class else "objects of 80 classes"
            print(f"{name:22s}{which:24s}{min(seconds) * 1e3:6.2f} ms")


if __name__ == "__main__":
    main()
