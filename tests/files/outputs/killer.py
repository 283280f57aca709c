"""Run as a program: a command that is killed at one moment after the other, without a chance to clean up.

Arguments: a folder that the moments are told by, how many moments to try, and the command's words, or -c and Python
code. A moment is a file
that is opened for writing there, a folder made, something moved, linked or removed. A fork of this process runs the
command up to that moment; then it gets SIGKILL. Prints one line of JSON for each moment with what the folder holds.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path

EVENTS = ("open", "os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "shutil.rmtree")
PASSED_OVER = (".part", ".partial", ".points")


def concerns(folder: str, event: str, args: tuple[object, ...]) -> bool:
    if event not in EVENTS or not args:
        return False
    if event == "open" and (len(args) < 3 or not isinstance(args[2], int) or args[2] & 3 == os.O_RDONLY):
        return False
    names = [os.fsdecode(arg) for arg in args[:2] if isinstance(arg, str | bytes | os.PathLike)]
    return event == "os.rmdir" or any(folder in name for name in names)


def in_a_fork(words: list[str], folder: Path, moment: int, told: int) -> int:
    """Run the command in a fork that dies at this moment; return how it ended."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    seen = 0

    def watch(event: str, args: tuple[object, ...]) -> None:
        nonlocal seen
        if concerns(str(folder), event, args):
            seen += 1
            if seen == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    from probox.cli import main

    status = 0
    try:
        if words[0] == "-c":
            exec(words[1], {"folder": folder})
        else:
            main(words)
    except SystemExit as done:
        status = int(done.code or 0)
    except BaseException:
        status = 1
    os.write(told, f"{seen}\n".encode())
    os._exit(status)


def state(folder: Path) -> dict[str, str]:
    """Return the files of a folder with digests."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.endswith(PASSED_OVER) for part in path.relative_to(folder).parts)
    }


def main_(folder: Path, tries: int, words: list[str]) -> None:
    start = folder.with_name(folder.name + "-start")
    shutil.copytree(folder, start)
    reading, writing = os.pipe()
    status = in_a_fork(words, folder, -1, writing)
    assert status == 0, status
    count = int(os.read(reading, 100))
    print(json.dumps({"moments": count, "before": state(start), "after": state(folder)}))
    # The last moments are those in which files are moved to their places: all of these, and some of the others.
    last = range(max(1, count - tries), count + 1)
    early = range(1, last[0], max(1, last[0] // tries))
    for moment in [*early, *last]:
        shutil.rmtree(folder)
        shutil.copytree(start, folder)
        ended = in_a_fork(words, folder, moment, writing)
        killed = os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGKILL
        print(json.dumps({"moment": moment, "killed": killed, "state": state(folder)}))


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot  # so that the forks need not

    import probox.cli  # noqa: F401

    main_(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
