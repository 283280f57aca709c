"""The command line of probox, with workers to whom every part takes longer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.distributed import jobs

from probox import distributed as module
from probox.cli import main

open_client = module.open_client


@contextmanager
def open_slow_client(address: str) -> Iterator[Any]:
    with open_client(address) as client:
        client.run(jobs.slow_down, 0.4)
        yield client


if __name__ == "__main__":
    module.open_client = open_slow_client
    main(sys.argv[1:])
