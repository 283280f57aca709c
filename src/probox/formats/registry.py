"""Registry of formats, and reading and writing with format detection."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from probox import _core
from probox.errors import InputError
from probox.files.output import check_replaceable
from probox.files.reading import Paths, Source, first_character, is_url
from probox.formats.coco import COCO_RESULTS, COCO_TRUTH
from probox.formats.coco_segmentation import mask_limits
from probox.formats.format import DetectionFormat, Draft, Format, Notes, TruthFormat, read_threads
from probox.formats.problems import Problems
from probox.formats.rvc1_heatmaps import refuse_copy
from probox.notes import Note
from probox.support.plugins import load_plugins
from probox.tables.dataset import Dataset
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.table import dataset_of, expect_path

if TYPE_CHECKING:
    from probox.formats.yolo import Order

NOT_JSON = (
    "open_images:OPEN_IMAGES_TRUTH",
    "open_images:OPEN_IMAGES_DETECTIONS",
    "voc:VOC_TRUTH",
    "voc:VOC_DETECTIONS",
    "kitti:KITTI_TRUTH",
    "kitti:KITTI_DETECTIONS",
    "yolo:YOLO_TRUTH",
    "yolo:YOLO_DETECTIONS",
)
"""Formats that are not tried for JSON files."""

FORMATS: tuple[str | TruthFormat | DetectionFormat, ...] = (
    *NOT_JSON,
    COCO_TRUTH,
    COCO_RESULTS,
    "rvc1_detections:RVC1_DETECTIONS",
    "rvc1_truth:RVC1_TRUTH",
    "parquet.format:PARQUET_DETECTIONS",
    "parquet.format:PARQUET_TRUTH",
)
"""probox's own formats, in the order in which they are tried: the strictest first. Those given as ``module:NAME`` are
imported when they are tried or listed, so that COCO files need only COCO's."""

ENDINGS = [".gz", ".json", ".parquet"]
"""Last parts of the file suffixes of formats that are imported later."""

SomeFormat = TypeVar("SomeFormat", bound=Format)

_STARTS_WITH = 30
"""Number of characters of an unrecognized file shown in the error."""


def all_formats() -> tuple[TruthFormat | DetectionFormat, ...]:
    """Return all formats; those of plugins come last."""
    return (*map(_import_format, FORMATS), *_plugin_formats())


def _import_format(form: str | TruthFormat | DetectionFormat) -> TruthFormat | DetectionFormat:
    found: TruthFormat | DetectionFormat = resolve_name(f"probox.formats.{form}") if isinstance(form, str) else form
    return found


@cache
def _plugin_formats() -> tuple[TruthFormat | DetectionFormat, ...]:
    taken = (name for form in map(_import_format, FORMATS) for name in _names_of(form))
    return load_plugins("probox.formats", Format, _names_of, taken)


def _names_of(form: Format) -> tuple[str, ...]:
    """Return identifiers that must be unique among formats of the same table: name and file suffixes."""
    table = "truth" if isinstance(form, TruthFormat) else "detections"
    return tuple(f"{name} ({table})" for name in (form.name, *form.suffixes))


def truth_formats() -> list[TruthFormat]:
    """Return the formats of ground truth."""
    return [form for form in all_formats() if isinstance(form, TruthFormat)]


def detection_formats() -> list[DetectionFormat]:
    """Return the formats of detections."""
    return [form for form in all_formats() if isinstance(form, DetectionFormat)]


def format_of_truth(source: Source) -> TruthFormat:
    """Detect the format of a ground-truth file or folder."""
    return _recognise(source, TruthFormat)


def format_of_detections(source: Source) -> DetectionFormat:
    """Detect the format of a detection file or folder."""
    return _recognise(source, DetectionFormat)


def format_of_name(path: Paths) -> DetectionFormat | None:
    """Return the format of detections for a file name: the one with the longest matching suffix, or None."""
    known = [form for form in detection_formats() if form.write is not None and form.suffix_in(path)]
    return max(known, key=lambda form: len(form.suffix_in(path)), default=None)


def endings_in_words(json: str = "RVC1") -> str:
    """Return the file suffixes and their formats, as words for messages; `json` is the format of a plain ``.json``.

    >>> endings_in_words()  # doctest: +ELLIPSIS
    '.coco.json (COCO results), .json (RVC1)...'
    """
    words = []
    for form in detection_formats():
        if form.write is not None and form.suffixes:
            suffix, title = form.suffixes[0], form.title
            named = "" if suffix == f".{title.lower()}" else f" ({json if suffix == '.json' else title})"
            words.append(suffix + named)
    return _join_words(words)


