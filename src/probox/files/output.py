"""Output files: staged in a hidden folder, moved into place when complete, never over files of others.

A run writes its files into a hidden folder beside their target and locks it. The next run with this target removes the
hidden folders of killed runs. A hidden list in each output folder records the files that probox wrote: command and
digest. A later run of the same command replaces exactly these files, as long as they are unchanged.
"""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import os
import re
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from probox.errors import InputError
from probox.files.reading import Paths, file_head, pack, read_regular

if TYPE_CHECKING:
    from filelock import BaseFileLock
# The functions that write import filelock, hashlib, json, shutil and zipfile: evaluating does not need them.

Content = bytes | Callable[[BinaryIO], None]

LISTING = ".probox.json"
"""Hidden file that lists what probox wrote into a folder."""
_LONGEST_LIST = 1 << 28
"""Limit in bytes; an entry takes about 100."""
_MARKER = "made-by-probox"
"""File in a hidden folder that its run locks."""
_PATIENCE = 60.0
"""Seconds to wait for another run that is moving its files, which takes milliseconds."""
GENERATOR = b'name="generator" content="probox'
"""Text near the beginning of every report page."""
GRAPH_MARK = "probox_dropout"
"""Prefix of the names of mask nodes in a graph."""
EVALUATION_WORDS = "evaluation.json"
"""File of a stored evaluation with its format, convention and metrics."""


def json_bytes(path: Path, text: bytes) -> bytes:
    """Return the text, compressed if the file's name ends in ``.gz``."""
    return pack(text) if path.suffix.lower() == ".gz" else text


def write_files(files: Mapping[Path, Content], *, lasting: bool = True) -> None:
    """Write files, all of them or none.

    Links and devices are refused. Existing files are replaced without a check: callers check them first.

    Parameters
    ----------
    files : mapping of path to bytes or callable
        Content of each file: bytes, or a function that writes to an open file. At most one missing folder per path is
    created; it appears together with its files.
            Call fsync, so that a power cut cannot leave half a file. Not needed for files that are quick to recreate.
    """
    with ExitStack() as stack:
        stagings: dict[Path, Path] = {}
        moves: dict[Path, Path] = {}
        for number, (path, content) in enumerate(files.items()):
            with named_errors(path):
                check_file_place(path)
                missing = not path.parent.is_dir()
                if path.parent not in stagings:
                    place = path.parent if missing else path
                    stagings[path.parent] = stack.enter_context(_stage(place.parent, place.name))
                new = stagings[path.parent] / "files" / (path.name if missing else str(number))
                put_content(new, content, lasting=lasting)
                moves |= {new.parent: path.parent} if missing else {new: path}
        if moves:
            _move_all(list(moves.items()), next(iter(stagings.values())) / "aside")
    for folder in stagings if lasting else ():
        _sync_folder(folder)


