"""COCO's twelve numbers: time and memory of probox, pycocotools, faster-coco-eval and hotcoco.

    pip install probox pycocotools faster-coco-eval hotcoco
    python -m benchmarks.boxes --truth instances_val2017.json --detections results.json

Every contender runs in a separate process, and contenders alternate, so that other load on the machine affects all of
them. All read the same two uncompressed JSON files: ground truth (restricted to `--images` if given) and results.
Importing is not timed. The table has the median (minimum and maximum), and the largest difference from pycocotools in
any of the twelve metrics.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
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
    "hotcoco": hotcoco,
    "faster-coco-eval": faster_coco_eval,
    "pycocotools": pycocotools,
}


def run_contender(name: str, truth_file: str, detections_file: str) -> dict[str, Any]:
    """Load and score once, in this process."""
    load, score = CONTENDERS[name]()
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        start = time.perf_counter()
        loaded = load(truth_file, detections_file)
        middle = time.perf_counter()
        numbers = score(loaded)
        end = time.perf_counter()
    return {
        "load": middle - start,
        "score": end - middle,
        "memory": peak_memory(),
        "numbers": numbers,
    }


def prepare(truth: Path, detections: Path, images: Path | None, folder: Path) -> tuple[str, str, str]:
    """Write plain JSON files that every contender can read; return their paths and a line about them."""
    data, results = read_json(truth), read_json(detections)
    if images is not None:
        wanted = set(read_json(images))
        data["images"] = [image for image in data["images"] if image["id"] in wanted]
        data["annotations"] = [row for row in data["annotations"] if row["image_id"] in wanted]
    paths = folder / "truth.json", folder / "detections.json"
    for path, content in zip(paths, (data, results), strict=True):
        path.write_text(json.dumps(content))
    about = f"{len(data['images'])} images, {len(data['annotations'])} objects, {len(results)} detections"
    return str(paths[0]), str(paths[1]), about


def read_json(path: Path) -> Any:
    """Return the content of a ``.json`` or ``.json.gz`` file."""
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


def compare(names: list[str], truth_file: str, detections_file: str, repeats: int) -> dict[str, list[dict[str, Any]]]:
    """Run all contenders in turn, `repeats` times round."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for turn in range(repeats):
        for name in names:
            command = [sys.executable, "-m", "benchmarks.boxes", "--one", name]
            command += ["--truth", truth_file, "--detections", detections_file]
            process = subprocess.run(command, capture_output=True, text=True)
            if process.returncode:
                sys.exit(f"{name} failed:\n{process.stderr}")
            runs[name].append(json.loads(process.stdout.splitlines()[-1]))
            print(f"round {turn + 1} of {repeats}: {name}", file=sys.stderr)
    return runs


def table(runs: dict[str, list[dict[str, Any]]]) -> str:
    """Return the comparison as a Markdown table."""
    lines = [
        "| tool | load, s | score, s | both, s | both, times probox | peak memory, MB | mAP | largest difference |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]

    def median(name: str, value: Callable[[dict[str, Any]], float]) -> float:
        return statistics.median(value(run) for run in runs[name])

    def both(run: dict[str, Any]) -> float:
        return float(run["load"] + run["score"])

    def spread(name: str, value: Callable[[dict[str, Any]], float]) -> str:
        values = [value(run) for run in runs[name]]
        return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"

    for name, rows in runs.items():
        ratio = f"{median(name, both) / median('probox', both):.1f}" if "probox" in runs else ""
        numbers, difference = rows[0]["numbers"], ""
        if "pycocotools" in runs:
            reference = runs["pycocotools"][0]["numbers"]
            # pycocotools returns -1 for undefined values; others may return NaN.
            gaps = [0.0 if b == -1 and not a >= 0 else abs(a - b) for a, b in zip(numbers, reference, strict=True)]
            difference = f"{max(gaps):.1e}"
        lines.append(
            f"| {name} | {spread(name, lambda run: run['load'])} | {spread(name, lambda run: run['score'])} "
            f"| {spread(name, both)} | {ratio} | {median(name, lambda run: run['memory']):.0f} "
            f"| {numbers[0]:.4f} | {difference} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Parse, prepare, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", type=Path, required=True, help="COCO ground truth, .json or .json.gz")
    parser.add_argument("--detections", type=Path, required=True, help="COCO results, .json or .json.gz")
    parser.add_argument("--images", type=Path, help="a JSON list of image ids to restrict the ground truth to")
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="default: all, separated by commas")
    parser.add_argument("--one", choices=list(CONTENDERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(run_contender(options.one, str(options.truth), str(options.detections))))
        return
    names = options.contenders.split(",")
    unknown = set(names) - set(CONTENDERS)
    if unknown:
        parser.error(f"unknown contender {sorted(unknown)[0]}; choose among {', '.join(CONTENDERS)}")
    with tempfile.TemporaryDirectory() as folder:
        truth_file, detections_file, about = prepare(options.truth, options.detections, options.images, Path(folder))
        versions = ", ".join(f"{name} {version(name)}" for name in names)
        print(f"{about}; {os.cpu_count()} CPUs; medians of {options.repeats}; {versions}\n")
        print(table(compare(names, truth_file, detections_file, options.repeats)))


if __name__ == "__main__":
    main()
