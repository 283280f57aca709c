"""`probox detect`: run a detector on photos."""

from __future__ import annotations

import dataclasses
import re
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from probox.cli.completion import complete_files
from probox.cli.console import as_option, note, print_json, print_notes, progress_bar
from probox.cli.fuse import PathOrUrl, border_option, fusion_options, out_option
from probox.cli.scoring import threads_option
from probox.cli.shared_options import (
    FILE,
    GroupedCommand,
    dask_option,
    execution_option,
    input_option,
    json_option,
    option_group,
    output_option,
)
from probox.detect.candidates import LABELS
from probox.detect.dropout import DEFAULT_MASKS, DEFAULT_RATE, MASKS, Dropout
from probox.detect.factory import DEVICES
from probox.detect.families import all_families, describe_thresholds
from probox.detect.families.ultralytics_exports import YoloV8
from probox.detect.uncertainty import RECIPES, UNCERTAINTIES, Options
from probox.errors import InputError
from probox.notes import InputWarning, Note, as_notes
from probox.support.formatting import with_count
from probox.support.optional import check_installed

model_option = option_group("Model")
detection_option = option_group("Detections")
uncertainty_option = option_group("Uncertainty")
dropout_option = option_group("MC dropout")

MOST_WORKERS = 4
"""More images in parallel would cost memory and save little time."""


_MEANT_FOR = {
    "relative_std": ("constant",),
    **dict.fromkeys(("passes", "dropout_rate", "dropout_layers", "dropout_masks", "seed"), ("mc-dropout",)),
    "min_members": ("mc-dropout", "flip-scale"),
    "border": tuple(name for name in UNCERTAINTIES if name not in ("none", "masks")),
}
"""Options that only some uncertainty methods use."""


class Size(click.ParamType):  # type: ignore[type-arg]  # older releases of click take none
    """A width and height, as 640x480, or one number for both."""

    name = "WIDTHxHEIGHT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return width and height."""
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"([1-9]\d{0,4})(?:[xX]([1-9]\d{0,4}))?", str(value).strip())
        if match is None:
            self.fail(f"expected a size such as 640x480, or 640, got {value!r}", param, ctx)
        return int(match[1]), int(match[2] or match[1])


