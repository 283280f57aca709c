"""What is tried: for each reader, how its inputs are made and what is done with them."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from unittest.mock import patch

import numpy as np

import probox
from probox import Detections, Evaluation, GroundTruth, InputError
from probox.analysis.validation import validate
from probox.calibration import Calibration
from probox.files.photos import MAX_SIDE, image_size
from probox.formats import format as formats
from probox.formats.yolo_places import read_data_yaml

from . import seeds
from .bindings import make_call, use_call
from .checks import check_detections, check_error, check_evaluation, check_summary, check_truth
from .detectors import (
    interrupted_run,
    metadata_entries,
    onnx_file,
    use_interrupted_run,
    use_metadata,
    use_onnx,
)
from .hostile import evaluation_folder, gzipped, mutated_npy, mutated_parquet, mutated_png, parts_folder
from .labels import LABEL_SEEDS, data_yaml, image_header, label_folder
from .mutate import dump, mutate_bytes, mutate_json, parse

__all__ = ["ALL_TARGETS", "TARGETS", "Files", "Target", "try_input"]

Files = dict[str, bytes]

JSON_SEEDS = {name: json.dumps(value).encode() for name, value in (
    ("truth", seeds.TRUTH), ("results", seeds.RESULTS), ("rvc1", seeds.RVC1), ("heatmaps", seeds.RVC1_HEATMAPS),
    ("cls-prob", seeds.CLS_PROB), ("labels", seeds.LABELS), ("photos", seeds.PHOTOS),
    ("calibration", seeds.CALIBRATION), ("calibrated-classes", seeds.CALIBRATED_CLASSES),
    ("calibrated-learned", seeds.CALIBRATED_LEARNED),
)}  # fmt: skip
_PARSED = {name: parse(text) for name, text in JSON_SEEDS.items()}


@dataclasses.dataclass(frozen=True)
class Target:
    """A reader: what makes files for it, and what reads them in a folder.

    `cost` is about how many milliseconds an input takes: cheap targets are tried more often. Where a caller says how
    large a result is, it `may_exhaust` memory: under ASan, which throws no `std::bad_alloc`, the process ends.
    """

    make: Callable[[Random], Files]
    use: Callable[[Path], None]
    cost: float = 1.0
    may_exhaust: bool = False


def try_input(target: Target, folder: Path) -> None:
    """Read the files in a folder; anything but a plausible table or a proper `InputError` is raised."""
    try:
        target.use(folder)
    except InputError as error:
        check_error(error, str(folder))


# --- how inputs are made ---


def _mutated(rng: Random, seed: str) -> bytes:
    """Return a JSON file with a changed structure, changed bytes, or both."""
    text = JSON_SEEDS[seed]
    if rng.random() < 0.7:
        text = dump(mutate_json(rng, _PARSED[seed]))
    if rng.random() < 0.4:
        text = mutate_bytes(rng, text, list(JSON_SEEDS.values()))
    return text


def _one_file(*seed: str) -> Callable[[Random], Files]:
    return lambda rng: {"file": _mutated(rng, seed[0] if len(seed) == 1 else rng.choice(seed))}


def _gzip(rng: Random) -> Files:
    seed = rng.choice(("truth", "results", "rvc1"))
    text = JSON_SEEDS[seed] if rng.random() < 0.7 else _mutated(rng, seed)
    return {f"{seed}.gz": gzipped(rng, text)}


def _heatmaps(rng: Random) -> Files:
    arrays = seeds.heatmaps()
    files = {name: seeds.npy(array) for name, array in arrays.items()}
    if rng.random() < 0.8:
        name = rng.choice(list(arrays))
        files[name] = mutated_npy(rng, arrays[name])
    changed = rng.random() < 0.3
    return files | {"file": _mutated(rng, "heatmaps") if changed else JSON_SEEDS["heatmaps"]}


def _challenge(rng: Random) -> Files:
    files = seeds.challenge_files()
    if rng.random() < 0.5:
        files["seq/labels.json"] = _mutated(rng, "labels")
    if rng.random() < 0.7:
        name = rng.choice(("seq/000000.png", "seq/000001.png"))
        files[name] = mutated_png(rng, files[name])
    return files


def _challenge_detections(rng: Random) -> Files:
    return {"seq.json": _mutated(rng, "photos")}


def _parquet(*names: str) -> Callable[[Random], Files]:
    return lambda rng: {"file": mutated_parquet(rng, rng.choice(names))}


def _parquet_set(rng: Random) -> Files:
    """Return the shards of a set, one of them changed or missing, or a shard too many."""
    files = {f"set/{name}": data for name, data in seeds.parquet_files().items() if name.endswith(".parquet")}
    name = rng.choice(sorted(files))
    kind = rng.randrange(4)
    if kind == 0:
        del files[name]
    elif kind == 1:
        files[name] = mutated_parquet(rng, name.removeprefix("set/"))
    elif kind == 2:
        data = bytearray(files[name])
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        files[name] = bytes(data)
    else:
        files[f"set/{rng.choice(('more', 'camera=1/more', '_more'))}.parquet"] = files.pop(name)
    return files


def _pair(rng: Random) -> Files:
    """Return a file of ground truth and one of detections, one of them or both changed."""
    truth, found = JSON_SEEDS["truth"], rng.choice((JSON_SEEDS["results"], JSON_SEEDS["rvc1"]))
    kind = rng.randrange(8)
    if kind in (0, 1, 2):
        found = _mutated(rng, rng.choice(("results", "rvc1")))
    if kind in (2, 3):
        truth = _mutated(rng, "truth")
    if kind in (4, 5):
        found = mutated_parquet(rng, rng.choice(("detections", "plain")))
    if kind in (5, 6):
        truth = mutated_parquet(rng, "truth")
    return {"truth": truth, "found": gzipped(rng, found) if kind == 7 else found}


# --- what is done with them ---


def _use_truth(path: Path) -> None:
    truth = probox.read_truth(path)
    check_truth(truth)
    check_evaluation(probox.evaluate(truth, seeds.detections(), threads=1))


def _use_detections(path: Path, truth: GroundTruth | None = None) -> None:
    known = truth or seeds.truth()
    found = _read_in_pieces_too(path, known)
    check_detections(found)
    measures = None if truth is None else ("pdq",)  # the challenge's 31 classes would take most of the time
    check_evaluation(probox.evaluate(known, found, threads=1, measures=measures))


def _read_in_pieces_too(path: Path, truth: GroundTruth) -> Detections:
    """Return detections, or raise why there are none, after a look whether two threads in small pieces do the same."""
    with patch.object(formats, "LEAST_PIECE", 16), patch.object(formats, "thread_count", lambda threads: 2):
        pieces = _table_or_error(path, truth)
    whole = _table_or_error(path, truth)
    if isinstance(whole, InputError):
        assert str(pieces) == str(whole), f"in pieces it says {pieces}, as a whole {whole}"
        raise whole
    assert isinstance(pieces, Detections), f"in pieces it says {pieces}, as a whole nothing"
    assert pieces.notes == whole.notes, "other notes in pieces"
    for name, column in whole.columns().items():
        if isinstance(column, np.ndarray):
            assert pieces.columns()[name].tobytes() == column.tobytes(), f"other {name} in pieces"
    return whole


def _table_or_error(path: Path, truth: GroundTruth) -> Detections | InputError:
    try:
        return probox.read_detections(path, truth)
    except InputError as error:
        return error


def _use_gzip(folder: Path) -> None:
    (path,) = folder.iterdir()
    (_use_truth if path.name == "truth.gz" else _use_detections)(path)


def _use_challenge(folder: Path) -> None:
    truth = probox.read_truth(folder)
    check_truth(truth)
    check_evaluation(probox.evaluate(truth, seeds.detections(), threads=1, measures=("pdq",)))


def _use_challenge_detections(folder: Path) -> None:
    _use_detections(folder, seeds.challenge_truth())


def _use_evaluation(folder: Path) -> None:
    check_evaluation(Evaluation.load(folder), always=True)


def _use_parts(folder: Path) -> None:
    parts = [probox.load(folder / "1"), probox.load(folder / "2")]
    try:
        whole = probox.merge(parts)
    except InputError as error:
        check_error(error)  # about two folders: it names parts
        return
    if whole.kept is None:
        check_evaluation(whole)
    else:
        check_summary(whole.summary())
        assert str(whole)


def _use_image(path: Path) -> None:
    width, height = image_size(path)
    assert 0 < width <= MAX_SIDE
    assert 0 < height <= MAX_SIDE


def _use_data_yaml(folder: Path) -> None:
    said = read_data_yaml(folder / "data.yaml")
    assert said.classes is None or all(isinstance(name, str) for name in said.classes)
    assert all(isinstance(path, str) for paths in said.splits.values() for path in paths)


def _use_parquet(path: Path) -> None:
    _use_detections(path)
    whole = probox.evaluate(seeds.truth(), probox.read_detections(path, seeds.truth()), threads=1)
    parts = probox.evaluate(seeds.truth(), path, threads=1)
    assert str(whole.summary()) == str(parts.summary()), "part by part gives other numbers"


def _use_labels(folder: Path) -> None:
    """Raise unless tables are plausible, and `validate` finds errors exactly where reading fails."""
    truth, found = (next(iter((folder / name).glob("*.csv")), folder / name) for name in ("truth", "found"))
    truth = folder / "truth" / "data.yaml" if (folder / "truth" / "data.yaml").exists() else truth
    truth = folder / "truth" / "boxes.csv" if (folder / "truth" / "boxes.csv").exists() else truth
    table, detections, problem = _compare(folder, truth, found)
    if table is not None:
        check_truth(table)
    if table is None or detections is None:
        assert problem is not None
        raise problem
    check_detections(detections)
    check_evaluation(probox.evaluate(table, detections, threads=1, measures=("pdq",)))


def _use_pair(folder: Path) -> None:
    """Raise unless `validate` finds errors exactly where reading fails."""
    _compare(folder, folder / "truth", folder / "found")


def _compare(folder: Path, truth: Path, found: Path) -> tuple[GroundTruth | None, Detections | None, InputError | None]:
    """Return the tables that can be read, and why the other cannot."""
    report = validate(truth, found)
    assert json.dumps(report.to_dict())
    for finding in report.findings:
        for example in finding.examples:
            check_error(example, str(folder))
    table: GroundTruth | None = None
    detections: Detections | None = None
    problem: InputError | None = None
    try:
        table = probox.read_truth(truth)
        detections = probox.read_detections(found, table)
    except InputError as error:
        problem = error
    said = f"validate says {'fine' if report.ok else 'wrong'}, reading says {problem or 'fine'}"
    assert report.ok == (problem is None), said
    return table, detections, problem


def _use_deed(folder: Path) -> None:
    """Do what the file says, to see whether the watcher notices."""
    deed = (folder / "file").read_bytes()
    if deed == b"abort":
        os.abort()
    elif deed == b"spin":
        while True:
            pass
    elif deed == b"gorge":
        assert len(b"x" * (600 << 20))
    elif deed == b"ask":
        bytearray(1 << 40)
    elif deed == b"fail":
        raise KeyError("odd")
    elif deed == b"mutter":
        raise InputError("something is wrong")
    elif deed == b"warn":
        warnings.warn("odd", stacklevel=1)


def _use_calibration(path: Path) -> None:
    calibration = Calibration.load(path)
    assert Calibration.from_json(calibration.to_json()) == calibration
    check_detections(calibration.apply(seeds.detections()))


DEEDS = (b"", b"abort", b"spin", b"gorge", b"ask", b"fail", b"mutter", b"warn")


def _in_file(use: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda folder: use(folder / "file")


TARGETS: dict[str, Target] = {
    "coco-truth": Target(_one_file("truth"), _in_file(_use_truth)),
    "coco-results": Target(_one_file("results", "results", "cls-prob"), _in_file(_use_detections)),
    "rvc1": Target(_one_file("rvc1"), _in_file(_use_detections)),
    "rvc1-heatmaps": Target(_heatmaps, _in_file(_use_detections), cost=2.5),
    "challenge-truth": Target(_challenge, _use_challenge),
    "challenge-detections": Target(_challenge_detections, _use_challenge_detections, cost=1.5),
    "gzip": Target(_gzip, _use_gzip),
    "results": Target(evaluation_folder, _use_evaluation, cost=2.5),
    "parts": Target(parts_folder, _use_parts, cost=3),
    "image-size": Target(image_header, _in_file(_use_image), cost=0.5),
    "data-yaml": Target(data_yaml, _use_data_yaml, cost=0.5),
    "onnx-metadata": Target(metadata_entries, _in_file(use_metadata), cost=0.5),
    "calibration": Target(
        _one_file("calibration", "calibrated-classes", "calibrated-learned"), _in_file(_use_calibration), cost=0.5
    ),
    "validate": Target(_pair, _use_pair, cost=7),
    "bindings": Target(make_call, _in_file(use_call), cost=0.5, may_exhaust=True),
    **{name: Target(partial(label_folder, name), _use_labels, cost=4) for name in LABEL_SEEDS},
}
with contextlib.suppress(InputError):
    from probox.formats.parquet.shards import pyarrow

    pyarrow()
    TARGETS["parquet-truth"] = Target(_parquet("truth"), _in_file(_use_truth), cost=2)
    TARGETS["parquet-set"] = Target(_parquet_set, lambda folder: _use_parquet(folder / "set"), cost=6)
    TARGETS["parquet-detections"] = Target(_parquet("detections", "plain"), _in_file(_use_parquet), cost=3)

if importlib.util.find_spec("PIL"):
    TARGETS["detect-partial"] = Target(interrupted_run, use_interrupted_run, cost=7)
if importlib.util.find_spec("onnx") and importlib.util.find_spec("onnxruntime"):
    TARGETS["onnx"] = Target(onnx_file, use_onnx, cost=1.5)

ALL_TARGETS = TARGETS | {"deeds": Target(lambda rng: {"file": rng.choice(DEEDS)}, _use_deed)}
"""The last one tests the watcher: it does what no reader may."""
