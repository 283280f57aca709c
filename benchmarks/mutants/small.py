"""Small versions of the experiments: the plain definitions look at every pixel of every map."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.mutants.mutant import swapped
from probox.experiments.experiment import Experiment
from probox.experiments.running import Run
from probox.experiments.scenes import evenly
from probox.experiments.table import ResultTable
from probox.tables.groundtruth import GroundTruth

__all__ = ["SMALL", "measure_small", "small_truth"]

SIDE, IMAGE = 20, 60
"""Of the square scene, where an experiment says nothing else."""


def small_truth(images: int = 16, seed: int = 0) -> GroundTruth:
    """Return small images with ellipses of a few classes: large and small, whole and cut by the border.

    The last image has no objects.
    """
    rng = np.random.default_rng(seed)
    width, height = 48, 36
    y, x = np.mgrid[0:height, 0:width] + 0.5
    scenes = []
    for image in range(1, images):
        masks: list[npt.NDArray[np.bool_]] = []
        for _ in range(int(rng.integers(1, 5))):
            a, b = rng.uniform(3.0, 12.0), rng.uniform(3.0, 9.0)
            cx, cy = rng.uniform(0.0, width), rng.uniform(0.0, height)
            mask = ((x - cx) / a) ** 2 + ((y - cy) / b) ** 2 < 1
            if mask.sum() > 8:
                masks.append(mask)
        scenes.append((image, masks, rng.integers(0, 4, len(masks)).tolist()))
    scenes.append((images, [], []))
    return GroundTruth.from_masks(
        [f"class {number}" for number in range(1, 6)], scenes, shapes={image: (height, width) for image, *_ in scenes}
    )


SMALL: dict[str, dict[str, Any]] = {
    "label-uncertainty": {"probabilities": (0.15, 0.5, 1.0)},
    "box-probability": {"probabilities": (0.1, 0.5, 1.0)},
    "spatial-uncertainty": {"true_variances": (1, 9, 36), "repeats": 4},
    "translation": {"shifts": evenly(-0.5, 0.5, 21), "side": 100, "image": 200},
    "scaling": {"sizes": (0.49, 0.81, 0.9025, 1.0, 1.1025, 1.21, 1.44, 1.96), "side": 100, "image": 200},
    "corner-variance": {"variances": (0, 1, 5, 20)},
    "label-coco": {"probabilities": (0.0, 0.1, 0.5, 1.0)},
    "missed-small": {"counts": (0, 1, 5)},
    "missed-coco": {"rates": (0.0, 0.3, 0.6), "repeats": 3},
    "false-small": {"counts": (0, 1, 5)},
    "lower-confidence": {"counts": (0, 1, 5)},
    "duplicates": {"times": (1, 2, 5)},
    "duplicates-coco": {"times": (1, 2, 3)},
    "duplicates-coco-100": {"times": (1, 2, 3), "images": 6},
    "duplicates-lower-coco": {"times": (1, 2, 3)},
}
"""What the functions of experiments are given, by name; what one does not take is left out."""


def measure_small(experiment: Experiment, truth: GroundTruth) -> ResultTable:
    """Run an experiment with its small settings."""
    takes = inspect.signature(experiment.function).parameters
    given: dict[str, Any] = {"side": SIDE, "image": IMAGE, "repeats": 3} | SMALL.get(experiment.name, {})
    settings = {name: value for name, value in given.items() if name in takes}
    if "truth" in experiment.takes:
        settings["truth"] = truth
    with _small_square(experiment, takes):
        return experiment.function(**settings, run=Run(threads=1))


@contextmanager
def _small_square(experiment: Experiment, takes: Mapping[str, Any]) -> Iterator[None]:
    """Make the square scene small for an experiment that does not let its size be set."""
    module = sys.modules[experiment.function.__module__]
    with ExitStack() as stack:
        if "side" not in takes and "image" not in takes:
            for name, value in (("SIDE", SIDE), ("IMAGE", IMAGE)):
                if hasattr(module, name):
                    stack.enter_context(swapped(module, name, value))
        yield
