#!/usr/bin/env bash
# Trains on several GPUs of one or more machines, or in several processes on a CPU, by
# torch's launcher.
# Usage: [NNODES=1 NODE_RANK=0 MASTER_ADDR=127.0.0.1 PORT=29500] \
#            dist_train.sh CONFIG GPUS [options of train.py]
set -euo pipefail
if [ $# -lt 2 ]; then
    echo "usage: $0 CONFIG GPUS [options of train.py]" >&2
    exit 2
fi
if ! [[ $2 =~ ^[1-9][0-9]*$ ]]; then
    echo "$(basename "$0"): error: GPUS must be a positive number, got '$2'" >&2
    exit 2
fi
if [ ! -f "$1" ] && [[ $1 != *://* ]]; then
    echo "$(basename "$0"): error: config='$1': there is no such file" >&2
    exit 2
fi
exec python -m torch.distributed.run \
    --nnodes="${NNODES:-1}" \
    --node_rank="${NODE_RANK:-0}" \
    --master_addr="${MASTER_ADDR:-127.0.0.1}" \
    --master_port="${PORT:-29500}" \
    --nproc_per_node="$2" \
    "$(dirname "$0")/train.py" "$1" --launcher pytorch "${@:3}"
