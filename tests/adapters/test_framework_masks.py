"""Masks of installed frameworks, compared with what the framework makes of them at the size of the image."""

from __future__ import annotations

from types import SimpleNamespace as Of
from typing import Any

import numpy as np
import pytest
from tests import frameworks

from probox import PDQ, Detections, InputError
from probox.adapters import (
    from_supervision,
    from_torchvision,
    from_transformers,
    from_ultralytics,
    to_supervision,
)
from probox.tables.heatmaps import to_bytes
from probox.tables.masks import Masks

CLASSES = ("cup", "dog", "cat")


def dense(found: Detections, height: int, width: int) -> np.ndarray:
    assert found.masks is not None
    return np.stack([found.masks.to_array(row, height, width) for row in range(len(found))])


def blobs(count: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    """Return logits of smooth blobs (n, H, W)."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    centres = rng.uniform(0.2, 0.8, (count, 2)) * [height, width]
    radii = rng.uniform(0.1, 0.4, count) * min(height, width)
    away = np.hypot(y - centres[:, 0, None, None], x - centres[:, 1, None, None])
    return (radii[:, None, None] - away).astype(np.float32)


@pytest.mark.torch
def test_masks_of_mask_rcnn_are_probabilities() -> None:
    torchvision, torch = frameworks.torchvision(), frameworks.torch()
    torch.manual_seed(0)
    with frameworks.quiet(), torch.no_grad():
        detection, features = torchvision.models.detection, torch.nn.Conv2d(3, 8, 8, stride=8)
        features.out_channels = 8
        pools = [torchvision.ops.MultiScaleRoIAlign(["0"], output_size=size, sampling_ratio=2) for size in (4, 14)]
        model = detection.MaskRCNN(
            features,
            num_classes=4,
            min_size=48,
            max_size=64,
            rpn_anchor_generator=detection.anchor_utils.AnchorGenerator(((16, 32),), ((0.5, 1.0, 2.0),)),
            box_roi_pool=pools[0],
            mask_roi_pool=pools[1],
            box_detections_per_img=5,
        ).eval()
        outputs = model([torch.rand(3, 48, 64), torch.rand(3, 64, 48)])
    found = from_torchvision(outputs, classes=["__background__", *CLASSES], image_ids=[7, 9])
    assert found.masks is None
    assert found.has_heatmap.all()
    given = [mask[0] for output in outputs for mask in output["masks"].numpy()]
    assert len(given) == len(found) == 10
    for heatmap, values in zip(found.heatmaps or (), given, strict=True):
        np.testing.assert_array_equal(np.asarray(heatmap), to_bytes(values))
        assert heatmap is not None
        assert heatmap.dtype == np.uint8
    binary = [{name: values > 0.5 if name == "masks" else values for name, values in each.items()} for each in outputs]
    whole = from_torchvision(binary[:1], classes=CLASSES, image_ids=7)
    np.testing.assert_array_equal(dense(whole, 48, 64), binary[0]["masks"][:, 0].numpy())
    thresholded = found[found.image_ids == 7].with_binary_masks()
    assert thresholded.masks is not None
    assert np.abs(thresholded.masks.pixels - whole.masks.pixels).max() <= 0.01 * 48 * 64  # of 8-bit values


@pytest.mark.torch
@pytest.mark.parametrize(
    ("inner", "shape"), [((64, 64), (48, 64)), ((64, 64), (90, 61)), ((32, 64), (50, 100)), ((40, 56), (40, 56))]
)
def test_ultralytics_masks_are_scaled_as_ultralytics_does(inner: tuple[int, int], shape: tuple[int, int]) -> None:
    frameworks.ultralytics()
    torch = frameworks.torch()
    with frameworks.quiet():
        from ultralytics.engine.results import Results
        from ultralytics.utils.ops import scale_masks

    logits = torch.from_numpy(blobs(4, *inner))
    boxes = torch.tensor([[1.0, 1, 30, 30, 0.9, 1]] * 4)
    photo = np.zeros((*shape, 3), np.uint8)
    results = Results(photo, path="7.jpg", names=dict(enumerate(CLASSES)), boxes=boxes, masks=(logits > 0).byte())
    found = from_ultralytics(results)
    values = scale_masks(results.masks.data[None].float(), shape)[0].numpy()
    different = dense(found, *shape) != (values > 0.5)
    assert (np.abs(values - 0.5) < 1e-5)[different].all()  # rounding decides at 0.5
    assert found.has_mask.all()
    assert found.masks.pixels.min() > 20
    wrong = Of(boxes=Of(data=boxes[:3]), masks=results.masks, names=results.names, orig_shape=shape, path="7.jpg")
    with pytest.raises(InputError, match="expected masks of shape 3 x H x W, but got 4 x"):
        from_ultralytics(wrong)


def segmented(count: int = 3) -> tuple[Any, Any]:
    """Return raw output of MaskFormer and Mask2Former for one image, and the class probabilities of its queries."""
    torch = frameworks.torch()
    classes = torch.full((1, count, 4), -4.0)
    for query in range(count):
        classes[0, query, query % 3] = 5.0
    masks = torch.from_numpy(blobs(count, 24, 32, seed=3))[None]
    return Of(class_queries_logits=classes, masks_queries_logits=masks, logits=classes, pred_masks=masks)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["MaskFormer", "Mask2Former", "Detr"])
@pytest.mark.parametrize("binary", [False, True])
def test_segments_of_transformers(kind: str, binary: bool) -> None:
    library, torch = frameworks.transformers(), frameworks.torch()
    if kind == "Detr" and binary:
        pytest.skip("DETR has no binary maps")
    with frameworks.quiet(), torch.no_grad():
        processor = getattr(library, f"{kind}ImageProcessor")()
        results = processor.post_process_instance_segmentation(
            segmented(), threshold=0.3, target_sizes=[(48, 64)], **({"return_binary_maps": True} if binary else {})
        )
    (result,) = results
    settings = {"id2label": dict(enumerate(CLASSES))}
    found = from_transformers(results, config=settings, image_ids=7, target_sizes=[(48, 64)])
    segments, given = result["segments_info"], result["segmentation"].numpy()
    assert len(found) == len(segments) >= 2
    expected = given == 1 if binary else np.stack([given == segment["id"] for segment in segments])
    flags = dense(found, 48, 64)
    np.testing.assert_array_equal(flags, expected)
    assert found.labels.tolist() == [segment["label_id"] for segment in segments]
    np.testing.assert_allclose(found.scores, [segment["score"] for segment in segments])
    for mask, (x1, y1, x2, y2) in zip(flags, found.boxes.astype(int).tolist(), strict=True):
        assert mask[y1:y2, x1:x2].sum() == mask.sum() > 0
        assert mask[y1].any() and mask[y2 - 1].any() and mask[:, x1].any() and mask[:, x2 - 1].any()  # noqa: PT018
    few = from_transformers(results, config=settings, image_ids=7, top=1)
    assert few.scores.tolist() == [found.scores.max()]
    np.testing.assert_array_equal(dense(few, 48, 64)[0], flags[found.scores.argmax()])
    with pytest.raises(InputError, match="image 7: the image is 48 x 64, but its masks are 64 x 48"):
        from_transformers(results, config=settings, image_ids=7, target_sizes=[(64, 48)])


def test_other_segments() -> None:
    info = [{"id": 1, "label_id": 2, "score": 0.75}, {"id": 2, "label_id": 0, "score": 0.5}]
    settings = {"id2label": dict(enumerate(CLASSES))}
    overwritten = {"segmentation": np.array([[0, 1, 1], [-1, 1, 0]]), "segments_info": info}
    nothing = {"segmentation": np.full((2, 3), -1), "segments_info": []}
    found = from_transformers([nothing, overwritten], config=settings, image_ids=[6, 7])
    assert found.image_ids.tolist() == [7, 7]
    assert found.boxes.tolist() == [[1, 0, 3, 2], [0, 0, 0, 0]]
    assert found.has_mask.tolist() == [True, True]
    assert found.areas.tolist() == [3, 0]
    assert len(from_transformers([nothing], config=settings, image_ids=6)) == 0
    with pytest.raises(InputError, match="got run lengths; omit return_coco_annotation"):
        from_transformers({"segmentation": [[0, 1]], "segments_info": info}, config=settings, image_ids=7)


def test_raw_masks_of_queries_become_heatmaps() -> None:
    torch = frameworks.torch()
    output = segmented()
    output.pred_boxes = torch.tensor([[[0.5, 0.5, 0.4, 0.4]] * 3])
    output.logits[0, 1] -= output.logits[0, 1].clone() / 2  # the middle query is the least certain
    settings = {"id2label": dict(enumerate(CLASSES)), "model_type": "detr"}
    found = from_transformers(output, config=settings, image_ids=7, image_sizes=(64, 48), top=2)
    sized = torch.nn.functional.interpolate(output.pred_masks, (48, 64), mode="bilinear", align_corners=False)
    assert len(found) == 2
    for heatmap, values in zip(found.heatmaps or (), sized.sigmoid()[0, [0, 2]].numpy(), strict=True):
        np.testing.assert_allclose(np.asarray(heatmap) / 255.0, values, atol=1.0 / 255)
    output.pred_masks = output.pred_masks[:, :1]
    with pytest.raises(InputError, match="image 7: expected pred_masks with a mask of each query, but got 1 x 24 x 32"):
        from_transformers(output, config=settings, image_ids=7, image_sizes=(64, 48))


def detections() -> Detections:
    flags = blobs(3, 48, 64) > 0
    return Detections.from_scores(
        [[5, 5, 40, 40]] * 3, [0.9, 0.5, 0.3], [0, 1, 2], classes=CLASSES, image_ids=[7, 7, 9]
    ).replace(masks=Masks.from_arrays(list(flags)))


def test_supervision_takes_masks_and_gives_them_back() -> None:
    library = frameworks.supervision()
    found = detections()
    held = to_supervision(found, image_size=(64, 48))
    np.testing.assert_array_equal(held.mask, dense(found, 48, 64))
    np.testing.assert_array_equal(dense(from_supervision(held), 48, 64), held.mask)
    np.testing.assert_array_equal(dense(from_supervision(held[held.confidence > 0.4]), 48, 64), held.mask[:2])
    compact = held[:]
    compact.mask = library.CompactMask.from_dense(held.mask, held.xyxy, (48, 64))
    assert from_supervision(compact).has_mask.all()
    assert to_supervision(found.replace(masks=None, has_mask=None), image_size=(64, 48)).mask is None
    for changed, size, match in (
        (found, None, "the size of the image is not given, but its masks need it"),
        (found, (48, 64), r"image_size is 48 x 64, but a mask reaches \d+, \d+; give image_size"),
        (Detections.concatenate([found, found.replace(masks=None, has_mask=None)]), (64, 48), "choose some: found"),
    ):
        with pytest.raises(InputError, match=match):
            to_supervision(changed, image_size=size)


def test_a_metric_keeps_masks() -> None:
    flags = blobs(2, 48, 64) > 0
    boxes = [[5, 5, 40, 40], [10, 10, 50, 45]]
    target = {"boxes": boxes, "labels": [0, 1], "masks": flags}
    metric = PDQ(CLASSES)
    metric.update([{"boxes": boxes, "labels": [0, 1], "scores": [1.0, 1.0], "masks": flags[:, None]}], [target])
    assert [note.code for note in metric.result().input_notes] == []
    assert metric.compute()["PDQ"] == 1.0
    plain = PDQ(CLASSES)
    plain.update([{"boxes": boxes, "labels": [0, 1], "scores": [1.0, 1.0]}], [target])
    assert plain.compute()["PDQ"] < 0.5
    with pytest.raises(InputError, match="the image is 64 x 48, but its masks are 48 x 64"):
        metric.update(
            [{"boxes": boxes, "labels": [0, 1], "scores": [1.0, 1.0], "masks": flags.transpose(0, 2, 1)}],
            [{"boxes": boxes, "labels": [0, 1], "image_size": (64, 48)}],
        )
    unsized = PDQ(CLASSES)
    unsized.update(
        [{"boxes": boxes, "labels": [0, 1], "scores": [1.0, 1.0], "masks": flags}], [{"boxes": boxes, "labels": [0, 1]}]
    )
    assert unsized.result().dataset.shapes.tolist() == [[64, 48]]
