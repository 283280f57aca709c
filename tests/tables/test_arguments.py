"""Wrong arguments and values in Python: one line that names the argument or the row, and what to do."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import probox
from probox import Convention, Detections, Evaluator, GroundTruth, InputError, Masks
from probox.tables.dataset import Dataset

TRUTH = GroundTruth.from_boxes(["cup", "dog"], {1: (60, 50), 2: (60, 50)}, [1, 2, 2], [[10, 15, 40, 35]] * 3, [0, 1, 1])
BOXES = [[10, 15, 40, 35], [5, 5, 25, 30], [7, 8, 9, 10]]


def found(**changes: Any) -> Detections:
    columns: dict[str, Any] = {
        "classes": ["cup", "dog"], "image_ids": [1, 2, 2], "boxes": BOXES, "label_probs": [[0.7, 0.2]] * 3,
    }  # fmt: skip
    return Detections(**(columns | changes))


def truth(**changes: Any) -> GroundTruth:
    columns: dict[str, Any] = {
        "dataset": Dataset(classes=["cup", "dog"], image_ids=[1, 2], widths=[60, 60], heights=[50, 50]),
        "image_rows": [0, 1], "labels": [0, 1], "boxes": BOXES[:2],
        "masks": Masks.from_boxes(np.array([[1, 1, 2, 2]] * 2, np.int32)), "ids": [70, 80],
    }  # fmt: skip
    return GroundTruth(**(columns | changes))


def from_boxes(**changes: Any) -> GroundTruth:
    arguments: dict[str, Any] = {
        "classes": ["cup"], "images": {7: (64, 48)}, "object_image": [7], "boxes": [[1, 2, 3, 4]], "labels": [0],
    }  # fmt: skip
    return GroundTruth.from_boxes(**(arguments | changes))


def scored(**options: Any) -> Any:
    return probox.evaluate(TRUTH, found(), **options)


ORDER = r"the order is evaluate\(truth, detections\)"
ARGUMENTS: dict[str, tuple[Callable[[], Any], str]] = {
    "several detections": (lambda: probox.evaluate(TRUTH, [found(), found()]), "a list of 2; call evaluate for each"),
    "swapped tables": (
        lambda: probox.evaluate(found(), TRUTH),
        rf"expected argument `truth` to be GroundTruth, but got Detections; {ORDER}",
    ),
    "truth twice": (
        lambda: probox.evaluate(TRUTH, TRUTH),
        rf"expected argument `detections` to be Detections, but got GroundTruth; {ORDER}",
    ),
    "a path for truth": (
        lambda: Evaluator(["cup", "dog"]).update("truth.json", found()),
        r"expected argument `truth` to be GroundTruth, but got str; read it first with probox.read_truth\(path\)",
    ),
    "a path for detections": (
        lambda: Evaluator(["cup", "dog"]).update(TRUTH, Path("found.json")),
        r"`detections` to be Detections, but got PosixPath; read it first with probox.read_detections\(path, truth",
    ),
    "nothing": (lambda: probox.evaluate(None, found()), "argument `truth` to be GroundTruth, but got NoneType"),
    "an updated evaluator": (
        lambda: Evaluator(["cup", "dog"]).update(found(), TRUTH),
        r"expected argument `truth` to be GroundTruth, but got Detections; the order is update\(truth, detections\)",
    ),
    "merging a result": (lambda: Evaluator(["cup"]).merge(scored()), "argument `other` to be Evaluator, but got Eval"),
    "classes of an evaluator": (lambda: Evaluator("cup"), "`classes` to be a sequence of names, but got str; write"),
    "mAP of swapped tables": (
        lambda: probox.average_precision(found(), TRUTH),
        r"`truth` to be GroundTruth, but got Detections; the order is",
    ),
    "LRP of a path": (lambda: probox.lrp("truth.json", found()), "`truth` to be GroundTruth, but got str; read it"),
    "a path for truth when reading": (
        lambda: probox.read_detections("found.json", "truth.json"),
        r"expected argument `truth` to be GroundTruth, but got str; read it first with probox.read_truth\(path\)",
    ),
    "swapped when reading": (
        lambda: probox.read_detections(TRUTH, "found.json"),
        r"expected argument `path` to be a path, but got GroundTruth; the order is read_detections\(path, truth\)",
    ),
    "a number for a path": (lambda: probox.read_truth(0), "expected argument `path` to be a path, but got int"),
    "a convention of a number": (
        lambda: scored(convention=3),
        "`convention` to be a name or a Convention, but got int",
    ),
    "an unknown convention": (lambda: scored(convention="papre"), "one of reference, paper, challenge, got 'papre'"),
    "a path to nowhere": (lambda: probox.evaluate("nowhere.json", found()), "nowhere.json: no such file"),
    "measures between semicolons": (
        lambda: scored(measures="pdq;map"),
        "measures to be some of .* got 'pdq;map'; write measures=\"pdq,nll\" or",
    ),
    "a measure off by a letter": (lambda: scored(measures="pdq,enrgy"), "got 'enrgy'; did you mean energy?"),
    "no measures": (lambda: scored(measures=()), "expected measures to be some of pdq, map, lrp"),
    "no threads": (lambda: scored(threads=0), "expected threads to be a whole number from 1 to 4096, got 0; leave it"),
    "threads in text": (lambda: scored(threads="2"), "expected threads to be a whole number from 1 to 4096, got '2'"),
    "a threshold in text": (
        lambda: Convention.preset("paper", label_threshold="0.5"),
        "label_threshold to be a number, \"auto\" or None, got '0.5'",
    ),
    "a flag in text": (lambda: Convention(box_truth="no"), "expected box_truth to be True or False, got 'no'"),
    "a number for a filter": (lambda: Convention(object_filter=1), "object_filter to be True or False or None, got 1"),
    "half a pixel": (lambda: Convention(min_width=12.5), "expected min_width to be a whole number, got 12.5"),
    "an infinite quality": (lambda: Convention(min_quality=math.inf), "expected min_quality to be finite, got inf"),
    "no number": (lambda: Convention(snap_zero=math.nan), "expected snap_zero to be finite, got nan"),
    "a threshold that is none": (lambda: Convention(label_threshold=math.nan), "label_threshold between 0 and 1"),
    "a flag for a number": (lambda: Convention(label_weight=True), "expected label_weight to be a number, got True"),
    "a threshold that is nothing": (
        lambda: scored().at_threshold(None),
        'threshold to be a number between 0 and 1 or "auto", got No',
    ),
    "saving nowhere": (lambda: scored().save(None), "`folder` to be a path, but got NoneType"),
    "loading nothing": (lambda: probox.Evaluation.load(5), "`folder` to be a path, but got int"),
    "names for columns": (
        lambda: GroundTruth.from_masks(["cup"], [(1, [np.ones((4, 4), bool)], ["cup"])]),
        r"image 1: expected the column of a class, but got 'cup'; count in classes",
    ),
    "writing, swapped": (lambda: probox.write_parquet(TRUTH, "t.parquet"), "`path` to be a path, but got GroundTruth"),
    "writing a result": (
        lambda: probox.write_parquet("t.parquet", scored()),
        "`table` to be Detections or GroundTruth, but got Evalu",
    ),
}

COLUMNS: dict[str, tuple[Callable[[], Any], str]] = {
    "classes in one text": (lambda: found(classes="cd"), "`classes` to be a sequence of names, but got str"),
    "classes of numbers": (lambda: found(classes=[1, 2]), r"`classes` to hold names, but got int \(1\)"),
    "image ids of text": (lambda: found(image_ids=["a", "b", "c"]), "expected image_ids to be numbers"),
    "one image id": (lambda: found(image_ids=7), "expected image_ids to be a list, but got one int64; give a list"),
    "image ids with fractions": (lambda: found(image_ids=[1.5, 2, 2]), "expected image_ids to be whole numbers"),
    "image ids beyond int64": (lambda: found(image_ids=[1, 2, 2**63]), "expected image_ids to be whole numbers"),
    "transposed boxes": (
        lambda: found(boxes=np.transpose(BOXES)),
        "expected boxes of shape 3 x 4, but got 4 x 3; transpose it",
    ),
    "one box": (lambda: found(boxes=BOXES[0]), "expected boxes of shape 3 x 4, but got 4; give a list of rows"),
    "probabilities in one row": (
        lambda: found(label_probs=[0.7, 0.2, 0.1]),
        "expected label_probs of shape 3 x 2, but got 3; give a list of rows",
    ),
    "variances for covariances": (
        lambda: found(covariances=np.ones((3, 4))),
        "expected covariances of shape 3 x 2 x 2 x 2, but got 3 x 4",
    ),
    "too few heatmaps": (lambda: found(heatmaps=[None]), "one heatmap .* per detection, but got 1 for 3 detections"),
    "heatmaps of lists": (
        lambda: found(heatmaps=[[[0.5]], None, None]),
        r"heatmaps\[0\] to be an array or None, but got",
    ),
    "labels beyond classes": (
        lambda: found(labels=[0, 1, 2]),
        "image 2: detection 1: expected labels from 0 to 1, but got 2",
    ),
    "images in a list": (lambda: from_boxes(images=[7]), "`images` to be Mapping, but got list; give a dictionary"),
    "images without sizes": (lambda: from_boxes(images={7: 64}), "width and height of images"),
    "images of three sizes": (lambda: from_boxes(images={7: (64, 48, 3)}), "width and height of images of shape 1 x 2"),
    "boxes for images": (
        lambda: from_boxes(object_image=[[1, 2, 3, 4]], boxes=[7]),
        "expected object_image of shape N",
    ),
    "transposed truth": (
        lambda: from_boxes(object_image=[7] * 3, boxes=np.transpose(BOXES), labels=[0] * 3),
        "expected boxes of shape N x 4, but got 4 x 3; transpose it",
    ),
    "labels of names": (lambda: from_boxes(labels=["cup"]), "expected labels to be numbers"),
    "an unknown image": (
        lambda: from_boxes(object_image=[8]),
        "image 8: unknown image of an object; list every",
    ),
    "masks in a dictionary": (
        lambda: GroundTruth.from_masks(["cup"], {1: []}),
        "`masks` to be a list, but got dict; give",
    ),
    "masks without an id": (
        lambda: GroundTruth.from_masks(["cup"], [np.ones((3, 3), bool)]),
        "expected an image id, its masks and",
    ),
    "masks of arrays": (
        lambda: truth(masks=np.ones((2, 9, 9))),
        "`masks` to be Masks, but got ndarray; use GroundTruth",
    ),
}


def at(row: int, value: float, columns: int = 1) -> np.ndarray:
    """Return sizes (two columns) or numbers that are sound but for one."""
    sizes = np.diff(np.array(BOXES, float).reshape(-1, 2, 2), axis=1)[:, 0] if columns == 2 else np.full((3, 1), 0.5)
    sizes[row, -1] = value
    return sizes if columns == 2 else sizes[:, 0]


BAD = (np.nan, np.inf, -np.inf, -3.0)
VALUES: dict[str, tuple[Callable[[], Any], str]] = {
    **{
        f"height {v}": (lambda v=v: found(extents=at(2, v, 2)), "image 2: detection 1: expected width and h")
        for v in BAD
    },
    **{f"score {v}": (lambda v=v: found(scores=at(1, v)), "image 2: detection 0: expected a .*score") for v in BAD},
    "a score of 2": (
        lambda: found(scores=at(0, 2.0)),
        "image 1: detection 0: expected a score between 0 and 1, but got 2",
    ),
    "a width of another box": (
        lambda: found(extents=at(0, 90.0, 2)),
        "image 1: detection 0: expected the box's width and height .*leave sizes out",
    ),
    **{f"an area of {v}": (lambda v=v: truth(areas=[4, v]), "image 2: object 80: expected an area that") for v in BAD},
    **{
        f"an object's width of {v}": (
            lambda v=v: truth(extents=[[30, 20], [v, 25]]),
            "image 2: object 80: expected width",
        )
        for v in BAD
    },
    "an object's size of another box": (
        lambda: truth(extents=[[30, 20], [20, 99]]),
        "object 80: expected the box's width",
    ),
    "an inverted object": (
        lambda: truth(boxes=[BOXES[0], [9, 9, 3, 3]]),
        "image 2: object 80: expected x1 <= x2 and y1",
    ),
    "an object far away": (lambda: truth(boxes=[[0, 0, 1, 2e9], BOXES[1]]), "image 1: object 70: expected box corners"),
    "an infinity of from_boxes": (
        lambda: from_boxes(boxes=[[0, 0, 1, np.inf]]),
        "image 7: object 0: expected box corners",
    ),
    "a class of an object": (lambda: truth(labels=[0, 2]), "image 2: object 80: expected a class below 2, but got 2"),
}


@pytest.mark.parametrize(("call", "message"), [*ARGUMENTS.values(), *COLUMNS.values(), *VALUES.values()],
                         ids=[*ARGUMENTS, *COLUMNS, *VALUES])  # fmt: skip
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)
    assert "--" not in str(raised.value)


def test_rounding_of_sizes_is_allowed() -> None:
    assert len(found(extents=at(1, 25 + 1.4, 2))) == 3
    assert len(found(scores=at(1, 1.0009))) == 3
