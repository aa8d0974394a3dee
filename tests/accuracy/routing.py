#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Reads the routing of a recorded job with experts: moe.tokens for memest.

    tests/accuracy/routing.py RECORDINGS CASE > FILE

RECORDINGS is a folder of CASE.rRANK.json.gz. Every expert's first allocation is
the output of its first matrix: allocated below experts.py, after whatever the
dispatcher allocated last. Its bytes over those of a row are the expert's tokens.
An expert without tokens allocates nothing and cannot be placed: such a recording
is refused, but for Transformer Engine's experts one by one. Grouped experts have one output together; how they share it decides no
sizes, and it is written as even, but for biases, which are added to each one's
rows, and layers whose rows go to the host. Lines: iteration, layer, micro-batch, rank, tokens
of each expert; `alone` where a stand-in took NCCL's place. Where rows are dropped or
padded, what leaves a rank is data as well: then choices are written, `routed`, that give both.
"""
import gzip
import json
import math
import os
import re
import sys

# A matrix product of a linear layer; its last frame is the layer's forward, where
# frames reach no further, and column-parallel layers (fc1) stand above row-parallel
# ones (fc2) in the file.
LINEAR = re.compile(r"megatron/core/tensor_parallel/layers\.py:\d+:forward\|torch/amp/.*?"
                    r"\|megatron/core/tensor_parallel/layers\.py:(\d+):forward(\||$)")
# What one expert's activation takes is between its two matrices.
INSIDE = re.compile(r"/transformer/mlp\.py:\d+:forward\|.*/moe/experts\.py:")
MOE = re.compile(r"/moe/(token_dispatcher|moe_utils|experts)\.py:")
# Before and behind experts, each with linear layers of their own: latents, shared experts.
DISPATCHES = re.compile(r"/moe/token_dispatcher\.py:\d+:(\w*dispatch\w*)")
COMBINES = re.compile(r"/moe/token_dispatcher\.py:\d+:\w*combine")
SHARED = "/moe/shared_experts.py:"
EXCHANGE = "tensor_parallel/mappings.py:"
# The same with Transformer Engine: fc1 and fc2 of one expert after the other, and
# products of all experts at once, which experts.py asks for in two places.
TE_LINEAR = re.compile(r"/pytorch/module/linear\.py:\d+:_linear_forward_impl\|")
TE_GROUPED = re.compile(r"/module/grouped_linear\.py:\d+:forward\|.*"
                        r"/moe/experts\.py:(\d+):forward")
TE_OUTPUT = re.compile(r"^transformer_engine/pytorch/module/grouped_linear\.py:\d+:forward\|")
GROUPED_LINE = re.compile(r"grouped_linear\.py:(\d+):")
# What is in a layer beside experts; Transformer Engine's frames leave no room for
# theirs.
ELSEWHERE = re.compile(r"fusions/fused_bias_dropout\.py:|/module/layernorm_linear\.py:"
                       r"|/ops/basic/\w+norm\.py:")
# Of a quantised linear layer the output alone; the end of padded experts.
TE_GEMM = re.compile(r"^transformer_engine/pytorch/cpp_extensions/gemm\.py:")
TE_UNPADDING = re.compile(r"^transformer_engine/pytorch/module/fp8_unpadding\.py:\d+:forward\|")
TE_BIASED = re.compile(r"^megatron/core/transformer/moe/experts\.py:(\d+):_apply_bias\|")
# Of routers, by either name.
PADDING = {"--moe-router-padding-for-quantization", "--moe-router-padding-for-fp8"}
# A function of autograd's that runs with gradients.
APPLY = "torch/autograd/function.py:"


def value(args, flag, default):
    return args[args.index(flag) + 1] if flag in args else default


class Job:
    """What the flags say of a job."""

    def __init__(self, d):
        args = d["args"]
        self.rank, self.world = d["rank"], d["world"]
        # Local layers may run where it can be imported.
        self.is_te = (d.get("attn") == "te"
                      and value(args, "--transformer-impl", "") != "local")
        self.is_grouped = self.is_te and "--moe-grouped-gemm" in args
        self.is_biased = "--disable-bias-linear" not in args
        wide = sum(int(value(args, f"--num-layers-at-{end}-in-bf16", 1))
                   for end in ("start", "end")) if "--first-last-layers-bf16" in args else 0
        self.is_quantised = ("--fp8-format" in args
                             and int(value(args, "--num-layers", 0)) > wide)
        # A forward and a backward in turns, by nodes.
        self.is_combined = "--overlap-moe-expert-parallel-comm" in args
        # Blocks are quantised together, which leaves the sum alone.
        self.is_bulk = self.is_quantised and value(args, "--fp8-recipe", "") == "blockwise"
        # Experts' rows are padded for it in layers without it too.
        self.pads_itself = ("--fp8-format" in args
                            and not PADDING.intersection(args))
        self.hidden = int(value(args, "--hidden-size", 0))
        self.is_alone = bool(d.get("fake"))
        self.layers = int(value(args, "--num-layers", 0))
        self.stages = int(value(args, "--pipeline-model-parallel-size", 1))
        self.tensor = int(value(args, "--tensor-model-parallel-size", 1))
        self.expert_tensor = int(value(args, "--expert-tensor-parallel-size", self.tensor))
        # Ranks that share these experts, and so get the same.
        first = self.rank - self.rank % self.expert_tensor
        self.peers = range(first, first + self.expert_tensor)
        self.experts = (int(value(args, "--num-experts", 0))
                        // int(value(args, "--expert-model-parallel-size", 1)))
        context = int(value(args, "--context-parallel-size", 1))
        data = self.world // self.stages // self.tensor // context
        self.microbatches = (int(value(args, "--global-batch-size", data))
                             // data // int(value(args, "--micro-batch-size", 1)))
        width = int(value(args, "--moe-ffn-hidden-size", value(args, "--ffn-hidden-size", 0)))
        self.halves = 2 if {"--swiglu", "--quick-geglu"}.intersection(args) else 1
        self.element = 2 if {"--bf16", "--fp16"}.intersection(args) else 4  # bytes
        self.row_bytes = self.element * width // self.expert_tensor * self.halves
        self.offloaded = int(value(args, "--cpu-offloading-num-layers", 0))
        if self.is_grouped and self.is_biased:
            self.row_bytes = self.element * self.hidden
        self.is_recomputed = (value(args, "--recompute-granularity", "") == "full"
                              or value(args, "--recompute-modules", "") == "moe")
        # Of each chunk; the others are not.
        self.n_recomputed = (int(value(args, "--recompute-num-layers", 1))
                             if value(args, "--recompute-method", "") == "block" else None)
        frequency = value(args, "--moe-layer-freq", "1")
        depths = int(value(args, "--mtp-num-layers", 0))
        stage = self.rank // (self.world // self.stages)
        whole = self.virtual_stages(args, depths)[stage::self.stages]
        self.chunks = [[i for i in chunk
                        if self.has_experts(min(i, self.layers - 1), frequency)]
                       for chunk in whole]
        self.recomputed = {i for chunk in whole for i in chunk[:self.n_recomputed]}
        self.loses_choices(args, context)

    def loses_choices(self, args, context):
        """Rows that are neither dropped nor padded say themselves what was chosen."""
        self.all_experts = int(value(args, "--num-experts", 0))
        self.topk = int(value(args, "--moe-router-topk", 2))
        self.tokens = (int(value(args, "--seq-length", 0)) // context
                       * int(value(args, "--micro-batch-size", 1))
                       // (self.tensor if "--sequence-parallel" in args else 1))
        factor = float(value(args, "--moe-expert-capacity-factor", -1))
        self.drops = factor >= 0 and "--moe-pad-expert-input-to-capacity" not in args
        self.most = self.tokens
        if self.drops:
            self.most = math.ceil(self.tokens * self.topk / self.all_experts * factor)
        self.unit = 1
        if "--fp8-format" in args and not self.pads_itself:
            self.unit = 32 if value(args, "--fp8-recipe", "") == "mxfp8" else 16
        self.width = int(value(args, "--moe-latent-size", self.hidden))
        expert_ranks = int(value(args, "--expert-model-parallel-size", 1))
        self.sources = expert_ranks * self.expert_tensor
        self.first = self.rank // self.expert_tensor % expert_ranks * self.experts
        self.is_routed = (self.is_alone and self.sources > 1
                          and (self.drops or self.unit > 1)
                          and value(args, "--moe-token-dispatcher-type", "") == "alltoall")

    def virtual_stages(self, args, depths):
        """Layers of each, those of multi-token prediction numbered on."""
        if "--pipeline-model-parallel-layout" not in args:
            rounds = int(value(args, "--num-virtual-stages-per-pipeline-rank", 1))
            each = int(value(args, "--num-layers-per-virtual-pipeline-stage",
                             self.layers // self.stages // rounds))
            out = [list(range(i, i + each)) for i in range(0, self.layers, each)]
            out[-1] += range(self.layers, self.layers + depths)
            return out
        text = value(args, "--pipeline-model-parallel-layout", "").strip("'")
        text = re.sub(r"\(([^()]*)\)\*(\d+)", lambda m: m[1] * int(m[2]), text)
        text = re.sub(r"(\w)\*(\d+)", lambda m: m[1] * int(m[2]), text)
        out, layer = [], 0
        for words in text.split("|"):
            n = words.count("t")
            out.append(list(range(layer, layer + n)))
            layer += n
            out[-1] += range(self.layers, self.layers + words.count("m"))
        return out

    def forwards(self):
        """(micro-batch, layers) in the order of the schedule's forwards."""
        count, group = len(self.chunks), self.stages
        for i in range(count * self.microbatches):
            chunk = i // group % count if count > 1 else 0
            microbatch = i // (group * count) * group + i % group if count > 1 else i
            yield microbatch, self.chunks[chunk]

    @staticmethod
    def has_experts(layer, frequency):
        """Of --moe-layer-freq: a period, or a list such as ([0]*3+[1]*58)."""
        if frequency.isdigit():
            return layer % int(frequency) == 0
        return expand(frequency)[layer] == 1

