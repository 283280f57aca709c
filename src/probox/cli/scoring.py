"""Options of commands that score files: preset, metrics, images and threads."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from probox.cli.completion import complete_measures
from probox.cli.console import as_option, note
from probox.cli.shared_options import execution_option, input_option, option, option_group
from probox.convention import CHOICES, PRESETS, SIZE_NAMES, Convention
from probox.errors import InputError
from probox.evaluation.parts import KEEP, Keep, images_of_part, measures_to_keep, parse_part
from probox.measures.registry import COCO_REMEDY, named_measures, standard_names
from probox.options import WORDS
from probox.support.parallel import thread_count, threads_at_most

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from probox.evaluation.inputs import SharedTruth
    from probox.evaluation.result import Evaluation
    from probox.tables.detections import Detections
    from probox.tables.groundtruth import GroundTruth

scoring_option = option_group("Scoring")
map_option = option_group("Rules of mAP")

Function = TypeVar("Function", bound=Callable[..., Any])


Measure = Callable[[str, str, Any], "Evaluation"]
"""Takes a path, the name of the result and a progress callable; returns the result."""


@dataclasses.dataclass(frozen=True, eq=False)
class Scoring:
    """Values of the scoring options; None: not given."""

    convention: Convention
    repair: bool
    threads: int | None
    typed: tuple[str, ...]
    """Options on the command line, as flags."""
    image_ids: list[int] | None = None
    measures: tuple[str, ...] | None = None
    part: tuple[int, int] | None = None
    """Number of a part of the images, and number of parts."""
    keep: Keep = "all"

    @property
    def measures_to_keep(self) -> tuple[str, ...]:
        """Return the metrics that can be computed from the kept data."""
        return measures_to_keep(self.measures or standard_names(), self.keep, asked=self.measures is not None)

    def select_ids(self, truth: SharedTruth) -> npt.NDArray[np.int64]:
        """Return the ids of the scored images."""
        from probox.tables.dataset import chosen_ids

        ids = truth.image_ids
        if self.image_ids is not None:
            ids = chosen_ids(self.image_ids, ids, file=truth.source)
        return ids if self.part is None else images_of_part(ids, *self.part)

    def evaluate(self, truth: SharedTruth, detections: str | Detections, progress: Any) -> Evaluation:
        """Return the result of one file or table, or of a part of it."""
        from probox.evaluation.evaluate import evaluate

        return evaluate(
            truth, detections, part=self.part, keep=self.keep, convention=self.convention, measures=self.measures,
            threads=self.threads, progress=progress, image_ids=self.image_ids, repair=self.repair,
        )  # fmt: skip

    def read(self, truth: str, detections: str, call: str) -> tuple[GroundTruth, Detections]:
        """Return the tables of two files, restricted to the chosen images."""
        from probox.evaluation.inputs import read_inputs

        return read_inputs(truth, detections, call, image_ids=self.image_ids, repair=self.repair)


@contextmanager
def open_measure(
    there: SharedTruth, truth: str, scoring: Scoring, dask: str | None, out: str | None
) -> Iterator[Measure]:
    """Yield a function that evaluates a file, in this process or on Dask; kept parts are removed after the block."""
    if dask is None:
        yield lambda path, name, progress: scoring.evaluate(there, path, progress)
        return
    if scoring.part is not None:
        raise click.UsageError("--dask splits the images itself: leave out --part.")
    if scoring.threads is not None:
        raise click.UsageError("--threads does not apply to the workers of --dask: leave it out.")
    from probox.distributed import open_client, run_evaluation
    from probox.files.output import remove_if_empty

    folder = None if out is None else Path(f"{out.rstrip('/')}.partial")
    with ExitStack() as stack:
        if folder is not None:
            stack.callback(remove_if_empty, folder)
        client = stack.enter_context(open_client(dask))

        def measure(path: str, name: str, progress: Any) -> Evaluation:
            run = stack.enter_context(
                run_evaluation(
                    truth, path, client=client, keep=scoring.keep, progress=progress, image_ids=scoring.image_ids,
                    repair=scoring.repair, convention=scoring.convention, measures=scoring.measures,
                    checkpoint=None if folder is None else folder / name,
                )
            )  # fmt: skip
            if run.kept:
                note(f"{name}: continued with {run.kept} of {run.parts} parts finished before")
            result: Evaluation = run.result
            return result

        try:
            yield measure
        except BaseException:
            kept = 0 if folder is None else len(list(folder.glob("*/part-*.probox")))
            if kept:
                note(f"{kept} finished parts are kept in {folder}; repeat the command to continue")
            raise


def _parse_with(
    convert: Callable[[str], Any], example: str
) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """Return an option's callback that converts a text; errors of numbers become usage errors."""

    def parse(context: click.Context, parameter: click.Parameter, text: str | None) -> Any:
        if text is None:
            return None
        try:
            value = convert(text)
        except ValueError:
            raise click.BadParameter(f"expected a value like {example}, got {text!r:.80}.") from None
        try:
            Convention(**{str(parameter.name): value})  # the error then names the option
        except InputError as error:
            raise click.BadParameter(f"{error}.") from None
        return value

    return parse


