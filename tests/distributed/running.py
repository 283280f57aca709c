"""What several tests do with evaluations over a cluster."""

from __future__ import annotations

from typing import Any

from probox.convention import Convention
from probox.distributed.evaluating import Run, evaluated

__all__ = ["run_of"]


def run_of(client: Any, truth: Any, found: Any, **given: Any) -> Run:
    """Evaluate over a cluster, and return how it went, too."""
    usual: dict[str, Any] = {
        "parts": None, "keep": "all", "folder": None, "resume": False, "retries": 2, "progress": None,
        "images": None, "repair": False, "convention": Convention(), "measures": None,
    }  # fmt: skip
    with evaluated(truth, found, client=client, **{**usual, **given}) as run:
        return run
