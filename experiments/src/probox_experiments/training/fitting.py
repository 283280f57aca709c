"""Training the detector: the same network, data, steps and optimiser for every arm, but for the loss of boxes."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

import probox.torch as losses
from probox.tables.detections import Detections
from probox_experiments.training.arms import Arm, Settings, best_sigma, find_arm, measure_found
from probox_experiments.training.detector import (
    CELLS,
    STRIDE,
    UNASKED,
    SmallDetector,
    Targets,
    as_seen,
    find,
    make_targets,
    with_sigma,
)
from probox_experiments.training.scenes import SIDE, Scenes, draw_scenes, render

if TYPE_CHECKING:
    from torch import Tensor


# --- Training the detector: the same network, data, steps and optimiser for every arm, but for the loss of boxes ---

OBJECT_WEIGHT = 0.2
ROUGH_WEIGHT = 0.1
"""Of the losses of objectness and of the first stage's boxes; that of classes has 1."""
RISE = 0.15
"""The share of steps over which the learning rate rises; then it falls to nothing."""


START = threading.Lock()
"""Held while weights are drawn: torch has one generator for all that are trained at once."""
DRAWING = threading.Lock()
"""Held while scenes are drawn: arms that are trained at once wait for them, and do not draw them again."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: sums by several would depend on how many there are, and small tensors gain nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclasses.dataclass(frozen=True)
class Lesson:
    """Scenes with what is needed to learn from them."""

    scenes: Scenes
    pictures: Tensor
    targets: Targets
    truth: Tensor
    pixels: Tensor
    labels: Tensor


def pictures_of(count: int, seed: int) -> tuple[Scenes, npt.NDArray[np.uint8]]:
    """Return scenes and their pictures."""
    scenes = draw_scenes(count, seed)
    return scenes, render(scenes)


@lru_cache(maxsize=2)
def lesson(count: int, seed: int) -> Lesson:
    """Return scenes to learn from; they are kept for a while, since all arms of a seed learn from the same."""
    scenes, pictures = pictures_of(count, seed)
    return Lesson(
        scenes,
        torch.from_numpy(pictures),
        make_targets(scenes, STRIDE),
        torch.from_numpy(scenes.boxes),
        torch.from_numpy(scenes.pixel_boxes),
        torch.from_numpy(scenes.labels),
    )


class Chosen(NamedTuple):
    """Boxes that were assigned to objects."""

    boxes: Tensor
    log_std: Tensor
    label_logits: Tensor
    truth: Tensor
    pixels: Tensor
    labels: Tensor


def box_loss(arm: Arm, chosen: Chosen, *, warm: bool = False) -> Tensor:
    """Return the loss of boxes and their spread, which is all that arms differ in; `warm`: L1, as all begin."""
    if warm or not arm.loss:
        return (chosen.boxes - chosen.truth).abs().sum(1).mean().float()
    if arm.reads_pixels:
        # Labels count, since pPDQ is a mean of place and label, but are not taught here: that is the same in all arms.
        return losses.ppdq_loss(
            chosen.boxes,
            log_std=chosen.log_std,
            label_logits=chosen.label_logits.detach(),
            truth_labels=chosen.labels,
            truth_boxes=chosen.pixels,
            image_size=(SIDE, SIDE),
            **arm.options,
        )
    loss = getattr(losses, arm.loss)
    value: Tensor = loss(chosen.boxes, log_std=chosen.log_std, truth_boxes=chosen.truth, **arm.options)
    return value


def fit(arm: Arm, seed: int, settings: Settings) -> SmallDetector:
    """Return a detector trained from scratch; the same seed gives the same scenes, start and order in all arms."""
    with DRAWING:
        learned = lesson(settings.images, settings.train_seed(seed))
    generator = np.random.default_rng([seed, 22])
    # The generator of torch is everybody's: it is left as it was.
    with START, torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        detector = SmallDetector()
    optimiser = torch.optim.Adam(detector.parameters(), lr=settings.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, settings.rate, total_steps=settings.steps, pct_start=RISE)
    rounds = -(-settings.steps * settings.batch // settings.images)
    order = np.concatenate([generator.permutation(settings.images) for _ in range(rounds)])
    for step in range(settings.steps):
        rows = order[step * settings.batch : (step + 1) * settings.batch]
        loss = _loss(detector, arm, learned, rows, generator, warm=step < settings.warm)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return detector


def _loss(
    detector: SmallDetector,
    arm: Arm,
    learned: Lesson,
    rows: npt.NDArray[np.int64],
    generator: np.random.Generator,
    *,
    warm: bool,
) -> Tensor:
    shown = as_seen(learned.pictures[rows])
    said = detector(shown)
    owner = learned.targets.owner[rows].ravel()
    asked = torch.from_numpy(owner != UNASKED)
    speaks = torch.from_numpy((owner >= 0).astype(np.float32))
    found = functional.binary_cross_entropy_with_logits(said.objectness[asked], speaks[asked], reduction="sum")

    # One cell for each object, another one in every step: boxes cost time, and neighbours say the same.
    cells = generator.permutation(np.flatnonzero(owner >= 0))
    objects, first = np.unique(owner[cells], return_index=True)
    at, which = torch.from_numpy(cells[first]), torch.from_numpy(objects)
    label_logits, truth, labels = said.label_logits[at], learned.truth[which], learned.labels[which]
    boxes, log_std = detector.refine(shown, at // CELLS**2, said.boxes[at])
    chosen = Chosen(boxes, log_std, label_logits, truth, learned.pixels[which], labels)
    rough = (said.boxes[at] - truth).abs().sum(1).mean()
    weight = ROUGH_WEIGHT if warm else arm.weight
    return (
        OBJECT_WEIGHT * found / len(objects)
        + functional.cross_entropy(label_logits, labels)
        + ROUGH_WEIGHT * rough.float()
        + weight * box_loss(arm, chosen, warm=warm)
    )


# --- One arm and one seed: trained, looked at, measured ---


def measure_arm(arm: Arm, seed: int, settings: Settings) -> dict[str, float]:
    """Train an arm and return what is measured of it on test scenes."""
    scenes, found, sigma = found_by(arm, seed, settings)
    return {**measure_found(scenes, found, threads=1), "one_sigma": sigma}


def found_by(arm: Arm, seed: int, settings: Settings) -> tuple[Scenes, Detections, float]:
    """Return test scenes, what a trained arm detects in them, and the one sigma of its edges; NaN if it has none."""
    with one_thread():
        detector = train(arm.loss, arm.name if arm.loss else "l1", seed, settings)
        scenes, pictures = draw_pictures(settings.test, settings.test_seed(seed))
        found = find(detector, pictures)
        if arm.spread == "learned":
            return scenes, found, float("nan")
        if arm.spread == "none":
            return scenes, with_sigma(found, None), float("nan")
        validation, others = draw_pictures(settings.validation, settings.validation_seed(seed))
        sigma = best_sigma(validation, find(detector, others))
        return scenes, with_sigma(found, sigma), sigma


@lru_cache(maxsize=64)
def train(loss: str, name: str, seed: int, settings: Settings) -> SmallDetector:
    """Return a trained detector; arms that differ only in what becomes of it share it."""
    return fit(find_arm(name), seed, settings)


@lru_cache(maxsize=4)
def draw_pictures(count: int, seed: int) -> tuple[Scenes, npt.NDArray[np.uint8]]:
    """Return scenes and their pictures, which all arms of a seed share."""
    return pictures_of(count, seed)