def put_content(path: Path, content: Content, *, lasting: bool) -> None:
    """Write a new file."""
    with open(path, "xb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            content(file)
        file.flush()
        if lasting:
            os.fsync(file.fileno())


def check_file_place(path: Path) -> None:
    """Raise if something other than a regular file is where a file is to be written."""
    if os.path.lexists(path.parent) and not path.parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if path.is_symlink():
        raise InputError("is a link, which is not followed", file=str(path), remedy="name the file itself")
    if path.is_dir():
        raise InputError("cannot be written: it is a folder", file=str(path), remedy="name a file")
    if path.exists() and not path.is_file():
        raise InputError("cannot be written: it is no ordinary file", file=str(path), remedy="choose another name")


# --- folders of files that are listed ---


class _Entry(NamedTuple):
    """A file of the list: the command that wrote it, and its digest (two while it is being replaced)."""

    command: str
    digests: tuple[str, ...]


class OutputFolder:
    """Files that a command is writing into a folder; see `output_folder`."""

    def __init__(self, target: Path, place: Path, command: str, staging: Path, *, fresh: bool) -> None:
        self.target = target
        self._place, self._command, self._staging, self._fresh = place, command, staging, fresh
        self._digests: dict[str, str] = {}

    def write(self, name: str, content: Content) -> Path:
        """Stage a file, given as bytes or as a function that writes to an open file; return its final path."""
        path = self._staging / "files" / name
        with named_errors(self.target / name):
            path.parent.mkdir(parents=True, exist_ok=True)
            put_content(path, content, lasting=False)
            self._digests[name] = _digest_file(path)
        return self.target / name

    def _commit(self) -> None:
        place, command = self._place, self._command
        known = _read_list(place)
        _check_names(place, self.target, self._digests, known, command)
        new = {name: _Entry(command, (digest,)) for name, digest in self._digests.items()}
        old = {name for name, e in known.items() if self._fresh and e.command == command and name not in new}
        gone = [name for name in known if name in old and _is_unchanged(place, name, known[name])]
        stays = {name: e for name, e in known.items() if name not in old and os.path.lexists(place / name)}
        put_content(self._staging / "files" / LISTING, _encode_list(stays | new), lasting=False)
        # A run killed between the moves leaves old and new files. The list names both, so the next run can replace all.
        both = {name: _Entry(command, known[name].digests + e.digests) for name, e in new.items() if name in known}
        _put(self._staging, place, [*new, LISTING], gone, first=_encode_list(known | new | both))


@contextmanager
def output_folder(
    target: str | Path, command: str, *, names: Iterable[str] = (), fresh: bool = False
) -> Iterator[OutputFolder]:
    """Yield a folder to write into; its files appear in `target` together when the block ends without an error.

    Parameters
    ----------
    target : path
        The folder. Missing parents are created. A link to a folder is followed; links inside it are not.
    command : str
        Name of the command. A later run of the same command may replace these files if they are unchanged.
    names : iterable of str
        Names of the files to be written; conflicts raise before any work is done.
    fresh : bool
        Remove the files of earlier runs; raise if the folder holds other files only.
    """
    shown = Path(target)
    place = _real_folder(shown)
    known = _read_list(place)
    if fresh and place.is_dir() and any(place.iterdir()) and command not in {e.command for e in known.values()}:
        raise InputError(
            "is not empty", file=str(target), remedy=f"choose a new folder, or one that `probox {command}` wrote"
        )
    _check_names(place, shown, names, known, command)
    with _stage_folder(place, shown) as staging:
        folder = OutputFolder(shown, place, command, staging, fresh=fresh)
        yield folder
        with named_errors(shown), _turn(staging, place):
            folder._commit()


def check_output_folder(target: str | Path, command: str, names: Iterable[str]) -> None:
    """Raise if a command may not write files of these names into a folder; called before any work is done."""
    place = _real_folder(Path(target))
    _check_names(place, Path(target), names, _read_list(place), command)


def list_files_written(folder: Path, command: str) -> list[Path]:
    """Return the files that a command wrote into a folder, and the list file."""
    names = [name for name, entry in _read_list(folder).items() if entry.command == command]
    return [folder / name for name in (*names, LISTING)]


def _real_folder(target: Path) -> Path:
    with named_errors(target):
        if "\0" in str(target):
            problem = "cannot be written: a null character in its name"
            raise InputError(problem, file=str(target), remedy="choose another name")
        if target.is_symlink() and not target.exists():
            raise InputError("is a link to a missing target", file=str(target), remedy="choose another name")
        if os.path.lexists(target) and not target.is_dir():
            raise InputError("is a file, expected a folder to write to", file=str(target), remedy="choose another name")
        return Path(os.path.realpath(target))


def _read_list(place: Path) -> dict[str, _Entry]:
    """Return the listed files of a folder by name."""
    import json

    path = place / LISTING
    if not os.path.lexists(path):
        return {}
    try:
        entries: dict[str, Any] = json.loads(read_regular(path, most=_LONGEST_LIST, follow=False))["files"]
        for name in entries:  # the list may come from an untrusted source
            if name in ("", LISTING) or name.startswith("/") or ".." in name.split("/") or "\0" in name:
                raise ValueError(name)
        return {name: _Entry(str(e["by"]), tuple(map(str, e["digests"]))) for name, e in entries.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            "is not the list of files that probox keeps under this name",
            file=str(path),
            remedy="choose another folder, or move this file away",
        ) from None


def _encode_list(entries: Mapping[str, _Entry]) -> bytes:
    import json

    files = {name: {"by": entry.command, "digests": entry.digests} for name, entry in sorted(entries.items())}
    about = "Files that probox wrote here. It replaces them, if they are unchanged, and nothing else."
    return json.dumps({"about": about, "files": files}, indent=0).encode()


def _check_names(place: Path, shown: Path, names: Iterable[str], known: dict[str, _Entry], command: str) -> None:
    """Raise if a file exists that this command did not write, or that was changed since."""
    for name in names:
        path, entry = place / name, known.get(name)
        for parent in list(path.parents)[: len(PurePosixPath(name).parts) - 1]:
            if parent.is_symlink() or (parent.exists() and not parent.is_dir()):
                raise InputError("is in the way: not a folder", file=str(parent), remedy="choose another folder")
        if not os.path.lexists(path):
            continue
        if entry is None or entry.command != command:
            problem, remedy = f"exists, and `probox {command}` did not write it", "choose another folder"
            raise InputError(problem, file=str(shown / name), remedy=remedy)
        if not _is_unchanged(place, name, entry):
            problem, remedy = f"was changed since `probox {command}` wrote it", "move it, or choose another folder"
            raise InputError(problem, file=str(shown / name), remedy=remedy)


def _is_unchanged(place: Path, name: str, entry: _Entry) -> bool:
    """Return whether a listed file is in this folder, unchanged."""
    path = place / name
    with suppress(OSError):
        inside = path.parent.resolve() == path.parent and stat.S_ISREG(path.lstat().st_mode)
        return inside and _digest_file(path) in entry.digests
    return False


def _digest_file(path: Path) -> str:
    import hashlib

    state = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()


# --- replacing folders ---


@contextmanager
def replace_folder(target: str | os.PathLike[str], check: Callable[[], None], *, keep: bool = False) -> Iterator[Path]:
    """Yield a new folder to write into, which replaces `target` when the block ends without an error.

    Parameters
    ----------
    target : path
        The folder. Missing parents are created. A link to a folder is followed.
    check : callable
        Raises if the existing content may not be replaced. Called before any work is done and again before the move.
    keep : bool
        Keep files with other names.
    """
    shown = Path(target)
    place = _real_folder(shown)
    check()
    with _stage_folder(place, shown) as staging, named_errors(shown):
        yield staging / "files"
        with _turn(staging, place):
            check()
            names = _list_files(staging / "files")
            gone = [] if keep else [name for name in _list_files(place) if name not in names]
            _put(staging, place, names, gone)
            for folder in {place.parent, *((place / name).parent for name in names)}:
                _sync_folder(folder)


def _put(staging: Path, place: Path, names: list[str], gone: list[str], first: bytes | None = None) -> None:
    """Move new files into a folder: in one step if it holds nothing else, otherwise one by one in the given order.

    Parameters
    ----------
    staging, place : Path
        Folder with the new files, and the target, which may be missing.
    names, gone : list of str
        New files, and files of the target to remove.
    first : bytes, optional
        Content of the last of `names` while files are replaced one by one.
    """
    if _exchange(staging / "files", place, {*names, *gone}):
        return
    moves = [(staging / "files" / name, place / name) for name in names]
    moves[-1:-1] = [(place / name, staging / "aside" / f"gone-{number}") for number, name in enumerate(gone)]
    if first is not None:
        put_content(staging / "first", first, lasting=False)
        moves.insert(0, (staging / "first", place / names[-1]))
    _move_all(moves, staging / "aside")
    for above in (above for name in gone for above in PurePosixPath(name).parents[:-1]):
        remove_if_empty(place / above)


def _exchange(new: Path, place: Path, replaced: set[str]) -> bool:
    """Exchange a new folder with an old one in one step; return False, with nothing changed, if that is impossible.

    It is impossible if the old folder holds other files or an empty folder, has another owner, or is the current one.
    """
    if not place.exists():
        os.rename(new, place)
        return True
    if not set(_list_files(place, empty=True)) <= replaced or _owner(new) != _owner(place) or _is_current(place):
        return False
    import shutil

    for above, _folders, _files in os.walk(place):
        if (new / Path(above).relative_to(place)).is_dir():
            shutil.copymode(above, new / Path(above).relative_to(place))
    with hold_signals():
        if not _swap(new, place):
            return False
        for name in set(_list_files(new)) - replaced:  # written by another program since the check
            with suppress(OSError):
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(new / name, place / name)
    return True


def _swap(one: Path, other: Path) -> bool:
    """Exchange two folders atomically (Linux `renameat2`); return False where the system does not support it."""
    if not sys.platform.startswith("linux") or one.is_relative_to(other):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    here, exchange = -100, 2
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def _list_files(folder: Path, *, empty: bool = False) -> list[str]:
    """Return the names of all files and links below a folder, optionally of empty folders, without hidden folders."""
    found: list[Path] = []
    for above, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        links = [name for name in folders if (Path(above) / name).is_symlink()]
        found += [Path(above) / name for name in (*files, *links)]
        if empty and not (files or folders or Path(above) == folder):
            found.append(Path(above))
    return sorted(path.relative_to(folder).as_posix() for path in found)


def _is_current(place: Path) -> bool:
    with suppress(OSError):  # the current folder was removed
        return Path(os.path.realpath(os.curdir)).is_relative_to(place)
    return False


def _owner(folder: Path) -> tuple[int, int, int]:
    status = folder.stat()
    return status.st_uid, status.st_gid, status.st_dev


def _move_all(moves: list[tuple[Path, Path]], aside: Path) -> None:
    """Move files or whole folders to their places; if one move fails, undo all of them.

    Missing parents of a place are created. A move whose target is in `aside` removes a file.
    """
    with hold_signals(), ExitStack() as undo:
        for number, (source, place) in enumerate(moves):
            with named_errors(source if aside in place.parents else place):
                undo.enter_context(make_folder(place.parent))
                old = None
                if os.path.lexists(place):
                    old = aside / str(number)
                    try:
                        os.link(place, old, follow_symlinks=False)
                    except OSError:  # not every file system has links
                        from shutil import copy2

                        copy2(place, old, follow_symlinks=False)
                undo.callback(_undo_move, source, place, old)  # before the move: it may be done although it raises
                os.replace(source, place)
        undo.pop_all()


def _undo_move(source: Path, place: Path, old: Path | None) -> None:
    with suppress(OSError):  # the first failure is the one to report
        if not os.path.lexists(source):
            os.replace(*((place, source) if old is None else (old, place)))


# --- hidden folders ---


@contextmanager
def _stage(near: Path, name: str, beside: Path | None = None) -> Iterator[Path]:
    """Yield a hidden folder for writing `name`, with a folder `files` for new files and `aside` for replaced ones.

    It is created in `near`, and moved to `beside` where the system allows it.
    """
    for parent in {near, beside or near}:
        sweep(parent, name)
    folder, lock = _make_hidden(near, name)
    try:
        if beside is not None:
            with suppress(OSError):
                os.rename(folder, beside / folder.name)
                folder = beside / folder.name
        yield folder
    finally:
        _remove_hidden(folder)
        lock.release(force=True)


@contextmanager
def _stage_folder(place: Path, shown: Path) -> Iterator[Path]:
    """Yield a hidden folder beside a folder, or in it if the folder is a mount or its parent is not writable.

    It is created in the folder first, so that new files inherit the folder's group (setgid).
    """
    with make_folder(place.parent), ExitStack() as stack:
        with named_errors(shown):
            near = place if place.is_dir() else place.parent
            staging = stack.enter_context(_stage(near, place.name, place.parent))
        yield staging


def _make_hidden(parent: Path, name: str) -> tuple[Path, BaseFileLock]:
    from filelock import FileLock, Timeout

    while True:
        folder = parent / f".{name[:40]}.{os.urandom(4).hex()}.part"
        folder.mkdir()
        lock = FileLock(folder / _MARKER, timeout=0)
        try:
            lock.acquire()
            (folder / "files").mkdir()
            (folder / "aside").mkdir()
        except (Timeout, FileNotFoundError, FileExistsError):  # `sweep` of another run removed the folder meanwhile
            lock.release(force=True)
        except BaseException:
            _remove_hidden(folder)
            lock.release(force=True)
            raise
        else:
            return folder, lock


def sweep(parent: Path, name: str | None = None) -> None:
    """Remove hidden folders that killed runs left while writing `name` (default: any name); skip locked ones."""
    from filelock import FileLock, Timeout

    with suppress(OSError):
        for entry in os.scandir(parent):
            if _is_hidden(entry.name, name) and entry.is_dir(follow_symlinks=False):
                marker = Path(entry.path) / _MARKER
                remove_if_empty(marker.parent)
                with suppress(OSError, Timeout):
                    if stat.S_ISREG(marker.lstat().st_mode):
                        with FileLock(marker, timeout=0):
                            _remove_hidden(marker.parent)


def _is_hidden(found: str, name: str | None = None) -> bool:
    """Return whether a name is that of a hidden folder for writing `name` (default: any name)."""
    middle = r".+" if name is None else re.escape(name[:40])
    return re.fullmatch(rf"\.{middle}\.[0-9a-f]{{8}}\.part", found, re.DOTALL) is not None


def drop_hidden(files: Mapping[str, int], folder: str) -> dict[str, int]:
    """Return the files of a folder without those of runs writing it: marked hidden folders and the lock.

    >>> drop_hidden({"a": 1, ".set.0123abcd.part/made-by-probox": 0, ".set.0123abcd.part/files/a": 1}, "set")
    {'a': 1}
    """
    tops = {name: PurePosixPath(name).parts[0] for name in files}
    own = {top for top in tops.values() if _is_hidden(top, folder) and f"{top}/{_MARKER}" in files}
    own.add(_lock_name(folder))
    return {name: size for name, size in files.items() if tops[name] not in own}


def _lock_name(folder: str) -> str:
    return f".{folder[:40]}.probox.lock"


def _remove_hidden(folder: Path) -> None:
    """Remove a hidden folder, its marker last, so that an interrupted removal leaves a recognizable folder."""
    from shutil import rmtree

    for inside in ("files", "aside", ""):
        rmtree(folder / inside, ignore_errors=True)


@contextmanager
def _turn(staging: Path, place: Path) -> Iterator[None]:
    """Wait until no other run is moving its files to `place`; give up after a minute, as other programs may lock it."""
    from filelock import FileLock, Timeout

    lock = FileLock(staging.parent / _lock_name(place.name), timeout=_PATIENCE)
    with suppress(Timeout):
        lock.acquire(poll_interval=0.02)
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):  # waiting runs notice the removal and create another lock
                os.unlink(lock.lock_file)
            lock.release()


