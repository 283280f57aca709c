"""Write the HTML report: data, and the page of `assets` with constants of Python."""

from __future__ import annotations

import base64
import html
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from string import Template
from typing import IO, Any, BinaryIO, TypeVar

import numpy as np

from probox.analysis.comparison import describe_differences
from probox.analysis.loss_breakdown import BACKGROUND, UNNAMED
from probox.convention import BOX_FIELDS, thresholds_in_words
from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.evaluation.text import label_results
from probox.explorer.payload import (
    IOUS,
    chunk_payloads,
    index_payload,
    mask_entries,
    resampling_constants,
    to_script_json,
    why_constants,
)
from probox.files.output import REPORT, OutputFolder, check_replaceable, make_folder, output_folder, write_files
from probox.files.photos import UNREADABLE, find_photo, orientation_of, to_rgb, turn_upright
from probox.measures.boxes.matching import COCO_RULES, SIZES, BoxRules
from probox.measures.boxes.mean_ap import RECALL_POINTS
from probox.measures.boxes.optimal_lrp import GRID
from probox.measures.pdq.definition import EDGE
from probox.notes import Note, as_notes
from probox.plots.breakdown import MOST_CLASSES
from probox.plots.quality import LEVELS
from probox.support.optional import require
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.heatmaps import crop_heatmap
from probox.tables.masks import Masks
from probox.tables.results import QUALITIES, Verdict
from probox.version import __version__

COLOURS = {
    # The page itself is grey, so that every hue has a meaning.
    "page": ("#f5f6f8", "#0e1116"),
    "panel": ("#ffffff", "#171b22"),
    "ink": ("#1d2430", "#e6e9ee"),
    "soft": ("#5a6474", "#a3adbb"),
    "edge": ("#dde1e7", "#2c333e"),
    "ground": ("#e6e9ed", "#232932"),
    "mark": ("#e6eaf0", "#2a3240"),
    "accent": ("#4a5568", "#a9b4c4"),
    # Outcomes, distinct for every type of colour vision: true positive, true positive of another class, false positive
    # or missed object, ignored; `ink` for text.
    "right": ("#1f6fe5", "#5b9bff"),
    "right-ink": ("#1a5fc7", "#7fb2ff"),
    "wrong-class": ("#8a0f8a", "#dcc2ff"),
    "wrong-class-ink": ("#8a0f8a", "#dcc2ff"),
    "wrong": ("#e8730c", "#ff9a3d"),
    "wrong-ink": ("#a84f00", "#ffb06b"),
    "neutral": ("#868c96", "#868c96"),
    # Losses of true positives.
    "lack-label": ("#5a6474", "#a3adbb"),
    "lack-foreground": ("#868c96", "#868c96"),
    "lack-background": ("#b3b9c2", "#5a6474"),
    # Detectors in order; each one also has a shape.
    "line-0": ("#0f7f52", "#2fae76"),
    "line-1": ("#e0458f", "#ff6fb5"),
    "line-2": ("#0e93a8", "#4fd0e0"),
    "line-3": ("#7d6608", "#b8a030"),
    "line-4": ("#b01e2e", "#ff5c5c"),
    "line-5": ("#5f9e00", "#b4ec5c"),
    "line-6": ("#5f3a30", "#a87a62"),
    "line-7": ("#b08a9a", "#e3cf9e"),
}
"""Colours of the page by their meaning, in light and in dark."""

_WORDS = {"TP": "true positive", "FP": "false positive", "FN": "missed", "IGNORED": "ignored"}
"""Names of outcomes; the gallery filters by the first three."""

_HEAT = ("#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725")
"""Colours of probabilities from 0 to 1: matplotlib's viridis, ordered for every type of colour vision."""


def constants(rules: BoxRules = COCO_RULES) -> dict[str, Any]:
    """Return the constants of the scripts by name."""
    overlaps = [thresholds_in_words([iou]) for iou in rules.levels]
    verdicts = {name: getattr(Verdict, name) for name in _WORDS}
    return {
        "QUALITIES": list(QUALITIES),
        "SIZES": list(SIZES[1:]),
        # The tables have no code for detections below the threshold.
        "VERDICT": {**verdicts, "DROPPED": len(verdicts)},
        "VERDICTS": {verdicts[name]: words for name, words in _WORDS.items()},
        "IOUS": {text: f"{iou:.2f}" for text, iou in IOUS.items() if f"{iou:.2f}" in overlaps},
        "BOXES": {
            "OVERLAPS": overlaps,
            "AVERAGED": rules.averaged.tolist(),
            "AVERAGED_WORDS": rules.iou_words(),
            "RECALLS": RECALL_POINTS.tolist(),
            "GRID": GRID.tolist(),
            "RANGES": len(SIZES),
        },
        "LEVELS": list(LEVELS),
        "LINES": sum(name.startswith("line-") for name in COLOURS),
        "EDGE": EDGE,
        "RESAMPLING": resampling_constants(),
        "CONFUSION": {"BACKGROUND": BACKGROUND, "UNNAMED": UNNAMED, "MOST": MOST_CLASSES},
        "HEAT": list(_HEAT),
        "WHY": why_constants(),
    }


