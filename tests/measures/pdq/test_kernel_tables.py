"""What the kernel is handed: columns that do not fit each other are refused, and limits are Python's."""

from __future__ import annotations

import numpy as np
import pytest

from probox import Convention, Detections, GroundTruth, InputError, _core, evaluate
from probox.measures.pdq import kernel
from probox.measures.pdq.kernel import settings_of
from probox.tables.label_probs import LabelProbs


def columns() -> dict[str, dict[str, object]]:
    """Two images of 9 x 8 pixels: an object of five pixels and a Gaussian box in the first, a heatmap in the second."""
    return {
        "images": {"widths": np.array([9, 9], np.int32), "heights": np.array([8, 8], np.int32)},
        "objects": {
            "offsets": np.array([0, 1, 1]),
            "labels": np.array([1], np.int32),
            "mask_boxes": np.array([[1, 2, 3, 4]], np.int32),
            "mask_pixels": np.array([5]),
            "run_offsets": np.array([0, 3]),
            "runs": np.array([[2, 1, 3], [3, 1, 2], [4, 2, 4]], np.int32),
        },
        "found": {
            "offsets": np.array([0, 1, 2]),
            "boxes": np.array([[1.0, 2, 3, 4], [0, 0, 8, 7]]),
            "covariances": np.tile(np.eye(2), (2, 2, 1, 1)),
            "kinds": np.array([_core.GAUSSIAN, _core.HEATMAP], np.uint8),
            "label_probs": LabelProbs([[0.1, 0.9], [0.5, 0.5]]),
            "heatmaps": [np.ones((8, 9), np.float32)],
            "heatmap_rows": np.array([1]),
            "heatmap_corners": np.array([[0, 0]], np.int32),
            "mask_boxes": np.array([[1, 2, 3, 4], [0, 0, -1, -1]], np.int32),
            "mask_pixels": np.array([5, 0]),
            "run_offsets": np.array([0, 3, 3]),
            "runs": np.array([[2, 1, 3], [3, 1, 2], [4, 2, 4]], np.int32),
        },
    }


def score(tables: dict[str, dict], convention: Convention | None = None, max_pairs: int = 100) -> tuple:
    return _core.score_images(
        settings_of(convention or Convention()),
        _core.Images(**tables["images"]),
        _core.Objects(**tables["objects"]),
        _core.Found(**tables["found"] | {"label_probs": tables["found"]["label_probs"].table}),
        max_pairs=max_pairs,
        threads=1,
    )


def test_what_the_kernel_hands_out_is_read_only() -> None:
    assert not any(column.flags.writeable for column in score(columns()))


@pytest.mark.parametrize(
    ("sizes", "ends"),
    [
        ([], [5]),
        ([4, 6], [7]),
        ([4, 6, 1, 20, 3, 7, 1], [7, 8, 9, 11, 12]),
        ([20, 0], [6, 7]),
        ([20, 20], [6, 7]),
    ],
)
def test_heatmaps_are_taken_as_many_as_fit_or_alone(
    sizes: list[int], ends: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "_MAP_BYTES", 10)
    assert kernel._split(5, sizes) == ends


CASES = [(table, name) for table, fields in columns().items() for name in fields]


@pytest.mark.parametrize(("table", "name"), CASES)
def test_a_column_that_is_too_short_is_refused(table: str, name: str) -> None:
    broken = columns()
    broken[table][name] = broken[table][name][:-1]
    with pytest.raises(ValueError, match=r"\w"):
        score(broken)


def test_a_mask_must_be_given() -> None:
    broken = columns()
    none = {"mask_boxes": np.zeros((0, 4), np.int32), "mask_pixels": np.zeros(0, np.int64)}
    none |= {"run_offsets": np.zeros(1, np.int64), "runs": np.zeros((0, 3), np.int32)}
    broken["found"] |= none
    assert len(score(broken)[0]) > 0
    broken["found"]["kinds"] = np.array([_core.MASK, _core.HEATMAP], np.uint8)
    with pytest.raises(ValueError, match="a mask is missing"):
        score(broken)


@pytest.mark.parametrize(
    ("table", "name", "value", "reason"),
    [
        ("images", "widths", np.array([-20, 9], np.int32), "pixels a side"),
        ("images", "heights", np.array([8, 4], np.int32), "heatmap leaves"),
        ("images", "widths", np.array([3, 9], np.int32), "outside its image"),
        ("objects", "runs", np.array([[4, 2, 4], [3, 1, 2], [2, 1, 3]], np.int32), "sorted"),
        ("objects", "runs", np.array([[2, 1, 3], [3, 1, 2], [4, 2, 5]], np.int32), "leaves its mask"),
        ("objects", "labels", np.array([2], np.int32), "class is out of range"),
        ("objects", "offsets", np.array([0, 2, 1]), "offsets of objects"),
        ("objects", "mask_pixels", np.array([0]), "empty"),
        ("found", "offsets", np.array([0, 3, 2]), "offsets of detections"),
        ("found", "covariances", np.zeros((2, 2, 1, 1)), "covariances"),
        ("found", "covariances", np.zeros((0, 2, 2, 2)), "without covariance"),
        ("found", "kinds", np.array([4, 2], np.uint8), "unknown kind"),
        ("found", "runs", np.array([[4, 2, 4], [3, 1, 2], [2, 1, 3]], np.int32), "sorted"),
        ("found", "mask_boxes", np.array([[1, 2, 3, 8], [0, 0, -1, -1]], np.int32), "outside its image"),
        ("found", "mask_boxes", np.array([[1, 2, 3, 4], [0, 0, 0, 0]], np.int32), "empty mask has pixels"),
        ("found", "mask_pixels", np.array([5, 1]), "outside its image"),
        ("found", "kinds", np.array([2, 2], np.uint8), "heatmap is missing"),
        ("found", "heatmaps", [np.ones((8, 9))], "precision"),
        ("found", "heatmaps", [np.ones((9, 8), np.float32)], "heatmap leaves its image"),
        ("found", "heatmap_corners", np.array([[1, 0]], np.int32), "heatmap leaves its image"),
        ("found", "heatmap_corners", np.array([[0, -1]], np.int32), "heatmap leaves its image"),
        ("found", "heatmap_rows", np.array([2]), "row out of range"),
    ],
)
def test_values_that_would_lead_astray_are_refused(table: str, name: str, value: object, reason: str) -> None:
    broken = columns()
    broken[table][name] = value
    with pytest.raises(ValueError, match=reason):
        score(broken)


def test_a_user_is_told_of_too_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = GroundTruth.from_boxes(["cup"], dict.fromkeys((3, 5), (20, 20)), [5, 5, 5], [[2, 2, 9, 9]] * 3, [0] * 3)
    found = Detections(classes=["cup"], image_ids=[3, 5, 5], boxes=[[2, 2, 10, 10]] * 3, label_probs=np.ones((3, 1)))
    monkeypatch.setattr(kernel, "MAX_PAIRS", 1 << 2)
    expected = r"^image 5: 3 objects and 2 detections make more than 2\^2 pairs with a quality"
    with pytest.raises(InputError, match=expected):
        evaluate(truth, found)
    monkeypatch.setattr(kernel, "MAX_PAIRS", 6)
    assert len(evaluate(truth, found).pairs) == 6
