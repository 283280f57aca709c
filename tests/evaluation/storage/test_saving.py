"""Evaluations on disk: what was saved comes back, and two runs are never mixed."""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import pickle
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import others_slow
from tests.strategies import random_world

import probox
from probox import Convention, Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.evaluation.archive import labels_from_stored, labels_to_stored, write_archive
from probox.evaluation.storage import COLUMNS, FORMAT, WORDS, save_results
from probox.tables.label_probs import LabelProbs

from .conftest import refused

# --- what comes back ---


def test_the_data_set_survives_whole(tmp_path: Path, evaluation: Evaluation) -> None:
    """Detections can be read by the data set of a loaded result: its category ids and rules are the truth's."""
    dataset = evaluation.dataset.replace(
        category_ids=[7, 3], rules="challenge", source="gt.json", file_names=["a", "é"]
    )
    dataclasses.replace(evaluation, dataset=dataset).save(tmp_path)
    again = Evaluation.load(tmp_path).dataset
    assert again.category_ids.tolist() == [7, 3]
    assert (again.rules, again.source, again.file_names) == ("challenge", "gt.json", ("a", "é"))


def test_a_byte_order_mark_is_skipped(tmp_path: Path, evaluation: Evaluation) -> None:
    evaluation.save(tmp_path)
    words = tmp_path / "evaluation.json"
    words.write_bytes(b"\xef\xbb\xbf" + words.read_bytes())
    assert Evaluation.load(tmp_path).pdq == evaluation.pdq


def test_everything_survives(tmp_path: Path, evaluation: Evaluation) -> None:
    evaluation.save(tmp_path / "one" / "two")
    stored = Evaluation.load(tmp_path / "one" / "two")
    for again in (stored, pickle.loads(pickle.dumps(evaluation)), copy.deepcopy(stored)):
        assert list(map(str, again.notes)) == ["one thing was left out"]
        assert again.inputs == ("found.json",)
        assert again.version == probox.__version__
        assert again.convention == evaluation.convention
        assert again.summary() == evaluation.summary()
        for table in ("dataset", "objects", "detections", "pairs"):
            for name, column in getattr(evaluation, table).columns().items():
                there = getattr(getattr(again, table), name)
                assert getattr(there, "dtype", None) == getattr(column, "dtype", None)
                np.testing.assert_array_equal(there, column)
    assert json.loads((tmp_path / "one" / "two" / WORDS).read_text())["format"] == FORMAT


@pytest.mark.parametrize("kept", [True, False])
def test_label_probabilities_survive_or_stay_away(tmp_path: Path, evaluation: Evaluation, kept: bool) -> None:
    saved = evaluation if kept else evaluation.without_labels()
    saved.save(tmp_path)
    again = Evaluation.load(tmp_path).detections.label_probs
    if kept:
        np.testing.assert_array_equal(again, np.float32([[0.9, 0.1], [0.2, 0.7], [0.6, 0.4], [0.1, 0.8]]))
        assert again.dtype == np.float32
    else:
        assert again is None


def test_errors_survive_pickling() -> None:
    error = InputError("is odd", file="a.json", image=3, entry="row 1", remedy="mend it")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "a.json: image 3: row 1: is odd; mend it"
    assert (again.file, again.image, again.entry, again.remedy) == ("a.json", 3, "row 1", "mend it")


@pytest.mark.parametrize("measures", [["map"], ["map", "lrp"], ["pdq"]])
@pytest.mark.parametrize(
    "changes", others_slow([{}, {"label_weight": 0.0}, {"label_weight": 1.0}, {"label_weight": 0.3}])
)
def test_worlds_pass_their_own_checks(tmp_path: Path, measures: list[str], changes: dict[str, Any]) -> None:
    for seed in range(10):
        result = evaluate(*random_world(seed), measures=measures, convention=Convention.preset("reference", **changes))
        for kept in (result, result.at_threshold(0.4)):
            kept.save(tmp_path / "kept")
            np.testing.assert_equal(Evaluation.load(tmp_path / "kept").summary(), kept.summary())


