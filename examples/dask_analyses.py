"""Analyse many results on a Dask cluster: confidence intervals and a diagnosis, one task per result.

    pip install 'probox[distributed]'
    python examples/dask_analyses.py results/* --dask local:2

Results are folders written by `probox evaluate --out`, with the same path for all workers. Numbers equal those of one
process: random draws depend on the seed only.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import probox
from probox.distributed import map_tasks, open_client
from probox.support.parallel import threads_at_most


def analyse(folder: str) -> str:
    """Return the analysis of one result."""
    result = probox.load(folder)
    with threads_at_most(1):  # tasks share the processors
        interval = result.intervals(replicates=200)["PDQ"]
        diagnosis = result.diagnose(replicates=200)
    return f"PDQ {interval.value:.4f} [{interval.low:.4f}, {interval.high:.4f}]\n{diagnosis}"


def main() -> None:
    """Print the analyses in the order of the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--dask", default="local", help="local, local:N, or the address or file of a scheduler")
    options = parser.parse_args()
    folders = [str(folder.resolve()) for folder in options.results]
    with open_client(options.dask) as client:
        found = dict(map_tasks(client, analyse, folders, names=folders))
    for index, folder in enumerate(folders):
        print(f"{Path(folder).name}: {found[index]}\n")


if __name__ == "__main__":  # workers import this file
    main()
