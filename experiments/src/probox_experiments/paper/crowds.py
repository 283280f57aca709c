"""Images that are more or less crowded, all else equal: where it matters who is assigned to whom."""

from __future__ import annotations

import numpy as np

from probox.errors import InputError
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks
from probox_experiments.simulate import Seed

__all__ = ["CROWDS", "crowded_truth"]

CROWDS = (1, 4, 16, 48)
"""Objects per image that experiments go through; mAP, which takes 100 detections of a class, takes two of each."""


def crowded_truth(objects: int, *, in_all: int = 192, side: int = 24, image: int = 200, seed: Seed = 0) -> GroundTruth:
    """Return square objects anywhere in square images, over each other if it so happens.

    They are of the first of two classes; detectors may say that they are of the other.

    Parameters
    ----------
    objects : int
        How many in each image.
    in_all : int
        How many there are at least: the fewer in an image, the more images.
    side, image : int
        Width and height of objects and images.
    seed : int or sequence of int
        The same seed gives the same truth.

    Examples
    --------
    >>> crowded_truth(48)
    GroundTruth(4 images, 192 objects, 2 classes)
    """
    if objects < 1 or in_all < 1:
        raise InputError(f"expected at least one object, but got {objects} per image and {in_all} in all")
    images = -(-in_all // objects)
    low = np.random.default_rng(seed).integers(0, image - side + 1, (images * objects, 2))
    boxes = np.concatenate([low, low + side - 1], axis=1).astype(np.int32)
    return GroundTruth(
        dataset=Dataset(
            classes=("thing", "other thing"),
            image_ids=np.arange(1, images + 1),
            widths=np.full(images, image),
            heights=np.full(images, image),
        ),
        image_rows=np.repeat(np.arange(images), objects),
        labels=np.zeros(len(boxes), np.int32),
        boxes=boxes + np.array([0.0, 0.0, 1.0, 1.0]),
        masks=Masks.from_boxes(boxes),
    )
