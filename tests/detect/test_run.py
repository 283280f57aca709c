"""Runs over many images: resumed, complete or not at all, bad images named, files that read back."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from detect_graphs import small_yolo
from filelock import FileLock
from PIL import Image

from probox.detect import Candidates, Detector, Dropout, ImageFile, Options, detect_images, find_images, save_detections
from probox.detect.run import Partial
from probox.errors import InputError
from probox.files import checkpoint, output
from probox.formats import read_detections
from probox.notes import InputWarning, Note
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

CLASSES = ("cup", "dog", "car")


def _detector(ssd: Path) -> Detector:
    return Detector(ssd, classes=CLASSES, threads=1)


class Stopper:
    def __init__(self, after: int) -> None:
        self.after = after

    def __call__(self, done: int, total: int) -> None:
        if done == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("uncertainty", ["nms-clusters", "mc-dropout", "flip-scale"])
def test_several_at_a_time_find_the_same_to_the_bit(ssd: Path, photos: Path, tmp_path: Path, uncertainty: str) -> None:
    images, options = find_images(photos), Options(uncertainty=uncertainty, passes=3)
    given = {"classes": CLASSES, "dropout": Dropout(rate=0.2) if uncertainty == "mc-dropout" else None}
    detect_images(Detector(ssd, threads=1, **given), images, tmp_path / "alone.json", options)
    shared = Detector(ssd, threads=3, workers=3, **given)
    assert shared.workers == 3
    with pytest.raises(KeyboardInterrupt):
        detect_images(shared, images, tmp_path / "shared.json", options, progress=Stopper(2))
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]
    assert detect_images(shared, images, tmp_path / "shared.json", options).resumed == 2
    assert (tmp_path / "shared.json").read_bytes() == (tmp_path / "alone.json").read_bytes()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_detector_is_called_from_as_many_threads_as_it_says(
    ssd: Path, photos: Path, tmp_path: Path, workers: int
) -> None:
    good, threads, meeting = _detector(ssd), set(), threading.Barrier(workers, timeout=20)

    class Waiting:
        batch, family, fingerprint = 1, good.family, "waiting"

        def candidates(self, images: list[np.ndarray]) -> list[Candidates]:
            threads.add(threading.get_ident())
            meeting.wait()  # passes only if so many calls are under way
            return good.candidates(images)

    runner = Waiting()
    if workers > 1:
        runner.workers = workers
    detect_images(runner, find_images(photos), tmp_path / "found.json", Options())
    assert len(threads) == workers
    assert (threading.get_ident() in threads) == (workers == 1)


def test_other_settings_are_another_run(photos: Path, tmp_path: Path) -> None:
    path, out = small_yolo(tmp_path / "yolo.onnx"), tmp_path / "found.json"
    pair, single = (Detector(path, classes=CLASSES, batch=batch, threads=1) for batch in (2, 1))
    with pytest.raises(KeyboardInterrupt):
        detect_images(pair, find_images(photos), out, Options(), progress=Stopper(2))
    for other, options in ((single, Options()), (pair, Options(score_threshold=0.2))):
        with pytest.raises(InputError, match=r"found\.json\.partial: .*other settings.*delete"):
            detect_images(other, find_images(photos), out, options)


def test_a_batch_is_done_as_a_whole_or_again(photos: Path, tmp_path: Path) -> None:
    images, options = find_images(photos), Options(score_threshold=0.1)
    detector = Detector(small_yolo(tmp_path / "yolo.onnx"), classes=CLASSES, batch=3, threads=1)
    assert detector.batch == 3
    straight, stopped = tmp_path / "straight.json", tmp_path / "stopped.json"
    assert len(detect_images(detector, images, straight, options).found) > 4

    class Killed:
        batch, family, fingerprint, calls = 3, detector.family, detector.fingerprint, []

        def candidates(self, seen: list[np.ndarray]) -> list[Candidates]:
            self.calls.append(len(seen))
            return detector.candidates(seen)

    runner = Killed()
    with pytest.raises(KeyboardInterrupt):
        detect_images(runner, images, stopped, options, progress=Stopper(3))
    (tmp_path / "stopped.json.partial" / "7.npz").unlink()  # one of the first three is lost
    assert detect_images(runner, images, stopped, options).resumed == 0
    assert runner.calls == [3, 3, 1]
    assert stopped.read_bytes() == straight.read_bytes()
    alone = tmp_path / "alone.json"
    detect_images(Detector(tmp_path / "yolo.onnx", classes=CLASSES, threads=1), images, alone, options)
    one, other = (json.loads(path.read_text())["detections"] for path in (alone, straight))
    assert [len(found) for found in one] == [len(found) for found in other]
    for found, expected in zip(one, other, strict=True):
        np.testing.assert_allclose([e["bbox"] for e in found], [e["bbox"] for e in expected], rtol=1e-5)


def test_a_photo_that_was_replaced_is_looked_at_again_and_said(ssd: Path, photos: Path, tmp_path: Path) -> None:
    images, out = find_images(photos), tmp_path / "found.json"
    with pytest.raises(KeyboardInterrupt):
        detect_images(_detector(ssd), images, out, Options(), progress=Stopper(3))
    before = (photos / "7.png").stat()
    other = Image.open(photos / "12.png").resize((40, 80))
    other.save(photos / "7.png")
    os.utime(photos / "7.png", ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    run = detect_images(_detector(ssd), images, out, Options())
    assert run.resumed == 2
    assert run.notes == (Note("photos-changed", 1, first="7.png"),)
    detect_images(_detector(ssd), images, tmp_path / "straight.json", Options())
    assert out.read_bytes() == (tmp_path / "straight.json").read_bytes()


def test_another_size_in_the_truth_counts_as_another_photo(ssd: Path, photos: Path, tmp_path: Path) -> None:
    images, out = find_images(photos), tmp_path / "found.json"
    with pytest.raises(KeyboardInterrupt):
        detect_images(_detector(ssd), images, out, Options(), progress=Stopper(1))
    sized = [dataclasses.replace(image, size=(5, 5)) for image in images]
    run = detect_images(_detector(ssd), sized, out, Options())
    assert run.resumed == 0
    assert run.notes[1] == InputWarning("photos-of-other-size", 4, first="3.png")


class Failing:
    batch, fingerprint, workers = 1, "failing", 1

    def __init__(self, good: Detector, fails_on: tuple[int, int], error: BaseException) -> None:
        self.good, self.fails_on, self.error = good, fails_on, error
        self.family = good.family

    def candidates(self, images: list[np.ndarray]) -> list[Candidates]:
        if images[0].shape[:2] == self.fails_on:
            raise self.error
        return self.good.candidates(images)


@pytest.mark.parametrize("error", [InputError("the model fails"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_first_image_that_fails_leaves_nothing(
    ssd: Path, photos: Path, tmp_path: Path, error: BaseException, workers: int
) -> None:
    runner = Failing(_detector(ssd), (48, 64), error)
    runner.workers = workers
    out = tmp_path / "out" / "found.json"
    out.parent.mkdir()
    with pytest.raises(type(error)):
        detect_images(runner, find_images(photos), out, Options())
    assert list(out.parent.iterdir()) == []


def test_a_later_image_that_fails_keeps_those_before(ssd: Path, photos: Path, tmp_path: Path) -> None:
    runner = Failing(_detector(ssd), (64, 64), InputError("the model fails"))
    with pytest.raises(InputError, match="the model fails"):
        detect_images(runner, find_images(photos), tmp_path / "found.json", Options())
    runner.fails_on = (0, 0)
    assert detect_images(runner, find_images(photos), tmp_path / "found.json", Options()).resumed == 2


@pytest.mark.parametrize(("fits", "left"), [(0, []), (1, []), (2, ["found.json.partial"]), (5, ["found.json.partial"])])
def test_a_full_disk_loses_nothing(
    ssd: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: int, left: list[str]
) -> None:
    images, out = find_images(photos), tmp_path / "out" / "found.json"
    out.parent.mkdir()
    detect_images(_detector(ssd), images, tmp_path / "straight.json", Options())
    real, written = output.put_content, []

    def put_content(path: Path, content: bytes, *, lasting: bool) -> None:
        if len(written) == fits:
            path.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path)
        real(path, content, lasting=lasting)

    for module in (checkpoint, output):
        monkeypatch.setattr(module, "put_content", put_content)
    with pytest.raises(InputError, match="No space left on device; make room there"):
        detect_images(_detector(ssd), images, out, Options())
    assert [path.name for path in out.parent.iterdir()] == left
    monkeypatch.undo()
    # The first file that is written are the settings, then come the images.
    assert detect_images(_detector(ssd), images, out, Options()).resumed == max(0, fits - 1)
    assert out.read_bytes() == (tmp_path / "straight.json").read_bytes()


KILLED_AFTER = """
import os, sys
from pathlib import Path
from probox.detect import Detector, Options, detect_images, find_images
from probox.detect.run import Partial
real, done = Partial.put, []
def put(self, *given):
    real(self, *given)
    done.append(1)
    if len(done) == 2:
        os.kill(os.getpid(), 9)
