"""Masks of YOLOv8-seg as heatmaps: from prototypes to pixels of the image, over an interruption, into a file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from detect_graphs import fixed_outputs, with_metadata
from hypothesis import given
from hypothesis import strategies as st

import probox
from probox.detect import Detector, Options, detect, detect_images, find_images
from probox.detect.candidates import Placement, PrototypeMasks, pack_heatmaps, unpack_heatmaps
from probox.errors import InputError
from probox.notes import Note
from probox.tables.dataset import Dataset
from probox.tables.heatmaps import LEAST, WindowHeatmap, to_bytes

from .conftest import Run

CLASSES = ("cup", "dog", "car")
SAYS = {"names": str(dict(enumerate(CLASSES))), "imgsz": "[64, 64]", "task": "segment", "stride": "32"}
MASKS = Options(uncertainty="masks", score_threshold=0.2)


def _segmenter(path: Path, *, prototypes: int = 4, open_axes: bool = False) -> Path:
    rng = np.random.default_rng(2)
    columns = np.zeros((1, 7 + prototypes, 84), np.float32)
    columns[0, :4, 10], columns[0, 4:7, 10] = [24, 30, 32, 20], [0.9, 0.1, 0.0]
    columns[0, :4, 70], columns[0, 4:7, 70] = [40, 36, 30, 22], [0.0, 0.1, 0.5]
    columns[0, 7:] = rng.normal(0, 1, (prototypes, 84))
    mixed = rng.normal(0, 2, (1, prototypes, 16, 16)).astype(np.float32)
    shapes = {"output0": ["n", "c", "a"], "output1": ["n", "p", "h", "w"]} if open_axes else None
    image = ["batch", 3, "height", "width"] if open_axes else [1, 3, 64, 64]
    graph = fixed_outputs(path, {"images": image}, {"output0": columns, "output1": mixed}, shapes)
    return with_metadata(graph, SAYS)


def _defined(coefficients: np.ndarray, prototypes: np.ndarray, box: np.ndarray, placement: Placement) -> np.ndarray:
    """The definition, pixel by pixel: the logit between four prototype pixels, as a probability inside the box."""
    logits = np.tensordot(coefficients, prototypes, 1)
    high, wide = logits.shape
    width, height = placement.image_size
    heat = np.zeros((height, width))
    for y in range(height):
        for x in range(width):
            if not (box[0] <= x < box[2] and box[1] <= y < box[3]):
                continue
            u = np.clip(((x + 0.5) * placement.scale[0] + placement.offset[0]) / 64 * wide - 0.5, 0, wide - 1)
            v = np.clip(((y + 0.5) * placement.scale[1] + placement.offset[1]) / 64 * high - 0.5, 0, high - 1)
            a, b = int(u), int(v)
            c, d = min(a + 1, wide - 1), min(b + 1, high - 1)
            above = logits[b, a] + (logits[b, c] - logits[b, a]) * (u - a)
            below = logits[d, a] + (logits[d, c] - logits[d, a]) * (u - a)
            heat[y, x] = 1 / (1 + np.exp(-(above + (below - above) * (v - b))))
    return heat


@pytest.mark.parametrize("open_axes", [False, True])
def test_heatmaps_are_the_mixed_prototypes_at_the_images_size(tmp_path: Path, open_axes: bool) -> None:
    detector = Detector(_segmenter(tmp_path / "seg.onnx", open_axes=open_axes))
    assert (detector.family.name, detector.family.classes) == ("yolov8-seg", CLASSES)
    photo = np.full((50, 100, 3), 90, np.uint8)  # at 0.64 on the input, 16 pixels above it
    found = detect(detector, [photo], [1], MASKS)[0]
    assert found.labels.tolist() == [0, 2]
    assert found.covariances is None
    placement = Placement((0.64, 0.64), (0.0, 16.0), (100, 50))
    outputs = detector._run(detector._session, ["output0", "output1"], detector.family.prepare(photo)[0])
    for row, candidate in enumerate((10, 70)):
        expected = _defined(outputs[0][0, 7:, candidate], outputs[1][0], found.boxes[row], placement)
        heat = np.asarray(found.heatmaps[row], np.float64)
        assert heat.shape == (50, 100)
        assert ((heat > 0) == (expected > 0)).all()
        np.testing.assert_allclose(heat, np.where(expected > 0, np.clip(expected, LEAST, 1 - LEAST), 0), atol=6e-4)


@given(
    st.floats(-5, 105), st.floats(0, 60), st.floats(-5, 55), st.floats(0, 30), st.integers(0, 2**31)
)  # fmt: skip
def test_a_heatmap_is_never_sure_and_never_outside(x: float, w: float, y: float, h: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    placement = Placement((0.64, 0.64), (0.0, 16.0), (100, 50))
    masks = PrototypeMasks(rng.normal(0, 9, (3, 4)), rng.normal(0, 9, (4, 16, 16)), (64, 64), placement)
    box = np.clip([x, y, x + w, y + h], 0, [100, 50, 100, 50])
    heat = np.asarray(masks(np.array([2]), box[None])[0])
    rows, columns = np.nonzero(heat)
    assert len(rows)
    assert heat[rows, columns].max() < 1
    assert columns.min() >= min(np.floor(box[0]), 99)
    assert columns.max() <= max(np.ceil(box[2]) - 1, columns.min())
    assert rows.max() <= max(np.ceil(box[3]) - 1, rows.min())
    np.testing.assert_array_equal(heat, np.asarray(masks[[1, 2]](np.array([1]), box[None])[0]))


def test_a_window_acts_as_an_array() -> None:
    window = np.array([[0.25, 0.5], [1.0, 0.75]], np.float16)
    heatmap = WindowHeatmap((3, 4), (1, 2), window)
    whole = np.asarray(heatmap)
    assert whole[1:, 2:].tolist() == window.tolist()
    assert whole.sum() == window.sum()
    assert (heatmap.min(), heatmap.max(), heatmap.ndim, len(heatmap)) == (0, 1, 2, 3)
    assert (heatmap > 0.3).sum() == 3
    assert heatmap[1].tolist() == [0, 0, 0.25, 0.5]
    assert WindowHeatmap((2, 2), (0, 0), window).min() == 0.25
    again = unpack_heatmaps(pack_heatmaps([heatmap, heatmap]), (4, 3))
    assert [np.asarray(each).tolist() for each in again] == [whole.tolist()] * 2
    assert pack_heatmaps(None) == {}
    assert unpack_heatmaps(pack_heatmaps([]), (4, 3)) == []


class _Stopping:
    def __init__(self, detector: Detector) -> None:
        self.family, self.batch, self.fingerprint = detector.family, 1, detector.fingerprint
        self._detector, self._seen = detector, 0

    def candidates(self, images: list) -> list:
        self._seen += 1
        if self._seen == 3:
            raise KeyboardInterrupt
        return self._detector.candidates(images)


def test_masks_outlive_an_interruption_and_are_read_back(tmp_path: Path, photos: Path) -> None:
    detector = Detector(_segmenter(tmp_path / "seg.onnx"))
    images = find_images(photos)
    whole = detect_images(detector, images, tmp_path / "whole.rvc1.json", MASKS)
    with pytest.raises(KeyboardInterrupt):
        detect_images(_Stopping(detector), images, tmp_path / "parts.rvc1.json", MASKS)
    parts = detect_images(detector, images, tmp_path / "parts.rvc1.json", MASKS)
    assert (parts.resumed, len(parts.found)) == (2, len(whole.found))
    sizes = {3: (64, 48), 7: (40, 80), 12: (64, 64), 20: (100, 30)}
    dataset = Dataset(
        classes=CLASSES, image_ids=list(sizes), widths=[w for w, _ in sizes.values()],
        heights=[h for _, h in sizes.values()], file_names=tuple(f"{i}.png" for i in sizes),
    )  # fmt: skip
    read = probox.read_detections(tmp_path / "parts.rvc1.json", dataset)
    assert len(read) == len(whole.found) == 8
    for one, other, again in zip(whole.found.heatmaps, parts.found.heatmaps, read.heatmaps, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
        np.testing.assert_array_equal(np.asarray(one), np.asarray(again))


def test_masks_are_scored_as_they_are(tmp_path: Path) -> None:
    """Spatial quality by hand: no pixel lies outside the truth's box, so it is e to the mean log heat of the mask."""
    from probox.tables.groundtruth import GroundTruth
    from probox.tables.masks import Masks

    detector = Detector(_segmenter(tmp_path / "seg.onnx"))
    photo = np.full((50, 100, 3), 90, np.uint8)
    with_masks, plain = (
        detect(detector, [photo], [1], Options(uncertainty=how, score_threshold=0.2))[0].select([0])
        for how in ("masks", "none")
    )
    mask = np.asarray(with_masks.heatmaps[0]) >= 0.5
    dataset = Dataset(classes=CLASSES, image_ids=[1], widths=[100], heights=[50])
    truth = GroundTruth(
        dataset=dataset, image_rows=[0], labels=[0], boxes=plain.boxes, masks=Masks.from_arrays([mask]),
    )  # fmt: skip
    heat = np.asarray(with_masks.heatmaps[0], np.float64)
    assert heat[mask].min() < 0.9  # or the next line could not fail
    spatial = np.exp(np.log(heat[mask]).mean())
    result = probox.evaluate(truth, with_masks)
    assert result.pdq == pytest.approx(np.sqrt(spatial * 0.9), rel=1e-6)
    dense = with_masks.replace(heatmaps=[np.asarray(with_masks.heatmaps[0])])
    assert probox.evaluate(truth, dense).pdq == result.pdq


