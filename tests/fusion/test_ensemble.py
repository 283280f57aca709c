"""Ensembles: tables of several detectors, and the command that fuses their files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import probox
from probox.cli import main
from probox.errors import InputError
from probox.formats import read_detections, write_coco_results, write_rvc1
from probox.fusion import fuse_detections, fuse_samples
from probox.notes import Note
from probox.tables.masks import Masks


def _member(classes: list[str], seed: int, covariances: bool = False) -> probox.Detections:
    """Two objects in each of the images 5 and 9, jittered; columns in any order of classes."""
    rng = np.random.default_rng(seed)
    base = np.array([[10.0, 10, 60, 70], [80, 20, 150, 90]])
    boxes = np.concatenate([base, base]) + rng.normal(0, 1.5, (4, 4))
    probs = np.zeros((4, 2), np.float32)
    probs[:, classes.index("cup")] = [0.9, 0.1, 0.8, 0.2]
    probs[:, classes.index("dog")] = [0.05, 0.7, 0.1, 0.6]
    return probox.Detections(
        classes=classes, image_ids=[9, 9, 5, 5], boxes=boxes, label_probs=probs,
        covariances=np.tile(np.eye(2) * 4.0, (4, 2, 1, 1)) if covariances else None,
    )  # fmt: skip


def _truth() -> probox.GroundTruth:
    sizes = {5: (200, 100), 9: (200, 100)}
    boxes = [[10, 10, 50, 60], [70, 20, 80, 70]] * 2
    return probox.GroundTruth.from_boxes(["cup", "dog"], sizes, [5, 5, 9, 9], boxes, [0, 1, 0, 1])


def test_members_are_fused_image_by_image() -> None:
    members = [_member(["cup", "dog"], 0), _member(["dog", "cup"], 1), _member(["cup", "dog"], 2)]
    fused = fuse_detections(members)
    assert fused.image_ids.tolist() == [5, 5, 9, 9]
    assert fused.labels.tolist() == [0, 1, 0, 1]
    np.testing.assert_allclose(fused.scores, [0.8, 0.6, 0.9, 0.7], rtol=1e-6)
    alone = fuse_samples(
        [member.boxes[2:] for member in members],
        [member.label_probs[2:][:, [member.classes.index(name) for name in ("cup", "dog")]] for member in members],
        classes=["cup", "dog"], image_id=5,
    )  # fmt: skip
    np.testing.assert_array_equal(fused.boxes[:2], alone.boxes)
    np.testing.assert_array_equal(fused.covariances[:2], alone.covariances)


def test_probabilistic_members_keep_their_covariances() -> None:
    fused = fuse_detections([_member(["cup", "dog"], 0, True), _member(["cup", "dog"], 1)], min_std=0.0)
    # The mean of 4 and of nothing, plus the spread between the members.
    assert (fused.covariances[:, :, 0, 0] > 2.0).all()
    single = fuse_detections([_member(["cup", "dog"], 0, True)])
    np.testing.assert_allclose(single.covariances, np.tile(np.eye(2) * 4.0, (4, 2, 1, 1)))


def test_nothing_to_fuse() -> None:
    with pytest.raises(InputError, match="at least one"):
        fuse_detections([])
    nothing = _member(["cup", "dog"], 0).select([])
    assert len(fuse_detections([nothing, nothing])) == 0


@pytest.mark.parametrize("name", ["out.json", "out.coco.json.gz", "out.parquet"])
def test_files_are_fused(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    truth = _truth()
    coco = {
        "images": [{"id": number, "width": 200, "height": 100, "file_name": f"{number}.jpg"} for number in (5, 9)],
        "categories": [{"id": 1, "name": "cup"}, {"id": 2, "name": "dog"}],
        "annotations": [],
    }
    (tmp_path / "truth.json").write_text(json.dumps(coco))
    write_rvc1(tmp_path / "a.json", _member(["cup", "dog"], 0), truth)
    masks = Masks.from_boxes(np.tile(np.array([5, 5, 9, 9], np.int32), (4, 1)))
    write_coco_results(tmp_path / "b.json", _member(["cup", "dog"], 1).replace(masks=masks), truth)
    files = [str(tmp_path / file) for file in ("truth.json", "a.json", "b.json")]
    with pytest.raises(SystemExit) as done:
        main(["fuse", *files, "--out", str(tmp_path / name), "--json"])
    assert done.value.code == 0
    told = json.loads(capsys.readouterr().out)
    assert told["detections"] == 4
    assert [note["code"] for note in told["notes"]] == ["masks-not-fused"]
    fused = read_detections(tmp_path / name, truth)
    assert len(fused) == 4
    assert (fused.covariances[:, :, 0, 0] >= 1.0 - 1e-9).all()


def test_files_are_pinned_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = {"id": 5, "width": 80, "height": 60, "file_name": "5.jpg"}
    coco = {"images": [image], "categories": [{"id": 1, "name": "cup"}], "annotations": []}
    (tmp_path / "truth.json").write_text(json.dumps(coco))
    truth = probox.read_truth(tmp_path / "truth.json")
    member = probox.Detections(classes=["cup"], image_ids=[5], boxes=[[0, 20, 40, 50]], label_probs=[[0.9]])
    write_rvc1(tmp_path / "a.json", member, truth)
    files = [str(tmp_path / file) for file in ("truth.json", "a.json", "a.json")]
    stds = {}
    for border in ("keep", "pin"):
        with pytest.raises(SystemExit):
            main(["fuse", *files, "--border", border, "--out", str(tmp_path / "out.json"), "--json"])
        notes = json.loads(capsys.readouterr().out)["notes"]
        assert [note["message"].split(":")[0] for note in notes] == ([] if border == "keep" else ["--border pin"])
        stds[border] = np.sqrt(read_detections(tmp_path / "out.json", truth).covariances[0, 0, 0, 0])
    assert stds["pin"] == pytest.approx(0.25)
    assert stds["keep"] > 2.0


def test_masks_are_dropped_with_a_note():
    member = _member(["cup", "dog"], 0)
    masks = Masks.from_boxes(np.tile([[0, 0, 3, 3]], (len(member), 1)))
    fused = fuse_detections([member.replace(masks=masks), _member(["cup", "dog"], 1)])
    assert fused.masks is None
    assert fused.notes[-1] == Note("masks-not-fused", len(member))
    assert (
        fused.replace(notes=()).boxes.tolist() == fuse_detections([member, _member(["cup", "dog"], 1)]).boxes.tolist()
    )
