"""Evaluate with Spark: one task per part, merged on the driver.

    python examples/spark_evaluate.py TRUTH DETECTIONS [--parts 16] [--out DIR]

prints a result that is bit-identical to that of one process. With spark-submit the file runs on a cluster; --master
local[2] uses two processors of this machine.

Requires pyspark, pandas, pyarrow and Java. probox must be installed for the Python of the executors, and the files must
have the same path on all machines.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession

import probox


def evaluate_files(spark: SparkSession, asked: argparse.Namespace) -> Any:
    """Evaluate two files: one row and one task per part."""
    truth, found, parts, keep = asked.truth, asked.detections, asked.parts, asked.keep  # sent to the executors

    def evaluate_parts(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            for number in frame["part"]:
                result = probox.evaluate(truth, found, part=f"{number}/{parts}", keep=keep, threads=1)
                yield pd.DataFrame({"part": [number], "result": [result.to_bytes()]})

    numbers = spark.range(1, parts + 1, numPartitions=parts).toDF("part")
    rows = numbers.mapInPandas(evaluate_parts, "part long, result binary").collect()
    return probox.merge([probox.from_bytes(bytes(row["result"])) for row in rows])


def session(master: str | None) -> SparkSession:
    """Return a Spark session, of `master` or of spark-submit."""
    # The default is "python3", which may not be the Python of this environment.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("probox").config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
    if master is not None and master.startswith("local"):
        builder = builder.config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    return builder.getOrCreate()


def main() -> None:
    """Evaluate, print and save."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("truth", type=absolute, help="files of any format")
    options.add_argument("detections", type=absolute)
    options.add_argument("--parts", type=int, default=16)
    options.add_argument("--keep", default="all", choices=("summary", "matches", "all"), help="data stored per part")
    options.add_argument("--master", help="such as local[2]; omit it with spark-submit")
    options.add_argument("--out", help="save the merged result in this folder")
    asked = options.parse_args()

    spark = session(asked.master)
    try:
        result = evaluate_files(spark, asked)
    finally:
        spark.stop()
    print(result)
    if asked.out:
        result.save(asked.out)


def absolute(path: str) -> str:
    """Return an absolute path: executors may have another current folder."""
    return path if "://" in path else str(Path(path).absolute())


if __name__ == "__main__":
    main()
