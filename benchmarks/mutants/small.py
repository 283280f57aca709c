"""Small versions of the experiments, because the plain definitions process every pixel of every map."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.mutants.mutant import swapped
from probox.tables.groundtruth import GroundTruth
from probox_experiments.claims import ResultTable
from probox_experiments.experiment import Experiment
from probox_experiments.running import Run
from probox_experiments.synthetic import evenly, square_scene

__all__ = ["SMALL", "measure_small", "small_settings", "small_truth"]

SIDE, IMAGE = 20, 60
"""Default size of the square scene in pixels."""
REPEATS = 3
"""Default number of random draws."""


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
    "table-1": {"share": 0.001},
    "assignment": {"crowds": (), "corner_variance": 25.0, "images": 16, "repeats": 2},
    "spatial-uncertainty": {"true_variances": (1, 3), "fine_steps": 3, "repeats": 4},
    "translation": {
        "shifts": (-0.5, -0.3, -0.2, -0.1, -0.024, 0, 0.003, 0.013, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5),
        "variances": (0, 10, 30, 100),
        "side": 100,
        "image": 200,
    },
    "scaling": {
        "sizes": (0.25, 0.49, 0.64, 0.81, 0.9025, 1.0, 1.1025, 1.21, 1.44, 1.96, 2.25),
        "variances": (0, 10, 30, 100),
        "side": 100,
        "image": 200,
    },
    "corner-variance": {"variances": (0, 1, 5, 20)},
    "label-coco": {"probabilities": (0.0, 0.1, 0.5, 1.0)},
    "missed-small": {"counts": (0, 1, 5)},
    "missed-coco": {"rates": (0.0, 0.3, 0.6), "repeats": 3},
    "false-small": {"counts": (0, 1, 5)},
    "lower-confidence": {"counts": (0, 1, 5)},
    "false-positions": {"counts": (0, 1, 3), "repeats": 10},
    "duplicates-order": {"times": (1, 2), "repeats": 2},
    "matching-rule": {"crowds": (), "repeats": 1},
    "duplicates": {"times": (1, 2, 5)},
    "duplicates-coco": {"times": (1, 2, 3)},
    "duplicates-coco-100": {"times": (1, 2, 3), "images": 6, "subset": 6, "halvings": 2},
    "duplicates-lower-coco": {"times": (1, 2, 3)},
    "which-notices-what": {
        "perturbations": ("confidences x 0.8", "std x 1/4", "std x 4", "boxes shifted", "duplicates"),
        "images": 6,
    },
    "constant-sigma": {"kinds": ("all alike", "two kinds"), "images": 8, "steps": 3},
    # Labels only: the images of its boxes are hundreds of pixels wide, and numerous.
    "proper": {"side": 12, "sides": (), "sigmas": (), "shares": (0.8,), "probabilities": evenly(0.5, 0.98, 25)},
    "segmentation": {"objects": 1, "blob_count": 3, "repeats": 2, "ratios": (0.7, 1.0, 1.4), "wide_ratios": (1.8, 3.0)},
}
"""Arguments of the functions of experiments, by name; unused ones are left out.

Claims must hold with the original metric at these sizes, or they do not count. A side of 100 has whole pixels at
every hundredth. Variances scale with the size of objects: in experiments on many images they are 6 to 24 pixels wide.
"""


def small_settings(experiment: Experiment) -> dict[str, Any]:
    """Return the arguments of an experiment's function besides the ground truth and the run."""
    takes = inspect.signature(experiment.function).parameters
    given: dict[str, Any] = {"side": SIDE, "image": IMAGE, "repeats": REPEATS} | SMALL.get(experiment.name, {})
    return {name: value for name, value in given.items() if name in takes}


def measure_small(experiment: Experiment, truth: GroundTruth) -> ResultTable:
    """Run an experiment with its small settings."""
    settings = small_settings(experiment)
    if "truth" in experiment.takes:
        settings["truth"] = truth
    with _small_square(experiment):
        return experiment.function(**settings, run=Run(threads=1))


@contextmanager
def _small_square(experiment: Experiment) -> Iterator[None]:
    """Reduce the square scene for an experiment without a parameter for its size."""
    takes = inspect.signature(experiment.function).parameters
    module = sys.modules[experiment.function.__module__]
    with ExitStack() as stack:
        if "side" not in takes and "image" not in takes:
            replacements = {"SIDE": SIDE, "IMAGE": IMAGE, "square_scene": _scene}
            for name in replacements.keys() & vars(module).keys():
                stack.enter_context(swapped(module, name, replacements[name]))
        yield


def _scene(*given: Any, **more: Any) -> GroundTruth:
    """Return the square scene, which is small unless a size is given."""
    return square_scene(*given, **more) if given or more else square_scene(SIDE, IMAGE)
