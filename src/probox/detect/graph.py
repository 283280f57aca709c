"""ONNX files: graphs, metadata and class names."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from probox.errors import InputError
from probox.formats.label_files import read_text
from probox.support.optional import require
from probox.support.types import Array, Ints
from probox.tables.labels import COCO_CATEGORY_IDS, COCO_CLASSES

if TYPE_CHECKING:
    import onnx


def load_model(path: Path, *, weights: bool = True) -> onnx.ModelProto:
    """Return the model of a file; without `weights`, external data files are not loaded."""
    onnx_module = require("onnx", extra="detect", purpose="reading graphs needs")
    try:
        model: onnx.ModelProto = onnx_module.load(str(path), load_external_data=weights)
    except Exception as error:  # the exception types differ between protobuf versions
        raise InputError(f"can't read this graph: {error}", file=str(path)) from None
    return model


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """Return a copy of the model with additional outputs after its own; ONNX Runtime infers their types."""
    import onnx

    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    given = {output.name for output in changed.graph.output}
    changed.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in given)
    return changed


class Graph:
    """Index of a graph's nodes and constants, used to find tensors inside it."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=0)
        self.nodes: tuple[onnx.NodeProto, ...] = tuple(model.graph.node)
        self._makers = {name: node for node in self.nodes for name in node.output}
        self._users: dict[str, list[onnx.NodeProto]] = {}
        for node in self.nodes:
            for name in node.input:
                self._users.setdefault(name, []).append(node)
        self._tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in self.nodes:
            if node.op_type == "Constant":
                for entry in node.attribute:
                    if entry.name == "value":
                        self._tensors[node.output[0]] = entry.t

    def maker(self, name: str) -> onnx.NodeProto | None:
        """Return the node that outputs a tensor."""
        return self._makers.get(name)

    def users(self, name: str) -> tuple[onnx.NodeProto, ...]:
        """Return the nodes that read a tensor."""
        return tuple(self._users.get(name, ()))

    def value(self, name: str) -> Array | None:
        """Return a constant stored in the graph; None for computed tensors and external data."""
        from onnx import TensorProto, numpy_helper

        tensor = self._tensors.get(name)
        if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
            return None
        try:
            return np.asarray(numpy_helper.to_array(tensor))
        except Exception:  # the data do not match the declared shape; ONNX Runtime reports that
            return None


def inputs_of(node: onnx.NodeProto) -> list[str]:
    """Return the tensors a node reads, including outer tensors that its subgraphs read."""
    import onnx

    names = list(node.input)
    for attribute in node.attribute:
        graphs = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else list(attribute.graphs)
        for graph in graphs:
            own = {tensor.name for tensor in graph.input} | {tensor.name for tensor in graph.initializer}
            for inner in graph.node:
                names.extend(name for name in inputs_of(inner) if name not in own)
                own.update(inner.output)
            names.extend(tensor.name for tensor in graph.output if tensor.name not in own)
    return names


def constants_of(graph: onnx.GraphProto) -> dict[str, tuple[tuple[int, ...], int] | None]:
    """Return tensors that do not depend on the input, with shape and element type where stored."""
    known: dict[str, tuple[tuple[int, ...], int] | None] = {
        tensor.name: (tuple(tensor.dims), tensor.data_type) for tensor in graph.initializer
    }
    for node in graph.node:
        if node.op_type == "Constant":
            values = [attribute.t for attribute in node.attribute if attribute.name == "value"]
            known[node.output[0]] = (tuple(values[0].dims), values[0].data_type) if values else None
        elif node.op_type.startswith("Random"):
            continue
        elif node.input and all(name in known or not name for name in inputs_of(node)):
            known.update(dict.fromkeys(node.output))
    return known


def downstream(graph: onnx.GraphProto, names: Iterable[str]) -> set[str]:
    """Return these tensors and all tensors computed from them."""
    reached = set(names)
    for node in graph.node:
        if not reached.isdisjoint(inputs_of(node)):
            reached.update(node.output)
    return reached


MOST_CHARACTERS = 1 << 18
"""Length limit of a metadata entry: Python uses up to 500 bytes of memory per character of a literal."""
LARGEST_SIDE = 1 << 13
"""Limit of the input's width and height in pixels: one image of this size uses 0.8 GB."""
_ITEM = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\w.-]+)"""
_PAIR = rf"\s*(?:\d+\s*:\s*)?{_ITEM}\s*"
_FLAT = re.compile(rf"\s*(?:{_ITEM}|[\[({{](?:{_PAIR},)*(?:{_PAIR}|\s*)[\])}}])\s*", re.DOTALL)
"""A literal, or a flat list or dictionary of literals: deep nesting may exhaust the parser's stack."""


@dataclasses.dataclass(frozen=True)
class Metadata:
    """Metadata of an export; None for missing or unreadable entries."""

    names: tuple[str, ...] | None = None
    size: tuple[int, int] | None = None
    """Width and height of the network input."""
    task: str | None = None
    stride: int | None = None
    head: str | None = None
    """Class name of the last module, for example ``RTDETRDecoder``."""


