"""Place labels of detections beside their boxes without overlap."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.pictures.style import Palette
from probox.pictures.view import ImageView
from probox.tables.results import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = npt.NDArray[np.float64]

_ALLOWED_OVERLAP = 0.01  # fraction of a label's area: borders may touch

_CROWDED = 0.5  # fraction of a label's area over objects and corners, above which a smaller label is preferred

_FILLED = 0.09  # fraction of the image under labels, above which the others get their shortest text

_FULL = 0.15  # maximum fraction of the image under labels

_COVER_COST = 12.0  # cost of a label entirely over objects and corners, in ranks of positions

_AWAY_COST = 12.0  # cost of a position with a leader line, in ranks of positions

_PLACES = (
    # at x1 (0), the middle (1) or x2 (2), the same for y, then back by multiples of the label's width and height
    (0, 0, 0, 1), (2, 0, 1, 1), (0, 2, 0, 0), (2, 2, 1, 0), (0, 0, 0, 0), (2, 0, 1, 0), (1, 0, 0.5, 1),
    (0, 2, 0, 1), (2, 2, 1, 1), (2, 0, 0, 0), (0, 0, 1, 0), (1, 2, 0.5, 0), (2, 2, 0, 1), (0, 2, 1, 1),
    (1, 0, 0.5, 0), (1, 2, 0.5, 1), (1, 1, 0.5, 0.5),
    # away from it
    (1, 0, 0.5, 2.5), (1, 2, 0.5, -1.5), (2, 1, -0.3, 0.5), (0, 1, 1.3, 0.5),
    (2, 0, -0.1, 2.2), (0, 0, 1.1, 2.2), (2, 2, -0.1, -1.2), (0, 2, 1.1, -1.2),
)  # fmt: skip

_ADJACENT = 17

_AT = np.array(_PLACES, np.float64)[:, :2].astype(np.int64)

_BACK = np.array(_PLACES, np.float64)[:, 2:]

_COSTS = np.arange(len(_PLACES)) + np.where(np.arange(len(_PLACES)) < _ADJACENT, 0.0, _AWAY_COST)


@dataclasses.dataclass(frozen=True)
class Placed:
    """Position of a label: index of its variant, left and top."""

    variant: int
    left: float
    top: float


def place_labels(
    anchors: npt.ArrayLike,
    sizes: Sequence[Sequence[tuple[float, float]]],
    bounds: tuple[float, float],
    busy: npt.NDArray[np.bool_] | None = None,
    taken: npt.ArrayLike | None = None,
) -> list[Placed | None]:
    """Place one label per box; None if no variant fits.

    `anchors` are the boxes x1, y1, x2, y2 with y down, in order of priority. `sizes` has the width and height of each
    label's variants, the preferred first, the shortest last. Labels stay within `bounds`, from 0, 0, and outside the
    rectangles `taken`; `busy` is a mask of the same area, in any resolution, that labels should not cover.
    """
    boxes = np.asarray(anchors, dtype=np.float64).reshape(-1, 4)
    covered = _Coverage(np.zeros((1, 1), bool) if busy is None else busy, bounds)
    given = np.asarray([] if taken is None else taken, dtype=np.float64).reshape(-1, 4)
    used = np.zeros((len(given) + len(boxes), 4))
    used[: len(given)] = given
    count, filled = len(given), 0.0
    result: list[Placed | None] = []
    for box, variants in zip(boxes, sizes, strict=True):
        chosen, chosen_share, rectangle = None, np.inf, given[:0]
        first = 0 if filled < _FILLED else len(variants) - 1 if filled < _FULL else len(variants)
        for variant, (width, height) in enumerate(variants):
            if variant < first or width > bounds[0] or height > bounds[1] or chosen_share <= _CROWDED:
                continue
            places, costs = _places(box, width, height, bounds)
            rectangles = np.concatenate([places, places + np.array([width, height])], axis=1)
            free = _overlaps(rectangles, used[:count]).max(axis=1, initial=0.0) <= _ALLOWED_OVERLAP * width * height
            free &= ~_led_across(rectangles, costs, box, used[:count])
            share = covered.share(rectangles)
            best = int(np.argmin(np.where(free, costs + _COVER_COST * share, np.inf)))
            # A shorter label must gain enough to justify the omitted text.
            if free[best] and (chosen is None or share[best] < 0.7 * chosen_share):
                chosen, chosen_share = Placed(variant, float(places[best, 0]), float(places[best, 1])), share[best]
                rectangle = rectangles[best]
        if chosen is not None:
            used[count] = rectangle
            count += 1
            filled += float(np.prod(rectangle[2:] - rectangle[:2])) / (bounds[0] * bounds[1])
        result.append(chosen)
    return result


def gap(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the distance of two rectangles: 0 if they touch.

    >>> gap((0, 0, 10, 10), (13, 14, 20, 20))
    5.0
    """
    across = max(one[0] - other[2], other[0] - one[2], 0.0)
    down = max(one[1] - other[3], other[1] - one[3], 0.0)
    return float(np.hypot(across, down))


