"""How many threads read a file: no more than were asked for, and all processors where nobody asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import probox
from probox import _core
from probox.cli import main
from probox.formats import format as formats
from probox.support.parallel import thread_count

TRUTH = {
    "images": [{"id": 1, "width": 9, "height": 9}],
    "categories": [{"id": 3, "name": "cup"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 3, "bbox": [1, 1, 5, 5]}],
}
ROWS = [{"image_id": 1, "category_id": 3, "bbox": [1, 1, 4, number], "score": 0.5} for number in range(5)]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    truth, found = tmp_path / "truth.json", tmp_path / "found.json"
    truth.write_text(json.dumps(TRUTH))
    found.write_text(json.dumps(ROWS))
    return truth, found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return what the kernel is asked for from now on."""
    threads: list[int] = []
    original = _core.read_coco_results

    def read(*data: Any, **how: Any) -> Any:
        threads.append(how["threads"])
        return original(*data, **how)

    monkeypatch.setattr(_core, "read_coco_results", read)
    monkeypatch.setattr(formats, "LEAST_PIECE", 1)
    return threads


@pytest.mark.parametrize("threads", [1, 3])
def test_no_more_than_asked_for(files: tuple[Path, Path], asked: list[int], threads: int) -> None:
    probox.evaluate(*files, threads=threads)
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", *map(str, files), "--threads", str(threads)])
    assert ended.value.code in (0, None)
    assert asked == [min(threads, thread_count(None))] * 2


def test_all_processors_where_nobody_asks(files: tuple[Path, Path], asked: list[int]) -> None:
    truth = probox.read_truth(files[0])
    found = probox.read_detections(files[1], truth)
    assert asked == [formats.read_threads()["threads"]]
    assert found.boxes[:, 3].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
