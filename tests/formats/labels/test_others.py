"""Pascal VOC, KITTI and Open Images: what is particular to each, and a sentence for what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import probox
from probox import InputError, read_detections, read_truth
from probox.analysis.validation import validate
from probox.cli import main
from probox.files.reading import Source
from probox.formats.kitti import KITTI_TRUTH
from probox.formats.label_tables import LabelRows, refuse_twins
from probox.formats.open_images import class_descriptions
from probox.formats.problems import Problems
from probox.formats.registry import detection_formats, format_of_detections, format_of_truth, truth_formats
from probox.notes import Note

from . import world
from .world import header, make_scene, put

SCENE = make_scene(images=3, empty=False)
REGIONS = "regions-not-labelled"


def changed(path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


def said(call: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.remedy
    return str(caught.value)


# --- all of them ---


def test_each_row_has_one_problem() -> None:
    rows = LabelRows()
    for number, side in enumerate([1.0, np.inf, -np.inf, np.nan, -1.0], start=1):
        rows.add("found.txt", number, (0.0, 0.0, side, 1.0), score=0.5)
    problems = Problems(lenient=True)
    assert rows.usable(problems, scored=True).tolist() == [0]
    assert {finding.kind: finding.count for finding in problems.findings} == {"non-finite box": 3, "inverted box": 1}


def test_two_names_of_the_first_image() -> None:
    rows, problems = np.array([0, -1, 1, 0, -1]), Problems(lenient=True)
    names, ids = ["7", "8", "9", "07", "08"], np.array([7, 9])
    assert refuse_twins(rows, names, ids, "found.csv", problems, lambda at: None, "keep one").tolist() == [3]
    assert rows.tolist() == [0, -1, 1, -1, -1]
    (finding,) = problems.findings
    assert (finding.kind, finding.count, finding.examples[0].image) == ("duplicate id", 1, 7)


# --- Pascal VOC ---


def test_voc_parts(tmp_path: Path) -> None:
    root, _ = world.voc(SCENE, tmp_path)
    put(root / "ImageSets" / "Main" / "test.txt", "000040\n000054\n")
    put(root / "ImageSets" / "Main" / "dog_test.txt", "000040 1\n000054 -1\n")
    assert read_truth(f"{root}:test").image_ids.tolist() == [40, 54]
    assert probox.read_truth(root, split="test").image_ids.tolist() == [40, 54]
    whole = read_truth(root)
    assert whole.image_ids.tolist() == [40, 47, 54]
    assert any(
        f"{root} is read without a split: 3 annotations; {root}:test selects a split" in n
        for n in tuple(map(str, whole.notes))
    )
    assert read_truth(root / "Annotations").image_ids.tolist() == [40, 47, 54]
    assert "split 'val' not found, expected test" in said(lambda: read_truth(f"{root}:val"))
    put(root / "ImageSets" / "Main" / "test.txt", "000040\n000041\n")
    assert "lists 1 images that have no annotation: 000041" in said(lambda: read_truth(f"{root}:test"))


def test_voc_sizes_of_0(tmp_path: Path) -> None:
    root, _ = world.voc(SCENE, tmp_path)
    file = root / "Annotations" / "000040.xml"
    changed(file, "<width>512</width><height>256</height>", "<width>0</width><height>0</height>")
    text = said(lambda: read_truth(root))
    assert f"{file}: size: expected width and height of the image, but got 0 x 0; write them, or put" in text
    put(root / "JPEGImages" / "000040.png", header(512, 256))
    assert read_truth(root).dataset.shapes[0].tolist() == [512, 256]


def test_voc_that_counts_from_0(tmp_path: Path) -> None:
    root, _ = world.voc(SCENE, tmp_path)
    (x, y, *_), file = SCENE.objects[0][2], root / "Annotations" / "000040.xml"
    changed(file, f"<xmin>{x + 1}</xmin>", "<xmin>1</xmin>")
    assert "boxes-before-first-pixel" not in {note.code for note in read_truth(root).notes}
    changed(file, "<xmin>1</xmin>", "<xmin>0</xmin>")
    truth = read_truth(root)
    assert truth.boxes[0, :2].tolist() == [-1, y]
    assert any(
        "1 box begins before pixel 1, the first one in Pascal VOC" in note for note in tuple(map(str, truth.notes))
    )


WRONG_XML = {
    ("<annotation>", '<!DOCTYPE a [<!ENTITY b "c">]><annotation>'): "document types and entities are not read",
    ("<annotation>", "<annotations>"): "is not complete XML (mismatched tag",
    ("</annotation>", ""): "is not complete XML (no element found",
    ("<name>", "<nome>"): "is not complete XML",
    ("<xmin>", "<xmin>a"): "object 1: expected a number, but got 'a",
    ("<xmin>", "<xmin>9"): "object 1: expected xmin <= xmax and ymin <= ymax, but got 9",
    ("<xmin>", "<xmin>-inf</xmin><xmin>"): "object 1: expected finite numbers, but got '-inf'",
    ("<difficult>0", "<difficult>maybe"): "object 1: expected difficult to be 0 or 1, but got 'maybe'",
    ("<width>512", "<width>wide"): "size: expected a number, but got 'wide'",
    ("<annotation>", "<annotation>\0"): "this is binary or UTF-16",
}


@pytest.mark.parametrize("change", WRONG_XML)
def test_wrong_annotations(tmp_path: Path, change: tuple[str, str]) -> None:
    root, found = world.voc(SCENE, tmp_path)
    file = changed(root / "Annotations" / "000040.xml", *change)
    with pytest.raises(InputError) as caught:
        read_truth(root)
    assert str(caught.value).startswith(f"{file}: ")
    assert WRONG_XML[change] in str(caught.value)
    assert not validate(root, found).ok


def test_voc_objects_without_boxes_or_names(tmp_path: Path) -> None:
    root, _ = world.voc(SCENE, tmp_path)
    file = root / "Annotations" / "000040.xml"
    text = file.read_text()
    file.write_text(text.replace("<name>car</name>", "", 1))
    assert "object 1: expected the name of a class" in said(lambda: read_truth(root))
    file.write_text(text.replace("</object>", "</object><object><name>dog</name></object>", 1))
    assert "object 2: expected a bndbox" in said(lambda: read_truth(root))
    put(root / "Annotations" / "x.xml", "<html></html>")
    file.write_text(text)
    assert "expected <annotation>, but got <html>" in said(lambda: read_truth(root))


def test_wrong_voc_detections(tmp_path: Path) -> None:
    root, found = world.voc(SCENE, tmp_path)
    truth = read_truth(root)
    file = found / "comp4_det_test_dog.txt"
    lines = file.read_text()
    for line, words in {
        "000040 0.5 1 2 3": "expected an image, a score and 4 numbers, but got 5 words",
        "000040 1.5 1 2 3 4": "expected a score between 0 and 1, but got 1.5",
        "000040 nan 1 2 3 4": "expected finite numbers, but got 'nan'",
        "000040 0.5 9 2 3 4": "expected width and height of at least 0, but got -5 x 3 pixels",
    }.items():
        file.write_text(f"{lines.splitlines()[0]}\n\n{line}\n")
        assert f"{file}: line 3: {words}" in said(lambda: read_detections(found, truth))
        assert not validate(root, found).ok
    file.write_text(lines)
    put(found / "comp4_det_test_tvmonitor.txt", "000040 0.5 1 2 30 40\n999999 0.5 1 2 3 4\n")
    more = read_detections(found, truth)
    assert more.classes == (*world.CLASSES, "tvmonitor")
    assert Note("unknown-images", 1, images=1) in more.notes
    result = probox.evaluate(truth, more)
    assert result.summary()["FP"] >= probox.evaluate(truth, more[more.labels < 3]).summary()["FP"] + 1


# --- KITTI ---


def test_kitti_places(tmp_path: Path) -> None:
    root, found = world.kitti(SCENE, tmp_path / "kitti")
    for path in (root, root.parent, root / "label_2"):
        assert read_truth(path).dataset.file_names[0] == "image_2/000040.png"
    (tmp_path / "run").mkdir()
    found.rename(tmp_path / "run" / "data")
    truth = read_truth(root)
    assert len(read_detections(tmp_path / "run", truth)) == len(SCENE.detections)
    (root / "image_2" / "000047.png").unlink()
    assert "image_2/000047.png: has labels, but no image; put the image there" in said(lambda: read_truth(root))
    (root / "image_2").rename(root / "pictures")
    assert f"for their sizes: {root / 'image_2'} is missing" in said(lambda: read_truth(root))


def test_kitti_regions_of_no_image(tmp_path: Path) -> None:
    root, _ = world.kitti(SCENE, tmp_path)
    for stem in ("000040", "000047"):
        put(root / "label_2" / f"{stem}.txt", "DontCare 0 0 0 1 2 3 4 0 0 0 0 0 0 0\n")
    before = Problems(lenient=True)
    regions = [note.count for note in KITTI_TRUTH.read(Source(root), before).notes if note.code == REGIONS]
    (root / "image_2" / "000047.png").unlink()
    after = Problems(lenient=True)
    fewer = [note.count for note in KITTI_TRUTH.read(Source(root), after).notes if note.code == REGIONS]
    assert not before.findings
    assert [finding.kind for finding in after.findings] == ["unusable image"]
    assert fewer == [regions[0] - 1]


def test_wrong_kitti(tmp_path: Path) -> None:
    root, found = world.kitti(SCENE, tmp_path)
    truth = read_truth(root)
    file = found / "000040.txt"
    for line, words in {
        "dog 0 0 0 1 2 3 4 0 0 0 0 0 0 0": "expected 16 columns, but got 15; write the score last",
        "dog 0 0 0 1 2 3 4 0 0 0 0 0 0 0 0 0": "expected 16 columns, but got 17; these look like KITTI's tracks",
        "dog 0 0 0 9 2 3 4 0 0 0 0 0 0 0 0.5": "expected x1 <= x2 and y1 <= y2, but got 9 2 3 4",
        "dog 0 0 0 1 2 3 x 0 0 0 0 0 0 0 0.5": "expected a number, but got 'x'",
        "dog 0 0 0 1 2 3 4 0 0 0 0 0 0 0 5.5": "expected a score between 0 and 1, but got 5.5",
    }.items():
        file.write_text(f"\n{line}\n")
        assert f"{file}: line 2: {words}" in said(lambda: read_detections(found, truth))
        assert not validate(root, found).ok


# --- Open Images ---


def test_open_images_names_and_sizes(tmp_path: Path) -> None:
    truth_file, found_file = world.open_images(SCENE, tmp_path, described=False)
    truth = read_truth(truth_file)
    assert truth.classes == tuple(sorted(world.CODES.values()))
    assert any("no class-descriptions-boxable.csv beside the file" in note for note in tuple(map(str, truth.notes)))
    summary = probox.evaluate(truth, read_detections(found_file, truth)).summary()
    (tmp_path / "validation").rename(tmp_path / "elsewhere")
    text = said(lambda: read_truth(truth_file))
    assert "expected the images, for their sizes: looked for 000040.jpg in" in text
    assert "a CSV file with columns ImageID, Width and Height" in text
    sizes = "".join(f"{stem},{w},{h}\n" for stem, (w, h) in SCENE.images.items())
    put(tmp_path / "sizes.csv", "ImageID,Width,Height\n" + sizes)
    truth = read_truth(truth_file)
    assert str(probox.evaluate(truth, read_detections(found_file, truth)).summary()) == str(summary)
    put(tmp_path / "sizes.csv", "ImageID,Width,Height\n000040,512,256\n")
    assert "sizes.csv: expected width and height of '000047', but got nothing" in said(lambda: read_truth(truth_file))


def test_open_images_in_folders(tmp_path: Path) -> None:
    box = "cup,1,0.1,0.5,0.2,0.6,0"
    heading = "ImageID,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf"
    file = put(tmp_path / "boxes.csv", f"{heading}\ntrain/0007,{box}\ntrain/0003,{box}\n")
    put(tmp_path / "sizes.csv", "ImageID,Width,Height\ntrain/0007,64,48\ntrain/0003,64,48\n")
    truth = read_truth(file)
    assert truth.dataset.file_names == ("train/0003.jpg", "train/0007.jpg")
    assert truth.image_ids.tolist() == [1, 2]  # a path is no number


def test_open_images_prediction_strings(tmp_path: Path) -> None:
    truth_file, found_file = world.open_images(SCENE, tmp_path)
    truth = read_truth(truth_file)
    rows = [line.split(",") for line in found_file.read_text().splitlines()[1:]]
    boxes: dict[str, list[str]] = {}
    for image, label, score, x1, x2, y1, y2 in rows:
        boxes.setdefault(image, []).append(" ".join([label, score, x1, y1, x2, y2]))
    lines = [f"{image},{' '.join(entries)}" for image, entries in boxes.items()]
    other = put(tmp_path / "challenge.csv", "ImageId,PredictionString\n" + "\n".join(lines))
    results = [str(probox.evaluate(truth, read_detections(path, truth)).summary()) for path in (found_file, other)]
    assert results[0] == results[1]
    put(other, "ImageId,PredictionString\n000040,/m/0bt9lr 0.5 0 0 1\n")
    assert "line 2: expected label score xmin ymin xmax ymax" in said(lambda: read_detections(other, truth))


def test_open_images_columns_by_name(tmp_path: Path) -> None:
    truth_file, found_file = world.open_images(SCENE, tmp_path)
    truth = read_truth(truth_file)
    rows = [line.split(",") for line in found_file.read_text().splitlines()]
    order = [3, 5, 4, 6, 0, 2, 1]
    rows[0][2] = "conf"
    other = put(tmp_path / "other.csv", "\n".join(",".join(row[at] for at in order) for row in rows))
    assert read_detections(other, truth).boxes.tolist() == read_detections(found_file, truth).boxes.tolist()


def as_globox_writes(path: Path) -> None:
    """Put endings behind image ids, and leave empty what globox does not know."""
    columns = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsGroupOf"
    heading, *lines = [line.split(",") for line in path.read_text().splitlines()]
    rows = [dict(zip(heading, line, strict=True)) for line in lines]
    for row in rows:
        row["ImageID"] += ".jpg"
        row["Confidence"] = row.get("Score", "")
        row["LabelName"] = next(name for name, code in world.CODES.items() if code == row["LabelName"])
        row["IsGroupOf"] = row["Source"] = ""
    names = columns.split(",")
    put(path, "\n".join([columns, *(",".join(row.get(name, "") for name in names) for row in rows)]))


@pytest.mark.parametrize("sizes", [False, True])
def test_open_images_of_globox(tmp_path: Path, sizes: bool) -> None:
    truth_file, found_file = world.open_images(SCENE, tmp_path, described=False)
    expected = probox.evaluate(*map(str, world.coco(SCENE, tmp_path / "coco")))
    for path in (truth_file, found_file):
        as_globox_writes(path)
    if sizes:
        (tmp_path / "validation").rename(tmp_path / "elsewhere")
        lines = "".join(f"{stem},{w},{h}\n" for stem, (w, h) in SCENE.images.items())
        put(tmp_path / "sizes.csv", "ImageID,Width,Height\n" + lines)
    truth = read_truth(truth_file)
    assert truth.image_ids.tolist() == expected.dataset.image_ids.tolist()
    result = probox.evaluate(truth, read_detections(found_file, truth))
    assert str(result.summary()) == str(expected.summary())
    assert "these are boxes of objects" in said(lambda: read_detections(truth_file, truth))


def test_wrong_open_images(tmp_path: Path) -> None:
    truth_file, found_file = world.open_images(SCENE, tmp_path)
    truth = read_truth(truth_file)
    lines = found_file.read_text().splitlines()
    for line, words in {
        "000040,/m/0bt9lr,0.5,0.1,0.2,0.1": "expected 7 columns, as the heading has, but got 6",
        "000040,/m/0bt9lr,0.5,0.3,0.2,0.1,0.2": "expected XMin <= XMax and YMin <= YMax",
        "000040,/m/0bt9lr,0.5,10,20,10,20": "expected fractions of the image, from 0 to 1, but got 20; divide pixels",
        "000040,/m/0bt9lr,50,0.1,0.2,0.1,0.2": "expected a score between 0 and 1, but got 50",
        "000040,/m/0bt9lr,0.5,x,0.2,0.1,0.2": "expected a number, but got 'x'",
    }.items():
        found_file.write_text("\n".join([lines[0], lines[1], line]))
        assert f"{found_file}: line 3: {words}" in said(lambda: read_detections(found_file, truth))
        assert not validate(truth_file, found_file).ok
    found_file.write_text(lines[0].replace("Score", "Sure") + "\n")
    assert "expected a column Score, but got imageid" in said(lambda: read_detections(found_file, truth))
    found_file.write_bytes(lines[0].encode() + b"\n\xff,a,b,c,d,e,f\n")
    assert "line 2: expected UTF-8 text, but got byte 0xff" in said(lambda: read_detections(found_file, truth))
    truth_file.write_text(truth_file.read_text().replace("000040", "/m/0bt9lr"))  # a path of its own
    assert said(lambda: read_truth(truth_file)).startswith(f"{truth_file}: '/m/0bt9lr' has boxes, but no image in ")


# --- who takes what ---


def test_every_folder_has_one_reader(tmp_path: Path, golden_dir: Path) -> None:
    files = {
        "yolo": world.yolo(SCENE, tmp_path / "yolo"),
        "voc": world.voc(SCENE, tmp_path / "voc"),
        "kitti": world.kitti(SCENE, tmp_path / "kitti"),
        "openimages": world.open_images(SCENE, tmp_path / "oi"),
        "coco": world.coco(SCENE, tmp_path / "coco"),
    }
    sequence = tmp_path / "challenge"
    put(sequence / "000000" / "labels.json", "{}")
    put(sequence / "labels" / "1.txt", "0 0.5 0.5 0.5 0.5\n")
    (sequence / "images").mkdir()
    put(tmp_path / "found" / "000000.json", json.dumps({"classes": [], "detections": []}))
    put(tmp_path / "found" / "README.txt", "What these files are\n")
    files["rvc1"] = (sequence, tmp_path / "found")
    for name, (truth, found) in files.items():
        assert format_of_truth(Source(truth)).name == name
        assert format_of_detections(Source(found)).name == name
    (tmp_path / "nothing").mkdir()
    assert format_of_truth(Source(tmp_path / "nothing")).name == "rvc1"
    assert format_of_detections(Source(tmp_path / "nothing")).name == "rvc1"
    for form in (*truth_formats()[:4], *detection_formats()[:4]):  # the new ones stand in front
        assert not form.sniff(Source(tmp_path / "nowhere"))
        assert not form.sniff(Source(golden_dir / "bbox" / "ground_truth.json"))


def test_files_in_the_wrong_place(tmp_path: Path) -> None:
    for name, writer in {"voc": world.voc, "kitti": world.kitti, "oi": world.open_images, "y": world.yolo}.items():
        truth, found = writer(SCENE, tmp_path / name)
        table = read_truth(truth)
        text = said(lambda truth=truth, table=table: read_detections(truth, table))
        assert "name the ground truth first, then the detections" in text or "in column 16" in text
        with pytest.raises(InputError):
            read_truth(found)


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_command(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main([*map(str, words)])
        streams = capsys.readouterr()
        return int(stopped.value.code or 0), streams.out, streams.err

    return run_command


@pytest.mark.parametrize("name", ["yolo", "voc", "kitti", "open_images"])
def test_commands(run: Run, tmp_path: Path, name: str) -> None:
    """Evaluating, converting to and fro, ranking with and without truth."""
    truth, found = getattr(world, name)(SCENE, tmp_path)
    status, out, _ = run("evaluate", truth, found, "--json")
    summary = json.loads(out)["summary"]
    assert status == 0
    assert run("convert", truth, tmp_path / "t.parquet")[0] == 0
    assert run("convert", found, tmp_path / "f.coco.json", "--truth", truth)[0] == 0
    assert run("convert", found, tmp_path / "f.parquet", "--truth", truth)[0] == 0
    for file in ("f.coco.json", "f.parquet"):
        again = json.loads(run("evaluate", tmp_path / "t.parquet", tmp_path / file, "--json")[1])["summary"]
        assert again == pytest.approx(summary, nan_ok=True)
    some = json.loads(run("evaluate", truth, found, "--image-ids", "40,54", "--json")[1])
    assert some["counts"]["images"] == 2
    assert run("rank", found, "--truth", truth, "--top", 1)[0] == 0
    status, _, text = run("rank", found)
    assert (status, "cannot be read alone" in text, "--truth" in text) == (1, True, True)
    status, _, text = run("convert", found, tmp_path / "g.parquet")
    assert (status, "add --truth FILE" in text) == (1, True)
    assert run("validate", truth, found)[0] == 0


def test_commands_do_not_count_regions(run: Run, tmp_path: Path) -> None:
    scene = make_scene(images=3, crowd=True, empty=False)
    truth, found = world.kitti(scene, tmp_path)
    objects = sum(not crowd for *_, crowd in scene.objects)
    assert json.loads(run("evaluate", truth, found, "--json")[1])["counts"]["objects"] == objects
    assert f"{objects} objects" in "".join(map(str, run("convert", truth, tmp_path / "t.parquet")))


def test_many_class_descriptions(tmp_path: Path) -> None:
    """Twenty thousand names, two of them equal, in the time of a few reads."""
    names = [f"/m/{n:05x},name {n % 19_999}" for n in range(20_000)]
    put(tmp_path / "class-descriptions.csv", "\n".join(names))
    before = time.process_time()
    described = class_descriptions(tmp_path)
    assert time.process_time() - before < 1.0
    assert (len(described), described["/m/04e1f"], len(set(described.values()))) == (
        20_000,
        "name 0 (/m/04e1f)",
        20_000,
    )


def test_yaml_is_loaded_when_it_is_used() -> None:
    code = "import probox, sys; probox.read_truth; print('yaml' in sys.modules, 'xml.etree' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]
