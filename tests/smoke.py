"""Does an installed probox work? Run from anywhere, with the interpreter it was installed for.

    python tests/smoke.py            # needs pillow, pytest and hypothesis beside probox
    python tests/smoke.py --stable   # and the kernel must be the one for all Pythons from 3.12 on

Wheels are tested by it on every platform. It looks at the command, at files that are written and read back, at the
kernel's numbers beside golden ones, and lets pytest run what must be the same to the bit everywhere.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = ["test_version.py", "test_core_stub.py", "cli/test_demo.py", "measures/pdq/test_instruction_sets.py"]
"""What pytest runs: these import nothing that probox itself does not need."""


def say(*arguments: str | Path) -> str:
    """Return what the installed command prints."""
    command = Path(sysconfig.get_path("scripts")) / ("probox.exe" if sys.platform == "win32" else "probox")
    return subprocess.run([command, *arguments], check=True, capture_output=True, encoding="utf-8").stdout


def check_kernel(stable: bool) -> str:
    """Return the name of the kernel's file, which must be an installed one."""
    from probox import _core

    kernel = Path(_core.__file__)
    assert not kernel.is_relative_to(HERE.parent / "src"), f"{kernel} is not installed"
    if stable and sys.version_info >= (3, 12):
        named = "_core.pyd" if sys.platform == "win32" else "_core.abi3.so"
        assert kernel.name == named, f"{kernel.name} is for one Python alone"
    return kernel.name


def check_files(folder: Path) -> None:
    """The demo's files must score as the demo does."""
    shown = {one["detections"]: one["summary"] for one in json.loads(say("demo", "--json"))["results"]}
    say("demo", "--save", folder)
    for name, expected in shown.items():
        summary = json.loads(say("evaluate", folder / "truth.json", folder / f"{name}.json", "--json"))["summary"]
        assert summary.keys() == expected.keys()
        for key, value in summary.items():
            assert math.isclose(value, expected[key], rel_tol=1e-9), (name, key, value, expected[key])


def check_numbers() -> None:
    """The kernel must give the published evaluator's heatmaps, with every instruction set of this machine."""
    import numpy as np

    from probox import Convention, _core
    from probox.measures.pdq.kernel import heatmap

    golden = HERE / "golden" / "heatmaps"
    expected = np.load(golden / "expected.npz")
    for name in _core.instruction_sets():
        _core.use_instruction_set(name)
        for case in json.loads((golden / "cases.json").read_text()):
            got = heatmap(case["bbox"], case["covars"], case["width"], case["height"], Convention())
            np.testing.assert_allclose(got, expected[f"h{case['id']}"], rtol=0, atol=1e-7, err_msg=case["kind"])


def main() -> int:
    """Check everything; return what pytest returns."""
    name = check_kernel("--stable" in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        check_files(Path(folder) / "demo")
    check_numbers()
    version, python = say("--version").strip(), sys.version.split()[0]
    print(f"{version} on Python {python} with {name}: command, files and numbers are right", flush=True)
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(str(HERE / test) for test in TESTS)]
    return subprocess.run(run, cwd=HERE.parent, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
