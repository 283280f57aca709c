"""Open Images' two formats."""

from __future__ import annotations

from probox.files.source import Source
from probox.formats.draft import Draft
from probox.formats.format import DetectionFormat, TruthFormat
from probox.formats.openimages.detections import STRING, check_open_images, open_images_detections
from probox.formats.openimages.table import heading_of
from probox.formats.openimages.truth import open_images_truth
from probox.formats.problems import Problems
from probox.tables.dataset import Dataset
from probox.tables.groundtruth import GroundTruth

__all__ = ["OPEN_IMAGES_DETECTIONS", "OPEN_IMAGES_TRUTH"]


def _sniff(source: Source) -> bool:
    """Return whether a file has the columns of either; which of the two it is, its reader says."""
    if source.is_folder:
        return False
    columns = set(heading_of(source.head))
    return "imageid" in columns and bool(columns & {"xmin", STRING.lower()})


def _read_truth(source: Source, problems: Problems) -> GroundTruth:
    return open_images_truth(source, problems)


def _read_detections(source: Source, dataset: Dataset, problems: Problems) -> Draft:
    return open_images_detections(source, dataset, problems)


OPEN_IMAGES_TRUTH = TruthFormat(name="openimages", title="Open Images CSV", sniff=_sniff, read=_read_truth)

OPEN_IMAGES_DETECTIONS = DetectionFormat(
    name="openimages",
    title="Open Images CSV",
    sniff=_sniff,
    read=_read_detections,
    check=check_open_images,
)
