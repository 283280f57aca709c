"""Beyond one machine: the work of probox over a Dask cluster, to the bit what one process would give.

Needs the extra ``distributed``.
"""

from __future__ import annotations

from probox.distributed.cluster import open_client
from probox.distributed.engine import map_tasks, tree_reduce

__all__ = ["map_tasks", "open_client", "tree_reduce"]
