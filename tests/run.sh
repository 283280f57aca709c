#!/usr/bin/env bash
# Run linters, type checker and tests in a new virtual environment (.venv-test).
# Needs Python 3.10+ with venv and a C++17 compiler. PROBOX_PYTHON chooses the interpreter.
# Tests of the HTML report need Chromium: on Debian, root installs it; elsewhere they are skipped without it. Tests of
# detector frameworks (tests/frameworks.txt) and of the graph of nudenet are skipped if these cannot be installed, or
# with PROBOX_FRAMEWORKS=0.
# Arguments are passed to pytest: `bash tests/run.sh -m "not browser and not torch"`. `--slow` also runs slow tests and
# installs cluster engines (tests/engines.txt).
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE # without bytecode, each process that tests start would compile its imports
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 # test processes share the processors: threads of libraries would only wait
if ! { command -v chromium && command -v chromedriver; } >/dev/null; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver; } \
      >/dev/null 2>&1 || echo "Chromium could not be installed: tests of the report are skipped" >&2
  fi
fi
"${PROBOX_PYTHON:-python3}" -m venv .venv-test
here=.venv-test/bin
[ -d "$here" ] || here=.venv-test/Scripts
pip="$here/python -m pip --quiet --disable-pip-version-check"
$pip install uv
install="$here/uv pip install --quiet --python $here/python"
if [ "${PROBOX_FRAMEWORKS:-1}" != 0 ]; then
  # pip may be configured for a CPU build of torch. The download runs while the kernel is compiled.
  $pip download --no-deps --retries 1 --timeout 20 --dest build/torch "$(grep '^torch==' tests/frameworks.txt)" &
  torch=$!
fi
$install ".[test]" ./experiments
$here/ruff check .
$here/ruff format --check .
# The type checker takes a minute and needs no frameworks: it runs in the background, and its result is printed last.
mkdir -p build
$here/mypy >build/mypy.log 2>&1 &
types=$!
if [ "${PROBOX_FRAMEWORKS:-1}" != 0 ]; then
  wait $torch && $install build/torch/torch-*.whl -r tests/frameworks.txt ||
    echo "Detector frameworks could not be installed: their tests are skipped" >&2
  # This package contains a real YOLOv8 graph. --no-deps: its second OpenCV would conflict with the installed one.
  $install --no-deps nudenet || echo "nudenet could not be installed: the tests of its graph are skipped" >&2
fi
case " $* " in
*" --slow "*)
  $install -r tests/engines.txt || echo "Ray and Spark could not be installed: the tests of their recipes are skipped" >&2
  ;;
esac
# With npm, a test checks the types of the report's scripts.
if command -v npm >/dev/null && [ ! -x node_modules/.bin/tsc ]; then
  npm ci --silent --no-audit --no-fund >/dev/null 2>&1 || echo "npm ci failed: types of the scripts are not checked" >&2
fi
# One test process per processor; each runs whole files.
status=0
$here/pytest --numprocesses auto --dist loadfile "$@" || status=$?
wait $types || status=$?
cat build/mypy.log
exit $status
