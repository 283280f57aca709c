"""`--image-ids`, `--out` and warnings of `probox evaluate` and `probox table`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.in_process import probox
from tests.evaluation.input_checks.mistakes import corners_as_sizes

from probox import Evaluation, evaluate, read_truth, write_parquet
from probox.cli.scoring import parse_ids
from probox.errors import InputError
from probox.formats import read_detections, write_coco_results, write_rvc1
from probox.notes import Note


@pytest.fixture(scope="module")
def files(demo_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "files"
    shutil.copytree(demo_files, folder, ignore=shutil.ignore_patterns("results"))
    truth = read_truth(folder / "truth.json")
    deterministic = read_detections(folder / "deterministic.json", truth)
    write_coco_results(folder / "xyxy.json", corners_as_sizes(truth, deterministic), truth)
    return folder


# --- warnings ---


def test_warnings_are_printed_and_in_json(files: Path) -> None:
    done = probox("evaluate", "truth.json", "xyxy.json", cwd=files)
    assert done.returncode == 0
    assert done.stderr.count("warning: ") == 1
    assert "warning: boxes look like [x1, y1, x2, y2], expected [x, y, width, height]" in done.stderr
    assert "write x2 - x1 and y2 - y1 as width and height\n" in done.stderr
    answer = json.loads(probox("evaluate", "truth.json", "xyxy.json", "--json", cwd=files).stdout)
    assert [warning["code"] for warning in answer["warnings"]] == ["corners-as-width-and-height"]
    assert (
        json.loads(probox("evaluate", "truth.json", "deterministic.json", "--json", cwd=files).stdout)["warnings"] == []
    )


def test_a_table_warns_too(files: Path) -> None:
    done = probox("table", "truth.json", "a=deterministic.json", "b=xyxy.json", cwd=files)
    assert "b: warning: boxes look like" in done.stderr
    assert "a: warning" not in done.stderr
    assert "convention: reference; scored against masks; 12 images" in done.stderr
    rows = json.loads(probox("table", "truth.json", "a=deterministic.json", "b=xyxy.json", "--json", cwd=files).stdout)[
        "rows"
    ]
    assert [len(row["warnings"]) for row in rows] == [0, 1]
    summary = probox(
        "evaluate", "truth.json", "a=deterministic.json", "b=xyxy.json", "--format", "github", cwd=files
    ).stdout
    assert "\n\n> [!WARNING]\n> b: boxes look like" in summary
    assert "> a: " not in summary


def test_advice_is_given_in_flags(golden_dir: Path, files: Path, tmp_path: Path) -> None:
    found = json.loads((golden_dir / "pbox_full" / "detections.json").read_text())
    found["detections"][0][0]["covars"] = [[[1, 2], [2, 1]], [[1, 0], [0, 1]]]
    (tmp_path / "bad.json").write_text(json.dumps(found))
    done = probox("evaluate", golden_dir / "pbox_full" / "ground_truth.json", tmp_path / "bad.json")
    assert done.returncode == 1
    assert "or read them with --repair to take the nearest valid ones" in done.stderr
    for more in ((), ("--json",)):
        said = probox("validate", golden_dir / "pbox_full" / "ground_truth.json", tmp_path / "bad.json", *more).stdout
        assert "with --repair" in said
        assert "with --clip corners" in said
        assert "repair=True" not in said
    with pytest.raises(InputError, match="read them with repair=True"):
        read_detections(tmp_path / "bad.json", read_truth(golden_dir / "pbox_full" / "ground_truth.json"))


def test_changes_of_a_convention_are_printed(files: Path) -> None:
    done = probox("evaluate", "truth.json", "deterministic.json", "--label-threshold", 0.5, "--box-truth", cwd=files)
    convention, comparability = done.stdout.splitlines()[-2:]
    assert convention.endswith("convention: reference, box truth, label threshold 0.5; scored against boxes")
    assert comparability.endswith(": box truth instead of masks, label threshold 0.5")


# --- images ---


def test_ways_to_name_images(files: Path, tmp_path: Path) -> None:
    ids = read_truth(files / "truth.json").image_ids[:3].tolist()
    (tmp_path / "ids.json").write_text(json.dumps(ids))
    (tmp_path / "ids.txt").write_text("\n".join(map(str, ids)) + "\n")
    truth = read_truth(files / "truth.json").select_images(ids)
    alone = evaluate(truth, read_detections(files / "probabilistic.json", read_truth(files / "truth.json")))
    for given in (tmp_path / "ids.json", tmp_path / "ids.txt", ",".join(map(str, ids))):
        done = probox("evaluate", "truth.json", "probabilistic.json", "--image-ids", given, "--json", cwd=files)
        answer = json.loads(done.stdout)
        assert answer["counts"]["images"] == 3
        assert answer["summary"] == pytest.approx(alone.summary())
        assert answer["notes"] == [Note("restricted", 3, total=12).to_dict()]
    rows = json.loads(
        probox("table", "truth.json", "probabilistic.json", "--image-ids", given, "--json", cwd=files).stdout
    )
    assert rows["rows"][0]["summary"] == pytest.approx(alone.summary())


def test_every_format_can_be_cut(files: Path, tmp_path: Path) -> None:
    """RVC1 files go by position: they may have a list for each image of the ground truth, or of the selected ones."""
    truth = read_truth(files / "truth.json")
    found = read_detections(files / "probabilistic.json", truth)
    ids = truth.image_ids[2:9:2]
    part = truth.select_images(ids)
    write_rvc1(tmp_path / "part.json", read_detections(files / "probabilistic.json", truth).select(
        [row for row, image in enumerate(found.image_ids) if image in ids]), part)  # fmt: skip
    write_coco_results(tmp_path / "coco.json", found, truth)
    write_parquet(tmp_path / "found.parquet", found)
    write_parquet(tmp_path / "truth.parquet", truth)
    given = ",".join(map(str, ids.tolist()))
    expected = evaluate(truth, found).select_images(ids).summary()
    for there, path in (
        (files / "truth.json", files / "probabilistic.json"), (files / "truth.json", tmp_path / "part.json"),
        (files / "truth.json", tmp_path / "coco.json"), (files / "truth.json", tmp_path / "found.parquet"),
        (tmp_path / "truth.parquet", tmp_path / "found.parquet"), (tmp_path / "truth.parquet", tmp_path / "part.json"),
    ):  # fmt: skip
        done = probox("evaluate", there, path, "--image-ids", given, "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["summary"] == pytest.approx(expected), path
        assert answer["counts"]["images"] == len(ids)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("1,x", "'x'"), ("", "but got none"), ("nowhere.json", "nowhere.json: no such file"),
        (".", ".: is a folder, but --image-ids expects image ids"),
        ("12345", "truth.json: image 12345: unknown image"), ("9" * 30, "expected image ids"),
        ("truth.json", "truth.json: expected a JSON list of image ids"),
    ],
)  # fmt: skip
def test_wrong_images(files: Path, given: str, words: str) -> None:
    for command in ("evaluate", "table"):
        done = probox(command, "truth.json", "deterministic.json", "--image-ids", given, cwd=files)
        assert done.returncode == 1
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""


@pytest.mark.parametrize("text", ["[]", "[1.5]", '["1"]', "[true]", "[" * 100_000, "[99999999999999999999]", "{}"])
def test_wrong_lists(tmp_path: Path, text: str) -> None:
    (tmp_path / "ids.json").write_text(text)
    with pytest.raises(InputError, match="expected a JSON list of image ids"):
        parse_ids(None, None, str(tmp_path / "ids.json"))


# --- keeping ---


def keep(files: Path, out: Path, *args: object) -> tuple[int, str]:
    done = probox("evaluate", "truth.json", *args, "--measures", "map", "--out", out, cwd=files)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_one_layout_for_one_file_or_many(files: Path, tmp_path: Path) -> None:
    status, said = keep(files, tmp_path / "a" / "r", "deterministic.json")
    assert status == 0
    assert f"saved to {tmp_path / 'a' / 'r' / 'deterministic'}" in said
    assert keep(files, tmp_path / "a" / "r", "probabilistic.json", "deterministic.json")[0] == 0
    assert sorted(contents(tmp_path / "a" / "r")) == [
        "deterministic/evaluation.json", "deterministic/tables.npz",
        "probabilistic/evaluation.json", "probabilistic/tables.npz",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--label-threshold", "0.5"],
            "another convention, expected 'reference, label threshold 0.5', got 'reference'",
        ),
        (["--preset", "paper"], "another convention, expected 'paper', got 'reference'"),
        (["--image-ids", "1,2"], "other images"),
    ],
)
def test_runs_are_not_mixed(files: Path, tmp_path: Path, options: list[str], words: str) -> None:
    keep(files, tmp_path / "r", "deterministic.json", "probabilistic.json")
    before = contents(tmp_path / "r")
    status, said = keep(files, tmp_path / "r", "deterministic.json", *options)
    assert status == 1
    assert f"{tmp_path / 'r' / 'probabilistic'}: contains a result with {words}; choose another --out, or" in said
    assert contents(tmp_path / "r") == before
    assert (
        keep(files, tmp_path / "r", "deterministic.json", "probabilistic.json", *options)[0] == 0
    )  # all of them are replaced


def test_a_failed_run_leaves_everything_as_it_was(files: Path, tmp_path: Path) -> None:
    keep(files, tmp_path / "r", "deterministic.json")
    before = contents(tmp_path / "r")
    (tmp_path / "bad.json").write_text("[{")
    assert keep(files, tmp_path / "r", "deterministic.json", tmp_path / "bad.json")[0] == 1
    assert contents(tmp_path / "r") == before
    (tmp_path / "r" / "probabilistic").write_text("mine")  # where a folder is to be made
    before = contents(tmp_path / "r")
    status, said = keep(files, tmp_path / "r", "deterministic.json", "probabilistic.json")
    assert status == 1
    assert f"{tmp_path / 'r' / 'probabilistic'}: is a file" in said
    assert contents(tmp_path / "r") == before


def test_a_result_in_the_output_folder_itself_is_refused(files: Path, tmp_path: Path) -> None:
    truth = read_truth(files / "truth.json")
    evaluate(truth, read_detections(files / "deterministic.json", truth)).save(tmp_path / "old")
    status, said = keep(files, tmp_path / "old", "deterministic.json")
    assert status == 1
    assert f"{tmp_path / 'old'}: contains a result itself (evaluation.json), which would hide others" in said
    assert probox("draw", tmp_path / "old", "--out", tmp_path / "pictures", "--worst", 1).returncode == 0


def test_draw_takes_the_only_result(files: Path, tmp_path: Path) -> None:
    assert probox("evaluate", "truth.json", "deterministic.json", "--out", tmp_path / "r", cwd=files).returncode == 0
    done = probox("draw", tmp_path / "r", "--out", tmp_path / "pictures", "--worst", 1)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "pictures").glob("*.png"))) == 1
    assert probox("evaluate", "truth.json", "probabilistic.json", "--out", tmp_path / "r", cwd=files).returncode == 0
    done = probox("draw", tmp_path / "r", "--out", tmp_path / "more", "--worst", 1)
    assert done.returncode == 1
    assert "expected one result, but contains 2 (deterministic, probabilistic); give one, such as" in done.stderr
    assert not (tmp_path / "more").exists()


def test_a_file_name_of_dots_gets_the_default_name(files: Path, tmp_path: Path) -> None:
    (tmp_path / "..json").write_bytes((files / "deterministic.json").read_bytes())
    assert keep(files, tmp_path / "r", tmp_path / "..json")[0] == 0
    assert Evaluation.load(tmp_path / "r" / "detections").measures == ("map",)


@pytest.mark.parametrize("text", ["[3, 5]", "3\n5\n"])
def test_a_byte_order_mark_before_ids_is_skipped(text: str, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("\ufeff" + text, encoding="utf-8")
    assert parse_ids(None, None, str(tmp_path / "ids")) == [3, 5]
