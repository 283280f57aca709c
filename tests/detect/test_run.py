"""Runs over many images: resumed, complete or not at all, bad images named, files that read back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from probox.detect import Detector, ImageFile, Options, detect_images, find_images, save_detections
from probox.detect.partial import Partial
from probox.errors import InputError
from probox.files.staging import claim, staging
from probox.formats import read_detections
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

CLASSES = ("cup", "dog", "car")


def _detector(ssd: Path) -> Detector:
    return Detector(ssd, classes=CLASSES, threads=1)


class Stopper:
    """A progress callback that interrupts after so many images."""

    def __init__(self, after: int) -> None:
        self.after = after

    def __call__(self, done: int, total: int) -> None:
        if done == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("suffix", [".json", ".coco.json"])
def test_an_interrupted_run_goes_on_and_gives_the_same(ssd: Path, photos: Path, tmp_path: Path, suffix: str) -> None:
    images = find_images(photos)
    options = Options(uncertainty="nms-clusters")
    straight, stopped = tmp_path / f"straight{suffix}", tmp_path / f"stopped{suffix}"
    detect_images(_detector(ssd), images, straight, options)
    with pytest.raises(KeyboardInterrupt):
        detect_images(_detector(ssd), images, stopped, options, progress=Stopper(2))
    assert not stopped.exists()
    run = detect_images(_detector(ssd), images, stopped, options)
    assert run.resumed == 2
    assert stopped.read_bytes() == straight.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith((".", "stopped"))) == [stopped.name]


def test_results_of_other_settings_are_refused(ssd: Path, photos: Path, tmp_path: Path) -> None:
    images, out = find_images(photos), tmp_path / "found.json"
    with pytest.raises(KeyboardInterrupt):
        detect_images(_detector(ssd), images, out, Options(), progress=Stopper(1))
    with pytest.raises(InputError, match=r"found\.json\.partial: .*other settings.*delete"):
        detect_images(_detector(ssd), images, out, Options(score=0.2))


def test_a_folder_of_the_users_is_not_used(ssd: Path, photos: Path, tmp_path: Path) -> None:
    mine = tmp_path / "found.json.partial" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    with pytest.raises(InputError, match=r"found\.json\.partial: is in the way"):
        detect_images(_detector(ssd), find_images(photos), tmp_path / "found.json", Options())
    assert [path.name for path in mine.parent.iterdir()] == ["mine.txt"]


def test_what_a_user_put_beside_kept_results_stays(ssd: Path, photos: Path, tmp_path: Path) -> None:
    images, out = find_images(photos), tmp_path / "found.json"
    with pytest.raises(KeyboardInterrupt):
        detect_images(_detector(ssd), images, out, Options(), progress=Stopper(2))
    folder = tmp_path / "found.json.partial"
    (folder / "mine.npz").write_text("mine")
    detect_images(_detector(ssd), images, out, Options())
    assert [path.name for path in folder.iterdir()] == ["mine.npz"]


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 half"])
def test_a_damaged_result_is_made_again(ssd: Path, photos: Path, tmp_path: Path, damage: bytes) -> None:
    images, out = find_images(photos), tmp_path / "found.json"
    detect_images(_detector(ssd), images, tmp_path / "straight.json", Options())
    with pytest.raises(KeyboardInterrupt):
        detect_images(_detector(ssd), images, out, Options(), progress=Stopper(3))
    (tmp_path / "found.json.partial" / "7.npz").write_bytes(damage)
    assert detect_images(_detector(ssd), images, out, Options()).resumed == 2
    assert out.read_bytes() == (tmp_path / "straight.json").read_bytes()


def test_an_image_that_got_lost_is_an_error(ssd: Path, photos: Path, tmp_path: Path) -> None:
    images, out = find_images(photos), tmp_path / "found.json"

    def lose(done: int, total: int) -> None:
        if done == total:
            (tmp_path / "found.json.partial" / "7.npz").unlink()

    with pytest.raises(InputError, match=r"7\.npz: image 7: the results of this image have disappeared"):
        detect_images(_detector(ssd), images, out, Options(), progress=lose)
    assert not out.exists()
    assert detect_images(_detector(ssd), images, out, Options()).resumed == 3


def test_a_run_without_results_leaves_nothing(ssd: Path, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "1.jpg").write_bytes(b"oops")
    with pytest.raises(InputError, match="none of the images"):
        detect_images(_detector(ssd), find_images(tmp_path / "bad"), tmp_path / "found.json", Options())
    assert not (tmp_path / "found.json.partial").exists()


def test_a_run_that_ends_leaves_the_next_one_alone(tmp_path: Path) -> None:
    with Partial(tmp_path / "found.json", {"score": 0.1}) as first:
        first.remove()
        following = Partial(tmp_path / "found.json", {"score": 0.2})
        following.__enter__()
    assert sorted(path.name for path in following.folder.iterdir()) == ["lock", "settings.json"]
    with pytest.raises(InputError, match="another run is working"):
        Partial(tmp_path / "found.json", {"score": 0.2}).__enter__()
    following.__exit__()
    assert list(tmp_path.iterdir()) == []


KILLED_AT_ONCE = """
import os, sys
from pathlib import Path
from probox.detect.partial import Partial
os.replace = lambda *paths: os._exit(9)
Partial(Path(sys.argv[1]), {}).__enter__()
"""


def test_a_run_killed_while_it_wrote_its_settings(ssd: Path, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "found.json"
    out.parent.mkdir()
    assert subprocess.run([sys.executable, "-c", KILLED_AT_ONCE, str(out)], timeout=60).returncode == 9
    left = sorted(path.name for path in out.with_name("found.json.partial").iterdir())
    assert len(left) == 2
    assert left[0].startswith(".settings.json.")
    detect_images(_detector(ssd), find_images(photos), out, Options())
    assert [path.name for path in out.parent.iterdir()] == ["found.json"]


def test_a_run_that_is_just_writing_its_settings(tmp_path: Path) -> None:
    kept = Partial(tmp_path / "found.json", {})
    kept.folder.mkdir()
    claimed = claim(kept.folder / "lock")
    assert claimed is not None
    with staging(kept.folder, "settings.json"), pytest.raises(InputError, match="another run is working"):
        kept.__enter__()
    os.close(claimed)


def test_a_bad_image_is_named_and_skipped(ssd: Path, photos: Path, tmp_path: Path) -> None:
    (photos / "7.png").write_bytes(b"oops")
    out = tmp_path / "found.json"
    run = detect_images(_detector(ssd), find_images(photos), out, Options())
    assert len(run.skipped) == 1
    assert "7.png" in run.skipped[0]
    written = json.loads(out.read_text())
    # The place of the bad image stays, or all later ones would be taken for their neighbours.
    assert [bool(entries) for entries in written["detections"]] == [True, False, True, True]


def test_only_bad_images_are_an_error(ssd: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "1.jpg").write_bytes(b"oops")
    with pytest.raises(InputError, match="none of the images could be read"):
        detect_images(_detector(ssd), find_images(folder), tmp_path / "found.json", Options())


def test_wrong_output_is_refused_before_any_work(ssd: Path, photos: Path, tmp_path: Path) -> None:
    for name, message in (("found.txt", "file name"), ("no/such/found.json", "does not exist")):
        with pytest.raises(InputError, match=message):
            detect_images(_detector(ssd), find_images(photos), tmp_path / name, Options())


def _some(count: int, classes: int, images: int) -> Detections:
    rng = np.random.default_rng(3)
    corner = rng.uniform(0, 300, (count, 2))
    factors = rng.normal(size=(count, 2, 2, 2))
    return Detections(
        classes=[f"class {number}" for number in range(classes)],
        image_ids=rng.integers(0, images, count),
        boxes=np.concatenate([corner, corner + rng.uniform(5, 200, (count, 2))], axis=1),
        label_probs=rng.dirichlet(np.full(classes, 0.1), count).astype(np.float32) * 0.99,
        covariances=factors @ np.swapaxes(factors, -1, -2),
    )


@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "a.coco.json", "a.bbox.json.gz", "a.parquet"])
def test_files_hold_what_was_found(tmp_path: Path, name: str) -> None:
    found = _some(60, 5, 4)
    images = [ImageFile(number, Path(f"{number}.jpg")) for number in range(5)]  # the last has nothing
    save_detections(tmp_path / name, found, images)
    shapes = dict.fromkeys(range(5), (500, 500))
    back = read_detections(tmp_path / name, GroundTruth.from_masks(found.classes, [], shapes=shapes))
    order = np.argsort(found.image_ids, kind="stable")
    came = np.argsort(back.image_ids, kind="stable")
    for column in ("image_ids", "boxes", "label_probs", "covariances", "labels", "scores"):
        np.testing.assert_allclose(getattr(back, column)[came], getattr(found, column)[order], rtol=1e-6)


def test_a_failure_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text("[]")

    def broken(source: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(InputError, match="disk full"):
        save_detections(path, _some(3, 2, 1), [ImageFile(0, Path("0.jpg"))])
    assert path.read_text() == "[]"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]
