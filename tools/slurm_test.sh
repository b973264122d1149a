#!/usr/bin/env bash
# Tests on a Slurm cluster, one process a GPU.
# Usage: [GPUS=8 GPUS_PER_NODE=8 CPUS_PER_TASK=5 SRUN_ARGS=...] \
#            slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [options of test.py]
set -euo pipefail
if [ $# -lt 4 ]; then
    echo "usage: $0 PARTITION JOB_NAME CONFIG CHECKPOINT [options of test.py]" >&2
    exit 2
fi

GPUS=${GPUS:-8}
GPUS_PER_NODE=${GPUS_PER_NODE:-$((GPUS < 8 ? GPUS : 8))}

# SRUN_ARGS is meant to be split
# shellcheck disable=SC2086
exec srun -p "$1" \
    --job-name="$2" \
    --gres="gpu:$GPUS_PER_NODE" \
    --ntasks="$GPUS" \
    --ntasks-per-node="$GPUS_PER_NODE" \
    --cpus-per-task="${CPUS_PER_TASK:-5}" \
    --kill-on-bad-exit=1 \
    ${SRUN_ARGS:-} \
    python -u "$(dirname "$0")/test.py" "$3" "$4" --launcher slurm "${@:5}"
