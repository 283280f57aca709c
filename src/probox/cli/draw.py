"""`probox draw`: pictures of images with their detections, and of example detections."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from probox.analysis.ranking import CHOICES
from probox.cli.console import note, notes_as_json, print_json, print_notes, progress_bar
from probox.cli.scoring import Scoring, scoring_options
from probox.cli.shared_options import GroupedCommand, input_option, json_option, option_group, output_option
from probox.errors import InputError
from probox.notes import Note
from probox.pictures.drawing import CORNERS, LABELS, VEIL
from probox.pictures.style import ENDINGS, PALETTES
from probox.pictures.view import MOST_SHOWN, SHOWN_ABOVE
from probox.support.formatting import with_count

LIMIT = 50
"""So many pictures are drawn unless somebody asks for more."""


@dataclasses.dataclass(frozen=True)
class Choice:
    """Which images: given ones, the first of a ranking, or the first `limit` of all; None: no limit."""

    wanted: tuple[str, ...] = ()
    ranked: tuple[str, int] | None = None
    limit: int | None = LIMIT


@dataclasses.dataclass
class Job:
    """What to draw: a table, its images, and the photo of each."""

    source: Any
    images: list[tuple[int, str]]
    photos: dict[int, Path | None]
    sizes: dict[int, tuple[int, int]]
    heatmaps: Any
    notes: list[Note | str]
    threshold: float | None = None
    """Of detections without ground truth."""

    def describe_scores(self) -> dict[str, Any]:
        """Return how detections were judged and with which numbers, for JSON; nothing if they were not."""
        convention = getattr(self.source, "convention", None)
        return {} if convention is None else {"summary": self.source.summary(), "convention": convention.to_dict()}

    def view(self, image_id: int, file_name: str) -> Any:
        """Return one image."""
        from probox.pictures.view import view_of_detections, view_of_image
        from probox.tables.detections import Detections

        if isinstance(self.source, Detections):
            return view_of_detections(self.source, image_id, self.sizes[image_id], file_name, self.threshold)
        return view_of_image(self.source, image_id, self.heatmaps)


def check_photo_folder(images: str | None) -> Path | None:
    """Return the folder of photos, if one was given."""
    if images is None:
        return None
    if not Path(images).is_dir():
        raise InputError("is not a folder", file=images, remedy="give the folder of photos")
    return Path(images)


def plan_evaluation(
    evaluation: Any, threshold: float | None, found: Any, photos: Path | None, choice: Choice, *, best_threshold: bool
) -> Job:
    """Return what to draw of an evaluation, at a threshold or the best one; `found` has heatmaps, if there are any."""
    from probox.analysis.ranking import CHOICES, choose_images, find_images, find_seen_images
    from probox.files.photos import find_photo
    from probox.pictures.view import at_best_threshold

    seen = find_seen_images(evaluation)  # before a threshold empties some
    notes: list[Note | str] = []
    if threshold is not None:
        evaluation = evaluation.at_threshold(threshold)
    elif best_threshold and (best := at_best_threshold(evaluation)) is not evaluation:
        notes.append(
            f"only detections above {best.convention.label_threshold:.4g} are matched and drawn: PDQ is highest there "
            f"on these images ({100 * best.pdq:.2f}, with all detections {100 * evaluation.pdq:.2f}); "
            "--label-threshold T sets a threshold, --show-above 0 draws all detections"
        )
        evaluation = best
    listed = choice.limit is None or choice.wanted or (choice.ranked and choice.ranked[0] == "missed")
    if not seen.all() and not listed:
        notes.append(
            f"{(~seen).sum():,} images without any detection were passed over: the detector seems to have seen the "
            "others only; --missed N, --image ID and --all draw them too"
        )
    if choice.wanted:
        ids = find_images(evaluation, choice.wanted)
    elif choice.ranked is not None:
        ids = choose_images(evaluation, *choice.ranked, seen=seen)
        name, n = choice.ranked
        if len(ids) < n:
            notes.append(f"fewer than {n:,} images have {CHOICES[name].split(' ', 2)[2]}: {len(ids):,}")
    else:
        every = evaluation.dataset.image_ids
        ids = _limit(every.tolist() if choice.limit is None else every[seen].tolist(), choice, notes)
    names = dict(zip(evaluation.dataset.image_ids.tolist(), evaluation.dataset.file_names, strict=True))
    shown = {image_id: find_photo(photos, image_id, names[image_id]) if photos else None for image_id in ids}
    job = Job(evaluation, [(image_id, names[image_id]) for image_id in ids], shown, {}, found, notes)
    if photos is not None:
        notes += describe_missing_photos([i for i, _ in job.images if job.photos.get(i) is None], photos)
    return job


def _limit(ids: list[int], choice: Choice, notes: list[Note | str]) -> list[int]:
    """Return the first images, and say how many others there are."""
    if choice.limit is None or len(ids) <= choice.limit:
        return ids
    notes.append(
        f"the first {choice.limit:,} of {len(ids):,} images were drawn; --all draws them all, --limit N more, "
        "--worst N or --image ID others"
    )
    return ids[: choice.limit]


def plan_detections(source: str, threshold: float | None, photos: Path | None, choice: Choice) -> Job:
    """Return what to draw of detections that nothing is compared with."""
    import numpy as np

    from probox.pictures.standalone import read_standalone

    if choice.ranked is not None and choice.ranked[0] != "crowded":
        raise click.UsageError(f"--{choice.ranked[0]} needs a truth: give --truth, or a folder of results")
    alone = read_standalone(source, photos)
    table = alone.detections
    notes: list[Note | str] = list(table.notes)
    if threshold is not None:
        table = table.select(table.label_probs.max(axis=1, initial=0.0) > np.float32(threshold))
    ids, counts = np.unique(table.image_ids, return_counts=True)
    if choice.ranked is not None:
        ids = ids[np.argsort(-counts, kind="stable")[: choice.ranked[1]]]
    listed = ids.tolist()
    if choice.wanted:
        unknown = [text for text in choice.wanted if text not in {str(image_id) for image_id in listed}]
        if unknown:
            raise InputError(f"no detections in image {unknown[0]!r}", file=source, remedy="give an image id")
        listed = [int(text) for text in choice.wanted]
    elif choice.ranked is None:
        listed = _limit(listed, choice, notes)
    names = {image_id: alone.photos[image_id].name if alone.photos[image_id] else "" for image_id in listed}  # type: ignore[union-attr]
    job = Job(table, [(i, names[i]) for i in listed], alone.photos, alone.sizes, None, notes, threshold)
    if photos is not None:
        notes += describe_missing_photos([i for i, _ in job.images if job.photos.get(i) is None], photos)
    return job


def describe_missing_photos(missing: list[int], photos: Path) -> list[str]:
    """Return what to say of images whose photo is not in the folder, if there are any."""
    if not missing:
        return []
    return [f"{with_count(len(missing), 'image')} without a photo in {photos} (the first: {missing[0]}): plain ground"]


def name_files(images: list[tuple[int, str]]) -> dict[int, str]:
    """Return a name per picture: the photo's, if it is fit for a file and no other image has it, else the id."""
    stems = {i: re.sub(r"[^\w.-]+", "_", Path(name.replace("\\", "/")).stem)[:80] for i, name in images}
    counts: dict[str, int] = {}
    for stem in stems.values():
        counts[stem.lower()] = counts.get(stem.lower(), 0) + 1
    return {i: stem if stem.strip("._") and counts[stem.lower()] == 1 else f"image-{i}" for i, stem in stems.items()}


