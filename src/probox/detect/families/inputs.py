"""What a graph must take to be given photos, and must give to be a detector."""

from __future__ import annotations

from probox.detect.families.base import Signature, Tensor
from probox.errors import InputError

__all__ = ["check_inputs"]

IMAGE_TYPES = ("tensor(float)", "tensor(float16)", "tensor(double)", "tensor(uint8)")
NUMBERS = (*IMAGE_TYPES, "tensor(int64)", "tensor(int32)", "tensor(bfloat16)", "tensor(bool)")
LARGEST_SIDE = 1 << 14
"""Of an input, in pixels: a graph that asks for more is damaged, and would ask for gigabytes."""


def check_inputs(signature: Signature) -> None:
    """Raise if a graph takes no photo, or gives no numbers."""
    if not signature.inputs:
        raise InputError("this graph has no inputs, so it looks at no image", remedy="export a detector")
    images = [tensor for tensor in signature.inputs if len(tensor.shape) in (3, 4)]
    if not images:
        raise InputError(f"no input takes an image: {_words(signature.inputs)}", remedy="export a detector")
    image = next((tensor for tensor in images if len(tensor.shape) == 4), images[0])
    if image.type not in IMAGE_TYPES:
        raise InputError(f"the input {_words((image,))} is of {image.type}, which is no photo")
    channels = {image.shape[-3], image.shape[-1]}
    if 3 not in channels and None not in channels:
        few = min(image.shape[-3] or 0, image.shape[-1] or 0)
        kinds = {1: "greyscale images", 4: "images of four channels"}
        raise InputError(
            f"the input {_words((image,))} takes {kinds.get(few, f'{few} channels')}, not red, green and blue",
            remedy="detectors of RGB photos can be run",
        )
    if any(size is not None and not 0 < size <= LARGEST_SIDE for size in image.shape):
        raise InputError(f"the input {_words((image,))} is no size of a photo")
    if not signature.outputs:
        raise InputError("this graph has no outputs", remedy="export a detector")
    for tensor in signature.outputs:
        if tensor.type not in NUMBERS:
            raise InputError(
                f"the output {tensor.name} is of {tensor.type}, but boxes and scores are tensors of numbers"
            )


def _words(tensors: tuple[Tensor, ...]) -> str:
    return Signature((), tensors).describe()
