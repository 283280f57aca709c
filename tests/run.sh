#!/usr/bin/env bash
# The whole suite on a fresh machine: a virtual environment of its own, the linters, the type checker, the tests.
# Needs Python 3.10+ with venv and a C++17 compiler. PROBOX_PYTHON chooses the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
"${PROBOX_PYTHON:-python3}" -m venv .venv-test
.venv-test/bin/python -m pip install --quiet --disable-pip-version-check ".[test]"
.venv-test/bin/ruff check .
.venv-test/bin/ruff format --check .
.venv-test/bin/mypy
exec .venv-test/bin/pytest "$@"
