"""A Dask cluster of two processes that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    pytest.importorskip("distributed")
    from probox.distributed import open_client

    with open_client("local:2") as opened:
        yield opened