def expand(frequency):
    """The numbers of Python's sum of lists, each times a number, as Megatron-LM reads it."""
    if not re.fullmatch(r"[][()*+,\d ]+", frequency):
        sys.exit(f"--moe-layer-freq {frequency}: no list")
    return eval(frequency, {"__builtins__": {}})


def of_forwards(job, iterations, outputs, each=1):
    """Of (microseconds, bytes, whether with gradients), `each` a layer, those that are
    not of layers that run again. What is to run again runs without gradients first;
    behind the last of it comes the rest of its chunk."""
    if not job.is_recomputed or job.n_recomputed is None:
        yield from ((at, size) for at, size, has_gradients in outputs
                    if not (job.is_recomputed and has_gradients))
        return
    outputs = list(outputs)
    plain = [x[:2] for x in outputs if not x[2]]
    others = [x[:2] for x in outputs if x[2]]
    for _ in range(iterations):
        for _, layers in job.forwards():
            n = len(job.recomputed.intersection(layers)) * each
            run, plain = plain[:n], plain[n:]
            if run:
                others = [x for x in others if x[0] > run[-1][0]]
            rest, others = others[:len(layers) * each - n], others[len(layers) * each - n:]
            yield from run + rest


def first_outputs(d, job):
    """(microseconds, bytes) of the first allocation of each expert's forward."""
    if job.is_grouped:
        yield from (quantised_parts(d, job) if job.is_quantised and not job.is_bulk
                    else biased_outputs(d) if job.is_biased else grouped_outputs(d, job))
        return
    lines = column_lines(d, job)
    own = {i for i, is_first in lines.items()
           if is_first and not job.is_te and "/moe/experts.py:" in d["stacks"][i]}
    if own:
        yield from ((e[4], e[1]) for e in d["events"] if e[0] == "alloc" and e[3] in own)
        return
    if job.is_te:
        yield from of_forwards(job, count_iterations(d), te_outputs(d, job, lines), job.experts)
        return
    is_dispatched = False
    for action, size, _, stack, at, _ in d["events"]:
        if action != "alloc":
            continue
        text = d["stacks"][stack]
        if stack not in lines and INSIDE.search(text):
            continue
        if stack not in lines:
            is_moe = bool(MOE.search(text))
            if is_moe or ELSEWHERE.search(text) or EXCHANGE not in text:
                is_dispatched = is_moe
        elif is_dispatched and lines[stack]:
            yield at, size


