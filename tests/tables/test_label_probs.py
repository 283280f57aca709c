"""Label probabilities by listed classes are those of the matrix, whatever is done with them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from probox import Detections, GroundTruth, InputError, _core, evaluate, load
from probox.analysis.ranking import rank
from probox.calibration.corner_maps import MonotoneCurve
from probox.calibration.label_maps import LabelMap, ScoreCurves, Temperature, rests, target_probs
from probox.formats import read_detections, write_coco_results, write_parquet, write_rvc1
from probox.tables.label_probs import LabelProbs
from probox.tables.labels import align_labels, scores_alone, without_background

KINDS = ("score", "full", "sparse", "mixed", "nothing")


def some_matrix(kind: str, rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Return probabilities: of one score, of all classes, of few classes, of each of these, or zeros."""
    rng = np.random.default_rng([seed, rows, columns])
    scores, labels = rng.random(rows).round(2), rng.integers(0, max(columns, 1), rows)
    even = np.repeat((1.0 - scores)[:, None] / max(columns - 1, 1), columns, axis=1)
    if columns:
        even[np.arange(rows), labels] = scores
    full = rng.dirichlet(np.ones(columns + 1), rows)[:, :columns]
    few = np.where(rng.random((rows, columns)) < 0.1, full, 0.0)
    zeros = np.zeros((rows, columns))
    chosen = {"score": [even], "full": [full], "sparse": [few], "nothing": [zeros], "mixed": [even, full, few, zeros]}
    tables = np.stack(chosen[kind])
    return tables[np.arange(rows) % len(tables), np.arange(rows)].astype(np.float32)


def listed(matrix: np.ndarray, sharing: np.ndarray | None = None) -> LabelProbs:
    """Return a matrix by listed classes, however many these are."""
    flags = np.ones(matrix.shape[1], bool) if sharing is None else sharing
    columns = _core.list_labels(matrix, flags, matrix.size)
    assert columns is not None
    return LabelProbs.of_columns(*columns, sharing=flags)


def forms(matrix: np.ndarray, seed: int = 0) -> list[LabelProbs]:
    """Return the same probabilities in all forms: the last shares rests among some of the classes only."""
    some = np.random.default_rng(seed).random(matrix.shape[1]) < 0.6
    return [LabelProbs(matrix), LabelProbs.of_matrix(matrix), listed(matrix), listed(matrix, some)]


MATRICES = [
    (kind, rows, columns) for kind in KINDS for rows, columns in ((7, 1), (9, 2), (8, 3), (12, 30), (0, 4), (3, 0))
]


@pytest.fixture(params=MATRICES, ids=lambda case: "-".join(map(str, case)))
def matrix(request: pytest.FixtureRequest) -> np.ndarray:
    return some_matrix(*request.param)


def assert_bits(mine: LabelProbs, expected: np.ndarray) -> None:
    assert mine.shape == expected.shape
    assert np.asarray(mine).dtype == np.float32
    assert np.asarray(mine).tobytes() == np.ascontiguousarray(expected, np.float32).tobytes()


def test_values_and_reductions_are_those_of_the_matrix(matrix: np.ndarray) -> None:
    rows, columns = matrix.shape
    for probs in forms(matrix):
        assert_bits(probs, matrix)
        assert probs.tolist() == matrix.tolist()
        assert (probs.size, len(probs), probs.dtype) == (matrix.size, rows, np.float32)
        assert probs.equals(LabelProbs.of_matrix(matrix))
        np.testing.assert_array_equal(probs.max(axis=1, initial=0.0), matrix.max(axis=1, initial=0.0))
        np.testing.assert_allclose(
            probs.sum(axis=1, dtype=np.float64), matrix.sum(axis=1, dtype=np.float64), rtol=1e-14
        )
        best = matrix.argmax(axis=1) if columns else np.zeros(rows)
        np.testing.assert_array_equal(probs.argmax(axis=1), best)
        np.testing.assert_array_equal(probs.of_rows(lambda some, _: some.sum(axis=1)), matrix.sum(axis=1))
        assert probs.sum() == matrix.sum()
        np.testing.assert_array_equal(probs > 0.1, matrix > 0.1)


def test_rows_and_columns_are_those_of_the_matrix(matrix: np.ndarray) -> None:
    rows, columns = matrix.shape
    rng = np.random.default_rng(rows)
    some = rng.integers(0, rows, 5) if rows else np.zeros(0, np.int64)
    wanted = rng.integers(-1, columns, 2 * columns) if columns else np.full(3, -1)
    picked = np.where(wanted >= 0, matrix[:, wanted] if columns else np.zeros((rows, 3)), 0.0)
    flags = rng.random(columns) < 0.5
    for probs in forms(matrix):
        for chosen in (some, slice(1, 4), slice(None, None, -2), rng.random(rows) < 0.5, slice(0, 0), -1 - some):
            assert_bits(probs[chosen], matrix[chosen])
        assert_bits(probs.pick(wanted), picked)
        assert_bits(probs[:, flags], matrix[:, flags])
        assert_bits(probs[some][:, flags], matrix[some][:, flags])
        assert_bits(
            LabelProbs.concatenate([probs, LabelProbs(matrix[some]), probs[:2]]),
            np.concatenate([matrix, matrix[some], matrix[:2]]),
        )
        if columns and rows:
            assert probs[rows - 1].tolist() == matrix[-1].tolist()
            assert probs[0, columns - 1] == matrix[0, -1]
            np.testing.assert_array_equal(probs[:, 0], matrix[:, 0])
            assert [row.tolist() for row in probs] == matrix.tolist()
            grid = some[:, None], np.arange(columns)[None, ::-1]
            np.testing.assert_array_equal(probs[grid], matrix[grid])