def read_metadata(entries: Mapping[str, str]) -> Metadata:
    """Return an export's entries ``names``, ``imgsz``, ``task``, ``stride`` and ``head``.

    ``character`` lists one name per line (RapidAI's exports of Paddle models). An entry above the limits is refused.

    >>> read_metadata({"names": "{0: 'cup', 1: 'dog'}", "imgsz": "[480, 640]", "task": "detect", "stride": "32"})
    Metadata(names=('cup', 'dog'), size=(640, 480), task='detect', stride=32, head=None)
    """
    for name in ("names", "character", "imgsz", "task", "stride", "head"):
        if len(entries.get(name, "")) > MOST_CHARACTERS:
            raise _make_limit_error(name, f"{MOST_CHARACTERS:,} characters", f"{len(entries[name]):,}")
    return Metadata(
        parse_names(entries.get("names", ""))
        or _names([line for line in entries.get("character", "").splitlines() if line]),
        _size(_literal(entries.get("imgsz", ""))),
        entries.get("task") or None,
        _whole(_literal(entries.get("stride", ""))),
        entries.get("head") or None,
    )


def parse_names(text: str) -> tuple[str, ...] | None:
    """Return the class names of the entry ``names``, a list or a dictionary by number; None if invalid.

    >>> parse_names("{0: 'cup', 1: 'dog'}"), parse_names("a cup")
    (('cup', 'dog'), None)
    """
    return _names(_literal(text))


def _make_limit_error(name: str, most: str, got: str) -> InputError:
    return InputError(
        f"expected at most {most}, but got {got}",
        entry=f"metadata {name}",
        remedy="export the model again, or remove this entry from metadata_props",
    )


def _literal(text: str) -> Any:
    if len(text) > MOST_CHARACTERS or not _FLAT.fullmatch(text):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escape sequences in names
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _names(value: Any) -> tuple[str, ...] | None:
    numbered = dict(enumerate(value)) if isinstance(value, list | tuple) else value
    if not isinstance(numbered, dict) or set(numbered) != set(range(len(numbered))) or not numbered:
        return None
    try:
        names = tuple(str(numbered[number]) for number in range(len(numbered)))
        "".join(names).encode()
    except ValueError:  # an integer above Python's digit limit, or a lone surrogate
        return None
    return names


def _size(value: Any) -> tuple[int, int] | None:
    sides = [value, value] if isinstance(value, int) else value
    if not isinstance(sides, list | tuple) or not 1 <= len(sides) <= 2 or not all(_whole(side) for side in sides):
        return None
    if max(sides) > LARGEST_SIDE:
        raise _make_limit_error("imgsz", f"{LARGEST_SIDE:,} px", f"{max(sides)!s:.20}")
    return int(sides[-1]), int(sides[0])


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


@dataclasses.dataclass(frozen=True)
class ScoreColumns:
    """Class names of a detector's score columns."""

    names: tuple[str, ...]
    take: Ints

    def select(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the score columns (last axis) of the named classes."""
        if scores.shape[-1] == len(self.take):  # no copy needed if all columns are kept
            return scores
        return np.ascontiguousarray(scores[..., self.take])


def name_columns(columns: int, classes: Sequence[str] | None = None, *, background: bool = True) -> ScoreColumns:
    """Return the names of a detector's score columns.

    Without `classes`, 80 columns are COCO's, 81 start with a background, and 90 and 91 are COCO's category ids (from 1,
    from 0). With `classes`, one column more than names means a background first. Heads without `background` do not
    allow this: every column is a class, and a missing name would shift all others.
    """
    if classes is not None:
        # Raise for invalid names instead of falling back to COCO's.
        twice = [name for name, count in Counter(classes).items() if count > 1]
        if twice:
            raise InputError(
                f"several classes have the name {twice[0]!r:.60}",
                remedy="give unique class names in the order of the model's outputs",
            )
        if not (background and columns == len(classes) + 1):
            expect_names(classes, columns)
        return ScoreColumns(tuple(classes), np.arange(len(classes)) + (columns - len(classes)))
    ids = np.array(COCO_CATEGORY_IDS)
    coco = {80: np.arange(80), 81: np.arange(1, 81), 90: ids - 1, 91: ids}
    if columns not in coco or (columns == 81 and not background):
        raise InputError(
            f"the model has {columns} classes, which are not COCO's",
            remedy="give the names of its classes in the order of its outputs ({option:classes})",
        )
    return ScoreColumns(COCO_CLASSES, coco[columns])


def expect_names(names: Sequence[str], columns: int, outputs: str = "") -> None:
    """Raise unless the number of names equals the number of score columns; `outputs` names their tensors."""
    if len(names) != columns:
        where = f" (outputs {outputs})" if outputs else ""
        raise InputError(
            f"expected {columns} class names for the model's {columns} scores{where}, but got {len(names)}",
            remedy="give the names of its classes in the order of its outputs ({option:classes})",
        )


def read_classes(path: str | Path) -> tuple[str, ...]:
    """Return class names from a file: one per line, or a JSON list of names."""
    text = read_text(path)
    if text.lstrip().startswith("["):
        try:
            names = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"expected a JSON list of names ({error})", file=str(path)) from None
        if not all(isinstance(name, str) for name in names):
            raise InputError("expected a JSON list of names", file=str(path))
    else:
        names = [line.strip() for line in text.splitlines() if line.strip()]
    if not names:
        raise InputError("expected class names, one per line", file=str(path))
    return tuple(names)