def parse_thresholds(text: str) -> tuple[float, ...]:
    """Return the numbers of a list, or of a range with a step, as NumPy and pycocotools compute it.

    >>> parse_thresholds("0.5,0.75"), parse_thresholds("0.5:0.95:0.05") == Convention.iou_thresholds
    ((0.5, 0.75), True)
    """
    import numpy as np

    if ":" not in text:
        return tuple(map(float, text.split(",")))
    first, last, step = map(float, text.split(":"))
    steps = round((last - first) / step) if step > 0 else -1
    if not 0 <= steps < 1000 or abs(first + steps * step - last) > 1e-9:
        raise ValueError
    return tuple(np.linspace(first, last, steps + 1).tolist())


def _parse_areas(text: str) -> tuple[tuple[float, float], ...]:
    """Return the area ranges of ``small=0:1024,medium=1024:9216,large=9216:1e10``; those left out are COCO's."""
    given = dict(zip(SIZE_NAMES, Convention.area_ranges, strict=True))
    for part in text.split(","):
        name, limits = part.strip().split("=")
        low, high = map(float, limits.split(":"))
        if name not in given:
            raise ValueError
        given[name] = (low, high)
    return tuple(given.values())


class _LabelThreshold(click.FloatRange):
    """A number between 0 and 1, or `auto` for commands that can choose it."""

    def __init__(self, *, auto: bool) -> None:
        super().__init__(0.0, 1.0)
        self.auto = auto

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or `auto`."""
        if value == "auto" and not self.auto:
            self.fail("expected a number between 0 and 1; only `probox evaluate`, `table` and `compare` take auto.")
        return value if value == "auto" else super().convert(value, param, ctx)


def label_threshold_option(text: str, *, auto: bool, group: str = "Scoring") -> Callable[[Function], Function]:
    """Return the option --label-threshold; `text` is its help."""
    text += " auto: for PDQ only, choose T per image by cross-fitting." if auto else ""
    metavar = "T|auto" if auto else "T"
    return option("--label-threshold", group=group, type=_LabelThreshold(auto=auto), metavar=metavar, help=text)


def parse_measures(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """Return the metrics in a comma-separated list, as an option's callback."""
    if text is None:
        return None
    try:
        return named_measures(text)
    except InputError as error:
        remedy = error.remedy or ""
        near = f" D{remedy[1:]}" if remedy.startswith("did you mean") else ""  # other remedies are for Python
        if remedy == COCO_REMEDY:
            near = " `probox evaluate --measures map --coco` prints COCO's twelve numbers, including AP50, AP75 and AR."
        raise click.BadParameter(f"{error.problem}.{near}", context, parameter) from None


def measures_option(text: str, group: str, **settings: Any) -> Callable[[Function], Function]:
    """Return the option --measures, or another name in `settings`; `text` is its help."""
    name = settings.pop("name", "--measures")
    return option(name, group=group, metavar="LIST", shell_complete=complete_measures, help=text, **settings)


def parse_ids(context: click.Context | None, parameter: click.Parameter | None, text: str | None) -> list[int] | None:
    """Return the image ids of --image-ids, as an option's callback.

    >>> parse_ids(None, None, "139, 285")
    [139, 285]
    """
    if text is None:
        return None
    from probox.evaluation.inputs import parse_image_ids

    return list(parse_image_ids(text, "--image-ids"))


