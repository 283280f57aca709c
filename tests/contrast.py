"""How well one colour is told from another, as WCAG 2 measures it: text needs 4.5."""

from __future__ import annotations

__all__ = ["contrast"]


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours such as ``#0072b2``: 1 for the same, 21 for black and white."""
    dark, light = sorted([_luminance(one), _luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
