"""Processor time of drawing an image with a hundred detections, against matplotlib's usual artists.

    python -m benchmarks.drawing                                    # a synthetic image of 640 x 480
    python -m benchmarks.drawing --result RESULT_DIR --images DIR   # images of a result with the most detections

Contenders alternate in one process, so that other load on the machine affects all of them. Times are processor times of
this process, the minimum of all rounds, and ratios are of these. The first image, which renders words for all others,
is not timed. `ordinary` draws the same boxes, ellipses, outlines and names with one artist each, and default PNG
compression; it places no labels. "units" are times divided by that of one `numpy.log` of ten million doubles.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import probox
from probox.files.photos import find_photo, load_photo
from probox.pictures.batch import draw_image
from probox.pictures.drawing import principal_axes
from probox.pictures.rendering import file_content
from probox.pictures.view import ImageView, view_of_image

matplotlib.use("Agg")

Case = tuple[ImageView, Any]


def made_up(detections: int = 100, objects: int = 20) -> Case:
    """Return an image with round objects, true and false positives, and a photo of noise."""
    rng = np.random.default_rng(0)
    y, x = np.indices((480, 640))
    centres = rng.uniform([60, 60], [580, 420], (objects, 2))
    radii = rng.uniform(15, 60, objects)
    masks = [np.hypot(x - cx, y - cy) < r for (cx, cy), r in zip(centres, radii, strict=True)]
    truth = probox.GroundTruth.from_masks(["thing", "other"], [(1, masks, rng.integers(0, 2, objects))])
    middles = np.concatenate([centres, rng.uniform([40, 40], [600, 440], (detections - objects, 2))])
    halves = np.concatenate([np.tile(radii[:, None], 2), rng.uniform(10, 80, (detections - objects, 2))])
    roots = rng.normal(size=(detections, 2, 2, 2)) * rng.uniform(1, 12, (detections, 1, 1, 1))
    found = probox.Detections(
        classes=["thing", "other"],
        image_ids=np.ones(detections, np.int64),
        boxes=np.concatenate([middles - halves, middles + halves], axis=1) + rng.normal(size=(detections, 4)),
        label_probs=rng.dirichlet([1, 1, 1], detections)[:, :2],
        covariances=roots @ np.swapaxes(roots, 2, 3),
    )
    photo = rng.integers(0, 256, (60, 80, 3), dtype=np.uint8).repeat(8, axis=0).repeat(8, axis=1)
    return view_of_image(probox.evaluate(truth, found), 1), photo


def of_result(folder: str, images: str, pictures: int) -> list[Case]:
    """Return the images of a result with the most detections, and their photos."""
    result = probox.Evaluation.load(folder)
    counts = np.bincount(result.detections.image_rows, minlength=len(result.dataset))
    cases = []
    for row in np.argsort(-counts, kind="stable")[:pictures].tolist():
        view = view_of_image(result, int(result.dataset.image_ids[row]))
        path = find_photo(Path(images), view.image_id, view.file_name)
        cases.append((view, None if path is None else load_photo(path, (view.width, view.height))))
    return cases


def ordinary(case: Case) -> bytes:
    """Draw a case with one matplotlib artist per shape and word."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Ellipse, Rectangle
    from matplotlib.patheffects import withStroke

    view, photo = case
    figure = plt.figure(figsize=(8.0, 8.0 * view.height / view.width), dpi=150)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    if photo is not None:
        axes.imshow(photo)
    for row in range(len(view.objects)):
        axes.contour(view.mask(row), levels=[0.5], colors="tab:blue")
    table = view.detections
    for row in range(len(table)):
        x1, y1, x2, y2 = table.boxes[row]
        effects: list[Any] = [withStroke(linewidth=3, foreground="white")]
        axes.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor="tab:blue", path_effects=effects))
        axes.text(x1, y1, view.class_name(int(table.labels[row])), fontsize=6)
        for corner in range(2):
            half_axes, angle = principal_axes(table.covariances[row, corner])
            for deviations in (3, 2, 1):
                place: dict[str, Any] = {"xy": table.boxes[row, 2 * corner : 2 * corner + 2], "angle": angle}
                width, height = 2.0 * deviations * half_axes
                for look in ({"alpha": 0.2}, {"fill": False, "edgecolor": "white"}, {"fill": False}):
                    axes.add_patch(Ellipse(**place, width=width, height=height, **look))
    data = io.BytesIO()
    figure.savefig(data, format="png")
    plt.close(figure)
    return data.getvalue()


def quick(case: Case, **options: Any) -> bytes:
    """Draw a case as `probox draw` does."""
    return file_content(draw_image(case[0], photo=case[1], **options).get_figure(), "png")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--result", help="a folder that `probox evaluate --out` wrote")
    parser.add_argument("--images", help="its photos")
    parser.add_argument("--pictures", type=int, default=3, help="number of images of the result (default 3)")
    parser.add_argument("--rounds", type=int, default=3, help="number of runs of each contender (default 3)")
    parser.add_argument("--json", type=Path, help="also write all results to this file")
    options = parser.parse_args()
    cases = of_result(options.result, options.images, options.pictures) if options.result else [made_up()]
    numbers = np.random.default_rng(0).random(10**7) + 0.1
    contenders: dict[str, Callable[[Case], Any]] = {
        "ordinary": ordinary,
        "draw, everything": lambda case: quick(case, show_above=0.0, corners="ellipses"),
        "draw, all detections and heatmap": lambda case: quick(case, show_above=0.0, corners="ellipses", heatmap=True),
        "draw": quick,
        "yardstick": lambda case: np.log(numbers),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(options.rounds + 1):
        for name, run in contenders.items():
            for case in cases[: None if number else 1]:
                started = time.process_time()
                run(case)
                if number:
                    seconds[name].append(time.process_time() - started)
    least = {
        name: float(np.mean(np.reshape(times, (options.rounds, len(cases))).min(axis=0)))
        for name, times in seconds.items()
    }
    print("| contender | processor seconds per image | ratio of ordinary | units |")
    print("| --- | ---: | ---: | ---: |")
    for name in list(contenders)[:-1]:
        ratio, units = least["ordinary"] / least[name], least[name] / least["yardstick"]
        print(f"| {name} | {least[name]:.3f} | {ratio:.1f} | {units:.1f} |")
    counts = [len(case[0].detections) for case in cases]
    print(f"\n{len(cases)} images with {min(counts)} to {max(counts)} detections, minimum of {options.rounds} rounds")
    if options.json:
        options.json.write_text(json.dumps({"detections": counts, "least": least, "all": seconds}, indent=1))


if __name__ == "__main__":
    main()
