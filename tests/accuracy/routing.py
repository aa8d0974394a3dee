#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads the routing of a recorded job with experts: moe.tokens for memest.

    tests/accuracy/routing.py RECORDINGS CASE > FILE

RECORDINGS is a folder of CASE.rRANK.json.gz. Every expert's first allocation is
the output of its first matrix: allocated below experts.py, after whatever the
dispatcher allocated last. Its bytes over those of a row are the expert's tokens.
An expert without tokens allocates nothing and cannot be placed: such a recording
is refused. Lines: iteration, layer, micro-batch, rank, tokens of each expert.
"""
import gzip
import json
import os
import re
import sys

# A matrix product of a linear layer; its last frame is the layer's forward, and
# column-parallel layers (fc1) stand above row-parallel ones (fc2) in the file.
LINEAR = re.compile(r"megatron/core/tensor_parallel/layers\.py:\d+:forward\|torch/amp/.*"
                    r"\|megatron/core/tensor_parallel/layers\.py:(\d+):forward$")
MOE = re.compile(r"/moe/(token_dispatcher|moe_utils|experts)\.py:")
EXCHANGE = "tensor_parallel/mappings.py:"


def value(args, flag, default):
    return args[args.index(flag) + 1] if flag in args else default


class Job:
    """What the flags say of a job."""

    def __init__(self, d):
        args = d["args"]
        self.rank, self.world = d["rank"], d["world"]
        self.layers = int(value(args, "--num-layers", 0))
        self.stages = int(value(args, "--pipeline-model-parallel-size", 1))
        self.tensor = int(value(args, "--tensor-model-parallel-size", 1))
        if self.tensor > 1:
            sys.exit("experts under tensor parallelism: not read")
        self.experts = (int(value(args, "--num-experts", 0))
                        // int(value(args, "--expert-model-parallel-size", 1)))
        data = self.world // self.stages
        self.microbatches = (int(value(args, "--global-batch-size", data))
                             // data // int(value(args, "--micro-batch-size", 1)))
        width = int(value(args, "--moe-ffn-hidden-size", value(args, "--ffn-hidden-size", 0)))
        halves = 2 if "--swiglu" in args else 1
        self.row_bytes = 2 * width * halves
        stage = self.rank // data
        per_stage = self.layers // self.stages
        self.own_layers = range(stage * per_stage, (stage + 1) * per_stage)


def first_outputs(d):
    """(microseconds, bytes) of the first allocation of each expert's forward."""
    linear = {i: int(m[1]) for i, text in enumerate(d["stacks"])
              if (m := LINEAR.search(text))}
    column = min(linear.values())
    is_dispatched = False
    for action, size, _, stack, at, _ in d["events"]:
        if action != "alloc":
            continue
        text = d["stacks"][stack]
        if stack in linear:
            if is_dispatched and linear[stack] == column:
                yield at, size
        elif EXCHANGE not in text:
            is_dispatched = bool(MOE.search(text))


def rows(d, iterations):
    """Lines of the file for one rank's recording, of its first iterations."""
    job = Job(d)
    begins = [p["t_us"] for p in d["points"] if re.fullmatch(r"iter\d+_begin", p["name"])]
    outputs = list(first_outputs(d))
    for iteration, begin in enumerate(begins[:iterations]):
        end = begins[iteration + 1] if iteration + 1 < len(begins) else float("inf")
        sizes = [s for at, s in outputs if begin <= at < end]
        places = [(m, layer) for m in range(job.microbatches) for layer in job.own_layers]
        if len(sizes) != len(places) * job.experts:
            sys.exit(f"{d['name']}: iteration {iteration} has {len(sizes)} expert outputs, "
                     f"not {len(places) * job.experts}: an expert without tokens?")
        for i, (microbatch, layer) in enumerate(places):
            group = sizes[i * job.experts:(i + 1) * job.experts]
            yield " ".join(map(str, [iteration, layer, microbatch, job.rank,
                                     *[s // job.row_bytes for s in group]]))


def lines(name, ranks, iterations):
    """The file of a case."""
    yield f"# Measured routing of {name}."
    yield "# iteration, layer, micro-batch, rank, tokens of each of its experts"
    for d in ranks:
        yield from rows(d, iterations)


def main(argv):
    if len(argv) != 3 or argv[1].startswith("-"):
        print(__doc__)
        return 2
    folder, case = argv[1:]
    ranks = []
    for name in sorted(os.listdir(folder)):
        if re.fullmatch(re.escape(case) + r"\.r\d+\.json\.gz", name):
            with gzip.open(os.path.join(folder, name), "rt") as f:
                ranks.append(json.load(f))
    print("\n".join(lines(case, ranks, 16)))
    return 0 if ranks else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
