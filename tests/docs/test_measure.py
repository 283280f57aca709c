"""The tables of docs/measure.md about presets and thresholds have computed values."""

from __future__ import annotations

from pathlib import Path

from examples import departures

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "measure.md").read_text(encoding="utf-8")


def test_every_row_of_the_tables_is_computed() -> None:
    section = TEXT.split("## Differences from the paper\n")[1].split("\n## ")[0]
    tables = [part.splitlines() for part in section.split("\n\n") if part.startswith("| ")]
    rows = [row for table in tables for row in table[2:]]  # without heading and rule
    assert (len(tables), len(rows)) == (2, 8)
    computed = set(departures.rows())
    assert [row for row in rows if row not in computed] == []


def test_synthetic_images() -> None:
    summaries = dict(departures.of_reference())
    values = {name: f"{100 * summary['PDQ']:.2f}%" for name, summary in summaries.items()}
    reference = summaries["`reference`"]
    objects, detections = (reference["TP"] + reference[key] for key in ("FN", "FP"))
    text = " ".join(TEXT.split())
    assert f"with {objects:.0f} objects and {detections:.0f} detections" in text
    assert f"{values['`reference`']} under `reference` and {values['none of these: `paper`']} under `paper`" in text
    assert f"without it, PDQ is {values['no probability below 0.0027 is cut']}" in text
