"""Contrast, on numbers that WCAG's own tools give."""

from __future__ import annotations

import pytest
from tests.contrast import colour_distance, contrast


def test_contrast_is_what_wcag_means() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_the_distance_of_colours_is_that_of_cielab_and_shrinks_for_the_colour_blind() -> None:
    assert colour_distance("#ffffff", "#000000") == pytest.approx(100, abs=0.1)
    assert colour_distance("#ff0000", "#00ff00") == pytest.approx(
        170.6, abs=0.5
    )  # L 53.2, a 80.1, b 67.2; 87.7, -86.2, 83.2
    assert colour_distance("#d62728", "#2ca02c", "deuteranopia") < colour_distance("#d62728", "#2ca02c") / 3
