"""Draw many images in several processes."""

from __future__ import annotations

import contextlib
import dataclasses
import pickle
import queue
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from probox.errors import InputError, ProboxError
from probox.files.photos import load_photo
from probox.pictures.style import quietly
from probox.pictures.view import ImageView
from probox.support.optional import require
from probox.support.parallel import in_order, thread_count

_EACH = 8
"""Minimum number of images per process, which compensates its start-up time."""

_START = "import sys; sys.path[:] = sys.argv[1:]; from probox.pictures.batch import work; work()"

_READY = b"ready"


@dataclasses.dataclass(frozen=True)
class Task:
    """One image to draw: view, photo, options of `draw_view`, and file type."""

    view: ImageView
    photo: Path | None
    options: dict[str, Any]
    ending: str
    draw: str = "probox.pictures.batch:draw_image"
    """Drawing function as ``module:name``: it takes the view, `photo=` and the options, and returns axes."""


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Content of an image file, and the problem with its photo, if any."""

    content: bytes
    problem: str | None = None


def process_count(threads: int | None, pictures: int) -> int:
    """Return the number of processes: at most one per processor, and 1 for few images.

    >>> process_count(4, 100), process_count(4, 17), process_count(4, 3)
    (4, 2, 1)
    """
    return max(1, min(thread_count(threads), pictures // _EACH))


def draw_task(task: Task) -> Drawn:
    """Draw one image in this process; an unreadable photo is omitted and reported."""
    from importlib import import_module

    require("matplotlib", extra="report")
    from probox.pictures.rendering import file_content

    photo, problem = None, None
    if task.photo is not None:
        try:
            photo = load_photo(task.photo, (task.view.width, task.view.height))
        except InputError as error:
            problem = str(error)
    module, name = task.draw.split(":")
    draw: Callable[..., Any] = getattr(import_module(module), name)
    with quietly():
        axes = draw(task.view, photo=photo, **task.options)
        return Drawn(file_content(axes.get_figure(), task.ending), problem)


def draw_image(view: ImageView, **options: Any) -> Any:
    """Draw a whole image into a figure without a window; the options are those of `draw_view`."""
    from probox.pictures.drawing import draw_view, new_axes

    return draw_view(view, ax=new_axes(view.width, view.height, shown=False), **options)


def draw_tasks(tasks: Iterable[Task], processes: int = 1) -> Iterator[Drawn]:
    """Draw images in order with several processes (1: this process); the first error ends the iteration.

    Tasks are read on demand, so only few results wait in memory.
    """
    started = _start(processes) if processes > 1 and sys.executable else []
    if not started:
        yield from map(draw_task, tasks)
        return
    idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()
    for process in started:
        idle.put(process)

    def drawn(task: Task) -> Drawn:
        process = idle.get()
        try:
            return process.draw(task)
        finally:
            idle.put(process)

    try:
        yield from in_order(drawn, tasks, workers=processes, ahead=processes)
    finally:
        for process in started:
            process.end()


def _start(processes: int) -> list[_Process]:
    """Return started processes, or none if this Python cannot start another process with probox."""
    started: list[_Process] = []
    try:
        started += [_Process() for _ in range(processes)]
        if all(process.is_ready() for process in started):
            return started
    except OSError:
        pass
    for process in started:
        process.end()
    return []


class _Process:
    """A worker process that draws one image after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def is_ready(self) -> bool:
        """Wait until the process has loaded its modules; return False if that failed."""
        assert self._process.stdout is not None
        return self._process.stdout.read(len(_READY)) == _READY

    def draw(self, task: Task) -> Drawn:
        """Draw an image in the process; raise its error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump(task, self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
            answer = pickle.load(self._process.stdout)  # trusted: written by our own process
        except (EOFError, OSError, pickle.UnpicklingError, ValueError):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            raise ProboxError(
                f"a process that draws images ended with code {self._process.returncode}, possibly out of "
                "memory; draw with one process: --threads 1"
            ) from None
        if isinstance(answer, BaseException):
            raise answer
        assert isinstance(answer, Drawn)
        return answer

    def end(self) -> None:
        """Terminate the process."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        self._process.wait()


def work() -> None:
    """Draw the tasks on standard input until it is closed: the main function of `_Process`."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends it
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    answers.write(_READY)
    answers.flush()
    while True:
        try:
            task = pickle.load(requests)
        except EOFError:
            return
        try:
            answer: Any = pickle.dumps(draw_task(task), pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            answer = _portable(error)
        answers.write(answer)
        answers.flush()


def _portable(error: Exception) -> bytes:
    """Return an error as bytes; an error that cannot be pickled is replaced by one with the same text."""
    try:
        data = pickle.dumps(error, pickle.HIGHEST_PROTOCOL)
        pickle.loads(data)
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"), pickle.HIGHEST_PROTOCOL)
    return data
