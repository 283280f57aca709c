#!/usr/bin/env bash
# Run the suite with the lowest version of each package that pyproject.toml allows; uv resolves them.
#   bash tests/lowest.sh                      # install, list, run all tests except frameworks
#   bash tests/lowest.sh tests/formats        # only these tests
# PROBOX_PYTHON selects the interpreter; default: the oldest supported one, for which old packages have wheels.
# Not tested: the extra torch (old versions install gigabytes of CUDA libraries).
set -euo pipefail
unset PYTHONDONTWRITEBYTECODE
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
cd "$(dirname "$0")/.."
python=${PROBOX_PYTHON:-python3.10}
venv=.venv-lowest
"$python" -m venv --clear "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check uv
mkdir -p build
# Lowest direct dependencies, default indirect ones. Versions without a wheel for this Python cannot be tested.
"$venv/bin/uv" pip compile --quiet --no-header --no-annotate --python "$venv/bin/python" --resolution lowest-direct \
  --only-binary :all: --extra test --extra supervision pyproject.toml --output-file build/lowest.txt
cat build/lowest.txt
install=("$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --no-deps)
"${install[@]}" --only-binary :all: -r build/lowest.txt
"${install[@]}" . ./experiments
"$venv/bin/python" -m pip check
# Deprecation warnings come from old packages that use newer ones.
exec "$venv/bin/python" -m pytest -W ignore::DeprecationWarning --numprocesses auto --dist loadfile "$@"
