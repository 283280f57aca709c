"""Training, tiny: the arms, resuming, what is measured, and claims that data deny."""

from __future__ import annotations

import dataclasses
import math
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from probox.cli import main
from probox_experiments import ResultTable, Run
from probox_experiments.figures import style
from probox_experiments.training.arms import (
    ARMS,
    LEVELS,
    PPDQ_ARMS,
    Settings,
    coverage_column,
    find_arm,
    interval_of,
    level_column,
)
from probox_experiments.training.comparison import (
    TRAINING,
    TRAINING_SCENES,
    arm_table,
    claim_list,
    read_rows,
    read_table,
    seed_table,
    training,
    training_scenes,
)
from probox_experiments.training.scenes import KINDS, draw_scenes

ROOT = Path(__file__).resolve().parents[2]
TINY = Settings(steps=20, warm=5, batch=8, images=60, validation=20, test=30)


def test_scenes_are_never_shared() -> None:
    seeds = [getattr(TINY, kind)(seed) for seed in range(50) for kind in ("train_seed", "validation_seed", "test_seed")]
    assert len(set(seeds)) == len(seeds)


# --- with torch ---


@pytest.mark.slow
@pytest.mark.torch
def test_points_are_measured_kept_and_the_same_for_any_number_of_threads(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    arms = ("l1", "l1-constant", "ppdq-log")
    table = training(arms=arms, repeats=1, settings=TINY, run=Run(threads=2, keep=tmp_path))
    assert sorted(table["arm"].tolist()) == sorted(arms)
    rows = {row["arm"]: row for row in table.rows()}
    assert rows["l1"]["mAP"] == rows["l1-constant"]["mAP"]  # the same boxes
    assert math.isnan(rows["l1"]["NLL"])
    assert 0.5 <= rows["l1-constant"]["one_sigma"] <= 5.0
    assert rows["l1-constant"]["log_sigma_correlation"] == 0.0
    assert all(0 <= rows["ppdq-log"][coverage_column(share)] <= 1 for share in (50, 90))

    kept = training(arms=arms, repeats=1, settings=TINY, run=Run(threads=1, keep=tmp_path))
    assert kept.to_csv() == table.to_csv()

    from probox_experiments.training.detector import fit, one_thread

    with one_thread():
        first, again = (fit(find_arm("ppdq-log"), 0, TINY) for _ in range(2))
    for own, other in zip(first.parameters(), again.parameters(), strict=True):
        assert (own == other).all()


@pytest.mark.torch
def test_every_arm_teaches_means_and_spread_and_nothing_else_differs() -> None:
    torch = pytest.importorskip("torch")
    from probox_experiments.training.detector import Chosen, box_loss

    truth = torch.tensor([[20.0, 20.0, 50.0, 50.0]], dtype=torch.float64)
    for arm in ARMS:
        boxes = (truth + torch.tensor([2.0, -2.0, 1.0, 3.0])).float().requires_grad_()
        log_std = torch.zeros(1, 4, requires_grad=True)
        logits = torch.zeros(1, 3, requires_grad=True)
        loss = box_loss(arm, Chosen(boxes, log_std, logits, truth, truth, torch.tensor([0])))
        loss.backward()
        assert loss.dtype == torch.float32
        assert (torch.sign(boxes.grad) == torch.sign(boxes.detach() - truth)).all(), arm.name
        assert logits.grad is None
        assert (log_std.grad is None) == (not arm.loss)
        if arm.loss:
            assert (log_std.grad[0, [0, 1, 3]] < 0).all(), arm.name  # sigma 1 is too little for errors of 2 and 3
        warm = box_loss(arm, Chosen(boxes, log_std, logits, truth, truth, torch.tensor([0])), warm=True)
        assert float(warm.detach()) == pytest.approx(8.0)


@pytest.mark.torch
def test_the_second_stage_sees_what_lies_across_each_edge() -> None:
    torch = pytest.importorskip("torch")
    from probox_experiments.training.detector import LINES, REACH, SmallDetector, _strips
    from probox_experiments.training.scenes import SIDE

    place = torch.arange(SIDE).float()
    pictures = torch.stack([place.expand(SIDE, SIDE), place[:, None].expand(SIDE, SIDE), torch.zeros(SIDE, SIDE)])[None]
    strips = _strips(pictures, torch.tensor([0]), torch.tensor([[30.0, 35.0, 60.0, 70.0]]))
    assert strips.shape == (4, 3, LINES, 2 * REACH + 1)
    for edge, (channel, at, sign) in enumerate(((0, 30, -1), (1, 35, -1), (0, 60, 1), (1, 70, 1))):
        line = strips[edge, channel, 0]
        assert line[REACH] == at
        assert line[-1] == at + sign * REACH  # outside comes last
        assert line[0] == at - sign * REACH
    parameters = sum(weights.numel() for weights in SmallDetector().parameters())
    assert 40_000 < parameters < 60_000


@pytest.mark.torch
def test_edges_of_scenes_are_listed() -> None:
    pytest.importorskip("torch")
    table = training_scenes(arms=("nll", "ppdq-log"), images=20, settings=TINY)
    assert set(table["arm"].tolist()) == {"nll", "ppdq-log"}
    assert set(table.columns) == set(all_edges().columns)
    scenes = draw_scenes(TINY.test, TINY.test_seed(0))
    at = table["object"], table["edge"]
    np.testing.assert_array_equal(table["sigma"], scenes.sigmas[at])
    np.testing.assert_array_equal(table["true"], scenes.boxes[at])
    assert table["image"].max() < 20


@pytest.mark.torch
def test_the_example_trains_measures_and_writes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    out = tmp_path / "found.json"
    options = ["--steps", "12", "--images", "40", "--test-images", "20", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["train_probabilistic_detector.py", *options])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        runpy.run_path(str(ROOT / "examples" / "train_probabilistic_detector.py"), run_name="__main__")
    torch.set_num_threads(threads)
    said = capsys.readouterr().out
    assert said.count("1-moLRP") == 2
    assert f"detections written to {out}" in said
    assert out.stat().st_size > 100


# --- without ---


def synthetic_table(seeds: int = 5) -> ResultTable:
    """Return a table in which every claim holds."""
    rng = np.random.default_rng(0)
    scores = {"l1": 0.3, "l1-constant": 0.80, "dmm": 0.81}
    rows = []
    for seed in range(seeds):
        scene = 0.01 * rng.standard_normal()
        for arm in ARMS:
            level = scores.get(arm.name, 0.83) + 0.002 * (arm.name in PPDQ_ARMS) + scene
            rows.append(
                {
                    "seed": seed,
                    "arm": arm.name,
                    "PDQ": level + 0.0002 * rng.standard_normal(),
                    "PDQ_paper": level + 0.0002 * rng.standard_normal(),
                    "mAP": 0.67 + scene + 0.0002 * rng.standard_normal(),
                    "log_sigma_correlation": 0.95 + 0.002 * rng.standard_normal(),
                    "sigma_correlation": 0.95,
                    "sigma_ratio": 1.0,
                    "occluded_wider": 0.99 + 0.001 * rng.standard_normal(),
                    "occluded_sigma": 2.0,
                    "sharp_sigma": 0.6,
                    "coverage_90": 0.9 + 0.002 * rng.standard_normal(),
                    **{level_column(number): LEVELS[number] for number in range(len(LEVELS) - 1)},
                }
            )
    return ResultTable.from_rows(rows)


def test_claims_hold_where_they_should_and_need_several_seeds() -> None:
    claims = TRAINING.judge(synthetic_table())
    assert len(claims) == 12
    assert all(claim.holds for claim in claims), [str(claim) for claim in claims if not claim.holds]
    once = TRAINING.judge(synthetic_table(seeds=1))
    assert [claim.claim for claim in once] == [claim.claim for claim in claims]
    assert {(claim.result, claim.required) for claim in once} == {
        ("not measured", "an interval over seeds: two repeats or more")
    }


@pytest.mark.parametrize(
    ("column", "change", "words"),
    [
        ("PDQ", lambda t: t["PDQ"] + 0.01 * (t["arm"] == "crps"), "at least that of every other"),
        ("PDQ_paper", lambda t: t["PDQ_paper"] + 0.004 * (t["arm"] == "nll"), "at least that of every other"),
        ("PDQ", lambda t: t["PDQ"] + 0.02 * (t["arm"] == "nll") * (-1.0) ** t["seed"], "at least that of every other"),
        ("mAP", lambda t: t["mAP"] + 0.006 * (t["arm"] == "energy"), "mAP is at most"),
        ("PDQ_paper", lambda t: t["PDQ_paper"] + 0.033 * (t["arm"] == "l1-constant"), "best constant std"),
        ("log_sigma_correlation", lambda t: t["log_sigma_correlation"] - 0.05, "correlate above"),
        ("occluded_wider", lambda t: t["occluded_wider"] - 0.05, "larger across an occluded edge"),
        ("coverage_90", lambda t: t["coverage_90"] - 0.021, "90% intervals"),
        ("coverage_90", lambda t: t["coverage_90"] + 0.021, "90% intervals"),
    ],
)
def test_a_claim_that_the_data_deny_does_not_hold(
    column: str, change: Callable[[ResultTable], np.ndarray], words: str
) -> None:
    table = synthetic_table()
    judged = TRAINING.judge(ResultTable({**table.columns, column: change(table)}))
    assert {claim.holds for claim in judged if words in claim.claim} == {False}


def test_a_figure_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    with style():
        figure = TRAINING.draw(synthetic_table())
    assert len(figure.axes) == 4
    assert all(axes.get_title(loc="left") for axes in figure.axes)


def all_edges() -> ResultTable:
    """Return every edge of some scenes with optimal predictions."""
    scenes = draw_scenes(30, seed=5)
    rows = []
    for arm in ("nll", *PPDQ_ARMS):
        for row, edge in np.ndindex(*scenes.sigmas.shape):
            nominal, sigma = float(scenes.nominal[row, edge]), float(scenes.sigmas[row, edge])
            rows.append(
                {"arm": arm, "scenes": 30, "scenes_seed": 5, "image": int(scenes.image_rows[row]), "object": row}
                | {"edge": edge, "kind": KINDS[scenes.kinds[row, edge]], "nominal": nominal}
                | {"true": float(scenes.boxes[row, edge]), "sigma": sigma, "mean": nominal, "predicted": sigma}
            )
    return ResultTable.from_rows(rows)


def test_edges_of_scenes_are_judged_and_drawn() -> None:
    table = all_edges()
    assert len(TRAINING_SCENES.judge(table)) == 4
    assert all(claim.holds for claim in TRAINING_SCENES.judge(table))
    denied = ResultTable({**table.columns, "predicted": 1 / table["sigma"]})
    assert not any(claim.holds for claim in TRAINING_SCENES.judge(denied))
    pytest.importorskip("matplotlib")
    with style():
        figure = TRAINING_SCENES.draw(table)
    assert len(figure.axes) == 4 + 3
    assert all(axes.get_title(loc="left") for axes in figure.axes)


def test_the_tables_of_the_page_are_those_of_the_command() -> None:
    rows = read_rows(ROOT / "docs" / "figures" / "training" / "training.csv")
    assert {row["arm"] for row in rows} == {arm.name for arm in ARMS}
    assert len(seed_table(rows).splitlines()) == 2 + len(rows)
    page = (ROOT / "docs" / "training-study.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]
    shown = [line[1:] for line in cells]
    for line in arm_table(rows).splitlines()[2:]:
        assert [cell.strip() for cell in line.split("|")[2:-1]] in shown
    claims = TRAINING.judge(read_table(ROOT / "docs" / "figures" / "training" / "training.csv"))
    assert len(claim_list(claims).splitlines()) == len(claims) == 12
    for claim in claims:
        numbers = re.findall(r"[+-]?\d+\.\d+ \[.+?\]", claim.measured)
        for number in numbers if "points" in claim.measured else numbers[:1]:
            assert number in page, claim.claim
    outcomes = [line[-1] for line in cells if line[-1] in ("holds", "fails")]
    for form in (claims[:6], claims[6:]):
        assert outcomes == ["holds" if claim.holds else "fails" for claim in form]


def test_intervals_are_students() -> None:
    found = interval_of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.mean == 3.0
    assert found.high - found.mean == pytest.approx(2.776 * np.sqrt(2.5) / np.sqrt(5), abs=1e-3)
    assert interval_of([1.0]).high == math.inf


def test_points_measured_at_once_keep_their_order_and_are_taken_up_again(tmp_path: Path) -> None:
    points = [{"x": x} for x in range(20)]
    run = Run(threads=4, keep=tmp_path)

    def fails(x: int) -> dict[str, int]:
        if x == 7:
            raise ValueError("no seven")
        return {"y": x}

    with pytest.raises(ValueError, match="no seven"):
        Run(threads=1, keep=tmp_path).table("some", points, fails, at_once=True)
    rest: list[int] = []
    table = run.table("some", points, lambda x: rest.append(x) or {"y": x}, at_once=True)
    assert sorted(rest) == list(range(7, 20))
    assert table["y"].tolist() == list(range(20))


@pytest.mark.parametrize("name", ["training", "training-scenes"])
def test_without_torch_one_line_says_how_to_get_it(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SystemExit) as stopped:
        main(["experiment", "run", name, "--out", str(tmp_path / "out")])
    streams = capsys.readouterr()
    assert stopped.value.code == 1
    assert f"experiment {name} needs torch" in " ".join(streams.err.split())
    assert "'probox[torch]'" in streams.err
    assert "Traceback" not in streams.err
    assert not (tmp_path / "out").exists()


def test_an_unknown_arm_lists_the_known_ones() -> None:
    from probox import InputError

    with pytest.raises(InputError, match="choose from l1, l1-constant"):
        find_arm("nonsense")
    assert dataclasses.asdict(find_arm("ppdq-plain"))["options"] == {"form": "plain"}