SCRIPTS = (
    "dom", "store", "boxes", "diagnosis", "state", "geometry", "heatmap", "paint", "labels", "axes", "gestures",
    "charts", "bars", "selection", "filters", "tags", "exports", "tables", "resampling", "comparing", "versus",
    "confusion", "plots", "diagnosis_cards", "sigmas", "items", "gallery", "viewer", "app",
)  # fmt: skip
"""``NAME.js`` in the order of their dependencies, which is also the order of updates after a change."""


def _asset(name: str) -> str:
    return (resources.files("probox.explorer") / "assets" / name).read_text(encoding="utf-8")


def style_sheet() -> str:
    """Return the style sheet with the colours of both themes."""
    light, dark = (" ".join(f"--{name}: {both[theme]};" for name, both in COLOURS.items()) for theme in (0, 1))
    return Template(_asset("explorer.css")).substitute(light=light, dark=f"color-scheme: dark; {dark}")


def script(rules: BoxRules = COCO_RULES) -> str:
    """Return the constants of Python and all scripts as one script, each in a block scope."""
    first = f'"use strict";\nwindow.probox = {{ constants: {to_script_json(constants(rules))} }};'
    return "\n".join([first, *(f"{{\n{_asset(f'{name}.js')}}}" for name in SCRIPTS)])


def page_text(title: str, style: str, scripts: str) -> str:
    """Return the HTML of the page with these elements for style and scripts."""
    return Template(_asset("explorer.html")).substitute(
        title=html.escape(title),
        version=__version__,
        style=style,
        scripts=scripts,
    )


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
) -> tuple[Path, tuple[Note, ...]]:
    """Write the HTML report.

    The output is written atomically and replaces an earlier report. Other files in the folder, and files of a report
    that were changed later, are never overwritten.

    Parameters
    ----------
    results : mapping of str to Evaluation
        Evaluations on the same ground truth, by name.
    out : path
        A folder: new, empty, or of an earlier report. With `embed` also a file ending in ``.html``.
    images : path, optional
        A folder of photos, which are copied. Default: a grey background.
    truth : GroundTruth, optional
        Masks and file names to show instead of those of the evaluation, for example if it scored boxes.
    detections : sequence of Detections or None, optional
        One per result, as a source of masks and heatmaps of detections.
    title : str
        Heading of the page.
    embed : bool
        Write a single file.
    progress : callable, optional
        Called with the number of finished photos and the total.

    Returns
    -------
    path, tuple of Note
        The path of the page, and notes on missing content and differences between results.

    Examples
    --------
    >>> from probox.explorer import write_report
    >>> page, notes = write_report({"ssd": ssd, "yolo": yolo}, "report", images="val2017")  # doctest: +SKIP
    """
    _check_same_truth(results)
    notes: list[Note | str] = list(describe_differences(results))
    results = label_results(results)
    notes += [
        f"{name}: the page ignores label threshold auto and shows all detections; its slider sets one threshold"
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
            raise InputError("is not a folder", file=str(images), remedy="name the folder of photos")
        photos = [find_photo(folder, image_id, name) for image_id, name in zip(ids, names, strict=True)]
        missing = [image_id for image_id, photo in zip(ids, photos, strict=True) if photo is None]
        if len(missing) == len(ids) > 0:
            raise InputError(
                f"has no photo of any of the {len(ids):,} images", file=str(images), remedy="name the folder of photos"
            )
        if missing:
            notes.append(f"{len(missing)} images have no photo in {folder} (first: {missing[0]})")
    pixels = [pixel_entries(evaluation, given) for evaluation, given in zip(results.values(), detections, strict=False)]
    chunks = chunk_payloads(results, masks, _CHUNK, pixels)
    if any(photos):
        require("PIL.Image", extra="report")

    def embedded(file: BinaryIO) -> None:
        shown, failures = embed_photos(photos, sizes, progress) if any(photos) else ([""] * len(ids), [])
        notes.extend(failures)
        index = index_payload(results, [".jpg" if photo else "" for photo in shown], _CHUNK, names)
        _write_embedded(file, title, index, chunks, shown, first.box_rules)

    if embed and Path(out).suffix.lower() in (".html", ".htm"):
        return _write_file(Path(out), embedded), as_notes(notes)
    with output_folder(out, "report", names=("index.html",), fresh=True) as target:
        if embed:
            return target.write("index.html", embedded), as_notes(notes)
        endings, failures = copy_photos(photos, sizes, target, progress) if any(photos) else ([""] * len(ids), [])
        index = index_payload(results, endings, _CHUNK, names)
        return _write_folder(target, title, index, chunks, first.box_rules), as_notes([*notes, *failures])


def _check_same_truth(results: Mapping[str, Evaluation]) -> None:
    if not results:
        raise InputError("expected at least one result to report")
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
                f"{first_name!r} and {name!r} were evaluated on different ground truth",
                remedy="evaluate all detectors on the same ground truth, or write one report for each",
            )
        if other.box_rules != first.box_rules:
            raise InputError(
                f"{first_name!r} and {name!r} were evaluated with different {', '.join(BOX_FIELDS)}",
                remedy="evaluate all detectors by the same rules, or write one report for each",
            )


