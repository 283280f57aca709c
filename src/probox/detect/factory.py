"""Open a detector by its name on the command line: an ONNX file, or a torch model."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from probox.detect.candidates import Runner
from probox.detect.dropout import Dropout
from probox.detect.torch_model import describe_error, read_torch
from probox.errors import InputError
from probox.files.reading import open_regular
from probox.support.optional import check_installed, import_framework

FORMS = "FILE.onnx, torchvision:NAME, ultralytics:FILE.pt, transformers:DIR or python:FILE.py:FUNCTION"
"""Accepted forms of model names."""
DEVICES = ("cpu", "cuda", "mps")
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "YOLO_OFFLINE": "true", "YOLO_AUTOINSTALL": "false"}
"""Environment that prevents downloads and package installation; variables set by the user are kept."""
_NO_DOWNLOADS = "probox downloads no models"
QUIET = {"YOLO_VERBOSE": "false", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}


def split_model(model: str) -> tuple[str, str]:
    """Return the kind of a model (``onnx`` or a framework) and the rest of its name.

    An existing file takes precedence over a prefix; a single letter before a colon is a Windows drive.

    >>> split_model("torchvision:ssd300_vgg16"), split_model("C:/models/yolox.onnx")
    (('torchvision', 'ssd300_vgg16'), ('onnx', 'C:/models/yolox.onnx'))
    """
    before, colon, rest = model.partition(":")
    if not colon or len(before) < 2 or "/" in before or "\\" in before or Path(model).exists():
        return "onnx", model
    if before not in (*OPENERS, "python"):
        network = "; nothing is downloaded" if rest.startswith("//") else ""
        raise InputError(f"expected a model as {FORMS}, but got {model!r:.80}{network}", remedy="name one of these")
    if not rest:
        raise InputError(f"expected a model name after {model!r}", remedy=f"write {FORMS}")
    return before, rest


def files_of(model: str, weights: str | Path | None = None) -> tuple[Path, ...]:
    """Return the files that a model is read from; outputs must not replace them."""
    kind, rest = split_model(model)
    named = [] if kind == "torchvision" else [Path(rest.rpartition(":")[0] if kind == "python" else rest)]
    return tuple(named if weights is None else [*named, Path(weights)])


def open_detector(
    model: str,
    *,
    family: str = "auto",
    classes: Sequence[str] | None = None,
    dropout: Dropout | None = None,
    batch: int = 1,
    threads: int | None = None,
    size: tuple[int, int] | None = None,
    weights: str | Path | None = None,
    device: str | None = None,
    workers: int = 1,
) -> Runner:
    """Return a detector by its model name. Nothing is downloaded.

    Parameters
    ----------
    model : str
        An ONNX file; ``torchvision:NAME``, a detector of torchvision or of the paper (``ssd300``, ``frcnn_r``,
        ``frcnn_r_fpn``, ``frcnn_x_fpn``) with `weights`; ``ultralytics:FILE.pt``; ``transformers:DIR``, a folder
        written by ``save_pretrained``; or ``python:FILE.py:FUNCTION``, a function of the user that returns a `Runner`
        and accepts the keywords below that are given.
    family : str
        Family of an ONNX graph: one of `probox.detect.families.FAMILIES`, or ``auto``.
    classes : sequence of str, optional
        Class names in the order of the model's scores. Default: the model's own, or COCO's if the number of classes
        fits.
    dropout : Dropout, optional
        Dropout masks for Monte Carlo samples.
    batch : int
        Number of images per batch, where the model allows it.
    threads : int, optional
        Threads of ONNX Runtime or torch. Default: their own choice.
    size : (width, height), optional
        Input size of an ONNX graph with dynamic axes, or of an Ultralytics model.
    weights : path, optional
        State dict of a torchvision model.
    device : str, optional
        Torch device: ``cpu``, ``cuda``, ``mps``. Default: ``cpu``.
    workers : int
        Number of threads that call an ONNX detector at the same time; torch uses all processors for one call.

    Returns
    -------
    Runner

    Examples
    --------
    >>> open_detector("torchvision:ssd300", weights="ssd300_vgg16_coco-b556d3b4.pth")              # doctest: +SKIP
    """
    kind, rest = split_model(model)
    for path in files_of(model, weights):
        for file in path.iterdir() if path.is_dir() else [path]:
            if file.is_file():
                open_regular(file).close()  # reports Git LFS pointers, which frameworks report as damaged files
    if batch < 1:
        raise InputError(f"expected a batch of at least 1, but got {batch}")
    if kind == "python":
        given = {"classes": classes, "dropout": dropout, "batch": None if batch == 1 else batch, "threads": threads}
        return _open_python(rest, given | {"size": size, "weights": weights, "device": device}, family)
    if kind != "torchvision" and weights is not None:
        raise InputError(
            f"{kind} models include their weights", remedy="leave out the file of weights ({option:weights})"
        )
    if kind == "onnx":
        if device is not None:
            raise InputError("ONNX Runtime chooses its device itself", remedy="leave out the device ({option:device})")
        choices = {"family": family, "classes": classes, "dropout": dropout, "batch": batch, "threads": threads}
        return _open_onnx(rest, size=size, **choices, **({} if workers == 1 else {"workers": workers}))
    if family != "auto":
        raise InputError(
            f"a graph family ({family}) does not apply to {kind} models",
            remedy="leave out the family ({option:family})",
        )
    if size is not None and kind != "ultralytics":
        raise InputError(
            f"{kind} models use the input size of their training", remedy="leave out the size ({option:size})"
        )
    for name, value in {**OFFLINE, **QUIET}.items():
        os.environ.setdefault(name, value)
    with contextlib.redirect_stdout(sys.stderr):  # frameworks print while loading; stdout is reserved for results
        torch = import_framework("torch")
        place = _device(torch, device)
        if threads is not None:
            torch.set_num_threads(threads)
        shared = {"classes": classes, "dropout": dropout, "batch": batch}
        return OPENERS[kind](rest, place, {"weights": weights, "size": size}, shared)


def _open_onnx(model: str, **choices: Any) -> Runner:
    from probox.detect.onnx_runtime import Detector

    path = Path(model)
    if path.is_dir() and (path / "config.json").is_file():
        raise InputError("is a transformers folder", file=model, remedy=f"write transformers:{model}")
    if not path.exists():
        wanted = {".onnx": "check the path", ".pt": "write ultralytics: before the path of a file that exists"}
        remedy = wanted.get(path.suffix, f"name a model as {FORMS}")
        raise InputError("no such file", file=model, remedy=f"{_NO_DOWNLOADS}: {remedy}")
    if path.is_file() and path.suffix == ".pt":
        raise InputError("expected an ONNX file", file=model, remedy=f"write ultralytics:{model}, or export it to ONNX")
    if path.is_file() and path.suffix in (".pth", ".safetensors"):
        remedy = (
            "write torchvision:NAME and give this file as the weights ({option:weights}), or export the model to ONNX"
        )
        raise InputError("contains weights without a model", file=model, remedy=remedy)
    check_installed(("onnx", "onnxruntime"), extra="detect", purpose="running detectors needs")
    return Detector(path, **choices)


def _open_torchvision(name: str, place: Any, own: dict[str, Any], shared: dict[str, Any]) -> Runner:
    import_framework("torchvision")
    from probox.detect.torchvision_detector import TorchvisionDetector, build_torchvision, check_name

    check_name(name)
    if own["weights"] is None:
        raise InputError(
            f"{name} needs weights",
            remedy="give a file of weights ({option:weights}); nothing is downloaded",
        )
    model = build_torchvision(name, own["weights"])
    with _name_file(str(own["weights"])):
        return TorchvisionDetector(model.to(place), **shared)


def _open_ultralytics(file: str, place: Any, own: dict[str, Any], shared: dict[str, Any]) -> Runner:
    path = Path(file)
    if path.suffix in (".yaml", ".yml"):
        raise InputError("contains a model definition without weights", file=file, remedy="give a .pt file")
    if path.suffix != ".pt":
        raise InputError("expected a .pt file of Ultralytics", file=file, remedy=f"write other models as {FORMS}")
    if not path.is_file():
        raise InputError("no such file", file=file, remedy=f"{_NO_DOWNLOADS}: check the path")
    import_framework("ultralytics")
    from probox.detect.ultralytics_detector import UltralyticsDetector, read_network

    size = own["size"]
    with _name_file(file):
        try:
            network, imgsz = read_network(path)
            return UltralyticsDetector(network.to(place), imgsz=imgsz if size is None else (size[1], size[0]), **shared)
        except InputError:
            raise
        except Exception as error:  # a model may lack any of its attributes
            raise InputError(f"expected a complete Ultralytics model: {describe_error(error)}") from None


def _open_transformers(folder: str, place: Any, own: dict[str, Any], shared: dict[str, Any]) -> Runner:
    path = Path(folder)
    for name, what in (("config.json", "model"), ("preprocessor_config.json", "image processor")):
        if not (path / name).is_file():
            wanted = "a folder written by save_pretrained" if not path.is_dir() else f"{name} in this folder"
            remedy = f"save the {what} there: {what.split()[-1]}.save_pretrained(DIR); nothing is downloaded"
            raise InputError(f"expected {wanted}", file=folder, remedy=remedy)
    library = import_framework("transformers")
    for pickled in sorted(path.glob("*.bin")):
        read_torch(pickled)  # old versions of transformers would execute code in the pickle
    from probox.detect.transformers_detector import TransformersDetector

    where = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = library.AutoConfig.from_pretrained(folder, **where)
        if getattr(config, "use_pretrained_backbone", False):
            config.use_pretrained_backbone = False  # the folder includes the weights of the backbone
        model, info = library.AutoModelForObjectDetection.from_pretrained(
            folder, config=config, output_loading_info=True, **where
        )
        processor = library.AutoImageProcessor.from_pretrained(folder, **where)
    except Exception as error:  # unsupported files, packages and versions raise many types
        raise InputError(f"transformers can't read this model: {describe_error(error)}", file=folder) from None
    absent = sorted(info["missing_keys"])
    if absent:
        raise InputError(
            f"{len(absent)} of the model's weights are missing from its files (first {absent[0]})",
            file=folder,
            remedy="save the whole model: model.save_pretrained(DIR)",
        )
    with _name_file(folder):
        return TransformersDetector(model.to(place), processor, **shared)


def _open_python(rest: str, given: dict[str, Any], family: str) -> Runner:
    """Return the detector that a function in a Python file creates."""
    file, _, name = rest.rpartition(":")
    if not Path(file).is_file():
        raise InputError("expected python:FILE.py:FUNCTION with an existing file", file=file or rest)
    keywords = {key: value for key, value in given.items() if value is not None}
    spec = importlib.util.spec_from_file_location(f"probox_own_{Path(file).stem}", file)
    if spec is None or spec.loader is None:
        raise InputError("expected a Python file", file=file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module here
    try:
        with contextlib.redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
            make = getattr(module, name, None)
            if not callable(make):
                raise InputError(f"has no function {name}", file=file, remedy="write python:FILE.py:FUNCTION")
            takes = inspect.signature(make).parameters
            runner = make(**keywords) if set(keywords) <= set(takes) else None
    except InputError:
        raise
    except Exception as error:  # arbitrary user code
        raise InputError(f"{name} fails: {type(error).__name__}: {describe_error(error)}", file=file) from None
    strange = sorted(set(keywords) - set(takes)) + ([] if family == "auto" else ["family"])
    if strange:
        raise InputError(f"{name} does not accept {', '.join(strange)}", file=file, remedy="leave out these options")
    missing = [key for key in ("family", "batch", "fingerprint", "candidates", "sample") if not hasattr(runner, key)]
    if missing:
        raise InputError(
            f"the object returned by {name} lacks {', '.join(missing)}", file=file, remedy="see probox.detect.Runner"
        )
    return cast(Runner, runner)


OPENERS: dict[str, Callable[[str, Any, dict[str, Any], dict[str, Any]], Runner]] = {
    "torchvision": _open_torchvision,
    "ultralytics": _open_ultralytics,
    "transformers": _open_transformers,
}


def _device(torch: Any, name: str | None) -> Any:
    wanted = name or "cpu"
    kind = wanted.split(":")[0]
    if kind not in DEVICES:
        raise InputError(f"expected the device to be one of {', '.join(DEVICES)}, but got {wanted!r:.40}")
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    try:
        if there[kind]:
            return torch.empty(0, device=wanted).device
    except (RuntimeError, AssertionError):
        pass
    raise InputError(f"torch device {wanted} is not available", remedy="use cpu")


@contextlib.contextmanager
def _name_file(file: str) -> Iterator[None]:
    """Add the model file to errors raised in the block."""
    try:
        yield
    except InputError as error:
        raise InputError(error.problem, file=file, remedy=error.remedy) from None
