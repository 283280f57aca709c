"""Time of the whole command from files to metrics, and of its parts."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads import jittered
from probox import read_truth

PARTS = ("reading", "masks", "kernel", "assignment", "box measures", "writing")


def start_to_finish(data: Path, rounds: int) -> list[dict[str, Any]]:
    """Time `probox evaluate` on files with 2 threads, print a table, and return it."""
    coco = data / "coco"
    truth_file = coco / "val2017_boxes.json"
    truth = read_truth(truth_file)
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs: list[tuple[str, Path, Path]] = []
        for kind in ("plain", "full"):
            path = folder / f"{kind}.json"
            write_results(path, truth, kind)
            jobs.append((f"val2017 boxes, one {kind} box per object", truth_file, path))
        masks = coco / "val2017_masks_206.json"
        jobs.append(
            ("206 photos with masks, NanoDet's variances", masks, coco / "results" / "nanodet_m_416_206.rvc1.json.gz")
        )
        for title, there, found in jobs:
            runs = [run_command(there, found) for _ in range(rounds)]
            seconds, megabytes = min(run[0] for run in runs), max(run[1] for run in runs)
            parts = split(there, found)
            results.append({"files": title, "seconds": seconds, "megabytes": megabytes, "parts": parts})
    print("\n| start to finish, 2 threads | seconds | peak MB | " + " | ".join(PARTS) + " |")
    print("| --- | ---: | ---: | " + " | ".join("---:" for _ in PARTS) + " |")
    for result in results:
        shares = " | ".join(f"{result['parts'][part]:.3f}" for part in PARTS)
        print(f"| {result['files']} | {result['seconds']:.2f} | {result['megabytes']:.0f} | {shares} |")
    return results


def write_results(path: Path, truth: Any, kind: str) -> None:
    """Write simulated detections as COCO results, as a detector would."""
    found = jittered(truth, kind)
    entries = []
    for row in range(len(found)):
        x1, y1, x2, y2 = found.boxes[row].round(3).tolist()
        entry: dict[str, Any] = {
            "image_id": int(found.image_ids[row]),
            "category_id": int(truth.dataset.category_ids[found.labels[row]]),
            "bbox": [x1, y1, x2 - x1, y2 - y1],
            "score": round(float(found.scores[row]), 5),
        }
        if found.covariances is not None:
            entry["covars"] = np.round(found.covariances[row], 4).tolist()
        entries.append(entry)
    path.write_text(json.dumps(entries))


def run_command(truth: Path, found: Path) -> tuple[float, float]:
    """Return the seconds and peak megabytes of one `probox evaluate`, start of the interpreter included."""
    # The command ends by raising SystemExit; only its own process knows its peak memory.
    code = (
        "import atexit, sys; from benchmarks.memory import peak_memory; "
        "atexit.register(lambda: print(peak_memory(), file=sys.stderr)); from probox.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "evaluate", str(truth), str(found), "--threads", "2", "--json"]
    started = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(done.stderr)
    return seconds, float(done.stderr.split()[-1])


def split(truth_file: Path, found_file: Path) -> dict[str, float]:
    """Return the seconds of each part of an evaluation, in this process."""
    import probox
    from probox import _core, formats

    spent = dict.fromkeys(PARTS, 0.0)

    def timed(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[part] += time.perf_counter() - started

        return call

    originals = _core.rasterise, _core.score_images, _core.assign_pairs
    _core.rasterise = timed("masks", originals[0])
    _core.score_images = timed("kernel", originals[1])
    _core.assign_pairs = timed("assignment", originals[2])
    try:
        truth = timed("reading", formats.read_truth)(truth_file)
        found = timed("reading", formats.read_detections)(found_file, truth)
        spent["reading"] -= spent["masks"]
        result = probox.evaluate(truth, found, threads=2)
        timed("box measures", lambda: (result.average_precision, result.lrp))()
        with tempfile.TemporaryDirectory() as folder:
            timed("writing", result.save)(folder)
    finally:
        _core.rasterise, _core.score_images, _core.assign_pairs = originals
    return spent
