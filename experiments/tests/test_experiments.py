"""Every experiment, small: its numbers where they are known, and the paper's claim."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import run as run_process
from typing import Any

import numpy as np
import pytest
from tests.amounts import others_slow

import probox_experiments as experiments
from probox import GroundTruth
from probox.formats import read_truth
from probox_experiments import EXPERIMENTS, ResultTable
from probox_experiments.figures import measure_lines, style
from probox_experiments.synthetic import evenly

BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS if experiment.in_all}

FEW_VARIANCES = (0, 100, 300, 1000)

SMALL: dict[str, dict[str, Any]] = {
    "assignment": {"crowds": (48,), "images": 2, "repeats": 2},
    "spatial-uncertainty": {"true_variances": (3, 30), "repeats": 3, "seed": 1},
    "label-uncertainty": {"probabilities": (0.2, 0.5, 1.0)},
    "plane": {},
    "background-region": {"pixels": (0, 100, 1000)},
    "table-1": {"share": 0.001},
    "examples": {},
    "box-probability": {"probabilities": (0.1, 0.5, 1.0)},
    "corner-variance": {"variances": (0, 1, 100, 1000), "side": 200, "image": 800},
    "translation": {"shifts": (*evenly(-0.5, 0.5, 21), 0.0125), "variances": FEW_VARIANCES},
    "scaling": {
        "sizes": (0.25, 0.36, 0.49, 0.64, 0.81, 0.9604, 1.0, 1.0404, 1.21, 1.44, 1.69, 1.96, 2.25),
        "variances": FEW_VARIANCES,
    },
    "label-coco": {"probabilities": (0.0, 0.01, 0.02, 0.5, 1.0)},
    "missed-small": {"counts": (0, 1, 5)},
    "missed-coco": {"rates": (0.0, 0.3, 0.6), "repeats": 4},
    "false-small": {"counts": (0, 1, 5)},
    "duplicates": {"times": (1, 2, 5)},
    "false-positions": {"counts": (0, 1, 4), "repeats": 8},
    "lower-confidence": {"counts": (0, 1, 5)},
    "duplicates-coco": {"times": (1, 2, 4)},
    "duplicates-coco-100": {"times": (1, 2, 4), "subset": 40, "halvings": 3},
    "duplicates-order": {"times": (2,), "repeats": 1},
    "duplicates-lower-coco": {"times": (1, 2, 4)},
    "matching-rule": {"crowds": (1, 48), "repeats": 2},
    "precision-recall": {},
    "which-notices-what": {"perturbations": ("std x 4", "false, uncertain"), "images": 24, "repeats": 3},
    "constant-sigma": {"kinds": ("all alike", "by size"), "images": 10, "repeats": 2, "steps": 4},
    "proper": {
        "boxes": 100,
        "sides": (12,),
        "shares": (0.8,),
        "probabilities": (0.6, 0.7, 0.8, 0.9, 0.94, 0.98),
        "repeats": 3,
    },
    "segmentation": {"ratios": (0.7, 1.0, 1.4), "wide_ratios": (3.0,), "objects": 10, "blob_count": 4, "repeats": 2},
}
"""Settings with which an experiment is quick."""


def measure(name: str, truth: GroundTruth) -> ResultTable:
    """Return the table of a small run."""
    given = {"truth": truth} if "truth" in BY_NAME[name].takes else {}
    return BY_NAME[name].function(**given, **SMALL[name])


DENIED = {
    "constant-sigma": ["If errors grow with size, own std do not exceed one fraction of the side"],
    "proper": [
        "For Student errors of scale 3, PDQ under `paper` is best with a std of about 4.2 pixels",
        "For Student errors of scale 3, the energy score is best with a std of about 3.6 pixels",
    ],
    "spatial-uncertainty": [
        "PDQ peaks at the true variance (preset `reference`)",
        "PDQ peaks at the true variance (preset `paper`)",
    ],
    "translation": [
        "PDQ closely follows mAP and moLRP at variance 1000 (preset `paper`)",
        "No other variance follows mAP and moLRP more closely than 1000 (preset `paper`)",
    ],
    "scaling": [
        "PDQ at variance 100 follows mAP and moLRP without covariance (preset `reference`)",
        "No other variance follows mAP and moLRP more closely than 100 (preset `reference`)",
    ],
}
"""Claims that fail at any number of points."""


@pytest.fixture(scope="module")
def truth() -> GroundTruth:
    return experiments.synthetic_truth(120)


@pytest.fixture(scope="module")
def tables(truth: GroundTruth) -> dict[str, ResultTable]:
    return {name: measure(name, truth) for name in SMALL}


def test_every_experiment_is_tried() -> None:
    assert set(SMALL) == set(BY_NAME)
    # Those of training are tried in test_training.py.
    assert [one.name for one in EXPERIMENTS if not one.in_all] == ["training", "training-scenes"]


@pytest.mark.parametrize("name", SMALL)
def test_the_papers_claim_holds(tables: dict[str, ResultTable], name: str) -> None:
    claims = BY_NAME[name].judge(tables[name])
    assert any(claim.holds for claim in claims)
    for claim in claims:
        assert (claim.holds is False) is (claim.claim in DENIED.get(name, ())), str(claim)
        assert claim.measured
        assert claim.required
    assert len({claim.claim for claim in claims}) == len(claims)
    assert set(DENIED.get(name, ())) <= {claim.claim for claim in claims}


@pytest.mark.parametrize("presets", others_slow([("reference", "paper"), ("paper",), ("reference",)]))
@pytest.mark.parametrize("name", SMALL)
def test_a_figure_is_drawn(tables: dict[str, ResultTable], name: str, presets: tuple[str, ...]) -> None:
    with style():
        figure = BY_NAME[name].draw(only(tables[name], presets))
    assert figure.axes
    assert all(axes.get_title(loc="left") for axes in figure.axes)
    for axes in figure.axes:  # a measure has the same colour everywhere
        for line in axes.lines:
            for _, drawn in measure_lines():
                if line.get_label() == drawn["label"]:
                    assert line.get_color() == drawn["color"]


def only(table: ResultTable, presets: tuple[str, ...]) -> ResultTable:
    """Return the table as a run with these presets would have made it."""
    paper = {name for name in table.columns if name.endswith("_paper")}
    plain = {name.removesuffix("_paper") for name in paper}
    gone = (set() if "paper" in presets else paper) | (set() if "reference" in presets else plain)
    return ResultTable({name: values for name, values in table.columns.items() if name not in gone}, table.settings)


def pdq_labels(name: str, table: ResultTable) -> list[str]:
    with style():
        axes, *_ = BY_NAME[name].draw(table).axes
    return [line.get_label() for line in axes.lines if line.get_label().startswith(("PDQ", "the same"))]


def test_figures_show_both_presets_and_say_so(tables: dict[str, ResultTable]) -> None:
    table = tables["duplicates"]
    assert pdq_labels("duplicates", table) == ["PDQ, both presets"]
    apart = table.replace(PDQ_paper=table["PDQ_paper"] + 0.01)
    assert pdq_labels("duplicates", apart) == ["PDQ, reference", "PDQ, paper"]
    assert pdq_labels("duplicates", only(table, ("reference",))) == ["PDQ"]
    assert pdq_labels("duplicates", only(table, ("paper",))) == ["PDQ, paper"]
    families = tables["translation"]
    assert pdq_labels("translation", families)[-1] == "the same under paper"
    assert pdq_labels("translation", only(families, ("paper",)))[-1] == "PDQ, variance 1000"
    with style():
        (axes,) = BY_NAME["translation"].draw(families).axes
    drawn = [line.get_ydata() for line in axes.lines if len(line.get_xdata()) > 2]
    for column in ("PDQ", "PDQ_paper"):
        wanted = families.where(variance=1000.0)[column]
        assert any(np.array_equal(values, wanted) for values in drawn)


@pytest.mark.parametrize("kept", ["first row", "paper", "reference", "nothing of PDQ", "no row"])
@pytest.mark.parametrize("name", SMALL)
def test_what_was_not_measured_is_not_denied(tables: dict[str, ResultTable], name: str, kept: str) -> None:
    whole, judge = tables[name], BY_NAME[name].judge
    parts = {
        "first row": whole.take(np.arange(1)),
        "paper": only(whole, ("paper",)),
        "reference": only(whole, ("reference",)),
        "nothing of PDQ": only(whole, ()),
        "no row": whole.take(np.zeros(0, np.int64)),
    }
    if kept == "no row" and name in ("plane", "duplicates-coco-100"):
        return  # they always have rows
    denied = {claim.claim for claim in judge(whole) if claim.holds is False}
    claims = judge(parts[kept])
    assert {claim.claim for claim in claims if claim.holds is False} <= denied
    if kept in ("paper", "reference") and "PDQ" in whole:
        assert any(claim.holds for claim in claims)
    if kept == "nothing of PDQ" and "PDQ" in whole:
        assert any(claim.holds is None for claim in claims)
    if kept == "no row":
        assert {claim.holds for claim in claims} == {None}


@pytest.mark.parametrize("column", ["PDQ", "PDQ_paper"])
@pytest.mark.parametrize("name", SMALL)
def test_a_pdq_that_is_nothing_throughout_is_denied(tables: dict[str, ResultTable], name: str, column: str) -> None:
    table, judge = tables[name], BY_NAME[name].judge
    if column in table:
        held = {claim.claim for claim in judge(table) if claim.holds}
        denied = {claim.claim for claim in judge(table.replace(**{column: np.full(len(table), np.nan)}))
                  if claim.holds is False}  # fmt: skip
        assert held & denied


def test_a_number_that_is_missing_is_not_passed_over(tables: dict[str, ResultTable]) -> None:
    region = tables["background-region"]
    torn = np.where(region["corners"] == 1, np.nan, region["foreground_paper"])
    assert holds_of("background-region", region.replace(foreground_paper=torn), "costs nothing") is False
    told = tables["examples"]
    torn = np.full(len(told), np.nan)
    assert holds_of("examples", told.replace(background_paper=torn), "pPDQ is the square root") is False
    unmatched = told.replace(TP=np.zeros(len(told)), TP_paper=np.zeros(len(told)))
    assert holds_of("examples", unmatched, "pPDQ is the square root") is None


def holds_of(name: str, table: ResultTable, words: str) -> bool | None:
    """Return the result of the claim that contains these words."""
    (claim,) = [claim for claim in BY_NAME[name].judge(table) if words in claim.claim]
    return claim.holds


def test_settings_that_a_claim_needs_may_be_missing(tables: dict[str, ResultTable]) -> None:
    shifted = tables["translation"]
    table = shifted.take(np.abs(shifted["shift"]) != 0.1)
    assert holds_of("translation", table, "shifted by 10%") is None
    assert holds_of("translation", table, "e^|s|") is True
    table = shifted.take(shifted["shift"] != 0.0)
    assert holds_of("translation", table, "The highest PDQ decreases") is None
    table = shifted.take(np.abs(shifted["shift"]) <= 0.1)
    assert holds_of("translation", table, "becomes more tolerant") is None  # at variance 1000 half is not reached
    assert holds_of("translation", table, "The highest PDQ decreases") is True
    table = shifted.take(shifted["variance"] != 1000.0)
    assert holds_of("translation", table, "closely follows") is None
    assert holds_of("translation", table, "No other variance") is None
    assert holds_of("translation", table, "becomes more tolerant") is True
    table = shifted.take(shifted["variance"] != 0.0)
    assert holds_of("translation", table, "e^|s|") is None
    assert holds_of("translation", table, "follow from the IoU") is True
    table = shifted.take(shifted["shift"] != 0.0125)
    assert holds_of("translation", table, "and a fraction f") is None
    sized = tables["scaling"]
    assert holds_of("scaling", sized.take(sized["size"] != 1.21), "10% smaller or larger") is None
    repeated = tables["duplicates-coco-100"]
    once = repeated.where(detections=1)
    assert holds_of("duplicates-coco-100", once, "every halving") is None
    assert holds_of("duplicates-coco-100", repeated.where(images=120), "larger than on all") is None
    labels = tables["label-coco"]
    assert holds_of("label-coco", labels.where(largest=True), "If another class") is None
    assert holds_of("label-coco", labels.where(largest=True), "change only where") is None
    assert holds_of("label-coco", labels.where(largest=False), "while that is the largest") is None


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
    (row,) = tables["translation"].where(variance=0.0, shift=0.1).rows()
    assert row["PDQ"] == row["PDQ_paper"] == pytest.approx(10**-1.4)
    (row,) = tables["scaling"].where(variance=0.0, size=1.44).rows()
    assert (row["foreground_paper"], row["background_paper"]) == (1.0, pytest.approx(1e-14**0.44))
    (row,) = tables["plane"].rows()
    assert row["PDQ"] == 0
    assert row["PDQ_paper"] == pytest.approx(1e-14 ** ((1 - row["covered"]) / 2))


CHANGES: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    lambda values: values + 1e-5,
    lambda values: 1.001 * values,
    lambda values: 0.997 * values,
    lambda values: 0.9 * values,
    lambda values: np.sqrt(np.abs(values)),
    lambda values: 1 - values,
    lambda values: values[::-1],
    lambda values: 0.01 * values,
    lambda values: 0 * values + 1,
    lambda values: -values,
    lambda values: values + 0.05 * np.arange(len(values)),
    lambda values: values * (1 + 0.3 * np.random.default_rng(0).standard_normal(len(values))),
)
"""What is done to one column after the other, the smallest changes first."""

ALWAYS = {
    "PDQ is defined for all changes",  # see test_a_pdq_that_is_nothing_throughout_is_denied
    "Every change is detected by a metric other than PDQ and PMB-NLL",  # see test_sensitivity.py
    "PDQ becomes more tolerant with larger variance",  # see below
}


@pytest.mark.filterwarnings("ignore")  # of logarithms of what is now negative, and the like
@pytest.mark.parametrize("name", SMALL)
def test_each_claim_can_be_denied_by_one_column(tables: dict[str, ResultTable], name: str) -> None:
    table, judge = tables[name], BY_NAME[name].judge
    held = {claim.claim for claim in judge(table) if claim.holds} - ALWAYS
    measured = [
        column
        for column, values in table.columns.items()
        if values.dtype.kind in "fi"
        and column != "correlation"
        and (column not in table.settings or column.startswith("printed_"))
    ]
    for change, column in itertools.product(CHANGES, measured):
        if not held:
            break
        values = np.asarray(table[column], np.float64)
        held -= {claim.claim for claim in judge(table.replace(**{column: change(values)})) if claim.holds is False}
    assert not held


@pytest.mark.parametrize(
    ("name", "words", "column", "change"),
    [
        ("plane", "below 1e-4", "PDQ", lambda table: table["PDQ_paper"] + 1e-4),
        ("translation", "The highest PDQ decreases", "PDQ_paper", lambda table: 1.0 - np.abs(table["shift"])),
        ("translation", "becomes more tolerant", "PDQ", lambda table: 1 - 2 * np.abs(table["shift"])),
        ("scaling", "10% smaller or larger", "mAP", lambda table: np.where(table["size"] == 0.81, 0.4, 1.0)),
        ("duplicates-coco", "lies above 1/n", "mAP", lambda table: 1 / table["detections"]),
        ("duplicates-coco-100", "larger than on all", "mAP", lambda table: np.where(table["images"] == 40, 0.0, 1.0)),
        ("examples", "Overconfident", "FP", lambda table: np.zeros(len(table))),
        ("examples", "Overconfident", "TP", lambda table: np.zeros(len(table))),
        ("examples", "Overconfident", "spatial_paper", lambda table: np.full(len(table), 0.5)),
        ("examples", "the chair with the more confident", "FP", lambda table: np.zeros(len(table))),
        ("examples", "a corner too far", "background_paper", lambda table: np.ones(len(table))),
        ("table-1", "Insight 4", "printed_FP", lambda table: np.ones(len(table))),
        ("missed-coco", "PDQ is the fraction", "PDQ_paper", lambda table: 1 - table["rate"]),
        ("matching-rule", "never has more hits", "ahead", lambda table: np.ones(len(table))),
    ],
)
def test_a_sentence_is_denied_by_its_data(
    tables: dict[str, ResultTable], name: str, words: str, column: str, change: Callable[[ResultTable], np.ndarray]
) -> None:
    table = tables[name]
    assert holds_of(name, table, words) is True
    assert holds_of(name, table.replace(**{column: change(table)}), words) is False


def test_points_are_the_same_with_any_number_of_threads(truth: GroundTruth) -> None:
    tables = [
        experiments.spatial_uncertainty(
            truth, true_variances=(10, 100), fine_steps=0, repeats=1, run=experiments.Run(threads=threads)
        )
        for threads in (1, 2)
    ]
    assert tables[0].to_csv() == tables[1].to_csv()


def test_images_are_halved_beside_the_papers_part(tables: dict[str, ResultTable]) -> None:
    table = tables["duplicates-coco-100"]
    assert list(dict.fromkeys(table["images"].tolist())) == [40, 120, 60, 30, 15]
    (claim,) = [one for one in BY_NAME["duplicates-coco-100"].judge(table) if "every halving" in one.claim]
    means = {
        count: float((part["mAP"] - 1 / part["detections"])[part["detections"] > 1].mean())
        for count in (120, 60, 40, 30, 15)
        for part in [table.where(images=count)]
    }
    assert claim.numbers == {f"mean excess on {count} images": mean for count, mean in means.items()}
    fallen = table.replace(mAP=np.where(table["images"] == 30, table.where(images=60)["mAP"].mean(), table["mAP"]))
    assert holds_of("duplicates-coco-100", fallen, "every halving") is False


def test_one_class_is_always_the_largest() -> None:
    single = experiments.square_scene()
    table = experiments.label_coco(single, probabilities=(0.0, 0.5, 1.0))
    assert table["largest"].all()
    tied = experiments.label_coco(experiments.square_scene(classes=2), probabilities=(0.25, 0.5, 0.75))
    assert tied["probability"].tolist() == [0.25, 0.75]


@pytest.mark.parametrize("name", ["label-coco", "missed-coco", "duplicates-coco-100", "duplicates-lower-coco"])
def test_claims_hold_on_real_objects(coco_dir: Path, name: str) -> None:
    real = read_truth(coco_dir / "val2017_masks_206.json")
    for claim in BY_NAME[name].judge(measure(name, real)):
        assert claim.holds, str(claim)


def test_nothing_is_drawn_before_it_is_asked_for() -> None:
    code = "import probox_experiments, sys; sys.exit('matplotlib' in sys.modules or 'scipy' in sys.modules)"
    assert run_process([sys.executable, "-c", code], check=False).returncode == 0
