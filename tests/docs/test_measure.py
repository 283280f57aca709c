"""What docs/measure.md says about the presets and the paper is what is measured."""

from __future__ import annotations

from pathlib import Path

from examples import departures

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "measure.md").read_text(encoding="utf-8")


def test_every_line_of_the_tables_is_what_is_measured() -> None:
    lines = list(departures.rows())
    assert len(lines) >= 20
    assert [line for line in lines if line not in TEXT.splitlines()] == []
