"""Tables that are written to Parquet come back to the last bit; what is not written, and what writing needs."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.formats.parquet.tables import assert_same, by_image, some_detections
from tests.readers import read_parquet, read_parquet_truth
from tests.strategies import random_world, with_masks

from probox import Detections, GroundTruth, InputError, evaluate
from probox.formats import read_detections, read_truth, write_parquet
from probox.notes import Note
from probox.tables.heatmaps import LEAST, WindowHeatmap, to_bytes
from probox.tables.label_probs import LabelProbs


@given(seed=st.integers(0, 2**32 - 1))
@examples(60)
def test_random_tables_come_back(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    folder = tmp_path_factory.mktemp("round")
    truth, found = random_world(seed, heatmaps=False)
    write_parquet(folder / "d.parquet", found)
    write_parquet(folder / "t.parquet", truth)
    assert_same(by_image(found), read_parquet(folder / "d.parquet"), but=("source", "heatmaps"))
    assert_same(truth, read_parquet_truth(folder / "t.parquet"))


@given(
    seed=st.integers(0, 2**32 - 1),
    digits=st.integers(0, 7),
    kind=st.sampled_from(["boxes", "sizes", "both"]),
    classes=st.integers(1, 4),
)
@examples(60)
def test_printed_numbers_come_back(
    tmp_path_factory: pytest.TempPathFactory, seed: int, digits: int, kind: str, classes: int
) -> None:
    path = tmp_path_factory.mktemp("digits") / "d.parquet"
    rng = np.random.default_rng(seed)
    found = some_detections(int(rng.integers(0, 30)), classes, seed)
    low = np.round(found.boxes[:, :2], digits)
    sizes = np.round(found.boxes[:, 2:] - found.boxes[:, :2], digits)
    columns: dict[str, Any] = {"boxes": np.concatenate([low, low + sizes], axis=1)}
    if kind != "boxes":
        columns["extents"] = sizes if kind == "sizes" else sizes + rng.uniform(0, 1, sizes.shape)
    columns["label_probs"] = np.floor(found.label_probs * 10.0**digits) / 10.0**digits
    table = Detections(classes=found.classes, image_ids=found.image_ids, **columns)
    write_parquet(path, table)
    assert_same(by_image(table), read_parquet(path))


def test_every_column_says_what_the_table_says(tmp_path: Path) -> None:
    """Labels that are not the most probable, scores of their own, signed zeros, covariances not quite symmetric."""
    plain = some_detections(30)
    rng = np.random.default_rng(1)
    covariances = np.zeros((30, 2, 2, 2))
    covariances[::2] = np.eye(2) * rng.uniform(1, 9, (15, 1, 1, 1))
    covariances[::2, 1, 1, 0] = 1e-9
    boxes = plain.boxes.copy()
    boxes[3, 0] = -0.0
    found = dataclasses.replace(
        plain,
        boxes=boxes,
        covariances=covariances,
        labels=rng.integers(0, 5, 30),
        scores=rng.random(30),
        extents=boxes[:, 2:] - boxes[:, :2] + rng.uniform(0, 1, (30, 2)),
        source="elsewhere.json",
        notes=("3 were left out",),
    )
    write_parquet(tmp_path / "d.parquet", found)
    again = read_parquet(tmp_path / "d.parquet")
    assert_same(by_image(found), again)
    assert again.source == str(tmp_path / "d.parquet")
    names = pq.read_schema(tmp_path / "d.parquet").names
    assert {"score", "width", "height", "x2", "cov2_yx"} < set(names)
    assert "cov1_yx" not in names


def test_one_bit_off_is_not_left_out(tmp_path: Path) -> None:
    """Sizes and corners that nearly follow from each other, and scores that nearly are the probability, are kept."""
    plain = by_image(some_detections(20))
    low, sizes = plain.boxes[:, :2], plain.extents
    high = low + sizes
    high[7, 1] = np.nextafter(high[7, 1], np.inf)
    scores = plain.scores.copy()
    scores[5] = np.nextafter(scores[5], 1)
    for changes in (
        {"boxes": np.concatenate([low, high], axis=1), "extents": sizes},
        {"extents": np.nextafter(sizes, 0)},
        {"scores": scores},
    ):
        found = dataclasses.replace(plain, **changes)
        write_parquet(tmp_path / "d.parquet", found)
        assert_same(found, read_parquet(tmp_path / "d.parquet"))


@pytest.mark.parametrize("covariances", [None, np.zeros((40, 2, 2, 2))])
def test_no_covariances_are_not_zero_covariances(tmp_path: Path, covariances: Any) -> None:
    write_parquet(tmp_path / "d.parquet", some_detections(covariances=covariances))
    assert (read_parquet(tmp_path / "d.parquet").covariances is None) == (covariances is None)


@pytest.mark.parametrize("classes", [0, 1, 3])
def test_no_detections(tmp_path: Path, classes: int) -> None:
    found = some_detections(0, classes)
    write_parquet(tmp_path / "d.parquet", found)
    assert_same(found, read_parquet(tmp_path / "d.parquet"))


def test_empty_truth(tmp_path: Path) -> None:
    for images in ({}, {5: (30, 20), 7: (8, 9)}):
        truth = GroundTruth.from_boxes(["cup"], images, [], np.zeros((0, 4)), [])
        write_parquet(tmp_path / "t.parquet", truth)
        assert_same(truth, read_parquet_truth(tmp_path / "t.parquet"))


def test_truth_of_every_kind(truth: GroundTruth, tmp_path: Path, golden_dir: Path) -> None:
    """File names, category ids, crowds, areas; and challenge truth, whose small objects are ignored."""
    for table in (
        truth,
        read_truth(golden_dir / "rvc1" / "gt"),
        read_truth(golden_dir / "mixed" / "ground_truth.json"),
    ):
        write_parquet(tmp_path / "t.parquet", table)
        assert_same(table, read_parquet_truth(tmp_path / "t.parquet"))
        assert_same(table, read_truth(tmp_path / "t.parquet"))


def test_single_scores_need_no_probabilities(truth: GroundTruth, write: Callable[..., Path], tmp_path: Path) -> None:
    """What the reader of COCO results spread over classes is spread again, to the bit."""
    rng = np.random.default_rng(3)
    rows = [
        {"image_id": int(i), "category_id": int(c), "bbox": [1.3, 2.7, w, 3.1], "score": s}
        for i, c, w, s in zip(
            rng.choice([4, 9], 50), rng.choice([3, 7], 50), rng.random(50), rng.random(50), strict=True
        )
    ]
    found = read_detections(write(rows), truth)
    write_parquet(tmp_path / "d.parquet", found)
    assert pq.read_schema(tmp_path / "d.parquet").names == ["image_id", "x1", "y1", "width", "height", "label", "score"]
    assert_same(by_image(found), read_parquet(tmp_path / "d.parquet"))


def test_real_files(coco_dir: Path, tmp_path: Path) -> None:
    """NanoDet on 206 images: every bit, a fifth of the JSON's size; and the truth with its masks."""
    import gzip

    truth = read_truth(coco_dir / "val2017_masks_206.json")
    source = coco_dir / "results" / "nanodet_m_416_206.rvc1.json.gz"
    found = read_detections(source, truth)
    write_parquet(tmp_path / "d.parquet", found)
    write_parquet(tmp_path / "t.parquet", truth)
    assert_same(found, read_detections(tmp_path / "d.parquet", truth))
    assert_same(truth, read_truth(tmp_path / "t.parquet"))
    assert 5 * os.path.getsize(tmp_path / "d.parquet") < len(gzip.decompress(source.read_bytes()))


