"""`probox draw`: pictures of images with their objects and detections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from probox.analysis.image_ranking import CHOICES
from probox.cli.console import note, print_json, progress_bar
from probox.cli.draw_job import LIMIT, Choice, Job, file_names, job_of_detections, job_of_evaluation, photo_folder
from probox.cli.scoring import Scoring, scoring_options
from probox.errors import InputError
from probox.pictures.drawing import CORNERS, LABELS, VEIL
from probox.pictures.style import ENDINGS, PALETTES
from probox.pictures.view import MOST_SHOWN, SHOWN_ABOVE
from probox.support.words import with_count

STORIES = 3
"""So many examples of each kind, unless somebody says how many."""


def _choices(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each way to choose images."""
    for name, words in reversed(CHOICES.items()):
        option = click.option(f"--{name}", type=click.IntRange(min=1), metavar="N", help=f"The N images {words}.")
        command = option(command)
    return command


@click.command("draw")
@click.argument("source", type=click.Path())
@click.option("--truth", type=click.Path(), metavar="FILE", help="Judge a file of detections by this ground truth.")
@click.option("--images", type=click.Path(), metavar="DIR", help="Photos [default: a plain ground].")
@click.option("--out", type=click.Path(), metavar="DIR", required=True, help="Where pictures go.")
@click.option("--image", "wanted", multiple=True, metavar="ID", help="This image, by id or file name; may be repeated.")
@_choices
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help=f"At most N images of all [default: {LIMIT}].")
@click.option(
    "--stories",
    is_flag=False,
    flag_value=str(STORIES),
    type=click.IntRange(min=1),
    metavar="[N]",
    help=f"Examples of detections that were too sure, not sure enough, and as sure as they should be: N of each "
    f"[default: {STORIES}].",
)
@click.option("--all", "all_images", is_flag=True, help="All images, however many there are.")
# Not --images, which are the photos here: --image chooses.
@scoring_options(leave_out=["images"])
@click.option(
    "--show-above",
    type=click.FloatRange(0, 1),
    metavar="T",
    help="Draw all matched detections, and the others above T; 0 draws all. Matches do not change "
    f"[default: the {MOST_SHOWN} most confident detections above the label threshold].",
)
@click.option("--colours", type=click.Choice(list(PALETTES)), default="blue-orange", show_default=True)
@click.option("--corners", type=click.Choice(CORNERS), default="ellipse", show_default=True)
@click.option("--heatmap", is_flag=True, help="Show P(x), the probability of every pixel, with a scale.")
@click.option(
    "--veil", type=click.FloatRange(0, 1), default=VEIL, show_default=True, help="White over the photo; 0: none."
)
@click.option("--labels", type=click.Choice(LABELS), default="full", show_default=True)
@click.option("--detections", type=click.Path(), metavar="FILE", help="Where to find heatmaps (see above).")
@click.option("--format", "ending", type=click.Choice(ENDINGS), default=ENDINGS[0], show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def command(
    source: str,
    truth: str | None,
    images: str | None,
    out: str,
    wanted: tuple[str, ...],
    limit: int | None,
    stories: int | None,
    all_images: bool,
    scoring: Scoring,
    show_above: float | None,
    detections: str | None,
    ending: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Draw images with objects and detections.

    SOURCE is a folder that `probox evaluate --out` wrote, if there is one result in it, or that of one of its
    results; or a file of detections, which is drawn as it is or, with --truth, judged first. Colours: true positives
    are blue (mask and box), matches of the wrong class purple, false positives (box) and missed objects (mask) orange.
    Options of scoring, from --preset to --threads, say how to judge by --truth; a result was judged when it was made,
    and takes --label-threshold alone.

    Without a choice of images the first 50 are drawn. --worst ranks images by lost points: TP + FP + FN minus the sum
    of pPDQ. Images that the detector seems not to have seen are drawn by --missed, --image and --all only.

    A picture shows the 20 most confident detections above the label threshold, and states this limit. The threshold
    is that of --label-threshold or of the result. A result of all detections is drawn at the threshold where its PDQ
    is highest on these images. Detections below the threshold are left out before matching, as by `probox evaluate`.
    Without ground truth the threshold is 0.3.

    --stories looks for examples instead and writes a picture of each with its caption, and index.html with all of them:
    boxes whose errors are far beyond their sigmas, or far below, or as they should be, and wrong labels that were sure.

    Heatmaps of probabilistic segmentation are not kept in SOURCE: name the file that was evaluated with
    --detections to see them.

    All pictures appear when the last is drawn. Those that an earlier `probox draw` wrote are replaced; any other file
    of the same name, such as a photo, is refused.

    \b
    probox draw results --images val2017 --out pictures --worst 20
    probox draw results/ssd --images val2017 --out pictures --image 139 --heatmap --format pdf
    probox draw results --images val2017 --out stories --stories
    probox draw detections.json --images val2017 --out pictures
    probox draw detections.json --truth truth.json --preset paper --clip corners --out pictures --worst 20
    """
    choices = {name: options.pop(name.replace("-", "_")) for name in CHOICES}
    chosen = [(name, n) for name, n in choices.items() if n is not None]
    if len(chosen) + bool(wanted) + all_images + (limit is not None) + (stories is not None) > 1:
        raise click.UsageError(
            "choose images by --image, by --limit, --all, --stories, or by one of --worst, --best, ..."
        )
    choice = Choice(wanted, chosen[0] if chosen else None, None if all_images else limit or LIMIT)
    options["show_above"] = show_above
    if stories is not None:
        from probox.cli.draw_stories import write_stories

        evaluation, found = _judged(source, truth, detections, scoring)
        if evaluation is None:
            raise click.UsageError("--stories needs a truth: give --truth, or a folder of results")
        write_stories(evaluation, found, stories, photo_folder(images), Path(out), ending, options, as_json=as_json)
        return
    job = _job_of(source, truth, detections, scoring, photo_folder(images), choice, best_threshold=show_above is None)
    written = _write(job, Path(out), ending, options, scoring.threads, quiet=as_json)
    if as_json:
        pictures = [{"image_id": i, "file": str(p)} for i, p in written]
        print_json({"pictures": pictures, **job.judgement(), "show_above": show_above, "notes": job.notes})
        return
    for text in job.notes:
        note(f"note: {text}")
    note(f"{with_count(len(written), 'picture')} written to {out}")


def _job_of(
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
    evaluation, found = _judged(source, truth, detections, scoring, at_threshold=False)
    if evaluation is None:
        return job_of_detections(source, threshold, photos, choice)
    at = None if evaluation.convention.fixed_threshold == threshold else threshold
    best_threshold &= threshold is None
    return job_of_evaluation(evaluation, at, found, photos, choice, best_threshold=best_threshold)


def _judged(
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
        _refuse_scoring(scoring, "a result was judged when it was made" if result else "without --truth none is judged")
    if result is not None:
        evaluation = Evaluation.load(result)
        if detections is not None:
            found = read_again(detections, evaluation, read_truth(truth) if truth else None)
        if at_threshold and threshold is not None:
            evaluation = evaluation.at_threshold(threshold)
        return evaluation, found
    from probox.formats.parquet.sets import is_parquet_source

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


def _refuse_scoring(scoring: Scoring, why: str) -> None:
    """Raise if options of scoring were given that would change nothing."""
    idle = [flag for flag in scoring.typed if flag not in ("--label-threshold", "--threads")]
    if idle:
        raise click.UsageError(f"{idle[0]} says how to judge a file of detections by --truth, but {why}")


def _write(
    job: Job, folder: Path, ending: str, options: dict[str, Any], threads: int | None, *, quiet: bool
) -> list[tuple[int, Path]]:
    from probox.files.output import output_folder
    from probox.pictures.many import Task, draw_tasks, process_count
    from probox.support.optional import require

    require("matplotlib", extra="report")
    written: list[tuple[int, Path]] = []
    hidden = [0, 0]  # detections, pictures
    names = {image_id: f"{stem}.{ending}" for image_id, stem in file_names(job.images).items()}

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
        if above is None and not job.judgement():
            limit += f", above {SHOWN_ABOVE if job.threshold is None else job.threshold:g}"
        job.notes.append(
            f"detections not drawn: {hidden[0]:,}, in {hidden[1]:,} picture{'s' * (hidden[1] != 1)}; "
            f"pictures show {limit}; --show-above 0 draws all"
        )
    return written