def _shown_truth(evaluation: Evaluation, truth: GroundTruth) -> tuple[Masks, list[str]]:
    """Return masks and file names of the ground truth, or of the evaluation for unknown objects and images."""
    image_ids = truth.image_ids[truth.image_rows].tolist()
    row_of = {key: row for row, key in enumerate(zip(image_ids, truth.ids.tolist(), strict=True))}
    objects = evaluation.objects
    own = zip(evaluation.dataset.image_ids[objects.image_rows].tolist(), objects.ids.tolist(), strict=True)
    rows = np.array([row_of.get(key, -1) for key in own], dtype=np.int64)
    if len(rows) and (rows < 0).all():
        raise InputError("contains none of the evaluated objects", file=truth.source or "truth")
    both = Masks.concatenate([truth.masks, evaluation.masks])
    masks = both.take(np.where(rows >= 0, rows, len(truth) + np.arange(len(rows))))
    known = dict(zip(truth.image_ids.tolist(), truth.dataset.file_names, strict=True))
    names = zip(evaluation.dataset.image_ids.tolist(), evaluation.dataset.file_names, strict=True)
    return masks, [known.get(image_id) or name for image_id, name in names]


def pixel_entries(evaluation: Evaluation, given: Detections | None) -> dict[int, list[Any]]:
    """Return heatmaps and masks by detection row.

    A heatmap is an image of the part above 0, and its x, y, width and height; a mask is an entry of `mask_entries`.
    """
    if given is None or (given.heatmaps is None and given.masks is None):
        return {}
    row_of = {
        key: row
        for row, key in enumerate(zip(given.image_ids.tolist(), given.numbers_in_image().tolist(), strict=True))
    }
    table = evaluation.detections
    pixels: dict[int, list[Any]] = {}
    image_ids = evaluation.dataset.image_ids[table.image_rows].tolist()
    heatmaps = given.heatmaps or (None,) * len(given)
    masks = [] if given.masks is None else mask_entries(given.masks)
    for row, key in enumerate(zip(image_ids, table.numbers.tolist(), strict=True)):
        if key not in row_of:
            raise InputError("the detections are not those that were evaluated", image=key[0])
        own = row_of[key]
        heatmap = heatmaps[own]
        if heatmap is not None:
            (top, left), window = (part := crop_heatmap(heatmap)).corner, part.window
            if window.size:
                pixels[row] = [encode_png(window), left, top, window.shape[1], window.shape[0]]
        elif given.has_mask is not None and given.has_mask[own]:
            pixels[row] = masks[own]
    return pixels


def _write_file(path: Path, content: Callable[[BinaryIO], None]) -> Path:
    check_replaceable(path, REPORT)
    with make_folder(path.parent):
        write_files({path: content})
    return path


def _write_folder(
    folder: OutputFolder, title: str, index: dict[str, Any], chunks: Iterator[list[dict[str, Any]]], rules: BoxRules
) -> Path:
    folder.write("assets/explorer.css", style_sheet().encode())
    folder.write("assets/explorer.js", script(rules).encode())
    for number, chunk in enumerate(chunks):
        folder.write(f"data/chunk-{number}.js", f"probox.receive({number},{to_script_json(chunk)});\n".encode())
    folder.write("data/index.js", f"probox.start({to_script_json(index)});\n".encode())
    style = '<link rel="stylesheet" href="assets/explorer.css">'
    scripts = '<script src="assets/explorer.js"></script>\n<script src="data/index.js"></script>'
    # The page is written last, so that an existing page is complete.
    return folder.write("index.html", page_text(title, style, scripts).encode())