# --- signals, folders, errors ---


@contextmanager
def hold_signals() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the block ends; it moves files, which takes milliseconds."""
    pending: list[int] = []
    before: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():  # Python runs signal handlers in the main thread only
            for held in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(held) is not None:
                    before[held] = signal.signal(held, lambda number, _: pending.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(pending):
            signal.raise_signal(number)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system into an `InputError` about `path`."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise InputError(
            f"cannot be written: {error.strerror or error}",
            file=str(path),
            remedy="make room there, or choose another place" if full else "choose another place",
        ) from None


@contextmanager
def make_folder(folder: Path) -> Iterator[None]:
    """Create a folder and its missing parents; remove those that are still empty on exit."""
    missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        with named_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for path in missing:
            remove_if_empty(path)


def remove_if_empty(folder: Path) -> None:
    """Remove a folder if it is empty."""
    with suppress(OSError):
        folder.rmdir()


def _sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk."""
    with suppress(OSError):  # not every system can sync a folder
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


# --- what may be replaced ---


@dataclasses.dataclass(frozen=True, eq=False)
class Kind:
    """Kind of a file's content: its name in messages, and a function that recognizes existing files of it."""

    words: str
    recognises: Callable[[Path], bool]


def check_replaceable(path: Paths, kind: Kind, *, folder: bool = False) -> None:
    """Raise if there is a file at `path` that is neither empty nor of this kind.

    Parameters
    ----------
    path : path
        File to be written.
    kind : Kind
        Kind of the new content.
    folder : bool
        Raise if the parent folder is missing.
    """
    place = Path(path)
    if folder and not Path(os.path.realpath(place)).parent.is_dir():
        raise InputError("the folder of this file does not exist", file=str(path), remedy="create it first")
    if not place.is_file() or place.is_symlink():
        return  # missing, or refused by the writer itself
    if place.stat().st_size and not kind.recognises(place):
        raise InputError(
            f"exists and does not contain {kind.words}",
            file=str(path),
            remedy="choose another name, or move it",
        )


