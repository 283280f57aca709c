"""Reading Parquet whole or some images of it: a file or a set of shards."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from probox.files.reading import Paths
from probox.formats.draft import Draft
from probox.formats.parquet.sets import open_detections, open_truth
from probox.formats.problems import Problems
from probox.tables.arguments import expect_path
from probox.tables.arrays import to_numpy
from probox.tables.columns import frozen
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth

__all__ = ["parquet_draft", "read_parquet", "read_parquet_truth"]


def read_parquet(path: Paths, *, image_ids: npt.ArrayLike | None = None, repair: bool = False) -> Detections:
    """Read detections that `write_parquet` or ``probox convert`` wrote.

    Parameters
    ----------
    path : path
        The file, a folder of such files, or the URL of either.
    image_ids : sequence of int, optional
        Read the detections of these images alone; shards and row groups without any of them are passed over.
    repair : bool
        Replace covariances that are not symmetric or not positive semi-definite by the nearest that are.

    Examples
    --------
    >>> found = read_parquet("detections.parquet", image_ids=[139, 285])  # doctest: +SKIP
    """
    expect_path(path)
    file = open_detections(path)
    draft = file.read() if image_ids is None else file.read_images(_ids(image_ids))
    return draft.to_table(repair=repair)


def _ids(given: npt.ArrayLike) -> npt.NDArray[np.int64]:
    return frozen(to_numpy(given, "image_ids").reshape(-1), np.int64, (-1,), "image_ids")


def read_parquet_truth(path: Paths, *, image_ids: npt.ArrayLike | None = None) -> GroundTruth:
    """Read ground truth that `write_parquet` or ``probox convert`` wrote.

    Parameters
    ----------
    path : path
        The file, a folder of such files, or the URL of either.
    image_ids : sequence of int, optional
        Read these images alone; shards and row groups without any of them are passed over.

    Examples
    --------
    >>> truth = read_parquet_truth("truth.parquet", image_ids=[139, 285])  # doctest: +SKIP
    """
    expect_path(path)
    file = open_truth(path)
    return file.read() if image_ids is None else file.select_images(_ids(image_ids))


def parquet_draft(path: Paths, dataset: Dataset, problems: Problems) -> Draft:
    """Return the draft of detections in images of the data set; the others are left out and counted."""
    return open_detections(path).read().within(dataset, problems)
