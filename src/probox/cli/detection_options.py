"""Options of commands that write a file of detections: --out, --border and those of fusion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from probox.cli.shared_options import option_group, output_option
from probox.files.reading import is_url
from probox.formats.registry import endings_in_words
from probox.fusion.gaussian import BORDERS, Spread

uncertainty_option = option_group("Uncertainty")
fusion_option = option_group("Fusion")


border_option = uncertainty_option(
    "--border",
    type=click.Choice(BORDERS),
    default="keep",
    show_default=True,
    help="Edges at the image border: keep their estimated std, or pin it to half their distance to the border "
    "(PDQ-optimal; overconfident, not for a filter).",
)


def fusion_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of covariances from several boxes, which `probox.fusion` takes under the same names."""
    above_zero = click.FloatRange(0)
    for add in (
        fusion_option(
            "--shrinkage", type=above_zero, default=Spread.shrinkage, help="Weight of --prior-std, in members."
        ),
        fusion_option(
            "--prior-std",
            type=above_zero,
            default=Spread.prior_std,
            help="Std of a single box, as a fraction of its sides.",
        ),
        fusion_option("--min-std", type=above_zero, default=Spread.min_std, help="Least std of a corner [px]."),
        fusion_option(
            "--absent-counts/--absent-ignored",
            default=True,
            help="Members without a detection lower its score, or are ignored.",
        ),
        fusion_option(
            "--min-members", type=click.IntRange(1), default=1, help="Keep detections with at least this many members."
        ),
    ):
        command = add(command)
    return command


class PathOrUrl(click.Path):
    """A path, or the URL of what only Parquet can be: text, since a path would leave out one of its slashes."""

    def __init__(self, *, dir_okay: bool) -> None:
        super().__init__(dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a path, or a URL as it is."""
        return value if is_url(value) else super().convert(value, param, ctx)


def out_option(
    default: str = "", *, required: bool = True, folders: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option --out; where it is not required, `default` describes the name of the file."""
    return output_option(
        "--out",
        required=required,
        type=PathOrUrl(dir_okay=folders),
        help=f"File to write: {endings_in_words()}; JSON also as .gz.{default}",
    )
