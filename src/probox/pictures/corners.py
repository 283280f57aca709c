"""Corner Gaussians: half-axes of their ellipses, and the artists that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SIGMA", "SIGMAS", "add_arrows", "add_ellipses", "principal_axes"]


SIGMAS = (3, 2, 1)
"""The standard deviations at which ellipses are drawn, the outermost first."""
SIGMA = 2
"""The one where there is room for one."""

_STRENGTHS = {3: 0.55, 2: 0.8, 1: 1.0}


def principal_axes(covariance: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], float]:
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
    mean: npt.NDArray[np.float64],
    covariance: npt.NDArray[np.float64],
    colour: str,
    strength: float,
    gid: str,
) -> None:
    """Draw the ellipses at 1, 2 and 3 standard deviations along their true axes."""
    from matplotlib.patches import Ellipse

    if not covariance.any():
        return
    half_axes, angle = principal_axes(covariance)
    for deviations in SIGMAS:
        width, height = 2.0 * deviations * half_axes
        common: dict[str, Any] = {"xy": (mean[0], mean[1]), "width": width, "height": height, "angle": angle}
        axes.add_patch(Ellipse(**common, facecolor=colour, edgecolor="none", alpha=0.2 * strength, zorder=2.5))
        axes.add_patch(
            Ellipse(**common, fill=False, edgecolor="white", linewidth=1.9, alpha=0.5 * strength, zorder=2.6)
        )
        axes.add_patch(
            Ellipse(**common, fill=False, edgecolor=colour, linewidth=1.0, alpha=_STRENGTHS[deviations] * strength,
                    zorder=3.1, gid=f"{gid}-{deviations}")
        )  # fmt: skip


def add_arrows(
    axes: Axes,
    mean: npt.NDArray[np.float64],
    covariance: npt.NDArray[np.float64],
    colour: str,
    strength: float,
    gid: str,
) -> None:
    """Draw arrows of 2 standard deviations to both sides along both axes."""
    from matplotlib.patches import FancyArrowPatch

    half_axes, angle = principal_axes(covariance)
    for number, (length, turn) in enumerate(zip(half_axes, (angle, angle + 90.0), strict=True)):
        step = SIGMA * length * np.array([np.cos(np.radians(turn)), np.sin(np.radians(turn))])
        if length > 0.0:
            axes.add_patch(
                FancyArrowPatch(tuple(mean - step), tuple(mean + step), arrowstyle="<|-|>", mutation_scale=6,
                                shrinkA=0, shrinkB=0, color=colour, linewidth=1.2, alpha=strength, zorder=3.2,
                                gid=f"{gid}-{number}")
            )  # fmt: skip
