"""What detectors in torch share: batches, random masks for some of their layers, and weights from a file."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from probox.detect.candidates import Candidates, Passes, Pixels, Traits
from probox.detect.dropout import DEFAULT_MASKS, DEFAULT_RATE, Dropout, draw_mask, layer_pattern
from probox.errors import InputError
from probox.support.optional import import_framework

_ONE_AT_A_TIME = Lock()
"""Masks hang on the modules themselves: two samplings at once would mix them."""


class TorchDetector:
    """A model held in torch that gives its candidates before suppression: a `probox.detect.Runner`.

    Subclasses set `family`, say which layers are heads, and run the model. Images are batched if their inputs have one
    shape: smaller ones would be padded, and what an image gives would depend on its neighbours.
    """

    family: Traits

    def __init__(self, model: Any, dropout: Dropout | None, batch: int) -> None:
        self.model = model.eval()
        self.batch = batch
        self._dropout = dropout
        self.dropout_layers = () if dropout is None else tuple(name for name, _ in self._choose_layers(dropout.layers))

    @property
    def fingerprint(self) -> str:
        """Return what identifies this model: its weights, and the masks it gets."""
        digest = hashlib.sha256(b"" if self._dropout is None else repr(self._dropout).encode())
        for name, value in self.model.state_dict().items():
            digest.update(name.encode())
            digest.update(value.detach().cpu().contiguous().float().numpy().tobytes())
        return digest.hexdigest()

    def candidates(self, images: Sequence[Pixels]) -> list[Candidates]:
        """Return each image's candidates."""
        inputs = [self._prepare(image) for image in images]
        found: dict[int, Candidates] = {}
        for rows in group_shapes([self._shape_of(one) for one in inputs], self.batch):
            found.update(
                zip(rows, self._run([inputs[row] for row in rows], [images[row] for row in rows]), strict=True)
            )
        return [found[row] for row in range(len(images))]

    def sample(self, images: Sequence[Pixels], passes: int, image_ids: Sequence[int]) -> list[Passes]:
        """Return each image's candidates of several passes with random masks, and of one without."""
        if self._dropout is None:
            raise InputError("expected a detector with dropout", remedy="make it with dropout=Dropout()")
        chosen = self._choose_layers(self._dropout.layers)
        found: list[Passes] = []  # one image at a time: each has masks of its own, whatever is beside it
        with _ONE_AT_A_TIME:
            for image, image_id in zip(images, image_ids, strict=True):
                drawn: list[Candidates] = []
                for number in range(passes):
                    with mask_layers(chosen, self._dropout, image_id, number):
                        drawn.extend(self.candidates([image]))
                found.append(Passes(drawn, self.candidates([image])[0]))
        return found

    def _choose_layers(self, layers: str) -> list[tuple[str, Any]]:
        """Return the modules that get masks, with their names: `Dropout` tells what `layers` may be."""
        import torch

        named = list(self.model.named_modules())
        own = [(name, module) for name, module in named if _is_dropout(module) and module.p > 0]
        every = [(name, module) for name, module in named if isinstance(module, torch.nn.Conv2d | torch.nn.Linear)]
        if layers == "existing" or (layers == "auto" and own):
            chosen, every = own, own
        elif layers in ("heads", "auto"):
            chosen = [(name, module) for name, module in every if self._is_head(name)]
        elif layers == "backbone":  # the first layer, which reads the image, never gets masks by this word
            chosen = [(name, module) for name, module in every[1:] if self._is_backbone(name)]
        else:
            pattern = layer_pattern(layers)
            chosen = [(name, module) for name, module in every if pattern.search(name)]
        if not chosen:
            names = ", ".join(name for name, _ in every[-4:]) or "none at all"
            raise InputError(f"no layer of the model is {layers!r}", remedy=f"names are like {names}")
        return chosen

    def _is_head(self, name: str) -> bool:
        raise NotImplementedError

    def _is_backbone(self, name: str) -> bool:
        return not self._is_head(name)

    def _prepare(self, image: Pixels) -> Any:
        """Return the model's input for one image."""
        return image

    def _shape_of(self, prepared: Any) -> tuple[int, ...]:
        return tuple(prepared.shape)

    def _run(self, inputs: Sequence[Any], images: Sequence[Pixels]) -> list[Candidates]:
        """Return the candidates of a batch whose inputs have one shape."""
        raise NotImplementedError


