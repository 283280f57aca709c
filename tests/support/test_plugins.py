"""Other distributions: their parts are found by name, and missing ones are named with what installs them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import metadata
from pathlib import Path

import pytest

import probox
from probox.cli import main
from probox.detect import families
from probox.errors import InputError
from probox.formats import registry as formats
from probox.measures import registry as measures
from probox.support import plugins
from probox.support.optional import check_installed, pip_command, require
from probox.support.plugins import PluginWarning

CODE = """
import click
from probox.detect.families.base import Family
from probox.formats.format import DetectionFormat
from probox.measures.measure import Column, Measure

def make(name, key):
    return Measure(name=name, needs=frozenset(), columns=(Column(key=key),), summary=lambda result: {key: 1.0})

ONE, AGAIN, TAKEN, COLUMN = make("one", "one"), make("one", "two"), make("PDQ".lower(), "x"), make("other", "PDQ")
FORMAT = DetectionFormat(name="mine", title="Mine", suffixes=(".mine",), sniff=bool, read=None, write=print)
ENDING = DetectionFormat(name="mine", title="Mine", suffixes=(".coco.json",), sniff=bool, read=None)
class Mine(Family):
    name = "mine"
class Yolo(Family):
    name = "yolov8"
@click.command()
def command():
    click.echo("called")
"""

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that installs a distribution with these entry points, as `group: name = module:object`."""
    caches = (plugins._declared_groups, plugins.find_plugins, measures._plugin_measures, formats._plugin_formats)
    caches = (*caches, families._plugin_families)

    def clear() -> None:
        for cache in caches:
            cache.cache_clear()

    def install_distribution(*entries: str, **modules: str) -> Path:
        info = tmp_path / "added_parts-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: added-parts\nVersion: 1.0\n")
        lines = [f"[probox.{group}]\n{entry}\n" for group, _, entry in (words.partition(": ") for words in entries)]
        (info / "entry_points.txt").write_text("".join(lines))
        for name, code in {"added_parts": CODE, **modules}.items():
            (tmp_path / f"{name}.py").write_text(code)
        clear()
        return tmp_path

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "added_parts", raising=False)
    yield install_distribution
    clear()
    for name in ("added_parts", "broken_part"):
        sys.modules.pop(name, None)


def run(site: Path, *words: str) -> tuple[int, str, str]:
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    code = "import sys; from probox.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    printed, _, modules = done.stderr.rstrip("\n").rpartition("\n")
    return done.returncode, done.stdout + printed, modules


def test_help_lists_commands_and_loads_nothing(install: Install) -> None:
    site = install("commands: mine = added_parts:command", "measures: one = added_parts:ONE")
    status, printed, modules = run(site, "--help")
    assert status == 0
    assert "  mine        Added by added-parts." in printed.splitlines()
    assert not {"added_parts", "numpy"} & set(modules.split())
    assert run(site, "mine")[:2] == (0, "called\n")


def test_without_plugins_nothing_is_imported_to_look_for_them() -> None:
    code = "import sys; from probox.support import plugins; plugins.find_plugins('probox.none')\n"
    code += "print('importlib.metadata' in sys.modules)"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_parts_come_last_in_registries(install: Install) -> None:
    install("measures: one = added_parts:ONE", "formats: mine = added_parts:FORMAT", "detectors: m = added_parts:Mine")
    assert measures.measure_names() == (*(measure.name for measure in measures.MEASURES), "one")
    assert formats.format_of_name("found.mine") is formats.all_formats()[-1]
    assert list(families.all_families()) == [*families.FAMILIES, "mine"]
    assert measures.all_measures() is not measures.MEASURES


