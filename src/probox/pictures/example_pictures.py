"""Images of examples: the region around a detection and its object, with a caption below."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.analysis.examples import KINDS, Example
from probox.evaluation.result import Evaluation
from probox.notes import Note
from probox.pictures.drawing import draw_view
from probox.pictures.view import ImageView, view_of_image
from probox.support.text_table import html_text
from probox.tables.detections import Detections

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 5.0  # inches

_TALLEST = 1.25  # of the width

_POINTS = 8.5

_LETTERS = 72  # of a line of the caption

_MARGIN = 0.3  # of the longer side, around everything

_LEAST = 24.0  # pixels


def view_of_example(result: Evaluation, example: Example, detections: Detections | None = None) -> ImageView:
    """Return the view of an example that contains only the detection and its object."""
    view = view_of_image(result, example.image_id, detections)
    image = int(result.dataset.rows_of([example.image_id])[0])
    found = int(np.searchsorted(np.flatnonzero(result.detections.image_rows == image), example.detection))
    there = int(np.searchsorted(np.flatnonzero(result.objects.image_rows == image), example.object))
    both = view.detections.partners[found] == there
    partner = np.array([0 if both else -1])
    return dataclasses.replace(
        view,
        objects=view.objects.take(np.array([there])).replace(partners=partner),
        masks=view.masks.take(np.array([there])),
        detections=view.detections.take(np.array([found])).replace(partners=partner),
        heatmaps=(view.heatmaps[found],),
        found_masks=view.found_masks.take(np.array([found])),
        has_mask=view.has_mask[[found]],
    )


def crop_around(view: ImageView) -> tuple[float, float, float, float]:
    """Return the region of the image with the detection, 2 std around its corners, its object, and a margin.

    x1, y1, x2, y2 are outer pixel edges inside the image; the region is never much higher than wide.
    """
    corners = view.detections.boxes[0].reshape(2, 2)
    reach = 2.0 * np.sqrt(np.maximum(np.diagonal(view.detections.covariances[0], axis1=1, axis2=2), 0.0))
    truth = view.objects.boxes[0].reshape(2, 2)
    low = np.minimum(np.minimum(corners - reach, corners).min(axis=0), truth.min(axis=0))
    high = np.maximum((corners + reach).max(axis=0), truth.max(axis=0))
    low, high = np.clip(low, 0, [view.width, view.height]), np.clip(high, 0, [view.width, view.height])
    margin = max(_MARGIN * float((high - low).max()), _LEAST)
    low, high = low - margin, high + margin
    width, height = high - low
    wider = max(height / _TALLEST - width, 0.0) / 2.0
    low, high = low - np.array([wider, 0.0]), high + np.array([wider, 0.0])
    edge = np.array([view.width, view.height]) - 0.5
    low, high = np.clip(np.rint(low) - 0.5, -0.5, edge - 1.0), np.clip(np.rint(high) + 0.5, 0.5, edge)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def draw_example(view: ImageView, *, photo: npt.NDArray[np.uint8] | None = None, caption: str, **options: Any) -> Axes:
    """Draw the view of an example, from `view_of_example`, with its caption; the ground truth box is dashed.

    Options are those of `draw_view`; ``ellipse`` becomes ellipses at 1, 2 and 3 standard deviations, because the region
    is enlarged.
    """
    from matplotlib.patches import Rectangle

    from probox.pictures.rendering import TextFigure

    x1, y1, x2, y2 = crop_around(view)
    lines = textwrap.wrap(caption.replace(" %", "\u00a0%").replace(" px", "\u00a0px"), _LETTERS)
    line = 1.35 * _POINTS / 72.0
    words = line * len(lines) + 0.2
    shape = min((y2 - y1) / (x2 - x1), _TALLEST)
    height = _WIDTH * shape + words
    figure = TextFigure(figsize=(_WIDTH, height), dpi=150, facecolor="white")
    axes: Axes = figure.add_axes((0.0, words / height, 1.0, 1.0 - words / height))
    if options.get("corners", "ellipse") == "ellipse":
        options["corners"] = "ellipses"
    draw_view(view, photo=photo, ax=axes, label_text="none", **options)
    truth = view.objects.boxes[0]
    axes.add_artist(
        Rectangle((truth[0], truth[1]), truth[2] - truth[0], truth[3] - truth[1], fill=False, edgecolor="#14181f",
                  linestyle=(0, (3, 2)), linewidth=1.1, zorder=3.3, gid="truth")
    )  # fmt: skip
    axes.set_xlim(x1, x2)
    axes.set_ylim(y2, y1)
    for place, text in enumerate(lines):
        figure.text(
            0.02, (words - 0.1 - line * (place + 0.75)) / height, text, fontsize=_POINTS, color="#14181f",
            parse_math=False,
        )  # fmt: skip
    return axes


def example_page(
    examples: Sequence[tuple[Example, str]], title: str, notes: Sequence[Note | str], colours: str = "blue-orange"
) -> bytes:
    """Return an HTML page with all examples and links to their image files.

    The page keeps captions searchable and accessible, and the images as separate files for publications.
    """
    parts = []
    for kind, about in KINDS.items():
        own = [(example, name) for example, name in examples if example.kind == kind]
        if own:
            parts.append(f"<h2>{html_text(about)}</h2>\n<div class=row>\n{''.join(map(_figure, own))}</div>\n")
    said = "".join(f"<p>{html_text(str(note))}</p>\n" for note in notes)
    right, wrong = colours.split("-")  # palettes are named after their colours
    words = {"right": right.capitalize(), "wrong": wrong}
    return _PAGE.format(title=html_text(title), body="".join(parts), notes=said, **words).encode()


def _figure(told: tuple[Example, str]) -> str:
    example, name = told
    text = html_text(example.caption)
    shown = f'<img src="{html_text(name)}" alt="{text}">'
    if name.endswith(".pdf"):
        shown = f'<object data="{html_text(name)}" type="application/pdf">{text}</object>'
    return (
        f'<figure><a href="{html_text(name)}">{shown}</a><figcaption><p>{text}</p><details><summary>caption</summary>'
        f"{text}</details></figcaption></figure>\n"
    )


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1200px; padding: 0 1em; }}
.row {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(min(320px, 100%), 1fr)); gap: 1.2em; }}
figure {{ margin: 0; }}
img, object {{ width: 100%; border-radius: 6px; background: #fff; }}
object {{ height: 480px; }}
figcaption {{ font-size: 13px; padding: 0.2em 0; }}
figcaption p {{ display: none; margin: 0.2em 0; }}
@media (max-width: 720px) {{ /* text in the image is too small there */
figcaption p {{ display: block; }} figcaption details {{ display: none; }}
}}
summary {{ opacity: 0.6; cursor: pointer; }}
h1 {{ font-size: 1.5em; }} h2 {{ font-size: 1.1em; margin-top: 2em; }}
</style>
<h1>{title}</h1>
<p>{right} is matched, purple is matched with the wrong class, {wrong} is not matched; ellipses are 1, 2 and 3 standard
deviations of a corner; the ground truth box is dashed.
d² is the squared Mahalanobis distance of the ground truth from the box, over the four edges.</p>
{body}{notes}</html>
"""
