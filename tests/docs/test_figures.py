"""Every figure of the documentation is made by a command, which docs/figures/README.md names."""

from __future__ import annotations

import importlib.util
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from probox_experiments import EXPERIMENTS

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures"
TABLE = {
    name: command
    for names, command in re.findall(
        r"^\| (`.+?`) \| `(.+?)`.* \|$", (FIGURES / "README.md").read_text(encoding="utf-8"), re.M
    )
    for name in re.findall("`(.+?)`", names)
}
"""Figures, and the command that makes each."""
SHOWN = {
    page: {
        (page.parent / target).resolve().relative_to(FIGURES).as_posix()
        for target in re.findall(
            r'[(" ]((?:[\w./-]+/)?figures/[\w./*-]+\.(?:png|jpg|svg|csv))', page.read_text("utf-8")
        )
    }
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
}


def test_every_figure_that_is_shown_is_listed_and_there() -> None:
    assert sum(map(len, SHOWN.values())) >= 40
    for page, names in SHOWN.items():
        for name in names:
            assert any(fnmatch(name, listed) for listed in TABLE), f"{page.name}: {name} is not in the table"
            assert (FIGURES / name).is_file(), f"{page.name}: {name}"


def test_every_figure_that_is_listed_is_there_and_shown() -> None:
    shown = set().union(*SHOWN.values())
    for name in TABLE:
        if "*" not in name:
            assert (FIGURES / name).is_file(), name
            assert name in shown, f"{name}: no page shows it"


def test_every_figure_that_is_there_is_listed() -> None:
    for path in FIGURES.rglob("*"):
        name = path.relative_to(FIGURES).as_posix()
        if path.suffix in (".png", ".jpg", ".svg", ".csv"):
            assert any(fnmatch(name, listed) for listed in TABLE), name


def test_every_command_is_one() -> None:
    experiments = {experiment.name for experiment in EXPERIMENTS}
    for name, command in TABLE.items():
        program, *words = command.split()
        if program == "probox":
            assert words[:2] == ["experiment", "run"]
            assert words[2] == Path(name).stem
            assert words[2] in experiments, name
        elif (FIGURES / name).parent.is_dir():
            assert (ROOT / words[0]).is_file(), name


def test_figures_of_experiments_are_kept_as_they_are_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pillow = pytest.importorskip("PIL.Image")
    spec = importlib.util.spec_from_file_location("figures_make", FIGURES / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    run, kept = tmp_path / "run", tmp_path / "kept"
    for folder in (run, kept / "experiments", kept / "training"):
        folder.mkdir(parents=True)
    (run / "plane.csv").write_text("new")
    (kept / "experiments" / "plane.csv").write_text("old")
    for name in ("plane", "training", "training-scenes", "scaling"):
        pillow.radial_gradient("L").resize((3200, 200)).save(run / f"{name}.png")
    for name in ("experiments/plane", "training/training", "training/training-scenes"):  # scaling is not kept
        (kept / f"{name}.png").touch()
    monkeypatch.setattr(make, "HERE", kept)
    make.experiments(run)
    shapes = {}
    for path in kept.rglob("*.png"):
        with pillow.open(path) as image:
            shapes[path.stem] = (image.size, image.mode)
    assert shapes == {
        "plane": ((1600, 100), "P"),
        "training": ((1920, 120), "P"),
        "training-scenes": ((1344, 84), "P"),
    }
    assert (kept / "experiments" / "plane.csv").read_text() == "new"