def test_parts_that_share_among_other_classes_are_concatenated(matrix: np.ndarray) -> None:
    parts = [part for seed in range(3) for part in forms(matrix, seed)]
    assert_bits(LabelProbs.concatenate(parts), np.concatenate([matrix] * len(parts)))
    wider = [part.pick(np.append(np.arange(matrix.shape[1]), [-1] * 20)) for part in parts]
    assert_bits(LabelProbs.concatenate(wider), np.pad(np.concatenate([matrix] * len(parts)), ((0, 0), (0, 20))))


def test_blocks_of_any_size_are_the_whole(matrix: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.arange(len(matrix)) % max(matrix.shape[1], 1)

    def halved(some: np.ndarray, rows: slice) -> np.ndarray:
        changed = 0.5 * some.astype(np.float64)
        if some.shape[1]:
            changed[np.arange(len(some)), labels[rows]] = 0.25
        return changed

    for at_once in (1, 40, 1 << 20):
        monkeypatch.setattr("probox.tables.label_probs.VALUES_AT_ONCE", at_once)
        for probs in forms(matrix):
            assert_bits(probs.map_rows(halved), halved(matrix, slice(None)))


def test_scores_are_spread_over_the_other_classes() -> None:
    rng = np.random.default_rng(5)
    for rows, columns in ((0, 3), (20, 1), (20, 2), (20, 3), (20, 50)):
        scores, labels = rng.random(rows), rng.integers(0, columns, rows).astype(np.int32)
        expected = np.repeat((1.0 - scores)[:, None] / max(columns - 1, 1), columns, axis=1)
        expected[np.arange(rows), labels] = scores
        assert_bits(LabelProbs.from_scores(scores, labels, columns), expected)
        given_rows = np.flatnonzero(rng.random(rows) < 0.4)
        given = some_matrix("full", len(given_rows), columns)
        expected[given_rows] = given
        assert_bits(LabelProbs.from_scores(scores, labels, columns, given_rows, given), expected)


def test_memory_grows_with_what_is_known() -> None:
    scores, labels = np.full(1000, 0.5), np.arange(1000, dtype=np.int32) % 900
    probs = LabelProbs.from_scores(scores, labels, 10_000)
    assert probs.nbytes < 40_000
    assert LabelProbs(probs[:50].matrix).nbytes < 15_000, "a matrix of spread scores is stored as these"
    assert probs.pick(np.append(np.arange(10_000), [-1] * 10_000)).nbytes < 60_000
    assert LabelProbs.concatenate([probs, probs]).nbytes < 70_000
    assert probs.map_rows(lambda some, _: some / 2.0).nbytes < 60_000
    full = some_matrix("full", 100, 30)
    assert LabelProbs(full).nbytes < full.nbytes + 100
    assert LabelProbs(full).pick(np.append(np.arange(30), [-1] * 10_000)).nbytes < 4 * full.nbytes


def test_a_table_is_read_only_and_can_be_copied() -> None:
    matrix = some_matrix("score", 9, 30)
    for probs in forms(matrix):
        for again in (copy.deepcopy(probs), pickle.loads(pickle.dumps(probs))):
            assert again.equals(probs)
        with pytest.raises(ValueError, match="read-only"):
            probs.values[...] = 0.0
    given = matrix.copy()
    probs = LabelProbs(given)
    given[:] = 0.0
    assert_bits(probs, matrix)


def test_places_out_of_range_are_refused() -> None:
    probs = LabelProbs(some_matrix("score", 9, 30))
    for key in ([9], [-10], (0, 30), (np.arange(2), np.array([0, -31])), np.ones(8, bool)):
        with pytest.raises(IndexError):
            probs[key]


@pytest.mark.parametrize("values", [[0.5], [[[0.5]]], [["cup"]], [[0.5], [0.5, 0.1]]])
def test_what_is_no_matrix_is_refused(values: object) -> None:
    with pytest.raises(InputError, match="expected label_probs"):
        LabelProbs(values)  # type: ignore[arg-type]


def test_copies_keep_the_type() -> None:
    for probs in forms(some_matrix("score", 7, 30)):
        assert np.array(probs).dtype == np.float32
        assert np.array(probs, copy=True).flags.writeable
        assert np.asarray(probs, np.float64).dtype == np.float64


def test_rows_with_a_label_of_probability_0_are_even_in_all_forms() -> None:
    """The label may be the class that does not share the rest."""
    matrix = np.array([[0.0, 0.25, 0.25, 0.25], [0.0, 0.25, 0.25, 0.0], [0.0, 0.0, 0.0, 0.0]], np.float32)
    labels = np.zeros(3, np.int32)
    sharing = np.array([False, True, True, True])
    for probs in (LabelProbs.of_matrix(matrix), listed(matrix), listed(matrix, sharing)):
        assert probs.is_even(labels).tolist() == [True, False, False]


@pytest.mark.parametrize("columns", [3, 4, 30])
def test_which_rows_are_scores_alone_does_not_depend_on_the_form(columns: int) -> None:
    matrix = np.concatenate([some_matrix(kind, 40, columns) for kind in KINDS])
    matrix[0] = 1 / columns
    labels = np.concatenate([matrix[:100].argmax(axis=1), np.arange(100) % columns]).astype(np.int32)
    classes = ["background", *(f"class {number}" for number in range(1, columns))]
    for padded in (0, 1, 2):
        wide = np.pad(matrix, ((0, 0), (0, padded)))
        known = [*classes, *(f"more {number}" for number in range(padded))]
        first, *others = (scores_alone(probs, labels, known) for probs in forms(wide))
        assert first.any() == (padded == 0)
        for other in others:
            np.testing.assert_array_equal(other, first)


CLASSES = ("cup", "background", "dog", "TV", *(f"class {number}" for number in range(9)))


def some_tables(kind: str, count: int = 60) -> tuple[GroundTruth, list[Detections]]:
    """Return ground truth, and the same detections with label probabilities in all forms."""
    rng = np.random.default_rng(3)
    corners = rng.uniform(0, 60, (count, 2)).round(1)
    boxes = np.concatenate([corners, corners + rng.uniform(5, 30, (count, 2)).round(1)], axis=1)
    ids, names = np.sort(rng.integers(1, 5, count)), [*CLASSES[:3], "television", "ghost", *CLASSES[4:9]]
    truth = GroundTruth.from_boxes(
        names, dict.fromkeys(range(1, 6), (100, 90)), ids[::3], boxes[::3] + 1, rng.integers(0, 4, len(ids[::3]))
    )
    matrix = some_matrix(kind, count, len(CLASSES))
    covariances = np.tile(np.eye(2) * 4.0, (count, 2, 1, 1)) * rng.integers(0, 2, (count, 1, 1, 1))
    return truth, [
        Detections(classes=CLASSES, image_ids=ids, boxes=boxes, covariances=covariances, label_probs=probs)
        for probs in forms(matrix)
    ]


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_numbers_do_not_depend_on_the_form(kind: str, tmp_path: Path) -> None:
    truth, tables = some_tables(kind)
    first, *others = tables

    def same(function: Callable[[Detections], object]) -> None:
        expected = function(first)
        for other in others:
            np.testing.assert_equal(function(other), expected)

    def evaluated(found: Detections) -> object:
        result = evaluate(truth, found, measures="all", threads=1)
        result.save(tmp_path / "result")
        again = load(tmp_path / "result")
        assert again.detections.label_probs is not None
        assert again.detections.label_probs.equals(result.detections.label_probs)  # type: ignore[arg-type]
        parts = [evaluate(truth, found, measures="all", part=f"{n}/2", threads=1) for n in (1, 2)]
        merged = (parts[0] + parts[1]).summary()
        np.testing.assert_equal(merged, result.summary())
        return result.summary(), again.summary(), [str(note) for note in (*result.notes, *result.warnings)]

    same(evaluated)
    for write, name in ((write_parquet, "f.parquet"), (write_rvc1, "f.json"), (write_coco_results, "c.json")):

        def written(found: Detections, write: Callable = write, name: str = name) -> object:
            if write is write_parquet:
                write(tmp_path / name, found)
            else:
                write(tmp_path / name, found, truth)
            again = read_detections(tmp_path / name, truth)
            return (tmp_path / name).read_bytes(), np.asarray(again.label_probs).tobytes()

        same(written)
    same(lambda found: rank(found).values)
    same(lambda found: rank(found, by="margin").values)
    maps: list[LabelMap] = [
        Temperature(1.5),
        ScoreCurves(MonotoneCurve((0.1, 0.9), (0.2, 0.7)), (("cup", MonotoneCurve((0.5,), (0.25,))),)),
    ]
    for mapping in maps:
        same(lambda found, mapping=mapping: np.asarray(mapping.apply(found).label_probs).tobytes())  # type: ignore[misc]
        same(lambda found, mapping=mapping: mapping.apply(found).scores)  # type: ignore[misc]
    same(lambda found: np.asarray(Detections.concatenate([found, found.select([1])]).label_probs).tobytes())
    same(lambda found: found.named_classes(truth.classes))
    same(lambda found: np.asarray(without_background(found.label_probs, CLASSES)).tobytes())
    same(lambda found: np.asarray(align_labels(found.label_probs, CLASSES, truth.classes)).tobytes())
    same(lambda found: found.flat(label_probs=True).columns)
    targets = np.arange(len(first)) % (len(CLASSES) + 1)
    same(lambda found: target_probs(found.label_probs, targets, np.arange(len(CLASSES)) == 1))
    same(lambda found: rests(found.label_probs))
