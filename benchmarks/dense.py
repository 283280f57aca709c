"""Growth of time and memory with the objects and detections of a single image.

    python -m benchmarks.dense
    python -m benchmarks.dense --sizes 100x1000000 1000x1000000 --kinds plain diagonal
    python -m benchmarks.dense --against OTHER/bin/python --sizes 2000x2000 --scene crowded --rounds 3
    python -m benchmarks.dense --sizes 100x100000 --stages evaluate summary per_class diagnose

A size is OBJECTSxDETECTIONS. In the scene `spread` objects are small and the image grows with their number, so the
number of neighbours is about constant. In the scene `crowded` objects of many sizes are in one image of 640 x 480. In
the scene `stacked` all objects have nearly the same box, so that all pairs score. Every measurement is a separate
process; contenders alternate, and times are the minimum of all rounds. Memory is the peak of the process, including the
tables of ground truth and detections.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import peak_memory
from probox import Detections, Evaluation, GroundTruth, evaluate
from probox.support.parallel import threads_at_most

CLASSES = [f"class {number}" for number in range(10)]
KINDS = ("plain", "diagonal", "full")
SCENES = ("spread", "crowded", "stacked")

STAGES: dict[str, Callable[[Evaluation], Any]] = {
    "summary": lambda result: result.summary(),
    "per_class": lambda result: result.per_class(),
    "notes": lambda result: result.notes,
    "diagnose": lambda result: str(result.diagnose()),
}
"""Functions that can be timed after `evaluate`, in this order."""

ROOT = Path(__file__).resolve().parents[1]
RUN = "import sys; from benchmarks.dense import measure; measure(sys.argv[1])"


def main() -> None:
    """Print one line per size, kind and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sizes",
        nargs="+",
        default=["250x250", "500x500", "1000x1000", "2000x2000", "100x10000", "100x100000"],
        help="OBJECTSxDETECTIONS",
    )
    parser.add_argument("--scene", choices=SCENES, default="spread")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["plain", "diagonal"], help="covariances")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--stages", nargs="+", choices=["evaluate", *STAGES], default=["evaluate", "summary"])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=600.0, help="timeout of a measurement in seconds")
    parser.add_argument("--against", metavar="PYTHON", help="another interpreter with probox to compare with")
    options = parser.parse_args()
    contenders = {"this": sys.executable}
    if options.against:
        contenders["other"] = options.against
    stages = [stage for stage in ("evaluate", *STAGES) if stage in options.stages]
    print(f"scene {options.scene}; seconds, the least of {options.rounds}")
    print(f"| objects x detections | boxes | threads | probox | {' | '.join(stages)} | peak MB | pairs | PDQ |")
    print("| --- | --- | ---: | --- |" + " ---: |" * (len(stages) + 3))
    for size in options.sizes:
        for kind in options.kinds:
            for threads in options.threads:
                objects, detections = map(int, size.split("x"))
                case = {
                    "scene": options.scene,
                    "objects": objects,
                    "detections": detections,
                    "kind": kind,
                    "threads": threads,
                    "stages": stages,
                }
                print_case(case, contenders, options.rounds, options.timeout)


