"""`probox detect`: run a detector over photos."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from probox.cli.completing import complete_files
from probox.cli.console import in_flags, note, print_json, progress_bar
from probox.cli.dask_choice import client_at, dask_option
from probox.cli.output import PathOrUrl, border_option, optional_detections_option
from probox.detect.families import LABELS, all_families, describe_thresholds
from probox.detect.families.yolov8 import YoloV8
from probox.detect.masks import DEFAULT_MASKS, DEFAULT_RATE, MASKS, Dropout
from probox.detect.opening import DEVICES
from probox.detect.uncertainty import RECIPES, UNCERTAINTIES, Options
from probox.errors import InputError
from probox.support.optional import check_installed
from probox.support.words import with_count

MOST_WORKERS = 4
"""More images at a time would take more memory than they save time."""


_MEANT_FOR = {
    "relative_std": ("constant",),
    **dict.fromkeys(("passes", "dropout_rate", "dropout_layers", "dropout_masks", "seed"), ("mc-dropout",)),
    "min_members": ("mc-dropout", "flip-scale"),
    "border": tuple(name for name in UNCERTAINTIES if name not in ("none", "masks")),
}
"""Options that only some uncertainties heed."""


class Size(click.ParamType):  # type: ignore[type-arg]  # older releases of click take none
    """A width and height, as 640x480, or one number for both."""

    name = "WIDTHxHEIGHT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return width and height."""
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"([1-9]\d{0,4})(?:[xX]([1-9]\d{0,4}))?", str(value).strip())
        if found is None:
            self.fail(f"expected a size such as 640x480, or 640, but got {value!r}", param, ctx)
        return int(found[1]), int(found[2] or found[1])


