#!/usr/bin/env bash
#SBATCH --job-name=probox
#SBATCH --array=1-16
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=01:00:00
#SBATCH --output=probox-%A_%a.log
# Evaluate with a Slurm array, one task per part, and merge the parts in a second job.
#
#     bash examples/slurm_array.sh TRUTH DETECTIONS OUT [OPTIONS]
#
# submits both jobs; OPTIONS are those of probox evaluate. The result is in OUT, its parts are in OUT.parts. All machines
# must see these folders, the input files and the environment of probox. The merge job names missing parts. Repeat their tasks:
#
#     PARTS=16 sbatch --array=3,7 examples/slurm_array.sh TRUTH DETECTIONS OUT [OPTIONS]
#     probox merge OUT.parts/* --out OUT
set -euo pipefail
truth=$1 detections=$2 out=$3
shift 3

if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then # a task of the array
  # The count of repeated tasks is smaller than the number of parts: PARTS replaces it.
  part="$SLURM_ARRAY_TASK_ID/${PARTS:-$SLURM_ARRAY_TASK_COUNT}"
  probox evaluate "$truth" "$detections" --part "$part" --threads "${SLURM_CPUS_PER_TASK:-1}" \
    --out "$out.parts/$SLURM_ARRAY_TASK_ID" "$@"
else # submit both jobs
  mkdir "$out.parts" # fails if it exists: old parts must not be merged
  array=$(sbatch --parsable "$0" "$truth" "$detections" "$out" "$@")
  # afterok would never start the merge if a task failed, and no error would be printed.
  sbatch --dependency="afterany:${array%%;*}" --job-name=probox-merge --output=probox-merge-%j.log \
    --wrap "$(printf 'probox merge %q.parts/* --out %q' "$out" "$out")"
fi
