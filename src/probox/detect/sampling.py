"""Running a graph with masks: once up to the first mask, then again and again from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from probox.detect.dropout import MaskInput, insert_dropout, split_masked
from probox.detect.masks import Dropout, draw_mask
from probox.errors import InputError

if TYPE_CHECKING:
    import onnx

__all__ = ["MaskedGraph"]

Array = npt.NDArray[Any]
Feeds = dict[str, Array]

_ONNX_TYPES = {
    "tensor(float)": 1, "tensor(uint8)": 2, "tensor(int8)": 3, "tensor(uint16)": 4, "tensor(int16)": 5,
    "tensor(int32)": 6, "tensor(int64)": 7, "tensor(string)": 8, "tensor(bool)": 9, "tensor(float16)": 10,
    "tensor(double)": 11, "tensor(uint32)": 12, "tensor(uint64)": 13, "tensor(bfloat16)": 16,
}  # fmt: skip


class _Session(Protocol):
    def get_inputs(self) -> Sequence[Any]: ...
    def get_outputs(self) -> Sequence[Any]: ...


class MaskedGraph:
    """A graph whose layers get random masks, in two parts: what comes before the masks runs once for an image.

    Parameters
    ----------
    model : onnx.ModelProto
        The detector.
    dropout : Dropout
        Which layers get which masks.
    open_graph : callable
        Makes a session of a graph's bytes.
    run : callable
        Runs a session: the session, the names of outputs, the inputs.

    Attributes
    ----------
    model : onnx.ModelProto
        The graph with masks as further inputs.
    masks : tuple of MaskInput
        These inputs.
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
        self._before: _Session | None = None
        if before.graph.output:
            self._before = open_graph(before.SerializeToString())
            _declare_inputs(after, between, self._before, {mask.name for mask in self.masks})
        self._after: _Session = open_graph(after.SerializeToString())
        self._wanted = {tensor.name for tensor in self._after.get_inputs()}

    @property
    def layers(self) -> tuple[str, ...]:
        """Return the names of the layers that get masks."""
        return tuple(mask.layer for mask in self.masks)

    @property
    def description(self) -> str:
        """Return in words what decides the masks."""
        return f"{[(mask.layer, mask.rate, mask.by_channel) for mask in self.masks]} {self._seed}"

    def sample(self, feeds: Feeds, outputs: Sequence[str], passes: int, image_id: int) -> Iterator[list[Array]]:
        """Yield the outputs for one image without masks, then those of each pass with masks.

        Parameters
        ----------
        feeds : dict of arrays
            The graph's own inputs.
        outputs : sequence of str
            The outputs to yield.
        passes : int
            How many passes with masks to run.
        image_id : int
            The image, which its masks are drawn for.
        """
        fixed = self._run_before(feeds)
        learnt = [mask for mask in self.masks if mask.shape_output is not None]
        names = [*outputs, *(str(mask.shape_output) for mask in learnt)]
        # A mask of one number fits anything: the pass without masks also tells the shapes of those with.
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
                # Without masks it ran: shapes may be the reason, if they depend on what masks leave.
                raise InputError(error.problem, file=error.file, image=image_id, remedy="mask channels") from None
            for mask, shape in zip(learnt, found[len(outputs) :], strict=True):
                if shapes[mask.name] != tuple(shape):
                    raise InputError(
                        f"the input of layer {mask.layer} changes its shape from pass to pass: no mask fits",
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
    """Return the shape of a mask for an input of this shape: all of it, or its channels."""
    if not mask.by_channel:
        return shape
    axis = 1 if len(shape) > 3 else len(shape) - 1  # feature maps have their channels first, features last
    return tuple(size if at == axis else 1 for at, size in enumerate(shape))


def _declare_inputs(after: onnx.ModelProto, between: Sequence[str], before: _Session, masks: set[str]) -> None:
    """Let the second part take what the first gives, the inputs of the graph that it reads, and masks."""
    from onnx import helper

    weights = {tensor.name for tensor in after.graph.initializer}
    kept = [tensor for tensor in after.graph.input if tensor.name in masks | weights | set(between)]
    given = before.get_outputs()
    odd = [tensor for tensor in given if tensor.type not in _ONNX_TYPES]
    if odd:
        raise InputError(
            f"{odd[0].name}, which the masked layers need, is a {odd[0].type}", remedy="mask other layers of this graph"
        )
    new = [helper.make_tensor_value_info(tensor.name, _ONNX_TYPES[tensor.type], None) for tensor in given]
    del after.graph.input[:]
    after.graph.input.extend(kept + new)
