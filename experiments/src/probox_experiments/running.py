"""Computation of the points of an experiment, with resumption of interrupted runs."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import probox
from probox import _core
from probox.convention import Convention
from probox.files.output import named_errors, sweep, write_files
from probox.measures import registry
from probox.measures.pdq.pdq_measure import PDQ
from probox.support.parallel import thread_count
from probox.tables.detections import Detections
from probox.tables.groundtruth import GroundTruth
from probox.version import __version__
from probox_experiments.claims import ResultTable, column_of

# --- Provenance: code, command, data and paper ---

PAPER = "Hall et al., Probabilistic Object Detection: Definition and Evaluation, WACV 2020, arXiv:1811.10800"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Provenance:
    """Information for reproducing numbers.

    Parameters
    ----------
    probox, code : str
        Version, and a digest of the files of both packages.
    command : str
        The command, without options that do not affect numbers, such as the output folder.
    seed : int
        Random seed; 0 for experiments without random draws.
    data : str
        Description of the data with a digest.
    paper : str
        The paper and its section.
    """

    probox: str
    code: str
    command: str
    seed: int
    data: str
    paper: str

    def to_dict(self) -> dict[str, str | int]:
        """Return the fields as in JSON and CSV files."""
        return dataclasses.asdict(self)


@functools.cache
def code_digest() -> str:
    """Return a digest of the files of probox and of the experiments."""
    packages = Path(probox.__file__).parent, Path(__file__).parent
    digest = hashlib.sha256()
    for path in [*(file for package in packages for file in sorted(package.rglob("*.py"))), Path(_core.__file__)]:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


# --- Computation of points, with resumption of interrupted runs ---

Progress = Callable[[int, int], None]

PRESETS = ("reference", "paper")
"""Default presets for claims."""


def summary_of(
    truth: GroundTruth, found: Detections, convention: Convention, measures: Sequence[str], threads: int | None
) -> dict[str, float]:
    """Return the summary of some metrics. All PDQ values of experiments come from this function."""
    from probox.evaluation.evaluate import evaluate

    return evaluate(truth, found, convention=convention, measures=measures, threads=threads).summary()


@dataclasses.dataclass(frozen=True)
class Run:
    """Options for computing the points of an experiment.

    Parameters
    ----------
    threads : int, optional
        Default: number of processors. Results do not depend on it.
    progress : callable, optional
        Called with the number of finished points and the total.
    keep : path, optional
        Folder for finished points. A run with the same folder reuses points with the same code, ground truth, seed,
        presets and settings.
    presets : sequence of str
        Presets of PDQ.
    changes : mapping, optional
        Fields of the convention to change in all presets.
    """

    threads: int | None = None
    progress: Progress | None = None
    keep: Path | None = None
    presets: Sequence[str] = PRESETS
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.conventions()  # raises for unknown names before a long run

    def conventions(self) -> dict[str, Convention]:
        """Return the presets with their conventions, including the changes."""
        return {preset: Convention.preset(preset, **self.changes) for preset in self.presets}

    def measure(
        self, truth: GroundTruth, found: Detections, *, also: Sequence[str] = (), measures: Sequence[str] | None = None
    ) -> dict[str, float]:
        """Return PDQ under every preset, and the headlines of other metrics.

        Parameters
        ----------
        truth, found : GroundTruth, Detections
            Ground truth and detections.
        also : sequence of str
            Further values of PDQ's summary under every preset: ``foreground``, ``background``, ``spatial``, ``label``,
            ``pPDQ``, ``TP``, ``FP``, ``FN``.
        measures : sequence of str, optional
            Names of other metrics. Default: mAP and LRP.

        Returns
        -------
        dict
            Columns like ``PDQ``, ``PDQ_paper``, ``foreground``, ``foreground_paper``, ``mAP``, ``moLRP``.

        Examples
        --------
        >>> from probox_experiments import SimulatedDetector, square_scene
        >>> truth = square_scene()
        >>> found = SimulatedDetector(label_probability=0.25).detect(truth)
        >>> {name: round(value, 6) for name, value in Run().measure(truth, found).items()}
        {'PDQ': 0.5, 'PDQ_paper': 0.5, 'mAP': 1.0, 'moLRP': 0.0}
        >>> Run(presets=["paper"]).measure(truth, found, also=["TP"], measures=())
        {'PDQ_paper': 0.5, 'TP_paper': 1.0}
        """
        names = registry.standard_names() if measures is None else measures
        others = [measure for measure in registry.measures_called(names) if measure is not PDQ]
        of_pdq: dict[str, float] = {}
        of_others: dict[str, float] = {}
        for preset, convention in self.conventions().items():
            wanted = [] if of_others else others  # equal under every preset
            summary = summary_of(truth, found, convention, [PDQ.name, *(m.name for m in wanted)], self.threads)
            of_pdq |= {column_of(key, preset): float(summary[key]) for key in (PDQ.headline.key, *also)}
            of_others |= {m.headline.key: float(summary[m.headline.key]) for m in wanted}
        return of_pdq | of_others

    def table(
        self,
        name: str,
        points: Sequence[Mapping[str, Any]],
        measure_point: Callable[..., Mapping[str, Any]],
        *,
        at_once: bool = False,
        **circumstances: Any,
    ) -> ResultTable:
        """Return a row per point: its settings, and the result of `measure_point(**settings)`.

        With `at_once`, points are computed in parallel threads; use it for points that need a single thread.
        `circumstances` contains all other inputs of the numbers, such as the seed.
        """
        kept = None if self.keep is None else _Kept(self.keep, name, {**self._measured_how(), **circumstances})
        known = {} if kept is None else kept.points
        keys = [json.dumps(point, sort_keys=True) for point in points]
        missing = {key: point for key, point in zip(keys, points, strict=True) if key not in known}  # each once
        with _computing(
            measure_point, list(missing.values()), thread_count(self.threads) if at_once else 1
        ) as measured:
            for done, key in enumerate(keys):
                if self.progress is not None:
                    self.progress(done, len(points))
                if key not in known:
                    known[key] = dict(next(measured))
                    if kept is not None:
                        kept.add(key, known[key])
        if self.progress is not None:
            self.progress(len(points), len(points))
        settings = list(points[0]) if points else []
        return ResultTable.from_rows(
            [{**point, **known[key]} for key, point in zip(keys, points, strict=True)], settings
        )

    def _measured_how(self) -> dict[str, Any]:
        """Return all options of this run that affect numbers."""
        made_by = {"probox": __version__, "code": code_digest(), "measures": registry.standard_names()}
        return made_by | {"presets": list(self.presets), "set": dict(self.changes)}


@contextmanager
def _computing(
    measure_point: Callable[..., Mapping[str, Any]], points: Sequence[Mapping[str, Any]], workers: int
) -> Iterator[Iterator[Mapping[str, Any]]]:
    """Give an iterator of the results of points in order; pending points are cancelled at the end."""
    if workers < 2:
        yield (measure_point(**point) for point in points)
        return
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool.map(lambda point: measure_point(**point), points)
    finally:
        pool.shutdown(cancel_futures=True)


class _Kept:
    """Finished points in a file: a line with their circumstances, then one line per point."""

    def __init__(self, folder: Path, name: str, circumstances: Mapping[str, Any]) -> None:
        first = json.dumps({"experiment": name, **circumstances}, sort_keys=True)
        self.path = folder / f"{name}-{hashlib.sha256(first.encode()).hexdigest()[:12]}.jsonl"
        self.points: dict[str, dict[str, Any]] = {}
        with named_errors(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            sweep(folder)
            text = self.path.read_bytes() if self.path.exists() else b""
        lines = text.split(b"\n")
        whole = [first.encode()]
        for line in lines[1:-1] if lines[0] == whole[0] else ():
            try:
                entry = json.loads(line)
                self.points[entry["point"]] = dict(entry["measured"])
            except (ValueError, KeyError, TypeError):
                break  # damaged from here on: computed again
            whole.append(line)
        # The last line is incomplete if the run was interrupted while writing it.
        kept = b"\n".join(whole) + b"\n"
        if kept != text:
            write_files({self.path: kept})

    def add(self, key: str, measured: Mapping[str, Any]) -> None:
        with named_errors(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"point": key, "measured": measured}) + "\n")
