"""One module and one line in the registry make a format: here a table of detections in tab-separated text."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probox import evaluate, read_detections, read_truth
from probox.cli import main
from probox.cli.console import file_title
from probox.errors import InputError
from probox.files.output import Kind, check_replaceable, write_files
from probox.files.reading import Paths, Source, file_head
from probox.formats import registry
from probox.formats.coco import COCO_TRUTH
from probox.formats.format import DetectionFormat, Draft
from probox.formats.problems import Problems
from probox.formats.registry import check_output, detection_formats, format_of_name, truth_formats, write_detections
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

HEADING = b"#toy"
OWN = Kind("toy detections", lambda path: file_head(path).startswith(HEADING))


def read_toy(source: Source, truth: GroundTruth, problems: Problems) -> Draft:
    heading, *lines = source.content().decode().splitlines()
    rows = np.array([line.split("\t") for line in lines], float).reshape(len(lines), -1)
    known = np.isin(rows[:, 0], truth.image_ids)
    problems.add(
        "strange image",
        np.flatnonzero(~known).tolist(),
        lambda row: InputError("no such image", file=source.name, entry=f"{row}"),
    )
    whole = Draft(
        classes=tuple(heading.split("\t")[1:]),
        image_ids=rows[:, 0].astype(np.int64),
        boxes=rows[:, 1:5],
        label_probs=rows[:, 5:].astype(np.float32),
        source=source.name,
        place=lambda row: (source.name, f"line {row + 2}"),
    )
    return whole.select(np.flatnonzero(known))


def write_toy(path: Paths, found: Detections, truth: GroundTruth) -> tuple[str, ...]:
    check_replaceable(path, OWN)
    rows = np.concatenate([found.image_ids[:, None], found.boxes, found.label_probs.astype(float)], axis=1)
    lines = ["\t".join(["#toy", *found.classes]), *("\t".join(map(repr, row)) for row in rows.tolist())]
    write_files({Path(path): "\n".join(lines).encode()})
    return () if found.covariances is None else ("toys hold no covariances",)


TOY = DetectionFormat(
    name="toy",
    title="Toy text",
    suffixes=(".toy",),
    sniff=lambda source: source.head.startswith(HEADING),
    read=read_toy,
    write=write_toy,
    kind=OWN,
)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command of a probox that knows toys."""
    monkeypatch.setattr(registry, "FORMATS", (*registry.FORMATS, TOY))

    def run_command(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main([*map(str, words)])
        streams = capsys.readouterr()
        return int(stopped.value.code or 0), streams.out, streams.err

    return run_command


@pytest.fixture
def files(golden_dir: Path) -> tuple[Path, Path]:
    """Return ground truth and detections."""
    return golden_dir / "bbox" / "ground_truth.json", golden_dir / "bbox" / "detections.json"


@pytest.fixture
def toy(run: Run, files: tuple[Path, Path], tmp_path: Path) -> Path:
    """Return a file of toys, which the command line wrote."""
    path = tmp_path / "found.text"
    status, _, said = run("convert", files[1], path, "--truth", files[0], "--to", "toy")
    assert (status, said.endswith("found.text (Toy text)\n")) == (0, True), said
    return path


def test_it_is_read_by_its_content(toy: Path, files: tuple[Path, Path]) -> None:
    truth = read_truth(files[0])
    found, plain = read_detections(toy, truth), read_detections(files[1], truth)
    np.testing.assert_array_equal(found.boxes, plain.boxes)
    assert evaluate(truth, found).pdq == evaluate(truth, plain).pdq


def test_it_is_evaluated(run: Run, toy: Path, files: tuple[Path, Path]) -> None:
    answers = [json.loads(run("evaluate", files[0], path, "--json")[1])["summary"] for path in (toy, files[1])]
    assert answers[0] == answers[1]


def test_some_images_of_it_are_evaluated(run: Run, toy: Path, files: tuple[Path, Path]) -> None:
    image = int(read_truth(files[0]).image_ids[0])
    answers = [
        json.loads(run("evaluate", files[0], path, "--image-ids", image, "--json")[1])["summary"]
        for path in (toy, files[1])
    ]
    assert answers[0] == answers[1]


def test_it_is_validated(run: Run, toy: Path, files: tuple[Path, Path]) -> None:
    assert run("validate", files[0], toy)[0] == 0
    lines = toy.read_text().splitlines()
    cells = lines[2].split("\t")
    lines[2] = "\t".join([cells[0], "90", cells[2], "80", *cells[4:]])
    toy.write_text("\n".join([*lines, "\t".join(["-7", *cells[1:]])]))
    status, out, _ = run("validate", files[0], toy)
    assert status == 1
    assert "error: strange image (1)" in out
    assert "error: inverted box (1)" in out
    assert "line 3: expected x1 <= x2" in out


def test_it_is_written_by_name(run: Run, toy: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "fused.toy"
    status, _, said = run("fuse", files[0], files[1], toy, "--out", out)
    assert (status, "note: toys hold no covariances" in said) == (0, True), said
    assert out.read_bytes().startswith(HEADING)
    assert run("fuse", files[0], files[1], toy, "--out", out)[0] == 0  # its own files may be replaced
    out.write_text("mine")
    status, _, said = run("fuse", files[0], files[1], "--out", out)
    assert (status, "fused.toy: exists and does not contain toy detections" in said) == (1, True)
    assert out.read_text() == "mine"
    assert run("convert", files[1], tmp_path / "by_name.toy", "--truth", files[0])[0] == 0
    assert (tmp_path / "by_name.toy").read_bytes() == toy.read_bytes()


def test_it_becomes_others(run: Run, toy: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    for name, form in {"a.json": "coco", "a.coco.json": "coco", "a.rvc1.json": "rvc1", "a.parquet": "parquet"}.items():
        status, out, _ = run("convert", toy, tmp_path / name, "--truth", files[0], "--json")
        assert (status, json.loads(out)["format"]) == (0, form)
    status, _, said = run("convert", toy, tmp_path / "b.toy")
    assert (status, "cannot be written as Toy text without the images" in said) == (1, True)


def test_words_know_it(run: Run, toy: Path, files: tuple[Path, Path], tmp_path: Path) -> None:
    assert file_title("results/ssd.toy") == "ssd"
    status, _, said = run("convert", toy, tmp_path / "x", "--to", "tooy")
    assert (status, "is not one of 'coco', 'rvc1', 'parquet', 'toy'" in said) == (2, True)
    _, _, said = run("fuse", files[0], files[1], "--out", tmp_path / "x.unknown")
    assert "use .coco.json (COCO results), .json (RVC1), .parquet or .toy (Toy text)" in said
    (tmp_path / "text").write_text("image\tx\ty\n")
    _, _, said = run("evaluate", files[0], tmp_path / "text")
    assert "COCO results, RVC1, Parquet or Toy text, but the file begins with 'image x y'" in said


def test_without_the_line_it_is_unknown(toy: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "FORMATS", registry.FORMATS[:-1])
    with pytest.raises(InputError, match="COCO results, RVC1 or Parquet, but the file begins with '#toy"):
        read_detections(toy, read_truth(files[0]))
    with pytest.raises(InputError, match="unknown format of this file name"):
        check_output(toy.with_suffix(".toy"))


NAMES = {
    "a.coco.json": "coco", "a.coco.json.gz": "coco", "a.bbox.json": "coco", "A.COCO.JSON": "coco",
    "a.json": "rvc1", "a.json.gz": "rvc1", "a.rvc1.json": "rvc1", "a.rvc1.json.gz": "rvc1", "a.JSON": "rvc1",
    "a.parquet": "parquet", "a.PARQUET": "parquet",
    "a.parquet.gz": None, "a": None, "a.txt": None, "json": None, "coco.json": "rvc1",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_means_one_format(name: str, tmp_path: Path, files: tuple[Path, Path]) -> None:
    form = format_of_name(tmp_path / name)
    assert (form and form.name) == NAMES[name]
    if form is not None:
        truth = read_truth(files[0])
        write_detections(tmp_path / name, read_detections(files[1], truth), truth)
        assert form.sniff(Source(tmp_path / name))
        assert form.kind.recognises(tmp_path / name)


def test_no_two_formats_share_a_name_or_an_ending() -> None:
    for formats in (truth_formats(), detection_formats()):
        for one, other in combinations(formats, 2):
            assert one.name != other.name
            assert not {*one.suffixes} & {*other.suffixes}


def given(value: Any, path: Path) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_truth_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"COCO ground truth, challenge ground truth or Parquet, but .* '5'"):
        read_truth(given(5, tmp_path / "five.json"))
    with pytest.raises(InputError, match="expected COCO ground truth, but got a list; this looks like COCO results"):
        read_truth(given([], tmp_path / "list.json"))


def test_a_format_can_be_named(golden_dir: Path) -> None:
    truth = read_truth(golden_dir / "bbox" / "ground_truth.json", "coco")
    found = read_detections(golden_dir / "bbox" / "detections.json", truth, format="rvc1")
    assert len(found) == len(read_detections(golden_dir / "bbox" / "detections.json", truth))
    names = "use one of coco, kitti, openimages, parquet, rvc1, voc, yolo"
    with pytest.raises(InputError, match=f"unknown format 'cocoa'; {names}"):
        read_truth(golden_dir / "bbox" / "ground_truth.json", "cocoa")
    with pytest.raises(InputError, match=f"unknown format 'csv'; {names}"):
        read_detections(golden_dir / "bbox" / "detections.json", truth, "csv")


def test_keywords_are_checked_against_the_format(golden_dir: Path) -> None:
    path = golden_dir / "bbox" / "ground_truth.json"
    with pytest.raises(InputError, match=r"argument `split` is for Pascal VOC annotations and YOLO data\.yaml"):
        read_truth(path, split="val")
    with pytest.raises(InputError, match="argument `image_ids` is for Parquet, but this is COCO ground truth; leave"):
        read_truth(path, image_ids=[1])
    with pytest.raises(InputError, match="argument `order` is for YOLO predictions, but this is RVC1"):
        read_detections(golden_dir / "bbox" / "detections.json", read_truth(path), order="score-first")
    with pytest.raises(InputError, match=r"RVC1 need the ground truth.*; read_detections\(path, truth\)"):
        read_detections(golden_dir / "bbox" / "detections.json")


def test_endings_of_formats_are_known_before_they_are_imported() -> None:
    suffixes = [suffix for form in registry.all_formats() for suffix in form.suffixes]
    assert {*registry.ENDINGS} == {".gz", *(f".{suffix.rsplit('.', 1)[-1]}" for suffix in suffixes)}


def test_formats_left_out_for_json_recognise_no_json(files: tuple[Path, Path], tmp_path: Path) -> None:
    formats = [form for form in registry.all_formats() if form.title != "Parquet"]
    left_out = formats[: len(registry.NOT_JSON)]
    (tmp_path / "list.json").write_text("[\n1]")
    for path in (*files, tmp_path / "list.json"):
        assert not any(form.sniff(Source(path)) for form in left_out)
    assert COCO_TRUTH is formats[len(left_out)]


def test_a_json_file_of_yaml_is_still_a_data_set(tmp_path: Path) -> None:
    (tmp_path / "data.yaml").write_text('{"names": ["cup"], "val": "images"}')
    assert registry.format_of_truth(Source(tmp_path / "data.yaml")).name == "yolo"