def last_endings() -> list[str]:
    """Return the last parts of all file suffixes: ``.gz``, ``.json`` and so on."""
    imported = (form for form in (*FORMATS, *_plugin_formats()) if not isinstance(form, str))
    endings = [f".{suffix.rsplit('.', 1)[-1]}" for form in imported for suffix in form.suffixes]
    return list(dict.fromkeys([*ENDINGS, *endings]))


def _is_json(source: Source) -> bool:
    return source.name.lower().endswith((".json", ".json.gz")) and first_character(source.head) in ("{", "[")


def _recognise(source: Source, table: type[SomeFormat]) -> SomeFormat:
    """Return the first format of a table that recognizes a source; formats that accept any folder are tried last."""
    left_out = NOT_JSON if _is_json(source) else ()
    own = map(_import_format, (form for form in FORMATS if form not in left_out))
    formats = (form for form in chain(own, _plugin_formats()) if isinstance(form, table))
    for form in sorted(formats, key=lambda form: form.last) if source.is_folder else formats:
        if (form.urls or not source.is_url) and form.sniff(source):
            return form
    start = source.content()[: 4 * _STARTS_WITH].decode(errors="replace").split()  # an unreadable file raises here
    titles = list(dict.fromkeys(form.title for form in all_formats() if isinstance(form, table)))
    raise InputError(
        f"expected {_join_words(titles)}, but the file begins with {' '.join(start)[:_STARTS_WITH]!r}",
        file=source.name,
        remedy="give a file of one of these formats, complete and in UTF-8",
    )


