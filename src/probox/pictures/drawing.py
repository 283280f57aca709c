"""Draw images: photo, objects, detections with ellipses at their corners, and heatmaps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.files.photos import find_photo, load_photo
from probox.pictures.style import Palette, palette_called
from probox.pictures.view import ImageView, at_best_threshold, view_of_detections, view_of_image
from probox.support.optional import require
from probox.tables.detections import Detections
from probox.tables.masks import Masks
from probox.tables.results import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = npt.NDArray[np.float64]

CORNERS = ("ellipse", "ellipses", "arrow", "none")

LABELS = ("full", "class", "none")

VEIL = 0.12
"""Opacity of the white overlay on photos, which keeps outlines visible."""

_GROUND = "#eceef1"

_LONG_SIDE = 8.0  # inches


def draw(
    source: Evaluation | Detections,
    image_id: int | None = None,
    *,
    image: str | Path | npt.ArrayLike | None = None,
    detections: Detections | None = None,
    colours: str = "blue-orange",
    corners: str = "ellipse",
    heatmap: bool = False,
    label_text: str = "full",
    show_above: float | None = None,
    veil: float = VEIL,
    ax: Axes | None = None,
) -> Axes:
    """Draw one image with its objects and detections.

    True positives: mask and box blue; matches of the wrong class: mask and box purple; false positives: box orange;
    missed objects: mask orange. Detections without ground truth are blue. Masks of detections have dashed outlines.

    Parameters
    ----------
    source : Evaluation or Detections
        Evaluation or detections to draw.
    image_id : int, optional
        Image id. Default: the first image.
    image : path or (H, W, 3) array, optional
        Photo, or a folder to search for it. Default: no photo.
    detections : Detections, optional
        Source of masks and heatmaps of detections, which evaluations do not keep.
    colours : {"blue-orange", "green-red"}
        Colours of matched and unmatched boxes.
    corners : {"ellipse", "ellipses", "arrow", "none"}
        Corner Gaussians as an ellipse at 1 standard deviation, as ellipses at 1, 2 and 3, or as arrows of 2 standard
        deviations along their axes.
    heatmap : bool
        Draw P(x), the highest detection probability of each pixel, with a colour scale.
    label_text : {"full", "class", "none"}
        Label text of detections: class, score, pPDQ, spatial and label quality; the class alone; or no text.
    show_above : float, optional
        Draw unmatched detections whose highest label probability is above this, and all true positives; 0 draws all
        detections. Matches do not change. Default: the 20 most confident detections above the evaluation's label
        threshold. An evaluation without one is matched again at its best threshold (see `probox.best_threshold`);
        detections without ground truth must be above 0.3. The image states the limit.
    veil : float
        Opacity of the white overlay on the photo, 0 (none) to 1.
    ax : matplotlib axes, optional
        Axes to draw into. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Pixel (x, y) is centred at x, y.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> result = probox.evaluate(demo.truth, demo.detectors["probabilistic"])
    >>> axes = probox.draw(result, 2, image=demo.picture(2))
    """
    if isinstance(source, Evaluation):
        ids = source.dataset.image_ids
    elif isinstance(source, Detections):
        ids = np.unique(source.image_ids)
    else:
        raise InputError(f"expected an Evaluation or Detections to draw, but got {type(source).__name__}")
    if image_id is None:
        if not len(ids):
            raise InputError("expected at least one image")
        image_id = int(ids[0])
    if isinstance(source, Evaluation):
        view = view_of_image(at_best_threshold(source) if show_above is None else source, image_id, detections)
        photo = _photo(image, image_id, view.file_name, (view.width, view.height))
    else:
        photo = _photo(image, image_id, "")
        view = view_of_detections(source, image_id, _size_of(source, image_id, photo))
    return draw_view(
        view,
        photo=photo,
        colours=colours,
        corners=corners,
        heatmap=heatmap,
        label_text=label_text,
        show_above=show_above,
        veil=veil,
        ax=ax,
    )


def draw_view(
    view: ImageView,
    *,
    photo: npt.NDArray[np.uint8] | None = None,
    colours: str = "blue-orange",
    corners: str = "ellipse",
    heatmap: bool = False,
    label_text: str = "full",
    show_above: float | None = None,
    veil: float = VEIL,
    ax: Axes | None = None,
) -> Axes:
    """Draw an image from its view; `probox.draw` documents the options."""
    for name, value, allowed in (("corners", corners, CORNERS), ("label_text", label_text, LABELS)):
        if value not in allowed:
            raise InputError(f"expected {name} to be one of {', '.join(allowed)}, got {value!r}")
    for name, number in (("show_above", 0 if show_above is None else show_above), ("veil", veil)):
        if isinstance(number, bool) or not isinstance(number, int | float | np.number) or not 0 <= number <= 1:
            raise InputError(f"expected {name} to be a number from 0 to 1, got {number!r:.40}")
    palette = palette_called(colours)
    require("matplotlib", extra="report")
    axes = new_axes(view.width, view.height) if ax is None else ax
    rows, remark = view.shown(show_above)
    _draw_ground(axes, view, photo, veil)
    taken: list[tuple[float, float, float, float]] = []
    _draw_masks(axes, view, palette, rows, filled=not heatmap)
    if heatmap:
        taken.append(add_heat(axes, view, rows))
    _draw_boxes(axes, view, palette, corners, rows, filled=not heatmap)
    if label_text != "none":
        from probox.pictures.labelling import add_labels, add_remark

        if remark:
            taken.append(add_remark(axes, view, remark))
        add_labels(axes, view, palette, rows, full=label_text == "full", taken=taken)
    return axes


def _photo(
    image: str | Path | npt.ArrayLike | None, image_id: int, name: str, size: tuple[int, int] | None = None
) -> npt.NDArray[np.uint8] | None:
    if image is None:
        return None
    if isinstance(image, str | Path):
        path = Path(image)
        found = find_photo(path, image_id, name) if path.is_dir() else path
        if found is None:
            raise InputError("no photo of this image", file=str(path), image=image_id, remedy="give the photo itself")
        return load_photo(found, size)
    pixels = np.asarray(image)
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (3, 4)):
        raise InputError(f"expected a photo of shape H x W x 3, but got {' x '.join(map(str, pixels.shape))}")
    if pixels.dtype != np.uint8:
        pixels = np.clip(255.0 * pixels.astype(np.float64), 0, 255).astype(np.uint8)
    return np.repeat(pixels[..., None], 3, axis=2) if pixels.ndim == 2 else pixels[..., :3]


def _size_of(found: Detections, image_id: int, photo: npt.NDArray[np.uint8] | None) -> tuple[int, int]:
    """Return width and height of an image from its photo, its heatmaps, or its boxes and masks."""
    if photo is not None:
        return photo.shape[1], photo.shape[0]
    rows = np.flatnonzero(found.image_ids == image_id)
    for row in rows if found.heatmaps is not None else ():
        given = (found.heatmaps or ())[int(row)]
        if given is not None:
            return given.shape[1], given.shape[0]
    reach = found.boxes[rows, 2:].max(axis=0, initial=63.0)
    if found.masks is not None:
        reach = np.maximum(reach, found.masks.boxes[rows, 2:].max(axis=0, initial=0))
    return int(reach[0]) + 17, int(reach[1]) + 17


def new_axes(width: int, height: int, *, shown: bool = True) -> Axes:
    """Return axes that fill a figure of the image's shape; `shown` figures appear in notebooks and `plt.show`."""
    from probox.pictures.rendering import TextFigure

    scale = _LONG_SIDE / max(width, height)
    # A very narrow image still needs space for text.
    size = (max(width * scale, 1.5), max(height * scale, 1.5))
    options: dict[str, Any] = {"figsize": size, "dpi": 150, "layout": "none"}
    if shown:
        import matplotlib.pyplot as plt

        figure: Any = plt.figure(FigureClass=TextFigure, **options)
    else:
        figure = TextFigure(**options)
    axes: Axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    return axes