Partial.put = put
detector = Detector(sys.argv[1], classes=("cup", "dog", "car"), threads=2, workers=2)
detect_images(detector, find_images(sys.argv[2]), sys.argv[3], Options())
"""


def test_a_run_that_was_killed_goes_on(ssd: Path, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "found.json"
    out.parent.mkdir()
    killed = subprocess.run([sys.executable, "-c", KILLED_AFTER, str(ssd), str(photos), str(out)], timeout=60)
    assert killed.returncode == -9
    assert [path.name for path in out.parent.iterdir()] == ["found.json.partial"]
    detector = Detector(ssd, classes=CLASSES, threads=1)
    assert detect_images(detector, find_images(photos), out, Options()).resumed == 2
    detect_images(_detector(ssd), find_images(photos), tmp_path / "straight.json", Options())
    assert out.read_bytes() == (tmp_path / "straight.json").read_bytes()
    assert [path.name for path in out.parent.iterdir()] == ["found.json"]


@pytest.mark.parametrize("stopped", [False, True])
def test_photos_that_were_turned_or_are_dark_are_said(ssd: Path, photos: Path, tmp_path: Path, stopped: bool) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.open(photos / "7.png").save(photos / "7.png", exif=exif)
    Image.fromarray(np.full((30, 30), 4000, np.uint16)).save(photos / "3.png")
    if stopped:  # what was seen before an interruption is still to be said
        with pytest.raises(KeyboardInterrupt):
            detect_images(_detector(ssd), find_images(photos), tmp_path / "found.json", Options(), progress=Stopper(3))
    run = detect_images(_detector(ssd), find_images(photos), tmp_path / "found.json", Options())
    assert run.resumed == (3 if stopped else 0)
    assert run.notes == (
        Note("photos-turned", 1, first="7.png"),
        InputWarning("photos-dark", 1, first="3.png"),
    )
    assert run.sizes[7] == (80, 40)


def test_pinned_edges_are_noted(ssd: Path, photos: Path, tmp_path: Path) -> None:
    images = find_images(photos)
    kept = detect_images(_detector(ssd), images, tmp_path / "kept.json", Options(uncertainty="constant"))
    assert kept.notes == ()
    options = Options(uncertainty="constant", border="pin")
    pinned = detect_images(_detector(ssd), images, tmp_path / "pinned.json", options)
    changed = np.diagonal(pinned.found.covariances - kept.found.covariances, axis1=-2, axis2=-1) < 0
    assert changed.any()
    assert pinned.notes == (Note("pinned-edges", changed.sum(), total=4 * len(kept.found)),)


def test_two_images_of_one_id_are_refused(ssd: Path, photos: Path, tmp_path: Path) -> None:
    images = [ImageFile(1, photos / "3.png"), ImageFile(1, photos / "7.png")]
    with pytest.raises(InputError, match=r"image 1: .*3\.png and .*7\.png have the same id"):
        detect_images(_detector(ssd), images, tmp_path / "found.json", Options())


@pytest.mark.parametrize("name", ["found.coco.json", "found.parquet"])
def test_made_up_ids_go_into_no_file_that_holds_ids_alone(ssd: Path, photos: Path, tmp_path: Path, name: str) -> None:
    (photos / "3.png").rename(photos / "cat.png")
    images = find_images(photos)
    with pytest.raises(
        InputError, match=r"expected file names that are distinct numbers.*but got cat\.png.*write \.rvc1\.json"
    ):
        detect_images(_detector(ssd), images, tmp_path / name, Options())
    assert list(tmp_path.glob("found*")) == []


def test_made_up_ids_find_their_images_by_name(ssd: Path, photos: Path, tmp_path: Path) -> None:
    (photos / "3.png").rename(photos / "cat.png")
    run = detect_images(_detector(ssd), find_images(photos), tmp_path / "found.json", Options())
    # The truth numbers the same images in another order.
    shapes = {1: (64, 48), 2: (100, 30), 3: (64, 64), 4: (40, 80)}
    names = ("cat.png", "20.png", "12.png", "7.png")
    dataset = Dataset.from_sizes(CLASSES, shapes, file_names=names)
    back = read_detections(tmp_path / "found.json", dataset)
    counted = {0: 3, 1: 2, 2: 4, 3: 1}  # 12, 20, 7, cat
    for number, image_id in counted.items():
        np.testing.assert_array_equal(
            back.boxes[back.image_ids == image_id], run.found.boxes[run.found.image_ids == number]
        )


def test_photos_of_one_name_keep_their_folders(ssd: Path, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "7.png").write_bytes((photos / "3.png").read_bytes())
    detect_images(_detector(ssd), find_images([photos, tmp_path / "more"]), tmp_path / "found.json", Options())
    names = json.loads((tmp_path / "found.json").read_text())["img_names"]
    assert names == ["more/7.png", "photos/12.png", "photos/20.png", "photos/3.png", "photos/7.png"]


def test_coco_results_count_in_the_truth_s_categories(ssd: Path, photos: Path, tmp_path: Path) -> None:
    images, out = find_images(photos), tmp_path / "found.coco.json"
    plain = detect_images(_detector(ssd), images, out, Options())
    assert tuple(map(str, plain.notes)) == (
        "category ids are class numbers in the detector's order (1 is cup); "
        "give the ground truth to use its category ids (truth)",
    )
    categories = {9: "cup", 4: "car", 6: "dog"}
    run = detect_images(_detector(ssd), images, out, Options(), categories=categories)
    assert run.notes == ()
    entries = json.loads(out.read_text())
    assert [categories[entry["category_id"]] for entry in entries] == [CLASSES[label] for label in run.found.labels]
    for entry, probs in zip(entries, run.found.label_probs, strict=True):
        np.testing.assert_allclose(entry["all_scores"], probs[[2, 1, 0]], rtol=1e-6)  # car 4, dog 6, cup 9
    other = detect_images(_detector(ssd), images, out, Options(), categories={1: "plane"})
    assert other.notes[0] == InputWarning("no-class-in-truth", names="cup, dog, car", theirs="plane")
    assert json.loads(out.read_text())[0]["category_id"] == int(plain.found.labels[0]) + 1


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
    with pytest.raises(InputError, match="none of the images could be read"):
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
from probox.detect.run import Partial
os.replace = lambda *paths: os._exit(9)
Partial(Path(sys.argv[1]), {}).__enter__()
"""


