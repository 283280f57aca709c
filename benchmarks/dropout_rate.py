"""Effect of the dropout rate on networks trained without dropout: the measurement behind probox.detect's default.

    python -m benchmarks.dropout_rate COCO_DIR OUT.jsonl [--half 0|1] [--passes 10] [--rates 0.05 0.1] ...

COCO_DIR contains images/, models/*.onnx and val2017_masks_206.json. Photos are split by their position in the order of
ids: positions 0, 2, ... (half 0) are for tuning, the others (half 1) for reporting. The output has one line of JSON per
model and setting; existing lines are not measured again. MC dropout is compared with a constant-variance baseline.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import probox
from probox.detect import Detector, Dropout, Options, find_images, read_image
from probox.detect.uncertainty import collect_passes, make_detections

MEASURES = ("pdq", "map", "lrp", "spearman")

MODELS = {
    "ssdlite": "ssdlite_mobilenet_v2_300.onnx",
    "yolox": "yolox_nano_416.onnx",
    "nanodet": "nanodet_m_416.onnx",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("coco", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--half", type=int, default=0, choices=(0, 1))
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.02, 0.05, 0.1, 0.2, 0.5])
    parser.add_argument("--masks", nargs="+", default=["elements", "channels"])
    parser.add_argument("--layers", default="heads")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    given = parser.parse_args()
    truth_file = given.coco / "val2017_masks_206.json"
    files = sorted(find_images(given.coco / "images", truth_file), key=lambda file: file.image_id)[given.half :: 2]
    ids = [file.image_id for file in files]
    photos = [read_image(file.path) for file in files]
    truth = probox.read_truth(truth_file).select_images(ids)
    settings: list[Dropout | None] = [None]
    settings += [Dropout(rate=rate, masks=masks, layers=given.layers) for masks in given.masks for rate in given.rates]
    done = [json.loads(line)["what"] for line in given.out.read_text().splitlines()] if given.out.exists() else []
    for dropout in settings:
        for name in given.models:
            what = [name, given.half, given.passes, str(dropout)]
            if what in done:
                continue
            detector = Detector(given.coco / "models" / MODELS[name], dropout=dropout, threads=1)
            uncertainty = "constant" if dropout is None else "mc-dropout"
            options = Options(uncertainty=uncertainty, passes=given.passes, border="pin")
            tables = []
            for image_id, photo in zip(ids, photos, strict=True):
                (seen,) = collect_passes(detector, [photo], [image_id], options)
                size = (photo.shape[1], photo.shape[0])
                tables.append(make_detections(seen, detector.family, size, image_id, options).detections)
            found = probox.Detections.concatenate(tables)
            line = {"what": what, "above_0.5": int((found.scores > 0.5).sum())}
            for cut in (0.5, 0.05):
                result = probox.evaluate(truth, found.select(found.scores > cut), measures=MEASURES)
                summary = result.summary()
                if cut == 0.5 and dropout is not None:
                    line["Spearman"] = round(summary["Spearman"], 3)
                line |= {f"{key} {cut}": round(100 * summary[key], 2) for key in ("mAP", "PDQ", "spatial", "label")}
            with given.out.open("a") as stream:
                stream.write(json.dumps(line) + "\n")
            print(line, flush=True)


if __name__ == "__main__":
    main()
