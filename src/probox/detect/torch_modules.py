"""What detectors in torch share: random masks for some of their layers, and what tells one from another."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from probox.detect.runtime import Dropout
from probox.errors import InputError

__all__ = ["choose_layers", "fingerprint_of", "masked"]


def fingerprint_of(model: Any) -> str:
    """Return what tells a model from others: its weights."""
    digest = hashlib.sha256()
    for name, value in model.state_dict().items():
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().float().numpy().tobytes())
    return digest.hexdigest()


def choose_layers(
    model: Any, layers: str, *, heads: Callable[[str], bool], backbone: Callable[[str], bool]
) -> list[tuple[str, Any]]:
    """Return the modules that get masks, with their names.

    Parameters
    ----------
    model : torch.nn.Module
        The detector.
    layers : str
        ``heads``, ``backbone``, ``existing`` (its own dropout modules), or a regular expression on names.
    heads, backbone : callable
        Whether a layer of this name belongs there; the first layer, which reads the image, never gets masks by these
        words.
    """
    import torch

    kinds = (torch.nn.modules.dropout._DropoutNd,) if layers == "existing" else (torch.nn.Conv2d, torch.nn.Linear)
    every = [(name, module) for name, module in model.named_modules() if isinstance(module, kinds)]
    if layers == "existing":
        chosen = every
    elif layers == "heads":
        chosen = [(name, module) for name, module in every if heads(name)]
    elif layers == "backbone":
        chosen = [(name, module) for name, module in every[1:] if backbone(name)]
    else:
        chosen = [(name, module) for name, module in every if re.search(layers, name)]
    if not chosen:
        names = ", ".join(name for name, _ in every[-4:]) or "none at all"
        raise InputError(f"no layer of the model is {layers!r}", remedy=f"names are like {names}")
    return chosen


@contextmanager
def masked(chosen: list[tuple[str, Any]], dropout: Dropout) -> Iterator[None]:
    """Let chosen layers have random masks on their inputs for a while."""
    import torch

    if dropout.layers == "existing":
        for _, module in chosen:
            module.train()
        try:
            with torch.random.fork_rng():
                torch.manual_seed(dropout.seed)
                yield
        finally:
            for _, module in chosen:
                module.eval()
        return
    generator = torch.Generator().manual_seed(dropout.seed)
    handles = [module.register_forward_pre_hook(_mask_hook(dropout, generator)) for _, module in chosen]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _mask_hook(dropout: Dropout, generator: Any) -> Callable[[Any, Any], Any]:
    import torch

    def hook(module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        data = inputs[0]
        shape = list(data.shape)
        if dropout.masks == "channels":
            # One network for all cells, proposals and images of a pass: only the channel axis varies.
            axis = data.dim() - 1 if isinstance(module, torch.nn.Linear) else data.dim() - 3
            shape = [size if at == axis else 1 for at, size in enumerate(shape)]
        kept = torch.rand(shape, generator=generator).to(data.device) > dropout.rate
        return (data * (kept / (1.0 - dropout.rate)).to(data.dtype), *inputs[1:])

    return hook
