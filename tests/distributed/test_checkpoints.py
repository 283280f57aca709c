"""Finished parts that are kept: taken up again by the same run alone, and removed once the whole is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.amounts import others_slow

import probox
import probox.distributed
from probox import Convention, Detections, GroundTruth, evaluate
from probox.distributed import run_evaluation
from probox.errors import InputError
from probox.evaluation.parts import KEEP

Tables = tuple[GroundTruth, Detections]
PARTS = 5


class StoppedError(Exception):
    """What a test raises where a run would be killed."""


def leave_parts(client: Any, folder: Path, *files: Any, **given: Any) -> list[Path]:
    """Let a run of five parts end before its result is saved, and return the files of its parts."""
    usual: dict[str, Any] = {"parts": PARTS, "convention": Convention()}
    with pytest.raises(StoppedError), run_evaluation(*files, client=client, checkpoint=folder, **{**usual, **given}):
        raise StoppedError
    return sorted(folder.glob("part-*"))


@pytest.mark.parametrize("keep", others_slow(KEEP))
def test_only_missing_and_damaged_parts_run_again(client: Any, sets: Path, tmp_path: Path, keep: Any) -> None:
    files, folder = (sets / "truth", sets / "found"), tmp_path / "not there yet" / "parts"
    parts = leave_parts(client, folder, *files, keep=keep)
    assert {path.name for path in folder.iterdir()} == {*(part.name for part in parts), "settings.json", "lock"}
    assert len(parts) == PARTS
    parts[1].unlink()
    parts[2].write_bytes(parts[2].read_bytes()[:-1])
    parts[4].write_bytes(parts[3].read_bytes())  # another part's
    calls: list[tuple[int, int]] = []
    with run_evaluation(
        *files, client=client, checkpoint=folder, keep=keep, convention=Convention(),
        progress=lambda *call: calls.append(call),
    ) as run:  # fmt: skip
        assert (run.kept, run.parts) == (2, PARTS)  # as many as before, though another cluster might have more threads
    assert calls[0] == (12, 30)
    assert calls[-1] == (30, 30)
    assert run.result.to_bytes() == evaluate(*files, keep=keep).to_bytes()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"parts": 4}, "parts"),
        ({"label_threshold": 0.3}, "convention"),
        ({"measures": "pdq"}, "measures"),
        ({"keep": "matches"}, "keep"),
        ({"image_ids": [100, 107, 114, 121, 128, 135]}, "images, inputs"),
    ],
)
def test_other_settings_are_refused_by_name(
    client: Any, tables: Tables, tmp_path: Path, change: dict[str, Any], names: str
) -> None:
    parts = leave_parts(client, tmp_path / "parts", *tables)
    with pytest.raises(InputError) as caught:
        probox.distributed.evaluate(*tables, client=client, **{"parts": PARTS, **change}, checkpoint=tmp_path / "parts")
    assert str(caught.value) == (
        f"{tmp_path / 'parts'}: an interrupted run with other settings ({names}) left its results here; "
        "delete this folder, or choose another output"
    )
    assert all(part.exists() for part in parts)


def test_other_inputs_are_refused(client: Any, tables: Tables, sets: Path, tmp_path: Path) -> None:
    truth, found = tables
    leave_parts(client, tmp_path / "tables", truth, found)
    others = [(truth, found.select(found.image_ids != 100)), (truth, sets / "found")]
    for other in others:
        with pytest.raises(InputError, match=r"with other settings \(inputs\)"):
            probox.distributed.evaluate(*other, client=client, parts=PARTS, checkpoint=tmp_path / "tables")


def test_a_folder_of_others_is_left_alone(client: Any, tables: Tables, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="is in the way: finished pieces of this run would be kept here"):
        probox.distributed.evaluate(*tables, client=client, checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
