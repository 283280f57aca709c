#!/usr/bin/env bash
# Coverage of the tests, lines and branches, of Python and of the C++: `bash tests/coverage.sh [arguments of pytest]`.
# Makes an environment of its own (.venv-coverage) with a kernel that counts (gcc --coverage, in build/coverage/kernel), runs the
# tests there, prints both summaries and leaves pages in build/coverage/python and build/coverage/cpp.
# Needs gcc and gcov. Without arguments it takes twice as long as the suite.
# PROBOX_PYTHON chooses the interpreter; with PROBOX_FRAMEWORKS=0, what needs torch or a detector framework is not run.
set -euo pipefail
cd "$(dirname "$0")/.."
out="$PWD/build/coverage"
mkdir -p "$out"
"${PROBOX_PYTHON:-python3}" -m venv .venv-coverage
bin="$PWD/.venv-coverage/bin"
install() { "$bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
install 'scikit-build-core>=0.10' 'nanobind>=2.2' 'cmake>=3.21' ninja coverage pytest-cov gcovr
# Loops are neither unrolled nor inlined, so that a line of the page is a line of the source. Each thread counts for itself.
CXXFLAGS="--coverage -fprofile-update=atomic -O1 -fno-inline" LDFLAGS="--coverage" \
  install --no-build-isolation -Cbuild-dir="$out/kernel" -Ccmake.build-type=None -e '.[test]'
install -e ./experiments
if [ "${PROBOX_FRAMEWORKS:-1}" != 0 ]; then
  install "$(grep '^torch==' tests/frameworks.txt)" && install -r tests/frameworks.txt && install --no-deps nudenet ||
    echo "Detector frameworks could not be installed: their tests are skipped" >&2
fi
rm -f "$out"/.coverage "$out"/.coverage.*
find "$out/kernel" -name '*.gcda' -delete
status=0
# What the kernel's counters have to say (of a process that was killed, its counts do not add up) is not for tests to read.
export GCOV_ERROR_FILE="$out/gcov.errors"
# Where files or memory are limited, those of the counters do not fit either.
"$bin/python" -m pytest --numprocesses auto --dist loadfile -p no:cacheprovider \
  --ignore tests/files/outputs/test_full_disk.py --ignore tests/formats/test_memory.py \
  --cov --cov-config=tests/coverage.ini --cov-report= "$@" || status=$?
"$bin/coverage" html --rcfile=tests/coverage.ini --ignore-errors --quiet --directory "$out/python"
mkdir -p "$out/cpp"
# What gcov suspects are billions of passes, which the loops over pixels have.
"$bin/gcovr" --root . --filter 'cpp/' --exclude-throw-branches --gcov-ignore-errors=no_working_dir_found \
  --gcov-ignore-parse-errors=negative_hits.warn --gcov-suspicious-hits-threshold=0 --print-summary \
  --html-details "$out/cpp/index.html" --txt "$out/cpp.txt" "$out/kernel/cpp" >"$out/gcovr.log" 2>&1 ||
  { cat "$out/gcovr.log" >&2; exit 2; }
"$bin/coverage" json --rcfile=tests/coverage.ini --ignore-errors --quiet -o "$out/python.json"
echo
echo "Python, the least covered last ($out/python/index.html):"
"$bin/coverage" report --rcfile=tests/coverage.ini --ignore-errors --skip-covered --sort=-cover | tail -n 30
"$bin/python" - "$out/python.json" <<'END'
import json, sys

with open(sys.argv[1], encoding="utf-8") as file:
    totals = json.load(file)["totals"]
for name, done, there in (
    ("lines", totals["covered_lines"], totals["num_statements"]),
    ("branches", totals["covered_branches"], totals["num_branches"]),
):
    print(f"{name}: {100 * done / there:.1f}% ({done} out of {there})")
END
echo
echo "C++ ($out/cpp/index.html):"
grep -E '^(lines|functions|branches)' "$out/gcovr.log"
exit "$status"
