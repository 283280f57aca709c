"""Growth of time and memory with the number of detections, without keeping tables of results.

    pip install 'probox[parquet]'
    python -m benchmarks.growth
    python -m benchmarks.growth --sizes 100000 1000000 --keep summary
    python -m benchmarks.growth --columns 100000000
    python -m benchmarks.growth --merge 64

For each size, simulated detections are written as Parquet sets in advance, and `probox evaluate --keep matches` runs in
a separate process: wall time of the process, and its peak memory. The exponent is the slope of the logarithm of time
over that of size: 1 if twice as many detections take twice as long.

`--columns N` creates the kept columns of N detections without an evaluation, and reports their memory and the peak
memory of computing mAP and LRP from them. `--merge N` times merging N parts of 200,000 detections, and their conversion
to and from bytes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import forget_peak, peak_memory
from benchmarks.workloads import PER_IMAGE, jittered, simulated_truth
from probox import evaluate, from_bytes, merge, write_parquet
from probox.evaluation.box_columns import BoxColumns
from probox.measures.boxes.matching import IOU_THRESHOLDS, SIZES

SHARD = 200_000
"""Detections per shard."""

EVALUATE = """
import sys
from benchmarks.memory import peak_memory
from probox.cli import main
try:
    main(sys.argv[1:])
finally:
    print(peak_memory(), file=sys.stderr)