@click.command("detect", context_settings={"show_default": True})
@click.argument("model", metavar="MODEL", shell_complete=complete_files)
@click.argument("photos", nargs=-1, type=click.Path(path_type=Path), metavar="[PHOTO]...")
@click.option(
    "--images",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A photo, a folder, a pattern in quotes, or a text file with a photo in each line; may be given again.",
)
@optional_detections_option("MODEL.coco.json, or MODEL.rvc1.json where photos have names, but no ids")
@click.option("--shards", type=click.IntRange(min=1), metavar="N", help="Make --out a folder of N Parquet files.")
@click.option("--family", type=click.Choice(["auto", *all_families()]), default="auto", help="Kind of detector.")
@click.option(
    "--uncertainty", type=click.Choice(UNCERTAINTIES), default=Options.uncertainty, help="Where covariances come from."
)
@click.option(
    "--relative-std",
    type=click.FloatRange(0, min_open=True),
    default=Options.relative_std,
    help="Of constant: a corner's standard deviation, of the box's side.",
)
@click.option(
    "--recipe",
    type=click.Choice(RECIPES),
    default=Options.recipe,
    help="paper: as published, without prior and least standard deviation; not with --border pin.",
)
@click.option("--passes", type=click.IntRange(1), default=Options.passes, help="Passes of mc-dropout.")
@click.option(
    "--dropout-rate",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help=f"How much is masked.  [default: the model's own, or {DEFAULT_RATE:g}]",
)
@click.option(
    "--dropout-layers",
    default=Dropout.layers,
    metavar="heads|backbone|existing|REGEX",
    help="Layers that get masks; auto: Dropout nodes that exist, or the heads.",
)
@click.option("--dropout-masks", type=click.Choice(MASKS), help=f"What is masked.  [default: {DEFAULT_MASKS}]")
@click.option("--seed", type=click.IntRange(0), default=Dropout.seed, help="Seed of the masks.")
@click.option("--save-graph", type=click.Path(dir_okay=False, path_type=Path), help="Keep the graph with masks here.")
@click.option(
    "--score", type=click.FloatRange(0, 1, max_open=True), default=Options.score, help="Keep scores above this."
)
@click.option(
    "--nms",
    type=click.FloatRange(0, 1),
    help="Suppress candidates above this IoU with a better one of the same class.  [default, as in each framework: "
    f"{describe_thresholds()}, {YoloV8.nms_iou:g} (ultralytics:FILE.pt), the model's own (torchvision:NAME)]",
)
@click.option("--labels", type=click.Choice(LABELS), help="Classes of a box.  [default: the family's]")
@click.option(
    "--max-detections", type=click.IntRange(1), default=Options.max_detections, help="Detections kept of an image."
)
@click.option(
    "--min-members", type=click.IntRange(1), default=Options.min_members, help="Samples a detection must have."
)
@click.option(
    "--absent-counts/--absent-ignored", default=Options.absent_counts, help="Do passes without it lower a score?"
)
@click.option("--min-std", type=click.FloatRange(0), help="Least standard deviation of a corner, in pixels.")
@click.option(
    "--prior-std", type=click.FloatRange(0), help="Standard deviation of a cluster of one, of the box's side."
)
@click.option("--shrinkage", type=click.FloatRange(0), help="How many members that prior is worth.")
@border_option
@click.option(
    "--weights", type=click.Path(dir_okay=False, path_type=Path), help="Of torchvision:NAME: its state dict, a file."
)
@click.option("--device", type=click.Choice(DEVICES), help="Where torch runs the model.  [default: cpu]")
@click.option("--classes", type=click.Path(dir_okay=False, path_type=Path), help="Class names, one per line.")
@click.option(
    "--truth",
    type=PathOrUrl(dir_okay=True),
    help="Ground truth that knows the images' ids, sizes and categories.  [default: ids are the numbers in names]",
)
@click.option(
    "--size", type=Size(), help="Input of a model that takes any.  [default: what the model says, or the family's]"
)
@click.option("--batch", type=click.IntRange(1), default=1, help="Images in one run of the model, where it allows it.")
@click.option(
    "--workers",
    type=click.IntRange(1),
    help=f"Images worked on at a time.  [default: as many as threads, up to {MOST_WORKERS}]",
)
@click.option("--threads", type=click.IntRange(1), help="Threads in all.  [default: one for each processor]")
@dask_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    model: str, photos: tuple[Path, ...], images: tuple[Path, ...], out: Path | None, as_json: bool, **given: Any
) -> None:
    """Run a detector over photos.

    MODEL is an ONNX file; torchvision:NAME with --weights FILE; ultralytics:FILE.pt; transformers:DIR, a folder
    written by save_pretrained; or one's own, python:FILE.py:FUNCTION. Nothing is ever downloaded.

    Image ids are those of --truth, found by file name, or else the numbers that the names are (000000000139.jpg is
    139). Photos whose names are no numbers have no ids without --truth: RVC1 holds their names instead, and no other
    format is written. Photos are turned upright as their cameras noted (EXIF), unless the sizes of --truth say
    otherwise.

    An interrupted run goes on where it stopped when the same command is given again; one run at a time works on an
    output. A file that is there is replaced if it holds detections, and one of --save-graph if it is such a graph.

    --dask shares photos over the processes of this machine (local, or local:4 for four of them) or over a cluster that
    runs already: the address of its scheduler, or its scheduler file. Workers must see the model and the photos by the
    same paths; each opens the model once, with --threads for a batch [default: 1]. The file is to the bit the same.

    \b
    probox detect yolox_nano.onnx --images photos --uncertainty nms-clusters
    probox detect yolov8n.onnx --images 'photos/**/*.jpg' --size 640x384 --out found.json
    probox detect ssd.onnx --images val2017 --truth instances_val2017.json --out found.coco.json \\
        --uncertainty mc-dropout --dropout-rate 0.2
    probox detect torchvision:ssd300 --weights ssd300_vgg16_coco-b556d3b4.pth --images photos --out found.json
    probox detect yolox_nano.onnx --images photos --uncertainty nms-clusters --dask tcp://head:8786
    """
    check_installed(("PIL",), extra="detect", purpose="running detectors needs")
    from probox.detect import choose_images, detect_images
    from probox.detect.classes import read_classes
    from probox.detect.opening import files_of, open_detector, split_model
    from probox.detect.output import check_ids
    from probox.files.output import write_files
    from probox.files.reading import is_folder
    from probox.files.replacing import GRAPH, check_not_input, check_replaceable
    from probox.formats.writing import check_output
    from probox.fusion import Spread
    from probox.support.parallel import thread_count

    if not (images or photos):
        raise click.UsageError("Missing option '--images'.")
    inputs = (*files_of(model, given["weights"]), given["truth"], given["classes"])
    chosen = choose_images([*images, *photos], given["truth"])
    if out is None and given["shards"] is not None:
        raise click.UsageError("--shards needs --out, the folder to write")
    out = out or _default_out(split_model(model)[1], chosen)
    shards = given["shards"]
    if shards is None and is_folder(out):
        raise click.UsageError(f"--out is a folder, {str(out)!r}: name a file, or add --shards")
    check_output(out, shards=shards)
    check_not_input(out, inputs)
    check_ids(out, chosen.images, shards=shards)
    if given["save_graph"]:
        check_not_input(given["save_graph"], (*inputs, out))
        check_replaceable(given["save_graph"], GRAPH, folder=True)
    spread = {name: given[name] for name in ("min_std", "prior_std", "shrinkage") if given[name] is not None}
    options = Options(
        uncertainty=given["uncertainty"],
        relative_std=given["relative_std"],
        recipe=given["recipe"],
        passes=given["passes"],
        score=given["score"],
        nms_iou=given["nms"],
        labels=given["labels"],
        max_detections=given["max_detections"],
        min_members=given["min_members"],
        absent_counts=given["absent_counts"],
        spread=Spread(**spread),
        border=given["border"],
    )
    dropout = None
    if options.uncertainty == "mc-dropout":
        dropout = Dropout(
            rate=given["dropout_rate"],
            layers=given["dropout_layers"],
            masks=given["dropout_masks"],
            seed=given["seed"],
        )
    elif given["save_graph"]:
        raise click.UsageError("--save-graph needs --uncertainty mc-dropout")
    if given["save_graph"] and split_model(model)[0] != "onnx":
        raise click.UsageError("--save-graph needs an ONNX model")
    if given["dask"] is not None and given["workers"] is not None:
        raise click.UsageError("--workers is about one process: leave it out, a cluster of --dask has its own.")
    at_a_time = min(thread_count(given["threads"]), MOST_WORKERS)
    opening: dict[str, Any] = {
        "family": given["family"],
        "classes": None if given["classes"] is None else read_classes(given["classes"]),
        "dropout": dropout,
        "batch": given["batch"],
        "threads": given["threads"],
        "size": given["size"],
        "weights": given["weights"],
        "device": given["device"],
    }
    detector = open_detector(model, **opening, workers=given["workers"] or at_a_time)
    notes = [*chosen.notes, *_idle(options.uncertainty)]
    if detector.batch != given["batch"]:
        notes.append(f"the model takes {with_count(detector.batch, 'image')} at once")
    for sentence in notes:
        note(_as_note(sentence))
    settings = {"family": detector.family.name, "size": given["size"], "dropout": str(dropout)}
    started = time.monotonic()
    with (
        _looking_at(given["dask"], model, opening) as looking,
        progress_bar(f"{detector.family.name}", quiet=as_json) as progress,
    ):
        run = detect_images(
            detector,
            chosen.images,
            out,
            options,
            settings=settings,
            categories=chosen.categories,
            shards=shards,
            progress=progress,
            looking=looking,
        )
    seconds = time.monotonic() - started
    dropout_layers, graph = getattr(detector, "dropout_layers", ()), getattr(detector, "graph", None)
    if given["save_graph"] and graph is not None:
        write_files({given["save_graph"]: graph.SerializeToString()})
        note(f"Wrote the graph with masks before {len(dropout_layers)} layers to {given['save_graph']}.")
    for sentence in run.skipped:
        note(f"Skipped {sentence}")
    for sentence in run.notes:
        note(_as_note(sentence))
    if as_json:
        print_json(
            {
                "out": str(out),
                "family": detector.family.name,
                "images": run.images,
                "resumed": run.resumed,
                "skipped": list(run.skipped),
                "notes": [in_flags(sentence) for sentence in (*notes, *run.notes)],
                "detections": len(run.found),
                "dropout_layers": list(dropout_layers),
                "cost": None if run.cost is None else run.cost.as_dict(),
                "seconds": seconds,
            }
        )
        return
    resumed = f", {run.resumed} of them from before" if run.resumed else ""
    seen = f"{with_count(run.images, 'image')}{resumed}, {seconds:.1f} s ({detector.family.name})"
    note(f"{out}: {with_count(len(run.found), 'detection')} in {seen}")


