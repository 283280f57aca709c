"""supervision's detections, both ways, and corners as key points whose covariances its annotators draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.adapters.images import ImageRows, image_ids_of, listed, stacked
from probox.errors import InputError
from probox.support.optional import require
from probox.tables.arguments import check_classes, expect
from probox.tables.arrays import to_numpy
from probox.tables.detections import Detections

__all__ = ["from_supervision", "to_supervision", "to_supervision_key_points"]


def from_supervision(
    detections: Any, *, image_ids: Any = None, classes: Sequence[str] | None = None, above_one: Any = "limit"
) -> Detections:
    """Return supervision's detections as a table.

    Parameters
    ----------
    detections : supervision.Detections, or list of them
        Of each image, with `confidence` and `class_id`. ``data["label_probs"] (n, C)``, all classes' probabilities, and
        ``data["covariance"] (n, 2, 2, 2)``, of the corners, are taken where they are.
    image_ids : int or sequence of int
        The id of each image; by default ``data["image_id"]`` of each detection, which `to_supervision` writes.
    classes : sequence of str
        All names that `class_id` counts in, from 0; by default those that `to_supervision` wrote.
    above_one : {"limit", "normalise", "refuse"}
        What happens to `label_probs` that add up to more than 1, see `Detections.from_scores`.
    """
    results = listed(detections, hasattr(detections, "xyxy"))
    if not all(hasattr(result, "xyxy") for result in results):
        raise InputError(
            "expected supervision's Detections, or a list of them",
            remedy="give what sv.Detections.from_...() returned",
        )
    names = _classes(results, classes)
    own = [_data(result, "image_id") for result in results]
    by_row = (
        image_ids is None
        and len(results) > 0
        and all(ids is not None or not len(result.xyxy) for ids, result in zip(own, results, strict=True))
    )
    ids = list(range(len(results))) if by_row else image_ids_of(image_ids, len(results))
    images = [_rows(result, names, image) for result, image in zip(results, ids, strict=True)]
    masks = [getattr(result, "mask", None) for result in results]
    found = stacked(images, ids, names, covariance_format="xyxy", above_one=above_one, masks=masks)
    if not by_row:
        return found
    rows = [to_numpy(part, "image_id").astype(np.int64) for part in own if part is not None]
    return found.replace(image_ids=np.concatenate([np.zeros(0, np.int64), *rows]))


def to_supervision(found: Detections, image_id: int | None = None) -> Any:
    """Return detections as supervision's: all of them, or those of one image.

    Names of classes are in ``data["class_name"]``, all classes' probabilities in ``data["label_probs"]``, covariances
    of the corners in ``data["covariance"]``, and image ids in ``data["image_id"]``; these survive filtering, merging
    and suppression, and `from_supervision` takes them back.

    Parameters
    ----------
    found : Detections
        The detections; supervision cannot hold heatmaps.
    image_id : int, optional
        The image. Default: all.
    """
    chosen = _of_image(found, image_id, "to_supervision(found, image_id)")
    library = require("supervision", extra="supervision", purpose="supervision's detections need")
    data: dict[str, Any] = _names_and_images(chosen) | {"label_probs": np.array(chosen.label_probs)}
    if chosen.covariances is not None:
        data["covariance"] = np.array(chosen.covariances)
    return library.Detections(
        xyxy=np.array(chosen.boxes),
        confidence=np.array(chosen.scores),
        class_id=chosen.labels.astype(np.int64),
        data=data,
        metadata={"classes": list(chosen.classes)},
    )


def to_supervision_key_points(found: Detections, image_id: int | None = None) -> Any:
    """Return the two corners of each box as supervision's key points, with their covariances.

    ``sv.VertexEllipseOutlineAnnotator``, ``...AreaAnnotator`` and ``...HaloAnnotator`` draw these. Plain boxes have no
    ellipse, and supervision draws none around a corner at exactly (0, 0).

    Parameters
    ----------
    found : Detections
        Detections with covariances.
    image_id : int, optional
        The image. Default: all.
    """
    chosen = _of_image(found, image_id, "to_supervision_key_points(found, image_id)")
    if chosen.covariances is None:
        raise InputError(
            "these boxes have no covariances: there is no ellipse to draw",
            remedy="give std=, var= or covariances= to Detections.from_scores, or draw to_supervision(found)",
        )
    library = require("supervision", extra="supervision", purpose="supervision's key points need")
    return library.KeyPoints(
        xy=chosen.boxes.reshape(-1, 2, 2).astype(np.float32),
        class_id=chosen.labels.astype(np.int64),
        detection_confidence=chosen.scores.astype(np.float32),
        data=_names_and_images(chosen) | {"covariance": np.array(chosen.covariances)},
    )


def _of_image(found: Any, image_id: Any, order: str) -> Detections:
    expect(found, Detections, "found", f"write {order}")
    chosen: Detections = found
    if image_id is not None:
        chosen = chosen[chosen.image_ids == image_ids_of(image_id, 1)[0]]
    if chosen.has_heatmap.any():
        raise InputError("supervision cannot hold heatmaps", remedy="leave them out: found.replace(heatmaps=None)")
    return chosen


def _names_and_images(found: Detections) -> dict[str, npt.NDArray[Any]]:
    names = np.array(found.classes or [""], dtype=str)[found.labels]
    return {"class_name": names, "image_id": np.array(found.image_ids)}


def _data(result: Any, name: str) -> Any:
    data = getattr(result, "data", None)
    return data.get(name) if isinstance(data, Mapping) else None


def _classes(results: Sequence[Any], classes: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names that class ids count in: those given, or those that `to_supervision` wrote."""
    if classes is not None:
        return check_classes(classes)
    written = [getattr(result, "metadata", None) or {} for result in results if len(result.xyxy)]
    names = {tuple(entry["classes"]) if "classes" in entry else None for entry in written}
    if len(names) == 1 and (known := names.pop()) is not None:
        return check_classes(known)
    if not written:
        notes = [getattr(result, "metadata", None) or {} for result in results]
        return check_classes(next((note["classes"] for note in notes if "classes" in note), ()))
    raise InputError(
        "the detector's classes are not known",
        remedy="give classes=, all names that class_id counts in: the rest of a score is shared among them",
    )


