#!/usr/bin/env bash
# The suite with the lowest version of every package that pyproject.toml allows. uv finds them: the bounds stand nowhere
# else.
#   bash tests/lowest.sh                      # install, list, run everything but frameworks
#   bash tests/lowest.sh tests/formats        # these tests alone
# PROBOX_PYTHON chooses the interpreter: by default the oldest that is supported, for which old packages have wheels.
# Extras that are not tested here: torch (old ones bring gigabytes of another machine's libraries).
set -euo pipefail
unset PYTHONDONTWRITEBYTECODE
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
cd "$(dirname "$0")/.."
python=${PROBOX_PYTHON:-python3.10}
venv=.venv-lowest
"$python" -m venv --clear "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check uv
mkdir -p build
# Direct dependencies as low as they may be, theirs as pip would choose. A version without a wheel for this Python is no
# bound that could be tested.
"$venv/bin/uv" pip compile --quiet --no-header --no-annotate --python "$venv/bin/python" --resolution lowest-direct \
  --only-binary :all: --extra test --extra supervision pyproject.toml --output-file build/lowest.txt
cat build/lowest.txt
install=("$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --no-deps)
"${install[@]}" --only-binary :all: -r build/lowest.txt
"${install[@]}" . ./experiments
"$venv/bin/python" -m pip check
# What old packages warn of is their own use of others that are newer.
exec "$venv/bin/python" -m pytest -W ignore::DeprecationWarning --numprocesses auto --dist loadfile "$@"