def _draw_ground(axes: Axes, view: ImageView, photo: npt.NDArray[np.uint8] | None, veil: float) -> None:
    from matplotlib.colors import to_rgb

    if photo is None:
        photo = np.full((1, 1, 3), np.rint(255 * np.array(to_rgb(_GROUND))), np.uint8)
    elif veil:
        shades = np.rint(np.arange(256) * (1.0 - veil) + 255.0 * veil).astype(np.uint8)
        photo = shades[photo]
    _add_picture(axes, view, photo, zorder=0.0, interpolation="antialiased")
    axes.set_xlim(-0.5, view.width - 0.5)
    axes.set_ylim(view.height - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _add_picture(axes: Axes, view: ImageView, pixels: npt.NDArray[Any], **options: Any) -> None:
    """Draw pixels or values over the whole image, or over the `extent` in the options."""
    from probox.pictures.rendering import Picture

    extent = (-0.5, view.width - 0.5, view.height - 0.5, -0.5)
    picture = Picture(axes, **{"extent": extent, "interpolation": "nearest", **options})
    picture.set_data(pixels)
    picture.set_clip_path(axes.patch)
    axes.add_image(picture)


def _draw_masks(axes: Axes, view: ImageView, palette: Palette, rows: npt.NDArray[np.int64], *, filled: bool) -> None:
    """Draw the masks of objects with solid outlines, and those of these detections with dashed ones above."""
    of_detections, of_objects = view.colours(palette)
    of_object = np.where(view.objects.verdicts == Verdict.FN, 0.40, 0.40 * filled)
    of_detection = np.full(len(of_detections), 0.25 * filled)
    _add_masks(axes, view, view.masks, np.arange(len(of_objects)), of_objects, of_object, "mask", 1.5)
    _add_masks(axes, view, view.found_masks, rows, of_detections, of_detection, "found-mask", 1.51, DASHES)


DASHES = (0.0, (3.0, 2.0))
"""Outlines of masks of detections, in line widths."""


def _add_masks(
    axes: Axes,
    view: ImageView,
    masks: Masks,
    rows: npt.NDArray[np.int64],
    colours: Sequence[str],
    opacities: FloatArray,
    name: str,
    zorder: float,
    linestyle: Any = "solid",
) -> None:
    """Draw the masks of these rows: translucent pixels and outlines."""
    from contourpy import contour_generator
    from matplotlib.colors import to_rgba
    from matplotlib.path import Path as Outline

    from probox.pictures.rendering import Shapes

    rows = rows[masks.pixels[rows] > 0]
    if not len(rows):
        return
    rows = rows[np.argsort(-masks.pixels[rows], kind="stable")]  # largest first, so that small ones remain visible
    overlay = np.zeros((view.height, view.width, 4), np.uint8)
    outlines = []
    for row in rows.tolist():
        left, top, mask = masks.in_box(row)
        here = overlay[top : top + mask.shape[0], left : left + mask.shape[1]]
        here[mask] = np.rint(255 * np.array(to_rgba(colours[row], opacities[row])))
        traced: Any = contour_generator(z=np.pad(mask, 1).astype(np.float64), line_type="ChunkCombinedCode").lines(0.5)
        (points,), (codes,) = traced
        outlines.append(Outline(points + np.array([left - 1.0, top - 1.0]), codes))
    names, lines = [f"{name}-{row}" for row in rows.tolist()], [to_rgba(colours[row]) for row in rows.tolist()]
    common: dict[str, Any] = {"facecolors": "none", "transform": axes.transData}
    white = (1.0, 1.0, 1.0, 0.55)
    axes.add_artist(Shapes(outlines, edgecolors=white, linewidths=2.2, zorder=zorder + 0.5, **common))
    axes.add_artist(
        Shapes(outlines, names, edgecolors=lines, linewidths=1.2, linestyles=linestyle, zorder=zorder + 0.6, **common)
    )
    _add_picture(axes, view, overlay, zorder=zorder)


def _draw_boxes(
    axes: Axes, view: ImageView, palette: Palette, corners: str, rows: npt.NDArray[np.int64], *, filled: bool
) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.path import Path as Outline

    from probox.pictures.rendering import Shapes

    table = view.detections
    if not len(rows):
        return
    thin = float(np.clip(40.0 / len(rows), 0.35, 1.0))  # thin lines for many boxes
    rows = rows[np.argsort(table.confidences[rows], kind="stable")]  # highest scores last, on top
    right = (table.verdicts[rows] == Verdict.TP) | (not view.judged)
    strengths = np.where(right, 1.0, (0.4 + 0.6 * table.confidences[rows].astype(np.float64)) * thin)
    of_detections, _ = view.colours(palette)
    colours = np.array([to_rgb(of_detections[row]) for row in rows.tolist()])
    turns = np.array([0, 1, 2, 1, 2, 3, 0, 3, 0, 1])
    codes = [Outline.MOVETO, *[Outline.LINETO] * 3, Outline.CLOSEPOLY]
    outlines = [Outline(points, codes) for points in table.boxes[rows][:, turns].reshape(-1, 5, 2)]
    # Each box gets a white outline, which separates it from boxes below.
    white = np.column_stack([np.ones((len(rows), 3)), 0.6 * strengths])
    both = np.stack([white, np.column_stack([colours, strengths])], axis=1).reshape(-1, 4)
    axes.add_artist(
        Shapes(
            [outline for outline in outlines for _ in range(2)],
            [name for row in rows.tolist() for name in ("", f"box-{row}")],
            facecolors="none",
            edgecolors=both,
            linewidths=[1.3 + 1.5 * thin, 1.5 * thin] * len(rows),
            transform=axes.transData,
            zorder=3.0,
        )
    )
    both_corners: dict[str, Any] = {
        "means": table.boxes[rows].reshape(-1, 2),
        "covariances": table.covariances[rows].reshape(-1, 2, 2),
        "colours": np.repeat(colours, 2, axis=0),
        "names": [f"corner-{row}-{corner}" for row in rows.tolist() for corner in range(2)],
    }
    if corners in ("ellipse", "ellipses"):
        sigmas = (1,) if corners == "ellipse" else SIGMAS
        add_ellipses(axes, **both_corners, strengths=np.repeat(strengths * thin, 2), sigmas=sigmas, filled=filled)
    elif corners == "arrow":
        add_arrows(axes, **both_corners, strengths=np.repeat(strengths, 2))


SIGMAS = (3, 2, 1)
"""Standard deviations of drawn ellipses, the outermost first."""
SIGMA = 2
"""Standard deviations of the single ellipse."""

_STRENGTHS = {3: 0.55, 2: 0.8, 1: 1.0}
_UNSEEN = 0.02
"""Opacity below which a shape is invisible and not drawn, which saves time."""


def principal_axes(covariance: npt.ArrayLike) -> tuple[FloatArray, float]:
    """Return the standard deviations along the two principal axes, the longer first, and its angle in degrees.

    With Sigma = V diag(l1, l2) V^T, the points one standard deviation from the mean,
    {mu + V diag(sqrt(l1), sqrt(l2)) u : |u| = 1}, are an ellipse with half-axes sqrt(l1) and sqrt(l2).

    >>> half_axes, angle = principal_axes([[4, 3], [3, 4]])
    >>> [round(float(length) ** 2, 6) for length in half_axes], round(angle, 6)
    ([7.0, 1.0], 45.0)
    """
    values, vectors = np.linalg.eigh(np.asarray(covariance, dtype=np.float64))
    x, y = vectors[:, 1]  # eigh sorts ascending
    angle = float(np.degrees(np.arctan2(y, x)) % 180.0)
    return np.sqrt(np.maximum(values[::-1], 0.0)), angle


def add_ellipses(
    axes: Axes,
    means: FloatArray,
    covariances: FloatArray,
    colours: FloatArray,
    strengths: FloatArray,
    names: list[str],
    *,
    sigmas: tuple[int, ...] = SIGMAS,
    filled: bool = True,
) -> None:
    """Draw the ellipses of K corners along their principal axes; zero covariances have none.

    `colours` are red, green and blue, `strengths` the opacities. The names of ellipses are the corner's name and the
    number of standard deviations, the outermost first. They are `filled` unless the heatmap below must stay visible.
    """
    from matplotlib.path import Path

    from probox.pictures.rendering import Shapes

    spread = np.flatnonzero(covariances.any(axis=(1, 2)))
    if not len(spread):
        return
    values, vectors = np.linalg.eigh(covariances[spread])
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]  # (K, 2, 2): V diag(sqrt(l))
    circle: Any = Path.unit_circle()
    outlines = np.einsum("kij,pj->kpi", roots, circle.vertices)
    paths, rgb, alphas, called = [], [], [], []
    for number, corner in enumerate(spread.tolist()):
        for deviations in sigmas:
            paths.append(Path(means[corner] + deviations * outlines[number], circle.codes))
            rgb.append(colours[corner])
            alphas.append(
                (0.2 * strengths[corner], 0.5 * strengths[corner], _STRENGTHS[deviations] * strengths[corner])
            )
            called.append(f"{names[corner]}-{deviations}")
    opacity, tints = np.array(alphas), np.array(rgb)
    for layer, zorder in enumerate((2.5, 2.6)):
        seen = np.flatnonzero((opacity[:, layer] >= _UNSEEN) & (filled or layer == 1))
        tint = tints[seen] if layer == 0 else np.ones((len(seen), 3))
        rgba = np.column_stack([tint, opacity[seen, layer]])
        look: dict[str, Any] = {"facecolors": rgba, "edgecolors": "none"}
        if layer == 1:
            look = {"facecolors": "none", "edgecolors": rgba, "linewidths": 1.9}
        axes.add_artist(Shapes([paths[row] for row in seen], transform=axes.transData, zorder=zorder, **look))
    axes.add_artist(
        Shapes(
            paths, called, facecolors="none", edgecolors=np.column_stack([tints, opacity[:, 2]]), linewidths=1.0,
            transform=axes.transData, zorder=3.1,
        )
    )  # fmt: skip


