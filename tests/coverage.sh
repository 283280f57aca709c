#!/usr/bin/env bash
# Measure line and branch coverage of Python and C++: `bash tests/coverage.sh [arguments of pytest]`.
# Creates an environment (.venv-coverage) with an instrumented kernel (gcc --coverage, in build/coverage/kernel), runs the
# tests, prints both summaries, and writes pages to build/coverage/python and build/coverage/cpp.
# Needs gcc and gcov. Without arguments it takes twice as long as the suite.
# PROBOX_PYTHON selects the interpreter; PROBOX_FRAMEWORKS=0 skips tests of torch and detector frameworks.
set -euo pipefail
cd "$(dirname "$0")/.."
out="$PWD/build/coverage"
mkdir -p "$out"
"${PROBOX_PYTHON:-python3}" -m venv .venv-coverage
bin="$PWD/.venv-coverage/bin"
install() { "$bin/python" -m pip install --quiet --disable-pip-version-check "$@"; }
install 'scikit-build-core>=0.10' 'nanobind>=2.2' 'cmake>=3.21' ninja coverage pytest-cov gcovr
# Without unrolling and inlining, lines of the page match lines of the source. Counters are atomic: the kernel has threads.
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
# Killed processes leave inconsistent counters; gcov's messages about them must not reach the tests.
export GCOV_ERROR_FILE="$out/gcov.errors"
# Excluded: tests that limit files or memory, which the counters need too.
"$bin/python" -m pytest --numprocesses auto --dist loadfile -p no:cacheprovider \
  --ignore tests/files/outputs/test_full_disk.py --ignore tests/formats/test_memory.py \
  --cov --cov-config=tests/coverage.ini --cov-report= "$@" || status=$?
"$bin/coverage" html --rcfile=tests/coverage.ini --ignore-errors --quiet --directory "$out/python"
mkdir -p "$out/cpp"
# Loops over pixels run billions of times, which gcov reports as suspicious.
"$bin/gcovr" --root . --filter 'cpp/' --exclude-throw-branches --gcov-ignore-errors=no_working_dir_found \
  --gcov-ignore-parse-errors=negative_hits.warn --gcov-suspicious-hits-threshold=0 --print-summary \
  --html-details "$out/cpp/index.html" --txt "$out/cpp.txt" "$out/kernel/cpp" >"$out/gcovr.log" 2>&1 ||
  { cat "$out/gcovr.log" >&2; exit 2; }
"$bin/coverage" json --rcfile=tests/coverage.ini --ignore-errors --quiet -o "$out/python.json"
echo
echo "Python, least covered last ($out/python/index.html):"
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
