#!/usr/bin/env bash
# Unpacks COCO 2017 into the folders of the configs: train2017, val2017, annotations.
# Existing files stay. mim calls it after a download.
# Usage: unpack_coco2017.sh DOWNLOAD_FOLDER DATA_FOLDER
set -euo pipefail
fail() {
    echo "$(basename "$0"): error: $1" >&2
    exit 2
}
if [ $# -ne 2 ] || [ ! -d "$1" ]; then
    echo "usage: $0 DOWNLOAD_FOLDER DATA_FOLDER" >&2
    exit 2
fi
if [ -e "$2" ] && [ ! -d "$2" ]; then
    fail "DATA_FOLDER=$2 is a file, not a folder"
fi
command -v unzip >/dev/null || fail 'this needs the program unzip'

paths=()
for archive in annotations_trainval2017.zip val2017.zip train2017.zip; do
    path=$(find "$1" -name "$archive" -print -quit)
    [ -n "$path" ] || fail "there is no $archive in $1"
    paths+=("$path")
done

mkdir -p "$2"
for path in "${paths[@]}"; do
    echo "unpacking $path into $2"
    unzip -q -n "$path" -d "$2"
done
