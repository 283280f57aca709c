"""Wrong usage: exit status 2, nothing on standard output, no traceback, and the problem."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.cli.in_process import run

SCORE, TABLE, COMPARE = "evaluate TRUTH FOUND", "table TRUTH FOUND", "compare RESULTS"
AUTO = "--label-threshold auto needs the tables of all images, so it excludes {}: leave out one of the two"
COCO_NAMES = ("ap50", "AP75", "AR100", "ar", "map50", "mAP@0.5", "ap_small", "ap")
COCO = "`probox evaluate --measures map --coco` prints COCO's twelve numbers"
NO_AUTO = "expected a number between 0 and 1; only `probox evaluate`, `table` and `compare` take auto"
DRAW = "only applies to a detection file with --truth, but"

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
    (f"{SCORE} --measures pdq --coco", "--coco needs the metric map or map-mask: add it to --measures"),
    (f"{SCORE} --coco --keep summary", "--coco needs the matches of boxes: use --keep matches or --keep all"),
    (f"{SCORE} --label-threshold auto --part 1/2", AUTO.format("--part")),
    (f"{SCORE} --label-threshold auto --keep matches", AUTO.format("--keep matches")),
    (f"{SCORE} --label-threshold auto --dask local", AUTO.format("--dask")),
    ("draw FOUND --truth TRUTH --label-threshold auto --out pictures", NO_AUTO),
    ("rank FOUND --truth TRUTH --label-threshold auto --out pictures", NO_AUTO),
    (f"{TABLE} --thresholds 0.5 --label-threshold 0.5", "a row for each: give one of the two"),
    (f"{SCORE} --thresholds 0.5 --per-class", "--thresholds prints one table"),
    (f"{SCORE} --thresholds 0.5 --keep matches", "--thresholds needs tables of all detections: use --keep all"),
    (f"{SCORE} --format csv --per-size", "--format csv prints one table"),
    (f"{SCORE} --keep matches --csv tables", "--csv needs tables of all detections: use --keep all"),
    (f"{SCORE} --keep some", "'some' is not one of"),
    (f"{SCORE} --part 4/3", "expected a part such as 3/16"),
    (f"{SCORE} --part 1/2 --dask local", "--dask splits the images itself: leave out --part"),
    (f"{SCORE} --threads 2 --dask local", "--threads does not apply to the workers of --dask: leave it out"),
    ("table TRUTH =x.json", "'=x.json': expected NAME=DETECTIONS, but the name before = is empty"),
    ("table TRUTH x=", "'x=': expected NAME=DETECTIONS, but the path after = is empty"),
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
    ("draw RESULTS/deterministic --out p --worst 1 --image 2", "use only one of --image, --limit, --all, --examples, "),
    ("draw RESULTS/deterministic --out p --preset paper", f"--preset {DRAW} SOURCE is a result, already scored: "),
    ("draw FOUND --out p --fixed-variance 3", f"--fixed-variance {DRAW} --truth is missing: add --truth FILE, or"),
    ("draw FOUND --out p --worst 1", "--worst needs ground truth: add --truth FILE, or name a result as SOURCE"),
    ("draw FOUND --out p --examples", "--examples needs ground truth: add --truth FILE, or name a result folder as"),
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
