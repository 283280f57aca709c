"""Results on disk and as bytes, whatever was kept of them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from probox.errors import InputError
from probox.evaluation.archive import read_archive, read_members, write_archive
from probox.evaluation.result import Evaluation
from probox.evaluation.storage import (
    COLUMNS,
    WORDS,
    check_digest,
    evaluation_from_bytes,
    files_of,
    load_evaluation,
    parsed_words,
    read_words_of,
    save_folders,
    words_in,
)
from probox.files.output import Content
from probox.files.reading import Paths
from probox.parts.compact import CompactEvaluation
from probox.parts.compact_storage import compact_of, schema_of, stored_of
from probox.parts.keep import MEASURES
from probox.tables.arguments import expect_path

__all__ = ["Result", "compact_from_bytes", "compact_to_bytes", "from_bytes", "load", "load_compact", "save_results"]

Result = Evaluation | CompactEvaluation
"""What was measured, and however much of it was kept."""


def load(folder: Paths) -> Result:
    """Return the result in a folder, whatever was kept of it.

    Parameters
    ----------
    folder : path
        What ``probox evaluate --out`` (with several files, a folder in it for each) or ``save`` of a result wrote.

    Examples
    --------
    >>> import probox
    >>> result = probox.load("results/ssd")  # doctest: +SKIP
    """
    expect_path(folder, "folder", "name a folder that was written by save or `probox evaluate --out`")
    place = Path(folder)
    words = parsed_words(read_words_of(place), str(place / WORDS))
    return load_compact(place) if _is_compact(words) else load_evaluation(place)


def from_bytes(data: bytes) -> Result:
    """Return the result that `to_bytes` made bytes of, whatever was kept of it.

    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> result = probox.evaluate(demo.truth, demo.detectors["unsure"])
    >>> probox.from_bytes(result.to_bytes()).pdq == result.pdq
    True
    """
    words = parsed_words(words_in(data, "bytes"), "bytes")
    return compact_from_bytes(data) if _is_compact(words) else evaluation_from_bytes(data)


def save_results(results: Mapping[Path, Result], positions: Mapping[Path, int] | None = None) -> None:
    """Write results into folders, all of them or none; `positions` order the results of a folder [default: 0].

    Folders that are missing are made.
    """
    files = {}
    for folder, result in results.items():
        position = (positions or {}).get(folder, 0)
        if isinstance(result, Evaluation):
            files[folder] = files_of(result, position)
        else:
            files[folder] = _compact_files(result, position)
    save_folders(files)


def _compact_files(result: CompactEvaluation, position: int) -> dict[str, Content]:
    words, arrays = stored_of(result, position)
    return {COLUMNS: lambda file: write_archive(file, arrays), WORDS: _text(words)}


def compact_to_bytes(result: CompactEvaluation) -> bytes:
    """Return everything in one archive, words and columns, not compressed."""
    words, arrays = stored_of(result)
    file = io.BytesIO()
    write_archive(file, arrays, words={WORDS: _text(words)}, compressed=False)
    return file.getvalue()


def compact_from_bytes(data: bytes, name: str = "bytes") -> CompactEvaluation:
    """Return the compact evaluation that `compact_to_bytes` made; `name` is what messages call it."""
    words = _compact_words(words_in(data, name), name)
    schema = schema_of(words, name)
    arrays = read_members(io.BytesIO(data), len(data), name, schema=schema)
    check_digest(words, arrays, name, "was changed since it was made", schema)
    return compact_of(words, arrays, name)


def load_compact(folder: Path) -> CompactEvaluation:
    """Return the compact evaluation that was saved in a folder."""
    file = str(folder / WORDS)
    words = _compact_words(read_words_of(folder), file)
    schema = schema_of(words, file)
    arrays = read_archive(folder / COLUMNS, schema=schema)
    problem = f"{WORDS} and {COLUMNS} are not of one evaluation, or were changed since"
    check_digest(words, arrays, str(folder), problem, schema)
    return compact_of(words, arrays, str(folder / COLUMNS))


def _compact_words(data: bytes, file: str) -> dict[str, Any]:
    words = parsed_words(data, file)
    if not _is_compact(words):
        raise InputError("holds an evaluation with its tables", file=file, remedy="load it with Evaluation.load")
    return words


def _is_compact(words: dict[str, Any]) -> bool:
    """Return whether words are of a compact evaluation; what stands there may be anything."""
    return words.get("keep") in tuple(MEASURES)


def _text(words: dict[str, Any]) -> bytes:
    return json.dumps(words, indent=1).encode()  # ASCII: names of files need not be valid text
