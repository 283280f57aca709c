#!/usr/bin/env bash
# One evaluation by several processes of one machine, with no more than a shell.
#
#     PARTS=16 PROCESSES=2 bash examples/xargs_evaluate.sh TRUTH FOUND OUT [OPTIONS]
#
# keeps the result in OUT and its parts in OUT.parts, and prints it: what one process would, to the bit. FOUND may be
# NAME=FOUND; OPTIONS are those of probox evaluate. The join names parts that are missing. These alone, before all are
# joined again:
#
#     ONLY="3 7" PARTS=16 bash examples/xargs_evaluate.sh TRUTH FOUND OUT [OPTIONS]
set -euo pipefail
truth=$1 found=$2 out=$3 parts=${PARTS:-16} processes=${PROCESSES:-2}
shift 3

# Old parts are never taken for new ones: the folder must not be there yet, unless some of its parts are to follow.
if [ -z "${ONLY:-}" ] && ! mkdir "$out.parts"; then
  echo "remove $out.parts, or name the parts that are missing: ONLY=\"3 7\"" >&2
  exit 1
fi
# One thread each: the processes share the processors.
failed=0
printf '%s\n' ${ONLY:-$(seq "$parts")} | xargs -P "$processes" -I{} \
  probox evaluate "$truth" "$found" --part "{}/$parts" --threads 1 --out "$out.parts/{}" "$@" >/dev/null || failed=1

[ -n "$(ls "$out.parts")" ] || exit 1 # nothing to join: the reasons stand above
probox merge "$out.parts"/* --out "$out"
exit "$failed"
