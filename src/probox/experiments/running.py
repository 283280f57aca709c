"""Measuring the points of an experiment one after the other, and going on where a run was stopped."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from probox.experiments.table import PDQ_PAPER, ResultTable, measured_columns
from probox.files.output import write_files
from probox.files.staging import named_errors
from probox.support.parallel import thread_count
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.version import __version__

__all__ = ["Run", "measure", "pdq"]

Progress = Callable[[int, int], None]


def measure(truth: GroundTruth, found: Detections, *, threads: int | None = None) -> dict[str, float]:
    """Return the number of every measure, and PDQ under the preset `paper` as well.

    Examples
    --------
    >>> from probox.experiments import SimulatedDetector, square_scene
    >>> truth = square_scene()
    >>> measured = measure(truth, SimulatedDetector(label_probability=0.25).detect(truth))
    >>> round(measured["PDQ"], 6), round(measured["PDQ_paper"], 6), round(measured["mAP"], 6)
    (0.5, 0.5, 1.0)
    """
    from probox.evaluation.run import evaluate

    summary = evaluate(truth, found, threads=threads).summary()
    summary[PDQ_PAPER] = pdq(truth, found, convention="paper", threads=threads)
    return {name: summary[name] for name in measured_columns()}


def pdq(truth: GroundTruth, found: Detections, *, convention: str = "reference", threads: int | None = None) -> float:
    """Return PDQ alone."""
    from probox.evaluation.run import evaluate

    return evaluate(truth, found, convention=convention, measures=("pdq",), threads=threads).pdq


@dataclasses.dataclass(frozen=True)
class Run:
    """How the points of an experiment are measured.

    Parameters
    ----------
    threads : int, optional
        Default: as many as there are processors. No number depends on it.
    progress : callable, optional
        Called with the numbers of points done and in all.
    keep : path, optional
        A folder that keeps every finished point. A run with the same folder measures only what is not there yet
        under the same circumstances: the same truth, seed, measures and version.
    """

    threads: int | None = None
    progress: Progress | None = None
    keep: Path | None = None

    def table(
        self,
        name: str,
        points: Sequence[Mapping[str, Any]],
        measure_point: Callable[..., Mapping[str, Any]],
        *,
        at_once: bool = False,
        **circumstances: Any,
    ) -> ResultTable:
        """Return a row per point: its settings, and what `measure_point(**settings)` says.

        With `at_once`, as many points are measured at the same time as there are threads, for those that use only one.
        `circumstances` is everything else that the numbers depend on, such as the seed.
        """
        kept = None if self.keep is None else _Kept(self.keep, name, circumstances)
        known = {} if kept is None else kept.points
        keys = [json.dumps(point, sort_keys=True) for point in points]
        missing = {key: point for key, point in zip(keys, points, strict=True) if key not in known}  # each once
        with _measured(measure_point, list(missing.values()), thread_count(self.threads) if at_once else 1) as measured:
            for done, key in enumerate(keys):
                if self.progress is not None:
                    self.progress(done, len(points))
                if key not in known:
                    known[key] = dict(next(measured))
                    if kept is not None:
                        kept.add(key, known[key])
        if self.progress is not None:
            self.progress(len(points), len(points))
        return ResultTable.from_rows([{**point, **known[key]} for key, point in zip(keys, points, strict=True)])


@contextmanager
def _measured(
    measure_point: Callable[..., Mapping[str, Any]], points: Sequence[Mapping[str, Any]], workers: int
) -> Iterator[Iterator[Mapping[str, Any]]]:
    """Give an iterator of what is measured at points, in their order; what has not begun at the end never does."""
    if workers < 2:
        yield (measure_point(**point) for point in points)
        return
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool.map(lambda point: measure_point(**point), points)
    finally:
        pool.shutdown(cancel_futures=True)


class _Kept:
    """Finished points in a file: a line that says what they belong to, then a line each."""

    def __init__(self, folder: Path, name: str, circumstances: Mapping[str, Any]) -> None:
        made_by = {"experiment": name, "probox": __version__, "measures": measured_columns()}
        first = json.dumps({**made_by, **circumstances}, sort_keys=True)
        self.path = folder / f"{name}-{hashlib.sha256(first.encode()).hexdigest()[:12]}.jsonl"
        self.points: dict[str, dict[str, Any]] = {}
        with named_errors(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            text = self.path.read_bytes() if self.path.exists() else b""
        lines = text.split(b"\n")
        whole = [first.encode()]
        for line in lines[1:-1] if lines[0] == whole[0] else ():
            try:
                entry = json.loads(line)
                self.points[entry["point"]] = dict(entry["measured"])
            except (ValueError, KeyError, TypeError):
                break  # damaged from here on: measured again
            whole.append(line)
        # The last line may have no end: then the run was stopped while it was written.
        kept = b"\n".join(whole) + b"\n"
        if kept != text:
            write_files({self.path: kept})

    def add(self, key: str, measured: Mapping[str, Any]) -> None:
        with named_errors(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"point": key, "measured": measured}) + "\n")
