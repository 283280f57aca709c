"""A kernel with sanitizers, in a build folder of its own, for workers that watch every byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["sanitized"]

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "sanitize"
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1"


def sanitized() -> dict[str, str]:
    """Build the kernel with ASan and UBSan; return the environment in which Python uses it."""
    package = BUILD / "site" / "probox"
    command = [
        "cmake", "-S", str(ROOT), "-B", str(BUILD / "cmake"), f"-DCMAKE_CXX_FLAGS={FLAGS}",
        f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
    ]  # fmt: skip
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(BUILD / "cmake")], check=True, stdout=subprocess.DEVNULL)
    package.mkdir(parents=True, exist_ok=True)
    for source in (ROOT / "src" / "probox").iterdir():  # the package, by links, beside another kernel
        link = package / source.name
        if not source.name.startswith("_core") and not link.exists():
            link.symlink_to(source)
    for kernel in (BUILD / "cmake").glob("_core*.so"):
        link = package / kernel.name
        link.unlink(missing_ok=True)
        link.symlink_to(kernel)
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True)
    return {
        "LD_PRELOAD": os.path.realpath(library.stdout.strip()),
        "PYTHONPATH": str(BUILD / "site"),
        # Python keeps memory until its end; NumPy and Arrow ask for more than they use.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:handle_segv=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "PYTHONMALLOC": "malloc",
    }