def test_a_pair_that_is_hardly_better_than_nothing(tmp_path: Path) -> None:
    """The paper's equations know no least quality: a pair's may be the root of what doubles hardly tell from 0."""
    truth = probox.GroundTruth.from_boxes(["cup"], {1: (64, 64)}, [1], [[0, 0, 9, 9]], [0])
    found = probox.Detections(classes=["cup"], image_ids=[1], boxes=[[0, 0, 45, 51]], label_probs=[[0.3]])
    result = evaluate(truth, found, convention="paper")
    assert 0 < result.pairs.quality("spatial")[0] < np.finfo(np.float64).tiny
    result.save(tmp_path)
    assert Evaluation.load(tmp_path).summary() == pytest.approx(result.summary(), nan_ok=True)


def test_nothing_at_all(tmp_path: Path) -> None:
    probox.Evaluator([]).result().save(tmp_path)
    assert len(Evaluation.load(tmp_path).dataset) == 0


def test_names_that_are_no_text(tmp_path: Path) -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (9, 9)}, [], np.zeros((0, 4)), [])
    none = Detections(classes=["cup"], image_ids=[], boxes=[], label_probs=np.zeros((0, 1)), source="\udcff.json")
    evaluate(truth, none).save(tmp_path)
    assert Evaluation.load(tmp_path).inputs == ("\udcff.json",)


def test_saving_over_a_result_replaces_it(tmp_path: Path, evaluation: Evaluation) -> None:
    evaluation.save(tmp_path)
    evaluation.at_threshold(0.65).save(tmp_path)
    assert len(Evaluation.load(tmp_path).detections) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [WORDS, COLUMNS]


OTHERS: dict[str, bytes] = {
    WORDS: b'{"accuracy": 0.9}',
    COLUMNS: b"PK\x03\x04 somebody's own",
}