def te_outputs(d, job, lines):
    """(microseconds, bytes, whether with gradients) of fc1 of experts one by one, fc1
    and fc2 in turns between a dispatch and a combination. Shared experts that overlap
    come between, and are followed by what is theirs. Experts without tokens stand first,
    unless none has any: whether the first has some decides when gradients go, their
    places nothing else."""
    made = [(e[4], e[1], e[3]) for e in d["events"]
            if e[0] == "alloc" and (e[3] in lines or not INSIDE.search(d["stacks"][e[3]]))]
    is_dispatched, is_column, group = False, True, []
    for (at, size, stack), (_, _, after) in zip(made, made[1:]):
        text = d["stacks"][stack]
        if stack in lines:
            if is_dispatched and SHARED not in d["stacks"][after]:
                group += [(at, size, APPLY in text)] if is_column else []
                is_column = not is_column
            continue
        if MOE.search(text):
            is_column = True
        if DISPATCHES.search(text):
            is_dispatched = True
        elif COMBINES.search(text) or (ELSEWHERE.search(text) and not MOE.search(text)):
            is_dispatched = False
            if group:
                at, _, has_gradients = group[0]
                yield from [(at, 0, has_gradients)] * (job.experts - len(group)) + group
            group = []


def column_lines(d, job):
    """Stacks of linear layers, and whether each is column-parallel (its place in
    layers.py says so; Transformer Engine's have one place)."""
    pattern = TE_LINEAR if job.is_te else LINEAR
    found = {i: m for i, text in enumerate(d["stacks"]) if (m := pattern.search(text))
             and (not job.is_quantised or TE_GEMM.search(text))}
    if job.is_te:
        return dict.fromkeys(found, True)
    first = min(int(m[1]) for m in found.values())
    return {i: int(m[1]) == first for i, m in found.items()}


