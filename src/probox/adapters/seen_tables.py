"""Images of a metric as tables: objects and detections of all of them, with sizes where nobody says them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from probox.adapters.dictionaries import (
    NO_CLASS,
    Found,
    Naming,
    expect_entries,
    image_id_of,
    of_image,
    read_found,
    split_background,
)
from probox.adapters.images import stacked
from probox.adapters.targets import Target, read_target
from probox.errors import InputError
from probox.tables.box_formats import BoxFormat, check_box_format
from probox.tables.boxes import extents_of
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.distributions import AboveOne, check_above_one
from probox.tables.groundtruth import GroundTruth

__all__ = ["Reading", "Seen", "check_pixels", "detections_of", "large_enough", "numbered"]

REACH = 8.0
"""Standard deviations beyond which a corner's Gaussian has nothing that a number would show."""
FAR = 2000.0
"""Pixels beyond which no made-up image reaches for a Gaussian's sake: one unsure of everything fills no photo."""
LARGEST = 1 << 30
"""The widest image that is made up where nobody says how wide it is."""
MANY = 5
"""So many predictions between 0 and 1, and none beyond, are no accident."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seen:
    """One image: its objects and what was found."""

    target: Target
    found: Found

    @property
    def image_id(self) -> int | None:
        return self.target.image_id


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """How dictionaries are read: what labels count in, and what boxes are."""

    naming: Naming
    box_format: BoxFormat
    covariance_format: BoxFormat | None
    above_one: AboveOne

    @classmethod
    def of(cls, classes: Any, first_label: Any, **choices: Any) -> Reading:
        """Return how a metric reads: labels count from 0, unless background comes first or `first_label` says 1."""
        names, background = (None, None) if classes is None else split_background(classes)
        if first_label not in (None, 0, 1):
            raise InputError(f"expected first_label to be 0 or 1, but got {first_label!r:.40}")
        if first_label and background == "first":
            raise InputError(
                f"classes begin with {classes[0]!r}, so labels count from it and its number is 0",
                remedy="leave first_label out, or the background",
            )
        plain = not first_label and background is None
        naming = Naming(
            names=names,
            first_label=1 if first_label or background == "first" else 0,
            background=background,
            zero="leave out first_label=1 if labels count from 0" if first_label else "leave background out",
            next_beyond="if they begin at 1, as torchvision's do, give first_label=1" if plain else None,
        )
        check_box_format(choices["box_format"])
        check_above_one(choices["above_one"])
        return cls(naming=naming, **choices)

    def read(self, prediction: Any, target: Any, entry: int) -> Seen:
        """Return what one image's two dictionaries say."""
        expect_entries(prediction, f"preds[{entry}]", ("boxes", "scores", "labels"))
        expect_entries(target, f"target[{entry}]", ("boxes", "labels"))
        image = image_id_of(target)
        with of_image(image, f"update's entry {entry}" if image is None else None):
            return Seen(
                target=read_target(target, self.naming, self.box_format),
                found=read_found(prediction, self.naming, self.box_format, self.covariance_format),
            )


def numbered(images: Sequence[Seen]) -> list[int]:
    """Return the ids of images; those without get numbers that nobody has."""
    taken = [seen.image_id for seen in images if seen.image_id is not None]
    free = max(taken, default=-1) + 1
    ids = []
    for seen in images:
        ids.append(free if seen.image_id is None else seen.image_id)
        free += seen.image_id is None
    return ids


def large_enough(seen: Seen, least_variance: float) -> tuple[int, int]:
    """Return a width and height beyond which there is nothing of an image's boxes and their Gaussians."""
    far = np.ones(2)
    if len(seen.target.boxes):
        far = np.maximum(far, seen.target.boxes[:, 2:].max(axis=0))
    rows = seen.found.rows
    if len(rows.boxes):
        # The variances of the corner's x and y; a top-left corner far from certain reaches as far as it does.
        var = np.full((len(rows.boxes), 2, 2), least_variance)
        if rows.covariances is not None:
            var = np.maximum(var, np.diagonal(rows.covariances, axis1=2, axis2=3))
        corners = rows.boxes.reshape(-1, 2, 2)
        with np.errstate(invalid="ignore", over="ignore"):  # tables reject what is no number, in words
            reach = corners + np.minimum(REACH * np.sqrt(np.maximum(var, 0.0)), FAR)
        far = np.maximum(far, np.nan_to_num(reach.max(axis=(0, 1)), posinf=LARGEST))
    wide, high = np.minimum(np.ceil(far) + 2, LARGEST).astype(np.int64).tolist()
    return wide, high


def detections_of(dataset: Dataset, images: Sequence[Seen], above_one: AboveOne) -> Detections:
    """Return the detections of images, which are in the order of the data set."""
    nameless = sum(seen.found.nameless for seen in images)
    notes = (f"{nameless} detections of {NO_CLASS}, which is no class, were left out",) if nameless else ()
    rows = [seen.found.rows for seen in images]
    ids = dataset.image_ids.tolist()
    masks = [seen.found.masks for seen in images]
    found = stacked(rows, ids, dataset.classes, pixels=False, above_one=above_one, masks=masks, notes=notes)
    extents = [
        extents_of(seen.found.rows.boxes) if seen.found.extents is None else seen.found.extents for seen in images
    ]
    return found.replace(extents=np.concatenate([np.zeros((0, 2)), *extents]))


def check_pixels(truth: GroundTruth, found: Detections) -> None:
    """Raise if all predictions lie between 0 and 1 while objects do not."""
    if len(found) >= MANY and len(truth) and found.boxes.max() <= 1.0 < truth.boxes.max():
        raise InputError(
            "the predictions' boxes lie between 0 and 1, the targets' do not",
            remedy="multiply predictions by the image's width and height",
        )
