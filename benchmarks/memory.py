"""How much memory a process has needed."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["peak_memory"]


def peak_memory() -> float:
    """Return the largest resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike getrusage, this starts afresh with the program, not with the process that started it.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)
