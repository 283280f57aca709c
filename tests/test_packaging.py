"""What releases are made of: workflows, scripts, bounds and classifiers agree, and name what is there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PYTHONS = [
    classifier.rsplit(" ", 1)[1]
    for classifier in PROJECT["project"]["classifiers"]
    if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", classifier)
]
NAMED = re.compile(r"(?:^|[\s\"'])((?:[\w.]+/)+[\w.]+\.(?:sh|py|txt))")
MODULE = re.compile(r"python -m ((?:tests|benchmarks)[\w.]*)")


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    return loaded


def commands(path: Path) -> list[str]:
    jobs = workflow(path.name)["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def test_there_are_workflows_for_all_that_is_checked() -> None:
    assert [path.stem for path in WORKFLOWS] == ["benchmarks", "docs", "fuzz", "sanitizers", "tests", "wheels"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_little_and_end(path: Path) -> None:
    loaded = workflow(path.name)
    assert loaded["permissions"] == {"contents": "read"}
    assert "group" in loaded["concurrency"]
    for name, job in loaded["jobs"].items():
        assert job["timeout-minutes"] <= 350, name
        allowed = {"contents": "read", "id-token": "write"} if name == "release" else loaded["permissions"]
        assert job.get("permissions", loaded["permissions"]) == allowed


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_to_commits_and_say_their_version(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        if "uses:" in line:
            assert re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_what_exists(path: Path) -> None:
    called = 0
    for command in commands(path):
        for name in NAMED.findall(command):
            if not name.startswith("dist/"):
                assert (ROOT / name).is_file(), f"{path.name}: {name}"
                called += 1
        for module in MODULE.findall(command):
            place = ROOT.joinpath(*module.split("."))
            assert place.with_suffix(".py").is_file() or (place / "__main__.py").is_file(), f"{path.name}: {module}"
            called += 1
        for folder in re.findall(r"\btests/[\w/]+(?=\s|$)", command):
            assert (ROOT / folder).is_dir(), f"{path.name}: {folder}"
    assert called or "cibuildwheel" in str(commands(path))


def test_expressions_in_commands_are_of_the_matrix_alone() -> None:
    """What others can write, such as names of branches, goes through variables, never into the text of a script."""
    for path in WORKFLOWS:
        for command in commands(path):
            for expression in re.findall(r"\$\{\{(.*?)\}\}", command):
                assert expression.strip().startswith("matrix."), f"{path.name}: {command}"


def test_every_python_that_is_claimed_is_tested_and_has_wheels() -> None:
    assert workflow("tests.yml")["jobs"]["suite"]["strategy"]["matrix"]["python"] == PYTHONS
    built = PROJECT["tool"]["cibuildwheel"]["build"].split()
    assert built == [f"cp{version.replace('.', '')}-*" for version in PYTHONS]
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"
    assert PROJECT["tool"]["mypy"]["python_version"] == PYTHONS[0]
    assert workflow("tests.yml")["jobs"]["lowest"]["steps"][1]["with"]["python-version"] == PYTHONS[0]
    assert f"python{PYTHONS[0]}" in (ROOT / "tests" / "lowest.sh").read_text(encoding="utf-8")


def test_every_dependency_has_a_lowest_version() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    for requirement in [*PROJECT["project"]["dependencies"], *(one for extra in extras.values() for one in extra)]:
        assert requirement.startswith("probox[") or re.search(r">=\d", requirement), requirement


def test_the_same_package_has_the_same_bound_everywhere() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    bounds: dict[str, set[str]] = {}
    for requirement in [*PROJECT["project"]["dependencies"], *(one for extra in extras.values() for one in extra)]:
        if not requirement.startswith("probox["):
            name, bound = requirement.split(">=")
            bounds.setdefault(re.sub(r"\[.*", "", name), set()).add(bound)
    assert {name: bound for name, bound in bounds.items() if len(bound) > 1} == {}


def test_wheels_are_tested_with_files_that_exist() -> None:
    settings = PROJECT["tool"]["cibuildwheel"]
    assert all((ROOT / name).exists() for name in settings["test-sources"])
    (script,) = NAMED.findall(settings["test-command"])
    assert (ROOT / script).is_file()
    assert script.split("/")[0] in settings["test-sources"]


def test_what_the_image_is_built_from_is_not_ignored() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    ignored = {line for line in lines if line and not line.startswith("#")}
    needed = {"pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "src", "cpp"}
    assert all((ROOT / name).exists() for name in needed)
    assert not needed & ignored


PLATFORMS = [
    "manylinux_2_27_x86_64.manylinux_2_28_x86_64",
    "manylinux_2_27_aarch64.manylinux_2_28_aarch64",
    "musllinux_1_2_x86_64",
    "musllinux_1_2_aarch64",
    "macosx_11_0_arm64",
    "macosx_11_0_x86_64",
    "win_amd64",
]


@pytest.mark.skipif(sys.platform == "win32" or shutil.which("bash") is None, reason="needs bash")
class TestRelease:
    """`.github/scripts/check_release.sh`, on files that have the right names."""

    @pytest.fixture
    def dist(self, tmp_path: Path) -> Path:
        from probox.version import __version__

        names = [f"probox-{__version__}.tar.gz"]
        for python in ("cp310-cp310", "cp311-cp311", "cp312-abi3"):
            names += [f"probox-{__version__}-{python}-{platform}.whl" for platform in PLATFORMS]
        for name in names:
            (tmp_path / name).touch()
        return tmp_path

    def check(self, tag: str, dist: Path) -> tuple[int, str]:
        script = ROOT / ".github" / "scripts" / "check_release.sh"
        run = subprocess.run(["bash", script, tag, dist], check=False, capture_output=True, text=True)
        return run.returncode, run.stderr

    def test_everything_is_there(self, dist: Path) -> None:
        from probox.version import __version__

        assert self.check(f"v{__version__}", dist) == (0, "")

    def test_another_tag(self, dist: Path) -> None:
        code, said = self.check("v99.0.0", dist)
        assert code == 1
        assert "the tag is v99.0.0" in said

    def test_a_wheel_too_few_and_one_too_many(self, dist: Path) -> None:
        from probox.version import __version__

        next(dist.glob("*cp311*musllinux*aarch64*")).unlink()
        (dist / "probox-99.0.0-cp312-abi3-win_amd64.whl").touch()
        code, said = self.check(f"v{__version__}", dist)
        assert code == 1
        assert said.splitlines() == [
            "not of version " + __version__ + ": probox-99.0.0-cp312-abi3-win_amd64.whl",
            "missing: cp311-cp311 for musllinux*_aarch64",
        ]
