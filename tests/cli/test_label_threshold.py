"""Label thresholds on the command line: `auto`, and what tables call mAP under a fixed one."""

from __future__ import annotations

import json

import pytest
from tests.analysis.test_thresholds import many_faint_boxes
from tests.cli.in_process import probox

from probox import evaluate, load, write_parquet
from probox.formats import read_detections, read_truth, write_coco_results


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return COCO files of an object in each image, found surely, and of faint boxes beside it."""
    folder = tmp_path_factory.mktemp("faint")
    truth, found = many_faint_boxes()
    images = [{"id": image, "width": 64, "height": 48} for image in truth.image_ids.tolist()]
    there = [
        {"id": n, "image_id": image["id"], "category_id": 1, "bbox": [10, 20, 31, 21], "area": 651, "iscrowd": 0}
        for n, image in enumerate(images, 1)
    ]
    whole = {"images": images, "annotations": there, "categories": [{"id": 1, "name": "cup"}]}
    (folder / "truth.json").write_text(json.dumps(whole))
    write_coco_results(folder / "found.json", found, truth)
    return folder / "truth.json", folder / "found.json"


@pytest.fixture(scope="module")
def everything(files):
    return evaluate(*files)


@pytest.fixture(scope="module")
def chosen(everything):
    return everything.at_threshold("auto")


def test_evaluate_chooses_it(files, chosen, tmp_path):
    done = probox("evaluate", *files, "--label-threshold", "auto", "--out", tmp_path / "kept", "--json")
    told = json.loads(done.stdout)
    assert told["summary"] == pytest.approx(chosen.summary())
    assert told["convention"]["label_threshold"] == "auto"
    assert told["label_threshold"] == chosen.threshold_choice.to_dict()
    assert told["warnings"] == []
    again = load(tmp_path / "kept" / "found")
    assert again.pdq == chosen.pdq
    assert again.threshold_choice.thresholds == chosen.threshold_choice.thresholds


def test_evaluate_says_what_it_chose(files, chosen):
    done = probox("evaluate", *files, "--label-threshold", "auto")
    assert done.stdout.splitlines()[0].split()[0] == "mAP"  # of all detections
    assert "convention: reference, label threshold auto" in done.stdout
    assert f"note: {chosen.threshold_choice}" in done.stderr


def test_csv_has_its_numbers(files, chosen, tmp_path):
    assert probox("evaluate", *files, "--label-threshold", "auto", "--csv", tmp_path / "csv").returncode == 0
    row = (tmp_path / "csv" / "summary.csv").read_text().splitlines()[1]
    assert "label threshold auto" in row
    assert str(chosen.pdq) in row
    left = (tmp_path / "csv" / "detections.csv").read_text().count(",ignored,")
    assert left == len(chosen.detections) - chosen.tp - chosen.fp > 0


def test_table_chooses_it(files, chosen):
    rows = json.loads(probox("table", *files, "--label-threshold", "auto", "--json").stdout)["rows"]
    assert rows[0]["summary"] == pytest.approx(chosen.summary())
    assert rows[0]["label_threshold"] == chosen.threshold_choice.to_dict()


def test_parquet_chooses_it(files, chosen, tmp_path):
    truth = read_truth(files[0])
    paths = tmp_path / "truth.parquet", tmp_path / "found.parquet"
    write_parquet(paths[0], truth)
    write_parquet(paths[1], read_detections(files[1], truth))
    told = json.loads(probox("evaluate", *paths, "--label-threshold", "auto", "--json").stdout)
    assert told["summary"] == pytest.approx(chosen.summary())


def test_compare_chooses_it_for_each(files, chosen, tmp_path):
    for name, words in (("a", ()), ("b", ("--label-threshold", "auto"))):
        assert probox("evaluate", *files, *words, "--out", tmp_path / name).returncode == 0
    words = ("--label-threshold", "auto", "--replicates", 20, "--measures", "pdq", "--json")
    told = json.loads(probox("compare", f"a={tmp_path / 'a'}", f"b={tmp_path / 'b'}", *words).stdout)
    columns = told["pairs"][0]["columns"]["PDQ"]
    assert columns["first"]["value"] == columns["second"]["value"] == chosen.pdq
    assert [note["message"] for note in told["notes"] if "cross-fitting" in note["message"]] == [
        f"{name}: {chosen.threshold_choice}" for name in ("a", "b")
    ]


def test_diagnose_asks_for_one_threshold(files, chosen, tmp_path):
    probox("evaluate", *files, "--label-threshold", "auto", "--out", tmp_path / "kept")
    done = probox("diagnose", tmp_path / "kept")
    assert done.returncode == 1
    assert f"evaluate with --label-threshold {chosen.threshold_choice.on_all:.4g}" in done.stderr


def test_the_warning_names_the_option(files):
    done = probox("evaluate", *files)
    assert "evaluate with --label-threshold auto, which chooses it on other images" in done.stderr


def test_counts_of_one_are_singular(files):
    done = probox("evaluate", *files, "--image-ids", "1", "--label-threshold", "0.5")
    assert "1 image, 1 object, 1 detection\n" in done.stderr


# --- mAP under a threshold ---


@pytest.mark.parametrize("style", ["text", "markdown", "latex", "csv"])
def test_tables_label_it(files, everything, style):
    at_one = probox("table", *files, "--thresholds", "0.5", "--format", style)
    assert "mAP, scores > 0.5" in at_one.stdout.splitlines()[2 if style == "latex" else 0]
    assert "mAP, scores > threshold" in probox("table", *files, "--thresholds", "0.5", "0.1", "--format", style).stdout
    assert "scores" not in probox("table", *files, "--format", style).stdout
    note = f"mAP of all detections, without the label threshold: {100 * everything.summary()['mAP']:.2f}%"
    assert f"found: note: {note}" in at_one.stderr
    assert "false positives" not in at_one.stderr  # no row is of all detections


def test_evaluate_labels_it_and_names_the_other(files, everything):
    words = (*files, "--label-threshold", "0.15", "--per-size")
    done = probox("evaluate", *words)
    assert done.stdout.count("mAP, scores > 0.15") == 2
    note = f"mAP of all detections, without the label threshold: {100 * everything.summary()['mAP']:.2f}%"
    assert f"note: {note}" in done.stderr
    told = json.loads(probox("evaluate", *words, "--json").stdout)
    assert note in [one["message"] for one in told["notes"]]
    assert "mAP" in told["summary"]
    assert note not in probox("evaluate", *words, "--measures", "pdq").stderr


def test_the_note_is_of_all_images_of_a_result(files, tmp_path):
    probox("evaluate", *files, "--label-threshold", "0.15", "--out", tmp_path / "kept")
    result = load(tmp_path / "kept" / "found")
    some = result.select_images(result.dataset.image_ids[:6])
    rest = result.select_images(result.dataset.image_ids[6:])
    assert any("mAP of all detections" in note for note in map(str, result.notes))
    assert not any(note.code == "unthresholded-map" for note in (*some.notes, *(some + rest).notes))


def test_other_outputs_label_it():
    result = evaluate(*many_faint_boxes(), label_threshold=0.15)
    assert str(result).splitlines()[0].startswith("mAP, scores > 0.15")
    assert "mAP, scores &gt; 0.15" in result._repr_html_()


# --- COCO's twelve numbers ---


def test_coco_numbers_in_text_and_json(files, everything):
    numbers = everything.coco()
    done = probox("evaluate", *files, "--measures", "map", "--coco")
    lines = done.stdout.split("\n\n")[1].splitlines()
    assert lines[0].strip() == "COCO [%], higher is better"
    assert [line.split("]")[0] for line in lines[1:4]] == [
        "AP @[ IoU=0.50:0.95 | area=all | maxDets=100 ",
        "AP @[ IoU=0.50 | area=all | maxDets=100 ",
        "AP @[ IoU=0.75 | area=all | maxDets=100 ",
    ]
    shown = [line.split()[-1] for line in lines[1:]]
    assert shown == [f"{100 * value:.2f}" if value == value else "-" for value in numbers.values()]
    told = json.loads(probox("evaluate", *files, "--measures", "map", "--coco", "--json").stdout)
    assert list(told["coco"]) == list(numbers)
    assert {key: value for key, value in told["coco"].items() if value is not None} == pytest.approx(
        {key: value for key, value in numbers.items() if value == value}
    )


def test_other_names_do_not(files):
    assert "--coco" not in probox("evaluate", *files, "--measures", "apple").stderr
