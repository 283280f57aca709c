"""Parts of Parquet sets: each reads what it needs, and all of them are what one process gives."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.evaluation.equal import assert_equal
from tests.evaluation.worlds import many_images
from tests.strategies import with_box_masks

from probox import Evaluation, InputError, evaluate, merge, write_parquet

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a set of five shards each, and single files of the same."""
    folder = tmp_path_factory.mktemp("sets")
    truth, found = many_images(4)
    for table, name in ((truth, "truth"), (with_box_masks(truth, found), "found")):
        write_parquet(folder / name, table, shards=5)
        write_parquet(folder / f"{name}.parquet", table)
    return folder


@pytest.mark.parametrize("form", ["{}", "{}.parquet"])
@pytest.mark.parametrize("measures", [None, "all", "map"])
def test_parts_are_what_one_process_gives(sets: Path, form: str, measures: str | None) -> None:
    truth, found = (str(sets / form.format(name)) for name in ("truth", "found"))
    whole = evaluate(truth, found, measures=measures, label_threshold=0.2)
    parts = [
        evaluate(truth, found, part=(number, 6), measures=measures, label_threshold=0.2)
        for number in (4, 6, 1, 3, 2, 5)
    ]
    joined = merge(parts)
    assert isinstance(joined, Evaluation)
    assert_equal(joined, whole)
    assert ("map-mask" in whole.measures) == (measures == "all")
    assert (joined.input_notes, joined.inputs) == (whole.input_notes, whole.inputs)
    assert any(note.code == "unknown-images" for note in joined.input_notes)


@pytest.mark.parametrize("keep", ["matches", "summary"])
def test_numbers_of_what_is_kept(sets: Path, keep: Any) -> None:
    whole = evaluate(sets / "truth", sets / "found")
    for parts in (1, 5):
        joined = merge(
            [evaluate(sets / "truth", sets / "found", part=(n, parts), keep=keep) for n in range(parts, 0, -1)]
        )
        np.testing.assert_equal(joined.summary(), {key: whole.summary()[key] for key in joined.summary()})
        np.testing.assert_array_equal(joined.per_image().columns["sum_pPDQ"], whole.per_image().columns["sum_pPDQ"])


def test_repaired_covariances_are_counted_in_all_parts(tmp_path: Path) -> None:
    truth, found = many_images(4)
    write_parquet(tmp_path / "truth.parquet", truth)
    write_parquet(tmp_path / "found.parquet", found)
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    table = parquet.read_table(tmp_path / "found.parquet")
    broken = np.where(np.arange(len(table)) % 7 == 0, -4.0, table.column("cov1_xx").to_numpy())
    place = table.column_names.index("cov1_xx")
    parquet.write_table(
        table.set_column(place, table.schema.field(place), arrow.array(broken)), tmp_path / "broken.parquet"
    )
    given = tmp_path / "truth.parquet", tmp_path / "broken.parquet"
    whole = evaluate(*given, repair=True)
    joined = merge([evaluate(*given, part=(number, 3), repair=True) for number in (3, 1, 2)])
    assert any(note.code == "repaired-covariances" for note in whole.input_notes)
    assert joined.input_notes == whole.input_notes


def test_a_part_does_not_read_rows_that_it_does_not_need(sets: Path, tmp_path: Path) -> None:
    import shutil

    import pyarrow.parquet as pq

    shutil.copytree(sets / "found", tmp_path / "found")
    whole = evaluate(sets / "truth", tmp_path / "found", part="1/5", keep="matches")
    last = sorted((tmp_path / "found").glob("part-*.parquet"))[-1]
    data = bytearray(last.read_bytes())
    start = pq.read_metadata(last).row_group(0).column(1).data_page_offset  # of x1: image ids are read of all shards
    data[start + 20 : start + 60] = bytes(40)
    last.write_bytes(data)
    again = evaluate(sets / "truth", tmp_path / "found", part="1/5", keep="matches")
    assert again.to_bytes() == dataclasses.replace(whole, inputs=again.inputs).to_bytes()
    with pytest.raises(InputError, match=f"{last.name}: cannot be read as Parquet"):
        evaluate(sets / "truth", tmp_path / "found", part="5/5", keep="matches")


def test_parts_of_another_set_are_foreign(sets: Path, tmp_path: Path) -> None:
    _, found = many_images(4)
    probs = np.array(found.label_probs)
    probs[0, 0] = 0.5
    write_parquet(tmp_path / "other", found.replace(label_probs=probs), shards=5)
    first = evaluate(sets / "truth", sets / "found", part="1/2")
    second = evaluate(sets / "truth", tmp_path / "other", part="2/2")
    with pytest.raises(
        InputError, match="part 2 of 2: was computed from other ground truth or detections than part 1 of 2"
    ):
        merge([first, second])


def test_chosen_images(sets: Path) -> None:
    truth, _ = many_images(4)
    ids = truth.image_ids[5:40]
    whole = evaluate(sets / "truth", sets / "found", image_ids=ids)
    joined = merge([evaluate(sets / "truth", sets / "found", part=(n, 3), image_ids=ids) for n in (2, 3, 1)])
    assert isinstance(joined, Evaluation)
    assert_equal(joined, whole)
