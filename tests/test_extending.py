"""The worked examples of docs/extending.md, and files and layers that CONTRIBUTING.md names."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.test_layers import LAYERS

import probox
from probox.cli import main
from probox.plots import Plots
from probox_experiments import running

ROOT = Path(__file__).resolve().parents[1]
ROOTS = (ROOT / "src" / "probox", ROOT / "experiments" / "src")
TEXT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


@dataclasses.dataclass(frozen=True)
class Example:
    """The blocks of one example by language; code and change begin with a comment that names their file."""

    title: str
    blocks: dict[str, str]

    def file(self, language: str) -> str:
        return self.blocks[language].splitlines()[0].removeprefix("# ")


def read_example(section: str) -> Example:
    title, rest = section.split("\n", 1)
    blocks = BLOCK.findall(rest)
    assert len(blocks) == len(dict(blocks)), f"{title}: expected one block of each language"
    return Example(title, dict(blocks))


EXAMPLE_PART, PLUGIN_PART = TEXT.split("\n## Parts of other")
SECTIONS = re.split(r"^## ", EXAMPLE_PART, flags=re.M)[1:]
EXAMPLES = {example.title: example for example in map(read_example, SECTIONS)}
PLUGIN = read_example(PLUGIN_PART)


def dotted(path: str) -> str:
    return path.rpartition("src/")[2].removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def changed(source: str, change: str) -> str:
    """Return a file with a change made: every hunk must be there, once."""
    for hunk in change.split("@@\n"):
        old, new = (
            "".join(line[1:] for line in hunk.splitlines(keepends=True) if line[0] in kept) for kept in (" -", " +")
        )
        assert source.count(old) == 1, f"not there once:\n{old}"
        source = source.replace(old, new)
    return source


def executed(name: str, code: str) -> types.ModuleType:
    module = types.ModuleType(name)
    exec(compile(code, f"docs/extending.md: {name}", "exec"), module.__dict__)
    return module


Add = Callable[[str, str], types.ModuleType]


@pytest.fixture
def add(monkeypatch: pytest.MonkeyPatch) -> Add:
    """Return a function that adds an example to probox until the test ends, and returns its module."""

    def add_example(title: str, registry: str) -> types.ModuleType:
        example = EXAMPLES[title]
        name, code = dotted(example.file("python")), example.blocks["python"]
        assert importlib.util.find_spec(name) is None
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        package, _, own = name.rpartition(".")
        monkeypatch.setattr(importlib.import_module(package), own, module, raising=False)
        exec(compile(code, f"docs/extending.md: {name}", "exec"), module.__dict__)

        path, change = example.file("diff"), example.blocks["diff"].split("\n", 1)[1]
        source = (ROOT / path).read_text(encoding="utf-8")
        new = getattr(executed(dotted(path), changed(source, change)), registry)
        there = importlib.import_module(dotted(path))
        if isinstance(new, dict):  # others hold the same dictionary
            for key in new.keys() - getattr(there, registry).keys():
                monkeypatch.setitem(getattr(there, registry), key, new[key])
        else:
            monkeypatch.setattr(there, registry, new)
        return module

    return add_example


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(demo_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command in a folder that has the demo's files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "demo").symlink_to(demo_files)

    def run_command(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main([*map(str, words)])
        streams = capsys.readouterr()
        return int(stopped.value.code or 0), streams.out, streams.err

    return run_command


def run_documented(title: str, run: Run) -> None:
    """Run an example's commands; every line that the document shows must come out, "..." standing for anything."""
    said: list[str] = []
    for command in EXAMPLES[title].blocks["sh"].splitlines():
        program, *words = shlex.split(command)
        status, out, err = run(*words)
        assert (program, status) == ("probox", 0), err
        said += [line.rstrip() for line in (out + err).splitlines()]
    check_shown(EXAMPLES[title].blocks["text"], said)


def check_shown(text: str, printed: list[str]) -> None:
    """Compare what the document shows with what was printed; "..." stands for anything."""
    for line in text.splitlines():
        pattern = ".*".join(map(re.escape, line.split("...")))
        assert any(re.fullmatch(pattern, one) for one in printed), f"{line!r} is not in {printed}"


def answer(run: Run, *words: object) -> Any:
    status, out, err = run(*words, "--json")
    assert status == 0, err
    return json.loads(out)


# --- the examples ---


