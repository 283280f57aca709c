"""A small synthetic dataset: scenes of irregular shapes, their ground truth and two detectors.

>>> from probox.demo import make_demo
>>> demo = make_demo()
>>> demo.truth
GroundTruth(12 images, 164 objects, 7 classes)
"""

from __future__ import annotations

import dataclasses
import io
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from probox.demo.detectors import detect
from probox.demo.synthetic_scene import DemoScene, ground_truth, make_scenes
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.tables.masks import Masks

__all__ = ["Demo", "make_demo"]


@dataclasses.dataclass(frozen=True)
class Demo:
    """Ground truth of synthetic scenes and the detections of two detectors, from `make_demo`.

    Parameters
    ----------
    truth : GroundTruth
        Objects with masks.
    detectors : dict of str to Detections
        ``deterministic``, boxes without covariance, and ``probabilistic``, the same boxes with covariances.
    scenes : tuple of DemoScene
        Shapes and lighting of the pictures.

    Examples
    --------
    >>> from probox.demo import make_demo
    >>> list(make_demo().detectors)
    ['deterministic', 'probabilistic']
    """

    truth: GroundTruth
    detectors: dict[str, Detections]
    scenes: tuple[DemoScene, ...]

    def picture(self, image_id: int) -> npt.NDArray[np.uint8]:
        """Return an image as an RGB array.

        Parameters
        ----------
        image_id : int
            Image id, from 1.

        Returns
        -------
        (H, W, 3) uint8
            The image.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> make_demo().picture(1).shape
        (480, 640, 3)
        """
        from probox.demo.synthetic_scene import render

        return render(self.scenes[int(np.flatnonzero(self.truth.image_ids == image_id)[0])])

    def save(self, folder: str | Path) -> list[Path]:
        """Write ``truth.json`` (COCO), COCO results per detector and the pictures.

        Pictures need Pillow. The files appear all at once. Files of an earlier demo are replaced; other files of the
        same name are an error.

        Parameters
        ----------
        folder : str or path
            Folder to write to.

        Returns
        -------
        list of Path
            The written files.

        Examples
        --------
        >>> from probox.demo import make_demo
        >>> paths = make_demo().save("demo")  # doctest: +SKIP
        """
        from probox.files.output import output_folder
        from probox.formats.coco import coco_results_text
        from probox.support.optional import require

        detections = {f"{name.replace(' ', '_')}.json": found for name, found in self.detectors.items()}
        names = self.truth.dataset.file_names if find_spec("PIL") is not None else ()
        pictures = {f"images/{name}": number for number, name in enumerate(names)}
        with output_folder(folder, "demo", names=["truth.json", *detections, *pictures]) as out:
            written = [out.write("truth.json", json.dumps(_coco_truth(self.truth)).encode())]
            for name, found in detections.items():
                text, _ = coco_results_text(found, self.truth.dataset, name)
                written.append(out.write(name, text))
            for name, number in pictures.items():
                jpeg = io.BytesIO()
                pillow = require("PIL.Image", extra="report")
                pillow.fromarray(self.picture(int(self.truth.image_ids[number]))).save(jpeg, "JPEG", quality=90)
                written.append(out.write(name, jpeg.getvalue()))
        return written


def make_demo(images: int = 12, seed: int = 4) -> Demo:
    """Create the demo dataset; equal arguments give equal data.

    Parameters
    ----------
    images : int
        Number of scenes.
    seed : int
        Random seed of scenes and detections.

    Returns
    -------
    Demo
        Ground truth, detections and scenes.
    Examples
    --------
    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> round(probox.evaluate(demo.truth, demo.detectors["probabilistic"]).pdq, 4)
    0.5757
    """
    scenes = make_scenes(images, seed)
    truth, visible = ground_truth(scenes)
    detectors = detect(truth, visible, scenes, seed)
    return Demo(truth, detectors, tuple(scenes))


def _coco_truth(truth: GroundTruth) -> dict[str, Any]:
    annotations = []
    for row in range(len(truth)):
        image = int(truth.image_rows[row])
        x1, y1, x2, y2 = truth.boxes[row].tolist()
        annotations.append(
            {
                "id": int(truth.ids[row]),
                "image_id": int(truth.image_ids[image]),
                "category_id": int(truth.dataset.category_ids[truth.labels[row]]),
                "bbox": [x1, y1, x2 - x1, y2 - y1],
                "area": float(truth.areas[row]),
                "iscrowd": int(truth.crowd[row]),
                "segmentation": _coco_runs(
                    truth.masks, row, int(truth.dataset.heights[image]), int(truth.dataset.widths[image])
                ),
            }
        )
    return {
        "images": [
            {"id": int(image_id), "width": int(width), "height": int(height), "file_name": name}
            for image_id, width, height, name in zip(
                truth.image_ids, truth.dataset.widths, truth.dataset.heights, truth.dataset.file_names, strict=True
            )
        ],
        "categories": [
            {"id": int(number), "name": name}
            for number, name in zip(truth.dataset.category_ids, truth.classes, strict=True)
        ],
        "annotations": annotations,
    }


def _coco_runs(masks: Masks, row: int, height: int, width: int) -> dict[str, Any]:
    """Return uncompressed COCO run lengths: column-major, starting with background pixels."""
    flat = masks.to_array(row, height, width).ravel(order="F")
    changes = np.flatnonzero(np.diff(flat)) + 1
    edges = np.concatenate([[0] if not flat[0] else [0, 0], changes, [flat.size]])
    return {"size": [height, width], "counts": np.diff(edges).tolist()}