def test_a_run_killed_while_it_wrote_its_settings(ssd: Path, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "found.json"
    out.parent.mkdir()
    assert subprocess.run([sys.executable, "-c", KILLED_AT_ONCE, str(out)], timeout=60).returncode == 9
    left = sorted(path.name for path in out.with_name("found.json.partial").iterdir())
    assert left == ["lock", "settings.json.new"]
    detect_images(_detector(ssd), find_images(photos), out, Options())
    assert [path.name for path in out.parent.iterdir()] == ["found.json"]


def test_a_run_that_is_just_writing_its_settings(tmp_path: Path) -> None:
    kept = Partial(tmp_path / "found.json", {})
    kept.folder.mkdir()
    (kept.folder / "settings.json.new").write_bytes(b"")
    with FileLock(kept.folder / "lock"), pytest.raises(InputError, match="another run is working"):
        kept.__enter__()


def test_a_bad_image_is_named_and_skipped(ssd: Path, photos: Path, tmp_path: Path) -> None:
    (photos / "7.png").write_bytes(b"oops")
    out = tmp_path / "found.json"
    run = detect_images(_detector(ssd), find_images(photos), out, Options())
    assert len(run.skipped) == 1
    assert "7.png" in run.skipped[0]
    written = json.loads(out.read_text())
    # The place of the bad image stays, or all later ones would be read as their neighbours.
    assert [bool(entries) for entries in written["detections"]] == [True, False, True, True]


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


@pytest.mark.parametrize("masks", ["channels", "elements"])
def test_an_interrupted_run_with_masks_goes_on_to_the_bit(ssd: Path, photos: Path, tmp_path: Path, masks: str) -> None:
    """Masks belong to images and passes: not to what ran before. What they cost is known of all images, too."""
    images = find_images(photos)
    options = Options(uncertainty="mc-dropout", passes=4)

    def detector() -> Detector:
        return Detector(ssd, classes=CLASSES, threads=1, dropout=Dropout(rate=0.3, masks=masks, seed=3))

    straight, stopped = tmp_path / "straight.coco.json", tmp_path / "stopped.coco.json"
    whole = detect_images(detector(), images, straight, options)
    with pytest.raises(KeyboardInterrupt):
        detect_images(detector(), images, stopped, options, progress=Stopper(2))
    again = detect_images(detector(), images, stopped, options)
    assert again.resumed == 2
    assert stopped.read_bytes() == straight.read_bytes()
    assert again.cost == whole.cost
    assert tuple(note for note in again.notes if note in whole.cost.notes) == whole.cost.notes
    plain = detect_images(Detector(ssd, classes=CLASSES, threads=1), images, tmp_path / "plain.json", Options())
    assert whole.cost.plain == (plain.found.scores > whole.cost.level).sum()
    assert whole.cost.plain_mean == pytest.approx(plain.found.scores[plain.found.scores > whole.cost.level].mean())
    assert whole.cost.masked == (whole.found.scores > whole.cost.level).sum()
    assert plain.cost is None


@pytest.mark.parametrize(
    "other", [{"rate": 0.2}, {"seed": 1}, {"masks": "channels"}, {"layers": "backbone"}], ids=lambda other: str(other)
)
def test_masks_of_another_kind_are_not_mixed(ssd: Path, photos: Path, tmp_path: Path, other: dict) -> None:
    images, options = find_images(photos), Options(uncertainty="mc-dropout", passes=2)

    def detector(**dropout: object) -> Detector:
        return Detector(ssd, classes=CLASSES, threads=1, dropout=Dropout(**{"rate": 0.3, **dropout}))

    with pytest.raises(KeyboardInterrupt):
        detect_images(detector(), images, tmp_path / "found.json", options, progress=Stopper(1))
    with pytest.raises(InputError, match="other settings"):
        detect_images(detector(**other), images, tmp_path / "found.json", options)
    # The defaults, written out, are the same masks.
    same = detector(masks="elements", layers="heads")
    assert detect_images(same, images, tmp_path / "found.json", options).resumed == 1