EXAMPLES = 3
"""Examples of each kind, unless the user gives a number."""

choice_option = option_group("Choice of images")
look_option = option_group("Look")


def _choices(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each way to choose images."""
    for name, words in reversed(CHOICES.items()):
        text = f"Draw the N images {words}."
        command = choice_option(f"--{name}", type=click.IntRange(min=1), help=text)(command)
    return command


@click.command("draw", cls=GroupedCommand)
@click.argument("source", type=click.Path())
@choice_option("--image", "wanted", multiple=True, metavar="ID", help="Draw the image of this id or file name; repeat.")
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
    help="Draw all matched detections, and the others above T; 0 draws all. Matches do not change.  "
    f"[default: the {MOST_SHOWN} most confident detections above the label threshold]",
)
@look_option(
    "--colours", type=click.Choice(list(PALETTES)), default="blue-orange", show_default=True, help="Choose a palette."
)
@look_option(
    "--corners", type=click.Choice(CORNERS), default="ellipse", show_default=True, help="Draw covariances like this."
)
@look_option("--heatmap", is_flag=True, help="Show P(x), the probability of every pixel, with a scale.")
@look_option(
    "--veil",
    type=click.FloatRange(0, 1),
    default=VEIL,
    show_default=True,
    help="Opacity of the white overlay, 0 to 1.",
)
@look_option("--label-text", type=click.Choice(LABELS), default="full", show_default=True, help="Write this on boxes.")
@input_option("--images", type=click.Path(), metavar="DIR", help="Folder of photos.  [default: no photos]")
@input_option(
    "--truth", type=click.Path(), metavar="FILE", help="Evaluate a file of detections on this ground truth first."
)
@input_option("--detections", type=click.Path(), metavar="FILE", help="Read heatmaps from FILE (see above).")
# Not --image-ids: --image chooses.
@scoring_options(leave_out=["image_ids"])
@output_option("--out", type=click.Path(), metavar="DIR", required=True, help="Write pictures to DIR.")
@output_option(
    "--format",
    "ending",
    type=click.Choice(ENDINGS),
    default=ENDINGS[0],
    show_default=True,
    help="File format of pictures.",
)
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
    show_above: float | None,
    detections: str | None,
    ending: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Draw images with objects and detections.

    SOURCE is a result that `probox evaluate --out` wrote, or a folder with one; or a file of detections, which is drawn
    as it is or, with --truth, evaluated first. Colours: true positives are blue (mask and box), matches of the wrong
    class purple, false positives (box) and missed objects (mask) orange. Scoring options are for --truth; a result
    takes --label-threshold only.

    Without a choice of images the first 50 are drawn. --worst ranks images by lost points: TP + FP + FN minus the sum
    of pPDQ. Images without any detection are drawn by --missed, --image and --all only.

    A picture shows the 20 most confident detections above the label threshold, and states this limit. The threshold
    is that of --label-threshold or of the result. A result of all detections is drawn at the threshold where its PDQ
    is highest on these images. Detections below the threshold are left out before matching, as by `probox evaluate`.
    Without ground truth the threshold is 0.3.

    --examples draws example detections instead, each with its caption, and index.html with all of them: boxes whose
    errors are far beyond their standard deviations, or far below, or as predicted, and confident wrong labels.

    Heatmaps of probabilistic segmentation are not kept in SOURCE: name the file that was evaluated with
    --detections to see them.

    All pictures appear when the last is drawn. Those that an earlier `probox draw` wrote are replaced; any other file
    of the same name, such as a photo, is refused.

    \b
    probox draw results --images val2017 --out pictures --worst 20
    probox draw results/ssd --images val2017 --out pictures --image 139 --heatmap --format pdf
    probox draw results --images val2017 --out examples --examples
    probox draw detections.json --images val2017 --out pictures
    probox draw detections.json --truth truth.json --preset paper --clip corners --out pictures --worst 20
    """
    choices = {name: options.pop(name.replace("-", "_")) for name in CHOICES}
    chosen = [(name, n) for name, n in choices.items() if n is not None]
    if len(chosen) + bool(wanted) + all_images + (limit is not None) + (examples is not None) > 1:
        raise click.UsageError(
            "choose images by --image, by --limit, --all, --examples, or by one of --worst, --best, ..."
        )
    choice = Choice(wanted, chosen[0] if chosen else None, None if all_images else limit or LIMIT)
    options["show_above"] = show_above
    if examples is not None:
        evaluation, found = _read_evaluation(source, truth, detections, scoring)
        if evaluation is None:
            raise click.UsageError("--examples needs a truth: give --truth, or a folder of results")
        write_examples(
            evaluation, found, examples, check_photo_folder(images), Path(out), ending, options, as_json=as_json
        )
        return
    job = _plan_job(
        source, truth, detections, scoring, check_photo_folder(images), choice, best_threshold=show_above is None
    )
    written = _write(job, Path(out), ending, options, scoring.threads, quiet=as_json)
    if as_json:
        pictures = [{"image_id": i, "file": str(p)} for i, p in written]
        print_json(
            {"pictures": pictures, **job.describe_scores(), "show_above": show_above, "notes": notes_as_json(job.notes)}
        )
        return
    print_notes(job.notes)
    note(f"{with_count(len(written), 'picture')} written to {out}")


def _plan_job(
    source: str,
    truth: str | None,
    detections: str | None,
    scoring: Scoring,
    photos: Path | None,
    choice: Choice,
    *,
    best_threshold: bool,
) -> Job:
    """Return what to draw of a result, of detections that are judged first, or of detections alone."""
    threshold = scoring.convention.fixed_threshold
    evaluation, found = _read_evaluation(source, truth, detections, scoring, at_threshold=False)
    if evaluation is None:
        return plan_detections(source, threshold, photos, choice)
    at = None if evaluation.convention.fixed_threshold == threshold else threshold
    best_threshold &= threshold is None
    return plan_evaluation(evaluation, at, found, photos, choice, best_threshold=best_threshold)


def _read_evaluation(
    source: str, truth: str | None, detections: str | None, scoring: Scoring, *, at_threshold: bool = True
) -> tuple[Any, Any]:
    """Return the evaluation that was made or is made now, and detections with heatmaps; None without any truth."""
    from probox.evaluation.folders import only_result, read_again
    from probox.evaluation.result import Evaluation
    from probox.formats import read_truth

    found: Any = None
    threshold = scoring.convention.fixed_threshold
    result = only_result(source)
    if result is not None or truth is None:
        _check_scoring(scoring, "a result was judged when it was made" if result else "without --truth none is judged")
    if result is not None:
        evaluation = Evaluation.load(result)
        if detections is not None:
            found = read_again(detections, evaluation, read_truth(truth) if truth else None)
        if at_threshold and threshold is not None:
            evaluation = evaluation.at_threshold(threshold)
        return evaluation, found
    from probox.formats.parquet.shards import is_parquet_source

    if truth is not None:
        from probox.evaluation.evaluate import evaluate

        table, found = scoring.read(truth, source, "draw")
        return evaluate(table, found, convention=scoring.convention, threads=scoring.threads), found
    if Path(source).is_dir() and not is_parquet_source(source):
        raise InputError(
            "holds no evaluation.json",
            file=source,
            remedy="give a folder that `probox evaluate --out` wrote, or --truth",
        )
    return None, None


def _check_scoring(scoring: Scoring, why: str) -> None:
    """Raise if options of scoring were given that would change nothing."""
    idle = [flag for flag in scoring.typed if flag not in ("--label-threshold", "--threads")]
    if idle:
        raise click.UsageError(f"{idle[0]} says how to judge a file of detections by --truth, but {why}")


def _write(
    job: Job, folder: Path, ending: str, options: dict[str, Any], threads: int | None, *, quiet: bool
) -> list[tuple[int, Path]]:
    from probox.files.output import output_folder
    from probox.pictures.batch import Task, draw_tasks, process_count
    from probox.support.optional import require

    require("matplotlib", extra="report")
    written: list[tuple[int, Path]] = []
    hidden = [0, 0]  # detections, pictures
    names = {image_id: f"{stem}.{ending}" for image_id, stem in name_files(job.images).items()}

    def tasks() -> Iterator[Task]:
        for image_id, file_name in job.images:
            view = job.view(image_id, file_name)
            left_out = len(view.detections) - len(view.shown(options["show_above"])[0])
            hidden[0] += left_out
            hidden[1] += left_out > 0
            yield Task(view, job.photos.get(image_id), options, ending)

    with (
        output_folder(folder, "draw", names=names.values()) as out,
        progress_bar("pictures", quiet=quiet) as progress,
    ):
        progress(0, len(job.images))
        pictures = draw_tasks(tasks(), process_count(threads, len(job.images)))
        for (image_id, _), drawn in zip(job.images, pictures, strict=True):
            if drawn.problem is not None:
                job.notes.append(f"{drawn.problem}: plain ground")
            written.append((image_id, out.write(names[image_id], drawn.content)))
            progress(len(written), len(job.images))
    if hidden[0]:
        above = options["show_above"]
        limit = f"at most {MOST_SHOWN} each" if above is None else f"matched ones and those above {above:g}"
        if above is None and not job.describe_scores():
            limit += f", above {SHOWN_ABOVE if job.threshold is None else job.threshold:g}"
        job.notes.append(
            f"detections not drawn: {hidden[0]:,}, in {hidden[1]:,} picture{'s' * (hidden[1] != 1)}; "
            f"pictures show {limit}; --show-above 0 draws all"
        )
    return written


PAGE = "index.html"


def write_examples(
    evaluation: Any,
    found: Any,
    n: int,
    photos: Path | None,
    folder: Path,
    ending: str,
    options: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Find examples, draw them, write a page with all of them, and say what was written."""
    from probox.analysis.examples import example_detections
    from probox.files.output import output_folder
    from probox.files.photos import find_photo
    from probox.pictures.batch import Task, draw_task
    from probox.pictures.example_pictures import example_page, view_of_example
    from probox.support.optional import require

    require("matplotlib", extra="report")
    told = example_detections(evaluation, n)
    notes: list[Note | str] = list(told.notes)
    look = {name: value for name, value in options.items() if name not in ("label_text", "show_above")}
    names, counts = [], dict.fromkeys((example.kind for example in told), 0)
    for example in told:
        counts[example.kind] += 1
        names.append(f"{example.kind}-{counts[example.kind]}.{ending}")
    written = []
    bare: dict[int, None] = {}  # images without a photo, in their order: an image may have examples of several kinds
    with (
        output_folder(folder, "draw", names=[*names, PAGE]) as out,
        progress_bar("examples", quiet=as_json) as progress,
    ):
        for done, (example, name) in enumerate(zip(told, names, strict=True)):
            progress(done, len(names))
            view = view_of_example(evaluation, example, found)
            photo = find_photo(photos, example.image_id, view.file_name) if photos else None
            if photos and photo is None:
                bare[example.image_id] = None
            task = Task(view, photo, {**look, "caption": example.caption, "show_above": 0.0}, ending,
                        draw="probox.pictures.example_pictures:draw_example")  # fmt: skip
            drawn = draw_task(task)
            if drawn.problem is not None:
                notes.append(f"{drawn.problem}: plain ground")
            written.append((example, out.write(name, drawn.content)))
        progress(len(written), len(names))
        if photos:
            notes += describe_missing_photos(list(bare), photos)
        page = out.write(PAGE, example_page(list(zip(told, names, strict=True)), "Examples", notes, options["colours"]))
    if as_json:
        listed = [{**dataclasses.asdict(example), "file": str(path)} for example, path in written]
        print_json({"examples": listed, "page": str(page), "notes": notes_as_json(notes)})
        return
    print_notes(notes)
    for example, path in written:
        note(f"{path.name}: {example.caption}")
    note(f"{len(written)} examples written to {page}")
