"""The examples, as in a clone of the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def hold(folder: Path) -> dict[str, Any]:
    (folder / "examples").symlink_to(ROOT / "examples")
    return {}
