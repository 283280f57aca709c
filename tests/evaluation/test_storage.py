"""An evaluation through a folder and through pickle: words, numbers and the format's version."""

from __future__ import annotations

import dataclasses
import json
import pickle

import numpy as np
import pytest
from tests.evaluation.equal import assert_equal
from tests.strategies import random_world

from probox import Convention, Evaluation, InputError, evaluate
from probox.evaluation.storage import FORMAT
from probox.notes import as_notes

WORDS = "evaluation.json"
NOTES = ("3 detections lie elsewhere: left out", "Zeichen: äöü 😀 \u2028 \"'\\", "")


def with_words(**changes) -> Evaluation:
    truth, found = random_world(3)
    words = {"input_notes": NOTES, "inputs": ("truth é.json", "b/found.json"), "version": "0.0.7"}
    return dataclasses.replace(evaluate(truth, found), **{**words, **changes})


def through_folder(evaluation, tmp_path):
    evaluation.save(tmp_path / "kept")
    return Evaluation.load(tmp_path / "kept")


def through_pickle(evaluation, _):
    return pickle.loads(pickle.dumps(evaluation))


TRIPS = pytest.mark.parametrize("trip", [through_folder, through_pickle], ids=["folder", "pickle"])


@TRIPS
def test_words_come_back_as_they_were(trip, tmp_path):
    evaluation = with_words()
    again = trip(evaluation, tmp_path)
    assert_equal(again, evaluation)
    assert again.input_notes == as_notes(NOTES)
    assert again.inputs == ("truth é.json", "b/found.json")
    assert again.version == "0.0.7"  # the one that made it, not the one that reads it
    assert isinstance(again.input_notes, tuple)


@TRIPS
def test_no_words_come_back_as_none(trip, tmp_path):
    again = trip(with_words(input_notes=(), inputs=(), version=""), tmp_path)
    assert (again.input_notes, again.inputs, again.version) == ((), (), "")


@TRIPS
@pytest.mark.parametrize("measures", [("pdq",), ("map",), ("lrp", "pdq"), ("map", "lrp")])
def test_what_was_measured_comes_back(trip, measures, tmp_path):
    evaluation = evaluate(*random_world(3), measures=measures)
    again = trip(evaluation, tmp_path)
    assert again.measures == evaluation.measures
    assert again.summary().keys() == evaluation.summary().keys()


CHANGES = {
    "name": "mine", "epsilon": 1e-12, "region_of_interest": False, "rough_sigmas": 4.5, "mahalanobis": 3.0,
    "min_determinant": 1e-7, "min_probability": 0.01, "single_precision": False, "snap_zero": 1e-7,
    "snap_one": 1e-4, "min_quality": 1e-3, "sum_zero_is_plain": False, "label_weight": 0.25, "assignment": "greedy",
    "background": "mask", "box_truth": True, "fixed_variance": 2.5, "label_threshold": 0.1, "clip": "corners",
    "object_filter": True, "min_width": 3, "min_height": 4, "min_pixels": 5, "confidence_denominator": True,
    "iou_thresholds": (0.3, 0.75), "max_detections": (5, 300), "area_ranges": ((0, 9), (9, 99), (99, 1e9)),
}  # fmt: skip


@TRIPS
def test_every_field_of_the_convention_comes_back(trip, tmp_path):
    usual = Convention().to_dict()
    assert CHANGES.keys() == usual.keys()
    assert all(CHANGES[name] != usual[name] for name in usual)
    convention = Convention(**CHANGES)
    assert Convention.from_dict(convention.to_dict()) == convention
    assert trip(evaluate(*random_world(3), convention=convention), tmp_path).convention == convention


@TRIPS
def test_numbers_of_numpy_are_numbers(trip, tmp_path):
    convention = Convention(
        name=np.str_("mine"), box_truth=np.bool_(True), min_width=np.int64(3), label_weight=np.float32(0.25)
    )
    assert convention == Convention(name="mine", box_truth=True, min_width=3, label_weight=0.25)
    assert {type(value).__module__ for value in convention.to_dict().values()} == {"builtins"}
    result = evaluate(*random_world(3), convention=convention)
    again = trip(result.at_threshold(np.float32(0.5)), tmp_path)
    assert again.convention == convention.replace(label_threshold=0.5)
    assert_equal(again, result.at_threshold(0.5))


def test_an_unknown_field_is_from_a_newer_probox():
    with pytest.raises(InputError, match="unknown convention field 'wider'; use a newer probox") as caught:
        Convention.from_dict({**Convention().to_dict(), "wider": 1})
    assert caught.value.remedy


@pytest.mark.parametrize("later", [FORMAT + 1, 100])
def test_a_format_from_the_future_is_refused_with_a_remedy(later, tmp_path):
    with_words().save(tmp_path)
    path = tmp_path / WORDS
    words = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**words, "format": later}), encoding="utf-8")
    with pytest.raises(InputError, match=f"but got {later}") as caught:
        Evaluation.load(tmp_path)
    assert caught.value.remedy
    assert str(caught.value).endswith(caught.value.remedy)
    assert caught.value.file is not None
    assert str(tmp_path) in caught.value.file


def test_columns_that_come_back_cannot_be_written_to(tmp_path):
    again = through_folder(with_words(), tmp_path)
    for table in (again.dataset, again.objects, again.detections, again.pairs):
        for name, column in table.columns().items():
            if name == "file_names":
                continue
            with pytest.raises(ValueError, match="read-only"):
                column[...] = column
            assert name == "label_probs" or not column.flags.writeable, name
    assert not np.any([array.flags.writeable for array in (again.masks.boxes, again.masks.runs, again.masks.pixels)])
