"""Detections in JSON, gzip and Parquet: file size, and time to a checked table.

    pip install 'probox[parquet]'
    python -m benchmarks.parquet --truth val2017_boxes.json --images subset_2881_image_ids.json \
        nanodet_m_416_2881.rvc1.json.gz ssdlite_mbv2_2881.json.gz

Each file is unpacked, compressed and converted in advance. The four readers alternate, so that other load on the
machine affects all of them; the table has the minimum of `--repeat` wall times and of processor times (sum of threads).
`json.load` is Python's own parser, which returns lists and dictionaries instead of a table.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from probox import GroundTruth, read_detections, read_truth, write_parquet


def main() -> None:
    """Print one line per reader of each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--truth", required=True, help="ground truth of the detections")
    parser.add_argument("--images", help="a JSON list of the image ids to restrict the ground truth to")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("files", nargs="+", help="detections, .json or .json.gz")
    options = parser.parse_args()
    truth = read_truth(options.truth)
    if options.images:
        truth = truth.select_images(json.loads(Path(options.images).read_text()))
    print("| file | form | MB | times smaller | wall ms | processor ms | times faster |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for file in options.files:
        with tempfile.TemporaryDirectory() as folder:
            compare(Path(file), Path(folder), truth, options.repeat)


def compare(source: Path, folder: Path, truth: GroundTruth, repeat: int) -> None:
    """Print the lines of one file."""
    data = source.read_bytes()
    plain = gzip.decompress(data) if source.suffix == ".gz" else data
    paths = {"JSON": folder / "a.json", "JSON, gzip": folder / "a.json.gz", "Parquet": folder / "a.parquet"}
    paths["JSON"].write_bytes(plain)
    paths["JSON, gzip"].write_bytes(gzip.compress(plain, 6))
    found = read_detections(source, truth)
    write_parquet(paths["Parquet"], found)
    ways: dict[str, Callable[[], Any]] = {
        name: lambda path=path: read_detections(path, truth)  # type: ignore[misc]
        for name, path in paths.items()
    }
    ways["JSON, json.load"] = lambda: json.loads(paths["JSON"].read_bytes())
    wall, processor = least_times(ways, repeat)
    size = {name: path.stat().st_size for name, path in paths.items()} | {"JSON, json.load": len(plain)}
    for name in ways:
        print(
            f"| {source.name} ({len(found):,} detections) | {name} | {size[name] / 1e6:.2f} "
            f"| {size['JSON'] / size[name]:.2f} | {wall[name] * 1e3:.1f} | {processor[name] * 1e3:.1f} "
            f"| {wall['JSON'] / wall[name]:.2f} |"
        )


def least_times(ways: dict[str, Callable[[], Any]], repeat: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return the minimum wall time and processor time of each reader; readers alternate."""
    wall = dict.fromkeys(ways, float("inf"))
    processor = dict.fromkeys(ways, float("inf"))
    for turn in range(repeat):
        for name, read in ways.items():
            if name == "JSON, json.load" and turn >= 3:
                continue
            used, started = time.process_time(), time.perf_counter()
            read()
            wall[name] = min(wall[name], time.perf_counter() - started)
            processor[name] = min(processor[name], time.process_time() - used)
    return wall, processor


if __name__ == "__main__":
    main()
