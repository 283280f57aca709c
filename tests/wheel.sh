#!/usr/bin/env bash
# Build the released sdist and, from it, the wheel, in dist/; install the wheel without a compiler; and test the installed
# package from a copy of the repository, without src on the path.
#   bash tests/wheel.sh                       # build, then the smoke test and the whole suite without frameworks
#   bash tests/wheel.sh tests/measures        # build, then the smoke test and these tests
#   PROBOX_WHEEL_FILE=dist/probox-....whl ... # test this wheel, build nothing
# PROBOX_PYTHON selects the interpreter of the build, PROBOX_TEST_PYTHON that of the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
python=${PROBOX_PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

wheel=${PROBOX_WHEEL_FILE:-}
if [ -z "$wheel" ]; then
  "$python" -m venv "$work/builder"
  "$work/builder/bin/pip" install --quiet --disable-pip-version-check build
  # `build` builds the wheel from the sdist, so files missing from the sdist are noticed.
  PROBOX_WHEEL=1 "$work/builder/bin/python" -m build --outdir "$work/dist" .
  mkdir -p dist
  cp "$work"/dist/* dist
  wheel=$root/dist/$(basename "$work"/dist/*.whl)
fi

"${PROBOX_TEST_PYTHON:-$python}" -m venv "$work/clean"
# No compiler: the usual names and variables fail.
mkdir "$work/bin"
for name in cc c++ gcc g++ clang clang++ cmake ninja make; do ln -s /bin/false "$work/bin/$name"; done
export PATH="$work/clean/bin:$work/bin:$PATH" CC=/bin/false CXX=/bin/false
python -m pip install --quiet --disable-pip-version-check --only-binary :all: "${wheel}[test]"

# Some tests read the sources, but none may import them.
mkdir "$work/there"
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$work/there"
cd "$work/there"
python -m pip install --quiet --disable-pip-version-check ./experiments
python -c "import probox, sys; assert probox.__file__.startswith(sys.prefix), probox.__file__"
stable=
case $wheel in *-abi3-*) stable=--stable ;; esac
python tests/smoke.py $stable
PROBOX_SHARED=${PROBOX_SHARED:-$root/../shared} python -m pytest --numprocesses auto --dist loadfile "$@"
