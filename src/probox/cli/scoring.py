"""The options of every command that scores files: how PDQ is measured, of which images, by how many threads."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from probox.cli.completing import complete_measures
from probox.cli.image_choice import images_option, parse_images
from probox.cli.measure_choice import parse_measures
from probox.convention import CHOICES, PRESETS, Convention
from probox.errors import InputError
from probox.evaluation.parts import KEEP, Keep, images_of_part, measures_to_keep, parse_part
from probox.measures.registry import measure_names, standard_names
from probox.options import OPTIONS, Option
from probox.support.parallel import thread_count, threads_at_most

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from probox.evaluation.inputs import SharedTruth
    from probox.evaluation.result import Evaluation
    from probox.tables.detections import Detections
    from probox.tables.groundtruth import GroundTruth

__all__ = ["Scoring", "choice_of", "keep_option", "label_threshold_option", "part_option", "scoring_options"]


@dataclasses.dataclass(frozen=True)
class Scoring:
    """What the scoring options of a command say.

    Parameters
    ----------
    convention : Convention
        The preset with what was changed in it.
    measures : tuple of str
        What to measure.
    repair : bool
        Whether covariances that are none are replaced.
    threads : int or None
        How many.
    images : list of int or None
        The ids of the images to score; None: all.
    typed : tuple of str
        The options that somebody typed, as flags.
    part : (int, int) or None
        Which of how many parts of the images to score; None: all of them.
    keep : {"summary", "matches", "all"}
        How much of the result is kept.
    """

    convention: Convention
    measures: tuple[str, ...]
    repair: bool
    threads: int | None
    images: list[int] | None
    typed: tuple[str, ...]
    part: tuple[int, int] | None = None
    keep: Keep = "all"

    @property
    def asked(self) -> tuple[str, ...] | None:
        """Return the measures that somebody typed; None if nobody did."""
        return self.measures if "--measures" in self.typed else None

    @property
    def measures_to_keep(self) -> tuple[str, ...]:
        """Return the measures of results: those that follow from what is kept."""
        return measures_to_keep(self.measures, self.keep, asked=self.asked is not None)

    def image_ids(self, truth: SharedTruth) -> npt.NDArray[np.int64]:
        """Return the ids of the images that are scored."""
        from probox.tables.dataset import chosen_ids

        ids = truth.image_ids
        if self.images is not None:
            ids = chosen_ids(self.images, ids, file=truth.source)
        return ids if self.part is None else images_of_part(ids, *self.part)

    def evaluate(self, truth: SharedTruth, detections: str, progress: Any) -> Evaluation:
        """Return the result of one file, or of a part of it."""
        from probox.evaluation.evaluate import evaluate

        return evaluate(
            truth, detections, part=self.part, keep=self.keep, convention=self.convention, measures=self.asked,
            threads=self.threads, progress=progress, images=self.images, repair=self.repair,
        )  # fmt: skip

    def read(self, truth: str, detections: str, call: str) -> tuple[GroundTruth, Detections]:
        """Return the tables of two files, of the images that are wanted."""
        from probox.evaluation.inputs import read_inputs

        return read_inputs(truth, detections, call, images=self.images, repair=self.repair)


def scoring_options(
    *, leave_out: Iterable[str] = (), measures: bool = False, auto: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the scoring options to a command, whose function gets a `Scoring` as its argument `scoring`.

    Parameters
    ----------
    leave_out : iterable of str
        Options that have no meaning for the command, by their variables; the command says why.
    measures : bool
        Add --measures, for a command that shows whatever was measured.
    auto : bool
        The command takes --label-threshold auto.
    """
    left = frozenset(leave_out)
    options = {name: option for name, option in _all_options(auto=auto).items() if name not in left}
    if not measures:
        del options["measures"]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def with_scoring(**given: Any) -> Any:
            context = click.get_current_context()
            asked = {name: given.pop(name) for name in options}
            scoring = _scoring(context, asked)
            with threads_at_most(thread_count(scoring.threads)):  # those that read files too
                return function(scoring=scoring, **given)

        command: Callable[..., Any] = with_scoring
        for option in reversed(options.values()):
            command = option(command)
        return command

    return decorate


