"""Reading large JSON files of detections: seconds and peak memory from the file to a checked table.

    python -m benchmarks.reading --data FOLDER --boxes 500000 --threads 1 2 --against OTHER/bin/python

Files are created once, in a temporary folder, from `FOLDER/coco/val2017_boxes.json`: COCO results with full
covariances, with all digits and rounded; RVC1 with the probabilities of all classes; and the files of `--gzip`,
unchanged. Each reading is a separate process, as in a command. Interpreters and numbers of threads alternate, so that
other load on the machine affects all of them; the table has the minimum of `--rounds`. `processor` is the time of all
threads. `--against` adds the probox of another interpreter.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads import jittered
from probox import Detections, GroundTruth, read_truth
from probox.formats import write_coco_results, write_rvc1

READING = """
import json, os, sys, time
if hasattr(os, "sched_setaffinity"):  # some versions ignore the number of threads
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(sys.argv[3])])
import probox
truth = probox.read_truth(sys.argv[1])
used, started = time.process_time(), time.perf_counter()
found = probox.read_detections(sys.argv[2], truth)
result = {"rows": len(found), "wall": time.perf_counter() - started, "processor": time.process_time() - used}
try:  # not getrusage: it includes the parent process
    lines = open("/proc/self/status").read().splitlines()
    result["peak"] = next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM"))
except OSError:
    result["peak"] = float("nan")
print(json.dumps(result))
"""


def main() -> None:
    """Print one line per file, interpreter and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path, help="the folder with coco/val2017_boxes.json")
    parser.add_argument("--boxes", type=int, default=500_000, help="detections in a file of COCO results")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gzip", type=Path, nargs="*", default=[], help="files of detections to read as they are")
    parser.add_argument("--against", metavar="PYTHON", help="another interpreter, with another probox")
    options = parser.parse_args()
    pythons = {"this": sys.executable} | ({"other": options.against} if options.against else {})
    truth = options.data / "coco" / "val2017_boxes.json"
    print("| file | probox | threads | seconds | processor | MB/s | peak MB |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        made = files_to_read(Path(folder), read_truth(truth), options.boxes)
        for path in [*made, *options.gzip]:
            compare(path, truth, pythons, options.threads, options.rounds)


def files_to_read(folder: Path, truth: GroundTruth, boxes: int) -> list[Path]:
    """Write the files and return their paths."""
    per_image = max(boxes // len(truth.image_ids), 1)
    found = jittered(truth, "full", per_image)
    digits, rounded, rvc1 = folder / "full.coco.json", folder / "rounded.coco.json", folder / "all.rvc1.json"
    write_coco_results(digits, found, truth)
    rounded.write_text(json.dumps([_entry(found, truth, row) for row in range(len(found))]))
    some = found.select(np.arange(len(found) * 2 // 5))  # about as large as the first
    rng = np.random.default_rng(1)
    probs = rng.exponential(size=some.label_probs.shape) ** 3
    probs /= probs.sum(axis=1, keepdims=True) * 1.0001
    write_rvc1(rvc1, some.replace(label_probs=probs.astype(np.float32), labels=None, scores=None), truth)
    return [digits, rounded, rvc1]


def _entry(found: Detections, truth: GroundTruth, row: int) -> dict[str, Any]:
    """Return a detection as an entry of COCO results."""
    x1, y1, x2, y2 = found.boxes[row].round(3).tolist()
    assert found.covariances is not None
    return {
        "image_id": int(found.image_ids[row]),
        "category_id": int(truth.dataset.category_ids[found.labels[row]]),
        "bbox": [x1, y1, round(x2 - x1, 3), round(y2 - y1, 3)],
        "score": round(float(found.scores[row]), 5),
        "covars": found.covariances[row].round(4).tolist(),
    }


def compare(path: Path, truth: Path, pythons: dict[str, str], threads: list[int], rounds: int) -> None:
    """Print the lines of one file."""
    runs: dict[tuple[str, int], list[dict[str, float]]] = {}
    for _ in range(rounds):
        for name, python in pythons.items():
            for count in threads:
                runs.setdefault((name, count), []).append(read_once(python, truth, path, count))
    size = path.stat().st_size / 1e6
    for (name, count), own in runs.items():
        least = {key: min(run[key] for run in own) for key in ("rows", "wall", "processor")}
        print(
            f"| {path.name} ({least['rows']:,.0f} detections, {size:.0f} MB) | {name} | {count} | {least['wall']:.3f} "
            f"| {least['processor']:.3f} | {size / least['wall']:.0f} | {max(run['peak'] for run in own):.0f} |",
            flush=True,
        )


def read_once(python: str, truth: Path, path: Path, threads: int) -> dict[str, float]:
    """Return the times and the peak of one process."""
    command = [python, "-c", READING, str(truth), str(path), str(threads)]
    # In another folder, or the probox of this folder could be imported instead of the interpreter's own.
    done = subprocess.run(command, capture_output=True, text=True, cwd=tempfile.gettempdir())
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout))


if __name__ == "__main__":
    main()
