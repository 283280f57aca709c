#!/usr/bin/env bash
# Compare the times of this revision with another one, as Markdown: the kernel on synthetic scenes, and overhead of calls.
#   bash benchmarks/report.sh HEAD^
# Needs no data. Both revisions are installed into separate environments; contenders alternate.
set -euo pipefail
cd "$(dirname "$0")/.."
revision=${1:-HEAD^}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/other"
git archive "$revision" | tar -xf - -C "$work/other"
for side in here other; do
  python3 -m venv "$work/env-$side"
  source=.
  [ "$side" = here ] || source=$work/other
  "$work/env-$side/bin/pip" install --quiet --disable-pip-version-check "$source" scipy >&2
done
here=$work/env-here/bin/python
other=$work/env-other/bin/python
echo "## $(git rev-parse --short HEAD) beside $(git rev-parse --short "$revision")"
for benchmark in "overhead" "dense --sizes 100x10000 1000x10000 --rounds 3"; do
  echo
  echo "### python -m benchmarks.$benchmark"
  echo
  echo '```text'
  # shellcheck disable=SC2086  # several words
  "$here" -m benchmarks.$benchmark --against "$other" 2>&1 || echo "failed"
  echo '```'
done
