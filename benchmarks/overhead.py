"""Overhead of calls: tiny tables in memory, and the whole process for a tiny file.

    python -m benchmarks.overhead
    python -m benchmarks.overhead --against OTHER/bin/python

A tiny set is five images with six boxes without covariance. Calls are timed in a process per interpreter; processes
alternate, so that other load on the machine affects all of them, and the table has the minimum of all rounds.
`--against` adds the probox of another environment, for example an older version.

`probox evaluate` is timed as a whole, in wall time and in processor time, which other load affects less. Beside it is
the minimum of every command: an interpreter that loads NumPy and click. The last lines are ratios to it, of minima and
of medians. Editable installs find their modules more slowly, and so does an interpreter that may not write bytecode
(PYTHONDONTWRITEBYTECODE): compare installs without `-e`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.child import Child

REPEATS = 50
"""Calls per round; the minimum counts."""

RUN = "import sys; from probox.cli import main; sys.exit(main())"
LEAST = "import numpy, click"
LEAST_NAME, TEXT, JSON = "the least: Python, NumPy, click", "probox evaluate", "probox evaluate --json"
PROCESSOR = ", processor time"

Tables = tuple[Any, Any]


def tiny_tables() -> Tables:
    """Return five images with six objects of three classes, all of them detected."""
    import numpy as np

    import probox

    rng = np.random.default_rng(0)
    classes, images = ["cup", "dog", "cat"], [1, 1, 2, 3, 4, 5]
    low = rng.uniform(0, 200, (6, 2)).round()
    boxes = np.concatenate([low, low + rng.uniform(20, 80, (6, 2)).round()], axis=1)
    sizes = dict.fromkeys(range(1, 6), (320, 320))
    truth = probox.GroundTruth.from_boxes(classes, sizes, images, boxes, [0, 1, 2, 0, 1, 2])
    moved = boxes + rng.integers(-2, 3, (6, 4))
    scores = rng.uniform(0.5, 0.9, 6)
    found = probox.Detections.from_scores(moved, scores, [0, 1, 2, 0, 1, 1], classes=classes, image_ids=images)
    return truth, found


def calls(tables: Tables) -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Return the timed calls by name: a function that prepares a call, which is not timed, and the call."""
    import probox

    truth, found = tables

    def nothing() -> None:
        return None

    def evaluated() -> Any:
        return probox.evaluate(truth, found)

    return {
        "evaluate(truth, found)": (nothing, lambda _: probox.evaluate(truth, found)),
        'evaluate(truth, found, measures="pdq")': (nothing, lambda _: probox.evaluate(truth, found, measures="pdq")),
        "summary() after it": (evaluated, lambda result: result.summary()),
        'summary() after it, measures="pdq"': (
            lambda: probox.evaluate(truth, found, measures="pdq"),
            lambda result: result.summary(),
        ),
    }


def worker() -> None:
    """Time every call once for every line on standard input, and print the seconds."""
    timed = calls(tiny_tables())
    print("ready", flush=True)
    for _ in sys.stdin:
        least = dict.fromkeys(timed, float("inf"))
        for name, (prepare, call) in timed.items():
            for _ in range(REPEATS):
                given = prepare()
                started = time.perf_counter()
                call(given)
                least[name] = min(least[name], time.perf_counter() - started)
        print(json.dumps(least), flush=True)


