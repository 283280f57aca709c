"""Folders that somebody wrote who knows the format, digest and all: nonsense is told by its row."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probox import Evaluation
from probox.evaluation.storage import WORDS
from probox.tables.results import Verdict

from .conftest import read, refused, write

# --- forged columns, digest and all ---


def at(row: Any, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array[row] = value
        return array

    return change


FORGED: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray], str]] = {
    "a verdict of 77": ("detections.verdict", at(2, 77), r"detections.verdict\[2\]: does not follow from the pairs"),
    "a hit instead of a miss": ("detections.verdict", at(2, Verdict.TP), r"detections.verdict\[2\]: does not follow"),
    "an object found": ("objects.verdict", at(slice(None), Verdict.TP), r"objects.verdict\[.\]: does not follow"),
    "another partner": ("detections.partner", at(0, 1), r"detections.partner\[0\]: does not follow"),
    "a partner out of range": ("objects.partner", at(0, 10**9), r"objects.partner\[0\]: does not follow"),
    "a better match": ("detections.pPDQ", at(0, 1.0), r"detections.pPDQ\[0\]: does not follow"),
    "a quality of NaN": ("detections.spatial", at(0, np.nan), r"detections.spatial\[0\]: does not follow"),
    "a pair of NaN": ("pairs.pPDQ", at(0, np.nan), r"pairs.pPDQ\[0\]: expected a quality between 0 and 1"),
    "a pair of 2": ("pairs.label", at(0, 2.0), r"pairs.label\[0\]: expected a quality between 0 and 1"),
    "a better pair": ("pairs.pPDQ", at(0, 1.0), r"pairs.pPDQ\[0\]: expected the product of spatial and label quality"),
    "a pair of a missing row": ("pairs.detection", at(-1, 4), r"pairs.detection\[.\]: no such row"),
    "a pair before the first": ("pairs.object", at(0, -1), r"pairs.object\[0\]: no such row"),
    "a pair across images": ("pairs.detection", at(0, 3), r"pairs.detection\[0\]: expected a detection in the image"),
    "pairs out of order": ("pairs.object", at(0, 1), r"pairs.object\[1\]: expected each pair once"),
    "a pair twice": ("pairs.detection", at(1, 0), r"pairs.object\[1\]: expected each pair once"),
    "image ids that fall": ("images.id", at(0, 99), "image 9: dataset: image ids must be distinct and ascending"),
    "an image without pixels": ("images.width", at(1, 0), "image 9: dataset: expected a size of 1 to 1,000,000 pixels"),
    "an image too wide": ("images.width", at(1, 2**31 - 1), "image 9: .* 1,000,000 pixels .* got 2147483647 x"),
    "an image too small": ("images.height", at(1, 5), r"masks.boxes\[2\]: expected a mask inside the image"),
    "an unknown image": ("detections.image_id", at(0, 5), r"detections.image_id\[0\]: no such image"),
    "an object nowhere": ("objects.image_id", at(-1, 10), r"objects.image_id\[3\]: no such image"),
    "detections out of order": ("detections.image_id", at(0, 9), r"detections.image_id\[1\]: expected rows by image"),
    "a class out of range": ("objects.class_index", at(0, 2), r"objects.class_index\[0\]: no such class"),
    "a class before the first": ("detections.class_index", at(0, -2), r"detections.class_index\[0\]: no such class"),
    "a box of NaN": ("detections.box", at((1, 2), np.nan), r"detections.box\[1\]: expected finite corners"),
    "a box far away": ("detections.box", at((1, 2), 1e300), r"detections.box\[1\]: expected finite corners"),
    "an object of NaN": ("objects.box", at((1, 2), np.nan), r"objects.box\[1\]: expected finite corners"),
    "an object far away": ("objects.box", at((1, 2), 1e300), r"objects.box\[1\]: expected finite corners"),
    "an inverted object": ("objects.box", at((1, 2), -1.0), r"objects.box\[1\]: expected x1 <= x2"),
    "an object of negative size": ("objects.size", at((1, 0), -1.0), r"objects.size\[1\]: expected finite"),
    "an infinite area": ("objects.area", at(1, np.inf), r"objects.area\[1\]: expected a finite number"),
    "a negative area": ("objects.area", at(1, -1.0), r"objects.area\[1\]: expected a finite number"),
    "a size of NaN": ("detections.size", at((0, 0), np.nan), r"detections.size\[0\]: expected finite"),
    "a covariance of NaN": ("detections.covariances", at((3, 1, 0, 0), np.nan), r"covariances\[3\]: expected finite"),
    "a score of NaN": ("detections.score", at(0, np.nan), r"detections.score\[0\]: expected a finite number"),
    "a confidence of 3": ("detections.confidence", at(0, 3), r"detections.confidence\[0\]: expected a probability"),
    "a cost of NaN": ("detections.cost", at(0, np.nan), r"detections.cost\[0\]: expected a probability"),
    "a cost above it": ("detections.cost", at(0, 1), r"detections.cost\[0\]: expected at most the confidence"),
    "a number below 0": ("detections.number", at(0, -1), r"detections.number\[0\]: expected a number that counts"),
    "offsets that fall": ("masks.offsets", at(1, 10**6), r"masks.offsets: expected ascending rows of the runs"),
    "offsets that end early": ("masks.offsets", at(-1, 3), r"masks.offsets: expected ascending rows of the runs"),
    "offsets from nowhere": ("masks.offsets", at(0, -4), r"masks.offsets: expected ascending rows of the runs"),
    "a run outside": ("masks.runs", at((0, 2), 10**6), r"masks.runs\[0\]: expected runs that fill the box"),
    "runs out of order": ("masks.runs", lambda runs: runs[::-1].copy(), r"masks.runs\[0\]: expected runs that fill"),
    "more pixels": ("masks.pixels", at(0, 10**6), r"masks.pixels\[0\]: expected the number of pixels"),
    "pixels of another": ("objects.pixels", at(0, 1), r"objects.pixels\[0\]: expected the number of pixels"),
    "the box of another": ("objects.mask_box", at((0, 0), 1), r"objects.mask_box\[0\]: expected the box of the mask"),
    "a label of NaN": ("labels.probability", at(1, np.nan), r"labels.probability\[1\]: expected probabilities between"),
    "a label above 1": ("labels.probability", at(1, 1.5), r"labels.probability\[1\]: expected probabilities between"),
    "a rest below 0": ("labels.rest", at(2, -0.5), r"labels.rest\[2\]: expected probabilities between 0 and 1"),
    "classes that share": ("labels.shares_rest", lambda a: a[:1], "labels.shares_rest: expected 2 classes, but got 1"),
    "labels without classes": ("labels.class_index", lambda a: a[:5], "expected a class of each of 8 probabilities"),
    "a label of nobody": ("labels.class_index", at(3, 2), r"labels.class_index\[3\]: no such class"),
    "a label twice": ("labels.class_index", at(1, 0), r"labels.class_index\[1\]: expected each class once"),
    "more labels": ("labels.count", at(0, 1), r"labels.count: expected 8 probabilities in all, but got 7"),
    "labels below 0": ("labels.count", at(0, -1), r"labels.count\[0\]: expected at most one probability per class"),
    "a row too few": ("detections.score", lambda a: a[:-1], "detections.score has 3 rows, expected 4"),
    "masks of fewer": ("masks.pixels", lambda a: a[:-1], "masks.pixels has 3 rows, expected 4"),
    "single precision": ("pairs.pPDQ", lambda a: a.astype(np.float32), "pairs.pPDQ is float32, expected float64"),
    "text": ("images.id", lambda a: a.astype("U9"), "images.id is <U9, expected int64"),
    "numbers for text": ("images.file_name", lambda a: np.arange(2), "images.file_name is int64, expected text"),
    "flat boxes": ("detections.box", lambda a: a.reshape(-1), r"detections.box has rows of shape \(\), expected"),
    "no rows": ("pairs.object", lambda a: np.int64(3), "pairs.object is not an array of a plain type"),
    "big-endian": ("images.id", lambda a: a.astype(">i8"), "images.id is not an array of a plain type"),
    "Fortran": ("objects.box", lambda a: np.asfortranarray(a), "objects.box is not an array of a plain type"),
    "structured": ("images.id", lambda a: a.view([("a", "<i8")]), "images.id is not an array of a plain type"),
    "no text": (
        "images.file_name", lambda a: np.full(2, 0x7FFFFFFF, np.uint32).view("<U1"),
        r"images.file_name\[0\]: expected text",
    ),
    "neither true nor false": (
        "objects.crowd", lambda a: np.full(4, 7, np.uint8).view(bool), "objects.crowd has values other than true",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_forged_columns(tmp_path: Path, evaluation: Evaluation, name: str) -> None:
    column, change, message = FORGED[name]
    evaluation.save(tmp_path)
    words, arrays = read(tmp_path)
    write(tmp_path, words, arrays | {column: change(arrays[column])})
    text = refused(tmp_path)
    assert re.search(message, text), text


def test_detections_below_the_threshold(tmp_path: Path, evaluation: Evaluation) -> None:
    evaluation.save(tmp_path)
    words, arrays = read(tmp_path)
    words["convention"]["label_threshold"] = 0.65
    write(tmp_path, words, arrays)
    assert "detections.confidence[2]: expected one above the label threshold" in refused(tmp_path)


def test_pairs_where_nothing_was_matched(tmp_path: Path, evaluation: Evaluation) -> None:
    evaluation.save(tmp_path)
    words, arrays = read(tmp_path)
    write(tmp_path, words | {"measures": ["map"]}, arrays)
    assert "pairs: expected no pairs where PDQ was not measured" in refused(tmp_path)


def test_a_column_is_missing(tmp_path: Path, evaluation: Evaluation) -> None:
    evaluation.save(tmp_path)
    words, arrays = read(tmp_path)
    del arrays["detections.cost"]
    write(tmp_path, words, arrays)
    assert "lacks the column detections.cost" in refused(tmp_path)


# --- forged words ---


BAD_WORDS: dict[str, tuple[Any, str]] = {
    "nothing": (b"", "expected an evaluation in JSON"),
    "no JSON": (b"{", "expected an evaluation in JSON"),
    "no text": (b"\xff\xfe", "expected an evaluation in JSON"),
    "a list": ([], "expected an evaluation in JSON"),
    "no format": ({}, "expected an evaluation in JSON"),
    "deep": (b"[" * 100_000, "expected an evaluation in JSON"),
    "deep inside": (b'{"format": 2, "x": ' + b'{"a":[' * 50_000, "expected an evaluation in JSON"),
    "endless digits": (b'{"format": ' + b"9" * 5000 + b"}", "expected an evaluation in JSON"),
    "format 9": ({"format": 9}, "expected format 10, but got 9; evaluate again"),
    "format 11": ({"format": 11}, "expected format 10, but got 11; use a newer probox, or evaluate again"),
    "format true": ({"format": True}, "expected format 10, but got True"),
    "a format of words": ({"format": ["x"]}, "expected format 10, but got something else"),
    "a missing key": ({"format": 10, "keep": "all"}, "expected a key 'classes'"),
    "another key": (lambda w: w | {"more": 1}, "unknown key 'more'"),
    "a data set of nothing": (lambda w: w | {"dataset": {}}, "dataset: expected category_ids"),
    "a data set that counts in text": (
        lambda w: w | {"dataset": w["dataset"] | {"category_ids": ["1", "2"]}}, "dataset: expected category_ids"
    ),
    "a data set with more to it": (
        lambda w: w | {"dataset": w["dataset"] | {"widths": [1]}}, "dataset: expected category_ids"
    ),
    "one category too few": (
        lambda w: w | {"dataset": w["dataset"] | {"category_ids": [1]}}, "dataset: expected category_ids of shape 2"
    ),
    "rules of nobody": (
        lambda w: w | {"dataset": w["dataset"] | {"rules": "mine"}}, "dataset: expected rules to be one of"
    ),
    "classes of numbers": (lambda w: w | {"classes": [1, 2]}, "classes: expected a list of texts"),
    "a long class name": (
        lambda w: w | {"classes": ["cup", "d" * 1025]},
        "class 1: expected a class name of at most 1,024 characters, but got one of 1,025",
    ),
    "half of a character": (
        lambda w: w | {"classes": ["cup", "d\ud800"]}, "class 1: expected a class name in Unicode text, but got"
    ),
    "too many classes": (
        lambda w: w | {"classes": [f"c{number}" for number in range(32_769)]},
        "expected at most 32,768 classes, but got 32,769",
    ),
    "a long note": (
        lambda w: w | {"notes": [{"code": "text", "count": None, "fields": {"text": "n" * 65_537}}]},
        "notes: expected notes with code, count and fields"
    ),
    "a long input": (lambda w: w | {"inputs": ["n" * 65_537]}, "inputs: expected texts of at most 65,536 characters"),
    "a long version": (lambda w: w | {"version": "n" * 65_537}, "version: expected texts of at most 65,536 characters"),
    "a long source": (
        lambda w: w | {"dataset": w["dataset"] | {"source": "n" * 65_537}}, "dataset: expected category_ids"
    ),
    "notes of text": (lambda w: w | {"notes": "abc"}, "notes: expected a list of texts"),
    "a version of numbers": (lambda w: w | {"version": 1}, "version: expected text"),
    "a convention of text": (lambda w: w | {"convention": "paper"}, "convention: expected an object"),
    "unknown measures": (lambda w: w | {"measures": ["pdq", "iou"]}, "measures: expected some of pdq, map, lrp"),
    "no measures": (lambda w: w | {"measures": []}, "measures: expected some of pdq, map, lrp"),
    "measures twice": (lambda w: w | {"measures": ["pdq", "pdq"]}, "measures: expected some of"),
    "a digest of numbers": (lambda w: w | {"digest": 1}, "digest: expected text"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_WORDS)
def test_bad_words(tmp_path: Path, evaluation: Evaluation, name: str) -> None:
    content, message = BAD_WORDS[name]
    evaluation.save(tmp_path)
    words, arrays = read(tmp_path)
    if callable(content):
        write(tmp_path, content(words), arrays)
    else:
        (tmp_path / WORDS).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    assert message in refused(tmp_path)


def test_words_too_long(tmp_path: Path, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation.save(tmp_path)
    monkeypatch.setattr("probox.evaluation.storage.MAX_WORDS", 100)
    assert "expected at most 100 bytes, but this file is larger; give a folder that" in refused(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("epsilon", "a", "convention: expected epsilon to be a number, got 'a'"),
        pytest.param("epsilon", 10**400, "convention: expected epsilon", id="huge"),
        ("min_quality", float("nan"), "convention: expected min_quality to be finite, got nan"),
        ("min_width", 1.5, "convention: expected min_width to be a whole number, got 1.5"),
        ("region_of_interest", 1, "convention: expected region_of_interest to be True or False"),
        ("name", None, "convention: expected name to be text, got None"),
        ("label_threshold", [0.5], 'convention: expected label_threshold to be a number, "auto" or None'),
        ("label_threshold", float("nan"), "convention: expected label_threshold between 0 and 1"),
        ("assignment", "best", "convention: expected assignment to be"),
        ("colour", "blue", "convention: unknown convention field 'colour'"),
        ("mahalanobis", ..., "convention.mahalanobis: expected a value like 3.439"),
    ],
)
def test_bad_conventions(tmp_path: Path, evaluation: Evaluation, field: str, value: Any, message: str) -> None:
    evaluation.save(tmp_path)
    words, arrays = read(tmp_path)
    if value is ...:
        del words["convention"][field]
    else:
        words["convention"][field] = value
    write(tmp_path, words, arrays)
    assert f"{WORDS}: {message}" in refused(tmp_path)
