"""COCO's twelve numbers from files: time and memory of probox and of other programs.

    pip install probox pycocotools faster-coco-eval hotcoco ultrafast-pycocotools
    python -m benchmarks.boxes --truth instances_val2017.json --detections results.json
    python -m benchmarks.boxes --regime lvis        # generated files, or `all` regimes of workloads.py

Every contender runs in a separate process, and contenders alternate, so that other load on the machine affects all of
them. All read the same two uncompressed JSON files: ground truth (restricted to `--images` if given) and results.
Importing is not timed. `processor` is the time of all threads. The table has the median (minimum), and the largest
difference from pycocotools, or if it is left out from probox, in any of the twelve metrics. `probox PDQ` computes PDQ
for the same boxes with a standard deviation of a tenth of their size. A contender that fails, or exceeds the limit of
time or memory, is named below.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.memory import peak_memory

Load = Callable[[str, str], Any]
Score = Callable[[Any], list[float]]


def probox() -> tuple[Load, Score]:
    """Read with probox's readers, score with `average_precision`."""
    from probox import average_precision, read_detections, read_truth

    def load(truth_file: str, detections_file: str) -> Any:
        truth = read_truth(truth_file)
        return truth, read_detections(detections_file, truth)

    def score(tables: Any) -> list[float]:
        return list(average_precision(*tables).summary().values())

    return load, score


def probox_pdq() -> tuple[Load, Score]:
    """PDQ of the same boxes with constant variances."""
    import numpy as np

    from probox import evaluate

    load_tables, _ = probox()

    def load(truth_file: str, detections_file: str) -> Any:
        truth, found = load_tables(truth_file, detections_file)
        covariances = np.zeros((len(found), 2, 2, 2))
        covariances[:, :, [0, 1], [0, 1]] = (0.1 * found.extents[:, None] + 1.0) ** 2
        return truth, found.replace(covariances=covariances)

    def score(tables: Any) -> list[float]:
        return [evaluate(*tables, measures=["pdq"]).summary()["PDQ"]]

    return load, score


def ultrafast_pycocotools() -> tuple[Load, Score]:
    """The same interface over C++ and Python."""
    from ultrafast_pycocotools import COCO, COCOeval

    return _coco_style(COCO, COCOeval)


