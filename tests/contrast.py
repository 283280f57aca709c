"""How well one colour is told from another, as WCAG 2 measures it: text needs 4.5."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["COLOUR_VISION", "colour_distance", "contrast"]

COLOUR_VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""Linear RGB as kinds of colour vision see it (Machado et al. 2009, severity 1)."""


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours such as ``#0072b2``: 1 for the same, 21 for black and white."""
    dark, light = sorted([_luminance(one), _luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def colour_distance(one: str, other: str, vision: str = "normal") -> float:
    """Return the distance of two colours in CIELAB (Delta E 1976), as a kind of colour vision sees them."""
    lab_one, lab_other = (_lab(np.clip(COLOUR_VISION[vision] @ _linear(colour), 0, 1)) for colour in (one, other))
    return float(np.linalg.norm(lab_one - lab_other))


def _linear(colour: str) -> npt.NDArray[np.float64]:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def _luminance(colour: str) -> float:
    return float(_linear(colour) @ [0.2126, 0.7152, 0.0722])


def _lab(linear: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    scaled = to_xyz @ linear / to_xyz.sum(axis=1)
    x, y, z = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
