"""Run a detector's graph with ONNX Runtime: images in, candidates out, with or without dropout masks."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from probox.detect.candidates import Candidates, Passes, Pixels, Placement
from probox.detect.dropout import Dropout, MaskInput, draw_mask, insert_dropout, split_masked
from probox.detect.families import Family, Signature, Tensor, choose_family
from probox.detect.families.base import Plausibility
from probox.detect.graph import Graph, load_model, read_metadata, with_outputs
from probox.errors import InputError
from probox.files.reading import open_regular
from probox.support.optional import require
from probox.support.parallel import thread_count
from probox.support.types import Array

if TYPE_CHECKING:
    import onnx
    import onnxruntime

Feeds = dict[str, Array]


class MaskedGraph:
    """A graph with dropout masks, in two parts: the part before all masks runs once per image.

    `open_graph` creates a session from a graph's bytes. `run` takes a session, output names and inputs.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        dropout: Dropout,
        *,
        open_graph: Callable[[bytes], Any],
        run: Callable[[Any, Sequence[str], Feeds], list[Array]],
    ) -> None:
        self.model, self.masks = insert_dropout(model, dropout)
        self._seed = dropout.seed
        self._run = run
        before, after, between = split_masked(self.model, [mask.name for mask in self.masks])
        self._before: Any = None
        if before.graph.output:
            self._before = open_graph(before.SerializeToString())
            _declare_inputs(after, between, self._before, {mask.name for mask in self.masks})
        self._after = open_graph(after.SerializeToString())
        self._wanted = {tensor.name for tensor in self._after.get_inputs()}

    @property
    def layers(self) -> tuple[str, ...]:
        """Return the names of the masked layers."""
        return tuple(mask.layer for mask in self.masks)

    @property
    def description(self) -> str:
        """Return a text that identifies the masks."""
        return f"{[(mask.layer, mask.rate, mask.by_channel) for mask in self.masks]} {self._seed}"

    def sample(self, feeds: Feeds, outputs: Sequence[str], passes: int, image_id: int) -> Iterator[list[Array]]:
        """Yield the outputs for one image: first without masks, then for each pass with masks."""
        fixed = self._run_before(feeds)
        learnt = [mask for mask in self.masks if mask.shape_output is not None]
        names = [*outputs, *(str(mask.shape_output) for mask in learnt)]
        # A mask of one number broadcasts to any input, so the pass without masks can report the shapes of the others.
        ones = {mask.name: np.ones(mask.shape or (1,) * (mask.axes or 1), mask.dtype) for mask in self.masks}
        plain = self._run(self._after, names, {**fixed, **ones})
        yield plain[: len(outputs)]
        shapes = {
            mask.name: tuple(int(size) for size in shape)
            for mask, shape in zip(learnt, plain[len(outputs) :], strict=True)
        }
        for number in range(passes):
            drawn = self._draw(shapes, image_id, number)
            try:
                found = self._run(self._after, names, {**fixed, **drawn})
            except InputError as error:
                if not learnt:
                    raise
                # The pass without masks ran. With masks, input shapes may depend on the masked values.
                raise InputError(error.problem, file=error.file, image=image_id, remedy="mask channels") from None
            for mask, shape in zip(learnt, found[len(outputs) :], strict=True):
                if shapes[mask.name] != tuple(shape):
                    raise InputError(
                        f"the input of layer {mask.layer} has a different shape in each pass and cannot be masked",
                        image=image_id,
                        remedy="mask channels",
                    )
            yield found[: len(outputs)]

    def _run_before(self, feeds: Feeds) -> Feeds:
        if self._before is None:
            return feeds
        names = [output.name for output in self._before.get_outputs()]
        given = {tensor.name for tensor in self._before.get_inputs()}
        made = self._run(self._before, names, {name: value for name, value in feeds.items() if name in given})
        both = {**feeds, **dict(zip(names, made, strict=True))}
        return {name: value for name, value in both.items() if name in self._wanted}

    def _draw(self, shapes: dict[str, tuple[int, ...]], image_id: int, number: int) -> Feeds:
        drawn: Feeds = {}
        by_key: dict[tuple[str, tuple[int, ...]], Array] = {}
        for mask in self.masks:
            shape = mask.shape or _broadcast(shapes[mask.name], mask)
            if (mask.key, shape) not in by_key:
                by_key[mask.key, shape] = draw_mask(
                    shape, mask.rate, mask.dtype, seed=self._seed, image_id=image_id, number=number, layer=mask.key
                )
            drawn[mask.name] = by_key[mask.key, shape]
        return drawn


