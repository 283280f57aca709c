"""Troubles that the kernel's readers report become messages in Python: every one, by kind, in the order of the file."""

from __future__ import annotations

from probox import _core
from probox.formats.problems import WORDINGS, Problems


def test_every_trouble_has_its_words_and_no_other() -> None:
    assert set(WORDINGS) == set(_core.TROUBLES)


def test_troubles_of_a_kind_are_gathered_in_the_order_of_the_file() -> None:
    raw = [
        ("polygon_points", False, 2, [(0, 7, "[0]", ["3"]), (2, None, "[2]", ["5"])]),
        ("iscrowd", False, 1, [(1, 8, "[1]", ["4"])]),
        ("polygon_range", True, 3, [(3, 9, "[3]", [])]),
    ]
    problems = Problems(lenient=True)
    assert not problems.add_raw(raw, "a")
    points = "expected x and y of at least two points, but got {} numbers; write polygons as [x1, y1, x2, y2, ...]"
    assert [(f.kind, f.count, list(map(str, f.examples))) for f in problems.findings] == [
        (
            "polygon",
            5,
            [
                f"a: image 7: [0]: {points.format(3)}",
                f"a: [2]: {points.format(5)}",
                "a: image 9: [3]: expected coordinates from -1e8 to 1e8; write polygons in pixels",
            ],
        ),
        ("iscrowd", 1, ["a: image 8: [1]: expected 0 or 1, but got 4"]),
    ]


def test_the_kernel_keeps_as_many_examples_as_it_is_asked_for() -> None:
    data = b"[" + b", ".join([b'{"bbox": 1}', b'{"score": 3}'] * 4) + b"]"
    for many in (1, 2, 3):
        _, problems = _core.read_coco_results(data, image_ids=None, category_ids=None, lenient=True, max_examples=many)
        assert [(trouble, count, len(examples)) for trouble, _, count, examples in problems] == [
            ("wrong_type", 4, many),
            ("score_range", 4, many),
        ]
        assert [example[0] for example in problems[1][3]] == [1, 3, 5][:many]
