"""Every experiment, small: its numbers where they are known, and the paper's claim."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import run as run_process

import numpy as np
import pytest

from probox import GroundTruth, experiments
from probox.experiments import EXPERIMENTS, ResultTable
from probox.experiments.figures import measure_lines, style
from probox.experiments.scenes import evenly
from probox.formats import read_truth

BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS if experiment.in_all}

SMALL: dict[str, Callable[[GroundTruth], ResultTable]] = {
    "spatial-uncertainty": lambda truth: experiments.spatial_uncertainty(
        truth, true_variances=(1, 10, 100), repeats=2, seed=1
    ),
    "label-uncertainty": lambda truth: experiments.label_uncertainty(probabilities=(0.2, 0.5, 1.0)),
    "plane": lambda truth: experiments.plane(),
    "box-probability": lambda truth: experiments.box_probability(probabilities=(0.1, 0.5, 1.0)),
    "corner-variance": lambda truth: experiments.corner_variance(variances=(0, 1, 100, 1000), side=200, image=800),
    "translation": lambda truth: experiments.translation(shifts=evenly(-0.5, 0.5, 51)),
    "scaling": lambda truth: experiments.scaling(sizes=(0.49, 0.81, 0.9025, 1.0, 1.1025, 1.21, 1.44, 1.69, 1.96)),
    "label-coco": lambda truth: experiments.label_coco(truth, probabilities=(0.0, 0.01, 0.02, 0.5, 1.0)),
    "missed-small": lambda truth: experiments.missed_small(counts=(0, 1, 5)),
    "missed-coco": lambda truth: experiments.missed_coco(truth, rates=(0.0, 0.3, 0.6), repeats=4),
    "false-small": lambda truth: experiments.false_small(counts=(0, 1, 5)),
    "duplicates": lambda truth: experiments.duplicates(times=(1, 2, 5)),
    "lower-confidence": lambda truth: experiments.lower_confidence(counts=(0, 1, 5)),
    "duplicates-coco": lambda truth: experiments.duplicates_coco(truth, times=(1, 2, 4)),
    "duplicates-coco-100": lambda truth: experiments.duplicates_coco_100(truth, times=(1, 2, 4), images=30),
    "duplicates-lower-coco": lambda truth: experiments.duplicates_lower_coco(truth, times=(1, 2, 4)),
    "precision-recall": lambda truth: experiments.precision_recall(),
    "proper": lambda truth: experiments.proper(
        boxes=100, sides=(12,), shares=(0.8,), probabilities=(0.6, 0.7, 0.8, 0.9, 0.94, 0.98), repeats=3
    ),
    "segmentation": lambda truth: experiments.segmentation(
        truth, ratios=(0.7, 1.0, 1.4), wide_ratios=(3.0,), objects=10, blob_count=4, repeats=2
    ),
}

NOT_SO: dict[str, tuple[str, ...]] = {
    "proper": (
        "For Student errors of scale 3, PDQ under `paper` is best with one sigma of about 4.2",
        "For Student errors of scale 3, the energy score is best with one sigma of about 3.6",
    ),
}
"""How claims begin that were foreseen and did not come true."""


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    return experiments.synthetic_truth(120)


@pytest.fixture(scope="module")
def tables(truth: GroundTruth) -> dict[str, ResultTable]:
    return {name: measure(truth) for name, measure in SMALL.items()}


def test_every_experiment_is_tried() -> None:
    assert set(SMALL) == set(BY_NAME)
    assert len(BY_NAME) == 19
    # Those of training are tried in test_training.py.
    assert [one.name for one in EXPERIMENTS if not one.in_all] == ["training", "training-scenes"]


@pytest.mark.parametrize("name", SMALL)
def test_the_papers_claim_holds(tables: dict[str, ResultTable], name: str) -> None:
    verdicts = BY_NAME[name].judge(tables[name])
    assert verdicts
    for verdict in verdicts:
        assert verdict.holds is not verdict.claim.startswith(NOT_SO.get(name, ())), str(verdict)
        assert verdict.measured
        assert verdict.required


@pytest.mark.parametrize("name", SMALL)
def test_a_figure_is_drawn(tables: dict[str, ResultTable], name: str) -> None:
    with style():
        figure = BY_NAME[name].draw(tables[name])
    assert figure.axes
    assert all(axes.get_title(loc="left") for axes in figure.axes)
    for axes in figure.axes:  # a measure has the same colour everywhere
        for line in axes.lines:
            for _, drawn in measure_lines():
                if line.get_label() == drawn["label"]:
                    assert line.get_color() == drawn["color"]


def test_every_measure_has_a_line_of_its_own_pdq_on_top() -> None:
    lines = measure_lines()
    assert [line["label"] for _, line in lines] == ["mAP", "1 \N{MINUS SIGN} moLRP", "PDQ"]
    assert len({line["color"] for _, line in lines}) == len({line["marker"] for _, line in lines}) == 3


def test_known_numbers(tables: dict[str, ResultTable]) -> None:
    def check(name: str, column: str, wanted: list[float], tolerance: float = 1e-6) -> None:
        np.testing.assert_allclose(tables[name][column], wanted, atol=tolerance, rtol=0, err_msg=f"{name} {column}")

    root = math.sqrt(0.9)
    for preset in ("PDQ", "PDQ_paper"):
        check("label-uncertainty", preset, [0.2**0.5, 0.5**0.5, 1.0])
        check("box-probability", preset, [0.1**0.5, 0.5**0.5, 1.0])
        check("missed-small", preset, [1, 1 / 2, 1 / 6])
        check("false-small", preset, [root, root / 2, root / 6])
        check("lower-confidence", preset, [1, 1 / 2, 1 / 6])
        check("duplicates", preset, [1, 1 / 2, 1 / 5])
        check("duplicates-coco", preset, [1, 1 / 2, 1 / 4])
        check("duplicates-lower-coco", preset, [1, 1 / 2, 1 / 4])
        check("label-coco", preset, [0, 0.1, 0.02**0.5, 0.5**0.5, 1], 1e-4)
    check("missed-small", "mAP", [1, 51 / 101, 17 / 101])  # recalls 0 .. 0.50, 0 .. 0.16
    check("missed-small", "moLRP", [0, 1 / 2, 5 / 6])
    check("false-small", "mAP", [1, 1 / 2, 1 / 6])
    check("duplicates", "mAP", [1, 1, 1])
    check("duplicates", "moLRP", [0, 1 / 2, 4 / 5])
    # A tenth of the pixels missed, and as many too many: each costs 1e-14 to the power of a tenth.
    plain = tables["translation"].where(variance=0.0)
    shift = np.abs(plain["shift"])
    np.testing.assert_allclose(plain["PDQ"], np.where(shift < 0.3, 1e-14**shift, 0.0), atol=1e-3)
    np.testing.assert_allclose(1 - plain["moLRP"], np.maximum(1 - 2 * (1 - (1 - shift) / (1 + shift)), 0), atol=1e-9)


@pytest.mark.parametrize(
    ("name", "column", "change"),
    [
        ("spatial-uncertainty", "PDQ", lambda table: np.where(table["reported_variance"] == 1.0, 1.0, table["PDQ"])),
        ("spatial-uncertainty", "PDQ_paper", lambda table: -table["PDQ_paper"]),
        ("label-uncertainty", "PDQ", lambda table: table["PDQ"] + 1e-4),
        ("label-uncertainty", "mAP", lambda table: table["mAP"] - 1e-3),
        ("plane", "PDQ_paper", lambda table: table["PDQ_paper"] + 1e-3),
        ("plane", "AP50", lambda table: table["AP50"] - 0.5),
        ("plane", "covered", lambda table: table["covered"] + 0.1),
        ("box-probability", "PDQ", lambda table: np.ones(len(table))),
        ("box-probability", "moLRP", lambda table: table["moLRP"] + 0.1),
        ("corner-variance", "PDQ_paper", lambda table: table["PDQ_paper"][::-1]),
        ("translation", "PDQ", lambda table: np.sqrt(table["PDQ"])),
        ("translation", "PDQ_paper", lambda table: np.ones(len(table))),
        ("scaling", "mAP", lambda table: np.zeros(len(table))),
        ("label-coco", "mAP", lambda table: table["PDQ"]),
        ("label-coco", "moLRP", lambda table: np.zeros(len(table))),
        ("missed-small", "mAP", lambda table: np.ones(len(table))),
        ("missed-coco", "PDQ", lambda table: table["PDQ"] ** 2),
        ("false-small", "PDQ", lambda table: table["PDQ"] * 0.9),
        ("duplicates", "moLRP", lambda table: np.zeros(len(table))),
        ("duplicates", "mAP", lambda table: table["PDQ"]),
        ("lower-confidence", "PDQ", lambda table: np.ones(len(table))),
        ("duplicates-coco", "mAP", lambda table: table["PDQ"]),
        ("duplicates-coco", "PDQ", lambda table: table["mAP"]),
        ("duplicates-coco-100", "mAP", lambda table: table["mAP"][::-1]),
        ("duplicates-lower-coco", "moLRP", lambda table: 1 - table["PDQ"]),
        ("precision-recall", "precision", lambda table: np.maximum(table["precision"], 0.7)),
        ("proper", "PDQ", lambda table: table["PDQ"] + 1e-5),
        ("proper", "PDQ_paper", lambda table: np.where(table["sigma"] > 3.3, 0.95, table["PDQ_paper"])),
        ("proper", "NLL", lambda table: table["NLL"] + 0.2 * table["sigma"]),
        ("proper", "Brier", lambda table: -table["Brier"]),
        ("segmentation", "PDQ", lambda table: np.where(table["report"] == "Gaussian box", 0.9, table["PDQ"])),
        ("segmentation", "PDQ_paper", lambda table: np.where(table["outside"] == "box", 0.9, table["PDQ_paper"])),
        ("segmentation", "foreground", lambda table: table["background"]),
        ("segmentation", "background_paper", lambda table: np.sqrt(table["background_paper"])),
    ],
)
def test_a_claim_that_the_data_deny_does_not_hold(
    tables: dict[str, ResultTable], name: str, column: str, change: Callable[[ResultTable], np.ndarray]
) -> None:
    table = tables[name]
    denied = table.replace(**{column: change(table)})
    before, after = (sum(verdict.holds is True for verdict in BY_NAME[name].judge(one)) for one in (table, denied))
    assert after < before


def test_points_are_the_same_with_any_number_of_threads(truth: GroundTruth) -> None:
    tables = [
        experiments.spatial_uncertainty(
            truth, true_variances=(10, 100), repeats=1, run=experiments.Run(threads=threads)
        )
        for threads in (1, 2)
    ]
    assert tables[0].to_csv() == tables[1].to_csv()


def test_a_truth_of_few_images_has_nothing_to_compare_with(truth: GroundTruth) -> None:
    table = experiments.duplicates_coco_100(truth, times=(1, 2), images=500)
    verdicts = BY_NAME["duplicates-coco-100"].judge(table)
    assert not verdicts[0].holds
    assert "no more images" in verdicts[0].explanation


def test_one_class_is_always_the_largest() -> None:
    single = experiments.square_scene()
    table = experiments.label_coco(single, probabilities=(0.0, 0.5, 1.0))
    assert table["largest"].all()
    tied = experiments.label_coco(experiments.square_scene(classes=2), probabilities=(0.25, 0.5, 0.75))
    assert tied["probability"].tolist() == [0.25, 0.75]


@pytest.mark.parametrize("name", ["label-coco", "missed-coco", "duplicates-coco-100", "duplicates-lower-coco"])
def test_claims_hold_on_real_objects(coco_dir: Path, name: str) -> None:
    real = read_truth(coco_dir / "val2017_masks_206.json")
    for verdict in BY_NAME[name].judge(SMALL[name](real)):
        assert verdict.holds, str(verdict)


def test_nothing_is_drawn_before_it_is_asked_for() -> None:
    code = "import probox.experiments, sys; sys.exit('matplotlib' in sys.modules or 'scipy' in sys.modules)"
    assert run_process([sys.executable, "-c", code], check=False).returncode == 0