def test_a_metric(add: Add, run: Run) -> None:
    add("A metric", "MEASURES")
    run_documented("A metric", run)
    boxes = [[10, 10, 30, 30], [40, 10, 60, 30], [70, 10, 90, 30], [10, 60, 30, 80]]
    truth = probox.GroundTruth.from_boxes(["cup", "dog", "car"], {7: (100, 100)}, [7] * 4, boxes, [0, 0, 0, 1])
    found = probox.Detections(
        classes=["cup", "dog"], image_ids=[7, 7], boxes=boxes[2:], label_probs=[[0.9, 0.1], [0.2, 0.8]]
    )
    result = probox.evaluate(truth, found)
    assert result.summary()["miss_rate"] == 2 / 4
    groups = {name: group["miss_rate"] for name, group in result.per_class().items()}
    assert groups == {"cup": 2 / 3, "dog": 0.0, "car": pytest.approx(np.nan, nan_ok=True)}
    told = answer(run, "evaluate", "demo/truth.json", "demo/probabilistic.json")["summary"]
    assert told["miss_rate"] == told["FN"] / (told["TP"] + told["FN"])
    scene = probox.evaluate("demo/truth.json", "demo/probabilistic.json")
    assert (scene.per_class()["ring"]["miss_rate"], scene.per_size()["large"]["miss_rate"]) == (0.2, 0.2)


def test_a_format(add: Add, run: Run, tmp_path: Path) -> None:
    add("A format", "FORMATS")
    run_documented("A format", run)
    truth = probox.read_truth("demo/truth.json")
    first, again = (probox.read_detections(path, truth) for path in ("demo/probabilistic.json", "probabilistic.tsv"))
    np.testing.assert_array_equal(again.boxes, first.boxes)
    np.testing.assert_array_equal(again.label_probs, first.label_probs)
    assert run("convert", "demo/deterministic.json", "deterministic.tsv", "--truth", "demo/truth.json")[0] == 0
    told = [
        answer(run, "evaluate", "demo/truth.json", path) for path in ("deterministic.tsv", "demo/deterministic.json")
    ]
    assert told[0]["summary"] == told[1]["summary"]

    file = tmp_path / "deterministic.tsv"
    lines = file.read_text().splitlines()
    cells = lines[1].split("\t")
    broken = ["1\t10", "\t".join(["a", *cells[1:]]), "\t".join(["9" * 30, *cells[1:]])]
    upside_down = "\t".join([cells[0], "90", cells[2], "80", *cells[4:]])
    file.write_text("\n".join([lines[0], upside_down, *broken, "\t".join(["-7", *cells[1:]]), *lines[2:]]))
    status, out, _ = run("validate", "demo/truth.json", file)
    assert status == 1
    for part in ("broken line (3)", "line 3: expected an image id and 11 numbers", "line 2: expected x1 <= x2"):
        assert part in out
    assert "unknown image (1)" in out
    status, _, said = run("evaluate", "demo/truth.json", file)
    assert (status, "deterministic.tsv" in said, "line 3" in said) == (1, True, True)
    file.write_text("mine")
    status, _, said = run("convert", "demo/deterministic.json", file, "--truth", "demo/truth.json")
    assert (status, "does not contain tab-separated detections" in said) == (1, True)
    assert file.read_text() == "mine"


