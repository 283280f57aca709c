"""Golden cases: the kernel and the definition give the reference's tables, matches, summaries and heatmaps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from probox import Evaluation, evaluate
from probox.convention import Convention
from probox.formats import read_detections, read_truth
from probox.measures.pdq import definition
from probox.measures.pdq.kernel import heatmap, pair_tables
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

GOLDEN = Path(__file__).resolve().parents[2] / "golden"

MODES: dict[str, dict[str, Any]] = {
    "": {},
    "set_cov_10": {"fixed_variance": 10.0},
    "bbox_gt": {"box_truth": True},
    "greedy": {"assignment": "greedy"},
    "segment": {"background": "mask"},
    "paper": {"name": "paper"},
}
"""What the middle of ``expected.MODE.json`` means, as fields of a convention."""

TABLES = ("overall", "spatial", "label", "fg", "bg")


class Case(NamedTuple):
    """One folder in one mode: the input, the convention and the expected numbers."""

    name: str
    truth: GroundTruth
    found: Detections
    convention: Convention
    images: list[dict[str, Any]]
    summary: dict[str, float]


def case_names(folder: Path = GOLDEN) -> list[str]:
    """Return all cases, ``folder`` or ``folder:mode``."""
    paths = sorted(folder.glob("*/expected*.json"))
    return [":".join([path.parent.name, *path.name.split(".")[1:-1]]) for path in paths]


def read_case(name: str, folder: Path = GOLDEN) -> Case:
    """Return the case of this name (see `case_names`)."""
    where, _, mode = name.partition(":")
    path = folder / where
    expected = json.loads((path / f"expected{'.' + mode if mode else ''}.json").read_text())
    changes = dict(MODES[mode])
    convention = Convention.preset(changes.pop("name", "reference"), **changes)
    if where == "rvc1":
        truth = read_truth(path / "gt")
        found = read_detections(path / "det", truth)
        images = [image for sequence in expected["sequences"] for image in sequence]
    else:
        truth = read_truth(path / "ground_truth.json")
        found = read_detections(path / "detections.json", truth)
        images = expected["images"]
    return Case(name, truth, found, convention, images, expected["summary"])


def matches_of(image: dict[str, Any]) -> list[tuple[int, int, bool]]:
    """Return the expected matches of an image: object, detection, ignored; without them an empty list."""
    entries = [entry for entry in image.get("gt_evals", []) if entry["matched"]]
    return sorted((entry["gt_id"], entry["det_id"], entry["ignore"]) for entry in entries)


COUNTS = ("TP", "FP", "FN")
NAMES = {
    "PDQ": "PDQ", "pPDQ": "avg_pPDQ", "spatial": "avg_spatial", "label": "avg_label", "foreground": "avg_fg",
    "background": "avg_bg", "TP": "TP", "FP": "FP", "FN": "FN",
}  # fmt: skip


@pytest.fixture(scope="module", params=case_names())
def case(request: pytest.FixtureRequest) -> Case:
    return read_case(request.param)


@pytest.fixture(scope="module")
def evaluation(case: Case) -> Evaluation:
    return evaluate(case.truth, case.found, convention=case.convention)


@pytest.fixture(scope="module")
def score(case: Case) -> definition.Score:
    return definition.evaluate(case.truth, case.found, case.convention)


def test_tables(case: Case, score: definition.Score) -> None:
    for row, image in enumerate(case.images):
        kernel = pair_tables(case.truth, case.found, case.convention, row) if "tables" in image else ()
        for column, name in enumerate(TABLES if "tables" in image else ()):
            expected = np.array(image["tables"][name], float).reshape(kernel.shape[:2])
            # In images with a single object or detection the reference adds float32 logarithms one after the other,
            # which costs it up to four digits, as it does over large boxes; everywhere else its sums are good.
            lonely = min(expected.shape) == 1 and case.convention.single_precision
            bounds = 6e-5 if case.name == "mixed:bbox_gt" else 2e-5, 6e-5 if lonely else 3e-6
            for got, bound in zip((kernel[:, :, column], score.images[row].tables[name]), bounds, strict=True):
                np.testing.assert_allclose(got, expected, rtol=0, atol=bound, err_msg=f"{case.name}, {row}, {name}")


def test_summaries(case: Case, evaluation: Evaluation, score: definition.Score) -> None:
    summary = evaluation.summary()
    values = score.pdq, score.overall, score.spatial, score.label, score.fg, score.bg, score.tp, score.fp, score.fn
    for (name, theirs), value in zip(NAMES.items(), values, strict=True):
        expected = pytest.approx(case.summary[theirs], abs=0 if name in COUNTS else 1e-6)
        assert summary[name] == expected, name
        assert value == expected, name


def test_matches(case: Case, evaluation: Evaluation, score: definition.Score) -> None:
    per_image, objects, detections = evaluation.per_image().columns, evaluation.objects, evaluation.detections
    for row, (image, defined) in enumerate(zip(case.images, score.images, strict=True)):
        expected = [image[name] for name in COUNTS]
        assert [len(defined.matches), len(defined.false_positives), len(defined.false_negatives)] == expected
        assert [int(per_image[name][row]) for name in COUNTS] == expected
        if "gt_evals" not in image:
            continue
        made = [(match, False) for match in defined.matches] + [(match, True) for match in defined.passed_over]
        assert sorted((match.object, match.detection, skip) for match, skip in made) == matches_of(image)
        by_object = {entry["gt_id"]: entry for entry in image["gt_evals"]}
        for match, _ in made:
            want = [by_object[match.object][name] for name in ("pPDQ", "spatial", "label", "fg", "bg")]
            np.testing.assert_allclose(match[2:], want, rtol=0, atol=6e-5)
        first = np.flatnonzero(detections.image_rows == row)[:1]
        there = enumerate(np.flatnonzero(objects.image_rows == row))
        got = [(number, int(objects.partners[o] - first[0]), bool(objects.ignored[o])) for number, o in there
               if objects.partners[o] >= 0]  # fmt: skip
        assert got == matches_of(image)
        for name, theirs in (("pPDQ", "overall"), ("spatial", "spatial"), ("foreground", "fg"), ("background", "bg")):
            assert per_image[f"sum_{name}"][row] == pytest.approx(image[theirs], abs=1e-4)
            average = image[theirs] / image["TP"] if image["TP"] else np.nan
            assert per_image[name][row] == pytest.approx(average, abs=1e-4, nan_ok=True)


def test_heatmaps(golden_dir: Path) -> None:
    cases = json.loads((golden_dir / "heatmaps" / "cases.json").read_text())
    expected = np.load(golden_dir / "heatmaps" / "expected.npz")
    assert len(cases) == 28
    for case in cases:
        want = expected[f"h{case['id']}"]
        box = case["bbox"], case["covars"], case["width"], case["height"], Convention()
        np.testing.assert_allclose(heatmap(*box), want, rtol=0, atol=1e-7, err_msg=case["kind"])
        defined = definition.heatmap(*box)
        assert defined.dtype == want.dtype
        np.testing.assert_allclose(defined, want, rtol=0, atol=1.5e-7)  # here: equal; elsewhere perhaps one last bit
        np.testing.assert_array_equal(defined > 0, want > 0)
