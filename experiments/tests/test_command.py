"""`probox experiment`."""

from __future__ import annotations

import csv
import json
import shlex
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from probox.cli import main
from probox.version import __version__
from probox_experiments import EXPERIMENTS, synthetic_truth
from probox_experiments.experiment import parse_settings
from probox_experiments.outcome import Setting
from probox_experiments.synthetic import fingerprint

BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
NAMES = list(BY_NAME)
IN_ALL = [experiment.name for experiment in EXPERIMENTS if experiment.in_all]


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(["experiment", *map(str, args)])
    streams = capsys.readouterr()
    return int(stopped.value.code or 0), streams.out, streams.err


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "list")
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[1:] if not line.startswith(" ")] == NAMES
    assert out.count("needs torch, not in `all`") == 2
    status, out, _ = run(capsys, "list", "--json")
    listed = json.loads(out)["experiments"]
    assert [entry["name"] for entry in listed] == NAMES
    assert [entry["takes_truth"] for entry in listed] == ["truth" in one.takes for one in EXPERIMENTS]
    assert listed[NAMES.index("duplicates")]["settings"] == {"times": list(range(1, 11))}
    assert [entry["name"] for entry in listed if entry["in_all"]] == IN_ALL
    assert {entry["name"] for entry in listed if entry["extra"] == "torch"} == {"training", "training-scenes"}


def test_one_experiment_writes_its_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, err = run(capsys, "run", "duplicates", "--out", tmp_path)
    assert status == 0
    assert out.count("holds") == 3
    assert "3 of 3 claims hold" in err
    with (tmp_path / "duplicates.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["PDQ"]) for row in rows] == pytest.approx([1 / n for n in range(1, 11)])
    assert (tmp_path / "duplicates.png").read_bytes().startswith(b"\x89PNG")
    drawn = ElementTree.parse(tmp_path / "duplicates.svg").getroot()
    assert drawn.tag.endswith("svg")
    words = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"PDQ, both presets", "mAP", "score"} <= set(words)
    assert not (tmp_path / "index.html").exists()


def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, _ = run(capsys, "run", "duplicates", "plane", "duplicates", "--out", tmp_path, "--json")
    answer = json.loads(out)
    assert status == 0
    assert [entry["name"] for entry in answer["experiments"]] == ["plane", "duplicates"]
    assert (answer["claims"], answer["holds"], answer["page"]) == (7, 7, None)
    plane = answer["experiments"][0]
    assert plane["claims"][2]["numbers"]["pPDQ, reference"] == 0.0
    assert Path(plane["files"]["csv"]).exists()