def add_arrows(
    axes: Axes, means: FloatArray, covariances: FloatArray, colours: FloatArray, strengths: FloatArray, names: list[str]
) -> None:
    """Draw arrows of 2 standard deviations in both directions along both axes of corners; see `add_ellipses`."""
    from matplotlib.patches import FancyArrowPatch

    for mean, covariance, colour, strength, name in zip(means, covariances, colours, strengths, names, strict=True):
        half_axes, angle = principal_axes(covariance)
        for number, (length, turn) in enumerate(zip(half_axes, (angle, angle + 90.0), strict=True)):
            step = SIGMA * length * np.array([np.cos(np.radians(turn)), np.sin(np.radians(turn))])
            if length > 0.0:
                axes.add_artist(
                    FancyArrowPatch(tuple(mean - step), tuple(mean + step), arrowstyle="<|-|>", mutation_scale=6,
                                    shrinkA=0, shrinkB=0, color=tuple(colour), linewidth=1.2, alpha=float(strength),
                                    zorder=3.2, gid=f"{name}-{number}")
                )  # fmt: skip


HEAT = "#004d40"
"""Differs from all outline colours, also with colour vision deficiencies. P = 1 is darkest."""

HEAT_OPACITY = 0.72
"""Opacity of P = 1: the photo remains visible."""

