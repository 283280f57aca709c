"""Finished parts that are kept: taken up again by the same run alone, and removed once the whole is done."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.amounts import others_slow
from tests.distributed import jobs
from tests.distributed.running import run_of
from tests.formats.labels.world import header, put

import probox
import probox.distributed
from probox import Detections, GroundTruth, evaluate
from probox.distributed.inputs import forget_inputs, given_truth
from probox.distributed.kept import NOTE, KeptParts, PartsFolder, part_name
from probox.distributed.part_task import Plan, join_parts, run_part
from probox.errors import InputError
from probox.evaluation.parts import KEEP, hash_ids
from probox.files.staging import claim

Tables = tuple[GroundTruth, Detections]
PARTS = 5


class StoppedError(Exception):
    """What a test raises where a run would be killed."""


def leave_parts(client: Any, folder: Path, truth: Any, found: Any, **given: Any) -> list[Path]:
    """Let a run of five parts end before its result is saved, and return the files of its parts."""
    from probox.convention import Convention
    from probox.distributed.evaluating import evaluated

    usual: dict[str, Any] = {
        "parts": PARTS, "keep": "all", "resume": False, "retries": 2, "progress": None, "images": None,
        "repair": False, "convention": Convention(), "measures": None,
    }  # fmt: skip
    with pytest.raises(StoppedError), evaluated(truth, found, client=client, folder=folder, **{**usual, **given}):
        raise StoppedError
    return sorted(folder.glob("part-*"))


@pytest.mark.parametrize("name", [NOTE, "lock", part_name(1, PARTS)])
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_only_regular_files_are_read(tmp_path: Path, name: str, kind: str) -> None:
    """A pipe is not waited for, and a link is not followed, so that nothing is made where it leads."""
    file, outside = tmp_path / "parts" / name, tmp_path / "outside"
    file.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to(outside)
    kept = KeptParts(str(file.parent), {}, resume=True)
    with pytest.raises(InputError) as caught:
        kept.folder.read(name) if name.startswith("part") else kept.__enter__()
    problem = "is a link, which is not followed" if kind == "link" else "expected a file, but this is a pipe"
    assert str(caught.value) == f"{file}: {problem}; delete it"
    assert not outside.exists()


@pytest.mark.parametrize("content", [b"[" * 100_000, b" " * (2 << 20)], ids=["deep", "large"])
def test_a_note_that_no_run_writes_is_refused(tmp_path: Path, content: bytes) -> None:
    put(tmp_path / NOTE, content)
    with pytest.raises(InputError, match=r"choose an empty folder|expected at most 1,048,576 bytes"):
        KeptParts(str(tmp_path), {}, resume=True).__enter__()


def test_parts_are_named_by_number_and_gone_in_the_end(client: Any, tables: Tables, tmp_path: Path) -> None:
    folder = tmp_path / "not there yet" / "parts"
    parts = leave_parts(client, folder, *tables)
    assert [part.name for part in parts] == [part_name(number, PARTS) for number in range(1, PARTS + 1)]
    assert {path.name for path in folder.iterdir()} == {*(part.name for part in parts), NOTE, "lock"}
    run = run_of(client, *tables, folder=folder, resume=True)
    assert (run.kept, run.parts) == (PARTS, PARTS)  # as many as before, though another cluster might have other threads
    assert run.result.to_bytes() == probox.evaluate(*tables).to_bytes()
    assert not folder.exists()


@pytest.mark.parametrize("keep", others_slow(KEEP))
def test_only_missing_parts_run_again(client: Any, sets: Path, tmp_path: Path, keep: Any) -> None:
    files = sets / "truth", sets / "found"
    parts = leave_parts(client, tmp_path / "parts", *files, keep=keep)
    for missing in (parts[1], parts[4]):
        missing.unlink()
    run = run_of(client, *files, folder=tmp_path / "parts", resume=True, keep=keep)
    assert run.kept == PARTS - 2
    assert run.damaged == ()
    assert run.result.to_bytes() == evaluate(*files, keep=keep).to_bytes()


def test_strange_files_stay(client: Any, tables: Tables, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    leave_parts(client, folder, *tables)
    (folder / "part-of-my-life.txt").write_text("mine")
    probox.distributed.evaluate(*tables, client=client, folder=folder, resume=True)
    assert [path.name for path in folder.iterdir()] == ["part-of-my-life.txt"]
    with pytest.raises(InputError, match=r"parts: holds other things than parts of a run; choose an empty folder"):
        probox.distributed.evaluate(*tables, client=client, folder=folder)
    assert (folder / "part-of-my-life.txt").read_text() == "mine"


@pytest.mark.parametrize("name", [NOTE, "lock", "thesis.tex"])
def test_files_of_others_are_left_alone(client: Any, tables: Tables, tmp_path: Path, name: str) -> None:
    """Also such as have the names of files that a run keeps."""
    (tmp_path / name).write_text('{"editor.fontSize": 12}')
    with pytest.raises(InputError, match="holds other things than parts of a run; choose an empty folder"):
        run_of(client, *tables, folder=tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, '{"editor.fontSize": 12}')]


def test_a_folder_with_parts_is_refused_unless_they_are_wanted(client: Any, tables: Tables, tmp_path: Path) -> None:
    parts = leave_parts(client, tmp_path, *tables)
    with pytest.raises(InputError, match=r": holds 5 finished parts of an earlier run; go on .*resume=True, or delete"):
        probox.distributed.evaluate(*tables, client=client, parts=PARTS, folder=tmp_path)
    assert all(part.exists() for part in parts)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"parts": 4}, "of another number of parts"),
        ({"label_threshold": 0.3}, "by another convention"),
        ({"measures": "pdq"}, "for other measures"),
        ({"repair": True}, "with covariances repaired otherwise"),
        ({"images": [100, 107, 114, 121, 128, 135]}, "of other images"),
    ],
)
def test_other_settings_are_refused_by_name(
    client: Any, tables: Tables, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    parts = leave_parts(client, tmp_path, *tables)
    with pytest.raises(InputError) as caught:
        probox.distributed.evaluate(*tables, client=client, **{"parts": PARTS, **change}, folder=tmp_path, resume=True)
    assert str(caught.value) == (
        f"{tmp_path}: holds parts {words}; give the same again, delete this folder, or choose another"
    )
    assert all(part.exists() for part in parts)


def test_other_inputs_are_refused_by_name(client: Any, tables: Tables, sets: Path, tmp_path: Path) -> None:
    truth, found = tables
    leave_parts(client, tmp_path / "tables", truth, found)
    with pytest.raises(InputError, match="holds parts of other detections"):
        run_of(client, truth, found.select(found.image_ids > 100), folder=tmp_path / "tables", resume=True)
    shutil.copytree(sets, tmp_path / "sets")
    files = tmp_path / "sets" / "truth", tmp_path / "sets" / "found"
    leave_parts(client, tmp_path / "parts", *files)
    probox.write_parquet(files[0] / "part-0.parquet", truth.select_images(truth.image_ids[:4]))
    with pytest.raises(InputError, match="holds parts of other ground truth"):
        run_of(client, *files, folder=tmp_path / "parts", resume=True)


def test_a_changed_file_is_another_input(client: Any, demo_files: Path, tmp_path: Path) -> None:
    for name in ("truth.json", "unsure.json"):
        shutil.copy(demo_files / name, tmp_path / name)
    files = tmp_path / "truth.json", tmp_path / "unsure.json"
    leave_parts(client, tmp_path / "parts", *files)
    os.utime(files[1], (1, 1))
    with pytest.raises(InputError, match="holds parts of other detections"):
        run_of(client, *files, folder=tmp_path / "parts", resume=True)


def test_files_that_a_truth_names_are_part_of_it(tmp_path: Path) -> None:
    put(tmp_path / "images" / "val" / "7.png", header(64, 32))
    labels = put(tmp_path / "labels" / "val" / "7.txt", "0 0.5 0.5 0.25 0.5\n")
    given = put(tmp_path / "data.yaml", "val: images/val\ntest: images/val\nnames: [cup]\n")
    names = (str(given), f"{given}:test")
    before = [given_truth(name).stamp for name in names]
    assert [given_truth(name).stamp for name in names] == before
    put(labels, "0 0.4 0.5 0.25 0.5\n")
    assert all(given_truth(name).stamp != stamp for name, stamp in zip(names, before, strict=True))


def test_other_files_at_the_same_place_are_noticed(demo_files: Path, tmp_path: Path) -> None:
    """As where each machine has a copy of its own, and one of them is old."""
    paths = [str(tmp_path / name) for name in ("truth.json", "found.json")]
    shutil.copy(demo_files / "truth.json", paths[0])
    plan = Plan(
        of=2, whole=hash_ids(probox.read_truth(paths[0]).image_ids), inputs="known before", truth=paths[0],
        found=paths[1], truth_by_need=False, found_by_need=False, images=None, repair=False,
        given={"measures": "pdq"}, folder=None,
    )  # fmt: skip
    parts: list[Any] = []
    for number, name in enumerate(("unsure.json", "unsure.json", "sure.json"), 1):
        shutil.copy(demo_files / name, paths[1])
        forget_inputs()
        parts.append(run_part(plan, (min(number, 2), None)))
    forget_inputs()
    assert join_parts(parts[:2]).value.part is None
    with pytest.raises(InputError, match="part 2 of 2: is of other ground truth or detections than part 1 of 2"):
        join_parts([parts[0], parts[2]])


def test_another_version_is_refused(client: Any, tables: Tables, tmp_path: Path) -> None:
    leave_parts(client, tmp_path, *tables)
    note = json.loads((tmp_path / NOTE).read_bytes())
    (tmp_path / NOTE).write_text(json.dumps({**note, "probox": "0.0.1"}))
    with pytest.raises(InputError, match="holds parts by another version of probox"):
        run_of(client, *tables, parts=PARTS, folder=tmp_path, resume=True)
    (tmp_path / NOTE).write_text("[")
    with pytest.raises(InputError, match="holds parts by another version of probox"):
        run_of(client, *tables, parts=PARTS, folder=tmp_path, resume=True)


def test_damaged_parts_are_evaluated_anew(client: Any, tables: Tables, tmp_path: Path) -> None:
    parts = leave_parts(client, tmp_path / "parts", *tables)
    cut, turned, empty, other, fine = parts
    cut.write_bytes(cut.read_bytes()[:-100])
    data = bytearray(turned.read_bytes())
    data[len(data) // 2] ^= 1
    turned.write_bytes(data)
    empty.write_bytes(b"")
    other.write_bytes(fine.read_bytes())  # nothing is wrong with it, but it is another part
    run = run_of(client, *tables, folder=tmp_path / "parts", resume=True)
    assert run.kept == 1
    assert run.damaged == tuple(part.name for part in (cut, turned, empty, other))
    assert run.result.to_bytes() == probox.evaluate(*tables).to_bytes()


def test_a_bad_shard_is_named_and_the_other_parts_are_kept(client: Any, sets: Path, tmp_path: Path) -> None:
    shutil.copytree(sets, tmp_path / "sets")
    files = tmp_path / "sets" / "truth", tmp_path / "sets" / "found"
    bad = files[1] / "part-3.parquet"
    sound = bad.read_bytes()
    # Image ids at its beginning and the footer are as they were, so that only whoever reads boxes can see it.
    bad.write_bytes(sound[:400] + bytes(800) + sound[1200:])
    with pytest.raises(InputError) as caught:
        run_of(client, *files, parts=15, folder=tmp_path / "parts")
    assert str(bad) in str(caught.value)
    assert "\n" not in str(caught.value)
    kept = len(list((tmp_path / "parts").glob("part-*")))
    assert 9 <= kept < 15
    bad.write_bytes(sound)
    run = run_of(client, *files, folder=tmp_path / "parts", resume=True)
    assert (run.kept, run.parts) == (kept, 15)
    assert run.result.to_bytes() == evaluate(*files).to_bytes()


def test_a_run_that_kept_nothing_leaves_nothing(client: Any, demo_files: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('[{"image_id": 1}]')
    with pytest.raises(InputError, match=r"bad\.json"):
        run_of(client, demo_files / "truth.json", bad, folder=tmp_path / "parts")
    assert not (tmp_path / "parts").exists()


def test_what_a_killed_worker_was_writing_goes_with_the_parts(tmp_path: Path) -> None:
    place = tmp_path / "parts"
    with KeptParts(str(place), {}, resume=False) as kept:
        half = place / f".{part_name(3, 12)}.0123abcd.part"
        half.mkdir()
        (half / "made-by-probox").write_text(half.name, encoding="utf-8")
        (half / "files").mkdir()
        (half / "files" / "0").write_bytes(b"half of it")
        kept.remove()
    assert not place.exists()


def test_two_runs_do_not_share_a_folder(client: Any, tables: Tables, tmp_path: Path) -> None:
    held = claim(tmp_path / "lock")
    assert held is not None
    try:
        with pytest.raises(InputError, match="another run keeps its parts here; wait for it"):
            run_of(client, *tables, folder=tmp_path)
    finally:
        os.close(held)
    assert run_of(client, *tables, folder=tmp_path).kept == 0


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_worker_that_does_not_see_the_folder_says_so(
    client: Any, tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    before, calls = client.run(os.getcwd), list[Any]()
    client.run(os.chdir, str(tmp_path / "elsewhere"))
    try:
        # The same path, but to each process the folder in which it is.
        with pytest.raises(InputError, match=r"the Dask worker on \S+ does not see this folder"):
            run_of(client, *tables, folder="/proc/self/cwd/parts", progress=lambda *call: calls.append(call))
    finally:
        client.run(os.chdir, next(iter(before.values())))
    assert calls == []  # nothing was begun
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (tmp_path / "parts").exists()


def test_a_worker_that_came_later_does_not_see_the_folder(tables: Tables, tmp_path: Path) -> None:
    plan = Plan(
        of=1, whole="", inputs="", truth=None, found=None, truth_by_need=False, found_by_need=False, images=None,
        repair=False, given={}, folder=PartsFolder(str(tmp_path), mark="of another note"),
    )  # fmt: skip
    with pytest.raises(InputError, match=r"the Dask worker on \S+ does not see this folder"):
        run_part(plan, (1, tables))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of processes")
def test_a_full_disk_is_told_with_the_part(client: Any, tables: Tables, tmp_path: Path) -> None:
    client.run(jobs.limit_files, 5000)
    try:
        with pytest.raises(InputError) as caught:
            run_of(client, *tables, parts=2, folder=tmp_path / "parts")
    finally:
        client.run(jobs.limit_files, 0)
    message = str(caught.value)
    assert message.startswith(str(tmp_path / "parts" / part_name(1, 2)))
    assert "part 1 of 2: cannot be written: " in message
    assert message.endswith("run again with resume=True, which does what is missing")
    assert "\n" not in message


def test_parts_at_a_url(client: Any, tables: Tables, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    url = f"file://{tmp_path}/parts"
    parts = leave_parts(client, tmp_path / "parts", *tables)
    parts[2].unlink()
    with pytest.raises(InputError, match=r"^file://.*: holds 4 finished parts"):
        run_of(client, *tables, parts=PARTS, folder=url)
    run = run_of(client, *tables, folder=url, resume=True)
    assert run.kept == 4
    assert run.result.to_bytes() == probox.evaluate(*tables).to_bytes()
    assert list(tmp_path.rglob("*.probox")) == []
