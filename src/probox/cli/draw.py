"""`probox draw`: draw images with their detections, and example detections."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from probox.analysis.ranking import CHOICES
from probox.cli.console import print_outcome, progress_bar
from probox.cli.scoring import Scoring, scoring_options
from probox.cli.shared_options import (
    GroupedCommand,
    input_option,
    json_option,
    option_group,
    output_option,
)
from probox.errors import InputError
from probox.notes import Note
from probox.pictures.drawing import CORNERS, LABELS, VEIL
from probox.pictures.style import ENDINGS, PALETTES
from probox.pictures.view import MOST_SHOWN, SHOWN_ABOVE, ImageView
from probox.support.formatting import format_list, with_count

if TYPE_CHECKING:
    from probox.evaluation.result import Evaluation
    from probox.pictures.batch import Task
    from probox.tables.detections import Detections

LIMIT = 50
"""Default number of pictures."""

EXAMPLES = 3
"""Default number of examples of each kind."""

PAGE = "index.html"

choice_option = option_group("Choice of images")
look_option = option_group("Look")


def _choices(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each way to choose images."""
    for name, (most, quantity) in reversed(CHOICES.items()):
        text = f"Draw the N images with {most} {quantity}."
        command = choice_option(f"--{name}", type=click.IntRange(min=1), help=text)(command)
    return command


