"""Evaluations in parts: which images, how much is kept, and how parts become one result."""

from probox.parts.compact import CompactEvaluation
from probox.parts.joining import join
from probox.parts.keep import KEEP, Keep
from probox.parts.run import evaluate_part
from probox.parts.storage import from_bytes, load

__all__ = ["KEEP", "CompactEvaluation", "Keep", "evaluate_part", "from_bytes", "join", "load"]
