"""Pieces of work on a cluster: in order, with what they share sent once, and again where a process died."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.distributed import pieces

pytest.importorskip("distributed")

from probox.convention import Convention
from probox.distributed.engine import DroppedError
from probox.distributed.mapper import TRIES, ClusterMapper
from probox.errors import InputError

NUMBERS = np.arange(1000)


def test_results_come_in_the_order_of_items(client: Any) -> None:
    mapper = ClusterMapper(client)
    assert mapper.at_once == 2
    found = list(mapper(pieces.scaled, list(range(20)), NUMBERS, 7))
    assert all((one == factor * NUMBERS + 7).all() for factor, one in enumerate(found))
    assert list(mapper(pieces.scaled, [], NUMBERS, 7)) == []


def test_what_is_shared_is_sent_once_and_threads_are_one(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    scatter = client.scatter
    monkeypatch.setattr(client, "scatter", lambda values, **how: (sent.extend(values), scatter(values, **how))[1])
    mapper = ClusterMapper(client)
    found = [*mapper(pieces.total, list(range(8)), NUMBERS), *mapper(pieces.total, list(range(8)), NUMBERS)]
    assert [one is NUMBERS for one in sent] == [True]
    assert found == 2 * [(NUMBERS.sum() + item, 1) for item in range(8)]


def test_items_and_shared_values_arrive_as_they_are(client: Any) -> None:
    items = [(len, ("abc",)), [1, (2, 3)], {"a": (max, 1, 2)}, None]
    for shared in ((len, "abc"), [1, 2], {"a": 1}, ("a", 3), Convention(), None):
        assert list(ClusterMapper(client)(pieces.as_given, items, shared)) == [(item, shared) for item in items]


def test_what_is_wrong_in_a_piece_is_said_in_one_line(client: Any) -> None:
    mapper = ClusterMapper(client)
    with pytest.raises(InputError) as told:
        list(mapper(pieces.scaled_unless_odd, [2, 3, 4], NUMBERS))
    assert str(told.value) == "3.json: is odd; take another"


def test_a_piece_whose_process_dies_runs_again(client: Any, tmp_path: Path) -> None:
    mapper = ClusterMapper(client)
    # A single piece runs where the numbers are: they must not be there alone.
    (found,) = mapper(pieces.scaled_after_a_death, [3], NUMBERS, str(tmp_path))
    assert (tmp_path / "died").exists()
    assert (found == 3 * NUMBERS).all()
    assert len(list(mapper(pieces.scaled_after_a_death, list(range(6)), NUMBERS, str(tmp_path)))) == 6


def test_what_the_only_worker_had_is_sent_again_when_it_dies(tmp_path: Path) -> None:
    import dask

    from probox.distributed import open_client

    # A call of the dead worker that is under way is given up after this time; Dask's own is half a minute.
    with dask.config.set({"distributed.comm.timeouts.connect": "5s"}), open_client("local:1") as alone:
        found = list(ClusterMapper(alone)(pieces.scaled_after_a_death, list(range(6)), NUMBERS, str(tmp_path)))
    assert (tmp_path / "died").exists()
    assert all((one == factor * NUMBERS).all() for factor, one in enumerate(found))
    assert len(found) == 6


def test_a_cluster_that_loses_everything_is_given_up(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []

    def dropped(*_: Any, **__: Any) -> Any:
        sent.append(1)
        raise DroppedError("dropped the task", entry="piece 1 of 2", remedy="run it again")

    monkeypatch.setattr("probox.distributed.mapper.watch_tasks", dropped)
    with pytest.raises(InputError, match="piece 1 of 2: dropped the task; run it again"):
        list(ClusterMapper(client)(pieces.scaled, [1, 2], NUMBERS, 7))
    assert len(sent) == TRIES


def test_without_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed

    monkeypatch.setattr(distributed, "get_client", lambda: (_ for _ in ()).throw(ValueError))
    with pytest.raises(InputError, match="there is no Dask cluster to work on"):
        ClusterMapper()
