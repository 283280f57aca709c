"""Common parts of torch detectors: batches, dropout masks for some layers, and weights from a file."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
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
"""Lock for masks: hooks are attached to the shared modules, so concurrent sampling would mix masks."""


class TorchDetector:
    """A torch model that returns candidates before suppression: a `probox.detect.Runner`.

    Subclasses set `family`, define which layers are heads, and run the model. Only inputs of equal shape are batched:
    padding would make an image's outputs depend on its batch.
    """

    family: Traits

    def __init__(self, model: Any, dropout: Dropout | None, batch: int) -> None:
        self.model = model.eval()
        self.batch = batch
        self._dropout = dropout
        self.dropout_layers = () if dropout is None else tuple(name for name, _ in self._choose_layers(dropout.layers))

    @property
    def fingerprint(self) -> str:
        """Return an identifier of the model: its weights and masks."""
        digest = hashlib.sha256(b"" if self._dropout is None else repr(self._dropout).encode())
        for name, value in self.model.state_dict().items():
            digest.update(name.encode())
            digest.update(value.detach().cpu().contiguous().float().numpy().tobytes())
        return digest.hexdigest()

    def candidates(self, images: Sequence[Pixels]) -> list[Candidates]:
        """Return each image's candidates.

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
        inputs = [self._prepare(image) for image in images]
        found: dict[int, Candidates] = {}
        for rows in group_shapes([self._shape_of(one) for one in inputs], self.batch):
            found.update(
                zip(rows, self._run([inputs[row] for row in rows], [images[row] for row in rows]), strict=True)
            )
        return [found[row] for row in range(len(images))]

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
        if self._dropout is None:
            raise InputError("expected a detector with dropout", remedy="make it with dropout=Dropout()")
        chosen = self._choose_layers(self._dropout.layers)
        found: list[Passes] = []  # one image at a time: masks are drawn per image, independent of the batch
        with _ONE_AT_A_TIME:
            for image, image_id in zip(images, image_ids, strict=True):
                drawn: list[Candidates] = []
                for number in range(passes):
                    with mask_layers(chosen, self._dropout, image_id, number):
                        # Heatmaps, which samples do not use, would keep the feature maps of every pass.
                        drawn.extend(dataclasses.replace(own, heatmaps=None) for own in self.candidates([image]))
                found.append(Passes(drawn, self.candidates([image])[0]))
        return found

    def _choose_layers(self, layers: str) -> list[tuple[str, Any]]:
        """Return the modules to mask, with their names; `Dropout` describes `layers`."""
        import torch

        named = list(self.model.named_modules())
        own = [(name, module) for name, module in named if _is_dropout(module) and module.p > 0]
        every = [(name, module) for name, module in named if isinstance(module, torch.nn.Conv2d | torch.nn.Linear)]
        if layers == "existing" or (layers == "auto" and own):
            chosen, every = own, own
        elif layers in ("heads", "auto"):
            chosen = [(name, module) for name, module in every if self._is_head(name)]
        elif layers == "backbone":  # the first layer, which reads the image, is excluded
            chosen = [(name, module) for name, module in every[1:] if self._is_backbone(name)]
        else:
            pattern = layer_pattern(layers)
            chosen = [(name, module) for name, module in every if pattern.search(name)]
        if not chosen:
            names = ", ".join(name for name, _ in every[-4:]) or "none at all"
            raise InputError(f"no layer matches {layers!r}", remedy=f"names are like {names}")
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
        """Return the candidates of a batch of inputs with equal shapes."""
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
    """Convert exceptions of a framework during inference (image too small, out of memory, ...) to `InputError`."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # frameworks have no common base class of errors
        sizes = ", ".join(dict.fromkeys(f"{image.shape[1]} x {image.shape[0]}" for image in images))
        raise InputError(f"{name} fails on an image of {sizes} pixels: {describe_error(error)}") from error


def describe_error(error: BaseException) -> str:
    """Return the first line of an error's message, or its type."""
    return " ".join(str(error).split())[:200] or type(error).__name__


@contextlib.contextmanager
def mask_layers(chosen: Sequence[tuple[str, Any]], dropout: Dropout, image_id: int, number: int) -> Iterator[None]:
    """Apply the masks of one pass over one image to chosen modules within a block."""
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
    """Seed torch's generators for one pass over one image, and restore their state afterwards."""
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
            # Heads are shared by all cells, proposals and levels: one mask per channel applies to every call.
            axis = data.dim() - 1 if isinstance(module, torch.nn.Linear) else data.dim() - 3
            shape, layer = tuple(size if at == axis else 1 for at, size in enumerate(shape)), name
        mask = draw_mask(shape, rate, "float32", seed=dropout.seed, image_id=image_id, number=number, layer=layer)
        return (data * torch.from_numpy(mask).to(data.device, data.dtype), *inputs[1:])

    return hook


WRAPPERS = ("state_dict", "model_state_dict", "model")
"""Keys under which training checkpoints store the weights."""
State = dict[str, Any]