def test_formats_without_heatmaps_get_masks_with_a_note(tmp_path: Path, photos: Path, run: Run) -> None:
    graph, images = _segmenter(tmp_path / "seg.onnx"), find_images(photos)
    done = detect_images(Detector(graph), images, tmp_path / "found.coco.json", MASKS)
    note = Note("heatmaps-thresholded", len(done.found), format="COCO results")
    assert note in done.notes
    sizes = {image.image_id: done.sizes[image.image_id] for image in images}
    read = probox.read_detections(tmp_path / "found.coco.json", Dataset.from_sizes(CLASSES, sizes))
    for row, heatmap in enumerate(done.found.heatmaps):
        np.testing.assert_array_equal(read.masks.to_array(row, *heatmap.shape), np.asarray(heatmap) > 0.5)
    assert done.found.has_heatmap.all()
    status, _, words = run(graph, "--images", photos, "--out", tmp_path / "again.coco.json", "--uncertainty", "masks")
    assert (status, str(note) in words) == (0, True)
    done = detect_images(Detector(graph), images, tmp_path / "found.parquet", MASKS)
    assert not [note for note in done.notes if note.code == "heatmaps-thresholded"]
    read = probox.read_detections(tmp_path / "found.parquet", Dataset.from_sizes(CLASSES, sizes))
    for heatmap, again in zip(done.found.heatmaps, read.heatmaps, strict=True):
        np.testing.assert_array_equal(np.asarray(again), to_bytes(heatmap))