def _broadcast(shape: tuple[int, ...], mask: MaskInput) -> tuple[int, ...]:
    """Return the shape of a mask for an input of this shape: one number per element or per channel."""
    if not mask.by_channel:
        return shape
    axis = 1 if len(shape) > 3 else len(shape) - 1  # feature maps have channels first, token features last
    return tuple(size if at == axis else 1 for at, size in enumerate(shape))


def _declare_inputs(after: onnx.ModelProto, between: Sequence[str], before: Any, masks: set[str]) -> None:
    """Let the second part take what the first gives, the inputs of the graph that it reads, and masks."""
    from onnx import TensorProto, helper

    types = {f"tensor({name.lower()})": number for name, number in TensorProto.DataType.items()}
    weights = {tensor.name for tensor in after.graph.initializer}
    kept = [tensor for tensor in after.graph.input if tensor.name in masks | weights | set(between)]
    given = before.get_outputs()
    unknown = [tensor for tensor in given if tensor.type not in types]
    if unknown:
        raise InputError(
            f"{unknown[0].name} of the masked layers has type {unknown[0].type}",
            remedy="mask other layers of this graph",
        )
    new = [helper.make_tensor_value_info(tensor.name, types[tensor.type], None) for tensor in given]
    del after.graph.input[:]
    after.graph.input.extend(kept + new)


_NUMPY_TYPES = {
    "tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64, "tensor(uint8)": np.uint8
}  # fmt: skip
"""Element types of an image input; other inputs get the family's type."""
ALIKE = 1e-3
"""Relative tolerance of outputs between batch sizes: half precision has three digits."""
_SHARED = frozenset({"CPUExecutionProvider", "CUDAExecutionProvider", "AzureExecutionProvider"})
"""Execution providers whose sessions are thread-safe."""


