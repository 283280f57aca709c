"""Objects whose keys change in order, spacing and spelling from one to the next, as Python's own reader sees them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from probox import _core
from probox.formats.coco_segmentation import mask_limits

RESULT = {
    "image_id": 7,
    "category_id": 3,
    "bbox": [1.5, 2.25, 30, 4e1],
    "score": 0.25,
    "other": {"bbox": [1]},
    "x": "}",
}
OBJECT = {"id": 9, "image_id": 7, "category_id": 3, "bbox": [1.5, 2.25, 30, 4e1], "area": 0.5, "iscrowd": 0, "s": [{}]}
REQUIRED = ("image_id", "category_id", "bbox")


def read_results(data: bytes, image_ids: Any, category_ids: Any, threads: int = 1) -> tuple[Any, Any]:
    return _core.read_coco_results(
        data, image_ids=image_ids, category_ids=category_ids, lenient=False, max_examples=1, threads=threads,
        **mask_limits(data),
    )  # fmt: skip


spaces = st.sampled_from(["", "", "", " ", "\n\t "])


@st.composite
def objects(draw: st.DrawFn, usual: dict[str, Any]) -> str:
    """Return the text of a few objects: most repeat the keys of the one before."""
    texts, keys, space, escape = [], list(usual), "", ""
    for number in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            keys = draw(st.permutations(list(usual)))
            keys = keys[: draw(st.integers(len(keys) - 2, len(keys)))]
            keys += draw(st.sampled_from([[], [], [], keys[:1], ["X" * 40], ["image_ids"]]))
            space = draw(spaces)
            escape = draw(st.sampled_from(["", "", *usual]))
        values = usual | {"image_id": 7 + number, "score": number / 8, "area": 1 + number}
        fields = []
        for key in keys:
            name = json.dumps(key) if key != escape else '"' + "".join(f"\\u{ord(c):04x}" for c in key) + '"'
            fields.append(f"{space}{name}{space}:{space}{json.dumps(values.get(key))}{space}")
        texts.append("{" + ",".join(fields) + "}")
    return "[" + ",".join(texts) + "]"


def first_error(text: str, known: set[str], required: tuple[str, ...]) -> str | None:
    """Return the kind of the first problem."""
    for pairs in json.loads(text, object_pairs_hook=lambda pairs: pairs):
        names = [name for name, _ in pairs if name in known]
        if len(names) > len(set(names)):
            return "duplicate_key"
        if not set(required) <= set(names):
            return "missing_key"
    return None


@given(objects(RESULT))
@example('[{"image_id":7,"category_id":3,"bbox":[1,2,3,4],"score":1},{"image_id":7,"category_id":3,"bbox":[1,2,3,4]}]')
@example('[{"a":1,"image_id":7,"category_id":3,"bbox":[1,2,3,4],"score":1},{"a":1,"image_id":7,"bbox":[1,2,3,4]}]')
def test_results(text: str) -> None:
    ids = np.arange(7, 20)
    columns, problems = read_results(text.encode(), ids, np.array([1, 3]))
    error = first_error(text, set(RESULT) - {"other", "x"}, (*REQUIRED, "score"))
    assert [kind for kind, *_ in problems] == ([error] if error else [])
    if not error:
        rows = json.loads(text)
        assert columns["image_ids"].tolist() == [row["image_id"] for row in rows]
        assert columns["scores"].tolist() == [row["score"] for row in rows]
        assert columns["extents"].tolist() == [[30.0, 40.0]] * len(rows)
        assert columns["labels"].tolist() == [1] * len(rows)


@given(objects(OBJECT))
def test_annotations(text: str) -> None:
    columns, problems = _core.read_coco_truth(
        f'{{"annotations":{text}}}'.encode(),
        lenient=False, max_examples=1, max_side=100, max_pixels=1000, max_mask_numbers=9, max_numbers=9,
    )  # fmt: skip
    error = first_error(text, set(OBJECT) - {"s"}, REQUIRED)
    assert [kind for kind, *_ in problems] == ([error] if error else [])
    if not error:
        rows = json.loads(text)
        assert columns["images"].tolist() == [row["image_id"] for row in rows]
        assert columns["areas"].tolist() == pytest.approx([row.get("area", np.nan) for row in rows], nan_ok=True)
        assert columns["boxes"].tolist() == [[1.5, 2.25, 30.0, 40.0]] * len(rows)
        assert columns["has_id"].tolist() == ["id" in row for row in rows]


def test_a_message_names_the_key_of_a_repeated_object() -> None:
    row = '{"image_id":7,"category_id":3,"bbox":[1,2,3,4],"score":%s}'
    text = f"[{row % 1},{row % 1},{row % 9}]"
    _, problems = read_results(text.encode(), np.array([7]), np.array([3]))
    assert [(kind, examples[0][2]) for kind, _, _, examples in problems] == [("score_range", "[2].score")]


def test_more_rows_than_braces_suggest() -> None:
    """Braces inside of objects and strings leave rows unused, which are closed up, also between pieces."""
    row = '{"other":{"size":[1,1],"counts":"}}"},"image_id":%d,"category_id":3,"bbox":[1,2,3,4],"score":1}'
    text = f"[{','.join(row % (7 + number % 3) for number in range(60))}]"
    for threads in (1, 3):
        columns, problems = read_results(text.encode(), np.array([7, 9]), np.array([3]), threads=threads)
        assert problems == []
        assert columns["entries"].tolist() == [number for number in range(60) if number % 3 != 1]
        assert columns["unknown_image_rows"] == 20