def _all_options(*, auto: bool) -> dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """Return every option by its variable, in the order of help texts."""
    preset = click.option(
        "--preset",
        type=click.Choice(list(PRESETS)),
        default="reference",
        show_default=True,
        help="The published numbers, the equations alone, or the robotic vision challenge's form.",
    )
    measures = click.option(
        "--measures",
        metavar="LIST",
        shell_complete=complete_measures,
        help=f"What to measure, separated by commas: {', '.join(measure_names())}; or `all`.  "
        f"[default: {','.join(standard_names())}]",
    )
    repair = click.option("--repair", is_flag=True, help="Replace covariances that are none by the nearest valid ones.")
    threads = click.option("--threads", type=click.IntRange(min=1), help="Threads to use [default: all processors].")
    return {
        "preset": preset,
        **{option.field: _click_option(option, auto=auto) for option in OPTIONS},
        "measures": measures,
        "repair": repair,
        "threads": threads,
        "images": images_option,
    }


def _click_option(option: Option, *, auto: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option of a field: a choice among words, a number, a flag, or a switch that may be left alone."""
    flag = f"--{option.field.replace('_', '-')}"
    shared: dict[str, Any] = {"help": option.help, "default": None}
    if option.field in CHOICES:
        return click.option(flag, option.field, type=click.Choice(CHOICES[option.field]), **shared)
    if option.field == "label_threshold":
        return label_threshold_option(option.help, auto=auto)
    if option.metavar is not None:
        kind = click.FloatRange(0.0, option.highest)
        return click.option(flag, option.field, type=kind, metavar=option.metavar, **shared)
    if getattr(Convention, option.field) is None:
        return click.option(f"{flag}/--no-{flag[2:]}", option.field, **shared)
    return click.option(flag, option.field, is_flag=True, **shared)


class _LabelThreshold(click.FloatRange):
    """A number between 0 and 1, or `auto` where a command can choose it."""

    def __init__(self, *, auto: bool) -> None:
        super().__init__(0.0, 1.0)
        self.auto = auto

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or `auto` as it is."""
        if value == "auto" and not self.auto:
            self.fail("`auto` is for `probox evaluate`, `table` and `compare`: expected a number between 0 and 1.")
        return value if value == "auto" else super().convert(value, param, ctx)


def label_threshold_option(text: str, *, auto: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option --label-threshold; `text` is its help."""
    metavar = "T|auto" if auto else "T"
    text += " auto: for PDQ alone, T chosen by cross-fitting over images." if auto else ""
    return click.option(
        "--label-threshold", "label_threshold", type=_LabelThreshold(auto=auto), metavar=metavar, help=text
    )


def choice_of(evaluation: Any) -> dict[str, Any]:
    """Return the label thresholds that were chosen, for JSON; nothing where none were."""
    choice = evaluation.threshold_choice
    return {} if choice is None else {"label_threshold": choice.to_dict()}


def _scoring(context: click.Context, asked: dict[str, Any]) -> Scoring:
    changes = {option.field: asked.get(option.field) for option in OPTIONS}
    try:
        convention = Convention.preset(
            asked.get("preset", "reference"), **{name: value for name, value in changes.items() if value is not None}
        )
    except InputError as error:
        raise click.UsageError(str(error)) from None
    typed = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in asked and context.get_parameter_source(parameter.name) is _TYPED
    ]
    images, measures = asked.get("images"), asked.get("measures")
    return Scoring(
        convention=convention,
        measures=standard_names() if measures is None else parse_measures(measures),
        repair=asked.get("repair", False),
        threads=asked.get("threads"),
        images=None if images is None else parse_images(images),
        typed=tuple(typed),
    )


def part_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --part to a command, which gets its number and count, or None."""

    def parse(context: click.Context, option: click.Parameter, text: str | None) -> tuple[int, int] | None:
        if text is None:
            return None
        try:
            return parse_part(text)
        except InputError as error:
            raise click.BadParameter(f"{error.problem}.") from None

    return click.option(
        "--part", metavar="K/N", callback=parse, help="Evaluate the K-th of N ranges of images; merge them later."
    )(command)


def keep_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --keep to a command."""
    return click.option(
        "--keep",
        type=click.Choice(KEEP),
        default="all",
        show_default=True,
        help="Keep all tables, what mAP and LRP follow from, or sums.",
    )(command)


_TYPED = click.core.ParameterSource.COMMANDLINE
