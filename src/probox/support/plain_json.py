"""Values as JSON can hold them."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["plain_json"]


def plain_json(value: Any) -> Any:
    """Return a value of lists, dictionaries, numbers and text alone; NaN and infinities become None.

    >>> plain_json({1: (0.5, float("nan"))})
    {'1': [0.5, None]}
    """
    if isinstance(value, dict):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    if hasattr(value, "tolist"):
        return plain_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