@pytest.mark.parametrize(
    ("entry", "get", "message"),
    [
        ("measures: a = added_parts:TAKEN", measures.all_measures, "already in use: pdq"),
        ("measures: a = added_parts:COLUMN", measures.all_measures, "already in use: PDQ"),
        ("measures: a = added_parts:command", measures.all_measures, "expected a Measure, but got <Command"),
        ("measures: a = added_parts:nothing", measures.all_measures, "cannot be loaded: AttributeError: "),
        ("measures: a = broken_part:x", measures.all_measures, "cannot be loaded: OSError: no disk here; update or"),
        ("formats: a = added_parts:ENDING", formats.all_formats, r"already in use: \.coco\.json \(detections\)"),
        ("formats: a = left_out:x", formats.all_formats, "cannot be loaded: ModuleNotFoundError: No module"),
        ("detectors: a = added_parts:Yolo", families.all_families, "already in use: yolov8"),
        ("detectors: a = added_parts:ONE", families.all_families, "expected a subclass of Family, but got Measure"),
    ],
)
def test_a_part_that_cannot_be_used_is_left_out_in_one_line(
    install: Install, entry: str, get: Callable[[], object], message: str
) -> None:
    before = len(get())  # type: ignore[arg-type]
    install(entry, broken_part="raise OSError('no disk\\nhere')")
    group = entry.partition(":")[0]
    with pytest.warns(
        PluginWarning, match=rf"^added-parts: probox\.{group}: a: {message}.*; the plugin is ignored$"
    ) as said:
        assert len(get()) == before  # type: ignore[arg-type]
    assert len(said) == 1
    assert len(get()) == before  # type: ignore[arg-type]


def test_of_two_parts_with_one_name_the_first_is_taken(install: Install) -> None:
    install("measures: a = added_parts:ONE\nb = added_parts:AGAIN")
    with pytest.warns(PluginWarning, match="added-parts: probox.measures: b: already in use: one"):
        assert measures.all_measures()[-1].columns[0].key == "one"


def test_a_broken_command_breaks_no_other(install: Install) -> None:
    site = install("commands: mine = broken_part:command\ndemo = added_parts:command", broken_part="import nowhere")
    status, printed, _ = run(site, "mine")
    assert status == 1
    assert printed == (
        "probox: added-parts: probox.commands: mine: cannot be loaded: ModuleNotFoundError: No module named 'nowhere'; "
        "update or uninstall added-parts"
    )
    assert "called" not in run(site, "demo", "--help")[1]


def test_a_broken_measure_breaks_no_command(install: Install) -> None:
    site = install("measures: mine = broken_part:x", broken_part="raise SystemExit(5)")
    status, printed, _ = run(site, "demo", "--json")
    assert status == 0
    assert "probox: warning: added-parts: probox.measures: mine: cannot be loaded: SystemExit: 5" in printed


def test_the_command_that_installs_experiments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("probox.cli.find_plugins", lambda group: ())
    for words in (["experiment"], ["experiment", "run", "all"], ["experiment", "--help"]):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("probox: experiment is a command of another distribution; install it in a clone")
        assert line.endswith("pip install ./experiments")
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "experiment" not in capsys.readouterr().out


def test_a_module_that_is_there_is_returned() -> None:
    import json.decoder

    assert require("json.decoder", extra="report") is json.decoder


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("PIL.Image", "this needs Pillow; install it with: pip install 'probox[report]'"),
        ("matplotlib.pyplot", "this needs matplotlib; install it with: pip install 'probox[report]'"),
    ],
)
def test_a_missing_one_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch, module: str, told: str) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))  # as in an environment that was activated
    monkeypatch.setitem(sys.modules, module.split(".")[0], None)
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(InputError) as caught:
        require(module, extra="report")
    assert str(caught.value) == told


def test_the_pip_that_is_named_is_that_of_this_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    elsewhere = tmp_path / "pip"
    elsewhere.write_text("#!/bin/sh\n")
    elsewhere.chmod(0o755)
    for path in (tmp_path, tmp_path / "nowhere"):
        monkeypatch.setenv("PATH", str(path))
        assert pip_command() == f"{shlex.quote(sys.executable)} -m pip"
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert pip_command() == "pip"


def test_every_extra_that_is_advised_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in Path(probox.__file__).parent.rglob("*.py"))
    advised = {*re.findall(r'extra="(\w+)"', source), *re.findall(r'"extra": "(\w+)"', source)}
    assert {"detect", "parquet", "report"} <= advised
    assert advised <= set(metadata("probox").get_all("Provides-Extra"))


def test_all_that_are_missing_are_named_at_once_and_none_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    there = "this"  # of the standard library, and nobody loads it
    with pytest.raises(InputError) as caught:
        check_installed(("nowhere_one", there, "nowhere_two"), extra="detect", purpose="running detectors needs")
    remedy = "install them with: pip install 'probox[detect]'"
    assert str(caught.value) == f"running detectors needs nowhere_one, nowhere_two; {remedy}"
    check_installed((there,), extra="detect")
    assert there not in sys.modules
