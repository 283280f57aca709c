"""How much memory a process has needed."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["forget_peak", "peak_memory"]


def peak_memory() -> float:
    """Return the largest resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike getrusage, this starts afresh with the program, not with the process that started it.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


def forget_peak() -> bool:
    """Let `peak_memory` start afresh from what is in use now; return whether this system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True
