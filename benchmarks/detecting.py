"""Time per photo of a detector: the network alone, photos one by one, and several at a time.

    python -m benchmarks.detecting MODEL.onnx... --images FOLDER --photos 60 --rounds 7

"network" is ONNX Runtime alone on prepared inputs. "one by one" reads, prepares, runs, fuses and stores each photo
before the next. "together" is `probox detect`. The three alternate, so that other load on the machine affects all of
them. Times are the minimum of all rounds, ratios the median of the ratios within a round.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from probox.detect import Detector, ImageFile, Options, detect_images, find_images, read_image
from probox.detect.run import Partial, PhotoResult, stamp_of
from probox.detect.uncertainty import collect_passes, make_detections
from probox.support.parallel import thread_count

OPTIONS = Options(uncertainty="nms-clusters")


def network(model: Path, images: list[ImageFile], threads: int) -> Callable[[], None]:
    """Return a function that runs the network alone."""
    detector = Detector(model, threads=threads)
    ready = [detector.family.prepare(read_image(image.path))[0] for image in images]

    def run() -> None:
        for feeds in ready:
            detector._session.run(None, feeds)

    return run


def one_by_one(model: Path, images: list[ImageFile], threads: int) -> Callable[[], None]:
    """Return a function that processes photos one by one, with threads only inside the network."""
    detector = Detector(model, threads=threads)

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder, Partial(Path(folder) / "found.json", {}) as kept:
            for image in images:
                pixels = read_image(image.path)
                size = (pixels.shape[1], pixels.shape[0])
                (seen,) = collect_passes(detector, [pixels], [image.image_id], OPTIONS)
                found = make_detections(seen, detector.family, size, image.image_id, OPTIONS)
                kept.put(PhotoResult(image, stamp_of(image), size, found))

    return run


def together(model: Path, images: list[ImageFile], threads: int) -> Callable[[], None]:
    """Return a function that processes several photos at a time, one per thread."""
    detector = Detector(model, threads=threads, workers=threads)

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            detect_images(detector, images, Path(folder) / "found.json", OPTIONS)

    return run


CONTENDERS = {"network": network, "one by one": one_by_one, "together": together}


def main() -> None:
    """Print milliseconds per photo, and the speed-up of "together"."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--photos", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    images, threads = find_images(given.images)[: given.photos], thread_count(given.threads)
    print(f"{threads} threads, {len(images)} photos, {given.rounds} rounds; ms per photo")
    print(f"{'model':28s}" + "".join(f"{name:>12s}" for name in CONTENDERS) + "   together / one by one")
    for model in given.models:
        runs = {name: make(model, images, threads) for name, make in CONTENDERS.items()}
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(given.rounds):
            for name, run in runs.items():
                started = time.perf_counter()
                run()
                seconds[name].append((time.perf_counter() - started) / len(images))
        ratios = [one / both for one, both in zip(seconds["one by one"], seconds["together"], strict=True)]
        numbers = "".join(f"{1000 * min(times):12.1f}" for times in seconds.values())
        print(f"{model.stem:28s}{numbers}   {statistics.median(ratios):.2f} times as fast", flush=True)


if __name__ == "__main__":
    main()
