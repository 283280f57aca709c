"""Weights from a file into a torch module: all of them or none, and never any code."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from probox.errors import InputError
from probox.support.optional import import_framework

__all__ = ["load_weights", "read_torch", "read_weights"]

WRAPPERS = ("state_dict", "model_state_dict", "model")
"""Under which names checkpoints of trainings hold the weights."""

State = dict[str, Any]


def read_weights(path: str | Path) -> State:
    """Return the tensors of a state dict, or of a checkpoint that holds one, by their names.

    Files of torch are read with ``weights_only=True``: nothing in them is executed.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError("no such file of weights", file=str(path), remedy="nothing is downloaded: give a file")
    content = _read_safetensors(file) if file.suffix == ".safetensors" else read_torch(file)
    for _ in range(len(WRAPPERS)):
        inner = next((content[name] for name in WRAPPERS if isinstance(content, Mapping) and name in content), None)
        if not isinstance(inner, Mapping):
            break
        content = inner
    if not isinstance(content, Mapping):
        raise InputError(
            f"expected a state dict, but got {type(content).__name__}",
            file=str(path),
            remedy="write torch.save(model.state_dict(), FILE)",
        )
    tensors = {str(name): value for name, value in content.items() if hasattr(value, "detach")}
    if not tensors:
        got = ", ".join(map(str, list(content)[:4])) or "nothing"
        raise InputError(
            f"expected a state dict, but the file holds {got:.80}",
            file=str(path),
            remedy="write torch.save(model.state_dict(), FILE)",
        )
    return tensors


def _read_safetensors(file: Path) -> Any:
    safetensors = import_framework("safetensors.torch", "safetensors")
    try:
        return safetensors.load_file(str(file), device="cpu")
    except Exception as error:  # its own exception class has moved between versions
        raise InputError(f"safetensors can't read this file: {error!s:.200}", file=str(file)) from None


@contextlib.contextmanager
def _only_allow(classes: Sequence[Any]) -> Iterator[None]:
    """Let torch make these classes, beside its own tensors, and none that other code has allowed."""
    serialization = import_framework("torch").serialization
    if not hasattr(serialization, "safe_globals"):  # an old torch allows none
        yield
        return
    before = serialization.get_safe_globals()
    serialization.clear_safe_globals()
    try:
        with serialization.safe_globals(list(classes)):
            yield
    finally:
        serialization.clear_safe_globals()
        serialization.add_safe_globals(before)


def read_torch(file: Path, allowed: Sequence[Any] = ()) -> Any:
    """Return the content of a file of torch, in which nothing is executed.

    Parameters
    ----------
    file : Path
        The file.
    allowed : sequence
        Classes that it may hold beside tensors, as for ``torch.serialization.safe_globals``.
    """
    import pickle
    import zipfile

    torch = import_framework("torch")
    try:
        # The settings of a training often lie beside its weights: names and values, no code.
        with _only_allow([argparse.Namespace, *allowed]):
            return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if not zipfile.is_zipfile(file):
            raise InputError("not a file that torch has written", file=str(file)) from None
        reason = str(error).splitlines()[0] if "GLOBAL" not in str(error) else "it names classes of Python"
        raise InputError(
            f"holds more than weights, which may run any code when it is read: {reason:.120}",
            file=str(file),
            remedy="write torch.save(model.state_dict(), FILE) where the model is trusted",
        ) from None
    except InputError:
        raise
    except Exception as error:  # a damaged pickle can fail in any way
        raise InputError(f"torch can't read this file: {_first_line(error)}", file=str(file)) from None


def load_weights(model: Any, state: State, *, file: str, name: str) -> None:
    """Give a model its weights; raise unless each of them has its place and each place its weight.

    What stands before all names (``module.`` of several devices, ``model.`` of trainers) is taken off.

    Parameters
    ----------
    model : torch.nn.Module
        The model.
    state : dict of str to tensor
        From `read_weights`.
    file, name : str
        What messages call the file and the model.
    """
    import torch

    own = model.state_dict()
    prefix = _prefix(list(state), list(own), file)
    given = {key[len(prefix) :]: value for key, value in state.items() if key.startswith(prefix)}
    wrong = [key for key, value in given.items() if value.is_floating_point() and not torch.isfinite(value).all()]
    if wrong:
        raise InputError(_counted(wrong, "not finite"), file=file, remedy="this training has gone astray")
    try:
        missing, unexpected = model.load_state_dict(given, strict=False)
    except RuntimeError as error:
        sizes = [line.strip() for line in str(error).splitlines() if "size mismatch" in line]
        said = f"another shape in {len(sizes)} of them, first {sizes[0][:200]}" if sizes else _first_line(error)
        raise InputError(f"these are not the weights of {name}: {said}", file=file, remedy=_ASK) from None
    missing = [key for key in missing if not key.endswith("num_batches_tracked")]  # counts batches of a training
    if missing or unexpected:
        said = "; ".join(filter(None, [_counted(missing, "missing"), _counted(unexpected, "too many")]))
        raise InputError(f"these are not the weights of {name}: {said}", file=file, remedy=_ASK)


_ASK = "name the model that was trained"


def _counted(keys: Sequence[str], how: str) -> str:
    if len(keys) == 1:
        return f"1 weight is {how} ({keys[0]})"
    return f"{len(keys)} weights are {how} (first {keys[0]})" if keys else ""


def _prefix(given: Sequence[str], own: Sequence[str], file: str) -> str:
    """Return what stands before the model's own names in a file, which must be one thing."""
    # Names of the head, which no backbone shares.
    heads = [key for key in own if key.endswith(("cls_score.weight", "cls_score.bias"))] or list(own)[-1:]
    prefixes = sorted({key[: -len(head)] for head in heads for key in given if key == head or key.endswith("." + head)})
    if len(prefixes) > 1 and "" not in prefixes:
        raise InputError(
            f"holds the weights of several models: {', '.join(map(repr, prefixes))}"[:200],
            file=file,
            remedy="save the state dict of one",
        )
    return prefixes[0] if prefixes else ""


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
