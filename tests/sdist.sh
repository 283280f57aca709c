#!/usr/bin/env bash
# Build the sdist, check its content, and install it in an environment with the build requirements, without build isolation
# and, if `unshare` works, without network.
#   bash tests/sdist.sh          # check, build, install, run
#   bash tests/sdist.sh dist     # also copy the sdist to this folder
# PROBOX_PYTHON selects the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PROBOX_PYTHON:-python3}
kept=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/venv"
bin=$work/venv/bin
"$bin/pip" install --quiet --disable-pip-version-check build scikit-build-core nanobind cmake ninja numpy click rich pyyaml
"$bin/python" -m build --sdist --no-isolation --outdir "$work" . >/dev/null
sdist=$(ls "$work"/probox-*.tar.gz)

size=$(wc -c <"$sdist")
[ "$size" -lt 8000000 ] || { echo "the sdist has $size bytes, expected less than 8,000,000" >&2; exit 1; }
tar -tzf "$sdist" | sed 's,^[^/]*/,,' | sort >"$work/names"
for needed in pyproject.toml CMakeLists.txt LICENSE README.md PKG-INFO cpp/CMakeLists.txt src/probox/version.py \
  src/probox/py.typed tests/smoke.py; do
  grep -qx "$needed" "$work/names" || { echo "the sdist lacks $needed" >&2; exit 1; }
done
if grep -E '(^|/)(\.venv[^/]*|build|dist|shared|__pycache__)/|\.so$|\.pyd$' "$work/names"; then
  echo "the sdist contains files that are not sources" >&2
  exit 1
fi

offline=
if unshare -rn true 2>/dev/null; then offline="unshare -rn"; else echo "unshare is unavailable: the build has network access" >&2; fi
# --no-index: pip uses no package index.
$offline env PATH="$bin:$PATH" "$bin/pip" install --quiet --disable-pip-version-check --no-index --no-build-isolation "$sdist"
(cd / && "$bin/probox" demo >/dev/null)
echo "$(basename "$sdist"): $size bytes, $(wc -l <"$work/names") files, built offline"
[ -z "$kept" ] || { mkdir -p "$kept" && cp "$sdist" "$kept"; }
