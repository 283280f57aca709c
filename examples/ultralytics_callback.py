"""Log PDQ in every epoch of an Ultralytics training, on a synthetic data set of coloured squares.

    python examples/ultralytics_callback.py [FOLDER]

Requires ultralytics and Pillow.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

CLASSES = ("red", "blue")
SIDE = 64


def make_data(folder: Path, images: int = 8) -> Path:
    """Write images of squares and their labels in Ultralytics' format; return the path of data.yaml."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for split in ("train", "val"):
        for part in ("images", "labels"):
            (folder / part / split).mkdir(parents=True, exist_ok=True)
        for number in range(images):
            pixels = rng.integers(90, 140, (SIDE, SIDE, 3), dtype=np.uint8)
            lines = []
            for _ in range(rng.integers(1, 3)):
                label, size = int(rng.integers(0, 2)), int(rng.integers(24, 60))
                x, y = (int(corner) for corner in rng.integers(0, SIDE - size, 2))
                pixels[y : y + size, x : x + size] = (220, 30, 30) if label == 0 else (30, 30, 220)
                centre = (np.array([x, y]) + size / 2) / SIDE
                lines.append(f"{label} {centre[0]:.6f} {centre[1]:.6f} {size / SIDE:.6f} {size / SIDE:.6f}")
            Image.fromarray(pixels).save(folder / "images" / split / f"{number + 1:06d}.png")
            (folder / "labels" / split / f"{number + 1:06d}.txt").write_text("\n".join(lines) + "\n")
    path = folder / "data.yaml"
    names = "".join(f"  {number}: {name}\n" for number, name in enumerate(CLASSES))
    path.write_text(f"path: {folder}\ntrain: images/train\nval: images/val\nnames:\n{names}")
    return path


def train(folder: Path, *, epochs: int = 2, model: str = "yolov8n.yaml", **options: Any) -> tuple[Any, Any]:
    """Train for a few epochs; return the model and the callback with the PDQ of each epoch."""
    from ultralytics import YOLO

    from probox.adapters import UltralyticsPDQ

    detector = YOLO(model)
    pdq = UltralyticsPDQ(**options).attach(detector)
    detector.train(
        data=str(make_data(folder)), epochs=epochs, imgsz=SIDE, batch=8, workers=0, device="cpu", project=str(folder),
        name="run", plots=False, amp=False, verbose=False, optimizer="SGD", seed=0,
    )  # fmt: skip
    return detector, pdq


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    # After two epochs from random weights, all scores are low: keep all detections.
    _, pdq = train(folder.resolve(), score_threshold=0.001, uncertainty="edge-distribution")
    for number, entry in enumerate(pdq.history):
        print(f"validation {number}: PDQ {entry['PDQ']:.6f}")
    print((folder / "run" / "results.csv").read_text())


if __name__ == "__main__":
    main()
