"""`probox draw`: pictures of images with their objects and detections."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from probox.analysis.image_ranking import CHOICES
from probox.cli.console import note, print_json, progress_bar
from probox.cli.scoring import Scoring, scoring_options
from probox.errors import InputError
from probox.pictures.drawing import CORNERS, LABELS
from probox.pictures.style import ENDINGS, PALETTES


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
# Not --images, which are the photos here: --image chooses.
@scoring_options(leave_out=["images"])
@click.option("--colours", type=click.Choice(list(PALETTES)), default="blue-orange", show_default=True)
@click.option("--corners", type=click.Choice(CORNERS), default="ellipse", show_default=True)
@click.option("--heatmap", is_flag=True, help="Show P(x), the probability of every pixel.")
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
    scoring: Scoring,
    detections: str | None,
    ending: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Draw images with objects and detections.

    SOURCE is a folder that `probox evaluate --out` wrote, if there is one result in it, or that of one of its
    results; or a file of detections, which is drawn as it is or, with --truth, judged first. Right is blue: mask
    and box of true positives. Wrong is orange: the box of a false positive, the mask of a missed object.
    Options of scoring, from --preset to --threads, say how to judge by --truth; a result was judged when it was made,
    and takes --label-threshold alone.

    Heatmaps of probabilistic segmentation are not kept in SOURCE: name the file that was evaluated with
    --detections to see them.

    All pictures appear when the last is drawn. Those that an earlier `probox draw` wrote are replaced; any other file
    of the same name, such as a photo, is refused.

    \b
    probox draw results --images val2017 --out pictures --worst 20
    probox draw results/ssd --images val2017 --out pictures --image 139 --heatmap --format pdf
    probox draw detections.json --images val2017 --out pictures
    probox draw detections.json --truth truth.json --preset paper --clip corners --out pictures --worst 20
    """
    choices = {name: options.pop(name.replace("-", "_")) for name in CHOICES}
    chosen = {name: n for name, n in choices.items() if n is not None}
    if len(chosen) + bool(wanted) > 1:
        raise click.UsageError("choose images by --image or by one of --worst, --best, --false-positives, ...")
    photos = _folder(images)
    job: _Job = _judged(source, truth, detections, scoring, photos, chosen, wanted)
    written = _write(job, Path(out), ending, options, quiet=as_json)
    if as_json:
        pictures = [{"image_id": i, "file": str(p)} for i, p in written]
        print_json({"pictures": pictures, **job.judgement(), "notes": job.notes})
        return
    for text in job.notes:
        note(f"note: {text}")
    note(f"{len(written)} pictures written to {out}")


@dataclasses.dataclass
class _Job:
    """What to draw: a table, its images, and the photo of each."""

    source: Any
    images: list[tuple[int, str]]
    photos: dict[int, Path | None]
    sizes: dict[int, tuple[int, int]]
    heatmaps: Any
    notes: list[str]

    def judgement(self) -> dict[str, Any]:
        """Return how detections were judged and with which numbers, for JSON; nothing if they were not."""
        convention = getattr(self.source, "convention", None)
        return {} if convention is None else {"summary": self.source.summary(), "convention": convention.to_dict()}


def _folder(images: str | None) -> Path | None:
    if images is None:
        return None
    if not Path(images).is_dir():
        raise InputError("is not a folder", file=images, remedy="give the folder of photos")
    return Path(images)


def _judged(
    source: str,
    truth: str | None,
    detections: str | None,
    scoring: Scoring,
    photos: Path | None,
    chosen: dict[str, int],
    wanted: tuple[str, ...],
) -> _Job:
    from probox.analysis.image_ranking import choose_images, find_images
    from probox.evaluation.folders import only_result, read_again
    from probox.evaluation.result import Evaluation
    from probox.files.photos import find_photo
    from probox.formats import read_truth

    found: Any = None
    threshold = scoring.convention.label_threshold
    result = only_result(source)
    if result is not None or truth is None:
        _refuse_scoring(scoring, "a result was judged when it was made" if result else "without --truth none is judged")
    if result is not None:
        evaluation = Evaluation.load(result)
        if detections is not None:
            found = read_again(detections, evaluation, read_truth(truth) if truth else None)
    elif truth is not None:
        from probox.evaluation.run import evaluate

        table, found = scoring.read(truth, source, "draw")
        evaluation = evaluate(table, found, convention=scoring.convention, threads=scoring.threads)
        threshold = None  # it was among the rest
    elif Path(source).is_dir():
        raise InputError(
            "holds no evaluation.json",
            file=source,
            remedy="give a folder that `probox evaluate --out` wrote, or --truth",
        )
    else:
        return _alone(source, threshold, photos, chosen, wanted)
    if threshold is not None:
        evaluation = evaluation.at_threshold(threshold)
    if wanted:
        ids = find_images(evaluation, wanted)
    elif chosen:
        ((choice, n),) = chosen.items()
        ids = choose_images(evaluation, choice, n)
    else:
        ids = evaluation.dataset.image_ids.tolist()
    names = dict(zip(evaluation.dataset.image_ids.tolist(), evaluation.dataset.file_names, strict=True))
    shown = {image_id: find_photo(photos, image_id, names[image_id]) if photos else None for image_id in ids}
    job = _Job(evaluation, [(image_id, names[image_id]) for image_id in ids], shown, {}, found, [])
    _note_missing(job, photos)
    return job


