"""The page about clusters needs Dask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def hold(folder: Path) -> dict[str, Any]:
    pytest.importorskip("distributed")
    return {}
