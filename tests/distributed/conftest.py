"""A Dask cluster of two processes that tests share, and files to evaluate there."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.worlds import boxes_truth, simulated

import probox
from probox import Detections, GroundTruth

SHARDS = 6


CLUSTER = contextlib.ExitStack()
SHARED: list[Any] = []


@pytest.fixture
def client() -> Any:
    pytest.importorskip("distributed")
    from probox.distributed import open_client

    if not SHARED:
        import dask

        # Whoever asks a process that has just died for its results tries again for as long; by default, half a minute.
        CLUSTER.enter_context(dask.config.set({"distributed.comm.timeouts.connect": "8s"}))
        SHARED.append(CLUSTER.enter_context(open_client("local:2")))
    return SHARED[0]


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End the cluster with the last test of this folder: idle, it takes a seventh of a processor."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        SHARED.clear()
        CLUSTER.close()


@pytest.fixture(scope="session")
def tables() -> tuple[GroundTruth, Detections]:
    """Return 30 images; some of the detections are in images that the truth does not have."""
    truth = boxes_truth(31)
    found = simulated(truth, false_per_image=1, false_probability=0.3, miss_rate=0.1)
    return truth.select_images(truth.image_ids[:30]), found


@pytest.fixture(scope="session")
def sets(tables: tuple[GroundTruth, Detections], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with sets of shards, ``truth`` and ``found``, that hold the tables."""
    pytest.importorskip("pyarrow")
    truth, found = tables
    folder = tmp_path_factory.mktemp("sets")
    for name in ("truth", "found"):
        (folder / name).mkdir()
    images = np.union1d(truth.image_ids, found.image_ids)
    for number, ids in enumerate(np.array_split(images, SHARDS)):
        there = truth.select_images(np.intersect1d(ids, truth.image_ids))
        probox.write_parquet(folder / "truth" / f"part-{number}.parquet", there)
        probox.write_parquet(folder / "found" / f"part-{number}.parquet", found.select(np.isin(found.image_ids, ids)))
    return folder
