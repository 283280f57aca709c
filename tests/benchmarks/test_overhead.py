"""What the benchmark of calls times: the same tiny set in memory and in files, and every call does its work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from benchmarks.overhead import LEAST_NAME, PROCESSOR, TEXT, calls, ratios_of, table_of, tiny_tables, write_files

import probox


def test_files_hold_the_tiny_set(tmp_path: Path) -> None:
    write_files(tmp_path)
    truth, found = tiny_tables()
    read = probox.evaluate(tmp_path / "truth.json", tmp_path / "found.json", box_truth=True)
    np.testing.assert_equal(read.summary(), probox.evaluate(truth, found, box_truth=True).summary())
    assert read.tp > 0


def test_every_call_does_its_work() -> None:
    for name, (prepare, call) in calls(tiny_tables()).items():
        got = call(prepare())
        summary = got if isinstance(got, dict) else got.summary()
        assert ("mAP" in summary) == ('"pdq"' not in name)
        assert summary["TP"] > 0


def test_a_row_for_each_call() -> None:
    table = table_of({"this": {"a call": 0.0002}, "other": {"a call": 0.001}})
    assert table.splitlines()[-1] == "| a call | 0.200 ms | 1.000 ms |"


def test_ratios_compare_the_same_kind_of_time() -> None:
    seconds = {TEXT: [0.4, 0.3], LEAST_NAME: [0.2, 0.2], TEXT + PROCESSOR: [0.5], LEAST_NAME + PROCESSOR: [0.5]}
    assert ratios_of("this", seconds) == [
        "this: probox evaluate takes 1.50 times the least (minima), 1.75 times (medians)",
        "this: probox evaluate, processor time takes 1.00 times the least (minima), 1.00 times (medians)",
    ]
