"""One evaluation by Spark: a task for each part, joined on the driver.

    python examples/spark_evaluate.py TRUTH FOUND [--parts 16] [--out DIR]

prints what one process would, to the bit. The same file is for spark-submit, which says where the cluster is; without
it, --master local[2] is two processors of this machine.

Needs pyspark, pandas, pyarrow and Java. probox must be installed for the Python of the executors, and the files must
lie where all of them see them.
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
    """Return the whole of two files: as many rows as there are parts, each a task."""
    truth, found, parts, keep = asked.truth, asked.found, asked.parts, asked.keep  # what the executors are sent

    def evaluate_parts(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            for number in frame["part"]:
                result = probox.evaluate(truth, found, part=f"{number}/{parts}", keep=keep, threads=1)
                yield pd.DataFrame({"part": [number], "result": [result.to_bytes()]})

    numbers = spark.range(1, parts + 1, numPartitions=parts).toDF("part")
    rows = numbers.mapInPandas(evaluate_parts, "part long, result binary").collect()
    return probox.merge([probox.from_bytes(bytes(row["result"])) for row in rows])


def session(master: str | None) -> SparkSession:
    """Return Spark, on this machine if `master` says so, otherwise wherever spark-submit wants it."""
    # Executors take "python3" unless told: not the one of this environment.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("probox").config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
    if master is not None and master.startswith("local"):
        builder = builder.config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    return builder.getOrCreate()


def main() -> None:
    """Evaluate, print and keep."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("truth", type=absolute, help="files of any format")
    options.add_argument("found", type=absolute)
    options.add_argument("--parts", type=int, default=16)
    options.add_argument("--keep", default="all", choices=("summary", "matches", "all"), help="what a part keeps")
    options.add_argument("--master", help="such as local[2]; leave it out for spark-submit")
    options.add_argument("--out", help="keep the joined result in this folder")
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
    """Return a path that means the same in executors, whose current folder may be another."""
    return path if "://" in path else str(Path(path).absolute())


if __name__ == "__main__":
    main()
