"""The formats that probox knows. A new one is a module with its `Format`, and a line in `FORMATS`.

Other distributions add formats through the entry-point group `probox.formats`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from probox.errors import InputError
from probox.files.reading import Paths
from probox.files.source import Source
from probox.formats.coco.format import COCO_RESULTS, COCO_TRUTH
from probox.formats.format import DetectionFormat, Format, TruthFormat
from probox.formats.kitti.format import KITTI_DETECTIONS, KITTI_TRUTH
from probox.formats.openimages.format import OPEN_IMAGES_DETECTIONS, OPEN_IMAGES_TRUTH
from probox.formats.parquet.format import PARQUET_DETECTIONS, PARQUET_TRUTH
from probox.formats.rvc1.format import RVC1_DETECTIONS, RVC1_TRUTH
from probox.formats.voc.format import VOC_DETECTIONS, VOC_TRUTH
from probox.formats.yolo.format import YOLO_DETECTIONS, YOLO_TRUTH
from probox.support.plugins import load_plugins

__all__ = [
    "FORMATS",
    "SomeFormat",
    "all_formats",
    "detection_formats",
    "endings_in_words",
    "format_of_detections",
    "format_of_name",
    "format_of_truth",
    "last_endings",
    "truth_formats",
]

FORMATS: tuple[TruthFormat | DetectionFormat, ...] = (
    OPEN_IMAGES_TRUTH,
    OPEN_IMAGES_DETECTIONS,
    VOC_TRUTH,
    VOC_DETECTIONS,
    KITTI_TRUTH,
    KITTI_DETECTIONS,
    YOLO_TRUTH,
    YOLO_DETECTIONS,
    COCO_TRUTH,
    COCO_RESULTS,
    RVC1_DETECTIONS,
    RVC1_TRUTH,
    PARQUET_DETECTIONS,
    PARQUET_TRUTH,
)
"""probox's own, in the order in which they are asked whether a file is theirs: the strictest first."""

SomeFormat = TypeVar("SomeFormat", bound=Format)

_STARTS_WITH = 30
"""So many characters of a file that no format takes are shown."""


def all_formats() -> tuple[TruthFormat | DetectionFormat, ...]:
    """Return all formats, those of other distributions last."""
    return (*FORMATS, *_plugin_formats())


@cache
def _plugin_formats() -> tuple[TruthFormat | DetectionFormat, ...]:
    taken = (name for form in FORMATS for name in _names_of(form))
    return load_plugins("probox.formats", Format, _names_of, taken)


def _names_of(form: Format) -> tuple[str, ...]:
    """Return what no other format of the same table may have: the name, and endings of file names."""
    table = "truth" if isinstance(form, TruthFormat) else "detections"
    return tuple(f"{name} ({table})" for name in (form.name, *form.suffixes))


def truth_formats() -> list[TruthFormat]:
    """Return the formats of ground truth."""
    return [form for form in all_formats() if isinstance(form, TruthFormat)]


def detection_formats() -> list[DetectionFormat]:
    """Return the formats of detections."""
    return [form for form in all_formats() if isinstance(form, DetectionFormat)]


def format_of_truth(source: Source) -> TruthFormat:
    """Return the format of a file or folder of ground truth."""
    for form in _asked_in_turn(truth_formats(), source):
        if form.sniff(source):
            return form
    raise _unknown(source, truth_formats())


def format_of_detections(source: Source) -> DetectionFormat:
    """Return the format of a file or folder of detections."""
    for form in _asked_in_turn(detection_formats(), source):
        if form.sniff(source):
            return form
    raise _unknown(source, detection_formats())


def format_of_name(path: Paths) -> DetectionFormat | None:
    """Return the format of detections that the ending of a file name asks for, the longest that is known."""
    known = [form for form in detection_formats() if form.write is not None and form.suffix_in(path)]
    return max(known, key=lambda form: len(form.suffix_in(path)), default=None)


def endings_in_words() -> str:
    """Return which ending of a file name asks for which format of detections.

    >>> endings_in_words()  # doctest: +ELLIPSIS
    '.coco.json (COCO results), .json (RVC1)...'
    """
    words = []
    for form in detection_formats():
        if form.write is not None and form.suffixes:
            said = form.suffixes[0] == f".{form.title.lower()}"
            words.append(form.suffixes[0] + ("" if said else f" ({form.title})"))
    return _listed(words)


def last_endings() -> list[str]:
    """Return what names of files may end in: ``.gz``, ``.json`` and so on."""
    endings = [f".{suffix.rsplit('.', 1)[-1]}" for form in all_formats() for suffix in form.suffixes]
    return list(dict.fromkeys([".gz", *endings]))


def _asked_in_turn(formats: Sequence[SomeFormat], source: Source) -> list[SomeFormat]:
    """Return the formats that may say whether a source is theirs, those that take any folder last."""
    if source.is_url:
        return [form for form in formats if form.urls]
    return sorted(formats, key=lambda form: form.last and source.is_folder)


def _listed(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _unknown(source: Source, formats: Sequence[Format]) -> InputError:
    start = source.content()[: 4 * _STARTS_WITH].decode(errors="replace").split()  # a file that is none raises here
    titles = list(dict.fromkeys(form.title for form in formats))
    return InputError(
        f"expected {_listed(titles)}, but the file begins with {' '.join(start)[:_STARTS_WITH]!r}",
        file=source.name,
        remedy="give a file of one of these formats, complete and in UTF-8",
    )
