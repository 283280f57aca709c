"""Pictures of one image: who matched whom, how unsure each corner is, what each quality was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.evaluation.result import Evaluation
from probox.files.photos import find_photo, load_photo
from probox.pictures.corners import add_arrows, add_ellipses
from probox.pictures.style import Palette, palette_called
from probox.pictures.view import ImageView, view_of_detections, view_of_image
from probox.support.optional import require
from probox.tables.detections import Detections
from probox.tables.results import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CORNERS", "LABELS", "draw", "draw_view"]

CORNERS = ("ellipse", "arrow", "none")
LABELS = ("full", "class", "none")
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
    labels: str = "full",
    ax: Axes | None = None,
) -> Axes:
    """Draw one image with its objects and detections.

    True positives: mask and box blue; false positives: box orange; missed objects: mask orange. Detections
    alone, without truth, are blue.

    Parameters
    ----------
    source : Evaluation or Detections
        What to draw.
    image_id : int, optional
        Which image. Default: the first.
    image : path or (H, W, 3) array, optional
        The photo, or a folder in which to look for it. Default: a plain ground.
    detections : Detections, optional
        Where given heatmaps come from (probabilistic segmentation): evaluations do not keep them.
    colours : {"blue-orange", "green-red"}
        Colours of right and wrong.
    corners : {"ellipse", "arrow", "none"}
        Corner Gaussians as ellipses at 1, 2 and 3 standard deviations, or as arrows of 2, along their axes.
    heatmap : bool
        Draw P(x), the probability of every pixel to belong to a detected object.
    labels : {"full", "class", "none"}
        Text at detections: class, score, pPDQ, spatial and label quality; the class alone; nothing.
    ax : matplotlib axes, optional
        Where to draw. Default: a figure of its own.

    Returns
    -------
    matplotlib.axes.Axes
        Pixel (x, y) is centred at x, y.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> result = probox.evaluate(demo.truth, demo.detectors["unsure"])
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
            raise InputError("there is no image to draw")
        image_id = int(ids[0])
    if isinstance(source, Evaluation):
        view = view_of_image(source, image_id, detections)
        photo = _photo(image, image_id, view.file_name, (view.width, view.height))
    else:
        photo = _photo(image, image_id, "")
        view = view_of_detections(source, image_id, _size_of(source, image_id, photo))
    return draw_view(view, photo=photo, colours=colours, corners=corners, heatmap=heatmap, labels=labels, ax=ax)


def draw_view(
    view: ImageView,
    *,
    photo: npt.NDArray[np.uint8] | None = None,
    colours: str = "blue-orange",
    corners: str = "ellipse",
    heatmap: bool = False,
    labels: str = "full",
    ax: Axes | None = None,
) -> Axes:
    """Draw what `probox.draw` draws of an image that is at hand."""
    for name, value, allowed in (("corners", corners, CORNERS), ("labels", labels, LABELS)):
        if value not in allowed:
            raise InputError(f"expected {name} to be one of {', '.join(allowed)}, got {value!r}")
    palette = palette_called(colours)
    require("matplotlib", extra="report")
    axes = _new_axes(view.width, view.height) if ax is None else ax
    _draw_ground(axes, view, photo)
    _draw_masks(axes, view, palette, filled=not heatmap)
    if heatmap:
        _draw_heatmaps(axes, view, palette)
    _draw_boxes(axes, view, palette, corners)
    if labels != "none":
        from probox.pictures.labelling import add_labels

        add_labels(axes, view, palette, full=labels == "full")
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
            raise InputError("no photo of this image", file=str(path), image=image_id, remedy="name the photo itself")
        return load_photo(found, size)
    pixels = np.asarray(image)
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (3, 4)):
        raise InputError(f"expected a photo of shape H x W x 3, but got {' x '.join(map(str, pixels.shape))}")
    if pixels.dtype != np.uint8:
        pixels = np.clip(255.0 * pixels.astype(np.float64), 0, 255).astype(np.uint8)
    return np.repeat(pixels[..., None], 3, axis=2) if pixels.ndim == 2 else pixels[..., :3]


def _size_of(found: Detections, image_id: int, photo: npt.NDArray[np.uint8] | None) -> tuple[int, int]:
    """Return width and height of an image that only its photo, its heatmaps or its boxes can tell."""
    if photo is not None:
        return photo.shape[1], photo.shape[0]
    rows = np.flatnonzero(found.image_ids == image_id)
    for row in rows if found.heatmaps is not None else ():
        given = (found.heatmaps or ())[int(row)]
        if given is not None:
            return given.shape[1], given.shape[0]
    reach = found.boxes[rows, 2:].max(axis=0, initial=63.0)
    return int(reach[0]) + 17, int(reach[1]) + 17


