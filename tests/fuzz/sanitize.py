"""A kernel with sanitizers, in a build folder of its own, for processes that watch every byte or every thread."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from . import KERNEL

__all__ = ["SANITIZERS", "sanitized"]

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"


class Sanitizer(NamedTuple):
    """How gcc is told, which library must be loaded first, and what that library is told."""

    flags: str
    library: str
    environment: dict[str, str]


SANITIZERS = {
    "address": Sanitizer(
        "-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all",
        "libasan.so",
        {
            # Python keeps memory until its end; what cannot be had must come back as an error, as it does without ASan.
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=1024",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "PYTHONMALLOC": "malloc",
        },
    ),
    # Only the kernel is instrumented: what Python and other packages do among themselves is not looked at.
    "thread": Sanitizer(
        "-fsanitize=thread", "libtsan.so", {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1:exitcode=66"}
    ),
}


def sanitized(kind: str = "address") -> dict[str, str]:
    """Build the kernel with sanitizers (gcc); return the environment in which `tests.fuzz` has Python use it."""
    sanitizer = SANITIZERS[kind]
    build = BUILD / ("sanitize" if kind == "address" else f"sanitize-{kind}")
    setup = [
        "cmake", "-S", str(ROOT), "-B", str(build), f"-DCMAKE_CXX_FLAGS={sanitizer.flags} -fno-omit-frame-pointer -g",
        "-DCMAKE_CXX_COMPILER=g++", f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Debug",
        # The one build in which every file must include what it uses.
        "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
    ]  # fmt: skip
    subprocess.run(setup, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(
        ["cmake", "--build", str(build), "--parallel", str(os.cpu_count() or 1)], check=True, stdout=subprocess.DEVNULL
    )
    (kernel,) = build.rglob("_core*.so")
    return {
        KERNEL: str(kernel),
        # The C++ library too, or what is thrown could not be seen.
        "LD_PRELOAD": " ".join(_library(name) for name in (sanitizer.library, "libstdc++.so")),
        **sanitizer.environment,
    }


def _library(name: str) -> str:
    found = subprocess.run(["g++", f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    return os.path.realpath(found.stdout.strip())
