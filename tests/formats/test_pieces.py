"""Files that several threads read in pieces: the same tables and the same messages as from one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from probox import _core
from probox.formats.coco_segmentation import mask_limits

IMAGES, CATEGORIES = np.array([1, 2, 5]), np.array([3, 7])

Read = Callable[..., tuple[Any, Any]]


def read_results(data: bytes, **how: Any) -> tuple[Any, Any]:
    names = {"names": ["a"], "name_image_ids": IMAGES[1:2]}
    return _core.read_coco_results(
        data, image_ids=IMAGES, category_ids=CATEGORIES, max_examples=3, **mask_limits(data), **names, **how
    )


def read_form(data: bytes, **how: Any) -> tuple[Any, Any]:
    return _core.read_coco_results(data, image_ids=None, category_ids=None, max_examples=3, **mask_limits(data), **how)


def read_rvc1(data: bytes, **how: Any) -> tuple[Any, Any]:
    return _core.read_rvc1(data, max_examples=3, **how)


def assert_same_in_pieces(read: Read, data: bytes, *, threads: int = 3) -> None:
    """Compare one reader with several, of small and of large pieces, strict and lenient."""
    for lenient in (False, True):
        columns, problems = read(data, lenient=lenient)
        for least_piece in (1, 40, 300):
            others, found = read(data, lenient=lenient, threads=threads, least_piece=least_piece)
            assert found == problems
            assert_same_columns(others, columns)


def assert_same_columns(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, column in expected.items():
        if isinstance(column, np.ndarray):
            own, one = found[name], column
            if name == "unknown_images":  # neighbours are told apart within a piece only
                own, one = np.unique(own), np.unique(one)
            assert (own.dtype, own.shape, own.tobytes()) == (one.dtype, one.shape, one.tobytes()), name
        elif isinstance(column, dict):
            assert_same_columns(found[name], column)
        else:
            assert found[name] == column, name


numbers = st.one_of(
    st.integers(-5, 700),
    st.floats(-1e3, 1e3, allow_nan=False).map(lambda value: round(value, 3)),
    st.floats(allow_nan=True, allow_infinity=True),
)
boxes = st.lists(numbers, min_size=4, max_size=4)
covariances = st.lists(
    st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=2, max_size=2), min_size=2, max_size=2
)
other = st.dictionaries(
    st.sampled_from(["note", 'a}, {"image_id', "x"]),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.text(max_size=5), st.sampled_from(['}, {"image_id": 1', "}],[", "[{"])),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["image_id", "bbox", "k"]), inner, max_size=2)
        ),
        max_leaves=6,
    ),
    max_size=2,
)


segmentations = st.sampled_from(
    [
        None,
        [],
        [[]],
        [[1, 1, 5, 1, 5, 4.5], [2, 2, 3, 3]],
        {"size": [3, 4], "counts": [2, 7, 3]},
        {"size": [3, 4], "counts": "273"},
        {"size": [3, 4], "counts": [2, 7]},
    ]
)


@st.composite
def results_entry(draw: st.DrawFn) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "image_id": draw(st.sampled_from([1, 2, 5, 5, 5, 6, 9, "a", "b"])),
        "category_id": draw(st.sampled_from([3, 7, 7, 7, 7, 7, 7, 8])),
        "bbox": draw(boxes),
        "score": draw(st.floats(0, 1.0)),
    }
    if draw(st.booleans()):
        entry["covars"] = draw(covariances)
    if draw(st.integers(0, 3)) == 0:
        entry[draw(st.sampled_from(["all_scores", "cls_prob"]))] = draw(
            st.lists(st.floats(0, 1), min_size=2, max_size=2)
        )
    if draw(st.integers(0, 3)) == 0:
        entry["file_name"] = draw(st.sampled_from(["a", "b.jpg", ""]))
    if draw(st.booleans()):
        entry["segmentation"] = draw(segmentations)
    if draw(st.integers(0, 3)) == 0:
        entry |= {"masks_file": draw(st.sampled_from(["a.npy", "b.npy", None])), "mask_id": draw(st.integers(0, 9))}
    if draw(st.integers(0, 7)) == 0:
        del entry[draw(st.sampled_from(sorted(entry)))]
    return {**entry, **draw(other)}


@st.composite
def rvc1_entry(draw: st.DrawFn) -> dict[str, Any]:
    entry: dict[str, Any] = {"bbox": draw(boxes), "label_probs": draw(st.lists(numbers, min_size=2, max_size=2))}
    if draw(st.booleans()):
        entry["covars"] = draw(covariances)
    if draw(st.integers(0, 3)) == 0:
        entry |= {"masks_file": draw(st.sampled_from(["a.npy", "b.npy", "c.npy"])), "mask_id": draw(st.integers(0, 9))}
    if draw(st.integers(0, 15)) == 0:
        del entry[draw(st.sampled_from(sorted(entry)))]
    return {**entry, **draw(other)}


separators = st.sampled_from([(",", ":"), (", ", ": "), (",\n", ":"), (" , ", " : ")])


@st.composite
def damaged(draw: st.DrawFn, text: str) -> bytes:
    """Return the text with a few bytes cut out or put in, sometimes."""
    data = text.encode()
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data)))
        piece = draw(st.sampled_from([b"", b",", b"}", b"]", b"{", b"[", b'"', b"null", b"0", b"\xff", b"\0", b"\\"]))
        data = data[:at] + piece + data[at + draw(st.integers(0, 3)) :]
    return data


@st.composite
def results_files(draw: st.DrawFn) -> bytes:
    entries = draw(st.lists(results_entry(), max_size=12))
    return draw(damaged(json.dumps(entries, separators=draw(separators))))


@st.composite
def rvc1_files(draw: st.DrawFn) -> bytes:
    file: dict[str, Any] = {
        "classes": ["cup", "dog"],
        "detections": draw(st.lists(st.lists(rvc1_entry(), max_size=4), max_size=8)),
        "more": draw(st.sampled_from([0, [[{}], [{}]]])),
    }
    order = draw(st.permutations(sorted(file)))
    return draw(damaged(json.dumps({key: file[key] for key in order}, separators=draw(separators))))


@given(data=results_files(), threads=st.integers(2, 5))
@example(data=b"[]", threads=2)
@example(data=b'[{"image_id":1}', threads=2)
def test_results(data: bytes, threads: int) -> None:
    assert_same_in_pieces(read_results, data, threads=threads)
    assert_same_in_pieces(read_form, data, threads=threads)


@given(data=rvc1_files(), threads=st.integers(2, 5))
@example(data=b'{"classes":[],"detections":[[{"label_probs":[],"bbox":[1,2,3,4]}],[]]}', threads=2)
def test_rvc1(data: bytes, threads: int) -> None:
    assert_same_in_pieces(read_rvc1, data, threads=threads)


GOOD = {"image_id": 5, "category_id": 7, "bbox": [1, 2, 3, 4], "score": 0.5}
WRONG: dict[str, Any] = {
    "type": GOOD | {"bbox": "none"},
    "category": GOOD | {"category_id": 4},
    "missing": {"image_id": 1},
    "number": 7,
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("at", [0, 1, 40, 99])
def test_the_first_wrong_entry_is_named(kind: str, at: int) -> None:
    entries = [GOOD] * 100
    entries[at] = WRONG[kind]
    for later in (at + 1, 98, 99):  # a second one, which another thread may find first
        if at < later < 100:
            entries[later] = WRONG["type"]
    data = json.dumps(entries).encode()
    assert_same_in_pieces(read_results, data)
    _, problems = read_results(data, lenient=False, threads=4, least_piece=1)
    assert problems[0][3][0][2].startswith(f"[{at}]")


def test_strings_that_look_like_entries() -> None:
    """A thread that begins in one of them reads what is none, and it comes to nothing."""
    trap = GOOD | {"note": '}, {"image_id": 1, "category_id": 7, "bbox": [0, 0, 1, 1], "score": 1}, {"image_id'}
    assert_same_in_pieces(read_results, json.dumps([trap] * 50).encode())
    columns, _ = read_results(json.dumps([trap] * 50).encode(), lenient=False, threads=4, least_piece=1)
    assert columns["entries"].tolist() == list(range(50))
    assert columns["boxes"][:, 0].tolist() == [1.0] * 50


def test_heatmap_files_keep_their_numbers() -> None:
    entry = {"label_probs": [1.0], "bbox": [1, 2, 3, 4]}
    lists = [[entry | {"masks_file": f"{(image * 7 + number) % 5}.npy"} for number in range(3)] for image in range(20)]
    assert_same_in_pieces(read_rvc1, json.dumps({"classes": ["cup"], "detections": lists}).encode())
