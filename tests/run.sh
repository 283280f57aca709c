#!/usr/bin/env bash
# The whole suite on a fresh machine: a virtual environment of its own, the linters, the type checker, the tests.
# Needs Python 3.10+ with venv and a C++17 compiler. PROBOX_PYTHON chooses the interpreter.
# The tests of the HTML explorer drive Chromium: on Debian, as root, it is installed if it is missing; elsewhere
# they are skipped without it. So are tests of detector frameworks (tests/frameworks.txt), of the graph of nudenet and of
# engines of clusters (tests/engines.txt) where these do not install, or with PROBOX_FRAMEWORKS=0.
# PROBOX_SLOW=1 also runs what starts an engine of a cluster once more, to see it fail.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! { command -v chromium && command -v chromedriver; } >/dev/null; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver; } \
      >/dev/null 2>&1 || echo "Chromium could not be installed: the explorer's tests are skipped" >&2
  fi
fi
"${PROBOX_PYTHON:-python3}" -m venv .venv-test
.venv-test/bin/python -m pip install --quiet --disable-pip-version-check ".[test]"
if [ "${PROBOX_FRAMEWORKS:-1}" != 0 ]; then
  .venv-test/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --retries 1 --timeout 20 \
    -r tests/frameworks.txt \
    >/dev/null 2>&1 || echo "Detector frameworks could not be installed: their tests are skipped" >&2
  # A real YOLOv8 graph comes with this package; what else it asks for is there already, or (a second OpenCV) in the way.
  .venv-test/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --retries 1 --timeout 20 \
    --no-deps nudenet \
    >/dev/null 2>&1 || echo "nudenet could not be installed: the tests of its graph are skipped" >&2
  .venv-test/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --retries 1 --timeout 20 \
    -r tests/engines.txt \
    >/dev/null 2>&1 || echo "Ray and Spark could not be installed: the tests of their recipes are skipped" >&2
fi
# Where npm is, the types of the explorer's scripts are checked by a test.
if command -v npm >/dev/null && [ ! -x node_modules/.bin/tsc ]; then
  npm ci --silent --no-audit --no-fund >/dev/null 2>&1 || echo "npm ci failed: types of the scripts are not checked" >&2
fi
.venv-test/bin/ruff check .
.venv-test/bin/ruff format --check .
.venv-test/bin/mypy
# Files of tests are shared out to as many processes as there are processors.
exec .venv-test/bin/pytest --numprocesses auto --dist loadfile "$@"
