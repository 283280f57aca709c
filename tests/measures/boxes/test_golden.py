"""The golden folders: mAP and moLRP as published, and pycocotools' twelve numbers on the same boxes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from probox import Detections, GroundTruth, Masks, evaluate
from probox.formats import read_detections, read_truth
from probox.measures.boxes import average_precision, lrp
from probox.measures.boxes.mean_ap import COCO_LABELS
from probox.tables.dataset import Dataset

FOLDERS = ("bbox", "mixed", "outside", "pbox_corr", "pbox_diag", "pbox_full", "pbox_huge", "pbox_tiny")


def read_boxes(folder: Path) -> tuple[GroundTruth, Detections]:
    """Read annotated boxes and detections; a detection by heatmap gets the box of what it holds at least even odds."""
    data = json.loads((folder / "ground_truth.json").read_text())
    said = json.loads((folder / "detections.json").read_text())
    images = sorted(data["images"], key=lambda image: image["id"])
    categories = sorted(data["categories"], key=lambda category: category["id"])
    row = {image["id"]: at for at, image in enumerate(images)}
    column = {category["id"]: at for at, category in enumerate(categories)}
    there = sorted(data["annotations"], key=lambda annotation: row[annotation["image_id"]])
    xywh = np.array([annotation["bbox"] for annotation in there], dtype=float)
    truth = GroundTruth(
        dataset=Dataset(
            classes=[category["name"] for category in categories],
            image_ids=list(row),
            widths=[image["width"] for image in images],
            heights=[image["height"] for image in images],
        ),
        image_rows=[row[annotation["image_id"]] for annotation in there],
        labels=[column[annotation["category_id"]] for annotation in there],
        boxes=np.concatenate([xywh[:, :2], xywh[:, :2] + xywh[:, 2:]], axis=1),
        extents=xywh[:, 2:],
        masks=Masks.from_boxes(np.zeros((len(there), 4), np.int32)),
        areas=[annotation["area"] for annotation in there],
        crowd=[bool(annotation.get("iscrowd", 0)) for annotation in there],
    )
    return truth, detections_of(said, list(row), folder)


def detections_of(said: dict, image_ids: list[int], folder: Path) -> Detections:
    rows = [(image_id, entry) for image_id, group in zip(image_ids, said["detections"], strict=True) for entry in group]
    return Detections(
        classes=said["classes"],
        image_ids=[image_id for image_id, _ in rows],
        boxes=[entry.get("bbox") or heatmap_box(folder, entry) for _, entry in rows],
        label_probs=[entry["label_probs"] for _, entry in rows],
    )


def heatmap_box(folder: Path, entry: dict) -> list[float]:
    heatmap = np.load(folder / entry["masks_file"])[entry["mask_id"]]
    inside = heatmap >= (128 if heatmap.dtype == np.uint8 else 0.5)
    if not inside.any():
        return [0.0, 0.0, 0.0, 0.0]
    y, x = np.nonzero(inside)
    return [float(x.min()), float(y.min()), float(x.max() + 1), float(y.max() + 1)]


def read_challenge(folder: Path) -> tuple[GroundTruth, Detections]:
    """Read the boxes of the challenge sequences, one image after the other."""
    parts, images, where, boxes, labels = [], {}, [], [], []
    classes: list[str] = []
    for sequence in sorted((folder / "gt").iterdir()):
        said = json.loads((folder / "det" / f"{sequence.name}.json").read_text())
        classes = said["classes"]
        frames = json.loads((sequence / "labels.json").read_text())
        ids = list(range(len(images), len(images) + len(said["detections"])))
        for image_id, frame in zip(ids, sorted(frames), strict=True):
            images[image_id] = (100, 100)
            for key, entry in frames[frame].items():
                if key != "_metadata":
                    where.append(image_id)
                    boxes.append(entry["bounding_box"])
                    labels.append(classes.index(entry["class"]))
        parts.append(detections_of(said, ids, folder))
    found = Detections(
        classes=classes,
        image_ids=np.concatenate([part.image_ids for part in parts]),
        boxes=np.concatenate([part.boxes for part in parts]),
        label_probs=np.concatenate([part.label_probs for part in parts]),
    )
    return GroundTruth.from_boxes(classes, images, where, boxes, labels), found


@pytest.mark.parametrize("name", FOLDERS)
def test_map_and_molrp_are_the_published_ones(golden_dir, name):
    expected = json.loads((golden_dir / name / "expected.json").read_text())["summary"]
    truth, found = read_boxes(golden_dir / name)
    result = lrp(truth, found)
    ours = (average_precision(truth, found).map, result.molrp, result.loc, result.fp, result.fn)
    published = [expected[key] for key in ("mAP", "moLRP", "moLRPLoc", "moLRPFP", "moLRPFN")]
    np.testing.assert_allclose(ours, published, rtol=0, atol=1e-9)


def test_map_of_the_challenge_is_the_references(golden_dir):
    """Its boxes end on the last pixel, in the truth and in the detections."""
    expected = json.loads((golden_dir / "rvc1" / "expected.json").read_text())["summary"]
    truth = read_truth(golden_dir / "rvc1" / "gt")
    found = read_detections(golden_dir / "rvc1" / "det", truth)
    assert average_precision(truth, found).map == pytest.approx(expected["mAP"], abs=1e-9)
    assert expected["mAP"] == 0.40775577557755777


@pytest.mark.parametrize("name", [*FOLDERS, "probseg", "rvc1"])
def test_twelve_numbers_are_those_of_pycocotools(golden_dir, coco_twelve, name):
    read = read_challenge if name == "rvc1" else read_boxes
    truth, found = read(golden_dir / name)
    ours = average_precision(truth, found)
    assert ours.map > 0
    np.testing.assert_allclose(list(ours.summary().values()), coco_twelve(truth, found), rtol=0, atol=1e-12)
    np.testing.assert_equal(evaluate(truth, found, measures="map").coco(), ours.summary())
    assert list(ours.summary()) == list(COCO_LABELS)


@pytest.mark.parametrize("name", FOLDERS)
def test_exact_is_at_most_the_grid(golden_dir, name):
    truth, found = read_boxes(golden_dir / name)
    grid, exact = lrp(truth, found), lrp(truth, found, variant="exact")
    assert (exact.olrp <= grid.olrp).all(where=~np.isnan(grid.olrp))