def every_second(d):
    """Outputs of fc1 where frames do not reach experts.py: fc1 and fc2 alternate."""
    found = grouped_lines(d)
    last = max(found.values())
    outputs = [(e[4], e[1]) for e in d["events"]
               if e[0] == "alloc" and found.get(e[3]) == last]
    yield from outputs[::2]


def grouped_lines(d):
    """Stacks of what grouped products' forwards allocate, and its line there; the
    last is the output. The module's own forward is around them."""
    found = {i: GROUPED_LINE.findall(text) for i, text in enumerate(d["stacks"])
             if TE_OUTPUT.search(text)}
    around = {line for lines in found.values() for line in lines[1:]}
    return {i: int(lines[0]) for i, lines in found.items() if lines[0] not in around}


def grouped_outputs(d, job):
    """The same of grouped experts."""
    if job.is_combined:
        yield from every_second(d)
        return
    found = {i: int(m[1]) for i, text in enumerate(d["stacks"])
             if (m := TE_GROUPED.search(text)) and m.start() < text.find("|")}
    first = min(found.values())
    own = {i: int(GROUPED_LINE.search(d["stacks"][i])[1]) for i, line in found.items()
           if line == first}
    yield from of_forwards(job, count_iterations(d), [
        (e[4], e[1], APPLY in d["stacks"][e[3]]) for e in d["events"]
        if e[0] == "alloc" and own.get(e[3]) == max(own.values())])