@click.command("draw", cls=GroupedCommand)
@click.argument("source", type=click.Path())
@choice_option("--image", "wanted", multiple=True, metavar="ID", help="Draw the image of this id or name; repeatable.")
@_choices
@choice_option("--limit", type=click.IntRange(min=1), help=f"Draw at most N images.  [default: {LIMIT}]")
@choice_option("--all", "all_images", is_flag=True, help="Draw all images.")
@choice_option(
    "--examples",
    is_flag=False,
    flag_value=str(EXAMPLES),
    type=click.IntRange(min=1),
    metavar="[N]",
    help=f"Draw N overconfident, N underconfident and N well calibrated detections.  [default: {EXAMPLES}]",
)
@look_option(
    "--show-above",
    type=click.FloatRange(0, 1),
    metavar="T",
    help=f"Draw matched detections, and others above T; 0: all.  [default: the {MOST_SHOWN} most confident ones]",
)
@look_option(
    "--colours", type=click.Choice(list(PALETTES)), default="blue-orange", show_default=True, help="Use this palette."
)
@look_option(
    "--corners", type=click.Choice(CORNERS), default="ellipse", show_default=True, help="Draw covariances in this form."
)
@look_option("--heatmap", is_flag=True, help="Show the probability of every pixel, with a scale.")
@look_option(
    "--veil", type=click.FloatRange(0, 1), default=VEIL, show_default=True, help="Opacity of the white overlay, 0 to 1."
)
@look_option(
    "--label-text", type=click.Choice(LABELS), default="full", show_default=True, help="Label boxes with this."
)
@input_option("--images", type=click.Path(), metavar="DIR", help="Read photos from this folder.  [default: no photos]")
@input_option("--truth", type=click.Path(), metavar="FILE", help="Evaluate the detections on this ground truth first.")
@input_option(
    "--detections", type=click.Path(), metavar="FILE", help="Read masks and heatmaps from the evaluated detection file."
)
# No --image-ids: --image chooses.
@scoring_options(leave_out=["image_ids"])
@output_option("--out", type=click.Path(), metavar="DIR", required=True, help="Write pictures to DIR.")
@output_option(
    "--format", "ending", type=click.Choice(ENDINGS), default=ENDINGS[0], show_default=True,
    help="Write pictures in this file format."
)  # fmt: skip
@json_option
def command(
    source: str,
    truth: str | None,
    images: str | None,
    out: str,
    wanted: tuple[str, ...],
    limit: int | None,
    examples: int | None,
    all_images: bool,
    scoring: Scoring,
    detections: str | None,
    ending: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Draw images with objects and detections.

    SOURCE is a result of `probox evaluate --out`, or a detection file. A detection file is drawn alone, or evaluated
    first with --truth. Scoring options other than --label-threshold need --truth.

    True positives are blue, matches of another class purple, false positives and missed objects orange. By default, the
    20 most confident detections above the label threshold are drawn (docs/pictures.md).

    \b
    Examples:
      probox draw results --images val2017 --out pictures --worst 20
      probox draw results/ssd --images val2017 --out pictures --image 139 --heatmap --format pdf
      probox draw results --images val2017 --out examples --examples
      probox draw detections.json --images val2017 --out pictures
      probox draw detections.json --truth truth.json --preset paper --out pictures
    """
    choices = {name: options.pop(name.replace("-", "_")) for name in CHOICES}
    ranked = [(name, n) for name, n in choices.items() if n is not None]
    if len(ranked) + bool(wanted) + all_images + (limit is not None) + (examples is not None) > 1:
        flags = [f"--{name}" for name in ("image", "limit", "all", "examples", *CHOICES)]
        raise click.UsageError(f"use only one of {format_list(flags)}")
    photos = None if images is None else Path(images)
    if photos is not None and not photos.is_dir():
        raise InputError("not a folder, expected the folder of photos", file=str(images), remedy="check --images")
    evaluation, table = _read_evaluation(source, truth, detections, scoring)
    threshold = scoring.convention.fixed_threshold
    if examples is not None:
        if evaluation is None:
            raise click.UsageError("--examples needs ground truth: add --truth FILE, or name a result folder as SOURCE")
        evaluation = _at_threshold(evaluation, threshold)
        _write_examples(evaluation, table, examples, photos, Path(out), ending, options, as_json=as_json)
        return
    choice = Choice(wanted, ranked[0] if ranked else None, None if all_images else limit or LIMIT)
    show_above = options["show_above"]
    if evaluation is None:
        job = _plan_detections(source, threshold, photos, choice)
    else:
        job = _plan_evaluation(evaluation, threshold, table, photos, choice, best_threshold=show_above is None)
    written = _write(job, Path(out), ending, options, scoring.threads, quiet=as_json)
    pictures = [{"image_id": i, "file": str(p)} for i, p in zip(job.images, written, strict=True)]
    scores: dict[str, Any] = {}
    if as_json and job.evaluation is not None:
        scores = {"summary": job.evaluation.summary(), "convention": job.evaluation.recorded_convention.to_dict()}
    described = {"pictures": pictures, **scores, "show_above": show_above}
    print_outcome(described, job.notes, f"{with_count(len(written), 'picture')} written to {out}", as_json=as_json)


@dataclasses.dataclass(frozen=True)
class Choice:
    """Chosen images: given ones, the first of a ranking, or the first `limit` of all; None: no limit."""

    wanted: tuple[str, ...]
    ranked: tuple[str, int] | None
    limit: int | None

    def limit_ids(self, ids: list[int], notes: list[Note | str]) -> list[int]:
        """Return the first images, with a note on the others."""
        if self.limit is None or len(ids) <= self.limit:
            return ids
        notes.append(
            f"drew the first {self.limit:,} of {len(ids):,} images; "
            "use --all, --limit N, --worst N or --image ID for others"
        )
        return ids[: self.limit]


@dataclasses.dataclass(frozen=True)
class Job:
    """What to draw: file names and photos by image id, and the function that returns the view of an image."""

    images: dict[int, str]
    photos: dict[int, Path | None]
    view: Callable[[int, str], ImageView]
    notes: list[Note | str]
    evaluation: Evaluation | None = None
    """The result, if there is ground truth."""
    shown_above: float | None = None
    """The label threshold of detections without ground truth."""


def _at_threshold(evaluation: Evaluation, threshold: float | None) -> Evaluation:
    if threshold is None or threshold == evaluation.convention.fixed_threshold:
        return evaluation
    return evaluation.at_threshold(threshold)


def _plan_evaluation(
    evaluation: Evaluation,
    threshold: float | None,
    table: Detections | None,
    photos: Path | None,
    choice: Choice,
    *,
    best_threshold: bool,
) -> Job:
    """Return what to draw of a result, at a threshold or the best one; `table` has masks and heatmaps, if any."""
    from probox.analysis.ranking import choose_images, find_images, find_seen_images
    from probox.files.photos import find_photo
    from probox.pictures.view import at_best_threshold, view_of_image

    seen = find_seen_images(evaluation)  # before a threshold removes detections
    notes: list[Note | str] = []
    if threshold is not None:
        evaluation = _at_threshold(evaluation, threshold)
    elif best_threshold and (best := at_best_threshold(evaluation)) is not evaluation:
        notes.append(
            f"only detections above {best.convention.label_threshold:.4g} are matched and drawn: PDQ of these images "
            f"is highest there ({100 * best.pdq:.2f}%, with all detections {100 * evaluation.pdq:.2f}%); "
            "--label-threshold T sets another threshold, --show-above 0 draws all detections"
        )
        evaluation = best
    listed = choice.limit is None or choice.wanted or (choice.ranked and choice.ranked[0] == "missed")
    if not seen.all() and not listed:
        notes.append(
            f"skipped {with_count(int((~seen).sum()), 'image')} without detections: the detector probably ran on the "
            "others only; --missed N, --image ID and --all draw them"
        )
    dataset = evaluation.dataset
    if choice.wanted:
        ids = find_images(evaluation, choice.wanted)
    elif choice.ranked is not None:
        name, n = choice.ranked
        ids = choose_images(evaluation, name, n, seen=seen)
        if len(ids) < n:
            _, quantity = CHOICES[name]
            notes.append(f"--{name}: requested {with_count(n, 'image')} with {quantity}, found {len(ids):,}")
    else:
        ids = choice.limit_ids(dataset.image_ids[seen | (choice.limit is None)].tolist(), notes)
    names = dict(zip(dataset.image_ids.tolist(), dataset.file_names, strict=True))
    shown = {image_id: find_photo(photos, image_id, names[image_id]) if photos else None for image_id in ids}
    return Job(
        {image_id: names[image_id] for image_id in ids}, shown,
        lambda image_id, name: view_of_image(evaluation, image_id, table),
        notes + _describe_missing_photos(ids, shown, photos),
        evaluation,
    )  # fmt: skip


def _plan_detections(source: str, threshold: float | None, photos: Path | None, choice: Choice) -> Job:
    """Return what to draw of detections without ground truth."""
    import numpy as np

    from probox.pictures.standalone import read_standalone
    from probox.pictures.view import view_of_detections

    if choice.ranked is not None and choice.ranked[0] != "crowded":
        raise click.UsageError(f"--{choice.ranked[0]} needs ground truth: add --truth FILE, or name a result as SOURCE")
    alone = read_standalone(source, photos)
    table = alone.detections
    notes: list[Note | str] = list(table.notes)
    if threshold is not None:
        table = table.select(table.label_probs.max(axis=1, initial=0.0) > np.float32(threshold))
    every, counts = np.unique(table.image_ids, return_counts=True)
    ids = every.tolist()
    if choice.wanted:
        known = set(map(str, ids))
        unknown = [text for text in choice.wanted if text not in known]
        if unknown:
            raise InputError(f"no detections in image {unknown[0]!r}", file=source, remedy="give another image id")
        ids = list(map(int, choice.wanted))
    elif choice.ranked is not None:
        ids = every[np.argsort(-counts, kind="stable")[: choice.ranked[1]]].tolist()
    else:
        ids = choice.limit_ids(ids, notes)
    names = {image_id: photo.name if (photo := alone.photos[image_id]) else "" for image_id in ids}
    return Job(
        names, alone.photos,
        lambda image_id, name: view_of_detections(table, image_id, alone.sizes[image_id], name, threshold),
        notes + _describe_missing_photos(ids, alone.photos, photos),
        shown_above=SHOWN_ABOVE if threshold is None else threshold,
    )  # fmt: skip


def _describe_missing_photos(
    image_ids: Iterable[int], photos: dict[int, Path | None], folder: Path | None
) -> list[Note | str]:
    """Return a note on images without a photo in the folder, if there are any."""
    missing = [image_id for image_id in image_ids if photos.get(image_id) is None]
    if folder is None or not missing:
        return []
    return [
        f"{with_count(len(missing), 'image')} without a photo in {folder} (first: {missing[0]}): drawn on a plain "
        "background"
    ]


def _name_files(images: dict[int, str]) -> dict[int, str]:
    """Return a name per picture: that of the photo if it is valid and unique, else the image id."""
    stems = {i: re.sub(r"[^\w.-]+", "_", Path(name.replace("\\", "/")).stem)[:80] for i, name in images.items()}
    counts = collections.Counter(stem.lower() for stem in stems.values())
    return {i: stem if stem.strip("._") and counts[stem.lower()] == 1 else f"image-{i}" for i, stem in stems.items()}


def _read_evaluation(
    source: str, truth: str | None, detections: str | None, scoring: Scoring
) -> tuple[Evaluation | None, Detections | None]:
    """Return the loaded or computed result, and detections with masks and heatmaps; None without ground truth."""
    from probox.evaluation.evaluate import evaluate
    from probox.evaluation.folders import only_result, read_again
    from probox.evaluation.result import Evaluation
    from probox.formats import read_truth
    from probox.formats.parquet.shards import is_parquet_source

    result = only_result(source)
    idle = [flag for flag in scoring.typed if flag not in ("--label-threshold", "--threads")]
    if idle and (result is not None or truth is None):
        why = (
            "SOURCE is a result, already scored: leave it out"
            if result
            else "--truth is missing: add --truth FILE, or leave it out"
        )
        raise click.UsageError(f"{idle[0]} only applies to a detection file with --truth, but {why}")
    if result is not None:
        evaluation = Evaluation.load(result)
        if detections is None:
            return evaluation, None
        return evaluation, read_again(detections, evaluation, read_truth(truth) if truth else None)
    if truth is not None:
        ground_truth, table = scoring.read(truth, source, "draw")
        return evaluate(ground_truth, table, convention=scoring.convention, threads=scoring.threads), table
    if Path(source).is_dir() and not is_parquet_source(source):
        raise InputError(
            "contains no results",
            file=source,
            remedy="give a folder written by `probox evaluate --out`, or add --truth FILE",
        )
    return None, None


def _draw(
    tasks: Iterable[Task],
    names: list[str],
    folder: Path,
    notes: list[Note | str],
    *,
    bar: str = "pictures",
    quiet: bool,
    processes: int = 1,
    page: Callable[[], bytes] | None = None,
) -> list[Path]:
    """Draw pictures and an optional page of them into a folder, all or none."""
    from probox.files.output import output_folder
    from probox.pictures.batch import draw_tasks
    from probox.support.optional import require

    require("matplotlib", extra="report")
    written: list[Path] = []
    files = names if page is None else [*names, PAGE]
    with output_folder(folder, "draw", names=files) as out, progress_bar(bar, quiet=quiet) as progress:
        progress(0, len(names))
        for name, drawn in zip(names, draw_tasks(tasks, processes), strict=True):
            if drawn.problem is not None:
                notes.append(f"{drawn.problem}: drawn on a plain background")
            written.append(out.write(name, drawn.content))
            progress(len(written), len(names))
        if page is not None:
            out.write(PAGE, page())
    return written


def _write(
    job: Job, folder: Path, ending: str, options: dict[str, Any], threads: int | None, *, quiet: bool
) -> list[Path]:
    """Draw the images of a job; add a note on detections that are not drawn."""
    from probox.pictures.batch import Task, process_count

    hidden: list[int] = []  # number of hidden detections per picture, if any
    above = options["show_above"]

    def tasks() -> Iterator[Task]:
        for image_id, file_name in job.images.items():
            view = job.view(image_id, file_name)
            left_out = len(view.detections) - len(view.shown(above)[0])
            hidden.extend([left_out] if left_out else [])
            yield Task(view, job.photos.get(image_id), options, ending)

    stems = _name_files(job.images)
    names = [f"{stems[image_id]}.{ending}" for image_id in job.images]
    processes = process_count(threads, len(names))
    written = _draw(tasks(), names, folder, job.notes, quiet=quiet, processes=processes)
    if hidden:
        limit = f"at most {MOST_SHOWN} each" if above is None else f"matched ones and those above {above:g}"
        if above is None and job.shown_above is not None:
            limit += f", above {job.shown_above:g}"
        verb = "is" if sum(hidden) == 1 else "are"
        job.notes.append(
            f"{with_count(sum(hidden), 'detection')} in {with_count(len(hidden), 'picture')} {verb} not drawn: "
            f"pictures show {limit}; --show-above 0 draws all"
        )
    return written


def _write_examples(
    evaluation: Evaluation,
    table: Detections | None,
    n: int,
    photos: Path | None,
    folder: Path,
    ending: str,
    options: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Find examples, draw them, write a page with all of them, and print the files."""
    from probox.analysis.examples import example_detections
    from probox.files.photos import find_photo
    from probox.pictures.batch import Task
    from probox.pictures.example_pictures import example_page, view_of_example

    examples = example_detections(evaluation, n)
    notes: list[Note | str] = list(examples.notes)
    look = {name: value for name, value in options.items() if name != "label_text"} | {"show_above": 0.0}
    counts: collections.Counter[str] = collections.Counter()
    names: list[str] = []
    for example in examples:
        counts[example.kind] += 1
        names.append(f"{example.kind}-{counts[example.kind]}.{ending}")
    shown: dict[int, Path | None] = {}

    def tasks() -> Iterator[Task]:
        for example in examples:
            view = view_of_example(evaluation, example, table)
            photo = find_photo(photos, example.image_id, view.file_name) if photos else None
            shown[example.image_id] = photo
            yield Task(view, photo, {**look, "caption": example.caption}, ending,
                       draw="probox.pictures.example_pictures:draw_example")  # fmt: skip

    def page() -> bytes:
        notes.extend(_describe_missing_photos(shown, shown, photos))
        return example_page(list(zip(examples, names, strict=True)), "Examples", notes, options["colours"])

    written = _draw(tasks(), names, folder, notes, bar="examples", quiet=as_json, page=page)
    files = list(zip(examples, written, strict=True))
    listed = [{**dataclasses.asdict(example), "file": str(path)} for example, path in files]
    lines = [f"{path.name}: {example.caption}" for example, path in files]
    lines.append(f"{with_count(len(written), 'example')} written to {folder / PAGE}")
    print_outcome({"examples": listed, "page": str(folder / PAGE)}, notes, *lines, as_json=as_json)
