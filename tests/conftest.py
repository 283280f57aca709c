"""Where test data lies, and how much Hypothesis tries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# In CI the same examples every time: a new counter-example is a discovery for a desk, not a reason to stop a landing.
settings.register_profile(
    "probox",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("probox")

SHARED = Path(os.environ.get("PROBOX_SHARED", Path(__file__).resolve().parents[2] / "shared"))


@pytest.fixture(scope="session")
def coco_dir() -> Path:
    """Return the folder of third-party COCO data, which is not part of the project."""
    if not (SHARED / "coco").is_dir():
        pytest.skip("COCO data is not on this machine")
    return SHARED / "coco"


@pytest.fixture(scope="session")
def golden_dir() -> Path:
    """Return the folder of golden cases: a copy of the small ones lives beside the tests."""
    return Path(__file__).resolve().parent / "golden"