def read_weights(path: str | Path) -> State:
    """Return the tensors of a state dict, or of a checkpoint that holds one, by their names.

    Torch files are read with ``weights_only=True``: no code in them is executed.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError("no such weights file", file=str(path), remedy="check the path; nothing is downloaded")
    content = _read_safetensors(file) if file.suffix == ".safetensors" else read_torch(file)
    for _ in range(len(WRAPPERS)):
        inner = next((content[name] for name in WRAPPERS if isinstance(content, Mapping) and name in content), None)
        if not isinstance(inner, Mapping):
            break
        content = inner
    tensors, problem = {}, f"but got {type(content).__name__}"
    if isinstance(content, Mapping):
        tensors = {str(name): value for name, value in content.items() if hasattr(value, "detach")}
        problem = f"but got {', '.join(map(str, list(content)[:4])) or 'nothing':.80}"
    if not tensors:
        raise InputError(
            f"expected a state dict, {problem}", file=str(path), remedy="write torch.save(model.state_dict(), FILE)"
        )
    return tensors


def _read_safetensors(file: Path) -> Any:
    safetensors = import_framework("safetensors.torch", "safetensors")
    try:
        return safetensors.load_file(str(file), device="cpu")
    except Exception as error:  # the exception class has moved between versions
        raise InputError(f"safetensors can't read this file: {error!s:.200}", file=str(file)) from None


@contextlib.contextmanager
def _only_allow(classes: Sequence[Any]) -> Iterator[None]:
    """Allow torch to create these classes besides its own tensors, and no classes allowed by other code."""
    serialization = import_framework("torch").serialization
    if not hasattr(serialization, "safe_globals"):  # older torch versions have no allow list
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
    """Return the content of a torch file without executing code; classes in `allowed` may occur besides tensors."""
    import pickle
    import zipfile

    torch = import_framework("torch")
    try:
        # Training settings are often stored beside the weights: names and values, no code.
        with _only_allow([argparse.Namespace, *allowed]):
            return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if not zipfile.is_zipfile(file):
            raise InputError("expected a file written by torch", file=str(file)) from None
        reason = str(error).splitlines()[0] if "GLOBAL" not in str(error) else "it refers to Python classes"
        raise InputError(
            f"contains objects that may execute code when read: {reason:.120}",
            file=str(file),
            remedy="write torch.save(model.state_dict(), FILE) on a machine where the model is trusted",
        ) from None
    except InputError:
        raise
    except Exception as error:  # damaged pickles raise many types
        raise InputError(f"torch can't read this file: {_first_line(error)}", file=str(file)) from None


def load_weights(model: Any, state: State, *, file: str, name: str) -> None:
    """Load weights into a model; raise if any are missing, unexpected or of another shape.

    A common prefix of all names (``module.`` of data parallelism, ``model.`` of trainers) is removed.
    """
    import torch

    own = model.state_dict()
    prefix = _prefix(list(state), list(own), file)
    given = {key[len(prefix) :]: value for key, value in state.items() if key.startswith(prefix)}
    wrong = [key for key, value in given.items() if value.is_floating_point() and not torch.isfinite(value).all()]
    if wrong:
        raise InputError(_describe_keys(wrong, "not finite"), file=file, remedy="use an earlier checkpoint")
    try:
        missing, unexpected = model.load_state_dict(given, strict=False)
    except RuntimeError as error:
        sizes = [line.strip() for line in str(error).splitlines() if "size mismatch" in line]
        said = f"another shape in {len(sizes)} of them, first {sizes[0][:200]}" if sizes else _first_line(error)
        raise InputError(f"these are not the weights of {name}: {said}", file=file, remedy=_ASK) from None
    missing = [key for key in missing if not key.endswith("num_batches_tracked")]  # unused in inference
    if missing or unexpected:
        said = "; ".join(filter(None, [_describe_keys(missing, "missing"), _describe_keys(unexpected, "too many")]))
        raise InputError(f"these are not the weights of {name}: {said}", file=file, remedy=_ASK)


_ASK = "name the model that was trained"


def _describe_keys(keys: Sequence[str], how: str) -> str:
    if len(keys) == 1:
        return f"1 weight is {how} ({keys[0]})"
    return f"{len(keys)} weights are {how} (first {keys[0]})" if keys else ""


def _prefix(given: Sequence[str], own: Sequence[str], file: str) -> str:
    """Return the common prefix of the names in a file; raise if there are several."""
    # Names of the head, which backbones do not contain.
    heads = [key for key in own if key.endswith(("cls_score.weight", "cls_score.bias"))] or list(own)[-1:]
    prefixes = sorted({key[: -len(head)] for head in heads for key in given if key == head or key.endswith("." + head)})
    if len(prefixes) > 1 and "" not in prefixes:
        raise InputError(
            f"contains the weights of several models: {', '.join(map(repr, prefixes))}"[:200],
            file=file,
            remedy="save the state dict of one model",
        )
    return prefixes[0] if prefixes else ""


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