_WORDS = "P(pixel belongs to it)"


def highest_probability(view: ImageView, rows: npt.NDArray[np.int64]) -> FloatArray:
    """Return the highest detection probability of each pixel."""
    highest = np.zeros((view.height, view.width))
    for row in rows.tolist():
        np.maximum(highest, view.heatmap(row), out=highest)
    return highest


def add_heat(axes: Axes, view: ImageView, rows: npt.NDArray[np.int64]) -> tuple[float, float, float, float]:
    """Draw the heatmap of these detections with a scale; return the position of the scale, x1, y1, x2, y2."""
    _add_picture(axes, view, highest_probability(view, rows), gid="heat", zorder=1.6, **_colours())
    return _add_scale(axes, view)


def _colours() -> dict[str, Any]:
    """Return the colour map of probabilities."""
    from matplotlib.colors import ListedColormap, Normalize, to_rgb

    steps = np.linspace(0.0, 1.0, 256)
    colours = np.column_stack([np.tile(to_rgb(HEAT), (256, 1)), HEAT_OPACITY * steps])
    return {"cmap": ListedColormap(colours, name="heat"), "norm": Normalize(0.0, 1.0)}


def _add_scale(axes: Axes, view: ImageView) -> tuple[float, float, float, float]:
    """Draw the scale from 0 to 1 in the lower right corner, on white."""
    from probox.pictures.labelling import Canvas, add_card
    from probox.pictures.rendering import Words, word_width

    canvas = Canvas.of(axes, view)
    points = 6.5
    text = canvas.text_height(points)  # in image pixels, as the lengths below
    width = word_width(_WORDS, points, canvas.dpi) * canvas.pixel
    inset, bar = 0.6 * text, 0.8 * text
    right, bottom = view.width - 0.5 - inset, view.height - 0.5 - inset
    left, top = right - width - 1.2 * text, bottom - 4.3 * text
    if left < -0.5 or top < -0.5:  # a tiny image has no space for a scale
        return (0.0, 0.0, 0.0, 0.0)
    add_card(axes, [(left, top, right, bottom)], ["#9aa1ab"], text, zorder=4.2, names=["heat-scale"])
    x1, x2, y1 = left + 0.6 * text, right - 0.6 * text, top + 1.75 * text
    ramp = np.linspace(0.0, 1.0, 128)[None, :]
    _add_picture(axes, view, ramp, gid="heat-ramp", extent=(x1, x2, y1 + bar, y1), zorder=4.3, **_colours())
    common: dict[str, Any] = {
        "fontsize": points,
        "color": "#14181f",
        "parse_math": False,
        "zorder": 4.3,
        "clip_on": True,
    }
    axes.add_artist(Words(x1, top + 1.3 * text, _WORDS, **common))
    for value, word in ((0.0, "0"), (0.5, "0.5"), (1.0, "1")):
        shift = value * word_width(word, points, canvas.dpi) * canvas.pixel
        axes.add_artist(Words(x1 + value * (x2 - x1) - shift, bottom - 0.55 * text, word, **common))
    return left, top, right, bottom
