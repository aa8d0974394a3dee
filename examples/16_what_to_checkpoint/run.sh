#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Which modules to checkpoint so that a rank keeps to a budget, and what it costs.
set -eu
cd "$(dirname "$0")"
memest=${MEMEST:-../../build/release/memest}
job=../../tests/trackers/transformer.cfg

echo "What a step takes by a roofline of the card:"
"$memest" track --model "$job" --tool runtime --depth 1 | sed -n '1p;$p'

echo "A layer's operations that give most memory back for their time:"
"$memest" track --model "$job" --tool sac --depth 3 --tabulate |
    sed -n '/^AC Trade-off for Module: Transformer.layers.0 /,/^Module/p' |
    sed -n '2,4p;/gelu\|native_layer_norm/p' | cut -c 1-96

echo "Recomputation that keeps a rank of four within a budget:"
for budget in 2.4 2.0 1.6 1.2 0.8; do
    printf '%s GiB: ' "$budget"
    "$memest" track --model "$job" --tool ilp --budget "$budget" --shards 4 |
        sed -n 's/^Recomputation: //p; s/^No selective.*/impossible/p'
done
