"""Peak memory of a process."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["forget_peak", "peak_memory"]


def peak_memory() -> float:
    """Return the largest resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike getrusage, this starts at zero with the program, and excludes the parent process.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


def forget_peak() -> bool:
    """Reset `peak_memory` to the current use; return whether this system supports it."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True
