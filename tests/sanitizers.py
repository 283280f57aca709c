"""The kernel under sanitizers, used by a part of the suite in place of the installed one.

    python -m tests.sanitizers address                        # ASan and UBSan
    python -m tests.sanitizers thread                         # TSan
    python -m tests.sanitizers address tests/measures/pdq -x  # these tests, and what else pytest should be told

Needs gcc and cmake, and nanobind beside `.[test]` in the environment. The kernel is built into `build/sanitize`;
nothing that is installed changes.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys

from .fuzz.sanitize import SANITIZERS, sanitized

CHOSEN = {
    # What works on pixels, and what reads bytes that somebody else wrote.
    "address": [
        "tests/measures/pdq",
        "tests/measures/boxes",
        "tests/measures/pmb",
        "tests/formats/coco",
        "tests/formats/rvc1",
        "tests/formats/test_json.py",
        "tests/formats/test_numbers.py",
        "tests/formats/test_pieces.py",
        "tests/formats/test_writers.py",
        "tests/fuzz/test_bindings.py",
        "tests/fuzz/test_found.py",
    ],
    # What shares its work out to threads.
    "thread": [
        "tests/measures/pdq/test_workers.py",
        "tests/measures/pdq/test_dense.py",
        "tests/formats/test_pieces.py",
    ],
}
"""The tests that are run unless others are named."""


def main() -> int:
    """Build, run, and return what pytest returns."""
    if len(sys.argv) < 2 or sys.argv[1] not in SANITIZERS:
        print(__doc__, file=sys.stderr)
        return 2
    kind, *arguments = sys.argv[1:]
    environment = {**os.environ, **sanitized(kind)}
    # `-p tests.fuzz` loads the other kernel before anything imports probox.
    command = [sys.executable, "-m", "pytest", "-p", "tests.fuzz", *(arguments or CHOSEN[kind])]
    if kind == "thread" and shutil.which("setarch"):
        # TSan wants certain addresses, which a random layout may give away.
        command = ["setarch", platform.machine(), "-R", *command]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
