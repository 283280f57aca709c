"""Problems gathered or raised: how many, which examples and words, which are fatal; and several files as one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from probox import InputError, _core
from probox.formats.coco_segmentation import mask_limits
from probox.formats.format import Draft, join_drafts, repair_covariances
from probox.formats.problems import MAX_EXAMPLES, WORDINGS, Problems
from probox.notes import Note, as_notes
from probox.tables.dataset import Dataset


def describe(row: int) -> InputError:
    return InputError(f"row {row}")


def texts(problems: Problems) -> list[tuple[str, int, list[str], bool]]:
    return [(f.kind, f.count, [str(e) for e in f.examples], f.is_error) for f in problems.findings]


def test_strictly_the_first_row_is_raised_and_warnings_are_passed_over():
    problems = Problems()
    problems.add("kind", [], describe)
    problems.warn("kind", [1, 2], describe)
    with pytest.raises(InputError, match="row 7"):
        problems.add("kind", [7, 8], describe)
    with pytest.raises(InputError, match="row 3"):
        problems.catch(describe(3), "kind")
    with pytest.raises(InputError, match="row 4"):
        problems.stop(describe(4))
    with pytest.raises(InputError, match=r'a\.json: image 5: entry: expected a key "id"; add it to the entry'):
        problems.add_raw([("missing_key", False, 1, [(0, 5, "entry", ["id"])])], "a.json")
    assert problems.findings == []


def test_leniently_kinds_are_gathered_with_three_examples():
    problems = Problems(lenient=True)
    problems.add("one", [], describe)
    problems.warn("one", [], describe)
    assert problems.findings == []
    problems.add("one", [1, 2], describe)
    problems.warn("one", [9], describe)
    problems.add("two", [1, 2, 3, 4, 5], describe)
    problems.add("one", [3, 4, 5], describe)
    problems.catch(describe(6), "one")
    assert MAX_EXAMPLES == 3
    assert texts(problems) == [
        ("one", 6, ["row 1", "row 2", "row 3"], True),
        ("one", 1, ["row 9"], False),
        ("two", 5, ["row 1", "row 2", "row 3"], True),
    ]
    assert not problems.stopped


def test_only_a_fatal_problem_ends_a_file():
    problems = Problems(lenient=True)
    assert problems.add_raw([], "a")
    assert problems.add_raw([("wrong_length", False, 5, [(0, None, "", ["2", "1"])])], "a")
    assert not problems.stopped
    nested = ("nested_too_deeply", True, 1, [(0, None, "", ["128"])])
    assert not problems.add_raw([nested, ("wrong_length", False, 1, [])], "b")
    assert problems.stopped
    assert problems.add_raw([("wrong_length", False, 1, [])], "c")
    assert problems.stopped  # one file that ended early is enough
    assert texts(problems) == [
        ("wrong length", 7, ["a: expected a list of 2, but got 1"], True),
        (
            "nested too deeply",
            1,
            ["b: values are nested more than 128 levels deep; check that this is a file of detections or ground truth"],
            True,
        ),
    ]
    later = Problems(lenient=True)
    later.stop(describe(1))
    assert later.stopped
    assert texts(later) == [("unusable file", 1, ["row 1"], True)]


def draft(name: str, count: int, *, covariances: bool = False, heatmaps: bool = False) -> Draft:
    return Draft(
        classes=("cup",),
        image_ids=np.arange(count) + 10 * ord(name),
        boxes=np.full((count, 4), float(ord(name))),
        label_probs=np.ones((count, 1), np.float32),
        source=name,
        place=lambda row: (name, f"entry {row}"),
        covariances=np.ones((count, 2, 2, 2)) if covariances else None,
        heatmaps=[np.full((1, 1), float(row)) for row in range(count)] if heatmaps else None,
        notes=as_notes([f"about {name}"]),
    )


def test_several_files_are_one_table_with_places_of_their_own():
    parts = [draft("a", 2), draft("b", 0), draft("c", 3, covariances=True, heatmaps=True), draft("d", 1)]
    whole = join_drafts(parts, np.ones((6, 1), np.float32), ("cup",), "all")
    assert [whole.place(row) for row in range(6)] == [
        ("a", "entry 0"), ("a", "entry 1"), ("c", "entry 0"), ("c", "entry 1"), ("c", "entry 2"), ("d", "entry 0"),
    ]  # fmt: skip
    assert whole.boxes[:, 0].tolist() == [97, 97, 99, 99, 99, 100]
    assert whole.covariances[:, 0, 0, 0].tolist() == [0, 0, 1, 1, 1, 0]
    assert [None if h is None else float(h[0, 0]) for h in whole.heatmaps] == [None, None, 0, 1, 2, None]
    assert whole.notes == as_notes(["about a", "about b", "about c", "about d"])
    plain = join_drafts(parts[:2], np.ones((2, 1), np.float32), ("cup",), "all")
    assert plain.covariances is None
    assert plain.heatmaps is None


def test_a_repair_counts_what_it_changes_and_leaves_the_rest():
    good, skew = np.eye(2), np.array([[4.0, 1.0], [2.0, 4.0]])
    negative, hopeless = np.array([[4.0, 9.0], [9.0, 4.0]]), np.full((2, 2), np.nan)
    given = np.array([[good, good], [good, skew], [negative, good], [hopeless, skew]])
    before = given.copy()
    result, changed = repair_covariances(given)
    assert changed == 2
    np.testing.assert_array_equal(given, before)
    np.testing.assert_array_equal(result[0], before[0])
    np.testing.assert_array_equal(result[1, 1], [[4, 1.5], [1.5, 4]])
    np.testing.assert_allclose(result[2, 0], np.full((2, 2), 6.5))  # the eigenvalue 13 alone
    np.testing.assert_array_equal(result[3], before[3])  # for the checks to refuse
    same, none = repair_covariances(given[:1])
    assert none == 0
    assert same is not None
    np.testing.assert_array_equal(same, before[:1])


def test_a_draft_is_repaired_only_where_it_is_asked_for():
    skew = dataclasses.replace(draft("a", 1), covariances=np.array([[[[4.0, 1.0], [2.0, 4.0]], np.eye(2)]]))
    with pytest.raises(InputError, match="symmetric"):
        skew.to_table()
    table = skew.to_table(repair=True)
    assert table.covariances[0, 0].tolist() == [[4, 1.5], [1.5, 4]]
    assert Note("repaired-covariances", 1) in table.notes


def test_detections_in_other_images_are_left_out_noted_and_warned_of() -> None:
    drafted = draft("a", 4).replace(image_ids=np.array([1, 5, 1, 9]))
    dataset = Dataset.from_sizes(["cup"], {1: (9, 9)})
    problems = Problems(lenient=True)
    within = drafted.within(dataset, problems)
    assert within.image_ids.tolist() == [1, 1]
    assert within.place(1) == ("a", "entry 2")
    assert within.notes[-1] == Note("unknown-images", 2, images=2)
    assert [(finding.kind, finding.count) for finding in problems.findings] == [("unknown image", 2)]
    assert within.within(dataset, problems) is within


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
        _, problems = _core.read_coco_results(
            data, image_ids=None, category_ids=None, lenient=True, max_examples=many, **mask_limits(data)
        )
        assert [(trouble, count, len(examples)) for trouble, _, count, examples in problems] == [
            ("wrong_type", 4, many),
            ("score_range", 4, many),
        ]
        assert [example[0] for example in problems[1][3]] == [1, 3, 5][:many]
