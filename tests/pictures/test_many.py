"""Many pictures: the same bytes by one process or by several, and the same words when something fails."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from probox import Evaluation, InputError, ProboxError
from probox.pictures import batch
from probox.pictures.batch import Task, draw_task, draw_tasks, process_count
from probox.pictures.view import view_of_image

LOOK = {"label_text": "class", "corners": "ellipse"}


@pytest.fixture(scope="module")
def tasks(results: dict[str, Evaluation], demo_files: Path) -> list[Task]:
    photos = demo_files / "images"
    views = [view_of_image(results["probabilistic"], image_id) for image_id in (1, 2, 3)]
    return [
        Task(view, photos / view.file_name, LOOK, ending)
        for view, ending in zip(views, ("png", "svg", "pdf"), strict=True)
    ]


@pytest.mark.slow
def test_several_processes_draw_what_one_draws(tasks: list[Task]) -> None:
    one = list(draw_tasks(tasks, 1))
    two = list(draw_tasks(iter(tasks), 2))
    assert [drawn.content for drawn in one] == [drawn.content for drawn in two]
    assert [drawn.content[:4] for drawn in one] == [b"\x89PNG", b"<?xm", b"%PDF"]


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_picture_that_fails_says_why(tasks: list[Task], processes: int) -> None:
    wrong = dataclasses.replace(tasks[0], options={"corners": "blob"})
    drawing = draw_tasks([tasks[0], wrong, tasks[0]], processes)
    next(drawing)
    with pytest.raises(InputError, match="expected corners to be one of ellipse, ellipses, arrow, none, got 'blob'"):
        list(drawing)


def test_a_process_that_dies_is_said_in_one_line(tasks: list[Task], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_START", "import sys; sys.stdout.write('ready'); sys.stdout.flush(); sys.exit(3)")
    with pytest.raises(ProboxError, match=r"ended with code 3.*--threads 1") as raised:
        list(draw_tasks(tasks, 2))
    assert "\n" not in str(raised.value)


def test_where_no_process_starts_this_one_draws(tasks: list[Task], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_START", "raise SystemExit(1)")
    assert [drawn.content for drawn in draw_tasks(tasks[:1], 2)] == [draw_task(tasks[0]).content]
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert len(list(draw_tasks(tasks[:1], 2))) == 1


def test_a_photo_that_cannot_be_read_is_left_out_and_said(tasks: list[Task], tmp_path: Path) -> None:
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff not a photo")
    drawn = draw_task(dataclasses.replace(tasks[0], photo=tmp_path / "broken.jpg"))
    assert drawn.problem is not None
    assert "broken.jpg" in drawn.problem
    assert drawn.content.startswith(b"\x89PNG")


def test_processes_are_for_many_pictures() -> None:
    assert [process_count(2, pictures) for pictures in (1, 15, 16, 500)] == [1, 1, 2, 2]
    assert process_count(1, 500) == 1


@pytest.mark.slow
def test_a_script_without_a_main_guard_can_draw(demo_files: Path, tmp_path: Path) -> None:
    """Each process must not run the script once more, nor anything that lies beside it."""
    script = tmp_path / "script.py"
    script.write_text(
        "from probox.pictures import batch\n"
        "from probox.cli import main\n"
        "print('once')\n"
        "batch._EACH = 1\n"
        f"main(['draw', {str(demo_files / 'results' / 'probabilistic')!r}, '--out', 'pictures', '--limit', '2', "
        "'--threads', '2', '--label-text', 'none', '--corners', 'none', '--json'])\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.count("once") == 1
    assert done.stderr == ""
    assert len(list((tmp_path / "pictures").glob("*.png"))) == 2
