"""Evaluations in parts: which images, how much is kept, and how parts become one result."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from probox.parts.compact import CompactEvaluation
    from probox.parts.joining import join
    from probox.parts.keep import KEEP, Keep
    from probox.parts.run import evaluate_part
    from probox.parts.storage import from_bytes, load

__all__ = ["KEEP", "CompactEvaluation", "Keep", "evaluate_part", "from_bytes", "join", "load"]

# Loaded when first used: a command that only asks what may be kept need not wait for the rest.
_HOMES = {
    "CompactEvaluation": "compact",
    "KEEP": "keep",
    "Keep": "keep",
    "evaluate_part": "run",
    "from_bytes": "storage",
    "join": "joining",
    "load": "storage",
}


if not TYPE_CHECKING:  # type checkers know the names above, and no others

    def __getattr__(name: str) -> Any:
        """Load a name of this room when it is first asked for."""
        if name not in _HOMES:
            raise AttributeError(f"module 'probox.parts' has no attribute {name!r}")
        return getattr(import_module(f"probox.parts.{_HOMES[name]}"), name)