def _parse_part(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        return parse_part(text)
    except InputError as error:
        raise click.BadParameter(f"{error.problem}.") from None


part_option = execution_option(
    "--part",
    metavar="K/N",
    callback=_parse_part,
    help="Evaluate range K of N ranges of the images; `probox merge` merges them (docs/cluster.md).",
)
keep_option = execution_option(
    "--keep",
    type=click.Choice(KEEP),
    default="all",
    show_default=True,
    help="Keep in results: all tables; matches, for PDQ, mAP and LRP (10 bytes per detection); or sums, for PDQ.",
)
threads_option = execution_option(
    "--threads", type=click.IntRange(min=1), help="Use N threads.  [default: all processors]"
)


def _choice_option(name: str, text: str) -> Callable[[Any], Any]:
    usual = getattr(Convention, name)
    return scoring_option(f"--{name}", type=click.Choice(CHOICES[name]), help=f"{text}  [default: {usual}]")


def _shared_options(*, auto: bool) -> dict[str, Callable[[Any], Any]]:
    """Return the scoring options by variable, in the order of the help."""
    return {
        "image_ids": input_option(
            "--image-ids",
            metavar="IDS",
            callback=parse_ids,
            help="Score these images only: ids separated by commas, or a file with a JSON list or an id per line.",
        ),
        "repair": input_option(
            "--repair", is_flag=True, help="Replace invalid covariances with the nearest valid ones."
        ),
        "preset": scoring_option(
            "--preset",
            type=click.Choice(list(PRESETS)),
            default="reference",
            show_default=True,
            help="Score as the published evaluator, by the equations of the paper, or as the robotic vision challenge.",
        ),
        "assignment": _choice_option("assignment", "Match detections to objects by this algorithm."),
        "background": _choice_option("background", "Count pixels outside an object's box, or its mask, as background."),
        "box_truth": scoring_option(
            "--box-truth", is_flag=True, default=None, help="Use annotated boxes instead of masks."
        ),
        "fixed_variance": scoring_option(
            "--fixed-variance",
            type=click.FloatRange(0.0),
            metavar="V",
            help="Set the variance of every corner to V [px^2]; 0: boxes without covariance.",
        ),
        "label_threshold": label_threshold_option("Keep detections with a label probability above T.", auto=auto),
        "label_weight": scoring_option(
            "--label-weight",
            type=click.FloatRange(0.0, 1.0),
            metavar="W",
            help=f"Weight the label by W in pPDQ, 0 to 1.  [default: {Convention.label_weight}]",
        ),
        "clip": _choice_option("clip", "corners: move box corners outside the image onto its border."),
        "object_filter": scoring_option(
            "--object-filter/--no-object-filter",
            default=None,
            help="Ignore small objects.  [default: only for challenge ground truth]",
        ),
        "iou_thresholds": map_option(
            "--iou-thresholds",
            metavar="LIST",
            callback=_parse_with(parse_thresholds, "0.5,0.75 or 0.5:0.95:0.05"),
            help="Average over these IoU thresholds: a list, or FIRST:LAST:STEP.  [default: 0.5:0.95:0.05]",
        ),
        "max_detections": map_option(
            "--max-detections",
            metavar="LIST",
            callback=_parse_with(lambda text: tuple(map(int, text.split(","))), "1,10,100"),
            help="Limit detections per image and class: AR for each limit, mAP for the last.  "
            "[default: 1,10,100; LVIS: 300 per image]",
        ),
        "area_ranges": map_option(
            "--area-ranges",
            metavar="LIST",
            callback=_parse_with(_parse_areas, "small=0:1024,medium=1024:9216"),
            help="Set areas of small, medium and large objects [px^2], such as small=0:100,medium=100:9216.  "
            "[default: small=0:1024,medium=1024:9216,large=9216:1e10]",
        ),
        "threads": threads_option,
    }


def scoring_options(
    *, leave_out: Collection[str] = (), auto: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the scoring options, except `leave_out`, to a command; its function gets them as a `Scoring`, `scoring`.

    The `Scoring` also has the values of --measures, --part and --keep. `auto`: --label-threshold takes `auto`.
    """
    options = {name: add for name, add in _shared_options(auto=auto).items() if name not in leave_out}
    taken = {*options, *(field.name for field in dataclasses.fields(Scoring))}

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def with_scoring(**given: Any) -> Any:
            scoring = _make_scoring(click.get_current_context(), {name: given.pop(name) for name in taken & set(given)})
            with threads_at_most(thread_count(scoring.threads)):  # also limits the readers of files
                return function(scoring=scoring, **given)

        command: Callable[..., Any] = with_scoring
        for add in reversed(options.values()):
            command = add(command)
        return command

    return decorate


def _make_scoring(context: click.Context, given: dict[str, Any]) -> Scoring:
    by_user = click.core.ParameterSource.COMMANDLINE
    typed = tuple(
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in given and context.get_parameter_source(parameter.name) is by_user
    )
    settings = {name: given.pop(name) for name in WORDS if name in given}
    changes = {name: value for name, value in settings.items() if value is not None and name != "preset"}
    try:
        convention = Convention.preset(settings["preset"], **changes)
    except InputError as error:
        raise click.UsageError(error.message(as_option)) from None
    return Scoring(convention=convention, typed=typed, **given)
