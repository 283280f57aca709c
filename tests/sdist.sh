#!/usr/bin/env bash
# Makes the sdist, looks at what is in it, and builds and installs it in an environment that has the build requirements and
# no network (where `unshare` may take it away) nor build isolation.
#   bash tests/sdist.sh          # look, build, install, run
#   bash tests/sdist.sh dist     # and keep it in this folder
# PROBOX_PYTHON chooses the interpreter.
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
[ "$size" -lt 8000000 ] || { echo "the sdist has $size bytes" >&2; exit 1; }
tar -tzf "$sdist" | sed 's,^[^/]*/,,' | sort >"$work/names"
for needed in pyproject.toml CMakeLists.txt LICENSE README.md PKG-INFO cpp/CMakeLists.txt src/probox/version.py \
  src/probox/py.typed tests/smoke.py; do
  grep -qx "$needed" "$work/names" || { echo "the sdist lacks $needed" >&2; exit 1; }
done
if grep -E '(^|/)(\.venv[^/]*|build|dist|shared|__pycache__)/|\.so$|\.pyd$' "$work/names"; then
  echo "the sdist has what is not source" >&2
  exit 1
fi

offline=
if unshare -rn true 2>/dev/null; then offline="unshare -rn"; else echo "the network could not be taken away" >&2; fi
# --no-index: pip asks nobody either way.
$offline env PATH="$bin:$PATH" "$bin/pip" install --quiet --disable-pip-version-check --no-index --no-build-isolation "$sdist"
(cd / && "$bin/probox" demo >/dev/null)
echo "$(basename "$sdist"): $size bytes, $(wc -l <"$work/names") files, built offline"
[ -z "$kept" ] || { mkdir -p "$kept" && cp "$sdist" "$kept"; }
