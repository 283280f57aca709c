"""Beyond one machine: the work of probox over a Dask cluster, to the bit what one process would give.

Needs the extra ``distributed``.
"""

from __future__ import annotations

from probox.distributed.analyses import bootstrap, calibrate, compare, diagnose
from probox.distributed.cluster import open_client
from probox.distributed.detecting import detect_images
from probox.distributed.engine import map_tasks, tree_reduce
from probox.distributed.evaluating import evaluate

__all__ = [
    "bootstrap",
    "calibrate",
    "compare",
    "detect_images",
    "diagnose",
    "evaluate",
    "map_tasks",
    "open_client",
    "tree_reduce",
]
