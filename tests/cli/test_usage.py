"""Wrong usage: exit status 2, nothing on standard output, no traceback, and what is wrong."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.cli.in_process import run

SCORE, TABLE, COMPARE = "evaluate TRUTH FOUND", "table TRUTH FOUND", "compare RESULTS"
AUTO = "--label-threshold auto needs the tables of all images, which {} does not have: leave out one of both"
COCO_NAMES = ("ap50", "AP75", "AR100", "ar", "map50", "mAP@0.5", "ap_small", "ap")
COCO = "`probox evaluate --measures map --coco` prints COCO's twelve numbers"
FEW_CAN = "`auto` is for `probox evaluate`, `table` and `compare`"

WRONG = [
    (f"{SCORE} --x", "No such option"),
    (f"{SCORE} --fixed-variance -1", "'--fixed-variance': -1.0 is not in the range x>=0"),
    (f"{SCORE} --label-weight 2", "Invalid value for '--label-weight': 2.0 is not in the range"),
    (f"{SCORE} --label-threshold 2", "'--label-threshold': 2.0 is not in the range 0.0<=x<=1.0"),
    (f"{SCORE} --label-threshold nan", "expected label_threshold between 0 and 1, got nan"),
    (f"{SCORE} --threads 0", "0 is not in the range"),
    (f"{SCORE} --measures pdq,iou", "iou"),
    (f"{TABLE} --measures enrgy", "Did you mean energy?"),
    *((f"{SCORE} --measures {name}", COCO) for name in COCO_NAMES),
    (f"{SCORE} --measures pdq --coco", "--coco shows the numbers of map: add it to --measures"),
    (f"{SCORE} --coco --keep summary", "--coco needs the matches of boxes, which --keep matches and --keep all keep"),
    (f"{SCORE} --label-threshold auto --part 1/2", AUTO.format("--part")),
    (f"{SCORE} --label-threshold auto --keep matches", AUTO.format("--keep matches")),
    (f"{SCORE} --label-threshold auto --dask local", AUTO.format("--dask")),
    ("draw FOUND --truth TRUTH --label-threshold auto --out pictures", FEW_CAN),
    ("rank FOUND --truth TRUTH --label-threshold auto --out pictures", FEW_CAN),
    (f"{TABLE} --thresholds 0.5 --label-threshold 0.5", "a row for each: give one of the two"),
    (f"{SCORE} --thresholds 0.5 --per-class", "--thresholds prints one table"),
    (f"{SCORE} --thresholds 0.5 --keep matches", "--thresholds needs tables"),
    (f"{SCORE} --format csv --per-size", "--format csv prints one table"),
    (f"{SCORE} --keep matches --csv tables", "--csv writes tables, which --keep all keeps"),
    (f"{SCORE} --keep some", "'some' is not one of"),
    (f"{SCORE} --part 4/3", "expected a part such as 3/16"),
    (f"{SCORE} --part 1/2 --dask local", "--dask cuts images into parts by itself: leave out --part"),
    (f"{SCORE} --threads 2 --dask local", "--threads is about one process"),
    ("table TRUTH =x.json", "no name before the ="),
    ("table TRUTH x=", "nothing after the ="),
    (f"{TABLE} --thresholds 2", "2.0 is not in the range"),
    (f"{TABLE} --thresholds", "requires an argument"),
    ("table TRUTH --thresholds a", "'a' is not a valid float"),
    ("table TRUTH", "Missing argument"),
    ("compare", "Missing argument"),
    (f"{COMPARE} --measures iou", "iou"),
    (f"{COMPARE} --level 1", "1.0 is not in the range"),
    (f"{COMPARE} --replicates 1", "1 is not in the range"),
    (f"{COMPARE} --seed -1", "-1 is not in the range"),
    (f"{COMPARE} --format x", "'x' is not one of"),
    ("validate one", "Missing argument"),
    ("draw RESULTS/deterministic --out p --worst 1 --image 2", "choose images by --image, by --limit"),
    ("draw RESULTS/deterministic --out p --preset paper", "--preset says how to judge a file of detections"),
    ("draw FOUND --out p --fixed-variance 3", "of detections by --truth, but without --truth none is judged"),
    ("draw FOUND --out p --worst 1", "--worst needs a truth: give --truth, or a folder of results"),
    ("draw FOUND --out p --examples", "--examples needs a truth: give --truth, or a folder of results"),
    ("calibrate fit TRUTH FOUND --out c --fixed-variance 3", "No such option"),
    ("evalute", "Did you mean evaluate?"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "message"), WRONG)
def test_wrong_usage(
    demo_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"TRUTH": "truth.json", "FOUND": "probabilistic.json", "RESULTS": "results"}
    for name, path in places.items():
        line = line.replace(name, shlex.quote(str(demo_files / path)))
    status, out, err = run(*shlex.split(line))
    assert (status, out) == (2, "")
    assert "Traceback" not in err
    assert message in " ".join(err.split())
    assert list(tmp_path.iterdir()) == []
