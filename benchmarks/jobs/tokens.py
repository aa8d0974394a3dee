#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes counts of tokens for DeepSeek-V3 on 16 stages of 64 expert ranks, four
experts each: two iterations of 16 micro-batches, no two ranks alike, every
exchange summing up to what its 64 ranks have. tokens.py FILE
"""
import random
import sys

STAGES, RANKS, EXPERTS = 16, 64, 256
LAYERS, DENSE, FIRST, LAST = 61, 3, 3, 2  # of the first and the last stage
ROWS = 4096 * 8 * RANKS                   # tokens, each to eight experts


def layers_of(stage):
    inner = (LAYERS - FIRST - LAST) // (STAGES - 2)
    begin = 0 if stage == 0 else FIRST + (stage - 1) * inner
    count = FIRST if stage == 0 else LAST if stage == STAGES - 1 else inner
    return range(max(begin, DENSE), begin + count)


def share_out(draw):
    weights = [draw.uniform(0.7, 1.4) for _ in range(EXPERTS)]
    counts = [int(w * ROWS / sum(weights)) for w in weights]
    counts[0] += ROWS - sum(counts)
    return counts


def write(path):
    draw = random.Random(1)
    local = EXPERTS // RANKS
    with open(path, "w", encoding="utf-8") as file:
        for iteration in range(2):
            for stage in range(STAGES):
                for layer in layers_of(stage):
                    for microbatch in range(16):
                        counts = share_out(draw)
                        for r in range(RANKS):
                            own = counts[r * local:(r + 1) * local]
                            print(iteration, layer, microbatch,
                                  stage * RANKS + r, *own, file=file)


if __name__ == "__main__":
    write(sys.argv[1])