def group_shapes(shapes: Sequence[tuple[int, ...]], batch: int) -> Iterator[list[int]]:
    """Yield the rows of equal shape, at most `batch` at a time.

    >>> list(group_shapes([(4, 6), (6, 4), (4, 6), (4, 6)], 2))
    [[0, 2], [3], [1]]
    """
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for row, shape in enumerate(shapes):
        by_shape.setdefault(shape, []).append(row)
    for rows in by_shape.values():
        for start in range(0, len(rows), batch):
            yield rows[start : start + batch]


@contextlib.contextmanager
def name_failures(name: str, images: Sequence[Pixels]) -> Iterator[None]:
    """Turn what a framework raises while a model looks at images (too small, no memory...) into words."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # frameworks share no class of errors
        sizes = ", ".join(dict.fromkeys(f"{image.shape[1]} x {image.shape[0]}" for image in images))
        raise InputError(f"{name} fails on an image of {sizes} pixels: {describe_error(error)}") from error


def describe_error(error: BaseException) -> str:
    """Return what an error says in one line, or its type."""
    return " ".join(str(error).split())[:200] or type(error).__name__


@contextlib.contextmanager
def mask_layers(chosen: Sequence[tuple[str, Any]], dropout: Dropout, image_id: int, number: int) -> Iterator[None]:
    """Let chosen modules have the masks of one pass over one image for a while."""
    own = [(name, module) for name, module in chosen if _is_dropout(module)]
    before = [(module, module.p) for _, module in own]
    handles = [
        module.register_forward_pre_hook(_mask_hook(name, dropout, image_id, number))
        for name, module in chosen
        if not _is_dropout(module)
    ]
    try:
        with _seed_torch(dropout, image_id, number) if own else contextlib.nullcontext():
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


@contextlib.contextmanager
def _seed_torch(dropout: Dropout, image_id: int, number: int) -> Iterator[None]:
    """Let torch's own generators start at a number that belongs to this pass over this image, and forget it after."""
    import torch

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
    tensors, problem = {}, f"but got {type(content).__name__}"
    if isinstance(content, Mapping):
        tensors = {str(name): value for name, value in content.items() if hasattr(value, "detach")}
        problem = f"but the file holds {', '.join(map(str, list(content)[:4])) or 'nothing':.80}"
    if not tensors:
        raise InputError(
            f"expected a state dict, {problem}", file=str(path), remedy="write torch.save(model.state_dict(), FILE)"
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
    """Return the content of a file of torch, in which nothing is executed; beside tensors it may hold `allowed`."""
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
    """
    import torch

    own = model.state_dict()
    prefix = _prefix(list(state), list(own), file)
    given = {key[len(prefix) :]: value for key, value in state.items() if key.startswith(prefix)}
    wrong = [key for key, value in given.items() if value.is_floating_point() and not torch.isfinite(value).all()]
    if wrong:
        raise InputError(_describe_keys(wrong, "not finite"), file=file, remedy="this training has gone astray")
    try:
        missing, unexpected = model.load_state_dict(given, strict=False)
    except RuntimeError as error:
        sizes = [line.strip() for line in str(error).splitlines() if "size mismatch" in line]
        said = f"another shape in {len(sizes)} of them, first {sizes[0][:200]}" if sizes else _first_line(error)
        raise InputError(f"these are not the weights of {name}: {said}", file=file, remedy=_ASK) from None
    missing = [key for key in missing if not key.endswith("num_batches_tracked")]  # counts batches of a training
    if missing or unexpected:
        said = "; ".join(filter(None, [_describe_keys(missing, "missing"), _describe_keys(unexpected, "too many")]))
        raise InputError(f"these are not the weights of {name}: {said}", file=file, remedy=_ASK)


_ASK = "name the model that was trained"


def _describe_keys(keys: Sequence[str], how: str) -> str:
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
