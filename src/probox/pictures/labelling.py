"""Text at detections and missed objects: measured, placed without collisions, drawn."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.pictures.placement import place_labels
from probox.pictures.style import Palette
from probox.pictures.view import ImageView
from probox.tables.results import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["add_labels"]

_SIZES = (7.0, 5.8)  # points
_PAD = 0.45  # of the text's size, around it


@dataclasses.dataclass(frozen=True)
class _Variant:
    """One way to write a label: lines of text at a size."""

    lines: tuple[str, ...]
    points: float


@dataclasses.dataclass(frozen=True)
class _Label:
    colour: str
    box: tuple[float, float, float, float]
    variants: tuple[_Variant, ...]


def add_labels(axes: Axes, view: ImageView, palette: Palette, *, full: bool) -> None:
    """Write what was found, and what was missed, where there is room."""
    labels = [_detection_label(view, palette, row, full) for row in _by_importance(view)]
    labels += [
        _missed_label(view, palette, row) for row in np.flatnonzero(view.objects.verdicts == Verdict.FN).tolist()
    ]
    figure: Any = axes.get_figure()
    axes.apply_aspect()
    to_display = axes.transData
    origin = to_display.transform((-0.5, view.height - 0.5))
    corner = to_display.transform((view.width - 0.5, -0.5))
    bounds = float(corner[0] - origin[0]), float(corner[1] - origin[1])

    def on_canvas(box: Any) -> list[float]:
        """Return a box in display pixels, counted from the picture's top left."""
        (x1, y1), (x2, y2) = to_display.transform(np.reshape(box, (2, 2)))
        return [x1 - origin[0], corner[1] - y1, x2 - origin[0], corner[1] - y2]

    measure = _Measure(figure)
    places = place_labels(
        [on_canvas(label.box) for label in labels],
        [[measure.size(variant) for variant in label.variants] for label in labels],
        bounds,
        _busy(view),
    )
    pixel = view.width / bounds[0]
    for label, place in zip(labels, places, strict=True):
        if place is not None:
            left, top = place.left * pixel - 0.5, place.top * pixel - 0.5
            _write(axes, label, label.variants[place.variant], measure, left, top, pixel)


def _busy(view: ImageView) -> npt.NDArray[np.bool_]:
    """Return where there is something to see: objects, and the corners of detections."""
    busy = np.zeros((view.height, view.width), bool)
    for row in range(len(view.objects)):
        busy |= view.mask(row)
    for (x, y), covariance in zip(
        view.detections.boxes.reshape(-1, 2), view.detections.covariances.reshape(-1, 2, 2), strict=True
    ):
        dx, dy = 2.0 + 2.0 * np.sqrt(np.maximum(np.diag(covariance), 0.0))
        rows = slice(int(np.clip(y - dy, 0, view.height)), int(np.clip(y + dy, 0, view.height)) + 1)
        busy[rows, int(np.clip(x - dx, 0, view.width)) : int(np.clip(x + dx, 0, view.width)) + 1] = True
    return busy


def _by_importance(view: ImageView) -> list[int]:
    """Return detections, those with a match first, then the surest."""
    table = view.detections
    return np.lexsort((-table.confidences, table.verdicts != Verdict.TP)).tolist()  # type: ignore[no-any-return]


def _detection_label(view: ImageView, palette: Palette, row: int, full: bool) -> _Label:
    table = view.detections
    name = view.class_name(int(table.labels[row]))
    title = f"{name} {100 * table.scores[row]:.0f}"
    colour = palette.of_verdict(int(table.verdicts[row])) if view.judged else palette.right
    x1, y1, x2, y2 = (float(value) for value in table.boxes[row])
    large, small = _SIZES
    variants = [_Variant((name,), large), _Variant((name,), small)]
    if full:
        variants = [_Variant((title,), large), _Variant((title,), small), *variants[1:]]
        if table.partners[row] >= 0:
            values = (table.quality(name)[row] for name in ("pPDQ", "spatial", "label"))
            words = "  ".join(f"{n} {100 * v:.0f}" for n, v in zip(("pPDQ", "Sp", "Lbl"), values, strict=True))
            variants = [_Variant((title, words), large), _Variant((title, words), small), *variants]
    return _Label(colour, (x1, y1, x2, y2), tuple(variants))


def _missed_label(view: ImageView, palette: Palette, row: int) -> _Label:
    name = f"missed {view.class_name(int(view.objects.labels[row]))}"
    x1, y1, x2, y2 = (float(value) for value in view.objects.mask_boxes[row])
    return _Label(palette.wrong, (x1, y1, x2, y2), tuple(_Variant((name,), points) for points in _SIZES))


class _Measure:
    """How large text is on a figure's canvas, in display pixels."""

    def __init__(self, figure: Any) -> None:
        from matplotlib.backends import backend_agg

        self.dpi = float(figure.dpi)
        renderer: Any = backend_agg.RendererAgg
        self._renderer: Any = renderer(8, 8, self.dpi)
        self._widths: dict[tuple[str, float], float] = {}

    def pixels(self, points: float) -> float:
        """Return the height of text of this size."""
        return points * self.dpi / 72.0

    def size(self, variant: _Variant) -> tuple[float, float]:
        """Return width and height of a label with its margins."""
        height = self.pixels(variant.points)
        width = max(self._width(line, variant.points) for line in variant.lines)
        return width + 2 * _PAD * height, (1.18 * len(variant.lines) + 2 * _PAD - 0.18) * height

    def _width(self, line: str, points: float) -> float:
        from matplotlib.font_manager import FontProperties

        key = line, points
        if key not in self._widths:
            font = FontProperties(size=points)
            self._widths[key] = self._renderer.get_text_width_height_descent(line, font, ismath=False)[0]
        return self._widths[key]


def _write(
    axes: Axes, label: _Label, variant: _Variant, measure: _Measure, left: float, top: float, pixel: float
) -> None:
    """Draw one label; `pixel` is a display pixel's size in the picture's pixels."""
    from matplotlib.patches import FancyBboxPatch

    width, height = (length * pixel for length in measure.size(variant))
    text = measure.pixels(variant.points) * pixel
    inset = 0.12 * text
    axes.add_patch(
        FancyBboxPatch(
            (left + inset, top + inset), width - 2 * inset, height - 2 * inset,
            boxstyle=f"round,pad=0,rounding_size={0.3 * text}", facecolor="white", edgecolor=label.colour,
            linewidth=0.9, alpha=0.9, zorder=4.0,
        )
    )  # fmt: skip
    for number, line in enumerate(variant.lines):
        axes.text(
            left + _PAD * text, top + (_PAD + 0.5 + 1.18 * number) * text, line,
            fontsize=variant.points, color="#14181f" if number == 0 else "#3b4352", va="center_baseline", ha="left",
            parse_math=False, zorder=4.1, clip_on=True,
        )  # fmt: skip