class _Coverage:
    """Fraction of rectangles that lies on busy pixels, from an integral image."""

    def __init__(self, busy: npt.NDArray[np.bool_], bounds: tuple[float, float]) -> None:
        self.scale = np.array([busy.shape[1] / bounds[0], busy.shape[0] / bounds[1]])
        self.sums = np.zeros((busy.shape[0] + 1, busy.shape[1] + 1))
        self.sums[1:, 1:] = busy.cumsum(axis=0).cumsum(axis=1)

    def share(self, rectangles: FloatArray) -> FloatArray:
        """Return the busy fraction of each rectangle's area, 0 to 1."""
        corners = np.rint(rectangles.reshape(-1, 2, 2) * self.scale).astype(np.int64)
        corners = np.clip(corners, 0, np.array(self.sums.shape)[::-1] - 1)
        (x1, y1), (x2, y2) = corners[:, 0].T, corners[:, 1].T
        inside = self.sums[y2, x2] - self.sums[y1, x2] - self.sums[y2, x1] + self.sums[y1, x1]
        return np.asarray(inside / np.maximum((x2 - x1) * (y2 - y1), 1))


def _places(box: FloatArray, width: float, height: float, bounds: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """Return left and top of candidate positions near a box, and their costs; all are within bounds.

    In order of preference: above, below, beside, inside; then, at a higher cost, at a distance.
    """
    x1, y1, x2, y2 = box
    # From x1, (x1 + x2) / 2 and x2, the same for y; then back by multiples of width and height.
    corner = np.array([[x1, y1], [(x1 + x2) / 2, (y1 + y2) / 2], [x2, y2]])
    places = np.column_stack([corner[_AT[:, 0], 0], corner[_AT[:, 1], 1]]) - _BACK * np.array([width, height])
    room = np.array([bounds[0] - width, bounds[1] - height])
    moved = np.clip(places, 0.0, room)
    # A label moved inside from the border is still adjacent to its box.
    near = (np.abs(moved - places) <= (width, 1.5 * height)).all(axis=1)
    if not near.any():
        return np.clip(np.array([[x1, y1]]), 0.0, room), np.zeros(1)
    return moved[near], _COSTS[near]


def _led_across(
    rectangles: FloatArray, costs: FloatArray, box: FloatArray, others: FloatArray
) -> npt.NDArray[np.bool_]:
    """Return which positions at a distance would need a leader line across another label."""
    across = np.zeros(len(rectangles), bool)
    away = np.flatnonzero(costs >= _ADJACENT)
    if len(away) and len(others):
        centres = (rectangles[away, :2] + rectangles[away, 2:]) / 2.0
        ends = np.clip(centres, box[:2], box[2:])
        points = centres[:, None] + np.linspace(0.0, 1.0, 9)[:, None] * (ends - centres)[:, None]
        inside = (points[:, :, None] > others[:, :2]) & (points[:, :, None] < others[:, 2:])
        across[away] = np.any(np.all(inside, axis=3), axis=(1, 2))
    return across


def _overlaps(rectangles: FloatArray, others: FloatArray) -> FloatArray:
    """Return the intersection area of each rectangle (rows) with each other one (columns)."""
    low = np.maximum(rectangles[:, None, :2], others[None, :, :2])
    high = np.minimum(rectangles[:, None, 2:], others[None, :, 2:])
    return np.asarray(np.prod(np.maximum(high - low, 0.0), axis=2))


Rectangle = tuple[float, float, float, float]

_SIZES = (7.0, 5.8)  # points

_PAD = 0.45  # margin, relative to the font size

_LINE = 1.18  # line spacing, relative to the font size

_BASE = 0.86  # from the top of a line to its baseline, relative to the font size

_APART = 0.6
"""Distance from the box, relative to the label's height, above which a label needs a leader line."""

_ASTRAY = 0.25
"""Fraction of a label's area over other objects, above which it needs a leader line."""

_AT_HIGH = np.array(
    [(0, 0), (1, 0), (1, 0), (1, 0), (1, 1), (1, 1), (1, 1), (0, 1), (0, 1), (0, 1), (0, 0), (0, 0), (0, 0)], bool
)
"""Whether each point of a card's outline is at the high or the low end of x and of y."""

_TO_ROUND = np.array(
    [(1, 0), (-1, 0), (0, 0), (0, 1), (0, -1), (0, 0), (-1, 0), (1, 0), (0, 0), (0, -1), (0, 1), (0, 0), (1, 0)], float
)
"""Distance of each point from its corner, in radii; the corner itself is a control point of the curve."""


@dataclasses.dataclass(frozen=True)
class Canvas:
    """Relation between image pixels and canvas pixels."""

    width: float
    height: float
    """Height in canvas pixels."""
    pixel: float
    """Size of a canvas pixel, in image pixels."""
    dpi: float

    @classmethod
    def of(cls, axes: Axes, view: ImageView) -> Canvas:
        """Return the canvas of axes that show a view."""
        figure: Any = axes.get_figure()
        axes.apply_aspect()
        (x1, y1), (x2, y2) = axes.transData.transform([(-0.5, view.height - 0.5), (view.width - 0.5, -0.5)])
        return cls(float(x2 - x1), float(y2 - y1), view.width / float(x2 - x1), float(figure.dpi))

    def text_height(self, points: float) -> float:
        """Return a font size in image pixels."""
        return points * self.dpi / 72.0 * self.pixel


@dataclasses.dataclass(frozen=True)
class _Variant:
    """Lines of text of a label, at one font size."""

    lines: tuple[str, ...]
    points: float

    def size(self, canvas: Canvas) -> tuple[float, float]:
        """Return width and height with margins, in image pixels."""
        from probox.pictures.rendering import word_width

        height = self.points * canvas.dpi / 72.0
        width = max(word_width(line, self.points, canvas.dpi) for line in self.lines)
        return width + 2 * _PAD * height, (_LINE * len(self.lines) + 2 * _PAD - (_LINE - 1.0)) * height


@dataclasses.dataclass(frozen=True)
class _Label:
    colour: str
    box: Rectangle
    variants: tuple[_Variant, ...]
    own: int
    """Object that the label is about, or -1."""
    missed: bool = False


def add_labels(
    axes: Axes,
    view: ImageView,
    palette: Palette,
    rows: npt.NDArray[np.int64],
    *,
    full: bool,
    taken: Sequence[Rectangle] = (),
) -> None:
    """Write labels of detections and missed objects where space permits; `taken` are occupied rectangles."""
    colours, _ = view.colours(palette)
    labels = [_detection_label(view, colours[row], row, full) for row in _by_importance(view, rows)]
    labels += [
        _missed_label(view, palette, row) for row in np.flatnonzero(view.objects.verdicts == Verdict.FN).tolist()
    ]
    if not labels:
        return
    canvas = Canvas.of(axes, view)
    covered = _objects_at(view)
    places = place_labels(
        (np.array([label.box for label in labels]) + 0.5) / canvas.pixel,
        [[variant.size(canvas) for variant in label.variants] for label in labels],
        (canvas.width, canvas.height),
        _busy(view, rows, covered),
        taken=(np.array(taken, dtype=np.float64).reshape(-1, 4) + 0.5) / canvas.pixel,
    )
    drawn: list[tuple[_Label, _Variant, Rectangle]] = []
    for label, place in zip(labels, places, strict=True):
        if place is not None:
            variant = label.variants[place.variant]
            left, top = place.left * canvas.pixel - 0.5, place.top * canvas.pixel - 0.5
            width, height = (length * canvas.pixel for length in variant.size(canvas))
            drawn.append((label, variant, (left, top, left + width, top + height)))
    _add_leaders(axes, view, canvas, covered, rows, drawn)
    for points in _SIZES:
        some = [(label, place) for label, variant, place in drawn if variant.points == points]
        if some:
            add_card(
                axes, [place for _, place in some], [label.colour for label, _ in some], canvas.text_height(points)
            )
    for _, variant, (left, top, _, _) in drawn:
        _write(axes, variant, canvas, left, top)


def add_remark(axes: Axes, view: ImageView, text: str) -> Rectangle:
    """Write a line in the lower left corner; return its rectangle."""
    canvas, variant = Canvas.of(axes, view), _Variant((text,), _SIZES[1])
    width, height = (length * canvas.pixel for length in variant.size(canvas))
    inset = 0.4 * canvas.text_height(variant.points)
    left, top = inset - 0.5, view.height - 0.5 - inset - height
    if width + inset > view.width or top < 0:
        return (0.0, 0.0, 0.0, 0.0)
    place = (left, top, left + width, top + height)
    add_card(axes, [place], ["#9aa1ab"], canvas.text_height(variant.points), names=["remark"], zorder=4.2)
    _write(axes, variant, canvas, left, top, zorder=4.3)
    return place


def add_card(
    axes: Axes,
    places: Sequence[Rectangle],
    colours: Sequence[str],
    text: float,
    *,
    names: Sequence[str] | None = None,
    zorder: float = 4.0,
) -> None:
    """Draw white cards with round corners for text; `text` is the font size."""
    from matplotlib.colors import to_rgba
    from matplotlib.path import Path

    from probox.pictures.rendering import Shapes

    inset, radius = 0.12 * text, 0.3 * text
    codes = [Path.MOVETO, *[Path.LINETO, Path.CURVE3, Path.CURVE3] * 4]
    paths = []
    for x1, y1, x2, y2 in places:
        low, high = np.array([x1 + inset, y1 + inset]), np.array([x2 - inset, y2 - inset])
        paths.append(Path(np.where(_AT_HIGH, high, low) + radius * _TO_ROUND, codes))
    axes.add_artist(
        Shapes(
            paths, names if names is not None else ["label"] * len(paths), facecolors=(1.0, 1.0, 1.0, 0.9),
            edgecolors=[to_rgba(colour, 0.9) for colour in colours], linewidths=0.9, transform=axes.transData,
            zorder=zorder,
        )
    )  # fmt: skip


def _objects_at(view: ImageView) -> npt.NDArray[np.int16]:
    """Return the number of objects at each pixel."""
    count = np.zeros((view.height, view.width), np.int16)
    for row in np.flatnonzero(view.masks.pixels).tolist():
        left, top, mask = view.masks.in_box(row)
        count[top : top + mask.shape[0], left : left + mask.shape[1]] += mask
    return count


def _busy(view: ImageView, rows: npt.NDArray[np.int64], covered: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
    """Return a mask of objects and of the corners of detections."""
    busy = covered > 0
    corners, spread = view.detections.boxes[rows].reshape(-1, 2), view.detections.covariances[rows].reshape(-1, 2, 2)
    reach = 2.0 + 2.0 * np.sqrt(np.maximum(np.diagonal(spread, axis1=1, axis2=2), 0.0))
    size = np.array([view.width, view.height])
    low = np.clip(corners - reach, 0, size).astype(int)
    high = np.clip(corners + reach, 0, size).astype(int) + 1
    for (x1, y1), (x2, y2) in zip(low.tolist(), high.tolist(), strict=True):
        busy[y1:y2, x1:x2] = True
    return busy


def _add_leaders(
    axes: Axes,
    view: ImageView,
    canvas: Canvas,
    covered: npt.NDArray[np.int16],
    rows: npt.NDArray[np.int64],
    drawn: Sequence[tuple[_Label, _Variant, Rectangle]],
) -> None:
    """Draw leader lines from labels to boxes or objects where `_needs_leader`."""
    from matplotlib.colors import to_rgba
    from matplotlib.path import Path

    from probox.pictures.rendering import Shapes

    lines, colours, names = [], [], []
    for number, (label, _, place) in enumerate(drawn):
        if not _needs_leader(view, covered, rows, label, place):
            continue
        end = _end_of_leader(view, label, place)
        start = np.clip(end, place[:2], place[2:])  # the nearest point of the label
        lines.append(Path(np.stack([start, end])))
        colours.append(to_rgba(label.colour))
        names.append(f"leader-{number}")
    if not lines:
        return
    common: dict[str, Any] = {"facecolors": "none", "transform": axes.transData}
    axes.add_artist(Shapes(lines, edgecolors=(1.0, 1.0, 1.0, 0.85), linewidths=2.4, zorder=3.8, **common))
    axes.add_artist(Shapes(lines, names, edgecolors=colours, linewidths=1.1, zorder=3.9, **common))
    radius = 0.28 * canvas.text_height(_SIZES[0])
    circle: Any = Path.unit_circle()
    dots = [Path(np.asarray(line.vertices)[1] + radius * circle.vertices, circle.codes) for line in lines]
    axes.add_artist(
        Shapes(dots, facecolors=colours, edgecolors="white", linewidths=0.7, transform=axes.transData, zorder=3.95)
    )


def _needs_leader(
    view: ImageView, covered: npt.NDArray[np.int16], rows: npt.NDArray[np.int64], label: _Label, place: Rectangle
) -> bool:
    """Return whether a label is far from its box or object, or over another object.

    A detection's label must be adjacent to its box. A missed object has pixels only: its label must be near these, and
    outside all boxes of detections.
    """
    height = place[3] - place[1]
    if gap(place, label.box) > _APART * height:
        return True
    own = label.own >= 0 and view.masks.pixels[label.own] > 0
    left, top, mask = view.masks.in_box(label.own) if own else (0, 0, np.zeros((0, 0), bool))
    if label.missed and own:
        y, x = np.nonzero(mask)
        across = np.maximum(np.maximum(place[0] - (x + left), (x + left) - place[2]), 0.0)
        down = np.maximum(np.maximum(place[1] - (y + top), (y + top) - place[3]), 0.0)
        if np.hypot(across, down).min() > _APART * height:
            return True
        centre = np.array([place[0] + place[2], place[1] + place[3]]) / 2.0
        boxes = view.detections.boxes[rows]
        if bool(((boxes[:, :2] < centre) & (centre < boxes[:, 2:])).all(axis=1).any()):
            return True
    x1, y1 = (max(int(np.ceil(value)), 0) for value in place[:2])
    others = covered[y1 : int(place[3]) + 1, x1 : int(place[2]) + 1].copy()
    if own:
        canvas = np.zeros(covered.shape, np.int16)
        canvas[top : top + mask.shape[0], left : left + mask.shape[1]] = mask
        others -= canvas[y1 : y1 + others.shape[0], x1 : x1 + others.shape[1]]
    return bool(others.size) and float((others > 0).mean()) > _ASTRAY


def _end_of_leader(view: ImageView, label: _Label, place: Rectangle) -> npt.NDArray[np.float64]:
    """Return the end of a leader line: inside the box near its border, or on the missed object."""
    centre = np.array([place[0] + place[2], place[1] + place[3]]) / 2.0
    low, high = np.array(label.box[:2]), np.array(label.box[2:])
    inner = np.minimum(0.3 * (high - low), 14.0)
    end = np.clip(centre, low + inner, high - inner)
    if label.missed and view.masks.pixels[label.own]:
        left, top, mask = view.masks.in_box(label.own)
        y, x = np.nonzero(mask)
        nearest = int(np.argmin((x + left - end[0]) ** 2 + (y + top - end[1]) ** 2))
        end = np.array([x[nearest] + left, y[nearest] + top], np.float64)
    return end


def _by_importance(view: ImageView, rows: npt.NDArray[np.int64]) -> list[int]:
    """Return detections in order of importance: matched ones first, then by score."""
    table = view.detections
    order = np.lexsort((-table.confidences[rows], table.verdicts[rows] != Verdict.TP))
    return rows[order].tolist()  # type: ignore[no-any-return]


def _detection_label(view: ImageView, colour: str, row: int, full: bool) -> _Label:
    table = view.detections
    name = view.class_name(int(table.labels[row]))
    if view.wrong_class[row]:
        name += f" (truth: {view.class_name(int(view.objects.labels[table.partners[row]]))})"
    title = f"{name} {100 * table.scores[row]:.0f}"
    x1, y1, x2, y2 = (float(value) for value in table.boxes[row])
    large, small = _SIZES
    variants = [_Variant((name,), large), _Variant((name,), small)]
    if full:
        variants = [_Variant((title,), large), _Variant((title,), small), *variants[1:]]
        if table.partners[row] >= 0:
            values = (table.quality(name)[row] for name in ("pPDQ", "spatial", "label"))
            words = "  ".join(f"{n} {100 * v:.0f}" for n, v in zip(("pPDQ", "Sp", "Lbl"), values, strict=True))
            variants = [_Variant((title, words), large), _Variant((title, words), small), *variants]
    return _Label(colour, (x1, y1, x2, y2), tuple(variants), int(table.partners[row]))


def _missed_label(view: ImageView, palette: Palette, row: int) -> _Label:
    name = f"missed {view.class_name(int(view.objects.labels[row]))}"
    x1, y1, x2, y2 = (float(value) for value in view.objects.mask_boxes[row])
    variants = tuple(_Variant((name,), points) for points in _SIZES)
    return _Label(palette.wrong, (x1, y1, x2, y2), variants, row, missed=True)


def _write(axes: Axes, variant: _Variant, canvas: Canvas, left: float, top: float, zorder: float = 4.1) -> None:
    """Write the lines of a label."""
    from probox.pictures.rendering import Words

    text = canvas.text_height(variant.points)
    for number, line in enumerate(variant.lines):
        axes.add_artist(
            Words(
                left + _PAD * text, top + (_PAD + _BASE + _LINE * number) * text, line, fontsize=variant.points,
                color="#14181f" if number == 0 else "#3b4352", parse_math=False, zorder=zorder, clip_on=True,
            )
        )  # fmt: skip
