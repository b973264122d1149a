#!/usr/bin/env bash
# Tests on several GPUs of one or more machines, by torch's launcher.
# Usage: [NNODES=1 NODE_RANK=0 MASTER_ADDR=127.0.0.1 PORT=29500] \
#            dist_test.sh CONFIG CHECKPOINT GPUS [options of test.py]
set -euo pipefail
if [ $# -lt 3 ]; then
    echo "usage: $0 CONFIG CHECKPOINT GPUS [options of test.py]" >&2
    exit 2
fi
if ! [[ $3 =~ ^[1-9][0-9]*$ ]]; then
    echo "$(basename "$0"): error: GPUS must be a positive number, got '$3'" >&2
    exit 2
fi
if [ ! -f "$1" ] && [[ $1 != *://* ]]; then
    echo "$(basename "$0"): error: config='$1': there is no such file" >&2
    exit 2
fi
if [ ! -f "$2" ] && [[ $2 != *://* ]]; then
    echo "$(basename "$0"): error: checkpoint='$2': there is no such file" >&2
    exit 2
fi
exec python -m torch.distributed.run \
    --nnodes="${NNODES:-1}" \
    --node_rank="${NODE_RANK:-0}" \
    --master_addr="${MASTER_ADDR:-127.0.0.1}" \
    --master_port="${PORT:-29500}" \
    --nproc_per_node="$3" \
    "$(dirname "$0")/test.py" "$1" "$2" --launcher pytorch "${@:4}"