def check_not_input(path: Paths, inputs: Iterable[Paths | None]) -> None:
    """Raise if `path` is one of the input files or folders."""
    check_none_is_input([path], inputs)


def check_none_is_input(paths: Iterable[Paths], inputs: Iterable[Paths | None]) -> None:
    """Raise if one of the files to write is one of the input files or folders."""
    known = {sign for given in inputs if given is not None for sign in _signs(given)}
    for path in paths:
        if not known.isdisjoint(_signs(path)):
            raise InputError("would replace what it is made from", file=str(path), remedy="choose another name")


def _signs(path: Paths) -> list[str | tuple[int, int]]:
    """Return identifiers that all names of one file share: the resolved path and, if it exists, device and inode."""
    signs: list[str | tuple[int, int]] = []
    with suppress(OSError, ValueError):  # missing or invalid path
        signs.append(os.path.realpath(path))
        found = os.stat(path)
        signs.append((found.st_dev, found.st_ino))
    return signs


def _holds_mask_nodes(path: Path) -> bool:
    try:
        return GRAPH_MARK.encode() in path.read_bytes()
    except OSError:
        return False


def _is_evaluation(path: Path) -> bool:
    """Return whether a file belongs to a stored evaluation; a damaged archive is recognized by the JSON beside it."""
    head = file_head(path)
    if head.startswith(b"PK\x03\x04"):
        return _holds_masks(path) or _is_words(file_head(path.with_name(EVALUATION_WORDS)))
    return _is_words(head)


def _is_words(head: bytes) -> bool:
    return bool(re.match(rb"\s*\{", head)) and b'"format"' in head and b'"convention"' in head


def _holds_masks(path: Path) -> bool:
    from zipfile import ZipFile

    try:
        with ZipFile(path) as archive:
            return "masks.boxes.npy" in archive.namelist()
    except Exception:  # zipfile raises various errors for a damaged directory
        return False


REPORT = Kind("a report", lambda path: GENERATOR in file_head(path))
GRAPH = Kind("a graph with masks", _holds_mask_nodes)
EVALUATION = Kind("an evaluation", _is_evaluation)
