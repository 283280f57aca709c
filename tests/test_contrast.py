"""Contrast, on numbers that WCAG's own tools give."""

from __future__ import annotations

import pytest
from tests.contrast import contrast


def test_contrast_is_what_wcag_means() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)