@pytest.mark.parametrize("names", [["nonsense"], ["plane", "nonsense"]])
def test_an_unknown_name_lists_the_known_ones(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, names: list[str]
) -> None:
    status, out, err = run(capsys, "run", *names, "--out", tmp_path / "none")
    assert (status, out) == (2, "")
    assert "unknown experiment 'nonsense'" in err
    for name in ["all", *NAMES]:
        assert name in " ".join(err.split())
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_all_writes_a_page_and_the_same_files_each_time(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    few = ("images=6", "boxes=30", "objects=3", "blob_count=2", "true_variances=1,10", "fine_steps=0", "halvings=1")
    small = [word for text in (*few, "shifts=-0.1,0,0.1", "sizes=0.81,1,1.21") for word in ("--set", text)]
    options = ("run", "all", "--max-images", 25, "--repeats", 1, "--seed", 3, *small, "--json", "--out")
    status, out, _ = run(capsys, *options, tmp_path / "one")
    assert status == 0
    answer = json.loads(out)
    assert [entry["name"] for entry in answer["experiments"]] == IN_ALL
    assert answer["ran_on"].startswith("25 synthetic images")
    page, words = (tmp_path / "one" / name for name in ("index.html", "index.md"))
    for name in IN_ALL:
        assert f'id="{name}"' in page.read_text()
        assert f"![{name}]({name}.png)" in words.read_text()
        assert (tmp_path / "one" / f"{name}.png").exists()
        drawn = (tmp_path / "one" / f"{name}.svg").read_text(encoding="utf-8")
        assert "<text" in drawn
        assert "mathdefault" not in drawn  # numbers of axes are text
    claims = [claim["claim"] for entry in answer["experiments"] for claim in entry["claims"]]
    assert len(claims) == answer["claims"]
    assert all(claim in words.read_text() for claim in claims)
    assert page.read_text().count('class="result ') == len(claims) + len(IN_ALL)

    before = contents(tmp_path / "one")
    spatial = ("--set", "true_variances=1,10", "--set", "fine_steps=0")
    for name, own in {"spatial-uncertainty": spatial, "missed-coco": (), "precision-recall": ()}.items():
        run(capsys, "run", name, "--max-images", 25, "--repeats", 1, "--seed", 3, *own, "--out", tmp_path / "two")
        for ending in ("csv", "json", "png", "svg"):
            assert (tmp_path / "two" / f"{name}.{ending}").read_bytes() == before[f"{name}.{ending}"], name


def test_rows_and_where_they_come_from(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ("run", "missed-coco", "duplicates", "--max-images", 12, "--repeats", 2, "--seed", 4)
    small = ("--set", "rates=0,0.5", "--set", "times=1,2")
    status, out, _ = run(capsys, *options, *small, "--threads", 2, "--out", tmp_path, "--json")
    assert status == 0
    missed, duplicates = json.loads(out)["experiments"]
    made = missed["provenance"]
    assert made["command"] == "probox experiment run missed-coco --max-images 12 --repeats 2 --seed 4 --set rates=0,0.5"
    assert duplicates["provenance"]["command"] == "probox experiment run duplicates --set times=1,2"
    assert (made["probox"], made["seed"]) == (__version__, 4)
    assert duplicates["provenance"]["seed"] == 0  # as its command says, which no draws depend on
    assert made["data"] == f"12 synthetic images with 113 objects, sha256 {fingerprint(synthetic_truth(12))}"
    assert duplicates["provenance"]["data"] == "synthetic scenes"
    assert "arXiv:1811.10800; section B.4" in made["paper"]
    assert [(row["rate"], row["repeat"]) for row in missed["rows"]] == [(0.0, 0), (0.5, 0), (0.0, 1), (0.5, 1)]
    assert duplicates["rows"][1]["PDQ_paper"] == pytest.approx(0.5)
    assert duplicates["settings"] == ["detections"]
    kept = json.loads((tmp_path / "missed-coco.json").read_text())
    assert kept == {name: value for name, value in missed.items() if name != "files"}
    with (tmp_path / "missed-coco.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert all({name: row[name] for name in made} == {n: str(value) for n, value in made.items()} for row in rows)
    assert [float(row["PDQ"]) for row in rows] == [row["PDQ"] for row in missed["rows"]]


def test_commands_can_be_typed_as_they_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, golden_dir: Path
) -> None:
    truth = tmp_path / "my truth.json"
    truth.write_bytes((golden_dir / "mixed" / "ground_truth.json").read_bytes())
    options = ["run", "missed-coco", "--truth", truth, "--max-images", "2", "--repeats", "1", "--set", "rates = 0, 0.5"]
    (missed,) = json.loads(run(capsys, *options, "--out", tmp_path / "one", "--json")[1])["experiments"]
    typed = shlex.split(missed["provenance"]["command"])
    assert typed[:2] == ["probox", "experiment"]
    assert typed[2:] == [*map(str, options[:3]), truth.name, *options[4:]]


def test_presets_and_constants_are_chosen(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    chosen = ("--preset", "paper", "--preset", "challenge", "--preset", "paper", "--set", "epsilon=1e-10")
    status, out, _ = run(capsys, "run", "plane", *chosen, "--out", tmp_path, "--json")
    assert status == 0
    (plane,) = json.loads(out)["experiments"]
    (row,) = plane["rows"]
    assert {name for name in row if name.startswith("PDQ")} == {"PDQ_paper", "PDQ_challenge"}
    assert row["PDQ_paper"] == pytest.approx(1e-10 ** ((1 - row["covered"]) / 2), rel=1e-6)
    assert plane["provenance"]["command"].endswith("--preset paper --preset challenge --set epsilon=1e-10")


def test_strict_tells_by_its_status(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = ("run", "duplicates", "--set", "times=1,2", "--set", "label_weight=0.25", "--out", tmp_path)
    assert run(capsys, *broken[:4], "--strict", "--out", tmp_path)[0] == 0
    denied = ("run", "label-uncertainty", "--set", "label_weight=0.25", "--out", tmp_path)
    status, out, _ = run(capsys, *denied, "--strict")
    assert status == 3
    assert "does not hold" in out
    assert (tmp_path / "label-uncertainty.json").exists()
    assert run(capsys, *denied)[0] == 0
    few = ("--max-images", 3, "--repeats", 1, "--set", "true_variances=1,10", "--set", "fine_steps=0")
    status, out, _ = run(capsys, "run", "spatial-uncertainty", *few, "--strict", "--out", tmp_path)
    assert (status, out.count("not measured")) == (0, 6)  # a single repeat says nothing about leads


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "epsilon"], "expected name=value"),
        (["--set", "time=1"], "did you mean times?"),
        (["--set", "nonsense=1"], "choose from: times, epsilon"),
        (["--set", "times=a"], "expected times to be a whole number, got 'a'"),
        (["--set", "times="], "write times=1"),
        (["--set", "seed=1"], "use --seed"),
        (["--set", "epsilon=1", "--set", "epsilon=2"], "set twice"),
        (["--set", "assignment=lucky"], "'optimal' or 'greedy'"),
        (["--set", "single_precision=perhaps"], "true or false"),
        (["--set", "min_width=1.5"], "a whole number"),
        (["--set", "epsilon=1"], "between 1e-300 and 1e-9"),
        (["--preset", "mine"], "'mine' is not one of"),
        (["--detections", "found.json"], "--detections needs the ground truth: add --truth FILE"),
    ],
)
def test_wrong_settings_are_told_before_anything_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: list[str], said: str
) -> None:
    status, out, err = run(capsys, "run", "duplicates", *options, "--out", tmp_path / "none")
    assert (status, out) == (2, "")
    assert said in " ".join(err.split())
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("text", ["side=-5", "shifts=nan", "variances=-1", "image=1"])
def test_settings_that_make_no_sense_end_in_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    status, out, err = run(capsys, "run", "translation", "--set", text, "--out", tmp_path / "none")
    assert (status, out) == (1, "")
    assert "Traceback" not in err
    assert f"translation cannot be run with {text}" in " ".join(err.split())


