"""Parquet files evaluated row group by row group: to the bit what one call on everything gives, in little memory."""

from __future__ import annotations

import dataclasses
import tracemalloc
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.evaluation.equal import assert_equal
from tests.strategies import random_world

from probox import Convention, Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.evaluation.inputs import TablePieces
from probox.formats import read_detections, read_truth, write_parquet
from probox.formats.parquet import writing as parquet_writing
from probox.notes import Note
from probox.tables.results import QUALITIES

SMALL = 300
"""Bytes of a row group: a few detections."""


def assert_same(one: Evaluation, other: Evaluation) -> None:
    """Compare two evaluations bit for bit, and what they say."""
    assert_equal(one, other.without_labels())
    for name in ("measures", "notes", "inputs", "version"):
        assert getattr(one, name) == getattr(other, name), name


def written(folder: Path, truth: GroundTruth, found: Detections, group_bytes: int = SMALL) -> tuple[Path, Path]:
    """Write both tables in small row groups."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_writing, "GROUP_BYTES", group_bytes)
        write_parquet(folder / "truth.parquet", truth)
        write_parquet(folder / "found.parquet", found)
    return folder / "truth.parquet", folder / "found.parquet"


def in_memory(truth: Path, found: Path, *, repair: bool = False, **options: Any) -> Evaluation:
    table = read_truth(truth)
    return evaluate(table, read_detections(found, table, repair=repair), **options)


def test_pieces_of_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """An image is never cut, however many detections it has; none is left out."""
    monkeypatch.setattr("probox.evaluation.inputs.AT_ONCE", 2)
    sizes = dict.fromkeys([1, 2, 3, 4, 5], (64, 48))
    truth = GroundTruth.from_boxes(["cup"], sizes, [], np.zeros((0, 4)), [])
    ids = np.array([5, 2, 4, 2, 5, 2])
    found = Detections(classes=["cup"], image_ids=ids, boxes=np.tile([1, 2, 3, 4], (6, 1)), label_probs=np.ones((6, 1)))
    pieces = islice(TablePieces(truth, found, repair=False).pieces(truth.image_ids, whole=False), 9)
    assert [(part.image_ids.tolist(), some.image_ids.tolist()) for part, some in pieces] == [
        ([1], []),
        ([2], [2, 2, 2]),
        ([3, 4], [4]),
        ([5], [5, 5]),
    ]


@given(
    seed=st.integers(0, 2**32 - 1),
    preset=st.sampled_from(["reference", "paper", "challenge"]),
    threshold=st.sampled_from([None, 0.4]),
    group_bytes=st.sampled_from([1, SMALL, 2000, 1 << 20]),
    from_file=st.booleans(),
)
@examples(60)
def test_parts_make_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    preset: str,
    threshold: float | None,
    group_bytes: int,
    from_file: bool,
) -> None:
    truth, found = random_world(seed, heatmaps=False, max_images=7)
    files = written(tmp_path_factory.mktemp("parts"), truth, found, group_bytes)
    convention = Convention.preset(preset, label_threshold=threshold)
    there = files[0] if from_file else read_truth(files[0])
    assert_same(evaluate(there, files[1], convention=convention), in_memory(*files, convention=convention))


def test_real_detections(coco_dir: Path, tmp_path: Path) -> None:
    truth = read_truth(coco_dir / "val2017_masks_206.json")
    found = read_detections(coco_dir / "results" / "ssdlite_mbv2_2881.json.gz", truth)
    files = written(tmp_path, truth, found, 1 << 16)
    result = evaluate(*files)
    assert_same(result, in_memory(*files))
    assert len(result.detections) == len(found) > 10_000
    assert result.input_notes == (*truth.notes, *found.notes)
    assert [warning.code for warning in result.warnings] == ["false-positives-dominate"]


def boxes_in(images: dict[int, int], classes: tuple[str, ...] = ("cup", "dog"), **changes: Any) -> Detections:
    """Return some perfect boxes per image."""
    n = sum(images.values())
    columns: dict[str, Any] = {
        "classes": classes,
        "image_ids": np.repeat(list(images), list(images.values())),
        "boxes": np.tile([10.0, 20.0, 40.0, 40.0], (n, 1)),
        "label_probs": np.tile(np.linspace(0.4, 0.1, len(classes)), (n, 1)),
    }
    return Detections(**(columns | changes))


def objects_in(*images: int) -> GroundTruth:
    return GroundTruth.from_boxes(
        ["cup", "dog"], dict.fromkeys(images, (64, 48)), images, [[10, 20, 40, 40]] * len(images), [0] * len(images)
    )


def test_every_image_counts_once(tmp_path: Path) -> None:
    """Images before, between and after those with detections are evaluated too, whichever group they fall to."""
    files = written(tmp_path, objects_in(1, 2, 3, 4, 5, 6, 7, 8, 9), boxes_in({3: 1, 5: 2, 6: 1}), 1)
    result = evaluate(*files)
    assert result.dataset.image_ids.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert (result.tp, result.fp, result.fn) == (3, 1, 6)
    assert_same(result, in_memory(*files))


def test_unknown_images_are_said_once(tmp_path: Path) -> None:
    files = written(tmp_path, objects_in(4, 8), boxes_in({1: 2, 4: 1, 5: 3, 8: 1, 9: 1, 10: 1}), 1)
    result = evaluate(*files)
    assert result.notes == (Note("unknown-images", 7, images=4),)
    assert (result.tp, result.fp, result.fn) == (2, 0, 0)
    assert_same(result, in_memory(*files))


def test_notes_add_up(tmp_path: Path) -> None:
    """What is left out by the threshold, repaired or unknown is counted over all parts, and said once."""
    probs = np.tile([0.4, 0.3, 0.1], (6, 1))
    probs[::2] = [0.2, 0.1, 0.1]
    covariances = np.tile(np.eye(2) * 4, (6, 2, 1, 1))
    found = boxes_in({1: 2, 2: 2, 3: 2}, ("cup", "dog", "cat"), label_probs=probs, covariances=covariances)
    with pytest.MonkeyPatch.context() as patch:  # no table holds such covariances, but a file may
        patch.setattr(Detections, "_check", lambda self: None)
        covariances[[1, 2, 5], 0, 0, 1] = 1.0
        bad = dataclasses.replace(found, covariances=covariances, notes=("from elsewhere",))
        files = written(tmp_path, objects_in(1, 2, 3), bad, 1)
    with pytest.raises(InputError, match=r"found\.parquet: image 1: detection 1: expected symmetric covariances"):
        evaluate(*files)
    convention = Convention.preset("reference", label_threshold=0.3)
    result = evaluate(*files, convention=convention, repair=True)
    assert result.notes == (
        Note("text", text="from elsewhere"),
        Note("repaired-covariances", 3),
        Note("below-threshold", 3, threshold=0.3),
        Note("unknown-classes", 1, names="cat"),
    )
    assert_same(result, in_memory(*files, convention=convention, repair=True))


def test_progress_knows_the_total(tmp_path: Path) -> None:
    files = written(tmp_path, objects_in(*range(1, 31)), boxes_in(dict.fromkeys(range(2, 28), 1)), 1)
    calls: list[tuple[int, int]] = []
    evaluate(*files, progress=lambda done, total: calls.append((done, total)))
    done = [done for done, _ in calls]
    assert {total for _, total in calls} == {30}
    assert done == sorted(done)
    assert done[-1] == 30
    assert len(set(done)) >= 26


@pytest.mark.parametrize("images", [(), (1, 2)])
def test_no_detections(tmp_path: Path, images: tuple[int, ...]) -> None:
    files = written(tmp_path, objects_in(*images), boxes_in({}))
    result = evaluate(*files)
    assert len(result.dataset) == len(images) == result.fn
    assert_same(result, in_memory(*files))


def test_no_image_is_known(tmp_path: Path) -> None:
    files = written(tmp_path, objects_in(), boxes_in({1: 1, 2: 1}), 1)
    assert evaluate(*files).notes == (Note("unknown-images", 2, images=2),)


def test_an_image_in_two_row_groups_is_refused(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    truth, found = written(tmp_path, objects_in(1, 2), boxes_in({1: 2, 2: 2}))
    pq.write_table(pq.read_table(found), found, row_group_size=1)
    with pytest.raises(
        InputError, match=r"found\.parquet: image 1: expected rows by ascending image_id and row groups"
    ):
        evaluate(truth, found)


@pytest.mark.slow
def test_label_probabilities_are_not_gathered(tmp_path: Path) -> None:
    """Of 4,000 detections with 600 classes, 9.6 MB of probabilities, a few row groups are held at a time."""
    images = dict.fromkeys(range(1, 401), 10)
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(600), 4000).astype(np.float32) * np.float32(0.99)
    found = boxes_in(images, tuple(f"class {i}" for i in range(600)), label_probs=probs)
    truth = objects_in(*images)
    truth = truth.replace(dataset=truth.dataset.replace(classes=found.classes, category_ids=np.arange(600)))
    files = written(tmp_path, truth, found, 1 << 19)
    evaluate(*files)  # imports are not counted
    tracemalloc.start()
    result = evaluate(*files)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = sum(column.nbytes for column in result.detections.columns().values())
    assert kept < 220 * len(found)
    assert peak < probs.nbytes / 2
    assert result.detections.qualities.shape == (4000, len(QUALITIES))
