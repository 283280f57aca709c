"""Numbers worked out by hand, and the experiments that compare the measure with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from probox.errors import InputError
from probox_experiments import EXPERIMENTS, ResultTable, Run, background_costs, running, table_1, tell_stories
from probox_experiments.paper.closed_form import agrees
from probox_experiments.paper.story_scenes import SCENES, Story, scene_truth
from probox_experiments.paper.table1 import ROWS

JUDGES = {experiment.name: experiment.judge for experiment in EXPERIMENTS}
SMALL: dict[str, Callable[[Run], ResultTable]] = {
    "background-region": lambda run: background_costs(pixels=(100,), run=run),
    "table-1": lambda run: table_1(share=0.0005, run=run),
    "stories": lambda run: tell_stories(run=run),
}


@pytest.fixture(scope="module")
def tables() -> dict[str, ResultTable]:
    return {name: measure(Run()) for name, measure in SMALL.items()}


def test_told_detections_are_what_they_are_said_to_be() -> None:
    told = Story("a", "b", "square", (2, -3, 4, 0), (1, 2, 3, 4), (0.5, 0.0))
    assert told.box.tolist() == [38, 43, 103, 99]
    assert told.covariances.tolist() == [[[1, 1], [1, 4]], [[9, 0], [0, 16]]]
    assert told.overlap == pytest.approx(60 * 57 / (66 * 57 + 60 * 60 - 60 * 57))
    assert Story("a", "b", "square", (0, 0, 0, 0)).probability_map().sum() == SCENES["square"]().sum() == 3600
    for name, scene in SCENES.items():
        assert scene_truth(name).masks.pixels.tolist() == [scene().sum()]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("preset", ["reference", "paper"])
def test_claims_are_judged_under_what_was_measured(tables: dict[str, ResultTable], name: str, preset: str) -> None:
    both = tables[name]
    other = [column for column in both.columns if column.endswith("_paper") or f"{column}_paper" in both]
    kept = [
        column for column in both.columns if column not in other or column.endswith("_paper") == (preset == "paper")
    ]
    claims = JUDGES[name](ResultTable({column: both[column] for column in kept}, both.settings))
    assert [claim for claim in claims if claim.holds is False] == []
    assert any(claim.holds for claim in claims)
    skipped = [claim for claim in claims if claim.holds is None]
    assert bool(skipped) == (name == "stories")  # some are about one preset alone


@pytest.mark.parametrize("preset", ["reference", "paper"])
def test_one_preset_alone_can_be_measured(tables: dict[str, ResultTable], preset: str) -> None:
    alone = SMALL["background-region"](Run(presets=[preset]))
    for column in alone.columns:
        np.testing.assert_array_equal(alone[column], tables["background-region"][column])
    assert ("PDQ" in alone) == (preset == "reference")


def test_nothing_measured_is_nothing_judged() -> None:
    judged = {claim.holds for claim in JUDGES["background-region"](SMALL["background-region"](Run(presets=[])))}
    assert judged == {None}
    told = {claim.holds for claim in JUDGES["stories"](tell_stories(run=Run(presets=[])))}
    assert told == {None, True}  # AP50 has no preset


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("background-region", {"background": "mask"}),
        ("background-region", {"epsilon": 1e-12}),
        ("table-1", {"label_weight": 0.4}),
        ("stories", {"epsilon": 1e-12}),
    ],
)
def test_another_measure_is_noticed(name: str, changes: dict[str, object]) -> None:
    claims = JUDGES[name](SMALL[name](Run(changes=changes)))
    assert any(claim.holds is False for claim in claims)


@pytest.mark.parametrize(
    "change",
    [
        lambda covariances: covariances[:, :, ::-1, ::-1],  # x for y
        lambda covariances: covariances[:, ::-1],  # one corner for the other
        lambda covariances: covariances * np.eye(2),  # no correlation
    ],
)
def test_exchanged_covariances_are_noticed(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    right = running.summary_of
    monkeypatch.setattr(
        running, "summary_of", lambda truth, found, *rest: right(
            truth, found.replace(covariances=change(found.covariances)), *rest
        ),
    )  # fmt: skip
    claims = JUDGES["stories"](tell_stories())
    denied = [claim.claim for claim in claims if claim.holds is False]
    assert any("by hand" in claim for claim in denied)
    assert any("edge" in claim or "orrelation" in claim for claim in denied)


def test_what_was_not_measured_counts_against_what_was_worked_out() -> None:
    table = ResultTable({"foreground_paper": [0.5, np.nan], "by_hand_foreground_paper": [0.5, 0.5]})
    assert agrees("a", table, ["foreground"]).holds is False
    assert agrees("a", table.take(np.array([0])), ["foreground"]).holds is True
    assert agrees("a", table.replace(by_hand_foreground_paper=[0.5, np.nan]), ["foreground"]).holds is True
    assert agrees("a", table, ["background"]).holds is None


def test_the_printed_table_is_whole() -> None:
    assert len(ROWS) == len({row[:2] for row in ROWS}) == 13
    assert sum(row[2][-2] for row in ROWS) == 1_261_725  # false positives


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (lambda: table_1(share=1e-5), "share between 0.0001 and 1"),
        (lambda: background_costs(pixels=(1_000_000,)), "pixels outside of the box, but got 1,000,000"),
        (lambda: tell_stories(sure=0.0), "sure above 0"),
        (lambda: tell_stories(error=60.0), "error above 0 and at most 40"),
        (lambda: tell_stories(correlation=1.0), "correlation between 0 and 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(run: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run()


def test_other_settings_are_judged_too() -> None:
    claims = JUDGES["stories"](tell_stories(sure=2.0, error=12.0, correlation=0.5))
    assert [claim for claim in claims if claim.holds is None] == []
    assert claims[0].holds
    without = background_costs(pixels=(), inside=0.5, outside=0.25)
    assert {claim.holds for claim in JUDGES["background-region"](without)} == {True, None}


def _told(table: ResultTable, detection: str, column: str, value: float) -> np.ndarray:
    return np.where(table["detection"] == detection, value, table[column])


@pytest.mark.parametrize(
    ("name", "words", "column", "change"),
    [
        ("stories", "General: a box", "PDQ", lambda t: _told(t, "little uncertainty", "PDQ", 0.83)),
        ("stories", "General: the same", "PDQ_paper", lambda t: _told(t, "x and y exchanged", "PDQ_paper", 0.83)),
        ("stories", "If one edge", "PDQ", lambda t: _told(t, "top wrong, left unsure", "PDQ", 0.91)),
        ("stories", "Which of the four", "PDQ_paper", lambda t: _told(t, "top wrong, left unsure", "PDQ_paper", 0.3)),
        ("stories", "Over-confident", "FP", lambda t: np.zeros(len(t))),
        ("stories", "Over-confident", "TP", lambda t: np.zeros(len(t))),
        ("stories", "Over-confident", "spatial_paper", lambda t: np.full(len(t), 0.5)),
        ("stories", "Under-confident", "IoU", lambda t: _told(t, "poorer box, honest", "IoU", 0.99)),
        ("stories", "Under-confident", "PDQ", lambda t: _told(t, "poorer box, honest", "PDQ", 0.8)),
        ("stories", "the pizza with", "PDQ", lambda t: np.zeros(len(t))),
        ("stories", "the chair with the surer", "FP", lambda t: np.zeros(len(t))),
        ("stories", "AP50", "AP50", lambda t: _told(t, "better box", "AP50", 0.5)),
        ("stories", "of both at once", "label", lambda t: _told(t, "both", "label", 0.95)),
        ("stories", "of both at once", "PDQ", lambda t: _told(t, "both", "PDQ", 0.3)),
        ("stories", "a corner too near", "PDQ", lambda t: np.zeros(len(t))),
        ("stories", "a corner too far", "background_paper", lambda t: np.ones(len(t))),
        ("stories", "pPDQ is the square root", "label", lambda t: t["label"] * 0.99),
        ("background-region", "costs nothing", "foreground", lambda t: t["foreground"] - 0.1 * (t["corners"] == 1)),
        ("background-region", "stays within", "background", lambda t: t["background"] * 0.99),
        ("background-region", "m pixels", "background_paper", lambda t: np.full(len(t), 0.5)),
        ("background-region", "geometric mean over", "foreground", lambda t: t["foreground"] * 0.99),
        ("background-region", "sure and wrong", "background", lambda t: t["background"] * 0.99),
        ("background-region", "sums over", "background_paper", lambda t: t["background_paper"] * 0.99),
        ("background-region", "their product", "spatial", lambda t: t["spatial"] + 1e-4),
        ("table-1", "Mean pPDQ", "printed_Lbl", lambda t: t["printed_Lbl"] * 0.5),
        ("table-1", "Mean Sp", "printed_BG", lambda t: t["printed_BG"] * 0.5),
        ("table-1", "Insight 1", "printed_BG", lambda t: t["printed_BG"][::-1]),
        ("table-1", "Insight 2", "printed_Lbl", lambda t: 100 - t["printed_Lbl"]),
        ("table-1", "Insight 3", "printed_Sp", lambda t: t["printed_Sp"] + 0.1),
        ("table-1", "Insight 4", "printed_PDQ", lambda t: -t["printed_PDQ"]),
        ("table-1", "Insight 4", "printed_FP", lambda t: np.ones(len(t))),
        ("table-1", "counts what was made", "FN_paper", lambda t: t["FN_paper"] + 1),
        ("table-1", "for a share", "PDQ", lambda t: t["PDQ"] + 1e-5),
    ],
)
def test_each_claim_can_fail(
    tables: dict[str, ResultTable], name: str, words: str, column: str, change: Callable[[ResultTable], np.ndarray]
) -> None:
    table = tables[name]
    right, denied = (
        [claim for claim in JUDGES[name](each) if words in claim.claim]
        for each in (table, table.replace(**{column: change(table)}))
    )
    assert [claim.holds for claim in right] == [True]
    assert [claim.holds for claim in denied] == [False]
