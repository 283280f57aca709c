"""The explorer: a page with all results, their numbers, plots and images, that opens from disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np

from probox.analysis.same_truth import describe_differences
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.evaluation.text import label_results
from probox.explorer.assembly import page_text, script, style_sheet
from probox.explorer.copies import copy_photos, embedded_photos, small_png
from probox.explorer.packing import to_script_json
from probox.explorer.payload import chunk_payloads, index_payload
from probox.files.kinds import REPORT, check_replaceable
from probox.files.output import OutputFolder, make_folder, output_folder, write_files
from probox.files.photos import find_photo
from probox.support.optional import require
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks

__all__ = ["write_report"]

_CHUNK = 50

Progress = Callable[[int, int], None]


def write_report(
    results: Mapping[str, Evaluation],
    out: str | Path,
    *,
    images: str | Path | None = None,
    truth: GroundTruth | None = None,
    detections: Sequence[Detections | None] = (),
    title: str = "probox report",
    embed: bool = False,
    progress: Progress | None = None,
) -> tuple[Path, list[str]]:
    """Write the explorer's page.

    It appears when all of it is made, and replaces an earlier report there; a failure leaves that as it was. Files that
    no report wrote, or that were changed since, are neither removed nor replaced.

    Parameters
    ----------
    results : mapping of str to Evaluation
        Evaluations of the same truth, by name.
    out : path
        A folder, new or empty or of an earlier report; with `embed` it may be the name of a file that ends in
        ``.html``, new or of an earlier report.
    images : path, optional
        A folder of photos, which are copied. Default: a plain ground.
    truth : GroundTruth, optional
        Shows its masks and file names in place of those that were scored, say where boxes were scored.
    detections : sequence of Detections or None, optional
        One per result: where given heatmaps come from (probabilistic segmentation).
    title : str
        The page's heading.
    embed : bool
        Put everything into one file.
    progress : callable, optional
        Called with the numbers of photos done and in all.

    Returns
    -------
    path, list of str
        The page, and what could not be shown or compared.

    Examples
    --------
    >>> from probox.explorer import write_report
    >>> page, notes = write_report({"ssd": ssd, "yolo": yolo}, "report", images="val2017")  # doctest: +SKIP
    """
    _check_same_truth(results)
    notes = list(describe_differences(results))
    results = label_results(results)
    notes += [
        f"{name}: the page shows all detections, and no label threshold auto: the slider sets one for all images"
        for name, result in results.items()
        if result.threshold_choice is not None
    ]
    results = {name: result.of_all_detections() for name, result in results.items()}
    first = next(iter(results.values()))
    masks, names = first.masks, list(first.dataset.file_names)
    if truth is not None:
        masks, names = _shown_truth(first, truth)
    ids = first.dataset.image_ids.tolist()
    sizes = [(width, height) for width, height in first.dataset.shapes.tolist()]
    photos: list[Path | None] = [None] * len(ids)
    if images is not None:
        folder = Path(images)
        if not folder.is_dir():
            raise InputError("is not a folder", file=str(images), remedy="give the folder of photos")
        photos = [find_photo(folder, image_id, name) for image_id, name in zip(ids, names, strict=True)]
        missing = [image_id for image_id, photo in zip(ids, photos, strict=True) if photo is None]
        if len(missing) == len(ids) > 0:
            raise InputError(
                f"has no photo of any of the {len(ids):,} images", file=str(images), remedy="give the folder of photos"
            )
        if missing:
            notes.append(f"{len(missing)} images have no photo in {folder} (the first: {missing[0]}): plain ground")
    maps = [_stored_maps(evaluation, given) for evaluation, given in zip(results.values(), detections, strict=False)]
    chunks = chunk_payloads(results, masks, _CHUNK, maps)
    if any(photos):
        require("PIL.Image", extra="report")

    def embedded(file: BinaryIO) -> None:
        shown, failures = embedded_photos(photos, sizes, progress) if any(photos) else ([""] * len(ids), [])
        notes.extend(failures)
        index = index_payload(results, [".jpg" if photo else "" for photo in shown], _CHUNK, names)
        _write_embedded(file, title, index, chunks, shown)

    if embed and Path(out).suffix.lower() in (".html", ".htm"):
        return _write_file(Path(out), embedded), notes
    with output_folder(out, "report", names=("index.html",), fresh=True) as target:
        if embed:
            return target.write("index.html", embedded), notes
        endings, failures = copy_photos(photos, sizes, target, progress) if any(photos) else ([""] * len(ids), [])
        index = index_payload(results, endings, _CHUNK, names)
        return _write_folder(target, title, index, chunks), notes + failures


def _check_same_truth(results: Mapping[str, Evaluation]) -> None:
    if not results:
        raise InputError("there is nothing to report")
    named = iter(results.items())
    first_name, first = next(named)
    for name, other in named:
        same = (
            other.classes == first.classes
            and np.array_equal(other.dataset.image_ids, first.dataset.image_ids)
            and np.array_equal(other.objects.image_rows, first.objects.image_rows)
            and np.array_equal(other.objects.labels, first.objects.labels)
        )
        if not same:
            raise InputError(
                f"{first_name!r} and {name!r} were measured on different truths",
                remedy="evaluate all detectors on the same truth, or make one report each",
            )


def _shown_truth(evaluation: Evaluation, truth: GroundTruth) -> tuple[Masks, list[str]]:
    """Return masks and file names to show: the truth's where it has the object or image, else what was scored."""
    image_ids = truth.image_ids[truth.image_rows].tolist()
    row_of = {key: row for row, key in enumerate(zip(image_ids, truth.ids.tolist(), strict=True))}
    objects = evaluation.objects
    own = zip(evaluation.dataset.image_ids[objects.image_rows].tolist(), objects.ids.tolist(), strict=True)
    rows = np.array([row_of.get(key, -1) for key in own], dtype=np.int64)
    if len(rows) and (rows < 0).all():
        raise InputError("has none of the objects that were measured", file=truth.source or "truth")
    both = Masks.concatenate([truth.masks, evaluation.masks])
    masks = both.take(np.where(rows >= 0, rows, len(truth) + np.arange(len(rows))))
    known = dict(zip(truth.image_ids.tolist(), truth.dataset.file_names, strict=True))
    names = zip(evaluation.dataset.image_ids.tolist(), evaluation.dataset.file_names, strict=True)
    return masks, [known.get(image_id) or name for image_id, name in names]


