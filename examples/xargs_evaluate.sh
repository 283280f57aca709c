#!/usr/bin/env bash
# Evaluate with several processes of one machine.
#
#     PARTS=16 PROCESSES=2 bash examples/xargs_evaluate.sh TRUTH DETECTIONS OUT [OPTIONS]
#
# writes the result to OUT and its parts to OUT.parts. The result is bit-identical to that of one process. DETECTIONS may be
# NAME=DETECTIONS; OPTIONS are those of probox evaluate. The merge names missing parts. Evaluate only these, and merge again:
#
#     ONLY="3 7" PARTS=16 bash examples/xargs_evaluate.sh TRUTH DETECTIONS OUT [OPTIONS]
set -euo pipefail
truth=$1 detections=$2 out=$3 parts=${PARTS:-16} processes=${PROCESSES:-2}
shift 3

# The folder must not exist, so that old parts are not merged, except to add missing parts.
if [ -z "${ONLY:-}" ] && ! mkdir "$out.parts"; then
  echo "remove $out.parts, or name the parts that are missing: ONLY=\"3 7\"" >&2
  exit 1
fi
# One thread per process: the processes share the processors.
failed=0
printf '%s\n' ${ONLY:-$(seq "$parts")} | xargs -P "$processes" -I{} \
  probox evaluate "$truth" "$detections" --part "{}/$parts" --threads 1 --out "$out.parts/{}" "$@" >/dev/null || failed=1

[ -n "$(ls "$out.parts")" ] || exit 1 # nothing to merge; the errors are printed above
probox merge "$out.parts"/* --out "$out"
exit "$failed"