def _rows(result: Any, names: tuple[str, ...], image: int) -> ImageRows:
    count = len(result.xyxy)
    boxes = to_numpy(result.xyxy, "xyxy")
    if not count:
        return ImageRows(boxes=np.zeros((0, 4)))
    if result.confidence is None:
        raise InputError(
            "expected detections with a confidence", image=image, remedy="annotations are no detections: they have none"
        )
    labels = _labels(result, names, image)
    probs, covariances = _data(result, "label_probs"), _data(result, "covariance")
    return ImageRows(
        boxes=boxes,
        scores=to_numpy(result.confidence, "confidence"),
        labels=labels,
        label_probs=None if probs is None else to_numpy(probs, "label_probs"),
        covariances=None if covariances is None else to_numpy(covariances, "covariance"),
    )


def _labels(result: Any, names: tuple[str, ...], image: int) -> npt.NDArray[Any]:
    """Return the classes of detections; where these say both number and name, the two must mean the same."""
    stated = _data(result, "class_name")
    if result.class_id is None:
        if stated is None:
            raise InputError("expected detections with a class_id", image=image)
        return np.asarray(stated)
    labels = to_numpy(result.class_id, "class_id")
    if (labels < 0).any() or (labels >= len(names)).any():
        wrong = int(labels[(labels < 0) | (labels >= len(names))][0])
        raise InputError(
            f"expected class_id to count in {len(names)} classes from 0, but got {wrong}",
            image=image,
            remedy="give all names of the detector as classes=, background too where it has a number",
        )
    for label, name in zip(labels.tolist(), [] if stated is None else np.asarray(stated).tolist(), strict=False):
        if str(name) != names[label]:
            raise InputError(
                f"class_id {label} is {names[label]!r} in classes, but {str(name)!r} in the detections",
                image=image,
                remedy="give the detector's classes in its own order",
            )
    return labels
