"""Boxes that make sense when they are read in another way: another layout, scale, order or direction of coordinates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from probox.evaluation.oddities.columns import Columns, Floats, Oddity
from probox.evaluation.oddities.overlaps import Sample

__all__ = ["check_readings"]

RIGHT_ENOUGH = 0.7
"""Where the surest detection of so many images overlaps an object, no other reading is tried."""
MIN_OBJECTS = 5
"""Objects that another reading must find: fewer may be chance."""
TIMES_BETTER, SHARE_BETTER = 2.0, 0.15
"""Another reading must find so many times as many objects, and so much more of all of them."""
HALF_RIGHT, RIGHT_BETTER = 0.5, 0.3
"""Or: the surest detection is right in fewer images than this share, and by another reading in so much more of them."""
HARDLY_RIGHT, MIN_IMAGES = 0.12, 20
"""Below this share, in at least so many images, boxes have nothing to do with the objects."""

INPUTS = (224, 256, 300, 320, 384, 416, 512, 608, 640, 768, 800, 1024, 1280)
"""Sides of detectors' inputs, in pixels."""

Reading = tuple[str, str, str, Floats]
"""A kind, what the boxes look like, the remedy, and the boxes of a sample's pairs when they are read that way."""


def check_readings(columns: Columns, sample: Sample) -> list[Oddity]:
    """Say if another reading of the boxes overlaps the objects far better, or if they overlap hardly any."""
    overlaps = sample.overlaps()
    right, images = sample.surest_right(overlaps)
    if right >= RIGHT_ENOUGH or not images:
        return []
    as_is = best = sample.found(overlaps)
    chosen = None
    few = right < HALF_RIGHT and images >= MIN_IMAGES
    # No reading can find twice as many objects where more than half are found as they stand.
    for reading in _readings(columns, sample) if few or TIMES_BETTER * as_is <= 1.0 else ():
        read = sample.overlaps(reading[3])
        found = sample.found(read)
        if found > best:
            best, chosen, better = found, reading, sample.surest_right(read)[0]
    if chosen is not None:
        kind, looks, remedy, _ = chosen
        enough = best * len(sample.objects) >= MIN_OBJECTS
        if enough and best >= TIMES_BETTER * as_is and best - as_is >= SHARE_BETTER:
            share = f"{best:.0%} of the objects are overlapped by half, as they stand {as_is:.0%}"
            return [Oddity(kind, f"{looks}: read that way, {share}", remedy)]
        if few and better - right >= RIGHT_BETTER:  # above a high label threshold detections overlap few objects
            share = f"{better:.0%} of the images, as they stand in {right:.0%}"
            text = f"{looks}: read that way, the detection with the highest score overlaps an object by half in {share}"
            return [Oddity(kind, text, remedy)]
    if right < HARDLY_RIGHT and images >= MIN_IMAGES:
        text = f"the surest detection overlaps an object by half in only {right:.0%} of the images, whatever its class"
        return [Oddity("boxes far from objects", text, "check the scale and layout of boxes, and the order of images")]
    return []


def _readings(columns: Columns, sample: Sample) -> Iterator[Reading]:
    box = columns.boxes[sample.detection]
    shape = columns.shapes[columns.image_rows[sample.detection]]
    low, high = box[:, :2], box[:, 2:]
    size = high - low
    yield (
        "corners written as width and height",
        "boxes look like [x1, y1, x2, y2] where [x, y, width, height] is expected",
        "write x2 - x1 and y2 - y1 as width and height",
        np.concatenate([low, size], axis=1),
    )
    yield (
        "width and height written as corners",
        "boxes look like [x, y, width, height] where [x1, y1, x2, y2] is expected",
        "write x + width and y + height as x2 and y2",
        np.concatenate([low, low + high], axis=1),
    )
    yield (
        "centres written as corners",
        "boxes look as if their centre stood in place of the top-left corner",
        "subtract half the width and height from x and y",
        np.concatenate([low - size / 2, high - size / 2], axis=1),
    )
    mirror = np.concatenate([shape - high, shape - low], axis=1)
    for name, end, places in (("left to right", "width - x2", [0, 2]), ("upside down", "height - y2", [1, 3])):
        mirrored = box.copy()
        mirrored[:, places] = mirror[:, places]
        remedy = f"give boxes of the image as it is stored: replace {end[-2]}1 by {end} and {end[-2]}2 by {end[:-1]}1"
        yield "boxes mirrored", f"boxes look mirrored {name}", remedy, mirrored
    yield "axes swapped", "boxes look as if y came before x", "write x before y", box[:, [1, 0, 3, 2]]
    yield (
        "normalised boxes",
        "boxes look like fractions of the image's width and height",
        "multiply them by width and height",
        box * np.tile(shape, 2),
    )
    yield (
        "normalised corners written as width and height",
        "boxes look like [x1, y1, x2, y2] in fractions of the image where [x, y, width, height] in pixels is expected",
        "multiply by width and height, and write x2 - x1 and y2 - y1 as width and height",
        np.concatenate([low, size], axis=1) * np.tile(shape, 2),
    )
    for side in INPUTS:
        yield from _scaled_back(box, shape, side)


def _scaled_back(box: Floats, shape: Floats, side: int) -> Iterator[Reading]:
    """Yield boxes of a detector's square input brought back to the image: stretched, or padded in two ways."""
    kind = "boxes in the detector's pixels"
    looks = f"boxes look like pixels of a detector's input of {side} x {side}"
    remedy = "scale them back to the image's width and height"
    yield kind, looks, remedy, box * np.tile(shape / side, 2)
    longer = shape.max(axis=1, keepdims=True)
    remedy = f"multiply by the image's longer side and divide by {side}"
    yield kind, f"{looks}, padded at one end", remedy, box * (longer / side)
    padding = np.tile((longer - shape) / 2, 2)
    remedy = f"{remedy}, then subtract the padding"
    yield kind, f"{looks}, padded at both ends", remedy, box * (longer / side) - padding
