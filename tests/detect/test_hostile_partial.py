"""A folder of kept results that somebody has changed: images are made again, or the file is named."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from detect_graphs import small_ssd
from PIL import Image

from probox.detect import Detector, ImageFile, Options, detect_images, find_images
from probox.detect.run import DetectionRun, Partial, PhotoResult
from probox.detect.uncertainty import Found
from probox.errors import InputError
from probox.tables.detections import Detections
from probox.tables.heatmaps import WindowHeatmap

OPTIONS = Options(score_threshold=0.01)


def _stop(done: int, total: int) -> None:
    if done == 2:
        raise KeyboardInterrupt


@dataclasses.dataclass
class Interrupted:
    """Three photos, and what a run that was interrupted after two of them left."""

    detector: Detector
    photos: Path
    left: Path
    straight: bytes
    """The file of a run that was not interrupted."""

    def copy(self, folder: Path) -> Path:
        return shutil.copytree(self.left, folder / "found.json.partial")

    def resume(self, folder: Path) -> DetectionRun:
        return detect_images(self.detector, find_images(self.photos), folder / "found.json", OPTIONS)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Interrupted:
    folder = tmp_path_factory.mktemp("interrupted")
    detector = Detector(small_ssd(folder / "ssd.onnx"), classes=("cup", "dog", "car"), threads=1)
    (folder / "photos").mkdir()
    for number in (5, 6, 7):
        pixels = np.random.default_rng(number).integers(0, 255, (40, 60, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"{number}.png")
    images = find_images(folder / "photos")
    detect_images(detector, images, folder / "straight.json", OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        detect_images(detector, images, folder / "found.json", OPTIONS, progress=_stop)
    straight = (folder / "straight.json").read_bytes()
    return Interrupted(detector, folder / "photos", folder / "found.json.partial", straight)


def _change(file: Path, save: Callable[..., Any] = np.savez, **changes: Any) -> None:
    """Write the columns of an image with others in their place, which may be made of them."""
    with np.load(file) as kept:
        columns = dict(kept)
    assert len(columns["boxes"]) > 1
    made = {name: change(columns) if callable(change) else change for name, change in changes.items()}
    save(file, **columns | made)


def _rows(*shape: int, value: Any = 0, dtype: Any = np.float64) -> Callable[[dict[str, np.ndarray]], np.ndarray]:
    return lambda columns: np.full((len(columns["boxes"]), *shape), value, dtype)


TAMPERING: dict[str, dict[str, Any] | bytes] = {
    "empty": b"",
    "half an archive": b"PK\x03\x04 half",
    "three numbers in a box": {"boxes": lambda columns: columns["boxes"][:, :3]},
    "box that is not finite": {"boxes": _rows(4, value=np.nan)},
    "box turned round": {"boxes": lambda columns: columns["boxes"][:, [2, 3, 0, 1]]},
    "single precision": {"boxes": lambda columns: columns["boxes"].astype(np.float32)},
    "columns first": {"boxes": lambda columns: np.asfortranarray(columns["boxes"])},
    "fewer rows": {"boxes": lambda columns: columns["boxes"][:-1]},
    "another number of classes": {"label_probs": lambda columns: columns["label_probs"][:, :1]},
    "expected 0 to 1": {"label_probs": lambda columns: columns["label_probs"] + 1},
    "no such class": {"labels": _rows(value=100, dtype=np.int32)},
    "scores that are not finite": {"scores": _rows(value=np.inf)},
    "pickled objects": {"scores": _rows(value=None, dtype=object)},
    "invalid covariances": {"covariances": _rows(2, 2, 2, value=-1.0)},
    "invalid scores without masks": {"plain_scores": np.full((3, 2), np.nan, np.float32)},
    "text as size": {"size": np.array([["60", "40"]])},
    "no size": {"size": np.zeros((0, 2), np.int64)},
    "size below 1": {"size": np.array([[0, -40]])},
    "huge size": {"size": np.array([[1 << 62, 1 << 62]])},
    "several photos": {"photo": np.array(["a", "b"]), "size": np.ones((2, 2), np.int64)},
    "invalid text": {"traits": np.array([0x110000], np.uint32).view("<U1")},
    "window without heat": {"windows": _rows(4, value=1, dtype=np.int64)},
    "heat without window": {"heat": np.ones(9, np.float16)},
    "window outside": {"windows": _rows(4, value=1 << 62, dtype=np.int64), "heat": np.ones(9, np.float16)},
    "too little heat": {"windows": _rows(4, value=1, dtype=np.int64), "heat": np.zeros(0, np.float16)},
    "invalid heat": {"windows": _rows(4, value=1, dtype=np.int64), "heat": _rows(value=-1, dtype=np.float16)},
}


@pytest.mark.parametrize("kind", TAMPERING)
def test_images_whose_results_are_invalid_are_made_again(run: Interrupted, tmp_path: Path, kind: str) -> None:
    file, changes = run.copy(tmp_path) / "6.npz", TAMPERING[kind]
    _ = file.write_bytes(changes) if isinstance(changes, bytes) else _change(file, **changes)
    assert run.resume(tmp_path).resumed == 1
    assert (tmp_path / "found.json").read_bytes() == run.straight
    assert not (tmp_path / "found.json.partial").exists()


def test_other_arrays_are_not_read(run: Interrupted, tmp_path: Path) -> None:
    _change(run.copy(tmp_path) / "6.npz", extra=np.full(3, None, object))
    assert run.resume(tmp_path).resumed == 2
    assert (tmp_path / "found.json").read_bytes() == run.straight


def test_results_of_another_kind_are_refused(run: Interrupted, tmp_path: Path) -> None:
    _change(run.copy(tmp_path) / "6.npz", covariances=_rows(2, 2, 2))
    with pytest.raises(InputError, match=r"6\.npz: image 6: .* have other columns than those before it; delete it"):
        run.resume(tmp_path)


def test_an_archive_that_claims_far_more_than_it_holds_is_not_unpacked(
    run: Interrupted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probox.evaluation.archive.ALWAYS_FINE", 1 << 20)  # so that a small claim does
    _change(run.copy(tmp_path) / "6.npz", np.savez_compressed, boxes=np.zeros((1_000_000, 4)))
    tracemalloc.start()
    try:
        assert run.resume(tmp_path).resumed == 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "found.json").read_bytes() == run.straight
    assert peak < 16e6


@pytest.mark.parametrize("name", ["6.npz", "settings.json", "lock"])
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_only_regular_files_are_used(run: Interrupted, tmp_path: Path, name: str, kind: str) -> None:
    """A pipe is not waited for, and a link is not followed, so that nothing is made where it leads."""
    file, outside = run.copy(tmp_path) / name, tmp_path / "outside"
    file.unlink()
    {"pipe": os.mkfifo, "folder": Path.mkdir, "link": lambda path: path.symlink_to(outside)}[kind](file)
    with pytest.raises(InputError) as caught:
        run.resume(tmp_path)
    assert str(caught.value).startswith(f"{file}: ")
    assert str(caught.value).endswith("; delete it, and run the same command again")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.json.partial"]


@pytest.mark.parametrize(
    "content", [b"[" * 100_000, b'{"a":' * 100_000, b" " * (2 << 20), b"\xff", b"null"], ids=range(5)
)
def test_settings_that_no_run_writes_are_refused(run: Interrupted, tmp_path: Path, content: bytes) -> None:
    (run.copy(tmp_path) / "settings.json").write_bytes(content)
    with pytest.raises(InputError, match=r"found\.json\.partial: an interrupted run with other settings"):
        run.resume(tmp_path)


def test_what_detectors_may_find_besides_boxes_is_kept(tmp_path: Path) -> None:
    images = [ImageFile(number, tmp_path / f"{number}.png") for number in (1, 2)]
    window = np.array([[0.5, 1.0]], np.float16)
    found = Detections(
        classes=("cup", "dog"),
        image_ids=[1, 1],
        boxes=np.array([[1.0, 2.0, 3.0, 4.0]] * 2),
        label_probs=np.array([[0.25, 0.5]] * 2, np.float32),
        covariances=np.ones((2, 2, 2, 2)),
        heatmaps=[WindowHeatmap((4, 6), (row, 1), window) for row in range(2)],
    )
    plain = np.array([[0.5, 0.25], [0.125, 0.0]], np.float32)
    with Partial(tmp_path / "found.json", {}, found.classes) as kept:
        kept.put(PhotoResult(images[0], "stamp", (6, 4), Found(found, plain), traits=("turned",)))
        kept.put(PhotoResult(images[1], "stamp", (6, 4), Found(found.select([]), plain[:0])))
        assert [kept.state_of(image) for image in images] == ["changed", "changed"]
        again, scores, parts = kept.collect(images)
    assert [(part.image, part.size, part.traits) for part in parts] == [
        (images[0], (6, 4), ("turned",)),
        (images[1], (6, 4), ()),
    ]
    np.testing.assert_array_equal(scores, plain)
    for name in ("image_ids", "boxes", "label_probs", "covariances", "labels", "scores"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    for heatmap, expected in zip(again.heatmaps, found.heatmaps, strict=True):
        np.testing.assert_array_equal(heatmap, expected)
