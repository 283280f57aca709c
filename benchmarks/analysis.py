"""Time of diagnoses, confidence intervals and comparisons on real data.

    python -m benchmarks.analysis --data FOLDER

FOLDER contains `coco/`: boxes of val2017, masks of 206 photos and results of detectors. Every task runs `--repeats`
times; the table has minimum and median. Reading files and evaluating are not timed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import probox

Task = tuple[str, Callable[[], object]]


def tasks(coco: Path, threads: int) -> Iterator[Task]:
    """Yield the timed tasks by name."""
    truth = probox.read_truth(coco / "val2017_masks_206.json")
    found = probox.read_detections(coco / "results" / "nanodet_m_416_206.rvc1.json.gz", truth)
    nanodet = probox.evaluate(truth, found)
    yield f"diagnose NanoDet, 206 photos, {len(found):,} detections", lambda: nanodet.diagnose(threads=threads)
    boxes = probox.read_truth(coco / "val2017_boxes.json")
    for name in ("ssdlite_mbv2", "yolox_nano", "nanodet_m_416"):
        results = probox.read_detections(coco / "results" / f"{name}_2881.json.gz", boxes)
        few = probox.evaluate(boxes, results, convention=probox.Convention(label_threshold=0.3), measures=("pdq",))
        many = probox.evaluate(boxes, results, measures=("map", "lrp"))
        size = f"{name}, {len(boxes.image_ids):,} images"
        yield f"1,000 replicates of PDQ, {size}", lambda result=few: result.intervals(["pdq"])
        for measure in ("map", "lrp"):
            yield (
                f"1,000 replicates of {measure}, {size}, {len(many.detections):,} boxes",
                lambda result=many, measure=measure: result.intervals([measure]),
            )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with coco/")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    print("| task | least | median |\n| --- | ---: | ---: |")
    for name, run in tasks(given.data / "coco", given.threads):
        seconds = []
        for _ in range(given.repeats):
            started = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - started)
        print(f"| {name} | {min(seconds):.2f} s | {statistics.median(seconds):.2f} s |", flush=True)


if __name__ == "__main__":
    main()
