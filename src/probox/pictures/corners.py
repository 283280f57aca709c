"""Corner Gaussians: half-axes of their ellipses, and the artists that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = npt.NDArray[np.float64]

SIGMAS = (3, 2, 1)
"""The standard deviations at which ellipses are drawn, the outermost first."""
SIGMA = 2
"""The one where there is room for one."""

_STRENGTHS = {3: 0.55, 2: 0.8, 1: 1.0}
_UNSEEN = 0.02
"""Opacity below which nobody would see a shape that takes as long to draw as any other."""


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
    """Draw the ellipses of corners along their true axes.

    Parameters
    ----------
    axes : matplotlib axes
        Where.
    means : (K, 2) float64
        The corners.
    covariances : (K, 2, 2) float64
        Theirs; one of zeros has no ellipse.
    colours : (K, 3) float64
        Red, green and blue.
    strengths : (K,) float64
        How opaque, 0 to 1.
    names : list of str
        One for each corner; its ellipses are called so with their number of deviations.
    sigmas : tuple of int
        How many standard deviations each ellipse of a corner is away from it, the outermost first.
    filled : bool
        Tint them. Not where the pixels below have something to say.
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
    """Draw arrows of 2 standard deviations to both sides along both axes of corners; see `add_ellipses`."""
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
