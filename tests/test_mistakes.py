"""Common mistakes in arrays end in correct numbers, an error or a warning; docs/faq.md lists the messages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluation.input_checks.mistakes import (
    annotated_twice,
    masks_of_half_the_size,
    masks_turned,
    mirrored,
    upside_down,
)
from tests.evaluation.input_checks.test_input_checks import CLASSES, world
from tests.tensors import Tensor

from probox import Detections, GroundTruth, InputError, evaluate

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "faq.md").read_text(encoding="utf-8")
TABLE = PAGE.split("| message contains |")[1].split("\n\n")[0]
LISTED = [part for cell in re.findall(r"^\| (`.+?`) \|", TABLE, re.M) for part in re.findall("`(.+?)`", cell)]
"""Parts of messages in the table of detected mistakes."""

TRUTH, FOUND = world(images=120)
SIGMAS = np.sqrt(np.diagonal(FOUND.covariances, axis1=2, axis2=3).reshape(-1, 4))
SIZES = TRUTH.dataset.shapes[TRUTH.dataset.rows_of(FOUND.image_ids)].astype(float)
RIGHT: dict[str, Any] = {
    "boxes": FOUND.boxes,
    "scores": FOUND.scores,
    "labels": FOUND.labels,
    "classes": CLASSES,
    "image_ids": FOUND.image_ids,
    "std": SIGMAS,
}


def full(sigmas: np.ndarray) -> np.ndarray:
    """Return 4 x 4 covariances of x1, y1, x2, y2."""
    return sigmas[:, :, None] ** 2 * np.eye(4)


def summary(truth: GroundTruth = TRUTH, **changes: Any) -> dict[str, float]:
    return evaluate(truth, Detections.from_scores(**RIGHT | changes)).summary()


def said(truth: GroundTruth = TRUTH, **changes: Any) -> str:
    """Return what a user reads: the error, or the warnings beside the numbers."""
    try:
        found = Detections.from_scores(**RIGHT | changes)
        result = evaluate(truth, found, measures=("map",))
    except InputError as error:
        return str(error)
    return "\n".join(map(str, (*result.notes, *result.warnings)))


WITHOUT_SIGMAS: dict[str, Any] = {"std": None}
XYWH = np.concatenate([FOUND.boxes[:, :2], FOUND.extents], axis=1)
CENTRES = np.concatenate([FOUND.boxes[:, :2] + FOUND.extents / 2, FOUND.extents], axis=1)
NORMALISED = FOUND.boxes / np.tile(SIZES, 2)
MIRRORED = mirrored(TRUTH, FOUND).boxes

MISTAKES: dict[str, tuple[Any, ...]] = {
    "x, y, width, height given as corners": ({"boxes": XYWH[:, :4]}, "expected x1 <= x2"),
    "corners given as x, y, width, height": (
        {"box_format": "xywh", **WITHOUT_SIGMAS},
        "boxes look like [x1, y1, x2, y2]",
        "expected [x, y, width, height]",
    ),
    "centres given as corners of xywh": (
        {"boxes": CENTRES, "box_format": "xywh", **WITHOUT_SIGMAS},
        "boxes look like [center x",
    ),
    "y before x": ({"boxes": FOUND.boxes[:, [1, 0, 3, 2]]}, "y came before x"),
    "shares of the image given as pixels": ({"boxes": NORMALISED, **WITHOUT_SIGMAS}, "fractions of the image"),
    "pixels given as shares of the image": ({"normalised": True, "image_sizes": TRUTH}, "leave normalised out"),
    "boxes mirrored left to right": ({"boxes": MIRRORED}, "mirrored left to right"),
    "boxes upside down": ({"boxes": upside_down(TRUTH, FOUND).boxes}, "mirrored upside down"),
    "boxes in pixels of the detector's input": (
        {"boxes": NORMALISED * 640, **WITHOUT_SIGMAS},
        "pixels of a detector input",
        "640 x 640",
    ),
    "image ids as text": (
        {"image_ids": [f"{i:012}" for i in FOUND.image_ids]},
        "expected image_ids to be whole numbers",
    ),
    "images counted from 0 instead of their ids": (
        {"image_ids": np.searchsorted(TRUTH.image_ids, FOUND.image_ids)},
        "missing from the ground truth were excluded",
    ),
    "one image id for each image instead of each box": (
        {"image_ids": TRUTH.image_ids},
        "expected one image id per box",
    ),
    "labels that count from 1": ({"labels": FOUND.labels + 1}, "they seem to count from 1"),
    "names of classes off by one": ({"classes": (*CLASSES[1:], CLASSES[0])}, "have its class"),
    "class ids shifted from some id on": (
        {"classes": (*CLASSES[:4], *CLASSES[5:], CLASSES[4])},
        "class ids look shifted",
    ),
    "names of classes that the truth does not have": (
        {"classes": [f"n{i}" for i in range(10)]},
        "a class of the ground truth",
    ),
    "COCO's category ids given as labels": ({"labels": FOUND.labels * 9 + 1}, "give category_ids="),
    "labels as text numbers": ({"labels": [str(label) for label in FOUND.labels]}, "give numbers as numbers"),
    "scores in per cent": ({"scores": 100 * FOUND.scores}, "divide percentages by 100"),
    "scores divided by 100": ({"scores": FOUND.scores / 100}, "may have been divided by 100"),
    "all scores 1": (
        {"scores": np.ones(len(FOUND)), "boxes": np.where(np.arange(len(FOUND))[:, None] % 4, FOUND.boxes, MIRRORED)},
        "have the score 1",
    ),
    "logits": (
        {"scores": np.log(FOUND.scores / (1 - FOUND.scores)) - 1},
        "these look like logits",
        "softmax or sigmoid",
    ),
    "a sigmoid per class, refused": (
        {"scores": np.full((len(FOUND), 10), 0.3), "labels": None, "above_one": "refuse"},
        "expected label probabilities to add up to at most 1",
        'above_one="limit"',
    ),
    "standard deviations given as variances": (
        {"std": None, "var": SIGMAS},
        "the values look like standard deviations",
        "square them",
    ),
    "variances given as standard deviations": (
        {"std": SIGMAS**2},
        "the values look like squared variances",
        "take the square root",
    ),
    "standard deviations in fractions of the image": (
        {"std": SIGMAS / np.tile(SIZES, 2)},
        "covariances look divided by the image's size",
        "in square pixels",
    ),
    "precision matrices given as covariances": (
        {"std": None, "covariances": np.linalg.inv(full(SIGMAS))},
        "the values look like precision matrices",
        "invert them",
    ),
    "standard deviations and variances": ({"var": SIGMAS**2}, "expected at most one of covariances=, std= and var="),
    "log variances": ({"std": None, "var": 2 * np.log(SIGMAS) - 9}, "apply exp first"),
    "a matrix as standard deviations": ({"std": full(SIGMAS)}, "give matrices as covariances="),
    "4 x 4 covariances in the order x1, x2, y1, y2": (
        {"std": None, "covariances": full(SIGMAS[:, [0, 2, 1, 3]])},
        "follow their variances better if",
        "x1, x2, y1, y2",
    ),
    "4 x 4 covariances of unsaid numbers": (
        {"boxes": XYWH, "box_format": "xywh", "std": None, "covariances": full(SIGMAS)},
        "the format of the uncertainty is missing",
        "covariance_format",
    ),
    "a Cholesky factor as covariance": (
        {"std": None, "covariances": np.tril(np.ones((len(FOUND), 4, 4)))},
        "expected symmetric covariances",
        "L @ L.T",
    ),
    "NaN of a detector that diverged": (
        {"boxes": np.where(FOUND.boxes > 600, np.nan, FOUND.boxes)},
        "expected four finite box corners",
        "diverged",
    ),
    "detections joined twice": (
        {name: np.concatenate([RIGHT[name]] * 2) for name in ("boxes", "scores", "labels", "image_ids", "std")},
        "detections repeat another one",
    ),
    "annotations present twice": ({"truth": annotated_twice(TRUTH)}, "objects repeat another one"),
    "masks of another scale than boxes": ({"truth": masks_of_half_the_size(TRUTH)}, "one of them looks scaled"),
    "x and y of polygons exchanged": (
        {"truth": masks_turned(TRUTH)},
        "x and y of the masks look swapped",
        "write x before y",
    ),
    "nothing at all": (
        {"boxes": [], "scores": [], "labels": [], "image_ids": [], "std": None},
        "no detections left to score",
        "label threshold",
    ),
}
"""Wrong arguments, the part of the message by which the page lists them, and other parts, such as the fix."""

RIGHT_NUMBERS: dict[str, Callable[[], dict[str, float]]] = {
    "tensors on another device": lambda: summary(
        boxes=Tensor(FOUND.boxes), scores=Tensor(FOUND.scores), labels=Tensor(FOUND.labels), std=Tensor(SIGMAS)
    ),
    "labels as floating-point numbers": lambda: summary(labels=FOUND.labels.astype(np.float32)),
    "class names as labels": lambda: summary(labels=[CLASSES[label] for label in FOUND.labels]),
    "category ids with `category_ids=`": lambda: summary(
        labels=FOUND.labels * 9 + 1, category_ids=np.arange(10) * 9 + 1
    ),
    "variances with `var=`": lambda: summary(std=None, var=SIGMAS**2),
    "images without detections": lambda: evaluate(
        TRUTH,
        Detections.concatenate([part for _, part in Detections.from_scores(**RIGHT).by_image()]),
    ).summary(),
}
"""Unusual but valid input, as docs/faq.md lists it: the numbers are correct."""


def test_the_right_way_is_silent() -> None:
    assert said() == ""


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(mistake: str) -> None:
    changes, *words = MISTAKES[mistake]
    message = said(**changes)
    for part in words:
        assert part in message
    assert words[0] in LISTED


@pytest.mark.parametrize("name", RIGHT_NUMBERS)
def test_what_is_no_mistake_gives_the_right_numbers(name: str) -> None:
    got, wanted = RIGHT_NUMBERS[name](), summary()
    assert list(got) == list(wanted)
    np.testing.assert_allclose(list(got.values()), list(wanted.values()), rtol=1e-12)
    assert name in " ".join(PAGE.split())


def test_the_page_lists_them_all() -> None:
    assert sorted(LISTED) == sorted({words[0] for _, *words in MISTAKES.values()})
    assert len(MISTAKES) >= 25