def pycocotools() -> tuple[Load, Score]:
    """The reference."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    return _coco_style(COCO, COCOeval)


def faster_coco_eval() -> tuple[Load, Score]:
    """The same interface over C++."""
    from faster_coco_eval import COCO, COCOeval_faster

    return _coco_style(COCO, COCOeval_faster)


def hotcoco() -> tuple[Load, Score]:
    """The same interface over Rust."""
    from hotcoco import COCO, COCOeval

    return _coco_style(COCO, COCOeval)


def _coco_style(coco: Any, evaluation: Any) -> tuple[Load, Score]:
    def load(truth_file: str, detections_file: str) -> Any:
        truth = coco(truth_file)
        load_results = getattr(truth, "loadRes", None) or truth.load_res
        return truth, load_results(detections_file)

    def score(sides: Any) -> list[float]:
        run = evaluation(*sides, "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
        return [float(value) for value in run.stats[:12]]

    return load, score


CONTENDERS: dict[str, Callable[[], tuple[Load, Score]]] = {
    "probox": probox,
    "ultrafast-pycocotools": ultrafast_pycocotools,
    "hotcoco": hotcoco,
    "faster-coco-eval": faster_coco_eval,
    "pycocotools": pycocotools,
    "probox PDQ": probox_pdq,
}

Run = dict[str, Any]


def run_contender(name: str, truth_file: str, detections_file: str, memory: float) -> Run:
    """Load and score once, in this process, with at most `memory` GB of address space."""
    resource.setrlimit(resource.RLIMIT_AS, (int(memory * 1e9), int(memory * 1e9)))
    load, score = CONTENDERS[name]()
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        start, used = time.perf_counter(), time.process_time()
        loaded = load(truth_file, detections_file)
        middle = time.perf_counter()
        numbers = score(loaded)
        end, processor = time.perf_counter(), time.process_time() - used
    return {
        "load": middle - start,
        "score": end - middle,
        "both": end - start,
        "processor": processor,
        "memory": peak_memory(),
        "numbers": numbers,
    }


def prepare(truth: Path, detections: Path, images: Path | None, folder: Path) -> tuple[str, str]:
    """Write plain JSON files that every contender can read; return their paths."""
    data, results = read_json(truth), read_json(detections)
    if images is not None:
        wanted = set(read_json(images))
        data["images"] = [image for image in data["images"] if image["id"] in wanted]
        data["annotations"] = [row for row in data["annotations"] if row["image_id"] in wanted]
    paths = folder / "truth.json", folder / "detections.json"
    for path, content in zip(paths, (data, results), strict=True):
        path.write_text(json.dumps(content))
    return str(paths[0]), str(paths[1])


def read_json(path: Path) -> Any:
    """Return the content of a ``.json`` or ``.json.gz`` file."""
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def compare(
    names: list[str], truth_file: str, detections_file: str, *, repeats: int, seconds: float, memory: float
) -> tuple[dict[str, list[Run]], list[str]]:
    """Run all contenders in turn, `repeats` times round; return their runs, and why others have none."""
    runs: dict[str, list[Run]] = {name: [] for name in names}
    failures: list[str] = []
    for turn in range(repeats):
        for name in list(runs):
            command = [sys.executable, "-m", "benchmarks.boxes", "--one", name, "--memory", str(memory)]
            command += ["--truth", truth_file, "--detections", detections_file]
            try:
                process = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
                problem = (process.stderr.strip().splitlines() or ["no message"])[-1] if process.returncode else None
            except subprocess.TimeoutExpired:
                problem = f"took more than {seconds:g} s"
            if problem is not None:
                failures.append(f"{name} failed: {problem}")
                del runs[name]
                continue
            runs[name].append(json.loads(process.stdout.splitlines()[-1]))
            print(f"round {turn + 1} of {repeats}: {name}", file=sys.stderr)
    return runs, failures


HEADER = """\
| data | tool | load [s] | score [s] | both [s] | processor [s] | peak memory [MB] | value | max. difference |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def table_rows(data: str, runs: dict[str, list[Run]]) -> list[str]:
    """Return the rows of a Markdown table."""
    reference = runs.get("pycocotools") or runs.get("probox")

    def times(rows: list[Run], name: str) -> str:
        values = [row[name] for row in rows]
        return f"{statistics.median(values):.3f} ({min(values):.3f})"

    lines = []
    for name, rows in runs.items():
        numbers, difference = rows[0]["numbers"], ""
        if reference and len(numbers) == len(reference[0]["numbers"]):
            difference = f"{max(map(_gap, numbers, reference[0]['numbers'])):.1e}"
        cells = [data, name, *(times(rows, key) for key in ("load", "score", "both", "processor"))]
        cells += [f"{statistics.median(row['memory'] for row in rows):.0f}", f"{numbers[0]:.4f}", difference]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _gap(one: float, other: float) -> float:
    """Return the difference of two values; undefined ones are -1 in pycocotools and NaN in others."""
    undefined = [value == -1 or value != value for value in (one, other)]
    return 0.0 if all(undefined) else abs(one - other)


def main() -> None:
    """Parse, prepare, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, help="COCO ground truth, .json or .json.gz")
    parser.add_argument("--detections", type=Path, help="COCO results, .json or .json.gz")
    parser.add_argument("--images", type=Path, help="a JSON list of image ids to restrict the ground truth to")
    parser.add_argument("--regime", nargs="+", default=[], help="generate files: names in workloads.py, or all")
    parser.add_argument("--one", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="default: all, separated by commas")
    parser.add_argument("--seconds", type=float, default=600.0, help="limit per run (default 600)")
    parser.add_argument("--memory", type=float, default=16.0, help="limit of address space in GB (default 16)")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_contender(options.one, str(options.truth), str(options.detections), options.memory)))
        return
    from benchmarks.workloads import REGIMES, write_regime  # imports probox, which other contenders must not load

    names, regimes = options.contenders.split(","), list(REGIMES) if "all" in options.regime else options.regime
    for kind, given, known in (("contender", names, CONTENDERS), ("regime", regimes, REGIMES)):
        if unknown := set(given) - set(known):
            parser.error(f"unknown {kind} {sorted(unknown)[0]}; choose among {', '.join(known)}")
    if not options.regime and not (options.truth and options.detections):
        parser.error("give --truth and --detections, or --regime")
    versions = ", ".join(f"{name} {version(name)}" for name in names if " " not in name)
    print(f"{os.cpu_count()} CPUs; {options.repeats} rounds; {versions}\n")
    print(HEADER)
    limits = {"repeats": options.repeats, "seconds": options.seconds, "memory": options.memory}
    failures: list[str] = []
    for regime in regimes or [None]:
        with tempfile.TemporaryDirectory() as folder:
            if regime is None:
                files = prepare(options.truth, options.detections, options.images, Path(folder))
            else:
                files = str(Path(folder, "truth.json")), str(Path(folder, "detections.json"))
                write_regime(REGIMES[regime], *map(Path, files))
            runs, failed = compare(names, *files, **limits)
        print("\n".join(table_rows(regime or options.detections.name, runs)), flush=True)
        failures += [f"{regime or 'files'}: {failure}" for failure in failed]
    print("\n".join(["", *failures]))


if __name__ == "__main__":
    main()