"""


def main() -> None:
    """Print one line per size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 300_000, 1_000_000, 3_000_000, 10_000_000])
    parser.add_argument("--keep", default="matches", help="summary, matches or all")
    parser.add_argument("--covariances", default="diagonal", choices=["diagonal", "full"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--columns", type=int, help="create the columns of this many detections instead")
    parser.add_argument("--merge", type=int, help="merge this many parts of 200,000 detections instead")
    options = parser.parse_args()
    if options.columns:
        measure_columns(options.columns)
        return
    if options.merge:
        for keep in ("summary", "matches", "all"):
            measure_merge(keep, options.merge if keep != "all" else min(options.merge, 8))
        return
    print(f"keep {options.keep}, {options.covariances} covariances, {options.threads} threads")
    print("| detections | images | MB of files | seconds | per million | peak MB | PDQ |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    seconds = [measure_size(size, options) for size in options.sizes]
    if len(seconds) > 1:
        slope = np.polyfit(np.log(options.sizes), np.log(seconds), 1)[0]
        ends = np.log(seconds[-1] / seconds[0]) / np.log(options.sizes[-1] / options.sizes[0])
        print(f"exponent {slope:.3f} by least squares, {ends:.3f} from the first size to the last")


def measure_size(size: int, options: argparse.Namespace) -> float:
    """Print the line of one size; return the seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sets(folder, size, options.covariances)
        files = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
        command = [sys.executable, "-c", EVALUATE, "evaluate", str(folder / "truth"), str(folder / "found")]
        command += ["--keep", options.keep, "--threads", str(options.threads), "--json"]
        started = time.perf_counter()
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - started
    said = json.loads(run.stdout)
    counts = said["counts"]
    print(
        f"| {counts['detections']:,} | {counts['images']:,} | {files / 1e6:.0f} | {seconds:.1f} "
        f"| {seconds / counts['detections'] * 1e6:.1f} | {float(run.stderr.split()[-1]):.0f} "
        f"| {100 * said['summary']['PDQ']:.2f} |",
        flush=True,
    )
    return seconds


def write_sets(folder: Path, size: int, covariances: str) -> None:
    """Write ground truth and detections, one shard at a time."""
    for name in ("truth", "found"):
        (folder / name).mkdir()
    images, at_a_time = max(1, size // PER_IMAGE), SHARD // PER_IMAGE
    for number, first in enumerate(range(1, images + 1, at_a_time)):
        truth = simulated_truth(min(at_a_time, images + 1 - first), seed=number, first=first)
        write_parquet(folder / "truth" / f"part-{number:05}.parquet", truth)
        write_parquet(folder / "found" / f"part-{number:05}.parquet", jittered(truth, covariances, PER_IMAGE))


def measure_columns(size: int) -> None:
    """Print the memory of the columns of detections, and time and memory of computing mAP and LRP from them."""
    before = peak_memory()
    columns = made_columns(size)
    made = "" if forget_peak() else ", including creation of the columns"
    started = time.perf_counter()
    classes = tuple(f"class {number}" for number in range(80))
    precision = columns.average_precision(classes).map
    lrp = columns.lrp(classes).molrp
    print(
        f"{size:,} detections, the largest class {np.bincount(columns.labels).max():,}: "
        f"{columns.bytes / 1e6:.0f} MB kept, {columns.bytes / size:.1f} bytes each; mAP and LRP "
        f"({precision:.4f}, {lrp:.4f}) in {time.perf_counter() - started:.0f} s, at most {peak_memory():.0f} MB{made}; "
        f"{before:.0f} MB at start"
    )


def measure_merge(keep: Any, count: int) -> None:
    """Print the time to merge parts with different images, and to convert them to and from bytes."""
    truth = simulated_truth(SHARD // PER_IMAGE)
    part = evaluate(truth, jittered(truth, "diagonal", PER_IMAGE), keep=keep)
    last = int(truth.image_ids[-1])
    parts = [
        dataclasses.replace(part, dataset=part.dataset.replace(image_ids=part.dataset.image_ids + last * number))
        for number in np.random.default_rng(0).permutation(count)
    ]
    started = time.perf_counter()
    data = [one.to_bytes() for one in parts]
    packed = time.perf_counter()
    parts = [from_bytes(one) for one in data]
    unpacked = time.perf_counter()
    whole = merge(parts)
    merged = time.perf_counter()
    size = whole.counts["detections"]
    seconds = packed - started, unpacked - packed, merged - unpacked
    pack, unpack, together = (1e9 * one / size for one in seconds)
    print(
        f"keep {keep}: {count} parts of {size // count:,} detections in {len(part.dataset):,} images; "
        f"for each detection {sum(map(len, data)) / size:.1f} bytes, {pack:.0f} ns to write, "
        f"{unpack:.0f} ns to read and check, {together:.0f} ns to merge"
    )


def made_columns(size: int) -> BoxColumns:
    """Return columns similar to COCO's: 80 classes, a third of all in the largest, one in ten matched."""
    rng = np.random.default_rng(0)
    all_overlaps = 2 ** len(IOU_THRESHOLDS) - 1
    right = np.array([2**bits - 1 for bits in range(1, len(IOU_THRESHOLDS) + 1)], np.uint16)
    matched = np.concatenate([[0], right]).astype(np.uint16)
    # Matched at some thresholds among all and among medium objects; else ignored.
    patterns = np.zeros((len(matched), 2 * len(SIZES)), np.uint16)
    patterns[:, [0, 2]] = matched[:, None]
    patterns[1:, [5, 7]] = all_overlaps
    images = max(1, size // 36)
    counts = np.full(images, size // images, np.int32)
    counts[: size - int(counts.sum())] += 1
    labels = np.where(rng.random(size, np.float32) < 1 / 3, np.uint8(0), rng.integers(0, 80, size, np.uint8))
    row_image = np.repeat(np.arange(images, dtype=np.int32), counts)
    labels = labels[np.lexsort((labels, row_image))]  # by class within an image
    del row_image
    outcomes = np.where(
        rng.random(size, np.float32) < 0.1, rng.integers(1, len(patterns), size, np.uint16), np.uint16(0)
    )
    objects = images * 7
    return BoxColumns(
        counts=counts,
        object_counts=np.full(images, 7, np.int32),
        scores=rng.random(size, np.float32),
        labels=labels,
        outcomes=outcomes,
        patterns=patterns,
        overlaps=0.5 + 0.5 * rng.random(int((outcomes > 0).sum())),
        odd_rows=np.zeros(0, np.int64),
        odd_sizes=np.zeros(0, np.uint8),
        odd_overlaps=np.zeros(0),
        object_labels=np.where(rng.random(objects) < 1 / 3, 0, rng.integers(0, 80, objects)).astype(np.uint8),
        object_sizes=np.full(objects, 0b0101, np.uint8),
    )


if __name__ == "__main__":
    main()