@contextmanager
def _looking_at(dask: str | None, model: str, opening: dict[str, Any]) -> Iterator[Any]:
    """Give who looks at photos on the cluster at an address; None: this process does."""
    if dask is None:
        yield None
        return
    from probox.distributed.detecting import ClusterLooking, Model

    with client_at(dask) as client:
        yield ClusterLooking(client, Model.called(model, **opening))


def _idle(uncertainty: str) -> list[str]:
    """Return a warning for each option that was given and belongs to another uncertainty."""
    context = click.get_current_context()
    return [
        f"warning: --{name.replace('_', '-')} changes nothing here: it is for --uncertainty {' or '.join(meant)}"
        for name, meant in _MEANT_FOR.items()
        if uncertainty not in meant and context.get_parameter_source(name) is not ParameterSource.DEFAULT
    ]


def _as_note(sentence: str) -> str:
    return sentence if sentence.startswith("warning: ") else f"note: {sentence}"


def _default_out(model: str, chosen: Any) -> Path:
    """Return a name for the file where none was given, called like the model; what is there is not replaced."""
    named = any(image.counted for image in chosen.images)
    stem = re.sub(r"[^\w.-]+", "_", Path(model).stem).strip("._") or "found"
    out = Path(f"{stem}.{'rvc1' if named else 'coco'}.json")
    if out.exists():
        raise InputError("is already there", file=str(out), remedy="give its name with --out to replace it")
    return out
