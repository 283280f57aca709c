"""Damaged and hostile files, made from valid ones by the million: see `python -m tests.fuzz --help`."""

from __future__ import annotations

import importlib.util
import os
import sys

KERNEL = "PROBOX_FUZZ_KERNEL"
"""The variable that names another build of the kernel, which is then used instead of the installed one."""

if KERNEL in os.environ:
    _name = "probox._core"
    # Once in a process: pytest may import this package by a second name, and two kernels know nothing of each other's
    # classes.
    if _name not in sys.modules:
        _spec = importlib.util.spec_from_file_location(_name, os.environ[KERNEL])
        assert _spec is not None
        assert _spec.loader is not None
        sys.modules[_name] = importlib.util.module_from_spec(_spec)
        _spec.loader.exec_module(sys.modules[_name])
    assert sys.modules[_name].__file__ == os.environ[KERNEL], "the installed kernel was imported first"
