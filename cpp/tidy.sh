#!/usr/bin/env bash
# clang-tidy over the C++: `bash cpp/tidy.sh`, or with files to check. Exits with 0 without findings.
# Needs cmake, a compiler and, in the environment of PYTHON (default: .venv/bin/python), nanobind and clang-tidy.
# PROBOX_JOBS: number of parallel processes (default: all processors).
set -euo pipefail
cd "$(dirname "$0")/.."
python="${PYTHON:-.venv/bin/python}"
tidy="$(dirname "$python")/clang-tidy"
build=build/tidy
mkdir -p build
cmake -S . -B "$build" -DPython_EXECUTABLE="$(realpath -s "$python")" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
  -DCMAKE_CXX_COMPILER="${CXX:-c++}" >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 2; }
files=("$@")
if [ ${#files[@]} = 0 ]; then files=(cpp/bindings/*.cpp cpp/kernel/*.cpp); fi
# Headers are checked with the files that include them. Ignore options that only GCC knows.
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "${PROBOX_JOBS:-$(nproc)}" \
  "$tidy" -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unknown-pragmas