def test_a_setting_that_fits_no_memory_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(*given: object, **more: object) -> None:
        raise MemoryError

    monkeypatch.setattr("probox_experiments.running.summary_of", too_much)
    status, _, err = run(capsys, "run", "duplicates", "--set", "times=1,2", "--out", tmp_path / "none")
    assert status == 1
    assert "duplicates cannot be run with times=1,2: out of memory" in " ".join(err.split())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_truth_can_be_given(capsys: pytest.CaptureFixture[str], golden_dir: Path, tmp_path: Path) -> None:
    truth = golden_dir / "mixed" / "ground_truth.json"
    status, out, _ = run(capsys, "run", "missed-coco", "--truth", truth, "--max-images", 2, "--out", tmp_path, "--json")
    assert status == 0
    assert json.loads(out)["ran_on"].startswith("2 images of ground_truth.json with ")
    status, _, err = run(capsys, "run", "plane", "--truth", truth, "--out", tmp_path)
    assert status == 0
    assert f"note: {truth} is not used by plane" in " ".join(err.split())


def test_a_truth_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, err = run(capsys, "run", "missed-coco", "--truth", tmp_path / "no.json", "--out", tmp_path / "out")
    assert (status, out) == (1, "")
    assert "no.json" in err
    assert not (tmp_path / "out").exists()


def test_a_truth_without_objects(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    truth = tmp_path / "empty.json"
    image = {"id": 1, "width": 64, "height": 48, "file_name": "1.jpg"}
    truth.write_text(json.dumps({"images": [image], "annotations": [], "categories": [{"id": 1, "name": "cup"}]}))
    status, out, err = run(capsys, "run", "missed-coco", "--truth", truth, "--out", tmp_path / "out")
    assert (status, out) == (1, "")
    assert "expected objects to detect, but the 1 images have none" in err


def test_figures_need_matplotlib(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, out, err = run(capsys, "run", "plane", "--out", tmp_path / "out")
    assert (status, out) == (1, "")
    assert "pip install 'probox[report]'" in err
    assert not (tmp_path / "out").exists()


def test_images_that_are_too_few_for_one_experiment_stop_no_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ("run", "constant-sigma", "duplicates", "--max-images", 2, "--out", tmp_path)
    status, _, err = run(capsys, *options)
    assert status == 0
    assert "constant-sigma: skipped: expected at least 4 images" in " ".join(err.split())
    assert (tmp_path / "duplicates.csv").exists()
    status, _, err = run(capsys, "run", "constant-sigma", "--max-images", 2, "--out", tmp_path / "none")
    assert status == 1
    assert "expected at least 4 images" in err


@pytest.mark.slow
def test_images_are_those_that_an_experiment_looks_at(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    small = ("--repeats", 1, "--set", "crowds=1", "--out", tmp_path, "--json")
    for options, count in (((), 40), (("--max-images", 5), 5), (("--max-images", 5, "--set", "images=3"), 3)):
        _, out, _ = run(capsys, "run", "assignment", *small, *options)
        (told,) = json.loads(out)["experiments"]
        data = told["provenance"]["data"]
        whole = synthetic_truth(5 if options else 250)
        assert data.startswith(f"{count} synthetic images")
        assert data.endswith(fingerprint(whole.select_images(whole.image_ids[:count])))


# --- what a run says of its command ---


def command(name: str, *texts: str, **setting: object) -> str:
    changes = parse_settings(texts, EXPERIMENTS)
    return Setting(changes=changes, typed=texts, **setting).provenance(BY_NAME[name]).command  # type: ignore[arg-type]


def test_a_command_names_what_its_numbers_depend_on() -> None:
    texts = ("fixed_variance=4", "times=1,2", "shifts=0,0.1")
    assert command("duplicates", *texts) == "probox experiment run duplicates --set fixed_variance=4 --set times=1,2"
    assert command("duplicates", presets=("reference", "paper")) == "probox experiment run duplicates"
    assert command("duplicates", presets=("paper", "challenge")).endswith("--preset paper --preset challenge")
    assert command("plane", seed=3, images=7, repeats=2) == "probox experiment run plane"
    asked = command("missed-coco", seed=3, images=7, repeats=2)
    assert asked == "probox experiment run missed-coco --max-images 7 --repeats 2 --seed 3"


def test_experiments_with_presets_of_their_own_claim_no_others() -> None:
    own = [name for name, experiment in BY_NAME.items() if experiment.own_presets]
    assert own == ["training", "training-scenes"]
    for name in own:
        assert command(name, "epsilon=1e-10", presets=("paper",)) == f"probox experiment run {name}"