class Detector:
    """An ONNX detector of a supported family.

    Parameters
    ----------
    model : path
        The ONNX file.
    family : str
        One of `probox.detect.families.FAMILIES`, or ``auto`` to detect it from the graph's outputs.
    classes : sequence of str, optional
        Class names in the order of the graph's scores. Default: COCO's, if the number of classes fits.
    dropout : Dropout, optional
        Dropout masks for `sample`.
    batch : int
        Number of images per batch. It is 1 for graphs with a fixed batch of 1, and for graphs whose outputs for two
        images together differ from those of each alone.
    threads : int, optional
        Threads of ONNX Runtime, shared by all workers. Default: one per core.
    workers : int
        Number of threads that call `candidates` and `sample` at the same time, see `detect_images`.
    size : (width, height), optional
        Input size of a graph with dynamic axes. Default: the size stored in the export, or the family's default.

    Examples
    --------
    >>> detector = Detector("yolox_nano.onnx")                                          # doctest: +SKIP
    >>> candidates = detector.candidates([read_image("photo.jpg")])[0]                  # doctest: +SKIP
    """

    def __init__(
        self,
        model: str | Path,
        *,
        family: str = "auto",
        classes: Sequence[str] | None = None,
        dropout: Dropout | None = None,
        batch: int = 1,
        threads: int | None = None,
        workers: int = 1,
        size: tuple[int, int] | None = None,
    ) -> None:
        self.path = Path(model)
        if workers < 1:
            raise InputError(f"expected at least 1 worker, but got {workers}")
        self.workers = workers
        # Each worker thread also computes; the remaining threads form the shared pool.
        self._threads = threads if workers == 1 else max(1, thread_count(threads) - workers + 1)
        open_regular(self.path).close()  # raises for a missing or unreadable file
        self._masked: MaskedGraph | None = None
        session = self._open(str(self.path), optimise=dropout is None)
        try:
            signature = _try_signature(session, _signature(session), size)
            inside = Graph(load_model(self.path, weights=False))
            if dropout is None:
                self._session = session
            else:
                self._masked = MaskedGraph(load_model(self.path), dropout, open_graph=self._open, run=self._run)
            self.family: Family = choose_family(signature, family, classes, size=size, graph=inside)
            wide, high = self.family.input_size()
            if size is not None and size != (wide, high):
                raise InputError(
                    f"expected the graph's input size {wide} x {high}, but got {size[0]} x {size[1]}",
                    remedy="leave out the size ({option:size}), or export the model with dynamic axes",
                )
        except InputError as error:
            raise InputError(error.problem, file=str(model), entry=error.entry, remedy=error.remedy) from None
        self._output_names = [output.name for output in signature.outputs]
        self._input_types = {tensor.name: _NUMPY_TYPES.get(tensor.type) for tensor in signature.inputs}
        taps = () if dropout is not None else self.family.taps()
        if taps:
            self._session = self._open(with_outputs(load_model(self.path), taps).SerializeToString())
            self._output_names += [name for name in taps if name not in self._output_names]
        self._described = repr((self.family.name, self.family.classes, size))
        self._plausible, self._checking = Plausibility(self.family.name, self._output_names, str(model)), Lock()
        if batch < 1:
            raise InputError(f"expected a batch of at least 1, but got {batch}")
        together = batch > 1 and self.family.batches and dropout is None
        self._fixed_batch = self.family.signature.inputs[0].shape[0] if self.family.batches else None
        self.batch = self._fixed_batch or (batch if together and self._takes_batches() else 1)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return warnings on the images processed so far, one sentence each."""
        return self._plausible.notes

    @property
    def fingerprint(self) -> str:
        """Return an identifier of the model, its settings and its masks."""
        digest = hashlib.sha256(self._described.encode())
        with open(self.path, "rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        if self._masked is not None:
            digest.update(self._masked.description.encode())
        return digest.hexdigest()

    @property
    def dropout_layers(self) -> tuple[str, ...]:
        """Return the names of the masked layers."""
        return () if self._masked is None else self._masked.layers

    @property
    def graph(self) -> onnx.ModelProto | None:
        """Return the graph with mask inputs; None without dropout."""
        return None if self._masked is None else self._masked.model

    def candidates(self, images: Sequence[Pixels]) -> list[Candidates]:
        """Return each image's candidates before suppression, without masks.

        Parameters
        ----------
        images : sequence of (H, W, 3) uint8 arrays
            RGB images.

        Returns
        -------
        list of Candidates
            One per image.

        Examples
        --------
        >>> candidates = detector.candidates([read_image("photo.jpg")])[0]  # doctest: +SKIP
        """
        if self._masked is not None:
            return [self._sample(self._masked, image, 0, 0)[1] for image in images]
        found: list[Candidates] = []
        for feeds, placements in self._batches(images):
            found.extend(self._decode(self._run(self._session, self._output_names, feeds), placements))
        return found

    def sample(self, images: Sequence[Pixels], passes: int, image_ids: Sequence[int]) -> list[Passes]:
        """Return each image's candidates of several passes with dropout masks, and of one without.

        Parameters
        ----------
        images : sequence of (H, W, 3) uint8 arrays
            RGB images.
        passes : int
            Number of passes with dropout masks.
        image_ids : sequence of int
            Image ids, which seed the masks.

        Returns
        -------
        list of Passes
            Candidates of each pass, for each image.

        Examples
        --------
        >>> passes = detector.sample([read_image("photo.jpg")], 10, [139])[0]  # doctest: +SKIP
        """
        if self._masked is None:
            raise InputError("expected a detector with dropout", remedy="make it with Detector(..., dropout=Dropout())")
        # One image at a time: masks are drawn per image, independent of the batch.
        return [
            Passes(*self._sample(self._masked, image, passes, image_id))
            for image, image_id in zip(images, image_ids, strict=True)
        ]

    def _sample(
        self, masked: MaskedGraph, image: Pixels, passes: int, image_id: int
    ) -> tuple[list[Candidates], Candidates]:
        ((feeds, placements),) = self._batches([image])
        runs = masked.sample(feeds, self._output_names, passes, image_id)
        plain = self._decode(next(runs), placements)[0]
        return [self._decode(outputs, placements, judged=False)[0] for outputs in runs], plain

    def _run(self, session: onnxruntime.InferenceSession, names: Sequence[str], feeds: Feeds) -> list[Array]:
        typed = {
            name: array.astype(self._input_types.get(name) or array.dtype, copy=False) for name, array in feeds.items()
        }
        try:
            outputs: list[Array] = session.run(names, typed)
        except Exception as error:  # ONNX Runtime's exceptions share no public base class
            raise InputError(f"the model fails on an image: {_reason(error)}", file=str(self.path)) from None
        return outputs

    def _batches(self, images: Sequence[Pixels]) -> Iterator[tuple[Feeds, list[Placement]]]:
        """Yield inputs of at most `batch` images; a graph with a fixed batch gets its last image repeated."""
        for start in range(0, len(images), self.batch):
            prepared = [self.family.prepare(image) for image in images[start : start + self.batch]]
            placements = [placement for _, placement in prepared]
            rows = [feeds for feeds, _ in prepared]
            if not self.family.batches:
                yield rows[0], placements
                continue
            rows += [rows[-1]] * ((self._fixed_batch or 0) - len(rows))
            yield {name: np.concatenate([feeds[name] for feeds in rows]) for name in rows[0]}, placements

    @np.errstate(all="ignore")  # non-finite numbers are refused below
    def _decode(
        self, outputs: Sequence[Array], placements: Sequence[Placement], *, judged: bool = True
    ) -> list[Candidates]:
        """Return each image's candidates; outputs of masked passes are not `judged` for plausibility."""
        # Half precision is enough inside the network, but not for decoding boxes.
        wide = [output.astype(np.float32) if output.dtype == np.float16 else output for output in outputs]
        decoded: list[Candidates] = []
        for row, placement in enumerate(placements):
            try:
                given = [output[row : row + 1] for output in wide] if self.family.batches else wide
                decoded.append(self.family.decode(given, placement))
            except InputError as error:
                problem = f"{error.problem} (outputs: {self._plausible.describe(outputs)})"
                raise InputError(problem, file=str(self.path), remedy=error.remedy) from None
            except (IndexError, ValueError) as error:
                raise InputError(
                    f"outputs {self._plausible.describe(outputs)} do not fit the family {self.family.name} ({error})",
                    file=str(self.path),
                    remedy="name another family ({option:family})",
                ) from None
            if judged:
                with self._checking:  # `check` counts images and may be called by several workers
                    self._plausible.check(decoded[-1], given, placement.image_size)
        return decoded

    def _takes_batches(self) -> bool:
        """Return whether a batch of two gives the outputs of each image alone, whatever the batch axis declares."""
        wide, high = self.family.input_size()
        noise = np.random.default_rng(0).integers(0, 256, (2, high, wide, 3), dtype=np.uint8)
        rows = [self.family.prepare(image)[0] for image in noise]
        alone = [self._run(self._session, self._output_names, feeds) for feeds in rows]
        try:
            joined = {name: np.concatenate([feeds[name] for feeds in rows]) for name in rows[0]}
            together = self._run(self._session, self._output_names, joined)
        except (InputError, ValueError):
            return False
        return all(
            len(both.shape) == len(first.shape) and _alike(both, np.concatenate([first, second]))
            for both, first, second in zip(together, *alone, strict=True)
        )

    def _open(self, model: str | bytes, *, optimise: bool = True) -> onnxruntime.InferenceSession:
        onnxruntime = require("onnxruntime", extra="detect", purpose="running detectors needs")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # errors are raised as exceptions as well
        if not optimise:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        if self._threads is not None:
            options.intra_op_num_threads = self._threads
        onnxruntime.set_default_logger_severity(4)  # messages outside of sessions
        try:
            with redirect_stdout(io.StringIO()):  # ONNX Runtime prints each provider that fails
                session = onnxruntime.InferenceSession(model, options, providers=onnxruntime.get_available_providers())
        except Exception as error:  # ONNX Runtime's exceptions share no public base class
            raise InputError(f"ONNX Runtime can't load this model: {_reason(error)}", file=str(self.path)) from None
        if not _SHARED.issuperset(session.get_providers()):
            self.workers = 1
        return session


