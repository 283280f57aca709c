#!/usr/bin/env bash
#SBATCH --job-name=probox
#SBATCH --array=1-16
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=01:00:00
#SBATCH --output=probox-%A_%a.log
# One evaluation by an array of Slurm, a task for each part, and a job that joins them once all have ended.
#
#     bash examples/slurm_array.sh TRUTH FOUND OUT [OPTIONS]
#
# submits both jobs; OPTIONS are those of probox evaluate. The result is kept in OUT and its parts in OUT.parts, which all machines must see, as they must see the
# files and the environment that has probox. The join names parts that are missing: those of tasks that failed. These again:
#
#     PARTS=16 sbatch --array=3,7 examples/slurm_array.sh TRUTH FOUND OUT [OPTIONS]
#     probox merge OUT.parts/* --out OUT
set -euo pipefail
truth=$1 found=$2 out=$3
shift 3

if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then # a task of the array
  # The count is that of the tasks submitted together: fewer than the parts when some are run again.
  part="$SLURM_ARRAY_TASK_ID/${PARTS:-$SLURM_ARRAY_TASK_COUNT}"
  probox evaluate "$truth" "$found" --part "$part" --threads "${SLURM_CPUS_PER_TASK:-1}" \
    --out "$out.parts/$SLURM_ARRAY_TASK_ID" "$@"
else # the line that a person types
  mkdir "$out.parts" # fails where it is there: old parts are never taken for new ones
  array=$(sbatch --parsable "$0" "$truth" "$found" "$out" "$@")
  # After any end, not only a good one: a join that never starts says nothing.
  sbatch --dependency="afterany:${array%%;*}" --job-name=probox-join --output=probox-join-%j.log \
    --wrap "$(printf 'probox merge %q.parts/* --out %q' "$out" "$out")"
fi
