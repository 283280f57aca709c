#!/usr/bin/env bash
# The whole suite on a fresh machine: a virtual environment of its own, the linters, the type checker, the tests.
# Needs Python 3.10+ with venv and a C++17 compiler. PROBOX_PYTHON chooses the interpreter.
# The tests of the HTML explorer drive Chromium: on Debian, as root, it is installed if it is missing; elsewhere
# they are skipped without it. So are tests of detector frameworks (tests/frameworks.txt) and of the graph of nudenet
# where these do not install, or with PROBOX_FRAMEWORKS=0.
# Arguments are pytest's: `bash tests/run.sh -m "not browser and not torch"`. With `--slow`, what takes long runs too, and
# engines of clusters (tests/engines.txt) are installed for it.
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE # or each of the many processes that tests start compiles all it imports
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 # processes share the processors: threads of libraries only wait for each other
if ! { command -v chromium && command -v chromedriver; } >/dev/null; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver; } \
      >/dev/null 2>&1 || echo "Chromium could not be installed: the explorer's tests are skipped" >&2
  fi
fi
"${PROBOX_PYTHON:-python3}" -m venv .venv-test
here=.venv-test/bin
[ -d "$here" ] || here=.venv-test/Scripts
pip="$here/python -m pip --quiet --disable-pip-version-check"
$pip install uv
install="$here/uv pip install --quiet --python $here/python"
if [ "${PROBOX_FRAMEWORKS:-1}" != 0 ]; then
  # torch by pip, which may have been told of a build without CUDA; it comes while the kernel is compiled.
  $pip download --no-deps --retries 1 --timeout 20 --dest build/torch "$(grep '^torch==' tests/frameworks.txt)" &
  torch=$!
fi
$install ".[test]" ./experiments
$here/ruff check .
$here/ruff format --check .
# The type checker takes a minute of one processor, and knows nothing of frameworks: it runs beside what follows, and has
# its say in the end.
mkdir -p build
$here/mypy >build/mypy.log 2>&1 &
types=$!
if [ "${PROBOX_FRAMEWORKS:-1}" != 0 ]; then
  wait $torch && $install build/torch/torch-*.whl -r tests/frameworks.txt ||
    echo "Detector frameworks could not be installed: their tests are skipped" >&2
  # A real YOLOv8 graph comes with this package; what else it asks for is there already, or (a second OpenCV) in the way.
  $install --no-deps nudenet || echo "nudenet could not be installed: the tests of its graph are skipped" >&2
fi
case " $* " in
*" --slow "*)
  $install -r tests/engines.txt || echo "Ray and Spark could not be installed: the tests of their recipes are skipped" >&2
  ;;
esac
# Where npm is, the types of the explorer's scripts are checked by a test.
if command -v npm >/dev/null && [ ! -x node_modules/.bin/tsc ]; then
  npm ci --silent --no-audit --no-fund >/dev/null 2>&1 || echo "npm ci failed: types of the scripts are not checked" >&2
fi
# Files of tests are shared out to as many processes as there are processors.
status=0
$here/pytest --numprocesses auto --dist loadfile "$@" || status=$?
wait $types || status=$?
cat build/mypy.log
exit $status
