"""Heatmaps in files: read when they are used, one map at a time, from a file that must stay as it was."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.strategies import random_world, with_masks

import probox
from probox import InputError, evaluate
from probox.formats import read_detections, write_rvc1
from probox.formats.rvc1_heatmaps import StoredHeatmap
from probox.measures.pdq import kernel
from probox.measures.pdq.kernel import score_pairs
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

Write = Callable[..., Path]


def random_maps(count: int, dtype: Any = np.float32) -> np.ndarray:
    values = np.random.default_rng(count).random((count, 20, 30))
    return (255 * values).astype(dtype) if dtype == np.uint8 else values.astype(dtype)


def read(write: Write, truth: GroundTruth, *rows: dict[str, Any]) -> Detections:
    entries = [{"label_probs": [0.5, 0.5], "masks_file": "nine.npy"} | row for row in rows]
    return read_detections(write({"classes": ["cup", "dog"], "detections": [[], entries]}), truth)


def numbered(count: int) -> list[dict[str, Any]]:
    return [{"mask_id": number} for number in range(count)]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", "u1"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("block", [1 << 24, 1000])
def test_every_type_and_order(
    write: Write,
    truth: GroundTruth,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dtype: str,
    order: Any,
    block: int,
) -> None:
    monkeypatch.setattr("probox.formats.rvc1_heatmaps._BLOCK", block)
    maps = random_maps(3, np.dtype(dtype))
    np.save(tmp_path / "nine.npy", np.asarray(maps, order=order))
    found = read(write, truth, *numbered(3))
    assert found.heatmaps is not None
    for given, expected in zip(found.heatmaps, maps, strict=True):
        assert given is not None
        assert given.dtype == np.dtype(dtype)
        assert (given.shape, given.ndim, given.size, len(given)) == ((20, 30), 2, 600, 20)
        np.testing.assert_array_equal(np.asarray(given), expected)
        np.testing.assert_array_equal(given[2:4, 5], expected[2:4, 5])
        np.testing.assert_array_equal(given >= 0.5, expected >= 0.5)
        assert given.max() == expected.max()
        assert given.min() == expected.min()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("row", [{}, {"mask_id": 0}])
def test_a_file_of_two_dimensions_is_one_map(
    write: Write, truth: GroundTruth, tmp_path: Path, order: Any, row: dict[str, int]
) -> None:
    expected = random_maps(1)[0]
    np.save(tmp_path / "nine.npy", np.asarray(expected, order=order))
    found = read(write, truth, row)
    assert found.heatmaps is not None
    np.testing.assert_array_equal(np.asarray(found.heatmaps[0]), expected)


def test_the_number_of_a_map_may_be_missing_only_where_there_is_one(
    write: Write, truth: GroundTruth, tmp_path: Path
) -> None:
    np.save(tmp_path / "nine.npy", random_maps(1))
    assert read(write, truth, {}).heatmaps is not None
    np.save(tmp_path / "nine.npy", random_maps(2))
    with pytest.raises(
        InputError, match=r'image 9: detections\[1\]\[0\]: expected a key "mask_id", for nine.npy has 2'
    ):
        read(write, truth, {})
    np.save(tmp_path / "nine.npy", random_maps(1)[0])
    with pytest.raises(InputError, match=r"expected mask_id to be one of the 1 maps of nine\.npy, but got 1"):
        read(write, truth, {"mask_id": 1})


def test_maps_stay_in_their_file(write: Write, truth: GroundTruth, tmp_path: Path) -> None:
    np.save(tmp_path / "nine.npy", random_maps(2))
    found = read(write, truth, *numbered(2), {"mask_id": 1})
    assert found.heatmaps is not None
    assert all(isinstance(heatmap, StoredHeatmap) for heatmap in found.heatmaps)
    assert found.heatmaps[1] is found.heatmaps[2]
    assert len(pickle.dumps(found.heatmaps)) < 2000


@pytest.mark.parametrize("change", ["truncated", "removed", "written again", "a pipe"])
def test_a_file_that_changes_is_an_error(write: Write, truth: GroundTruth, tmp_path: Path, change: str) -> None:
    path = tmp_path / "nine.npy"
    np.save(path, random_maps(2))
    found = read(write, truth, *numbered(2))
    if change == "truncated":
        os.truncate(path, 3000)
    if change == "written again":
        np.save(path, random_maps(2))
        os.utime(path, ns=(0, 0))
    if change in ("removed", "a pipe"):
        path.unlink()
    if change == "a pipe":
        os.mkfifo(path)
    expected = {"removed": "no such file", "a pipe": "this is a pipe"}.get(change, "changed while it was in use")
    with pytest.raises(InputError, match=rf"nine\.npy: .*{expected}"):
        probox.evaluate(truth, found)


def test_portions_give_the_same_pairs(
    write: Write, truth: GroundTruth, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few heatmaps fit into memory at a time, the pairs are the same and in the same order."""
    np.save(tmp_path / "nine.npy", random_maps(7))
    plain = {"masks_file": "nine.npy", "mask_id": 0}
    found = read(write, truth, *numbered(7), plain)
    convention = probox.Convention.preset("paper")
    whole = score_pairs(truth, truth.masks, found, convention)
    assert len(whole) > 7
    for bytes_at_once in (1, 8 * 600, 3 * 8 * 600):
        monkeypatch.setattr(kernel, "_MAP_BYTES", bytes_at_once)
        parts = score_pairs(truth, truth.masks, found, convention)
        np.testing.assert_array_equal(parts.detections, whole.detections)
        np.testing.assert_array_equal(parts.objects, whole.objects)
        np.testing.assert_array_equal(parts.qualities, whole.qualities)


def test_written_from_where_they_are(write: Write, truth: GroundTruth, tmp_path: Path) -> None:
    maps = random_maps(3)
    np.save(tmp_path / "nine.npy", maps)
    found = read(write, truth, *numbered(3))
    out = tmp_path / "copy"
    out.mkdir()
    write_rvc1(out / "copy.json", found, truth)
    again = read_detections(out / "copy.json", truth)
    assert again.heatmaps is not None
    np.testing.assert_array_equal(np.stack([np.asarray(heatmap) for heatmap in again.heatmaps]), maps)


def test_masks_are_written_as_heatmaps(tmp_path: Path) -> None:
    world = random_world(3)
    truth, found = world[0], with_masks(world, 3)
    write_rvc1(tmp_path / "found.json", found, truth)
    read, want = read_detections(tmp_path / "found.json", truth), found[np.argsort(found.image_ids, kind="stable")]
    assert read.masks is None
    np.testing.assert_array_equal(read.has_heatmap, want.has_heatmap | want.has_mask)
    for row in np.flatnonzero(want.has_mask & ~want.has_heatmap).tolist():
        heatmap = np.asarray(read.heatmaps[row])
        np.testing.assert_array_equal(heatmap, want.masks.to_array(row, *heatmap.shape) * 255)
        assert heatmap.dtype == np.uint8
    assert evaluate(truth, read).pdq == pytest.approx(evaluate(truth, found).pdq, rel=1e-7)
