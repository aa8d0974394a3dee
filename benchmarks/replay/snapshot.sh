#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# CPU seconds and memory of replaying PyTorch's memory snapshot as JSON, with and
# without stacks. `snapshot.sh MEMEST [EVENTS]`; the lines must report the same.
set -eu
memest=$1
events=${2:-600000}
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 "$here/make_stream.py" "$events" >"$folder/stream.tsv"
for frames in 0 8; do
    python3 "$here/make_snapshot.py" "$frames" <"$folder/stream.tsv" >"$folder/snapshot.json"
    echo "$frames frames an event, $(($(wc -c <"$folder/snapshot.json") >> 20)) MiB of text:"
    /usr/bin/time -f "  %U + %S s of CPU, %M KiB" "$memest" replay "$folder/snapshot.json" |
        sed -n '$p'
done
"$memest" replay "$folder/stream.tsv" | sed -n '$p'
