"""An evaluation on disk, and how a forger would change it."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from probox import Detections, Evaluation, GroundTruth, InputError, evaluate
from probox.evaluation.archive import SCHEMA, digest, write_archive
from probox.evaluation.storage import COLUMNS, WORDS, canonical
from probox.support.formatting import printable
from probox.tables.label_probs import LabelProbs

Arrays = dict[str, np.ndarray]


@pytest.fixture
def evaluation() -> Evaluation:
    """Return an evaluation with true and false positives, misses, odd masks and a note."""
    ring = np.ones((20, 30), bool)
    ring[5:15, 8:22] = False
    block = np.zeros((20, 30), bool)
    block[3:15, 4:20] = True
    truth = GroundTruth.from_masks(["cup", "dog"], [(4, [ring, block], [0, 1]), (9, [block, ring], [1, 1])])
    found = Detections(
        classes=["cup", "dog"],
        image_ids=[4, 4, 4, 9],
        boxes=[[0, 0, 29, 19], [4, 3, 19, 14], [25, 2, 27, 4], [4, 3, 19, 14]],
        label_probs=LabelProbs.of_columns(
            2 * np.arange(5),
            np.array([0, 1] * 4, np.int32),
            np.array([0.9, 0.1, 0.2, 0.7, 0.6, 0.4, 0.1, 0.8], np.float32),
            classes=2,
        ),
        covariances=np.tile(np.eye(2), (4, 2, 1, 1)),
        notes=["one thing was left out"],
        source="found.json",
    )
    result = evaluate(truth, found)
    assert (result.tp, result.fp, result.fn) == (3, 1, 1)
    assert len(result.pairs) >= 2
    return result


def read(folder: Path) -> tuple[dict[str, Any], Arrays]:
    with np.load(folder / COLUMNS) as archive:
        return json.loads((folder / WORDS).read_text()), dict(archive)


def write(folder: Path, words: dict[str, Any], arrays: Arrays, **others: bytes) -> None:
    """Write words and arrays as they are, with the digest that they have: a careful forger's work."""
    known = {name: array for name, array in arrays.items() if name in SCHEMA}
    complete = known.keys() >= {name for name, column in SCHEMA.items() if not column.optional}
    if complete and "digest" in words and isinstance(words["digest"], str):
        words = words | {
            "digest": digest(canonical(words), {n: np.ascontiguousarray(a) for n, a in known.items()}, SCHEMA)
        }
    (folder / WORDS).write_text(json.dumps(words))
    packed = io.BytesIO()
    write_archive(packed, arrays)
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, content in others.items():
            archive.writestr(name, content)
    (folder / COLUMNS).write_bytes(packed.getvalue())


def refused(folder: Path) -> str:
    """Return the one line that says why a folder is refused."""
    with pytest.raises(InputError) as raised:
        Evaluation.load(folder)
    text = str(raised.value)
    assert text.startswith(printable(str(folder)))
    assert raised.value.remedy
    assert "\n" not in text
    assert not re.search(r"--\w", text)  # no option of the command line
    return text
