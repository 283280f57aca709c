"""`probox convert`, and the format of OUT by its name."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli import in_process

from probox.formats import read_detections, read_truth
from probox.notes import Note


def run(*args: object) -> tuple[int, str, str]:
    return in_process.run("convert", *args)


def test_there_and_back(golden_dir: Path, tmp_path: Path) -> None:
    truth, source = golden_dir / "pbox_full" / "ground_truth.json", golden_dir / "pbox_full" / "detections.json"
    status, out, err = run(source, tmp_path / "coco.json", "--truth", truth)
    assert (status, out) == (0, "")
    assert err == f"wrote 108 detections to {tmp_path / 'coco.json'} (COCO results)\n"
    assert isinstance(json.loads((tmp_path / "coco.json").read_text()), list)
    status, out, _ = run(tmp_path / "coco.json", tmp_path / "back.json.gz", "--truth", truth, "--json")
    assert status == 0
    assert json.loads(out) == {
        "input": str(tmp_path / "coco.json"), "output": str(tmp_path / "back.json.gz"), "format": "rvc1",
        "detections": 108, "notes": [],
    }  # fmt: skip
    table = read_truth(truth)
    first, last = read_detections(source, table), read_detections(tmp_path / "back.json.gz", table)
    np.testing.assert_array_equal(first.label_probs, last.label_probs)
    np.testing.assert_array_equal(first.covariances, last.covariances)
    np.testing.assert_allclose(first.boxes, last.boxes, atol=1e-12, rtol=0)


def test_masks_stay(tmp_path: Path) -> None:
    sizes = [{"id": number, "width": 30, "height": 20} for number in (4, 9)]
    truth = {"images": sizes, "categories": [{"id": 7, "name": "cup"}], "annotations": []}
    mask = {"size": [20, 30], "counts": "[14`000NAO?30000e="}
    rows = [
        {"image_id": 4, "category_id": 7, "bbox": [2, 3, 6, 4], "score": 0.5, "segmentation": mask},
        {"image_id": 9, "category_id": 7, "bbox": [2, 3, 6, 4], "score": 0.25},
    ]
    for name, content in (("truth.json", truth), ("found.json", rows)):
        (tmp_path / name).write_text(json.dumps(content))
    source = tmp_path / "found.json"
    for name in ("copy.coco.json", "found.parquet", "back.coco.json"):
        assert run(source, tmp_path / name, "--truth", tmp_path / "truth.json")[0] == 0
        source = tmp_path / name
    assert json.loads(source.read_text()) == rows
    assert run(tmp_path / "found.json", tmp_path / "found.rvc1.json", "--truth", tmp_path / "truth.json")[0] == 0
    heatmap = np.asarray(read_detections(tmp_path / "found.rvc1.json", read_truth(tmp_path / "truth.json")).heatmaps[0])
    assert (heatmap.sum(), heatmap.max()) == (23 * 255, 255)


def test_without_truth_the_format_stays(golden_dir: Path, tmp_path: Path) -> None:
    source = golden_dir / "bbox" / "detections.json"
    assert run(source, tmp_path / "packed.json.gz")[0] == 0
    assert gzip.decompress((tmp_path / "packed.json.gz").read_bytes()) == source.read_bytes()
    status, _, err = run(source, tmp_path / "coco.json", "--to", "coco")
    assert status == 1
    assert (
        "cannot be written as COCO results without the images and classes of the ground truth; add --truth FILE" in err
    )
    (tmp_path / "broken.json").write_text('[{"image_id": 1}]')
    status, _, err = run(tmp_path / "broken.json", tmp_path / "out.json")
    assert status == 1
    assert 'broken.json: image 1: [0]: expected a key "bbox"' in err
    assert not (tmp_path / "out.json").exists()


def test_challenge_folder(golden_dir: Path, tmp_path: Path) -> None:
    truth = golden_dir / "rvc1" / "gt"
    status, _, err = run(golden_dir / "rvc1" / "det", tmp_path / "copy", "--truth", truth)
    assert status == 0
    assert "wrote 15 detections" in err
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["000000.json", "000001.json"]


def test_heatmaps(golden_dir: Path, tmp_path: Path) -> None:
    source, truth = golden_dir / "probseg" / "detections.json", golden_dir / "probseg" / "ground_truth.json"
    status, _, err = run(source, tmp_path / "a.json")
    assert status == 1
    assert "names heatmap files ('100.npy'), which would not be copied; give the ground truth (--truth FILE)" in err
    assert list(tmp_path.iterdir()) == []
    status, _, err = run(source, tmp_path / "b.json", "--truth", truth)
    assert status == 0
    assert str(Note("heatmaps-thresholded", 14, format="COCO results")) in err
    expected = read_detections(source, read_truth(truth)).with_binary_masks()
    np.testing.assert_array_equal(
        read_detections(tmp_path / "b.json", read_truth(truth)).masks.runs, expected.masks.runs
    )
    assert run(source, tmp_path / "a.json", "--truth", truth, "--to", "rvc1")[0] == 0
    assert len(list(tmp_path.glob("a.*.npy"))) == 6


def test_heatmaps_that_are_read_stay(golden_dir: Path, tmp_path: Path) -> None:
    """A file of the same name but for its ending would have heatmap files of the same names."""
    source, truth = golden_dir / "probseg" / "detections.json", golden_dir / "probseg" / "ground_truth.json"
    assert run(source, tmp_path / "a.json", "--truth", truth, "--to", "rvc1")[0] == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    words = (tmp_path / "a.json", tmp_path / "a.json.gz", "--truth", truth, "--to", "rvc1")
    status, _, err = run(*words)
    assert status == 1
    assert ".npy: would replace what it is made from; choose another name" in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (tmp_path / "there").symlink_to(tmp_path)
    status, _, err = run(tmp_path / "a.json", tmp_path / "there" / "a.json.gz", *words[2:])
    assert status == 1
    assert run(tmp_path / "a.json", tmp_path / "b.json.gz", *words[2:])[0] == 0


def test_repair(golden_dir: Path, tmp_path: Path) -> None:
    truth = golden_dir / "pbox_full" / "ground_truth.json"
    detections = json.loads((golden_dir / "pbox_full" / "detections.json").read_text())
    first = next(row for image in detections["detections"] for row in image)
    first["covars"][0] = [[1, 2], [2, 1]]
    (tmp_path / "bad.json").write_text(json.dumps(detections))
    status, _, err = run(tmp_path / "bad.json", tmp_path / "out.json", "--truth", truth, "--to", "rvc1")
    assert status == 1
    assert "smallest eigenvalue is -1" in err
    status, _, err = run(tmp_path / "bad.json", tmp_path / "out.json", "--truth", truth, "--to", "rvc1", "--repair")
    assert status == 0
    assert f"note: {Note('repaired-covariances', 1)}" in err


@pytest.mark.parametrize("target", ["missing/folder/out.json", "."])
def test_output_that_cannot_be_written(golden_dir: Path, tmp_path: Path, target: str) -> None:
    case = golden_dir / "bbox"
    status, out, err = run(
        case / "detections.json", tmp_path / target, "--truth", case / "ground_truth.json", "--to", "coco"
    )
    assert (status, out) == (1, "")
    assert err.startswith("probox: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def convert(*words: object) -> str:
    """Convert a file; return the format, or the error."""
    _, out, err = run(*words, "--json")
    return str(json.loads(out)["format"]) if out else err


@pytest.fixture
def sources(golden_dir: Path, tmp_path: Path) -> dict[str, Path]:
    """Return detections in each format, and their ground truth."""
    files = {"truth": golden_dir / "bbox" / "ground_truth.json", "rvc1": golden_dir / "bbox" / "detections.json"}
    for form in ("coco", "parquet"):
        files[form] = tmp_path / f"in.{form}"
        assert convert(files["rvc1"], files[form], "--truth", files["truth"], "--to", form) == form
    return files


@pytest.mark.parametrize("given", ["coco", "rvc1", "parquet"])
def test_with_truth(sources: dict[str, Path], tmp_path: Path, given: str) -> None:
    plain = "rvc1" if given == "coco" else "coco"
    meant = {"a.coco.json": "coco", "a.bbox.json.gz": "coco", "a.rvc1.json": "rvc1", "a.rvc1.json.gz": "rvc1",
             "a.parquet": "parquet", "b.PARQUET": "parquet", "a.json": plain, "a.json.gz": plain}  # fmt: skip
    for name, form in meant.items():
        assert convert(sources[given], tmp_path / name, "--truth", sources["truth"]) == form, name


@pytest.mark.parametrize("given", ["coco", "rvc1"])
def test_without_truth(sources: dict[str, Path], tmp_path: Path, given: str) -> None:
    for name in (f"a.{given}.json", "a.json", "a.json.gz", "a"):
        assert convert(sources[given], tmp_path / name) == given, name
    other = {"coco": ("a.rvc1.json", "RVC1"), "rvc1": ("b.coco.json", "COCO results")}
    for name, title in (other[given], ("a.parquet", "Parquet")):
        assert f"cannot be written as {title} without the images and classes" in convert(
            sources[given], tmp_path / name
        )
        assert not (tmp_path / name).exists()


def test_parquet_without_truth(sources: dict[str, Path], tmp_path: Path) -> None:
    assert convert(sources["parquet"], tmp_path / "a.parquet") == "parquet"
    assert convert(sources["parquet"], tmp_path / "a") == "parquet"
    assert "cannot be written as COCO results without" in convert(sources["parquet"], tmp_path / "a.json")


def test_ground_truth_becomes_parquet_and_stays_ground_truth(sources: dict[str, Path], tmp_path: Path) -> None:
    assert convert(sources["truth"], tmp_path / "truth.parquet") == "parquet"
    assert convert(tmp_path / "truth.parquet", tmp_path / "copy.parquet") == "parquet"
    assert read_truth(tmp_path / "copy.parquet").boxes.tolist() == read_truth(sources["truth"]).boxes.tolist()
    broken = json.loads(sources["truth"].read_text())
    broken["annotations"][0]["image_id"] = -1
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    said = convert(tmp_path / "broken.json", tmp_path / "broken.parquet")
    assert "annotations[0].image_id: expected the id of one of the" in said