def print_case(case: dict[str, Any], contenders: dict[str, str], rounds: int, timeout: float) -> None:
    """Measure one case with each contender in turn, and print their lines."""
    said: dict[str, list[dict[str, Any]]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, python in contenders.items():
            try:
                run = subprocess.run(
                    [python, "-c", RUN, json.dumps(case)], cwd=ROOT, capture_output=True, text=True, timeout=timeout
                )
                said[name].append(json.loads(run.stdout) if run.returncode == 0 else {"failed": last_line(run.stderr)})
            except subprocess.TimeoutExpired:
                said[name].append({"failed": f"timeout after {timeout:.0f} s"})
    for name, runs in said.items():
        cells = [f"{case['objects']:,} x {case['detections']:,}", case["kind"], str(case["threads"]), name]
        done = [run for run in runs if "failed" not in run]
        if done:
            cells += [f"{min(run['seconds'][stage] for run in done):.3g}" for stage in case["stages"]]
            cells += [f"{min(run['peak'] for run in done):.0f}", f"{done[0]['pairs']:,}", f"{100 * done[0]['pdq']:.4f}"]
        else:
            cells.append(runs[0]["failed"])
        print(f"| {' | '.join(cells)} |", flush=True)


def last_line(text: str) -> str:
    """Return the last line of a process's output."""
    return (text.strip().splitlines() or ["failed"])[-1][:100]


def measure(case_text: str) -> None:
    """Measure one case in this process, and print a JSON object."""
    case = json.loads(case_text)
    truth, found = make_scene(case["scene"], case["objects"], case["detections"], case["kind"])
    seconds = {}
    with threads_at_most(case["threads"]):
        started = time.perf_counter()
        result = evaluate(truth, found, threads=case["threads"])
        seconds["evaluate"] = time.perf_counter() - started
        for stage in case["stages"]:
            if stage in STAGES:
                started = time.perf_counter()
                STAGES[stage](result)
                seconds[stage] = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "peak": peak_memory(), "pairs": len(result.pairs), "pdq": result.pdq}))


def make_scene(scene: str, objects: int, detections: int, kind: str) -> tuple[GroundTruth, Detections]:
    """Return the ground truth of one image, and detections of its objects in turn."""
    rng = np.random.default_rng(objects)
    if scene == "spread":
        side = max(64, int(30 * objects**0.5))
        image, extent = np.array([side, side]), rng.uniform(8.0, 40.0, (objects, 2))
    else:
        image = np.array([640, 480])
        extent = np.exp(rng.uniform(np.log(12.0), np.log(300.0), (objects, 2)))
    low = rng.random((objects, 2)) * (image - 1.0 - extent)
    if scene == "stacked":
        low, extent = rng.normal(200.0, 5.0, (objects, 2)), rng.normal(100.0, 5.0, (objects, 2))
    boxes = np.floor(np.concatenate([low, low + extent], axis=1))
    width, height = image.tolist()
    labels = rng.integers(0, len(CLASSES), objects)
    truth = GroundTruth.from_boxes(CLASSES, {1: (width, height)}, np.ones(objects, np.int64), boxes, labels)
    return truth, jittered_boxes(rng, boxes, labels, detections, kind)


def jittered_boxes(
    rng: np.random.Generator, boxes: np.ndarray[Any, Any], labels: np.ndarray[Any, Any], count: int, kind: str
) -> Detections:
    """Return detections of image 1 with errors of about their reported standard deviations, 1 to 4 pixels."""
    source = np.arange(count) % max(len(boxes), 1)
    sigma = rng.uniform(1.0, 4.0, (count, 2, 2))
    corners = boxes[source].reshape(count, 2, 2) + rng.normal(size=(count, 2, 2)) * sigma
    covariances = None
    if kind != "plain":
        covariances = np.zeros((count, 2, 2, 2))
        covariances[..., 0, 0], covariances[..., 1, 1] = sigma[..., 0] ** 2, sigma[..., 1] ** 2
        if kind == "full":
            covariances[..., 0, 1] = rng.uniform(-0.9, 0.9, (count, 2)) * sigma[..., 0] * sigma[..., 1]
            covariances[..., 1, 0] = covariances[..., 0, 1]
    scores = rng.uniform(0.3, 1.0, count).astype(np.float32)
    probs = np.repeat(((1 - scores) / (len(CLASSES) - 1))[:, None], len(CLASSES), axis=1)
    probs[np.arange(count), labels[source]] = scores
    return Detections(
        classes=CLASSES,
        image_ids=np.ones(count, np.int64),
        boxes=np.sort(corners, axis=1).reshape(count, 4),
        covariances=covariances,
        label_probs=probs,
        labels=labels[source],
    )


if __name__ == "__main__":
    main()
