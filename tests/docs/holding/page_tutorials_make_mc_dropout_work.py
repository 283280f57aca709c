"""The page about MC dropout is for a clone of the repository: it runs one of the examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def hold(folder: Path) -> dict[str, Any]:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    (folder / "examples").symlink_to(EXAMPLES)
    return {}
