"""Names of results that stand side by side: where they were not measured alike, each says how it was."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from probox.convention import Convention
from probox.evaluation.result import Evaluation

__all__ = ["label_results"]


def label_results(results: Mapping[str, Evaluation]) -> dict[str, Evaluation]:
    """Return the results under names that say in what they differ: convention, label threshold, measures, images.

    Names stay as they are where nothing differs.

    >>> import probox
    >>> from probox.demo import make_demo
    >>> demo = make_demo()
    >>> result = probox.evaluate(demo.truth, demo.detectors["sure"])
    >>> list(label_results({"ssd": result, "ssd-2": result.at_threshold(0.5)}))
    ['ssd (all labels)', 'ssd-2 (> 0.5)']
    """
    everyone = list(results.values())
    words: list[list[str]] = [[] for _ in everyone]
    for about in (_conventions, _thresholds, _measures, _images):
        said = about(everyone)
        if len(set(said)) > 1:
            for own, text in zip(words, said, strict=True):
                own.append(text)
    return {
        f"{name} ({', '.join(own)})" if own else name: result
        for (name, result), own in zip(results.items(), words, strict=True)
    }


def _conventions(results: list[Evaluation]) -> list[str]:
    return [result.convention.replace(label_threshold=None).describe() for result in results]


def _thresholds(results: list[Evaluation]) -> list[str]:
    def words(convention: Convention) -> str:
        if convention.fixed_threshold is not None:
            return f"> {convention.fixed_threshold:g}"
        return "all labels" if convention.label_threshold is None else "label threshold auto"

    return [words(result.convention) for result in results]


def _measures(results: list[Evaluation]) -> list[str]:
    return [" and ".join(result.measures) for result in results]


def _images(results: list[Evaluation]) -> list[str]:
    """Return how many images each has; where equally many are not the same, also from which to which."""
    ids = [result.dataset.image_ids for result in results]
    said = [f"{len(own):,} images" for own in ids]
    for n, own in enumerate(ids):
        alike = [other for m, other in enumerate(ids) if len(other) == len(own) and m != n]
        if len(own) and any(not np.array_equal(own, other) for other in alike):
            said[n] += f" from {own[0]} to {own[-1]}"
    return said