@click.command("detect", cls=GroupedCommand, context_settings={"show_default": True})
@click.argument("model", metavar="MODEL", shell_complete=complete_files)
@click.argument("photos", nargs=-1, type=click.Path(path_type=Path), metavar="[PHOTO]...")
@input_option(
    "--images",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Process a photo, a folder, a quoted pattern, or a text file with one photo per line; repeatable.",
)
@input_option(
    "--truth",
    type=PathOrUrl(dir_okay=True),
    help="Read image ids, sizes and categories from this ground truth.  [default: ids are numbers in file names]",
)
@model_option(
    "--family",
    metavar="FAMILY",
    type=click.Choice(["auto", *all_families()]),
    default="auto",
    help=f"Read an ONNX graph as this family: auto, {', '.join(all_families())}.",
)
@model_option("--weights", type=FILE, help="Load this state dict into torchvision:NAME.")
@model_option("--device", type=click.Choice(DEVICES), help="Run torch models on this device.  [default: cpu]")
@model_option("--classes", type=FILE, help="Read class names from this file, one per line.  [default: the model's]")
@model_option("--size", type=Size(), metavar="WxH", help="Resize photos to this size [px].  [default: the model's]")
@detection_option(
    "--score-threshold",
    type=click.FloatRange(0, 1, max_open=True),
    default=Options.score_threshold,
    help="Keep detections with a score above this.",
)
@detection_option(
    "--nms-iou",
    type=click.FloatRange(0, 1),
    help="Suppress candidates whose IoU with a better one of their class is higher.  [default, as in each framework: "
    f"{describe_thresholds()}, {YoloV8.nms_iou:g} (ultralytics:FILE.pt), the model's own (torchvision:NAME)]",
)
@detection_option(
    "--label-mode",
    type=click.Choice(LABELS),
    help="Keep all classes of a box above the threshold, or the best.  [default: the family's]",
)
@detection_option(
    "--max-detections",
    type=click.IntRange(1),
    default=Options.max_detections,
    help="Keep at most N detections per image.",
)
@uncertainty_option(
    "--uncertainty", type=click.Choice(UNCERTAINTIES), default=Options.uncertainty, help="Source of covariances."
)
@uncertainty_option(
    "--relative-std",
    type=click.FloatRange(0, min_open=True),
    default=Options.relative_std,
    help="constant: set the std of corners to this fraction of the box's sides.",
)
@uncertainty_option(
    "--recipe",
    type=click.Choice(RECIPES),
    default=Options.recipe,
    help="paper: estimate as published, without prior and minimum std; excludes --border pin.",
)
@border_option
@dropout_option("--passes", type=click.IntRange(1), default=Options.passes, help="Run N passes per image.")
@dropout_option(
    "--dropout-rate",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help=f"Mask with this probability.  [default: the model's, or {DEFAULT_RATE:g}]",
)
@dropout_option(
    "--dropout-layers",
    default=Dropout.layers,
    metavar="LAYERS",
    help="Mask heads, backbone, existing Dropout nodes, or layers by REGEX; auto: existing nodes, else heads.",
)
@dropout_option(
    "--dropout-masks",
    type=click.Choice(MASKS),
    help=f"Mask whole channels or single elements.  [default: {DEFAULT_MASKS}]",
)
@dropout_option("--seed", type=click.IntRange(0), default=Dropout.seed, help="Random seed of masks.")
@dropout_option("--save-graph", type=FILE, help="Write the ONNX graph with masks to FILE.")
@fusion_options
@out_option("  [default: MODEL.coco.json, or MODEL.rvc1.json without image ids]", required=False, folders=True)
@output_option("--shards", type=click.IntRange(min=1), help="Write N Parquet files to the folder --out.")
@json_option
@execution_option("--batch", type=click.IntRange(1), default=1, help="Run N images at once, if the model allows it.")
@execution_option(
    "--workers",
    type=click.IntRange(1),
    help=f"Process N images in parallel.  [default: number of threads, up to {MOST_WORKERS}]",
)
@threads_option
@dask_option
def command(
    model: str,
    photos: tuple[Path, ...],
    images: tuple[Path, ...],
    out: Path | None,
    shards: int | None,
    save_graph: Path | None,
    dask: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Run a detector on photos and write its detections.

    MODEL is an ONNX file, torchvision:NAME with --weights, ultralytics:FILE.pt, transformers:DIR or
    python:FILE.py:FUNCTION. probox downloads no models. Repeat the command to continue an interrupted run.

    Image ids are those of --truth, matched by file name, or else the numbers in file names. Without --truth, photos
    with other names can only be written as RVC1 (docs/detect.md).

    \b
    Examples:
      probox detect yolox_nano.onnx --images photos --uncertainty nms-clusters
      probox detect yolov8n.onnx --images 'photos/**/*.jpg' --size 640x384 --out detections.json
      probox detect ssd.onnx --images val2017 --truth instances_val2017.json --out detections.coco.json \\
          --uncertainty mc-dropout --dropout-rate 0.2
      probox detect torchvision:ssd300 --weights ssd300_vgg16_coco-b556d3b4.pth --images photos --out detections.json
    """
    check_installed(("PIL",), extra="detect", purpose="running detectors needs")
    from probox.detect import choose_images, detect_images
    from probox.detect.factory import files_of, open_detector, split_model
    from probox.detect.graph import read_classes
    from probox.detect.run import check_ids
    from probox.files.output import GRAPH, check_not_input, check_replaceable, write_files
    from probox.files.reading import is_folder
    from probox.formats.registry import check_output
    from probox.fusion import Spread
    from probox.support.parallel import thread_count

    if not (images or photos):
        raise click.UsageError("Missing option '--images'.")
    inputs = (*files_of(model, given["weights"]), given["truth"], given["classes"])
    chosen = choose_images([*images, *photos], given["truth"])
    if out is None and shards is not None:
        raise click.UsageError("--shards needs --out DIR, the folder to write")
    out = out or _default_out(split_model(model)[1], chosen)
    if shards is None and is_folder(out):
        raise click.UsageError(f"--out {str(out)!r} is a folder, expected a file: name a file, or add --shards N")
    check_output(out, shards=shards)
    check_not_input(out, inputs)
    check_ids(out, chosen.images, shards=shards)
    if save_graph is not None:
        check_not_input(save_graph, (*inputs, out))
        check_replaceable(save_graph, GRAPH, folder=True)
        if given["uncertainty"] != "mc-dropout":
            raise click.UsageError("--save-graph needs --uncertainty mc-dropout")
        if split_model(model)[0] != "onnx":
            raise click.UsageError("--save-graph needs an ONNX model")
    if dask is not None and given["workers"] is not None:
        raise click.UsageError("--workers does not apply to the workers of --dask: leave it out.")
    names = {field.name for field in dataclasses.fields(Options)} & set(given)
    spread = Spread(**{name: given[name] for name in ("min_std", "prior_std", "shrinkage")})
    options = Options(**{name: given[name] for name in names}, spread=spread)
    dropout = None
    if options.uncertainty == "mc-dropout":
        masks = {name: given[f"dropout_{name}"] for name in ("rate", "layers", "masks")}
        dropout = Dropout(**masks, seed=given["seed"])
    at_a_time = min(thread_count(given["threads"]), MOST_WORKERS)
    keys = ("family", "batch", "threads", "size", "weights", "device")
    opening: dict[str, Any] = {name: given[name] for name in keys}
    opening |= {"classes": None if given["classes"] is None else read_classes(given["classes"]), "dropout": dropout}
    detector = open_detector(model, **opening, workers=given["workers"] or at_a_time)
    notes: list[Note | str] = [*chosen.notes, *_idle(options.uncertainty)]
    if detector.batch != given["batch"]:
        notes.append(f"the model processes {with_count(detector.batch, 'image')} per run")
    print_notes(notes)
    settings = {"family": detector.family.name, "size": given["size"], "dropout": str(dropout)}
    started = time.monotonic()
    with ExitStack() as stack:
        cluster = None  # run in this process
        if dask is not None:
            from probox.distributed import ClusterLooking, Model, open_client

            cluster = ClusterLooking(stack.enter_context(open_client(dask)), Model.from_name(model, **opening))
        progress = stack.enter_context(progress_bar(detector.family.name, quiet=as_json))
        run = detect_images(
            detector, chosen.images, out, options, settings=settings, categories=chosen.categories,
            shards=shards, progress=progress, process=cluster,
        )  # fmt: skip
    seconds = time.monotonic() - started
    dropout_layers, graph = getattr(detector, "dropout_layers", ()), getattr(detector, "graph", None)
    if save_graph is not None and graph is not None:
        write_files({save_graph: graph.SerializeToString()})
        note(f"Wrote the graph with masks before {len(dropout_layers)} layers to {save_graph}.")
    for sentence in run.skipped:
        note(f"Skipped {sentence}")
    print_notes(run.notes)
    if as_json:
        print_json(
            {
                "out": str(out),
                "family": detector.family.name,
                "images": run.images,
                "resumed": run.resumed,
                "skipped": list(run.skipped),
                "notes": as_notes([*notes, *run.notes]),
                "detections": len(run.found),
                "dropout_layers": list(dropout_layers),
                "cost": None if run.cost is None else run.cost.as_dict(),
                "seconds": seconds,
            }
        )
        return
    resumed = f", {run.resumed} of them from an earlier run" if run.resumed else ""
    seen = f"{with_count(run.images, 'image')}{resumed}, {seconds:.1f} s ({detector.family.name})"
    note(f"{out}: {with_count(len(run.found), 'detection')} in {seen}")


def _idle(uncertainty: str) -> list[Note]:
    """Return a warning for each option that the uncertainty method does not use."""
    context = click.get_current_context()
    return [
        InputWarning("idle-option", name=as_option(name, ""), meant=" or ".join(meant))
        for name, meant in _MEANT_FOR.items()
        if uncertainty not in meant and context.get_parameter_source(name) is not ParameterSource.DEFAULT
    ]


def _default_out(model: str, chosen: Any) -> Path:
    """Return the default name of the output, after the model; raise if it exists."""
    named = any(image.counted for image in chosen.images)
    stem = re.sub(r"[^\w.-]+", "_", Path(model).stem).strip("._") or "detections"
    out = Path(f"{stem}.{'rvc1' if named else 'coco'}.json")
    if out.exists():
        raise InputError("already exists", file=str(out), remedy=f"use --out {out} to replace it")
    return out