def _write_embedded(
    file: IO[bytes],
    title: str,
    index: dict[str, Any],
    chunks: Iterator[list[dict[str, Any]]],
    photos: Sequence[str],
    rules: BoxRules,
) -> None:
    marker = "<!-- data -->"
    before, after = page_text(title, f"<style>{style_sheet()}</style>", marker).split(marker)
    file.write(before.encode())
    for number, chunk in enumerate(chunks):
        file.write(f'<script type="application/json" id="chunk-{number}">{to_script_json(chunk)}</script>\n'.encode())
    for number, photo in enumerate(photos):
        if photo:
            file.write(f'<script type="text/plain" id="photo-{number}">{photo}</script>\n'.encode())
    file.write(f"<script>{script(rules)}</script>\n<script>probox.start({to_script_json(index)});</script>".encode())
    file.write(after.encode())


_SHOWN = {".jpg": ".jpg", ".jpeg": ".jpg", ".png": ".png", ".webp": ".webp", ".gif": ".gif", ".bmp": ".bmp"}

_THUMB = 480

_EMBEDDED = 1024

Read = TypeVar("Read")


def copy_photos(
    photos: Sequence[Path | None],
    sizes: Sequence[tuple[int, int]],
    folder: OutputFolder,
    progress: Progress | None = None,
) -> tuple[list[str], list[str]]:
    """Copy photos to ``photos/`` and make ``thumbs/``; return their endings, "" without photo, and the failures."""

    def read(number: int) -> tuple[str, bytes, bytes]:
        path = photos[number]
        assert path is not None
        return _copy(path, sizes[number])

    def write(number: int, copy: tuple[str, bytes, bytes]) -> str:
        ending, photo, thumb = copy
        folder.write(f"thumbs/{number}.jpg", thumb)
        folder.write(f"photos/{number}{ending}", photo)
        return ending

    return _each(read, write, photos, progress)


def embed_photos(
    photos: Sequence[Path | None], sizes: Sequence[tuple[int, int]], progress: Progress | None = None
) -> tuple[list[str], list[str]]:
    """Return photos as data URLs of at most 1,024 pixels, "" without photo, and the failures."""

    def read(number: int) -> bytes:
        path = photos[number]
        assert path is not None
        return _jpeg(_reduce(path, sizes[number], _EMBEDDED), 82)

    def encode(number: int, photo: bytes) -> str:
        return "data:image/jpeg;base64," + base64.b64encode(photo).decode("ascii")

    return _each(read, encode, photos, progress)


def _each(
    read: Callable[[int], Read],
    use: Callable[[int, Read], str],
    photos: Sequence[Path | None],
    progress: Progress | None,
) -> tuple[list[str], list[str]]:
    """Process all photos on a few threads; unreadable photos are skipped with a message."""
    failures: list[str] = []
    decompression_bomb = require("PIL.Image", extra="report").DecompressionBombError

    def one(number: int) -> str:
        if photos[number] is None:
            return ""
        try:
            copy = read(number)
        except (*UNREADABLE, decompression_bomb) as error:
            # Only read errors are skipped; write errors end the work.
            failures.append(f"{photos[number]}: cannot be read as an image ({error})")
            return ""
        return use(number, copy)

    answers: list[str] = []
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        for done, answer in enumerate(pool.map(one, range(len(photos)))):
            answers.append(answer)
            if progress is not None:
                progress(done + 1, len(photos))
    return answers, sorted(failures)


def _copy(path: Path, size: tuple[int, int]) -> tuple[str, bytes, bytes]:
    """Return the ending and bytes of a photo in a format of browsers, and its thumbnail."""
    pillow = require("PIL.Image", extra="report")
    with pillow.open(path) as image:
        is_upright = orientation_of(image) == 1
    thumb = _jpeg(_reduce(path, size, _THUMB), 80)
    ending = _SHOWN.get(path.suffix.lower(), "")
    if ending and is_upright:
        return ending, path.read_bytes(), thumb
    return ".jpg", _jpeg(_reduce(path, size, 1 << 20), 92), thumb


def _jpeg(image: Any, quality: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def _reduce(path: Path, size: tuple[int, int], longest: int) -> Any:
    """Return a photo, rotated to the size of the ground truth, with sides of at most `longest` pixels."""
    with require("PIL.Image", extra="report").open(path) as image:
        chosen, _ = to_rgb(turn_upright(image, size, longest=longest))
        chosen.thumbnail((longest, longest))
        return chosen


def encode_png(values: Any) -> str:
    """Return a uint8 array as the data URL of a grey PNG image."""
    buffer = io.BytesIO()
    require("PIL.Image", extra="report").fromarray(values).save(buffer, "PNG", optimize=False)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
