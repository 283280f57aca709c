"""The page about training needs torch, which not everyone has who runs the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def hold(folder: Path) -> dict[str, Any]:
    pytest.importorskip("torch")
    return {}
