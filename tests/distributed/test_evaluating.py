"""Evaluation over a cluster: to the bit what one process gives, whatever is evaluated and how it is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.amounts import others_slow
from tests.strategies import random_world

import probox
import probox.distributed
from probox import Convention, Detections, GroundTruth, evaluate
from probox.distributed import PARTS_PER_THREAD, run_evaluation
from probox.errors import InputError
from probox.evaluation.parts import KEEP

Tables = tuple[GroundTruth, Detections]


def check_same(client: Any, truth: Any, found: Any, parts: int | None = None, **settings: Any) -> probox.Evaluation:
    """Require the bits of one process; return the shared result."""
    shared = probox.distributed.evaluate(truth, found, client=client, parts=parts, **settings)
    alone = evaluate(truth, found, **settings)
    assert shared.to_bytes() == alone.to_bytes()
    assert shared.inputs == alone.inputs
    return shared


@pytest.mark.parametrize("parts", others_slow([7, None, 1, 2, 30, 31], 2))
def test_tables_give_the_bits_of_one_process(client: Any, tables: Tables, parts: int | None) -> None:
    notes = check_same(client, *tables, parts).notes
    assert "6 detections in 1 image missing from the ground truth were excluded" in map(str, notes)  # counted once


@pytest.mark.parametrize("seed", range(5))
def test_masks_heatmaps_and_covariances_of_every_kind(client: Any, seed: int) -> None:
    check_same(client, *random_world(seed, max_images=6), 3, measures="all")


@pytest.mark.parametrize("parts", others_slow([4, 1, None]))
@pytest.mark.parametrize("keep", KEEP)
def test_sets_of_shards(client: Any, sets: Path, keep: Any, parts: int | None) -> None:
    check_same(client, sets / "truth", sets / "found", parts, keep=keep)


def test_files_that_workers_read_whole(client: Any, demo_files: Path) -> None:
    truth, found = demo_files / "truth.json", demo_files / "probabilistic.json"
    shared = check_same(client, truth, found, 5)
    mixed = probox.distributed.evaluate(probox.read_truth(truth), found, client=client, parts=5)
    assert mixed.to_bytes() == shared.to_bytes()


def test_workers_with_another_current_folder_find_relative_paths(
    client: Any, sets: Path, demo_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, truth, found in ((sets, "truth/", "found/"), (demo_files, "truth.json", "probabilistic.json")):
        monkeypatch.chdir(folder)
        check_same(client, truth, found, 3)  # what results call their files does not tell where workers found them


@pytest.mark.parametrize(
    "settings",
    [
        {"label_threshold": 0.5},
        {"preset": "paper", "fixed_variance": 9.0},
        {"measures": "map"},
        {"measures": ["coverage", "nll"], "clip": "corners"},
    ],
)
def test_settings_reach_the_workers(client: Any, tables: Tables, sets: Path, settings: dict[str, Any]) -> None:
    check_same(client, *tables, 4, **settings)
    check_same(client, sets / "truth", sets / "found", 4, **settings)


def test_some_images_alone(client: Any, tables: Tables, sets: Path, demo_files: Path) -> None:
    wanted = tables[0].image_ids[[3, 4, 11, 20, 29]]
    check_same(client, *tables, 2, image_ids=wanted)
    check_same(client, sets / "truth", sets / "found", 2, image_ids=wanted)
    whole = demo_files / "truth.json", demo_files / "probabilistic.json"
    check_same(client, *whole, 2, image_ids=probox.read_truth(whole[0]).image_ids[1::3])


def test_how_many_parts_there_are(client: Any, tables: Tables) -> None:
    def run(truth: GroundTruth) -> Any:
        with run_evaluation(truth, tables[1], client=client, convention=Convention()) as done:
            return done

    assert run(tables[0]).parts == PARTS_PER_THREAD * 2
    assert run(tables[0].select_images(tables[0].image_ids[:3])).parts == 3
    none = tables[0].select_images(tables[0].image_ids[:0])
    assert run(none).parts == 1
    assert run(none).result.to_bytes() == probox.evaluate(none, tables[1]).to_bytes()


def test_the_client_that_is_open_is_used(client: Any, tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    assert probox.distributed.evaluate(*tables, parts=2).to_bytes() == probox.evaluate(*tables).to_bytes()
    import distributed

    def none_open() -> Any:
        raise ValueError("No global client found and no address provided")

    monkeypatch.setattr(distributed, "get_client", none_open)
    with pytest.raises(InputError, match=r"expected an open Dask client, but got none; open one: `with probox"):
        probox.distributed.evaluate(*tables)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parts": 0}, "expected parts to be a whole number of at least 1, but got 0"),
        ({"keep": "some"}, "expected keep to be one of"),
        ({"measures": "pdk"}, "pdk"),
        ({"tresholds": 0.5}, "tresholds"),
    ],
)
def test_wrong_keywords_are_refused(client: Any, tables: Tables, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        probox.distributed.evaluate(*tables, client=client, **given)


def test_wrong_inputs_are_refused(client: Any, tables: Tables, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.json: no such file"):
        probox.distributed.evaluate(tmp_path / "nowhere.json", tmp_path / "found.json", client=client)
    with pytest.raises(InputError, match="expected argument `detections` to be Detections, but got int"):
        probox.distributed.evaluate(tables[0], 7, client=client)  # type: ignore[arg-type]