def _new_axes(width: int, height: int) -> Axes:
    """Return axes that fill a figure of the image's shape."""
    import matplotlib.pyplot as plt

    from probox.pictures.saving import TextFigure

    scale = _LONG_SIDE / max(width, height)
    # A sliver of an image still needs room for words.
    size = max(width * scale, 1.5), max(height * scale, 1.5)
    figure = plt.figure(figsize=size, dpi=150, layout="none", FigureClass=TextFigure)
    axes: Axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    return axes


def _draw_ground(axes: Axes, view: ImageView, photo: npt.NDArray[np.uint8] | None) -> None:
    extent = (-0.5, view.width - 0.5, view.height - 0.5, -0.5)
    if photo is None:
        from matplotlib.colors import to_rgb

        axes.imshow(np.array([[to_rgb(_GROUND)]]), extent=extent, interpolation="nearest")
    else:
        axes.imshow(photo, extent=extent, interpolation="antialiased")
        # A veil, so that colours on it mean something.
        axes.imshow(np.array([[(1.0, 1.0, 1.0, 0.16)]]), extent=extent, interpolation="nearest")
    axes.set_xlim(-0.5, view.width - 0.5)
    axes.set_ylim(view.height - 0.5, -0.5)
    axes.set_aspect("equal")
    axes.set_axis_off()


def _draw_masks(axes: Axes, view: ImageView, palette: Palette, *, filled: bool) -> None:
    from contourpy import contour_generator
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb

    overlay = np.zeros((view.height, view.width, 4))
    # The largest first, so that small ones stay visible on them.
    for row in np.argsort(-view.masks.pixels, kind="stable").tolist():
        colour = palette.of_verdict(int(view.objects.verdicts[row]))
        mask = view.mask(row)
        missed = view.objects.verdicts[row] == Verdict.FN
        overlay[mask] = (*to_rgb(colour), 0.40 if filled or missed else 0.0)
        padded = np.pad(mask, 1).astype(np.float64)
        lines: Any = contour_generator(z=padded).lines(0.5)
        outline = [line - 1.0 for line in lines]
        axes.add_collection(LineCollection(outline, colors="white", linewidths=2.2, alpha=0.55, zorder=2.0))
        axes.add_collection(LineCollection(outline, colors=colour, linewidths=1.2, zorder=2.1, gid=f"mask-{row}"))
    if len(view.objects):
        extent = (-0.5, view.width - 0.5, view.height - 0.5, -0.5)
        axes.imshow(overlay, extent=extent, interpolation="nearest", zorder=1.5)


def _draw_heatmaps(axes: Axes, view: ImageView, palette: Palette) -> None:
    """Draw P(x): where several detections claim a pixel, the one that claims it most."""
    from matplotlib.colors import to_rgb

    highest = np.zeros((view.height, view.width))
    overlay = np.zeros((view.height, view.width, 4))
    for row in range(len(view.detections)):
        probability = view.heatmap(row)
        colour = to_rgb(_detection_colour(view, palette, row))
        more = probability > highest
        highest[more] = probability[more]
        overlay[more, :3] = colour
    overlay[..., 3] = 0.55 * highest
    extent = (-0.5, view.width - 0.5, view.height - 0.5, -0.5)
    axes.imshow(overlay, extent=extent, interpolation="nearest", zorder=1.6)


def _draw_boxes(axes: Axes, view: ImageView, palette: Palette, corners: str) -> None:
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    table = view.detections
    thin = float(np.clip(40.0 / max(len(table), 1), 0.35, 1.0))  # many boxes in fine lines
    # The surest last, on top.
    for row in np.argsort(table.confidences, kind="stable").tolist():
        colour = _detection_colour(view, palette, row)
        right = table.verdicts[row] == Verdict.TP or not view.judged
        strength = 1.0 if right else (0.4 + 0.6 * float(table.confidences[row])) * thin
        x1, y1, x2, y2 = table.boxes[row]
        effects: list[Any] = [withStroke(linewidth=1.3 + 1.5 * thin, foreground="white", alpha=0.6 * strength)]
        axes.add_patch(
            Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor=colour, linewidth=1.5 * thin, alpha=strength,
                      zorder=3.0, path_effects=effects, gid=f"box-{row}")
        )  # fmt: skip
        for corner in range(2):
            mean, covariance = table.boxes[row, 2 * corner : 2 * corner + 2], table.covariances[row, corner]
            if corners == "ellipse":
                add_ellipses(axes, mean, covariance, colour, strength * thin, gid=f"corner-{row}-{corner}")
            elif corners == "arrow":
                add_arrows(axes, mean, covariance, colour, strength, gid=f"corner-{row}-{corner}")


def _detection_colour(view: ImageView, palette: Palette, row: int) -> str:
    return palette.of_verdict(int(view.detections.verdicts[row])) if view.judged else palette.right
