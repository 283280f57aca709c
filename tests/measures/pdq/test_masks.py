"""PDQ of masks: the same as that of heatmaps of 0 and 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.amounts import examples
from tests.strategies import random_world, with_masks

from probox import Convention, Detections, GroundTruth, InputError, Masks, evaluate
from probox.measures.pdq import definition
from probox.measures.pdq.kernel import pair_tables, score_pairs
from probox.tables.heatmaps import WindowHeatmap

EPSILON = 3e-14
"""With the usual 1e-14, a quality is 1e-8 if 4 of 7 pixels are missed: at `snap_zero`, where rounding decides."""

PRESETS = pytest.mark.parametrize("preset", ["reference", "paper", "challenge"])
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "background": st.sampled_from(["box", "mask"]),
        "box_truth": st.booleans(),
        "fixed_variance": st.just(4.0),
        "epsilon": st.sampled_from([3e-300, 3e-10]),
        "label_weight": st.sampled_from([0.0, 0.25]),
        "clip": st.just("corners"),
    },
)


@PRESETS
@examples(60)
@given(seed=st.integers(0, 2**32 - 1), choices=CHOICES)
def test_scores_equal_the_definition(preset, seed, choices):
    world = random_world(seed)
    truth, found = world[0], with_masks(world, seed)
    convention = Convention.preset(preset, **{"epsilon": EPSILON, **choices}).for_rules(truth.dataset.rules)
    masks = truth.as_box_masks() if convention.box_truth else truth.masks
    for image, image_id in enumerate(truth.image_ids.tolist()):
        width, height = truth.dataset.shapes[image].tolist()
        objects = np.flatnonzero((truth.image_rows == image) & (masks.pixels > 0))
        part = found[found.image_ids == image_id]
        want = definition.pair_tables(
            [masks.to_array(int(row), height, width) for row in objects],
            [definition.detection_heatmap(part, row, width, height, convention) for row in range(len(part))],
            part.label_probs,
            truth.labels[objects],
            convention,
        )
        got = pair_tables(truth, part, convention, image)
        with_mask = part.has_mask & ~part.has_heatmap
        for column, name in enumerate(("overall", "spatial", "label", "fg", "bg")):
            np.testing.assert_allclose(got[:, with_mask, column], want[name][:, with_mask], rtol=1e-12, atol=0)


@PRESETS
@examples(40)
@given(seed=st.integers(0, 2**32 - 1), background=st.sampled_from(["box", "mask"]), kind=st.sampled_from("fdB"))
def test_heatmaps_of_0_and_1_have_the_same_pairs(preset, seed, background, kind):
    world = random_world(seed, heatmaps=False)
    truth, found = world[0], with_masks(world, seed, fraction=1.0)
    found = found[np.argsort(found.image_ids, kind="stable")]
    one = 255 if kind == "B" else 1
    shapes = truth.dataset.shapes[truth.dataset.rows_of(found.image_ids)].tolist()
    maps = [found.masks.to_array(row, high, wide).astype(kind) * one for row, (wide, high) in enumerate(shapes)]
    heatmaps = found.replace(masks=None, heatmaps=maps)
    convention = Convention.preset(preset, background=background, epsilon=EPSILON).for_rules(truth.dataset.rules)
    got, want = (score_pairs(truth, truth.masks, table, convention) for table in (found, heatmaps))
    np.testing.assert_array_equal(got.detections, want.detections)
    np.testing.assert_array_equal(got.objects, want.objects)
    # Sums over pixels round epsilon to float32 under the reference's precision.
    rtol = 1e-8 if preset == "paper" else 1e-6
    np.testing.assert_allclose(got.qualities, want.qualities, rtol=rtol, atol=0)


def one_mask(mask, **columns):
    """Return the detection of a mask in an image of 20 x 10 pixels with one object, 4 x 3 pixels at (2, 1)."""
    truth = GroundTruth.from_masks(["cup"], [(1, [np.pad(np.ones((3, 4), bool), ((1, 6), (2, 14)))], [0])])
    found = Detections(
        classes=["cup"],
        image_ids=[1],
        boxes=[[0, 0, 1, 1]],
        label_probs=[[1.0]],
        masks=Masks.from_arrays([mask]),
        **columns,
    )
    return truth, found


def test_values():
    mask = np.zeros((10, 20), bool)
    mask[1:4, 3:8] = True  # 9 of 12 pixels of the object and 6 others
    truth, found = one_mask(mask)
    tables = pair_tables(truth, found, Convention.preset("paper"), 0)[0, 0]
    missed, surplus = 3 / 12 * np.log(1e-14), 6 / 12 * np.log(1e-14)
    np.testing.assert_allclose(tables[1:], [np.exp(missed + surplus), 1, np.exp(missed), np.exp(surplus)], rtol=1e-12)


def test_a_heatmap_precedes_the_mask_and_a_mask_the_box():
    full = np.zeros((10, 20), bool)
    full[1:4, 2:6] = True
    assert evaluate(*one_mask(full)).pdq == 1.0
    assert evaluate(*one_mask(full, heatmaps=[np.zeros((10, 20))])).pdq == 0.0
    truth, found = one_mask(full, has_mask=[False])
    assert evaluate(truth, found).pdq == 0.0


def test_an_empty_mask_has_no_pixel():
    empty = np.zeros((10, 20), bool)
    truth, found = one_mask(empty, has_mask=[True])
    assert evaluate(truth, found).pdq == 0.0
    tables = pair_tables(truth, found, Convention.preset("paper"), 0)[0, 0]
    np.testing.assert_allclose(tables[1:], [1e-14, 1, 1e-14, 1], rtol=1e-12)


def test_a_mask_outside_its_image_is_refused():
    mask = np.zeros((10, 21), bool)
    mask[2, 20] = True
    with pytest.raises(InputError, match=r"image 1: detection 0: expected a mask in an image of 20 x 10 pixels"):
        evaluate(*one_mask(mask))


@PRESETS
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_a_window_of_a_heatmap_is_the_heatmap(preset, dtype):
    rng = np.random.default_rng(5)
    truth, _ = one_mask(np.zeros((10, 20), bool))
    heatmap = np.zeros((10, 20), dtype)
    heatmap[1:6, 3:9] = rng.random((5, 6)) if dtype != np.uint8 else rng.integers(0, 256, (5, 6))
    windows = [
        heatmap,
        WindowHeatmap((10, 20), (1, 3), heatmap[1:6, 3:9]),
        WindowHeatmap((10, 20), (0, 2), heatmap[:8, 2:]),
    ]
    empty = [np.zeros((10, 20), dtype), WindowHeatmap((10, 20), (0, 0), heatmap[:0, :0])]
    tables = []
    for given_ in (*windows, *empty):
        found = Detections(classes=["cup"], image_ids=[1], boxes=[[0, 0, 1, 1]], label_probs=[[1.0]], heatmaps=[given_])
        assert evaluate(truth, found).summary()["FP"] in (0, 1)
        tables.append(pair_tables(truth, found, Convention.preset(preset), 0)[0, 0])
    rtol = 1e-8 if preset == "paper" else 1e-6
    np.testing.assert_allclose(tables[1:3], [tables[0]] * 2, rtol=rtol)
    np.testing.assert_allclose(tables[4], tables[3], rtol=rtol)