def test_a_detector_family(add: Add, run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    pytest.importorskip("PIL.Image")
    from probox.detect.families import choose_family
    from probox.detect.onnx_runtime import Detector

    add("A detector family", "FAMILIES")
    make_corners_graph(tmp_path)
    run_documented("A detector family", run)

    # An input pixel is 200 / 64 pixels of the image.
    (said,) = json.loads((tmp_path / "found.json").read_text())["detections"]
    (found,) = said
    np.testing.assert_allclose(found["bbox"], [25, 12.5, 75, 37.5])
    np.testing.assert_allclose(found["label_probs"], [0.1, 0.7, 0.2], rtol=1e-6)
    scale = (200 / 64) ** 2
    np.testing.assert_allclose(found["covars"], scale * np.array([np.diag([1, 4]), np.diag([9, 16])]), rtol=1e-6)
    signature = Detector(tmp_path / "corners.onnx", classes=("cup", "dog", "car")).family.signature
    assert choose_family(signature, "auto", ("cup", "dog", "car")).name == "corners"


def make_corners_graph(folder: Path) -> None:
    """Write the graph of a detector of the family of the example, a photo, and the names of the classes."""
    image = pytest.importorskip("PIL.Image")
    from tests.detect.graphs import fixed_outputs

    corners, scores = np.zeros((1, 2, 4), np.float32), np.zeros((1, 2, 3), np.float32)
    corners[0, 0], scores[0, 0] = [8, 4, 24, 12], [0.1, 0.7, 0.2]
    variances = np.log(np.array([[[1, 4, 9, 16], [1, 1, 1, 1]]], np.float32))
    outputs = {"corners": corners, "log_variances": variances, "scores": scores}
    fixed_outputs(folder / "corners.onnx", {"image": [1, 3, 64, 64]}, outputs)
    (folder / "photos").mkdir()
    image.fromarray(np.full((100, 200, 3), 90, np.uint8)).save(folder / "photos" / "7.png")
    (folder / "names.txt").write_text("cup\ndog\ncar\n")


@pytest.mark.slow
def test_a_plot(add: Add, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(Plots, "confidences", add("A plot", "PLOTS").PLOT, raising=False)
    run_documented("A plot", run)
    assert (tmp_path / "plots" / "confidences.png").read_bytes().startswith(b"\x89PNG")
    result = probox.Evaluation.load(tmp_path / "results" / "probabilistic")
    axes = result.plot.confidences()
    table = result.detections
    (patch,) = axes.patches
    values, edges, _ = patch.get_data()
    assert values.sum() == len(table)
    assert values[-1] == (table.confidences >= edges[-2]).sum()
    assert result.plot.confidences.__doc__.startswith("Plot ")


def test_an_experiment(add: Add, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    add("An experiment", "EXPERIMENTS")
    run_documented("An experiment", run)
    summary_of = running.summary_of

    def broken(truth: probox.GroundTruth, *rest: Any) -> dict[str, float]:
        """Count the image's pixels in the background, a little."""
        measured = summary_of(truth, *rest)
        return {**measured, "PDQ": measured["PDQ"] - 1e-8 * float(truth.dataset.widths[0] ** 2)}

    monkeypatch.setattr(running, "summary_of", broken)
    told = answer(run, "experiment", "run", "image-size", "--out", "broken")
    assert (told["claims"], told["holds"]) == (1, 0)


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which the distribution of the document was installed."""
    pytest.importorskip("hatchling")
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    (source / "probox_mine").mkdir()
    (source / "probox_mine" / "__init__.py").touch()
    (source / "pyproject.toml").write_text(PLUGIN.blocks["toml"], encoding="utf-8")
    (source / PLUGIN.file("python")).write_text(PLUGIN.blocks["python"], encoding="utf-8")
    for title in ("A metric", "A format", "A detector family"):
        name = Path(EXAMPLES[title].file("python")).name
        (source / "probox_mine" / name).write_text(EXAMPLES[title].blocks["python"], encoding="utf-8")
    options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", str(site), str(source)], check=True)
    return site


def test_a_distribution_adds_parts(plugin: Path, demo_files: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    make_corners_graph(tmp_path)
    (tmp_path / "demo").symlink_to(demo_files)
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(plugin), os.environ.get("PYTHONPATH", "")]),
        "COLUMNS": "100",
    }
    lines: list[str] = []
    for command in PLUGIN.blocks["sh"].splitlines():
        program, *words = shlex.split(command)
        done = subprocess.run(
            [sys.executable, "-m", program, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        )
        lines += [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
    check_shown(PLUGIN.blocks["text"], lines)


# --- the rest of the document ---


def test_examples_are_gone_after_their_tests() -> None:
    for example in EXAMPLES.values():
        assert dotted(example.file("python")) not in sys.modules


def test_the_table_names_the_registries() -> None:
    listed = re.findall(r"^\| \[(.+?)\]\(#.+?\) \| `(.+?)` \|$", TEXT, re.M)
    assert [name for name, _ in listed] == [title[0].lower() + title[1:] for title in EXAMPLES]
    for (_, registry), example in zip(listed, EXAMPLES.values(), strict=True):
        assert (ROOT / example.file("diff")) in {root / registry for root in ROOTS}


def test_a_change_that_does_not_fit_is_seen() -> None:
    assert changed("a\nb\nc\n", " a\n-b\n+B\n@@\n c\n+d\n") == "a\nB\nc\nd\n"
    with pytest.raises(AssertionError, match="not there once"):
        changed("a\nb\n", " b\n+c\n c\n")


def test_the_map_has_every_layer() -> None:
    rows = re.findall(r"^\| (`.*?) \| .*\|$", CONTRIBUTING.split("Methods of results, such as")[0], re.M)
    layers = [{name.removesuffix("/").removesuffix(".py") for name in re.findall(r"`(.+?)`", row)} for row in rows]
    assert layers == [set(layer) for layer in LAYERS]
    for folder in filter(Path.is_dir, (ROOT / "cpp").iterdir()):
        assert f"\n| `{folder.name}/` |" in CONTRIBUTING


def test_files_that_are_named_are_there() -> None:
    prose = BLOCK.sub("", CONTRIBUTING + TEXT)
    named = re.findall(r"`([\w/]+\.(?:py|pyi|hpp|js|sh))`", prose)
    assert len(named) > 30
    for name in named:
        assert any((root / name).exists() for root in (ROOT, *ROOTS)), name