def quantised_parts(d, job):
    """The same of experts whose rows are quantised one by one, which says how many
    each has: rows and, with gradients, columns come before the output."""
    found = {i: (int(m[1]), text) for i, text in enumerate(d["stacks"])
             if (m := TE_GROUPED.search(text)) and m.start() < text.find("|")
             and not (job.is_recomputed and APPLY in text)}
    first = min((line for line, _ in found.values()), default=0)
    all_lines = grouped_lines(d)
    own = all_lines if job.is_combined else {
        i: all_lines[i] for i, (line, text) in found.items()
        if line == first and i in all_lines}
    parts, is_first = [], False
    for action, size, _, stack, at, _ in d["events"]:
        if action != "alloc" or stack not in own:
            continue
        if own[stack] < max(own.values()):
            parts += [size // job.hidden] if size >= job.hidden else []
            continue
        is_first = not (job.is_combined and is_first)
        copies = sum(parts) * job.row_bytes // size
        if is_first:
            yield from ((at, tokens * job.row_bytes) for tokens in parts[::copies])
        parts = []


def biased_outputs(d):
    """Products of grouped experts' biases, and of each the sum; then all are joined."""
    found = {i: int(m[1]) for i, text in enumerate(d["stacks"]) if (m := TE_BIASED.search(text))}
    line = max(found.values())
    is_product = True
    for action, size, _, stack, at, _ in d["events"]:
        if action == "alloc" and found.get(stack) == line:
            if is_product:
                yield at, size
            is_product = not is_product


def unpadded(d):
    """(microseconds, bytes) of what experts give without the rows that pad them."""
    found = {i for i, text in enumerate(d["stacks"]) if TE_UNPADDING.search(text)}
    return [(e[4], e[1]) for e in d["events"] if e[0] == "alloc" and e[3] in found]


def without_padding(tokens, total):
    """Counts that are padded to these and have this sum: which expert's are fewer
    decides no sizes."""
    missing = sum(tokens) - total
    out = []
    for n in tokens:
        less = min(15, missing, n - 1 if n else 0)
        missing -= less
        out.append(n - less)
    return out


def reloaded(d, job, begin, end):
    """Tokens of grouped experts whose rows went to the host one by one, by layer and
    micro-batch: what comes back after fc1's output is what fc2 was given. Experts whose
    rows are too few to go stand last."""
    runs, run = [], []
    for action, size, _, stack, at, _ in d["events"]:
        if action == "alloc" and begin <= at < end:
            if "start_reload" in d["stacks"][stack]:
                run.append(size)
            elif run:
                runs.append(run)
                run = []
    layers = range(job.offloaded - 1, -1, -1)
    places = [(m, layer) for m in range(job.microbatches) for layer in layers]
    found = {}
    for place, sizes in zip(places, runs, strict=True):
        total = max(sizes)
        row = job.row_bytes // job.halves
        parts = [s // row for s in sizes[sizes.index(total) + 1:]]
        missing = job.experts - len(parts)
        rest = total // job.row_bytes - sum(parts)
        found[place] = parts + (even(rest, missing) if missing else [])
    return found


def even(tokens, experts):
    """As equal numbers as can be."""
    return [tokens // experts + (i < tokens % experts) for i in range(experts)]


def spread(total, parts, unit):
    """As equal multiples as can be."""
    return [n * unit for n in even(total // unit, parts)]


# Rows and columns that one scale of a quantised block is of.
BLOCK = 128


def split(job, total, blocks):
    """What each expert gets of rows that are known together: how many blocks they are,
    each expert's for itself, decides the size of the columns' scales."""
    unit = job.unit * (job.sources if job.is_routed and job.unit > 1 else 1)
    if job.pads_itself and not job.is_quantised:
        unit = 16
    if blocks is None or unit > BLOCK:
        return spread(total, job.experts, unit)
    most = [n * BLOCK for n in even(blocks, job.experts)]
    missing = sum(most) - total
    for i, n in enumerate(most):
        less = max(0, min(BLOCK - unit, missing, n - unit))
        missing -= less
        most[i] = n - less
    return spread(total, job.experts, unit) if missing else most


def column_blocks(d, job, firsts):
    """Blocks of rows by the microseconds of the output that they are for; the first
    run of what runs again has no columns, and its second, none of `firsts`, those."""
    found = {i: (int(m[1]), int(GROUPED_LINE.search(text)[1]), APPLY in text)
             for i, text in enumerate(d["stacks"])
             if (m := TE_GROUPED.search(text)) and m.start() < text.find("|")}
    first = min((line for line, _, _ in found.values()), default=0)
    last = max((line for _, line, _ in found.values()), default=0)
    out, parts, waiting = {}, [], {}
    for action, size, _, stack, at, _ in d["events"]:
        if action != "alloc" or found.get(stack, (0,))[0] != first:
            continue
        if found[stack][1] < last:
            parts += [size] if size > job.hidden else []
            continue
        rows_of = size // job.row_bytes
        if len(parts) > 1:
            out[at] = (parts[-1] - rows_of * job.width) // (4 * job.width)
            if waiting.get(size) and at not in firsts:
                out[waiting[size].pop()] = out[at]
        elif job.is_recomputed and not found[stack][2]:
            waiting.setdefault(size, []).append(at)
        parts = []
    return out


def chosen(job, tokens, sent):
    """Choices of a rank's own tokens for each expert that leave these numbers: what
    its experts got was as much from every rank, which a stand-in makes one of."""
    local = [n // job.sources for n in tokens]
    if any(n % job.sources for n in tokens):
        local = spread(sum(tokens) // job.sources, job.experts, job.unit)
    rest = spread(sent - sum(local), job.all_experts - job.experts, job.unit)
    out = rest[:job.first] + local + rest[job.first:]
    if job.unit == 1:
        return out
    missing = sum(out) - job.tokens * job.topk
    for i, n in enumerate(out):
        less = min(job.unit - 1, missing, max(n - 1, 0))
        missing -= less
        out[i] = n - less
    return out


def permuted(d, job):
    """(microseconds, rows) of what leaves the rank each time, which a dispatch makes
    before it: nothing else of it is a quarter of all choices, but what kernels
    are timed with."""
    found = {i for i, text in enumerate(d["stacks"])
             if ":dispatch_preprocess" in text or ":permute_with_mask_map" in text}
    choices = job.tokens * job.topk
    least, most = choices // 4, choices + job.all_experts * job.unit
    row = job.element * job.width
    return [(e[4], e[1] // row) for e in d["events"]
            if e[0] == "alloc" and e[3] in found
            and least <= e[1] / row <= most]


def count_iterations(d):
    return len([p for p in d["points"] if re.fullmatch(r"iter\d+_begin", p["name"])])


def rows(d, iterations):
    """Lines of the file for one rank's recording, of its first iterations."""
    job = Job(d)
    begins = [p["t_us"] for p in d["points"] if re.fullmatch(r"iter\d+_begin", p["name"])]
    outputs = list(first_outputs(d, job))
    is_joint = (job.is_grouped and not job.is_biased
                and (job.is_bulk or not job.is_quantised))
    ends = unpadded(d) if job.pads_itself else []
    n_outputs = 1 if is_joint else job.experts
    leaving = permuted(d, job) if job.is_routed else []
    firsts = {at for at, _ in outputs}
    blocks = column_blocks(d, job, firsts) if job.is_bulk and job.is_grouped else {}
    for iteration, begin in enumerate(begins[:iterations]):
        end = begins[iteration + 1] if iteration + 1 < len(begins) else float("inf")
        sizes = [(at, s) for at, s in outputs if begin <= at < end]
        totals = [(at, s // (job.element * job.width)) for at, s in ends if begin <= at < end]
        places = [(m, layer) for m, layers in job.forwards() for layer in layers]
        parts = reloaded(d, job, begin, end) if job.offloaded else {}
        if len(sizes) != len(places) * n_outputs:
            sys.exit(f"{d['name']}: iteration {iteration} has {len(sizes)} expert outputs, "
                     f"not {len(places) * n_outputs}: an expert without tokens?")
        for i, (microbatch, layer) in enumerate(places):
            own = sizes[i * n_outputs:(i + 1) * n_outputs]
            group = [s // job.row_bytes for _, s in own]
            tokens = split(job, group[0], blocks.get(own[0][0])) if is_joint else group
            tokens = parts.get((microbatch, layer), tokens)
            until = sizes[(i + 1) * n_outputs][0] if i + 1 < len(places) else float("inf")
            total = next((n for at, n in totals if own[-1][0] < at < until), sum(tokens))
            tokens = without_padding(tokens, total)
            if job.is_routed:
                tokens = chosen(job, tokens, max(x for x in leaving if x[0] < own[0][0])[1])
            for rank in job.peers:
                yield " ".join(map(str, [iteration, layer, microbatch, rank, *tokens]))


def read(path):
    """A recording; of its stacks the frames of Python."""
    with gzip.open(path, "rt") as f:
        d = json.load(f)
    d["stacks"] = ["|".join(x for x in text.split("|") if not x.startswith("C:"))
                   for text in d.get("stacks", [])]
    return d


def are_given(d):
    """Do the flags alone say how many rows a rank's experts get?"""
    args = d["args"]
    is_one = value(args, "--expert-model-parallel-size", "1") == "1"
    return ("--num-experts" not in args or "--moe-pad-expert-input-to-capacity" in args
            or (Job(d).is_grouped and not Job(d).is_quantised and is_one
                and "--disable-bias-linear" in args and not Job(d).offloaded
                and not Job(d).pads_itself
                and not Job(d).drops))


def lines(name, ranks, iterations):
    """The file of a case."""
    yield f"# Measured routing of {name}."
    job = Job(ranks[0])
    what = ("its own tokens for each expert" if job.is_routed
            else "tokens of each of its experts")
    yield f"# iteration, layer, micro-batch, rank, {what}"
    if job.is_alone:
        yield "alone"
    if job.is_routed:
        yield "routed"
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
            ranks.append(read(os.path.join(folder, name)))
    print("\n".join(lines(case, ranks, 16)))
    return 0 if ranks else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