def _stored_maps(evaluation: Evaluation, given: Detections | None) -> dict[int, list[Any]]:
    """Return given heatmaps by detection row: a picture of the part above 0, and where that part lies."""
    if given is None or given.heatmaps is None:
        return {}
    row_of = {
        key: row
        for row, key in enumerate(zip(given.image_ids.tolist(), given.numbers_in_image().tolist(), strict=True))
    }
    table = evaluation.detections
    maps: dict[int, list[Any]] = {}
    image_ids = evaluation.dataset.image_ids[table.image_rows].tolist()
    for row, key in enumerate(zip(image_ids, table.numbers.tolist(), strict=True)):
        if key not in row_of:
            raise InputError("the detections are not those that were evaluated", image=key[0])
        heatmap = given.heatmaps[row_of[key]]
        if heatmap is None:
            continue
        values = (
            np.asarray(heatmap) if heatmap.dtype == np.uint8 else np.rint(255.0 * np.asarray(heatmap)).astype(np.uint8)
        )
        y, x = np.flatnonzero(values.any(axis=1)), np.flatnonzero(values.any(axis=0))
        if len(y):
            part = values[y[0] : y[-1] + 1, x[0] : x[-1] + 1]
            maps[row] = [small_png(part), int(x[0]), int(y[0]), part.shape[1], part.shape[0]]
    return maps


def _write_file(path: Path, content: Callable[[BinaryIO], None]) -> Path:
    check_replaceable(path, REPORT)
    with make_folder(path.parent):
        write_files({path: content})
    return path


def _write_folder(
    folder: OutputFolder, title: str, index: dict[str, Any], chunks: Iterator[list[dict[str, Any]]]
) -> Path:
    folder.write("assets/explorer.css", style_sheet().encode())
    folder.write("assets/explorer.js", script().encode())
    for number, chunk in enumerate(chunks):
        folder.write(f"data/chunk-{number}.js", f"probox.receive({number},{to_script_json(chunk)});\n".encode())
    folder.write("data/index.js", f"probox.start({to_script_json(index)});\n".encode())
    style = '<link rel="stylesheet" href="assets/explorer.css">'
    scripts = '<script src="assets/explorer.js"></script>\n<script src="data/index.js"></script>'
    # The page comes last: where it is, all it needs is there.
    return folder.write("index.html", page_text(title, style, scripts).encode())


def _write_embedded(
    file: IO[bytes], title: str, index: dict[str, Any], chunks: Iterator[list[dict[str, Any]]], photos: Sequence[str]
) -> None:
    marker = "<!-- data -->"
    before, after = page_text(title, f"<style>{style_sheet()}</style>", marker).split(marker)
    file.write(before.encode())
    for number, chunk in enumerate(chunks):
        file.write(f'<script type="application/json" id="chunk-{number}">{to_script_json(chunk)}</script>\n'.encode())
    for number, photo in enumerate(photos):
        if photo:
            file.write(f'<script type="text/plain" id="photo-{number}">{photo}</script>\n'.encode())
    file.write(f"<script>{script()}</script>\n<script>probox.start({to_script_json(index)});</script>".encode())
    file.write(after.encode())
