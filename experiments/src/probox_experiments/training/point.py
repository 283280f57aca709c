"""One arm and one seed: trained, looked at, measured."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.tables.detections import Detections
from probox.torch.threads import one_thread
from probox_experiments.training.arms import Arm, find_arm
from probox_experiments.training.detector import SmallDetector
from probox_experiments.training.finding import find, with_sigma
from probox_experiments.training.fitting import fit, pictures_of
from probox_experiments.training.measuring import best_sigma, measure_found
from probox_experiments.training.once import once
from probox_experiments.training.scenes import Scenes
from probox_experiments.training.settings import Settings

__all__ = ["found_by", "measure_arm"]


def measure_arm(arm: Arm, seed: int, settings: Settings) -> dict[str, float]:
    """Train an arm and return what is measured of it on test scenes."""
    scenes, found, sigma = found_by(arm, seed, settings)
    return {**measure_found(scenes, found, threads=1), "one_sigma": sigma}


def found_by(arm: Arm, seed: int, settings: Settings) -> tuple[Scenes, Detections, float]:
    """Return test scenes, what a trained arm detects in them, and the one sigma of its edges; NaN if it has none."""
    with one_thread():
        detector = trained(arm.loss, arm.name if arm.loss else "l1", seed, settings)
        scenes, pictures = shown(settings.test, settings.test_seed(seed))
        found = find(detector, pictures)
        if arm.spread == "learned":
            return scenes, found, float("nan")
        if arm.spread == "none":
            return scenes, with_sigma(found, None), float("nan")
        validation, others = shown(settings.validation, settings.validation_seed(seed))
        sigma = best_sigma(validation, find(detector, others))
        return scenes, with_sigma(found, sigma), sigma


@once(keep=64)
def trained(loss: str, name: str, seed: int, settings: Settings) -> SmallDetector:
    """Return a trained detector; arms that differ only in what becomes of it share it."""
    return fit(find_arm(name), seed, settings)


@once(keep=4)
def shown(count: int, seed: int) -> tuple[Scenes, npt.NDArray[np.uint8]]:
    """Return scenes and their pictures, which all arms of a seed share."""
    return pictures_of(count, seed)