def _alike(one: Array, other: Array) -> bool:
    """Return whether two outputs are equal up to rounding."""
    if one.shape != other.shape:
        return False
    wide, reference = one.astype(np.float64), other.astype(np.float64)
    tolerance = ALIKE * float(np.abs(reference).max(initial=0.0))
    return bool(np.allclose(wide, reference, rtol=ALIKE, atol=tolerance, equal_nan=True))


def _reason(error: Exception) -> str:
    """Return ONNX Runtime's message without error codes and source locations."""
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", str(error))
    text = re.sub(r"^Load model from .*? failed:", "", text)
    return re.sub(r"/onnxruntime_src/\S+ .*?[&\w]\) ", "", text).strip() or text


def _try_signature(
    session: onnxruntime.InferenceSession, signature: Signature, size: tuple[int, int] | None
) -> Signature:
    """Return the signature with output shapes from a run on an empty image, if axes other than the batch are dynamic.

    Exports with dynamic axes may leave even the number of classes undefined.
    """
    first = signature.inputs[0] if len(signature.inputs) == 1 else None
    kind = None if first is None else _NUMPY_TYPES.get(first.type)
    closed = all(None not in tensor.shape[1:] for tensor in (*signature.inputs, *signature.outputs))
    if closed or first is None or kind is None or len(first.shape) != 4 or 3 not in first.shape[1::2]:
        return signature
    free = signature.metadata.size or size or Family.default_size  # exports run at the size stored in their metadata
    wide, high = (own or asked for own, asked in zip(signature.open_size, free, strict=True))
    pixels = (high, wide, 3) if signature.channels_last else (3, high, wide)
    try:
        outputs = session.run(None, {first.name: np.zeros((first.shape[0] or 1, *pixels), kind)})
        shapes = tuple(tuple(output.shape) for output in outputs)
    except Exception as error:  # ONNX Runtime's exceptions share no public base class
        if free != size:
            return signature  # the family may know another size
        raise InputError(
            f"the model does not run on an input of {wide} x {high}: {_reason(error)}",
            remedy="choose another size, a multiple of 32 or 64 say",
        ) from None
    return dataclasses.replace(signature, trial=shapes, trial_size=(wide, high))


def _signature(session: onnxruntime.InferenceSession) -> Signature:
    """Return the inputs, outputs and metadata of a session."""

    def tensor(value: Any) -> Tensor:
        return Tensor(value.name, tuple(size if isinstance(size, int) else None for size in value.shape), value.type)

    try:
        return Signature(
            tuple(tensor(value) for value in session.get_inputs()),
            tuple(tensor(value) for value in session.get_outputs()),
            read_metadata(session.get_modelmeta().custom_metadata_map),
        )
    except UnicodeDecodeError as error:
        raise InputError(
            f"expected names of tensors and metadata in UTF-8, but got byte {error.object[error.start]:#x}",
            remedy="export the model again",
        ) from None
