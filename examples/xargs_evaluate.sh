#!/usr/bin/env bash
# One evaluation by several processes of one machine, with no more than a shell.
#
#     bash examples/xargs_evaluate.sh TRUTH FOUND OUT [PARTS [PROCESSES]]
#
# keeps the result in OUT and its parts in OUT.parts, and prints it: what one process would, to the bit. FOUND may be
# NAME=FOUND. Parts appear whole or not at all: where some failed, the same line again evaluates those alone.
set -euo pipefail
truth=$1 found=$2 out=$3 parts=${4:-16} processes=${5:-2}

mkdir -p "$out.parts"
missing() { for part in $(seq "$parts"); do [ -e "$out.parts/$part" ] || echo "$part"; done; }
# One thread each: the processes share the processors.
missing | xargs -P "$processes" -I{} \
  probox evaluate "$truth" "$found" --part "{}/$parts" --threads 1 --out "$out.parts/{}" >/dev/null ||
  echo "some parts failed, for the reasons above; the join says which" >&2

probox join "$out.parts"/* --out "$out"
