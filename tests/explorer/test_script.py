"""The page's own script, run by Node: thresholds, masks, ellipses and heatmaps, as the measure has them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.amounts import others_slow
from tests.explorer.node import needs_node, run
from tests.strategies import random_mask, random_world

from probox import Convention, Detections, Evaluation, GroundTruth, evaluate
from probox.explorer.page import pixel_entries
from probox.explorer.payload import chunk_payloads, index_payload
from probox.measures.pdq.kernel import heatmap
from probox.tables.masks import Masks

pytestmark = needs_node


# --- ellipses -------------------------------------------------------------------------------------------------------


def test_ellipses_are_the_covariance_s_own() -> None:
    random = np.random.default_rng(4)
    roots = random.normal(size=(60, 2, 2)) * random.choice([0.1, 1.0, 30.0], (60, 1, 1))
    matrices = [*(roots @ roots.swapaxes(1, 2)), np.diag([4.0, 9.0]), np.diag([9.0, 4.0]), np.ones((2, 2)) * 2,
                np.array([[2.0, -2.0], [-2.0, 2.0]]), np.zeros((2, 2)), np.diag([0.0, 3.0])]  # fmt: skip
    packed = [[float(m[0, 0]), float(m[0, 1]), float(m[1, 1])] for m in matrices]
    answers = run("const answer = input.map((c) => probox.axes(c));", packed)
    for matrix, axes in zip(matrices, answers, strict=True):
        assert axes["long"] >= axes["short"] >= 0
        along = np.array([np.cos(axes["angle"]), np.sin(axes["angle"])])
        across = np.array([-along[1], along[0]])
        again = axes["long"] ** 2 * np.outer(along, along) + axes["short"] ** 2 * np.outer(across, across)
        np.testing.assert_allclose(again, matrix, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(matrix).max()))


def test_a_form_that_rounding_left_below_zero_has_no_short_axis() -> None:
    (axes,) = run("const answer = input.map((c) => probox.axes(c));", [[1.0, 1.0000001, 1.0]])
    assert axes["short"] == 0
    assert axes["long"] == pytest.approx(2**0.5)


# --- heatmaps -------------------------------------------------------------------------------------------------------

HEATMAPS = """
const answer = input.cases.map(({ box, corners }) =>
  [...probox.heatmap({ box, corners }, input.width, input.height, input.columns, input.rows, input.convention)]);
"""
CLOSE = 1e-10
"""What the page's integrals leave to be desired."""
SINGLE = 2.0**-23
"""What rounding to single precision may add: such a difference may tip over a value that lies between two."""
CONVENTIONS = {
    "reference": Convention(),
    "paper": Convention.preset("paper"),
    "challenge": Convention.preset("challenge"),
    "tight": Convention(mahalanobis=1.47, rough_sigmas=2.1, min_probability=0.1),
    "wide": Convention(mahalanobis=9.0, rough_sigmas=12.0, min_probability=1e-12, single_precision=False),
    "no region": Convention(region_of_interest=False, min_probability=1e-9),
    "rough regions only": Convention(min_determinant=500.0, min_probability=0.0),
}


def boxes_and_corners() -> list[tuple[list[float], np.ndarray]]:
    """Return boxes inside, across and outside of an image of 100 x 80, with covariances of all kinds."""
    random = np.random.default_rng(8)
    kinds = [
        [[[9, 4], [4, 6]], [[25, -12], [-12, 16]]],
        [[[4, 0], [0, 9]], [[1, 0], [0, 1]]],
        [[[100, 80], [80, 90]], [[0.3, 0.1], [0.1, 0.4]]],
        [[[100, 99.9], [99.9, 100]], [[50, -49.99], [-49.99, 50]]],
        [[[4, 4], [4, 4]], [[9, -9], [-9, 9]]],
        [[[0, 0], [0, 2]], [[3, 0], [0, 0]]],
        [[[2500, 0], [0, 1600]], [[400, 100], [100, 900]]],
        [[[0, 0], [0, 0]], [[0, 0], [0, 0]]],
    ]
    places = [[20.3, 15.6, 70.2, 52.9], [-3.0, 4.0, 97.0, 66.0], [10.0, 10.0, 10.0, 10.0], [-40.0, -40.0, -20.0, 200.0]]
    cases = [(box, np.array(kind, dtype=float)) for box in places for kind in kinds]
    for _ in range(20):
        low, high = random.uniform(-10, 60, 2), random.uniform(5, 60, 2)
        roots = random.normal(size=(2, 2, 2)) * random.choice([0.5, 4.0, 20.0], (2, 1, 1))
        cases.append(([*low, *(low + high)], roots @ roots.swapaxes(1, 2)))
    return cases


