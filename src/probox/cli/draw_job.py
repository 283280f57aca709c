"""What `probox draw` is to draw: which source, which images, which photos, and what is to be said of the choice."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import click

from probox.errors import InputError

__all__ = [
    "LIMIT",
    "Choice",
    "Job",
    "file_names",
    "job_of_detections",
    "job_of_evaluation",
    "photo_folder",
    "without_photo",
]

LIMIT = 50
"""So many pictures are drawn unless somebody asks for more."""


@dataclasses.dataclass(frozen=True)
class Choice:
    """Which images: given ones, the first of a ranking, or the first `limit` of all; None: no limit."""

    wanted: tuple[str, ...] = ()
    ranked: tuple[str, int] | None = None
    limit: int | None = LIMIT


@dataclasses.dataclass
class Job:
    """What to draw: a table, its images, and the photo of each."""

    source: Any
    images: list[tuple[int, str]]
    photos: dict[int, Path | None]
    sizes: dict[int, tuple[int, int]]
    heatmaps: Any
    notes: list[str]
    threshold: float | None = None
    """Of detections without ground truth."""

    def judgement(self) -> dict[str, Any]:
        """Return how detections were judged and with which numbers, for JSON; nothing if they were not."""
        convention = getattr(self.source, "convention", None)
        return {} if convention is None else {"summary": self.source.summary(), "convention": convention.to_dict()}

    def view(self, image_id: int, file_name: str) -> Any:
        """Return one image."""
        from probox.pictures.view import view_of_detections, view_of_image
        from probox.tables.detections import Detections

        if isinstance(self.source, Detections):
            return view_of_detections(self.source, image_id, self.sizes[image_id], file_name, self.threshold)
        return view_of_image(self.source, image_id, self.heatmaps)


def photo_folder(images: str | None) -> Path | None:
    """Return the folder of photos, if one was given."""
    if images is None:
        return None
    if not Path(images).is_dir():
        raise InputError("is not a folder", file=images, remedy="give the folder of photos")
    return Path(images)


def job_of_evaluation(
    evaluation: Any, threshold: float | None, found: Any, photos: Path | None, choice: Choice, *, best_threshold: bool
) -> Job:
    """Return what to draw of an evaluation, at a threshold or the best one; `found` has heatmaps, if there are any."""
    from probox.analysis.image_ranking import CHOICES, choose_images, find_images, seen_images
    from probox.files.photos import find_photo
    from probox.pictures.view import at_best_threshold

    seen = seen_images(evaluation)  # before a threshold empties some
    notes: list[str] = []
    if threshold is not None:
        evaluation = evaluation.at_threshold(threshold)
    elif best_threshold and (best := at_best_threshold(evaluation)) is not evaluation:
        notes.append(
            f"only detections above {best.convention.label_threshold:.4g} are matched and drawn: PDQ is highest there "
            f"on these images ({100 * best.pdq:.2f}, with all detections {100 * evaluation.pdq:.2f}); "
            "--label-threshold T sets a threshold, --show-above 0 draws all detections"
        )
        evaluation = best
    listed = choice.limit is None or choice.wanted or (choice.ranked and choice.ranked[0] == "missed")
    if not seen.all() and not listed:
        notes.append(
            f"{(~seen).sum():,} images without any detection were passed over: the detector seems to have seen the "
            "others only; --missed N, --image ID and --all draw them too"
        )
    if choice.wanted:
        ids = find_images(evaluation, choice.wanted)
    elif choice.ranked is not None:
        ids = choose_images(evaluation, *choice.ranked, seen=seen)
        name, n = choice.ranked
        if len(ids) < n:
            notes.append(f"fewer than {n:,} images have {CHOICES[name].split(' ', 2)[2]}: {len(ids):,}")
    else:
        every = evaluation.dataset.image_ids
        ids = _limited(every.tolist() if choice.limit is None else every[seen].tolist(), choice, notes)
    names = dict(zip(evaluation.dataset.image_ids.tolist(), evaluation.dataset.file_names, strict=True))
    shown = {image_id: find_photo(photos, image_id, names[image_id]) if photos else None for image_id in ids}
    job = Job(evaluation, [(image_id, names[image_id]) for image_id in ids], shown, {}, found, notes)
    if photos is not None:
        notes += without_photo([i for i, _ in job.images if job.photos.get(i) is None], photos)
    return job


def _limited(ids: list[int], choice: Choice, notes: list[str]) -> list[int]:
    """Return the first images, and say how many others there are."""
    if choice.limit is None or len(ids) <= choice.limit:
        return ids
    notes.append(
        f"the first {choice.limit:,} of {len(ids):,} images were drawn; --all draws them all, --limit N more, "
        "--worst N or --image ID others"
    )
    return ids[: choice.limit]


def job_of_detections(source: str, threshold: float | None, photos: Path | None, choice: Choice) -> Job:
    """Return what to draw of detections that nothing is compared with."""
    import numpy as np

    from probox.pictures.alone import read_alone

    if choice.ranked is not None and choice.ranked[0] != "crowded":
        raise click.UsageError(f"--{choice.ranked[0]} needs a truth: give --truth, or a folder of results")
    alone = read_alone(source, photos)
    table = alone.detections
    notes = list(table.notes)
    if threshold is not None:
        table = table.select(table.label_probs.max(axis=1, initial=0.0) > np.float32(threshold))
    ids, counts = np.unique(table.image_ids, return_counts=True)
    if choice.ranked is not None:
        ids = ids[np.argsort(-counts, kind="stable")[: choice.ranked[1]]]
    listed = ids.tolist()
    if choice.wanted:
        unknown = [text for text in choice.wanted if text not in {str(image_id) for image_id in listed}]
        if unknown:
            raise InputError(f"no detections in image {unknown[0]!r}", file=source, remedy="give an image id")
        listed = [int(text) for text in choice.wanted]
    elif choice.ranked is None:
        listed = _limited(listed, choice, notes)
    names = {image_id: alone.photos[image_id].name if alone.photos[image_id] else "" for image_id in listed}  # type: ignore[union-attr]
    job = Job(table, [(i, names[i]) for i in listed], alone.photos, alone.sizes, None, notes, threshold)
    if photos is not None:
        notes += without_photo([i for i, _ in job.images if job.photos.get(i) is None], photos)
    return job


def without_photo(missing: list[int], photos: Path) -> list[str]:
    """Return what to say of images whose photo is not in the folder, if there are any."""
    if not missing:
        return []
    return [f"{len(missing)} images have no photo in {photos} (the first: {missing[0]}): plain ground"]


def file_names(images: list[tuple[int, str]]) -> dict[int, str]:
    """Return a name per picture: the photo's, if it is fit for a file and no other image has it, else the id."""
    stems = {i: re.sub(r"[^\w.-]+", "_", Path(name.replace("\\", "/")).stem)[:80] for i, name in images}
    counts: dict[str, int] = {}
    for stem in stems.values():
        counts[stem.lower()] = counts.get(stem.lower(), 0) + 1
    return {i: stem if stem.strip("._") and counts[stem.lower()] == 1 else f"image-{i}" for i, stem in stems.items()}
