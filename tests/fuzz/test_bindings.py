"""The kernel refuses invalid arguments, whatever calls it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from probox import Convention, Detections, InputError, _core

from .bindings import FUNCTIONS, Call, _misaligned, recorded_calls

LEAST, MOST = -(2**63), 2**63 - 1


def test_every_function_is_covered() -> None:
    assert sorted(recorded_calls()) == FUNCTIONS


def changed(name: str, place: str | int, value: Any, which: int = 0) -> Call:
    """Return a recorded call with another argument: by name or position, or of a class it takes, ``Found.boxes``."""
    call = recorded_calls()[name][which]
    if isinstance(place, int):
        return Call(name, (*call.given[:place], value, *call.given[place + 1 :]), call.named)
    holder, dot, inner = place.partition(".")
    if not dot:
        assert place in call.named
        return Call(name, call.given, call.named | {place: value})
    given = [
        Call(part.name, part.given, part.named | {inner: value})
        if isinstance(part, Call) and part.name == holder
        else part
        for part in call.given
    ]
    return Call(name, tuple(given), call.named)


def argument(name: str, place: str | int) -> np.ndarray:
    """Return a copy of an array that a recorded call is given."""
    call = recorded_calls()[name][0]
    if isinstance(place, int):
        return call.given[place].copy()
    holder, dot, inner = place.partition(".")
    found = next(part for part in call.given if isinstance(part, Call) and part.name == holder) if dot else call
    return found.named[inner if dot else place].copy()


WHOLE: list[tuple[str, str | int, Any, str]] = [
    ("rasterise", "max_crossings", LEAST, "limits"),
    ("label_runs", 2, LEAST, "runs"),
    ("image_offsets", 1, 2**64 - 1, "fewer rows"),
    ("heatmap", "width", 2**31 - 1, "pixels a side"),
    ("heatmap", "box", np.full(4, np.nan), "finite box"),
    ("heatmap", "covariances", np.full((2, 2, 2), np.inf), "finite box"),
    ("match_boxes", "max_detections", LEAST, "limit of detections of at least 0"),
    ("pmb_nll", "min_probability", 0.75, "minimum probability up to 0.5"),
    ("Settings", "reach_sigmas", 1e12, "reach"),
    ("Settings", "min_probability", np.nan, "finite settings"),
    ("read_coco_truth", "max_side", MOST, "below 2"),
]

NUMBERS: list[tuple[str, str | int, Any, float, str]] = [
    ("rasterise", "piece_offsets", 1, 4, "offsets of pieces"),
    ("rasterise", "number_offsets", 1, 99, "offsets of numbers"),
    ("rasterise", "number_offsets", 1, -9, "offsets of numbers"),
    ("rasterise", "numbers", 0, np.nan, "corners of polygons"),
    ("rasterise", "numbers", 1, 1e300, "corners of polygons"),
    ("rasterise", "numbers", 15, 1e18, "run lengths"),
    ("rasterise", "numbers", 15, -1, "run lengths"),
    ("rasterise", "heights", 0, 0, "pixels a side"),
    ("rasterise", "box_pixels", (1, 0), -(2**31), "boxes of pixels"),
    ("format_rvc1", "offsets", 1, 100, "offsets of detections"),
    ("score_images", "Images.heights", 0, 2**31 - 1, "pixels a side"),
    ("score_images", "Found.boxes", (0, 2), np.nan, "box is not finite"),
    ("score_images", "Found.covariances", ..., np.nan, "covariance is not finite"),
    ("score_images", "Objects.mask_pixels", 0, MOST, "empty or outside"),
    ("match_boxes", "scores", 1, np.nan, "score of NaN"),
    ("mask_overlaps", "boxes", (0, 2), 2**31 - 1, "outside its image"),
    ("mask_overlaps", "pixels", 0, 0, "empty mask has pixels"),
    ("mask_overlaps", "offsets", 1, MOST, "run_offsets"),
    ("mask_overlaps", "runs", (0, 1), -(2**31), "leaves its mask's box"),
    ("mask_overlaps", "image_rows", 0, MOST, "rows of images"),
    ("score_order", 1, 0, np.nan, "score of NaN"),
    ("assign_pairs", "qualities", ..., 1e308, "from 0 to 1e100"),
    ("resampled_lrp", "weights", (0, 0), 2**31 - 1, "weights"),
    ("pmb_nll", "log_floors", 0, np.nan, "floor"),
]


@pytest.mark.parametrize(("name", "place", "value", "reason"), WHOLE)
def test_hostile_arguments_are_refused(name: str, place: str | int, value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        changed(name, place, value).run()


@pytest.mark.parametrize(("name", "place", "index", "value", "reason"), NUMBERS)
def test_hostile_numbers_are_refused(name: str, place: str | int, index: Any, value: float, reason: str) -> None:
    array = argument(name, place)
    array[index] = value
    with pytest.raises(ValueError, match=reason):
        changed(name, place, array).run()


LABELS: dict[str, Any] = {
    "rows": 2,
    "offsets": np.array([0, 2, 3]),
    "indices": np.array([0, 2, 1], np.int32),
    "values": np.full(3, 0.25, np.float32),
    "rest": np.zeros(2, np.float32),
    "sharing": np.ones(3, bool),
}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rows": 3}, "differ in length"),
        ({"rest": np.zeros(3, np.float32)}, "differ in length"),
        ({"values": np.zeros(2, np.float32)}, "differ in length"),
        ({"offsets": np.array([0, 2])}, "offsets of listed classes"),
        ({"offsets": np.array([0, 4, 3])}, "offsets of listed classes"),
        ({"indices": np.array([0, 3, 1], np.int32)}, "count in columns"),
        ({"indices": np.array([0, -1, 1], np.int32)}, "count in columns"),
        ({"indices": np.array([2, 0, 1], np.int32)}, "ascending order"),
        ({"indices": np.array([1, 1, 1], np.int32)}, "ascending order"),
        ({"offsets": np.zeros(0, np.int64)}, "one probability per row and class"),
        # 3 x 2^62 numbers are none in 64 bits.
        ({"offsets": np.zeros(0, np.int64), "values": np.zeros(0, np.float32), "rows": 2**62}, "fewer rows"),
    ],
)
def test_label_columns_that_do_not_fit_are_refused(changes: dict[str, Any], reason: str) -> None:
    assert _core.expand_labels(_core.LabelTable(**LABELS)).tolist() == [[0.25, 0.0, 0.25], [0.0, 0.25, 0.0]]
    for use in (_core.row_ranges, _core.best_labels, _core.expand_labels):
        with pytest.raises(ValueError, match=reason):
            use(_core.LabelTable(**LABELS | changes))


@pytest.mark.parametrize(("rows", "columns"), [([2], [0]), ([-1], [0]), ([0], [3]), ([0], [-1]), ([0, 1], [0])])
def test_places_beyond_the_labels_are_refused(rows: list[int], columns: list[int]) -> None:
    with pytest.raises(ValueError, match=r"out of range|one column per row"):
        _core.label_values(_core.LabelTable(**LABELS), np.array(rows), np.array(columns))


def test_hostile_overlaps_are_refused() -> None:
    calls = recorded_calls()["match_boxes"]
    which = next(number for number, call in enumerate(calls) if "overlap_objects" in call.named)
    own = calls[which].named
    twice = own["overlap_objects"].copy()
    first = int(np.flatnonzero(np.diff(own["overlap_offsets"]) > 1)[0])
    twice[own["overlap_offsets"][first] + 1] = twice[own["overlap_offsets"][first]]
    for place, value, reason in (
        ("overlap_objects", np.full_like(twice, MOST), "rows of objects"),
        ("overlap_objects", twice, "ascending objects"),
        ("overlap_offsets", own["overlap_offsets"][1:], "ascending offsets"),
        ("overlap_ious", own["overlap_ious"][1:], "overlaps of one length"),
        ("areas", None, "overlaps of one length"),
    ):
        with pytest.raises(ValueError, match=reason):
            changed("match_boxes", place, value, which).run()


@pytest.mark.parametrize("layout", ["misaligned", "transposed"])
def test_a_matrix_that_cannot_be_filled_in_place_is_refused(layout: str) -> None:
    matrix = np.zeros((9, 3), np.float32)
    matrix = _misaligned(matrix) if layout == "misaligned" else matrix.T.copy().T
    call = recorded_calls()["fill_rows_of_integers"][0]
    with pytest.raises((ValueError, TypeError)):
        Call(call.name, (matrix,), call.named).run()


def test_changes_after_the_tables_are_made_are_seen() -> None:
    call = next(call for call in recorded_calls()["score_images"] if not call.given[3].named["heatmaps"])
    kinds = call.given[3].named["kinds"].copy()
    found = Call("Found", (), call.given[3].named | {"kinds": kinds})

    def change() -> None:
        kinds[0] = _core.HEATMAP

    with pytest.raises(ValueError, match="heatmap is missing"):
        Call(call.name, (*call.given[:3], found), call.named).run(change)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"fill_rows_of_integers", "fill_rows_of_floats"}))
def test_misaligned_arrays_give_the_same_results(name: str) -> None:
    """They are copied; only the sanitizers see it when they are not."""
    for call in recorded_calls()[name][:2]:
        assert _flat(_moved(call).run()) == _flat(call.run())


def _moved(value: Any) -> Any:
    if isinstance(value, Call):
        return Call(value.name, tuple(map(_moved, value.given)), {k: _moved(v) for k, v in value.named.items()})
    if isinstance(value, list):
        return [_moved(part) for part in value]
    return _misaligned(value) if isinstance(value, np.ndarray) else value


def _flat(result: Any) -> Any:
    if isinstance(result, dict):
        result = tuple(result.items())
    if isinstance(result, tuple | list):
        return [_flat(part) for part in result]
    return result.tobytes() if isinstance(result, np.ndarray) else result if isinstance(result, str | int) else None


def test_true_is_what_is_not_0() -> None:
    call = recorded_calls()["judge_matches"][0]
    twos = np.where(call.named["matched"], 2, 0).astype(np.uint8).view(bool)
    assert _flat(changed("judge_matches", "matched", twos).run()) == _flat(call.run())


def test_misaligned_arrays_make_the_same_table() -> None:
    label_probs = np.array([[0.5], [0.25]], np.float32)
    found = Detections(
        classes=["cup"], image_ids=[1, 2], boxes=[[2, 2, 9, 9]] * 2, label_probs=_misaligned(label_probs)
    )
    assert found.label_probs.tolist() == label_probs.tolist()


def test_a_reach_that_no_image_has_is_refused() -> None:
    with pytest.raises(InputError, match="rough_sigmas between 0 and 1000, got 1000000000000"):
        Convention(rough_sigmas=1e12)
