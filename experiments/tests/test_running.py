"""A run that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import probox_experiments as experiments
from probox_experiments import ResultTable, Run


class Counting:
    """Measures points, counts them, and stops at one."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at = stop_at
        self.seen: list[int] = []

    def __call__(self, x: int) -> dict[str, float]:
        if x == self.stop_at:
            raise KeyboardInterrupt
        self.seen.append(x)
        return {"PDQ": 0.1 * x, "PDQ_paper": float("nan")}


POINTS = [{"x": x} for x in range(5)]


def test_finished_points_are_not_measured_again(tmp_path: Path) -> None:
    first = Counting(stop_at=3)
    with pytest.raises(KeyboardInterrupt):
        Run(keep=tmp_path).table("try", POINTS, first, seed=0)
    assert first.seen == [0, 1, 2]
    second = Counting()
    table = Run(keep=tmp_path).table("try", POINTS, second, seed=0)
    assert second.seen == [3, 4]
    whole = Run().table("try", POINTS, Counting(), seed=0)
    assert table.to_csv() == whole.to_csv()


@pytest.mark.parametrize("damage", [lambda lines: [*lines[:2], b"\0" * 20 + b"\n", *lines[3:]],
                                    lambda lines: [*lines[:2], lines[2][:-10]]])  # fmt: skip
def test_a_damaged_line_or_one_without_an_end_is_measured_again(
    tmp_path: Path, damage: Callable[[list[bytes]], list[bytes]]
) -> None:
    Run(keep=tmp_path).table("try", POINTS[:4], Counting())
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(b"".join(damage(kept.read_bytes().splitlines(keepends=True))))
    again = Counting()
    table = Run(keep=tmp_path).table("try", POINTS, again)
    assert again.seen == [1, 2, 3, 4]
    assert table["PDQ"].tolist() == [0.1 * x for x in range(5)]
    last = Counting()
    Run(keep=tmp_path).table("try", POINTS, last)
    assert last.seen == []


def test_other_circumstances_are_kept_apart(tmp_path: Path) -> None:
    Run(keep=tmp_path).table("try", POINTS, Counting(), seed=0)
    other = Counting()
    Run(keep=tmp_path).table("try", POINTS, other, seed=1)
    assert other.seen == list(range(5))
    back = Counting()
    Run(keep=tmp_path).table("try", POINTS, back, seed=0)
    assert back.seen == []


def test_other_presets_constants_and_code_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured_by(**how: Any) -> int:
        """Return how many points were not there yet."""
        counting = Counting()
        Run(keep=tmp_path, **how).table("try", POINTS, counting)
        return len(counting.seen)

    assert measured_by() == 5
    assert measured_by(presets=["paper"]) == 5
    assert measured_by(presets=["paper"]) == 0
    assert measured_by(changes={"epsilon": 1e-10}) == 5
    assert measured_by(changes={"epsilon": 1e-11}) == 5
    assert measured_by(changes={"epsilon": 1e-10}) == 0
    monkeypatch.setattr("probox_experiments.running.code_digest", lambda: "changed")
    assert measured_by() == 5
    monkeypatch.setattr("probox_experiments.running.__version__", "99")
    assert measured_by() == 5
    assert measured_by() == 0


def test_a_wrong_preset_or_constant_is_told_at_once() -> None:
    with pytest.raises(ValueError, match="did you mean paper"):
        Run(presets=["papers"])
    with pytest.raises(ValueError, match="epsilon"):
        Run(changes={"epsilon": 2.0})


def test_the_digest_is_of_the_packages_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from probox_experiments import running as provenance

    real = provenance.code_digest()
    assert real == provenance.code_digest.__wrapped__()
    read = Path.read_bytes
    touched = Path(provenance.__file__)
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + (b"#" if path == touched else b""))
    assert provenance.code_digest.__wrapped__() != real


@pytest.mark.parametrize("at_once", [False, True])
def test_a_point_that_is_asked_for_twice_is_measured_once(at_once: bool) -> None:
    asked: list[float] = []

    def point(x: float) -> dict[str, float]:
        asked.append(x)
        return {"PDQ": 10 * x}

    table = Run(threads=2).table("doubled", [{"x": x} for x in (1.0, 1.0, 2.0, 3.0, 2.0)], point, at_once=at_once)
    assert sorted(asked) == [1.0, 2.0, 3.0]
    assert table["PDQ"].tolist() == [10.0, 10.0, 20.0, 30.0, 20.0]


def test_progress_counts_points() -> None:
    told: list[tuple[int, int]] = []
    Run(progress=lambda done, total: told.append((done, total))).table("try", POINTS, Counting())
    assert told == [(done, 5) for done in range(6)]


def test_an_experiment_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import probox_experiments.running as running

    real, calls = running.summary_of, []

    def stopping(*args: Any, **options: Any) -> dict[str, float]:
        calls.append(1)
        if len(calls) == 5:  # two presets each
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(running, "summary_of", stopping)
    with pytest.raises(KeyboardInterrupt):
        experiments.duplicates(times=(1, 2, 3, 4), run=Run(keep=tmp_path))
    table = experiments.duplicates(times=(1, 2, 3, 4), run=Run(keep=tmp_path))
    assert len(calls) == 9
    assert table["PDQ"].tolist() == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    (kept,) = tmp_path.iterdir()
    assert json.loads(kept.read_text().splitlines()[0])["experiment"] == "duplicates"


def test_tables() -> None:
    table = ResultTable.from_rows(
        [{"x": 1, "repeat": 0, "PDQ": 0.5}, {"x": 1, "repeat": 1, "PDQ": 0.7}], ["x", "repeat"]
    )
    assert table.to_csv() == "x,repeat,PDQ\n1,0,0.5\n1,1,0.7\n"
    assert list(table.mean_over("repeat").rows()) == [{"x": 1, "PDQ": 0.6}]
    assert len(ResultTable({})) == 0
    with pytest.raises(ValueError, match="equal length"):
        ResultTable({"a": [1], "b": [1, 2]})
