"""Tasks on a cluster: what completes, what is run again, and how failures are told."""

from __future__ import annotations

import collections
import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.distributed import jobs

from probox.distributed import map_tasks, open_client
from probox.errors import InputError


def tasks_known(client: Any) -> int:
    return int(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))


def wait_for_tasks(client: Any, expected: int) -> None:
    """Wait until the scheduler has forgotten all tasks but so many."""
    deadline = time.monotonic() + 20
    while tasks_known(client) > expected:
        assert time.monotonic() < deadline, "tasks are still there"
        time.sleep(0.05)


def test_results_come_with_their_index_and_progress_in_weights(client: Any) -> None:
    calls: list[tuple[int, int]] = []
    results = map_tasks(
        client, jobs.double, [5, 6, 7], weights=[10, 20, 30], progress=lambda done, total: calls.append((done, total))
    )
    assert sorted(results) == [(0, 10), (1, 12), (2, 14)]
    assert calls[0] == (0, 60)
    assert calls[-1] == (60, 60)
    steps = [after[0] - before[0] for before, after in itertools.pairwise(calls)]
    assert sorted(steps) == [10, 20, 30]


def test_nothing_to_do_is_done(client: Any) -> None:
    assert list(map_tasks(client, jobs.double, [])) == []


def test_errors_in_the_input_come_last_and_are_not_tried_again(client: Any, tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    items = [(str(tmp_path), number) for number in range(8)]
    with pytest.raises(InputError) as caught:
        done.extend(map_tasks(client, jobs.count_calls, items))
    assert sorted(done) == [(0, 0), (2, 4), (4, 8), (6, 12)]
    assert str(caught.value) == "1.parquet: is odd (task 2 of 8; 3 others failed, too); take another"
    assert caught.value.file == "1.parquet"
    tried = collections.Counter(path.name.split("-")[0] for path in tmp_path.iterdir())
    assert tried == {str(number): 1 for number in range(8)}


def test_one_error_of_all_tasks_is_told_once(client: Any) -> None:
    with pytest.raises(InputError) as caught:
        list(map_tasks(client, jobs.double_unless_odd, [3, 3, 3]))
    assert str(caught.value) == "3.parquet: is odd; take another"


def test_a_task_whose_process_dies_runs_again(client: Any, tmp_path: Path) -> None:
    items = [(str(tmp_path), number) for number in range(6)]
    assert sorted(map_tasks(client, jobs.die_at_first, items)) == [(number, 2 * number) for number in range(6)]
    assert (tmp_path / "died").exists()


@pytest.mark.slow
def test_a_task_that_kills_every_process_is_named_and_the_others_finish() -> None:
    """In a cluster of its own: Dask does not start every process again that dies while it starts another."""
    done: list[tuple[int, int]] = []
    names = [f"shard {number}" for number in range(1, 7)]
    told = r"^shard 4: the worker process that ran it died, 4 times.*; go on$"
    with open_client("local:2") as own, pytest.raises(InputError, match=told):
        done.extend(map_tasks(own, jobs.die_always, range(6), names=names, remedy="go on"))
    assert sorted(index for index, _ in done) == [0, 1, 2, 4, 5]


def test_errors_of_the_system_are_tried_again(client: Any, tmp_path: Path) -> None:
    items = [(str(tmp_path), number) for number in range(2)]
    assert sorted(map_tasks(client, jobs.fail_at_disk, items)) == [(0, 0), (1, 2)]
    with pytest.raises(InputError) as caught:
        list(map_tasks(client, jobs.always_fail_at_disk, [1]))
    assert str(caught.value) == "task 1 of 1: shard.parquet: No space left on device; run the same again"


def test_a_mistake_in_the_program_is_not_called_wrong_input(client: Any) -> None:
    with pytest.raises(KeyError, match="nowhere"):
        list(map_tasks(client, jobs.be_wrong, [1], retries=0))


def test_leaving_early_cancels_the_rest(client: Any, tmp_path: Path) -> None:
    before = tasks_known(client)
    results = map_tasks(client, jobs.mark_and_wait, [(str(tmp_path), number) for number in range(60)])
    next(results)
    results.close()  # type: ignore[attr-defined]
    wait_for_tasks(client, before)
    assert 1 <= len(list(tmp_path.iterdir())) < 60


def test_what_tasks_share_is_sent_once_and_let_go(client: Any) -> None:
    before = tasks_known(client)
    numbers = np.arange(6.0)
    results = dict(map_tasks(client, jobs.scale, [2, 3], shared=[numbers, 1]))
    np.testing.assert_array_equal(results[0], 2 * numbers + 1)
    np.testing.assert_array_equal(results[1], 3 * numbers + 1)
    wait_for_tasks(client, before)