def _refuse_scoring(scoring: Scoring, why: str) -> None:
    """Raise if options of scoring were given that would change nothing."""
    idle = [flag for flag in scoring.typed if flag not in ("--label-threshold", "--threads")]
    if idle:
        raise click.UsageError(f"{idle[0]} says how to judge a file of detections by --truth, but {why}")


def _alone(
    source: str, threshold: float | None, photos: Path | None, chosen: dict[str, int], wanted: tuple[str, ...]
) -> _Job:
    import numpy as np

    from probox.pictures.alone import read_alone

    if chosen and set(chosen) != {"crowded"}:
        raise click.UsageError(f"--{next(iter(chosen))} needs a truth: give --truth, or a folder of results")
    alone = read_alone(source, photos)
    table = alone.detections
    if threshold is not None:
        table = table.select(table.label_probs.max(axis=1, initial=0.0) > np.float32(threshold))
    ids, counts = np.unique(table.image_ids, return_counts=True)
    if chosen:
        ids = ids[np.argsort(-counts, kind="stable")[: chosen["crowded"]]]
    listed = ids.tolist()
    if wanted:
        unknown = [text for text in wanted if text not in {str(image_id) for image_id in listed}]
        if unknown:
            raise InputError(f"no detections in image {unknown[0]!r}", file=source, remedy="give an image id")
        listed = [int(text) for text in wanted]
    names = {image_id: alone.photos[image_id].name if alone.photos[image_id] else "" for image_id in listed}  # type: ignore[union-attr]
    job = _Job(table, [(i, names[i]) for i in listed], alone.photos, alone.sizes, None, list(table.notes))
    _note_missing(job, photos)
    return job


def _note_missing(job: _Job, photos: Path | None) -> None:
    missing = [image_id for image_id, _ in job.images if job.photos.get(image_id) is None]
    if photos is not None and missing:
        job.notes.append(f"{len(missing)} images have no photo in {photos} (the first: {missing[0]}): plain ground")


def _write(job: _Job, folder: Path, ending: str, options: dict[str, Any], *, quiet: bool) -> list[tuple[int, Path]]:
    from probox.files.photos import load_photo
    from probox.support.optional import require

    require("matplotlib", extra="report").use("Agg")
    import matplotlib.pyplot as plt

    from probox.files.folder import output_folder
    from probox.pictures.drawing import draw_view
    from probox.pictures.view import view_of_detections, view_of_image
    from probox.plots import quietly
    from probox.tables.detections import Detections

    written: list[tuple[int, Path]] = []
    names = {image_id: f"{stem}.{ending}" for image_id, stem in _file_names(job.images).items()}
    with (
        quietly(),
        output_folder(folder, "draw", names=names.values()) as out,
        progress_bar("pictures", quiet=quiet) as progress,
    ):
        for done, (image_id, file_name) in enumerate(job.images):
            progress(done, len(job.images))
            if isinstance(job.source, Detections):
                view = view_of_detections(job.source, image_id, job.sizes[image_id], file_name)
            else:
                view = view_of_image(job.source, image_id, job.heatmaps)
            photo, path = None, job.photos.get(image_id)
            if path is not None:
                try:
                    photo = load_photo(path, (view.width, view.height))
                except InputError as error:
                    job.notes.append(f"{error}: plain ground")
            axes = draw_view(view, photo=photo, **options)
            figure: Any = axes.get_figure()
            picture = io.BytesIO()
            figure.savefig(picture, format=ending)
            plt.close(figure)
            written.append((image_id, out.write(names[image_id], picture.getvalue())))
    return written


def _file_names(images: list[tuple[int, str]]) -> dict[int, str]:
    """Return a name per picture: the photo's, if it is fit for a file and no other image has it, else the id."""
    stems = {i: re.sub(r"[^\w.-]+", "_", Path(name.replace("\\", "/")).stem)[:80] for i, name in images}
    counts: dict[str, int] = {}
    for stem in stems.values():
        counts[stem.lower()] = counts.get(stem.lower(), 0) + 1
    return {i: stem if stem.strip("._") and counts[stem.lower()] == 1 else f"image-{i}" for i, stem in stems.items()}
