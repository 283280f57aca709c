"""Closed forms, and the experiments that compare PDQ with them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from probox.errors import InputError
from probox_experiments import EXPERIMENTS, ResultTable, Run, background_costs, evaluate_examples, running, table_1
from probox_experiments.paper.closed_form import agrees
from probox_experiments.paper.examples import SCENES, ExampleCase, scene_truth
from probox_experiments.paper.table1 import ROWS

JUDGES = {experiment.name: experiment.judge for experiment in EXPERIMENTS}
SMALL: dict[str, Callable[[Run], ResultTable]] = {
    "background-region": lambda run: background_costs(pixels=(100,), run=run),
    "table-1": lambda run: table_1(share=0.0005, run=run),
    "examples": lambda run: evaluate_examples(run=run),
}


@pytest.fixture(scope="module")
def tables() -> dict[str, ResultTable]:
    return {name: measure(Run()) for name, measure in SMALL.items()}


def test_told_detections_are_what_they_are_said_to_be() -> None:
    told = ExampleCase("a", "b", "square", (2, -3, 4, 0), (1, 2, 3, 4), (0.5, 0.0))
    assert told.box.tolist() == [38, 43, 103, 99]
    assert told.covariances.tolist() == [[[1, 1], [1, 4]], [[9, 0], [0, 16]]]
    assert told.overlap == pytest.approx(60 * 57 / (66 * 57 + 60 * 60 - 60 * 57))
    assert ExampleCase("a", "b", "square", (0, 0, 0, 0)).probability_map().sum() == SCENES["square"]().sum() == 3600
    for name, scene in SCENES.items():
        assert scene_truth(name).masks.pixels.tolist() == [scene().sum()]


@pytest.mark.parametrize("preset", ["reference", "paper"])
def test_one_preset_alone_can_be_measured(tables: dict[str, ResultTable], preset: str) -> None:
    alone = SMALL["background-region"](Run(presets=[preset]))
    for column in alone.columns:
        np.testing.assert_array_equal(alone[column], tables["background-region"][column])
    assert ("PDQ" in alone) == (preset == "reference")


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("background-region", {"background": "mask"}),
        ("background-region", {"epsilon": 1e-12}),
        ("table-1", {"label_weight": 0.4}),
        ("examples", {"epsilon": 1e-12}),
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
    claims = JUDGES["examples"](evaluate_examples())
    denied = [claim.claim for claim in claims if claim.holds is False]
    assert any("closed form" in claim for claim in denied)
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
        (lambda: evaluate_examples(low_std=0.0), "low_std above 0"),
        (lambda: evaluate_examples(error=60.0), "error above 0 and at most 40"),
        (lambda: evaluate_examples(correlation=1.0), "correlation between 0 and 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(run: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run()


def test_other_settings_are_judged_too() -> None:
    claims = JUDGES["examples"](evaluate_examples(low_std=2.0, error=12.0, correlation=0.5))
    assert [claim for claim in claims if claim.holds is None] == []
    assert claims[0].holds
    without = background_costs(pixels=(), inside=0.5, outside=0.25)
    assert {claim.holds for claim in JUDGES["background-region"](without)} == {True, None}