@pytest.mark.parametrize("name", OTHERS)
def test_files_of_others_stay(tmp_path: Path, evaluation: Evaluation, name: str) -> None:
    (tmp_path / name).write_bytes(OTHERS[name])
    with pytest.raises(InputError, match="exists and does not contain an evaluation") as raised:
        save_results({tmp_path / "a" / "b": evaluation, tmp_path: evaluation})
    assert raised.value.file == str(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == OTHERS[name]


def test_arrays_of_others_stay(tmp_path: Path, evaluation: Evaluation) -> None:
    np.savez(tmp_path / COLUMNS, mine=np.arange(3))
    with pytest.raises(InputError, match=r"tables\.npz: exists and does not contain an evaluation"):
        evaluation.save(tmp_path)
    with np.load(tmp_path / COLUMNS) as archive:
        assert archive.files == ["mine"]


@pytest.mark.parametrize("name", [WORDS, COLUMNS])
@pytest.mark.parametrize("part", ["nothing", "half", "gone"])
def test_what_is_left_of_an_evaluation_is_replaced(
    tmp_path: Path, evaluation: Evaluation, name: str, part: str
) -> None:
    evaluation.save(tmp_path)
    content = (tmp_path / name).read_bytes()
    if part == "gone":
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content[: len(content) // 2] if part == "half" else b"")
    evaluation.save(tmp_path)
    assert (tmp_path / name).read_bytes() == content


@pytest.mark.parametrize("name", ["file", "file/below", "x" * 300, "nul\0"])
def test_places_that_cannot_be_written(tmp_path: Path, evaluation: Evaluation, name: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError) as raised:
        evaluation.save(tmp_path / name)
    assert raised.value.file == str(tmp_path / name.split("/")[0])
    assert (tmp_path / "file").read_text() == "mine"


def test_a_failed_save_leaves_no_folders(
    tmp_path: Path, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Any, arrays: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("probox.evaluation.storage.write_archive", full)
    with pytest.raises(InputError, match="No space left"):
        evaluation.save(tmp_path / "one" / "two")
    assert list(tmp_path.iterdir()) == []


def test_several_or_none(tmp_path: Path, evaluation: Evaluation) -> None:
    (tmp_path / "c").write_text("mine")
    with pytest.raises(InputError, match="is a file, expected a folder"):
        save_results({tmp_path / "a" / "b": evaluation, tmp_path / "c": evaluation})
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    save_results({tmp_path / "a": evaluation, tmp_path / "b": evaluation.at_threshold(0.65)})
    assert [len(Evaluation.load(tmp_path / name).detections) for name in "ab"] == [4, 3]


# --- two runs are never mixed ---


def test_the_words_of_one_with_the_columns_of_another(tmp_path: Path, evaluation: Evaluation) -> None:
    evaluation.save(tmp_path / "a")
    evaluation.at_threshold(0.65).save(tmp_path / "b")
    (tmp_path / "a" / WORDS).write_bytes((tmp_path / "b" / WORDS).read_bytes())
    assert f"{WORDS} and {COLUMNS} do not belong together, or were modified; evaluate again" in refused(tmp_path / "a")


KILLED = """
import os, sys
from pathlib import Path
from probox import Evaluation
moved = []
replace = os.replace
def stop(*paths):
    if moved:
        os._exit(9)
    moved.append(replace(*paths))
result = Evaluation.load(sys.argv[1]).at_threshold(0.65)
os.replace = stop
result.save(sys.argv[1])
"""


def test_a_run_that_is_killed_between_two_files(tmp_path: Path, evaluation: Evaluation) -> None:
    """The current folder cannot be replaced as a whole, so its files are replaced one by one."""
    evaluation.save(tmp_path)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=60, cwd=tmp_path)
    assert killed.returncode == 9
    assert "do not belong together" in refused(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda words: words | {"classes": words["classes"][::-1]},
        lambda words: words | {"notes": []},
        lambda words: words | {"version": "9"},
        lambda words: words | {"digest": "0" * 64},
        lambda words: words | {"convention": words["convention"] | {"label_threshold": 0.01}},
    ],
)
def test_words_that_were_changed(tmp_path: Path, evaluation: Evaluation, change: Callable[[Any], Any]) -> None:
    evaluation.save(tmp_path)
    (tmp_path / WORDS).write_text(json.dumps(change(json.loads((tmp_path / WORDS).read_text()))))
    assert "do not belong together, or were modified" in refused(tmp_path)


def test_words_that_were_only_laid_out_anew(tmp_path: Path, evaluation: Evaluation) -> None:
    evaluation.save(tmp_path)
    words = json.loads((tmp_path / WORDS).read_text())
    (tmp_path / WORDS).write_text(json.dumps(dict(reversed(words.items()))))
    assert Evaluation.load(tmp_path).summary() == evaluation.summary()


def test_columns_are_compressed_at_the_lowest_level_and_only_if_that_helps() -> None:
    file, counts = io.BytesIO(), np.arange(20_000, dtype="<i8") // 7
    write_archive(file, {"counts": counts, "noise": np.random.default_rng(3).random(20_000), "empty": counts[:0]})
    with zipfile.ZipFile(file) as archive:
        infos = {info.filename: info for info in archive.infolist()}
        level = zlib.compressobj(1, zlib.DEFLATED, -15)
        expected = level.compress(archive.read("counts.npy")) + level.flush()
    assert infos["noise.npy"].compress_type == zipfile.ZIP_STORED
    assert infos["counts.npy"].compress_type == zipfile.ZIP_DEFLATED
    assert infos["counts.npy"].compress_size == pytest.approx(len(expected), rel=0.01)  # level 6 is half of it
    assert {info.date_time for info in infos.values()} == {(1980, 1, 1, 0, 0, 0)}


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(0, 6), st.floats(0, 1))
def test_label_probabilities_come_back(seed: int, rows: int, classes: int, filled: float) -> None:
    rng = np.random.default_rng(seed)
    table = (rng.random((rows, classes)) * (rng.random((rows, classes)) < filled)).astype(np.float32)
    for probs in (LabelProbs(table), LabelProbs.of_matrix(table)):
        assert labels_from_stored(labels_to_stored(probs, rows)).equals(probs)