def test_the_command_line_writes_heatmaps(tmp_path: Path, photos: Path, run: Run) -> None:
    graph, out = _segmenter(tmp_path / "seg.onnx", open_axes=True), tmp_path / "found.rvc1.json"
    assert run(graph, "--images", photos, "--out", out, "--uncertainty", "masks")[0] == 0
    assert len(json.loads(out.read_bytes())["detections"]) == 4
    assert len(list(tmp_path.glob("found*.float16.npy"))) == 4


def test_detectors_without_masks_are_refused(tmp_path: Path, ssd: Path) -> None:
    with pytest.raises(InputError, match="ssd predicts no masks"):
        detect(Detector(ssd, classes=CLASSES), [np.zeros((8, 8, 3), np.uint8)], [1], Options(uncertainty="masks"))


def test_classes_of_a_segmenter_without_names_are_what_the_prototypes_leave(tmp_path: Path) -> None:
    graph = with_metadata(_segmenter(tmp_path / "seg.onnx"), {})
    with pytest.raises(InputError, match="3 classes, which are not COCO's"):
        Detector(graph)
    assert Detector(graph, classes=CLASSES).family.name == "yolov8-seg"
    with pytest.raises(InputError, match="expected 3 class names"):
        Detector(graph, classes=("cup", "dog"))