def _join_words(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


REMEDY = "give the ground truth of these images ({option:truth})"


def dataset_alone(source: Source, form: DetectionFormat, categories: Sequence[tuple[str, int]]) -> Dataset:
    """Return a dataset of the images that occur in a detection file; sizes are unknown and set to 1 x 1, without
    masks.

    Detections read with it can be written again in the same format without loss.

    Parameters
    ----------
    source, form
        The file and its format.
    categories : sequence of (str, int)
        Class names and category ids, which COCO results do not contain.
    """
    if form.name == "rvc1" and source.is_folder:
        raise InputError("folders of sequences need RVC1 ground truth", file=source.name, remedy=REMEDY)
    if form.name == "rvc1":
        return _rvc1(source)
    if form is COCO_RESULTS:
        return _coco(source, categories)
    if form.name == "parquet":
        from probox.formats.parquet.sets import open_detections

        file = open_detections(source.path)
        return _stand_in(file.image_counts()[0], file.classes)
    raise InputError(
        f"{form.title} cannot be read alone: images, their sizes and classes come from the ground truth",
        file=source.name,
        remedy=REMEDY,
    )


def _rvc1(source: Source) -> Dataset:
    from probox.formats.rvc1_detections import check_rvc1

    data = source.content()
    check_rvc1(data, source.name)
    columns, _ = _core.read_rvc1(data, lenient=False, max_examples=1, **read_threads())
    names = tuple(columns["image_names"])
    named = len(names) == columns["images"] == len(set(names)) and all(names)
    return _stand_in(np.arange(columns["images"]), columns["classes"], names if named else ())


def _coco(source: Source, categories: Sequence[tuple[str, int]]) -> Dataset:
    data = source.content()
    columns, found = _core.read_coco_results(
        data, image_ids=None, category_ids=None, lenient=False, max_examples=1, **mask_limits(data), **read_threads()
    )
    Problems().add_raw(found, source.name)
    refuse_copy(columns["mask_file_names"], source.name)
    named = np.flatnonzero(columns["name_has_id"] == 0)
    if len(named):
        raise InputError(
            f"expected the number of an image, but got the name {columns['names'][named[0]][:80]!r}",
            file=source.name,
            entry=f"[{columns['name_entries'][named[0]]}].image_id",
            remedy=REMEDY,
        )
    dataset = _stand_in(columns["image_ids"], [name for name, _ in categories])
    rows = columns["mask_rows"]
    polygons = rows[columns["segmentations"]["kinds"] == _core.POLYGONS]
    if len(polygons):
        raise InputError(
            "expected run lengths, but got polygons, which need the size of the image",
            file=source.name,
            image=int(columns["image_ids"][polygons[0]]),
            entry=f"[{columns['entries'][polygons[0]]}].segmentation",
            remedy=REMEDY,
        )
    sizes = np.ones((len(dataset), 2), np.int32)
    sizes[dataset.rows_of(columns["image_ids"][rows])] = columns["segmentations"]["rle_sizes"]
    return dataset.replace(
        heights=sizes[:, 0],
        widths=sizes[:, 1],
        category_ids=np.array([number for _, number in categories], np.int64),
    )


def _stand_in(image_ids: np.typing.NDArray[np.int64], classes: Sequence[str], names: tuple[str, ...] = ()) -> Dataset:
    ids = np.unique(image_ids)
    size = np.ones(len(ids), np.int32)
    return Dataset(classes=tuple(classes), image_ids=ids, widths=size, heights=size, file_names=names)


def read_truth(
    path: Paths, format: str | None = None, *, split: str | None = None, image_ids: npt.ArrayLike | None = None
) -> GroundTruth:
    """Read ground truth: COCO, Parquet, RVC1, YOLO, Pascal VOC, KITTI or Open Images.

    Parameters
    ----------
    path : path
        File or folder; for Parquet also a URL. The split of a YOLO or Pascal VOC dataset may follow a colon:
        ``data.yaml:test``, ``VOC2007:val``.
    format : {"coco", "parquet", "rvc1", "yolo", "voc", "kitti", "openimages"}, optional
        Default: detected from the content.
    split : str, optional
        YOLO and Pascal VOC: the split, such as ``"test"``.
    image_ids : sequence of int, optional
        Parquet: read these images only. Row groups without them are skipped.

    Returns
    -------
    GroundTruth

    Raises
    ------
    InputError
        For invalid input. The message names file, image and entry.

    Examples
    --------
    >>> import probox
    >>> truth = probox.read_truth("instances_val2017.json")  # doctest: +SKIP
    """
    expect_path(path)
    source = Source(path)
    form = format_of_truth(source) if format is None else _find_format(format, truth_formats())
    return form.read(source, Problems(), **_options(form, split=split, image_ids=image_ids))


def read_detections(
    path: Paths,
    truth: GroundTruth | Dataset | None = None,
    format: str | None = None,
    *,
    repair: bool = False,
    order: Order | None = None,
    image_ids: npt.ArrayLike | None = None,
) -> Detections:
    """Read detections: COCO results, RVC1, Parquet, YOLO, Pascal VOC, KITTI or Open Images.

    Parameters
    ----------
    path : path
        A ``.json`` or ``.json.gz`` file with a list (COCO results) or an object (RVC1), a Parquet file, a CSV file of
        Open Images, or a folder: of sequences (RVC1), of text files (YOLO, Pascal VOC, KITTI) or of Parquet files.
    truth : GroundTruth or Dataset
        Images and classes that the detections refer to. Optional for Parquet.
    format : {"coco", "rvc1", "parquet", "yolo", "voc", "kitti", "openimages"}, optional
        Default: detected from the content.
    repair : bool
        Replace covariances that are not symmetric or not positive semi-definite with the nearest valid ones.
    order : {"score-last", "score-first"}, optional
        YOLO: columns ``class cx cy w h score``, as ultralytics writes, or ``class score cx cy w h``. Default:
        detected from the boxes.
    image_ids : sequence of int, optional
        Parquet: read the detections of these images only. Row groups without them are skipped.

    Returns
    -------
    Detections

    Raises
    ------
    InputError
        For invalid input. The message names file, image and entry.

    Examples
    --------
    >>> import probox
    >>> truth = probox.read_truth("instances_val2017.json")  # doctest: +SKIP
    >>> found = probox.read_detections("detections.json", truth)  # doctest: +SKIP
    """
    call = "the order is read_detections(path, truth)"
    expect_path(path, remedy=call)
    dataset = None if truth is None else dataset_of(truth, call)
    source = Source(path)
    form = format_of_detections(source) if format is None else _find_format(format, detection_formats())
    if dataset is None and not form.standalone:
        raise InputError(
            f"{form.title} need the ground truth, which defines images and classes",
            file=source.name,
            remedy="read_detections(path, truth)",
        )
    options = _options(form, order=order, image_ids=image_ids)
    draft: Draft = form.read(source, dataset, Problems(), **options)
    return draft.to_table(repair=repair)


def _find_format(name: str, formats: Sequence[SomeFormat]) -> SomeFormat:
    """Return the format with a name."""
    known = {form.name: form for form in formats}
    if name not in known:
        raise InputError(f"unknown format {name!r:.40}", remedy=f"use one of {', '.join(sorted(known))}")
    return known[name]


def _options(form: Format, **given: object) -> dict[str, Any]:
    """Return the options that were given; raise for one that the format does not support."""
    options = {name: value for name, value in given.items() if value is not None}
    for name in options:
        if name not in form.options:
            formats = truth_formats() if isinstance(form, TruthFormat) else detection_formats()
            able = " and ".join(other.title for other in formats if name in other.options)
            raise InputError(f"argument `{name}` is for {able}, but this is {form.title}", remedy="leave it out")
    return options


def read_detections_of_part(path: Paths, truth: GroundTruth, part: GroundTruth, *, repair: bool = False) -> Detections:
    """Read the detections of a part's images, from a file of the whole dataset or of the part."""
    if part is truth:
        return read_detections(path, truth, repair=repair)
    source = Source(path)
    form = format_of_detections(source)
    if form.read_part is None:
        draft = form.read(source, truth.dataset, Problems())
    else:
        draft = form.read_part(source, truth.dataset, part.dataset, Problems())
    found = draft.to_table(repair=repair)
    return found.select(np.isin(found.image_ids, part.image_ids))


def load_truth(path: Paths, problems: Problems) -> GroundTruth:
    """Return the table of ground truth; problems are reported to `problems`."""
    source = Source(path)
    return format_of_truth(source).read(source, problems)


def load_detections(path: Paths, dataset: Dataset, problems: Problems) -> Draft:
    """Return the draft of detections; problems are reported to `problems`."""
    source = Source(path)
    return format_of_detections(source).read(source, dataset, problems)


def write_detections(
    path: Paths, found: Detections, truth: GroundTruth | Dataset, *, shards: int | None = None
) -> Notes:
    """Write detections in the format of the file name.

    ``*.coco.json`` and ``*.bbox.json`` are COCO results, ``*.parquet`` is Parquet, any other ``*.json`` is RVC1. JSON
    names may end in ``.gz``.

    Parameters
    ----------
    path : path
        Output file.
    found : Detections
        Detections to write.
    truth : GroundTruth or Dataset
        Source of images and category ids.
    shards : int, optional
        Write a folder of this many Parquet files instead, see `write_parquet`.

    Returns
    -------
    tuple of Note
        Data that the format cannot store.

    Examples
    --------
    >>> notes = write_detections("detections.bbox.json", found, truth)  # doctest: +SKIP
    """
    write = asked_format(path, shards).write
    assert write is not None
    return write(path, found, dataset_of(truth, "the order is write_detections(path, found, truth)"))


def check_output(path: Paths, *, heatmaps: bool = False, shards: int | None = None) -> None:
    """Raise if detections, or heatmaps, could not be written to this file; called before any work is done."""
    form = asked_format(path, shards)
    if heatmaps and not (form.heatmaps or form.masks):
        raise InputError(f"{form.title} cannot hold heatmaps", file=str(path), remedy="use *.rvc1.json or *.parquet")
    check_place(path, form, shards=shards)


def fit_heatmaps(found: Detections, form: DetectionFormat) -> tuple[Detections, Notes]:
    """Return detections with masks in place of heatmaps if the format has only masks, and a note."""
    count = int(found.has_heatmap.sum())
    if form.heatmaps or not form.masks or not count:
        return found, ()
    return found.with_binary_masks(), (Note("heatmaps-thresholded", count, format=form.title),)


def check_place(path: Paths, form: DetectionFormat, *, shards: int | None = None) -> None:
    """Raise if a file or set of this format may not or cannot be written to a path."""
    check_url(path, form)
    if form.name == "parquet":
        from probox.formats.parquet.format import check_parquet_output

        check_parquet_output(path, "detections", shards=shards, folder=True)
    else:
        check_replaceable(path, form.kind, folder=True)


def check_url(path: Paths, form: DetectionFormat) -> None:
    """Raise for a URL if the format supports local files only."""
    if is_url(path) and not form.urls:
        raise InputError(
            f"{form.title} cannot be written to a URL", file=str(path), remedy="write Parquet there, or name a file"
        )


def asked_format(path: Paths, shards: int | None) -> DetectionFormat:
    if shards is not None:
        from probox.formats.parquet.format import in_shards

        return in_shards(shards)[0]
    form = format_of_name(path)
    if form is None:
        raise InputError("unknown format of this file name", file=str(path), remedy=f"use {endings_in_words()}")
    check_url(path, form)
    return form