class Contender:
    """One interpreter: a process for calls, and commands that run in processes of their own."""

    def __init__(self, python: str, folder: Path) -> None:
        self.python = python
        self.folder = folder
        self._child = Child(python, ["-m", "benchmarks.overhead", "--worker"])
        self.seconds: dict[str, list[float]] = {}

    def run(self) -> None:
        """Time everything once, and keep the minimum."""
        for name, seconds in self._child.ask().items():
            self._keep(name, seconds)
        files = [str(self.folder / name) for name in ("truth.json", "found.json")]
        self._keep_process(TEXT, ["-c", RUN, "evaluate", *files])
        self._keep_process(JSON, ["-c", RUN, "evaluate", "--json", *files])
        self._keep_process(LEAST_NAME, ["-c", LEAST])

    def _keep_process(self, name: str, arguments: Sequence[str]) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        # In a separate folder: `-c` would find packages with the same names in this one.
        command = [self.python, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)
        self._keep(name, time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self._keep(name + PROCESSOR, used)

    def _keep(self, name: str, seconds: float) -> None:
        self.seconds.setdefault(name, []).append(seconds)

    @property
    def least(self) -> dict[str, float]:
        """The minimum of every task."""
        return {name: min(seconds) for name, seconds in self.seconds.items()}

    def close(self) -> None:
        """End the process."""
        self._child.close()


def write_files(folder: Path) -> None:
    """Write the tiny set as COCO files."""
    truth, found = tiny_tables()
    categories = [{"id": row + 1, "name": name} for row, name in enumerate(truth.classes)]
    images = [{"id": int(own), "width": 320, "height": 320, "file_name": f"{own}.jpg"} for own in truth.image_ids]

    def entries(table: Any, image_ids: Any) -> list[dict[str, Any]]:
        boxes = [[*box[:2], box[2] - box[0], box[3] - box[1]] for box in table.boxes.tolist()]
        rows = zip(image_ids.tolist(), table.labels.tolist(), boxes, strict=True)
        return [{"image_id": image, "category_id": label + 1, "bbox": box} for image, label, box in rows]

    annotations = [
        {**entry, "id": row + 1, "area": entry["bbox"][2] * entry["bbox"][3], "iscrowd": 0}
        for row, entry in enumerate(entries(truth, truth.image_ids[truth.image_rows]))
    ]
    results = [
        {**entry, "score": score}
        for entry, score in zip(entries(found, found.image_ids), found.scores.tolist(), strict=True)
    ]
    whole = {"images": images, "categories": categories, "annotations": annotations}
    (folder / "truth.json").write_text(json.dumps(whole), encoding="utf-8")
    (folder / "found.json").write_text(json.dumps(results), encoding="utf-8")


def table_of(columns: dict[str, dict[str, float]]) -> str:
    """Return a Markdown table with a row for each timed task and a column for each interpreter.

    >>> print(table_of({"this": {"a call": 0.0002}, "other": {"a call": 0.001}}))
    | what | this | other |
    | --- | ---: | ---: |
    | a call | 0.200 ms | 1.000 ms |
    """
    lines = [f"| what | {' | '.join(columns)} |", f"| --- |{' ---: |' * len(columns)}"]
    for name in next(iter(columns.values())):
        cells = [f"{1e3 * least[name]:.3f} ms" for least in columns.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def ratios_of(who: str, seconds: dict[str, list[float]]) -> list[str]:
    """Return a line for each command and time: its ratio to the least command, of minima and of medians.

    >>> ratios_of("this", {TEXT: [0.3, 0.5], JSON: [0.3, 0.3], LEAST_NAME: [0.2, 0.2]})[0]
    'this: probox evaluate takes 1.50 times the least (minima), 2.00 times (medians)'
    """
    lines = []
    for name in (TEXT, JSON, TEXT + PROCESSOR, JSON + PROCESSOR):
        least = seconds.get(LEAST_NAME + (PROCESSOR if name.endswith(PROCESSOR) else ""))
        if name in seconds and least is not None:
            low, middle = (of(seconds[name]) / of(least) for of in (min, statistics.median))
            lines.append(f"{who}: {name} takes {low:.2f} times the least (minima), {middle:.2f} times (medians)")
    return lines


def main() -> None:
    """Print the table, and ratios of commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="PYTHON", help="another interpreter with probox to compare with")
    parser.add_argument("--rounds", type=int, default=10, help="number of rounds (default 10)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        worker()
        return
    pythons = {"this": sys.executable} | ({"other": given.against} if given.against else {})
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name))
        contenders = {who: Contender(os.path.abspath(python), Path(name)) for who, python in pythons.items()}
        for _ in range(given.rounds):
            for contender in contenders.values():
                contender.run()
        for contender in contenders.values():
            contender.close()
    print(table_of({who: contender.least for who, contender in contenders.items()}) + "\n")
    for who, contender in contenders.items():
        print(*ratios_of(who, contender.seconds), sep="\n")


if __name__ == "__main__":
    main()