PIECE = 1 << 16
"""How many rows are looked at together."""


def spread(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, classes and the probabilities that follow from them."""
    rng = np.random.default_rng(1)
    scores, labels = rng.random(count), rng.integers(0, 3, count).astype(np.int32)
    return scores, labels, np.array(LabelProbs.from_scores(scores, labels, 3))


@pytest.mark.parametrize("odd", [None, 0, PIECE - 1, PIECE, PIECE + 1, PIECE + 4])
def test_one_row_that_says_more_brings_all_probabilities(tmp_path: Path, odd: int | None) -> None:
    scores, labels, probs = spread(PIECE + 5)
    if odd is not None:
        probs[odd, (labels[odd] + 1) % 3] = 0.0
    found = Detections(
        classes=["cup", "dog", "car"],
        image_ids=np.arange(len(scores)) // 100,
        boxes=np.tile([1.0, 2.0, 3.0, 4.0], (len(scores), 1)),
        label_probs=probs,
        labels=labels,
        scores=scores,
    )
    write_parquet(tmp_path / "d.parquet", found)
    assert ("prob_0" in pq.read_schema(tmp_path / "d.parquet").names) == (odd is not None)
    again = read_parquet(tmp_path / "d.parquet")
    assert again.label_probs.equals(found.label_probs)
    assert again.scores.tobytes() == found.scores.tobytes()


@given(seed=st.integers(0, 2**32 - 1))
@examples(30)
def test_masks_and_heatmaps_of_8_bits_come_back(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    path = tmp_path_factory.mktemp("masks") / "d.parquet"
    world = random_world(seed)
    found = with_masks(world, seed)
    given_ = [None if heatmap is None else to_bytes(heatmap) for heatmap in found.heatmaps or [None] * len(found)]
    found = found.replace(heatmaps=given_, areas=np.arange(len(found)) / 7)
    assert write_parquet(path, found) == ()
    read, want = read_parquet(path), by_image(found)
    assert_same(want, read, but=("source", "heatmaps"))
    for one, other in zip(read.heatmaps or [None] * len(read), want.heatmaps or (), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(np.asarray(one), other)
    assert evaluate(world[0], read).pdq == pytest.approx(evaluate(world[0], want).pdq, rel=1e-9, nan_ok=True)


def test_heatmaps_are_rounded(golden_dir: Path, tmp_path: Path) -> None:
    truth = read_truth(golden_dir / "probseg" / "ground_truth.json")
    found = read_detections(golden_dir / "probseg" / "detections.json", truth)
    notes = write_parquet(tmp_path / "d.parquet", found)
    assert notes == (Note("heatmaps-rounded", sum(heatmap.dtype != np.uint8 for heatmap in found.heatmaps)),)
    read, want = read_parquet(tmp_path / "d.parquet"), by_image(found)
    for one, other in zip(read.heatmaps, want.heatmaps, strict=True):
        values, exact = np.asarray(one) / 255, np.asarray(other) / (255 if other.dtype == np.uint8 else 1)
        between = (exact >= 1 / 255) & (exact <= 254 / 255)
        assert np.abs(values - exact)[between].max(initial=0) <= 1 / 510 + 1e-9
        assert np.abs(values - exact).max() <= 1 / 255
        assert ((values == 1) == (exact == 1)).all()
        assert ((values == 0) == (exact < LEAST)).all()
    blank = found.replace(heatmaps=[None if heatmap is None else np.zeros(heatmap.shape) for heatmap in found.heatmaps])
    write_parquet(tmp_path / "blank.parquet", blank)
    for heatmap in read_parquet(tmp_path / "blank.parquet").heatmaps:
        assert heatmap is None or (heatmap.window.shape == (0, 0) and not np.asarray(heatmap).any())


def test_heatmaps_are_stored_without_their_zeros(tmp_path: Path) -> None:
    heatmap = np.zeros((40, 60), np.uint8)
    heatmap[10:13, 20:25] = np.random.default_rng(0).integers(1, 256, (3, 5))
    window = WindowHeatmap((40, 60), (9, 19), heatmap[9:20, 19:40])
    found = some_detections(3, image_ids=[1, 2, 2], heatmaps=[heatmap, window, None])
    write_parquet(tmp_path / "d.parquet", found)
    read = read_parquet(tmp_path / "d.parquet").heatmaps
    assert [(one.shape, one.corner, one.window.tolist()) for one in read[:2]] == [
        ((40, 60), (10, 20), heatmap[10:13, 20:25].tolist())
    ] * 2
    assert read[2] is None


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.parquet"
    write_parquet(path, some_detections(seed=1))
    before = path.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        write_parquet(path, some_detections(seed=2))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(tmp_path / "d.parquet", some_detections())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for call in (
        lambda: read_parquet(tmp_path / "d.parquet"),
        lambda: read_truth(tmp_path / "d.parquet"),
        lambda: write_parquet(tmp_path / "e.parquet", some_detections()),
    ):
        with pytest.raises(InputError, match=r"pip install 'probox\[parquet\]'"):
            call()
    monkeypatch.setitem(sys.modules, "pyarrow", pa)
    monkeypatch.setattr(pa, "__version__", "14.0.2")
    with pytest.raises(InputError, match=r"pyarrow 18 or newer, but got 14\.0\.2"):
        read_parquet(tmp_path / "d.parquet")
