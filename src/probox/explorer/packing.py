"""How the page is told things: JSON that is safe in a script, columns as bytes, numbers that may be missing."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["number", "packed", "to_script_json"]

_KINDS = {"u1": "u8", "i2": "i16", "u2": "u16", "i4": "i32", "u4": "u32", "f4": "f32", "f8": "f64"}


def to_script_json(value: Any) -> str:
    """Return JSON that is safe inside a script element: no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(values: npt.ArrayLike, kind: str) -> list[str]:
    """Return a column as its type's name and its bytes, little end first, in base64."""
    array = np.ascontiguousarray(np.asarray(values), dtype=f"<{kind}")
    return [_KINDS[kind], base64.b64encode(array.tobytes()).decode("ascii")]


def number(value: float, digits: int = 12) -> float | None:
    """Return a number for JSON; None where there is none."""
    return round(float(value), digits) if math.isfinite(value) else None
