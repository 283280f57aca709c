#!/usr/bin/env bash
# Builds the documentation's site into build/docs: static files that need no server and no network.
# Makes an environment of its own, unless PROBOX_PYTHON names an interpreter that has probox and Sphinx already.
# A build that fails leaves the site that was there.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${PROBOX_PYTHON:-python3}"
if ! { [ -n "${PROBOX_PYTHON:-}" ] && "$python" -c "import furo, latex2mathml, myst_parser, probox, probox_experiments, sphinx"; } 2>/dev/null; then
  "$python" -m venv .venv-docs
  python=.venv-docs/bin/python
  "$python" -m pip install --quiet --disable-pip-version-check ".[docs]" ./experiments
fi
exec "$python" docs/machinery/build.py "${1:-build/docs}"
