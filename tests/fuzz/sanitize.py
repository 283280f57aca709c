"""A kernel with sanitizers, in a build folder of its own, for workers that watch every byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from . import KERNEL

__all__ = ["sanitized"]

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "sanitize"
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g"


def sanitized() -> dict[str, str]:
    """Build the kernel with ASan and UBSan (gcc); return the environment in which workers use it."""
    setup = [
        "cmake", "-S", str(ROOT), "-B", str(BUILD), f"-DCMAKE_CXX_FLAGS={FLAGS}", "-DCMAKE_CXX_COMPILER=g++",
        f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Debug",
    ]  # fmt: skip
    subprocess.run(setup, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(BUILD)], check=True, stdout=subprocess.DEVNULL)
    (kernel,) = BUILD.glob("_core*.so")
    return {
        KERNEL: str(kernel),
        # The C++ library too, or ASan could not see what is thrown.
        "LD_PRELOAD": " ".join(_library(name) for name in ("libasan.so", "libstdc++.so")),
        # Python keeps memory until its end; what cannot be had must come back as an error, as it does without ASan.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }


def _library(name: str) -> str:
    found = subprocess.run(["g++", f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    return os.path.realpath(found.stdout.strip())
