"""What detectors in torch share: random masks for some of their layers, and what tells one from another."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from probox.detect.families.base import Candidates
from probox.detect.images import Pixels
from probox.detect.masks import DEFAULT_MASKS, DEFAULT_RATE, Dropout, Passes, draw_mask
from probox.errors import InputError

__all__ = ["choose_layers", "failures_said", "fingerprint_of", "masked", "sample_masked"]

_ONE_AT_A_TIME = Lock()
"""Masks hang on the modules themselves: two samplings at once would mix them."""


def fingerprint_of(model: Any, dropout: Dropout | None = None) -> str:
    """Return what tells a model from others: its weights, and the masks it gets."""
    digest = hashlib.sha256(b"" if dropout is None else repr(dropout).encode())
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().float().numpy().tobytes())
    return digest.hexdigest()


@contextmanager
def failures_said(name: str, images: Sequence[Pixels]) -> Iterator[None]:
    """Turn what a framework raises while a model looks at images (too small, no memory...) into words."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # frameworks share no class of errors
        sizes = ", ".join(dict.fromkeys(f"{image.shape[1]} x {image.shape[0]}" for image in images))
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{name} fails on an image of {sizes} pixels: {said}") from error


def choose_layers(
    model: Any, layers: str, *, heads: Callable[[str], bool], backbone: Callable[[str], bool]
) -> list[tuple[str, Any]]:
    """Return the modules that get masks, with their names.

    Parameters
    ----------
    model : torch.nn.Module
        The detector.
    layers : str
        ``heads``, ``backbone``, ``existing`` (its own dropout modules that drop something), ``auto`` (these, or the
        heads of a model that has none), or a regular expression on names.
    heads, backbone : callable
        Whether a layer of this name belongs there; the first layer, which reads the image, never gets masks by these
        words.
    """
    import torch

    named = list(model.named_modules())
    own = [(name, module) for name, module in named if _is_dropout(module) and module.p > 0]
    every = [(name, module) for name, module in named if isinstance(module, torch.nn.Conv2d | torch.nn.Linear)]
    if layers == "existing" or (layers == "auto" and own):
        chosen, every = own, own
    elif layers in ("heads", "auto"):
        chosen = [(name, module) for name, module in every if heads(name)]
    elif layers == "backbone":
        chosen = [(name, module) for name, module in every[1:] if backbone(name)]
    else:
        try:
            chosen = [(name, module) for name, module in every if re.search(layers, name)]
        except re.error as error:
            raise InputError(
                f"expected dropout layers to be auto, heads, backbone, existing or a regular expression: {error}"
            ) from None
    if not chosen:
        names = ", ".join(name for name, _ in every[-4:]) or "none at all"
        raise InputError(f"no layer of the model is {layers!r}", remedy=f"names are like {names}")
    return chosen


def sample_masked(
    chosen: Sequence[tuple[str, Any]],
    dropout: Dropout,
    run: Callable[[Sequence[Pixels]], Sequence[Candidates]],
    images: Sequence[Pixels],
    passes: int,
    image_ids: Sequence[int],
) -> list[Passes]:
    """Return each image's candidates of several passes with random masks, and of one without.

    Parameters
    ----------
    chosen : sequence of (name, module)
        What gets masks, see `choose_layers`.
    dropout : Dropout
        How they are drawn.
    run : callable
        The detector: images to candidates. It is shown one image at a time, which has masks of its own whatever images
        come before and after.
    images, passes, image_ids
        As for `probox.detect.Detector.sample`.
    """
    found: list[Passes] = []
    with _ONE_AT_A_TIME:
        for image, image_id in zip(images, image_ids, strict=True):
            drawn = []
            for number in range(passes):
                with masked(chosen, dropout, image_id, number):
                    drawn.append(run([image])[0])
            found.append(Passes(drawn, run([image])[0]))
    return found


@contextmanager
def masked(chosen: Sequence[tuple[str, Any]], dropout: Dropout, image_id: int, number: int) -> Iterator[None]:
    """Let chosen modules have the masks of one pass over one image for a while."""
    own = [(name, module) for name, module in chosen if _is_dropout(module)]
    before = [(module, module.p) for _, module in own]
    handles = [
        module.register_forward_pre_hook(_mask_hook(name, dropout, image_id, number))
        for name, module in chosen
        if not _is_dropout(module)
    ]
    try:
        with _seeded(dropout, image_id, number, needed=bool(own)):
            for _, module in own:
                module.train()
                module.p = module.p if dropout.rate is None else dropout.rate
            yield
    finally:
        for module, rate in before:
            module.p = rate
            module.eval()
        for handle in handles:
            handle.remove()


@contextmanager
def _seeded(dropout: Dropout, image_id: int, number: int, *, needed: bool) -> Iterator[None]:
    """Let torch's own generators start at a number that belongs to this pass over this image, and forget it after."""
    import torch

    if not needed:
        yield
        return
    who = hashlib.blake2b(f"{dropout.seed} {image_id} {number}".encode(), digest_size=7).digest()
    with torch.random.fork_rng():
        torch.manual_seed(int.from_bytes(who, "little"))
        yield


def _is_dropout(module: Any) -> bool:
    import torch

    return isinstance(module, torch.nn.modules.dropout._DropoutNd)


def _mask_hook(name: str, dropout: Dropout, image_id: int, number: int) -> Callable[[Any, Any], Any]:
    import torch

    rate = dropout.rate or DEFAULT_RATE
    by_channel = (dropout.masks or DEFAULT_MASKS) == "channels"
    calls = 0

    def hook(module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        nonlocal calls
        data = inputs[0]
        shape, layer = tuple(data.shape), f"{name} {calls}"
        calls += 1
        if by_channel:
            # One network for all cells, proposals and levels: only the channel axis varies, in every call alike.
            axis = data.dim() - 1 if isinstance(module, torch.nn.Linear) else data.dim() - 3
            shape, layer = tuple(size if at == axis else 1 for at, size in enumerate(shape)), name
        mask = draw_mask(shape, rate, "float32", seed=dropout.seed, image_id=image_id, number=number, layer=layer)
        return (data * torch.from_numpy(mask).to(data.device, data.dtype), *inputs[1:])

    return hook
