"""The contract of the columns: other tools read and write them, and parts can be read alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.formats.parquet.tables import assert_same, by_image, some_detections
from tests.readers import read_parquet, read_parquet_truth
from tests.strategies import random_world

from probox import Detections, GroundTruth, InputError
from probox.formats import write_parquet
from probox.formats.parquet import writing as parquet_writing
from probox.formats.parquet.shards import Shard


def test_other_tools_read_the_numbers(tmp_path: Path) -> None:
    """Printed numbers are decimals, others floats; pandas and friends need nothing of probox to read either."""
    printed = Detections(
        classes=["cup", "dog"],
        image_ids=[2, 1, 2],
        boxes=[[1.25, 2, 3.5, 4], [0, 0, 1, 1], [5, 5, 6, 6]],
        label_probs=[[0.125, 0.03], [0.5, 0.25], [0.75, 0.1]],
        covariances=np.full((3, 2, 2, 2), 1 / 3),
    )
    write_parquet(tmp_path / "d.parquet", printed)
    table = pq.read_table(tmp_path / "d.parquet")
    assert table.column("image_id").to_pylist() == [1, 2, 2]
    assert [float(value) for value in table.column("x1").to_pylist()] == [0, 1.25, 5]
    assert [str(value) for value in table.column("prob_1").to_pylist()] == ["0.250", "0.030", "0.100"]
    assert table.schema.field("cov1_xx").type == pa.float64()
    words = json.loads(table.schema.metadata[b"probox"])
    assert (words["format"], words["table"], words["classes"]) == (1, "detections", ["cup", "dog"])


def test_a_file_of_another_writer(tmp_path: Path) -> None:
    """Plain types, several row groups, no statistics, columns in another order: all that the contract asks for."""
    table = pa.table({
        "label": pa.array([1, 0, 1], pa.int8()),
        "prob_1": pa.array([0.5, 0.25, 1.0]), "prob_0": pa.array([0.5, 0.5, 0.0]),
        "x1": [1, 2, 3], "y1": [1.5, 2.0, 3.0], "x2": pa.array([4, 5, 6], pa.float32()), "y2": [4.0, 5.0, 6.0],
        "comment": ["a", "b", "c"],
        "image_id": pa.array([7, 8, 8], pa.int32()),
    })  # fmt: skip
    words = {"format": 1, "table": "detections", "classes": ["cup", "dog"]}
    path = tmp_path / "d.parquet"
    with pq.ParquetWriter(
        path, table.schema.with_metadata({"probox": json.dumps(words)}), write_statistics=False
    ) as writer:
        writer.write_table(table.replace_schema_metadata({"probox": json.dumps(words)}), row_group_size=1)
    found = read_parquet(path)
    assert found.image_ids.tolist() == [7, 8, 8]
    assert found.label_probs.tolist() == [[0.5, 0.5], [0.5, 0.25], [0, 1]]
    assert found.boxes.tolist() == [[1, 1.5, 4, 4], [2, 2, 5, 5], [3, 3, 6, 6]]
    assert found.scores.tolist() == [0.5, 0.5, 1]
    assert read_parquet(path, image_ids=[8]).boxes.tolist() == found.boxes[1:].tolist()


def test_row_groups_are_whole_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_writing, "GROUP_BYTES", 700)
    found = some_detections(200, seed=5, image_ids=np.repeat([3, 1, 8, 4, 9, 20], [1, 90, 4, 5, 80, 20]))
    path = tmp_path / "d.parquet"
    write_parquet(path, found)
    file = pq.ParquetFile(path)
    groups = [file.read_row_group(g, ["image_id"]).column(0).to_pylist() for g in range(file.num_row_groups)]
    assert [i for group in groups for i in group] == sorted(found.image_ids.tolist())
    assert [sorted(set(group)) for group in groups] == [[1], [3, 4, 8], [9], [20]]
    assert_same(by_image(found), read_parquet(path))


def test_some_images_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_writing, "GROUP_BYTES", 400)
    found = by_image(some_detections(300, seed=6))
    write_parquet(tmp_path / "d.parquet", found)
    wanted = [24, 3, 77]
    assert_same(found.select(np.isin(found.image_ids, wanted)), read_parquet(tmp_path / "d.parquet", image_ids=wanted))
    assert len(read_parquet(tmp_path / "d.parquet", image_ids=[])) == 0
    seen: list[list[int]] = []
    read = Shard.read

    def watched(self: Any, columns: Any, groups: Any, **options: Any) -> Any:
        if columns != ["image_id"]:  # which tells the row groups of an image
            seen.append(list(groups))
        return read(self, columns, groups, **options)

    monkeypatch.setattr(Shard, "read", watched)
    read_parquet(tmp_path / "d.parquet", image_ids=[24])
    last = pq.read_metadata(tmp_path / "d.parquet").num_row_groups - 1
    assert last > 3
    assert {group for groups in seen for group in groups} == {last}


def test_objects_without_pixels(tmp_path: Path) -> None:
    truth = GroundTruth.from_boxes(["cup"], {1: (9, 9)}, [1, 1], [[2, 2, 4, 4], [20, 2, 24, 4]], [0, 0])
    assert truth.masks.pixels.tolist() == [9, 0]
    write_parquet(tmp_path / "truth.parquet", truth)
    assert_same(read_parquet_truth(tmp_path / "truth.parquet"), truth)


def test_some_images_of_truth_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_writing, "GROUP_BYTES", 300)
    truth, _ = random_world(12, max_images=9)
    write_parquet(tmp_path / "t.parquet", truth)
    for wanted in ([], truth.image_ids[:1], truth.image_ids[1::2], truth.image_ids[[-1, 0, -1]]):
        assert_same(truth.select_images(wanted), read_parquet_truth(tmp_path / "t.parquet", image_ids=wanted))
    with pytest.raises(InputError, match=r"t\.parquet: image 5000: unknown image"):
        read_parquet_truth(tmp_path / "t.parquet", image_ids=[*truth.image_ids[-2:], 5000])