def page_heatmaps(convention: Convention, columns: int, rows: int) -> list[np.ndarray]:
    """Return what the page makes of them."""
    packed = [
        {"box": box, "corners": both[:, [0, 0, 1], [0, 1, 1]].tolist() if both.any() else None}
        for box, both in boxes_and_corners()
    ]
    value = {"width": 100, "height": 80, "columns": columns, "rows": rows, "cases": packed,
             "convention": convention.to_dict()}  # fmt: skip
    return [np.reshape(answer, (rows, columns)) for answer in run(HEATMAPS, value)]


@pytest.mark.parametrize("convention", others_slow(CONVENTIONS.values(), 3), ids=CONVENTIONS.keys())
def test_heatmaps_are_the_kernels_under_the_results_convention(convention: Convention) -> None:
    # Every other pixel will do; all of them under the first.
    step = 1 if convention == Convention() else 2
    shown_ones = page_heatmaps(convention, 100 // step, 80 // step)
    for (box, both), shown in zip(boxes_and_corners(), shown_ones, strict=True):
        whole = heatmap(box, both, 100, 80, convention.replace(sum_zero_is_plain=False))
        expected = whole[step // 2 :: step, step // 2 :: step]
        close = SINGLE if convention.single_precision else CLOSE
        # What lies as near to the cut as the page can tell may fall on either side of it.
        doubtful = np.abs(np.maximum(shown, expected) - convention.min_probability) < close
        assert doubtful.sum() < 5 or convention.min_probability < close
        apart = np.abs(shown - expected)
        assert np.where(doubtful, 0, apart).max() < close, (box, both.tolist())


def test_small_heatmaps_show_the_pixels_in_the_middle_of_their_cells() -> None:
    for whole, small in zip(page_heatmaps(Convention(), 100, 80), page_heatmaps(Convention(), 20, 16), strict=True):
        np.testing.assert_array_equal(small, whole[2::5, 2::5])


# --- masks ----------------------------------------------------------------------------------------------------------

GEOMETRY = """
const store = { index: { chunk: 2 }, images: { w: [0, 0, 0].fill(input.width), h: [0, 0, 0].fill(input.height) },
  objects: { offsets: input.offsets }, results: [{ detections: { offsets: [0, 0, 0, 0] } }] };
input.chunks.forEach((images, number) => probox.receive(number, images));
const answer = [];
for (let row = 0; row < 3; row++) probox.withGeometry(store, row, ({ objects }) => {
  for (const object of objects) {
    const inside = [];
    for (let y = 0; y < input.height; y++) {
      inside.push([]);
      for (let x = 0; x < input.width; x++) inside[y].push(probox.contains(object, x, y + 0.5));
    }
    answer.push({ row: object.row, filled: object.filled, runs: object.runs, inside, box: [object.x0, object.y0,
      object.x1, object.y1], area: probox.area(object).rects, outline: probox.outline(object).lines });
  }
});
"""


def sides(mask: np.ndarray) -> set[tuple[int, int, int, int]]:
    """Return the unit sides between inside and outside, as x, y, x, y."""
    padded = np.pad(mask, 1)
    found = set()
    for y, x in zip(*np.nonzero(padded[:, 1:] != padded[:, :-1]), strict=True):
        found.add((int(x), int(y) - 1, int(x), int(y)))
    for y, x in zip(*np.nonzero(padded[1:] != padded[:-1]), strict=True):
        found.add((int(x) - 1, int(y), int(x), int(y)))
    return found


def unit_steps(line: list[int]) -> list[tuple[int, int, int, int]]:
    x, y, to_x, to_y = line
    if x == to_x:
        return [(x, at, x, at + 1) for at in range(min(y, to_y), max(y, to_y))]
    return [(at, y, at + 1, y) for at in range(min(x, to_x), max(x, to_x))]


def test_masks_arrive_pixel_by_pixel_with_their_outlines() -> None:
    rng = np.random.default_rng(11)
    width, height = 150, 20
    masks = [random_mask(rng, height, width) for _ in range(9)]
    masks[0][:] = False
    masks[0][3:5, 7:9] = True  # filled: no runs
    truth = GroundTruth.from_masks(["cup"], [(image, masks[3 * image : 3 * image + 3], [0] * 3) for image in range(3)])
    none = Detections(classes=["cup"], image_ids=[], boxes=[], label_probs=np.zeros((0, 1)))
    results = {"none": evaluate(truth, none)}
    value = {"width": width, "height": height, "offsets": [0, 3, 6, 9],
             "chunks": list(chunk_payloads(results, truth.masks, 2))}  # fmt: skip
    answers = run(GEOMETRY, value)
    assert [answer["row"] for answer in answers] == list(range(9))
    for row, (mask, answer) in enumerate(zip(masks, answers, strict=True)):
        assert answer["box"] == truth.masks.boxes[row].tolist()
        assert answer["filled"] == (truth.masks.offsets[row] == truth.masks.offsets[row + 1])
        if answer["filled"]:
            assert answer["runs"] == []
            x0, y0, x1, y1 = answer["box"]
            assert answer["area"] == [[x0, y0, x1 - x0 + 1, y1 - y0 + 1]]
            continue
        np.testing.assert_array_equal(np.array(answer["inside"]), mask)
        assert all(line[:2] != line[2:] for line in answer["outline"])
        drawn = [step for line in answer["outline"] for step in unit_steps(line)]
        assert len(drawn) == len(set(drawn))
        assert set(drawn) == sides(mask)
        assert sum(width for _, _, width, _ in answer["area"]) == mask.sum()


def test_masks_of_detections_arrive_and_replace_their_corners() -> None:
    rng = np.random.default_rng(12)
    flags = [random_mask(rng, 20, 150) for _ in range(2)]
    flags[0][4:9, 7:9] = True
    truth = GroundTruth.from_boxes(["cup"], {1: (150, 20), 2: (150, 20)}, [1], [[1, 1, 9, 9]], [0])
    found = Detections(
        classes=["cup"], image_ids=[1] * 5, boxes=[[1, 1, 9, 9]] * 5, label_probs=[[0.5]] * 5,
        covariances=np.tile(np.eye(2), (5, 2, 1, 1)), has_mask=[True, True, False, True, False],
        masks=Masks.concatenate([
            Masks.from_arrays(flags), Masks.empty(2), Masks.from_boxes(np.array([[3, 3, 5, 5]], np.int32))
        ]),
        heatmaps=[None, None, None, None, np.pad(np.full((4, 6), 0.5), ((3, 13), (2, 142)))],
    )  # fmt: skip
    result = evaluate(truth, found.replace(masks=None, has_mask=None, heatmaps=None))
    value = {
        "offsets": [0, 5, 5],
        "chunks": list(chunk_payloads({"a": result}, result.masks, 2, [pixel_entries(result, found)])),
    }
    (answer,) = run(
        """
        const store = { index: { chunk: 2 }, images: { w: [150], h: [20] }, objects: { offsets: [0, 1, 1] },
          results: [{ detections: { offsets: input.offsets } }] };
        input.chunks.forEach((images, number) => probox.receive(number, images));
        const answer = [];
        probox.withGeometry(store, 0, ({ results }) => answer.push(results[0]));
        """,
        value,
    )
    assert [one["mask"] is not None for one in answer] == [True, True, False, True, False]
    assert [one["corners"] is not None for one in answer] == [False, False, True, False, False]
    for one, mask in zip(answer, flags, strict=False):
        drawn = np.zeros((20, 150), bool)
        for y, begin, end in one["mask"]["runs"]:
            drawn[y, begin:end] = True
        np.testing.assert_array_equal(drawn, mask)
    assert [answer[3]["mask"][name] for name in ("x0", "y0", "x1", "y1", "runs")] == [0, 0, -1, -1, []]
    assert answer[4]["map"]["box"] == [2, 3, 6, 4]


# --- thresholds -----------------------------------------------------------------------------------------------------

VIEWS = """
const store = new probox.Store(input.index);
const answer = input.thresholds.map((threshold) => {
  const view = store.view(0, threshold);
  return { total: view.total(), classes: view.perClass(), sizes: view.perSize(), images: view.perImage(),
    verdict: [...view.verdict], objects: [...view.objectVerdict] };
});
"""
NAMES = ("PDQ", "pPDQ", "spatial", "label", "foreground", "background", "TP", "FP", "FN")


def same(told: dict[str, float | None], summary: dict[str, float]) -> None:
    for name in NAMES:
        got = np.nan if told[name] is None else told[name]
        # The page has qualities other than pPDQ in single precision.
        assert got == pytest.approx(summary[name], rel=1e-6, abs=1e-12, nan_ok=True), name


@pytest.mark.parametrize(
    "convention",
    [Convention(), Convention.preset("challenge"), Convention(object_filter=True, min_width=12, min_height=12),
     Convention.preset("paper", assignment="greedy")],
    ids=["reference", "challenge", "filter", "greedy"],
)  # fmt: skip
@pytest.mark.parametrize("seed", others_slow([0, 1, 6]))
def test_the_page_counts_what_the_measure_counts_at_every_confidence(seed: int, convention: Convention) -> None:
    truth, found = random_world(seed, heatmaps=False)
    # Confidences on few levels, so that thresholds hit several at once, exactly; and one of nothing at all.
    levels = (np.floor(found.label_probs * 10) / 10).astype(np.float32)
    levels[:1] = 0.0
    changed = dataclasses.replace(found, label_probs=levels, scores=None, labels=None)
    evaluation = evaluate(truth, changed, convention=convention)
    # 0.3 is less than its nearest float: thresholds must be rounded before they are compared.
    steps = [round(float(level), 1) for level in np.unique(evaluation.detections.confidences)]
    below = [float(np.nextafter(np.float32(step), np.float32(0))) for step in steps]
    thresholds = [None, *steps, *below]
    index = index_payload({"one": evaluation}, [""] * len(truth.image_ids), 2, truth.dataset.file_names)
    answers = run(VIEWS, {"index": index, "thresholds": thresholds})
    for threshold, answer in zip(thresholds, answers, strict=True):
        at: Evaluation = evaluation if threshold is None else evaluation.at_threshold(threshold)
        same(answer["total"], at.summary())
        kept = np.ones(len(evaluation.detections), bool)
        if threshold is not None:
            kept = evaluation.detections.confidences > np.float32(threshold)
        assert (np.array(answer["verdict"]) != 4).tolist() == kept.tolist()
        assert np.array(answer["verdict"])[kept].tolist() == at.detections.verdicts.tolist()
        assert answer["objects"] == at.objects.verdicts.tolist()
        for groups, table in (("classes", at.per_class()), ("sizes", at.per_size())):
            for told, summary in zip(answer[groups], table.values(), strict=True):
                same(told, summary)
        for name, column in at.per_image().columns.items():
            if name in ("PDQ", "TP", "FP", "FN"):
                told = np.array([told[name] for told in answer["images"]], float)
                np.testing.assert_allclose(told, column, rtol=1e-12)
