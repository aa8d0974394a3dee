#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Megatron-LM's own published peaks: two sections of docs/published.md.

    tests/accuracy/published_megatron.py REPOSITORY > tests/accuracy/published_megatron.txt
    tests/accuracy/published_megatron.py REPOSITORY experts > tests/accuracy/published_experts.txt

writes the facts: REPOSITORY is a git folder of Megatron-LM that has COMMIT. A job
has lines `job NAME`, `world N`, `env NAME=VALUE …`, `args …`, and for each kind of
card `h100 FIRST PEAK KEPT` or `a100 FIRST PEAK KEPT`: the most bytes allocated up to
the end of iteration 1 and up to the end, and those still allocated behind iteration 1,
as its last rank logged them.
"""
import json
import os
import re
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FACTS = {"dense": "published_megatron.txt", "experts": "published_experts.txt"}
COMMIT = "d98e8a64ddf34856e74b24714e3bedb2f5a39553"
TESTS = "tests/functional_tests/test_cases/"
FOLDERS = {"dense": ("gpt/",), "experts": ("gpt/", "moe/", "mixtral/")}
CARDS = {"h100": ("dev_dgx_h100", "h100-80gb"), "a100": ("dev_dgx_a100", "a100-80gb")}
# Where nothing is said the recipes start one node of eight.
WORLD = {"gpt3_15b_8t_release": 256, "mixtral_8x7b_alltoall_tp2pp4ep4_release": 128,
         "mixtral_8x7b_alltoall_tp2pp4ep4_release_sm": 128,
         "mixtral_8x7b_tp1pp4ep8vpp8_release": 64,
         "mixtral_8x22b_tp2pp8ep8vpp1_release": 128,
         "deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release_sm": 64}
# Not asked: copies of that one's values, the second beside flags with other stages;
# values older than their flags (another dispatcher); reinforcement learning.
NOT_ASKED = {"gpt3_15b_8t_release_sm", "gpt3_15b_8t_release_sm_gb200",
             "deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release",
             "gpt_grpo_tp8tp4_pp1_ep8ep2_dp8_throughputtest",
             "gpt_grpo_tp1tp2_pp1_dp8_583m_throughputtest",
             "gpt_grpo_tp1tp2_pp1_dp8_583m_throughputtest_github"}
# Refused, and why: docs/not_modelled.md.
REFUSED = {"gpt3_moe_mcore_te_tp2_pp2_ep4_etp1_fine_grained_offloading",
           "gpt3_weekly_mcore_tp2_pp2_current_scaling_native_fp8_tp_pp_sp_tp_overlap"}
# Paths, logs, checkpoints, rates: nothing that the model or the job's shape needs.
LEFT_OUT = re.compile(
    r"--(adam|async|ckpt-[a-eg-z]|clip|data-(?!parallel)|dataloader|dist-ckpt|distributed-timeout"
    r"|eval|exit|init-method|log|lr|manual|merge|min-lr|mock|no-ckpt|no-mmap|num-workers|save"
    r"|load|split|tensorboard|timing|tokenizer-model|train|use-checkpoint|use-persistent"
    r"|verify|vocab-file|wandb|weight-decay)")
# Of the tests' scripts, not of a program.
SCRIPT = {"NON_DETERMINSTIC_RESULTS", "SKIP_PYTEST"}
NOT_DENSE = re.compile(r"--(num-experts|fp8|.*fsdp|multi-latent|cuda-graph)")

TEXT = """
## Megatron-LM's functional tests with Transformer Engine

Megatron-LM publishes what its own tests allocate (`functional_tests` of commit
d98e8a64dd): the last rank's `mem-max-allocated-bytes`, after iteration 1 and at the
end. Below are all tests of GPT with Transformer Engine that have such values of an
H100, without experts, FP8 and FSDP. Flags and variables are the test's, as
`tests/accuracy/published_megatron.txt` has them. Bytes; differences are
memest minus published.

    memest --set device.name=h100-80gb --world-size 8 -- CUBLAS_WORKSPACE_CONFIG=:4096:8 pretrain_gpt.py --transformer-impl transformer_engine --num-layers 12 …

| test, `gpt3_` | published, iteration 1 | difference | published, peak | difference | |
|---|---|---|---|---|---|
"""
H100_NOTES = """
Assumed:

- one node of eight, as the tests' recipes have it, and a vocabulary of 50,257 tokens;
- of the 15 B test 256,000 tokens (`nemotron_2_256k`), and 256 GPUs: nothing says how
  many, and of those that divide its batches 256 alone gives the first iteration's
  bytes, within 2,048. With 192 and 384 the peak is 0.9 % off, with 128 2.6 %;
- the Megatron-LM, PyTorch and Transformer Engine that memest knows, while values were
  published as the containers of the time gave them, from October 2025 on.

One test is more than 1 % off, `mcore_te_tp2_pp1_resume_torch_dist_cp2_nondeterministic`:
its copy that resumes from a kept checkpoint has the same flags and 12.75 MiB less, as
memest says. Tests with context parallelism ask for flash-attn. The two that are 0.3 % off,
`7b_tp1_pp4_memory_speed` and `mcore_te_tp1_pp4_vp1`, have values of 29 May 2026. From 21 May on the micro-batches
that Megatron-LM keeps for a rerun held their tensors on the card (commit 5e4fc931ba),
until it kept copies without them (bf32f4415e, 6 July): mask, labels and loss mask of
three more micro-batches when the peak comes. Of the first, the values before differ from
memest's by 1.1 MiB of 56 GiB, of the second, by 65,536 bytes, as on most last stages. The
others are whole MiB, remainders of blocks that fell to other requests there, the most
four of 809 in `mcore_te_tp4_pp2_frozen_resume_…`, which resumes from a checkpoint.

The same on A100, whose values are those of October 2025:

| test, `gpt3_` | attention | published, iteration 1 | difference | published, peak | difference | |
|---|---|---|---|---|---|---|
"""
A100_NOTES = """
Before Hopper Transformer Engine prefers flash-attn where it is installed, as in these
containers and by memest's assumption (*flash*); the others ask for unfused attention.
flash-attn keeps its output, and the projection after it a copy with the batch behind the
sequence: in the 7 B test 33,554,432 bytes of each of its 32 layers more than with cuDNN's
kernels (`--set impl.flash_attn=none`), without which it would be 1.85 % off. What remains
are remainders of blocks that fell to other requests, whole MiB, as on H100. In the two
tests with fused cross entropy the PyTorch of October 2025 kept more of the logits; H100's
values are newer. So are they of deferred products of the output layer: the unfused test
of A100 has 25,821,184 bytes, that layer's weight, and 3 MiB less.
"""
EXPERTS_TEXT = """
## Megatron-LM's functional tests with experts, FP8, FSDP, graphs or latent attention

The same of all other tests with Transformer Engine that have values of an H100
(`tests/accuracy/published_experts.txt`): flags and variables are the test's, routing is
balanced, which is memest's default, and no token was counted. *Kept* are the bytes that
are still allocated behind iteration 1 (`mem-allocated-bytes`): no routing moves them.

    memest --set device.name=h100-80gb --set impl.importable=transformer_engine --world-size 8 -- CUDA_DEVICE_MAX_CONNECTIONS=1 pretrain_gpt.py --num-experts 8 …

| test | GPUs | published, kept | difference | iteration 1 | difference | peak | difference |
|---|---|---|---|---|---|---|---|
"""
EXPERTS_NOTES = """
Assumed:

- one node of eight where the tests' recipes have it, and a vocabulary of 50,257 tokens,
  or the 32,000 of Llama 2's tokenizer;
- Transformer Engine can be imported, as in the tests' containers, so that jobs with
  Megatron-LM's own layers (`…te_4experts2parallel…` of `--transformer-impl local`) have its
  optimizer, its norm of gradients and its product in the router;
- GPUs of the Mixtral and the DeepSeek-V3 tests, which nothing tells: the number that
  gives the bytes kept. With half and twice as many the first iteration is 4 to 28 % off;
- of the Mixtral 8x7B test with tensor 2 and expert 4, and of DeepSeek-V3's, 256,000 tokens
  (`nemotron_2_256k`).

What is kept is the published number, but for remainders of blocks that fell to other requests
(up to 9 MiB), in all tests that are not named below, so what is off in them is routing: a peak
is that of the last rank's worst iteration, of up to a hundred (thousands in the Mixtral and
DeepSeek-V3 tests), and routers of 50 iterations are hardly trained. Those above 1.6 % are

- `memory_speed`, which logs 57.80 GB in its second iteration, 1.7 % more than memest says, and
  60.11 GB from its 39th on;
- `ep8…_dist_optimizer`, of which the last rank holds one expert of eight, within 0.6 % in its
  first two iterations, and growing until its 26th;
- `deepseekv3_proxy…`, 0.2 % off in its fifth iteration;
- `mixtral_8x7b_tp1pp4ep8vpp8…`, which begins with Mixtral's own weights (`--finetune --load`), as
  `mixtral_8x22b…` does: 1.08 times the balanced tokens for the last of eight experts give its
  first iteration within 0.3 % and its peak within 0.5 %;
- `mixtral_8x7b_alltoall_…`, twice the same job: 25.91 GB in their fifth iteration, 26.49 in
  their 20th, and one of them 27.64 in its 75th: the router is at its worst then. The longer
  one starts again some twenty times from what it saved, and with a router of 1,300 to
  24,000 iterations a process begins with 25.21 to 25.30 GB and ends with 25.82 at most.
  memest's 26.37 GB are of balanced tokens and of core_v0.19.0: since Megatron-LM of August
  2025 (commit e7c55de99e) and Transformer Engine of that time a gradient that nobody reads
  is kept for the output layer and for each shape of an expert, 1,048,576,000, 117,440,512 and
  58,720,256 bytes, which are the 1,224,736,768 that memest keeps more than these values of an
  older container, but for 5,632. Without them it says 25.15 GB, 0.2 % less than that router's.

Beside that:

- `…frozen_resume…8experts2parallel…` and `…8experts_etp1_ep4` have values of October 2025. Since
  that month (commit 56818f9e50) deterministic experts are added up by `index_add_()`, of which
  PyTorch keeps what is added. `…8experts2parallel_ddp_average…`, which has values of both
  times, grew by 50,787,328 bytes with it, twelve times 4 MiB and 0.4 more; the first two are
  off by as much, the third, whose last rank gets fewer tokens than others, by twice that;
- `…mtp…fp8` is `memory_speed` in FP8. It logs 55.93 GB in its second iteration, 0.3 % less
  than memest says, and 57.58 GB later, as routers learn. What FP8 saves is not the same:
  1.88 GB in both iterations, in memest 0.72 GB. The difference is about 64 MiB for each of the
  fifteen layers that wait at the peak, if routing is as uneven as `memory_speed` has it;
  between steps the test has 6.4 MB more than memest. No flag of it is left out, and recorded
  jobs of core_v0.19.0 with its parts are exact (`t1_mla_moe_fp8_unfused`,
  `t1_mla_moe_mtp_fp8_unfused`), so that what is left is taken for its container's versions;
- `zp_z3…top2router` is of another Megatron-FSDP: its recipe has called it broken since
  27 March 2026 (commit 3758b54b2b), so its values of 22 March were not held to anything
  later. They moved by a third twice in the five months before (2.58, 3.46, 2.58 GB). After
  an iteration 787,530,240 bytes lasted then and 993,075,712 do now, where the weights
  are gathered behind the step and gradients kept in float32; and the first iteration
  took as much as any other, as one does whose optimizer has its states before it. A job with
  the flags of this one, but for tensor parallelism, is exact with core_v0.19.0
  (`f_mfsdp_ep2_dp4_z3`);
- `…selective_recompute_experimental` keeps 197 MB less: its values are of October 2025, and the
  plan of overlapped experts has been written anew since, of whose nodes core_v0.19.0 keeps
  results from step to step. A recorded job of it with these parts is exact (`t1x_ov_sel`);
- `…dist_muon_param_layout` has buffers of two layouts, which the commit that its values came
  with gave to Muon's matrices and to the rest (0044db1f20). `pretrain_gpt.py` of core_v0.19.0
  builds its models elsewhere (`megatron/training/models/dist_utils.py`), where Muon has no
  layout: there the test is its copy `…dist_muon`;
- `deepseek_proxy_fsdp…ep_overlap` keeps 19 MB less: of Megatron-FSDP memest runs micro-batches one
  after the other, which its report says;
- `…scoped_cudagraph` keeps 781 to 809 MB, other bytes after each iteration: what lies between
  the captured blocks is taken again as it comes;
- `fine_grained_offloading` is refused as Megatron-LM core_v0.19.0 stops at it: its last
  stage is one layer, of multi-token prediction, none of whose groups goes to the host,
  and since 2 July 2026 (commit 69c486825c) such a chunk counts as done before it is
  ("Chunk mismatch"). Its recipe there calls it broken; its values are of March. Where such
  groups stay in line, as they did then, memest has 202,240 bytes less after the first
  iteration and 2.2 % less at the peak. Its copy without that layer is the row after it;
- `…tp_pp_sp_tp_overlap` is refused as Megatron-LM refuses it: user buffers are not
  deterministic (`megatron/training/determinism.py`), which its values are older than;
- `zp_z3_resume_fsdp_dtensor` took as much in its first iteration as in any other, as
  `zp_z3…top2router`.

Not asked: `deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release`, whose values are of a time
before its flags named HybridEP (its copy `…_sm` has newer ones), and `gpt_grpo…`, which are
reinforcement learning.
"""


def show(repository, path):
    """A file of the commit, None where it has none."""
    done = subprocess.run(["git", "--git-dir=" + repository, "show", f"{COMMIT}:{path}"],
                          capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def sections(text):
    """The two levels of a model_config.yaml: {section: {key: value}}."""
    found, inner = {}, {}
    for line in text.splitlines():
        line = re.sub(r"\s+#.*", "", line).rstrip()
        match = re.match(r"( *)(.+?):(?: +(.*))?$", line)
        if match and not match[1]:
            inner = found.setdefault(match[2], {})
        elif match:
            inner[match[2]] = (match[3] or "").strip('"')
    return found


def words(args):
    """The flags of a job, without those that do not matter."""
    kept = []
    for flag, value in args.items():
        if value != "false" and not LEFT_OUT.match(flag):
            # Several numbers are several words.
            is_text = " " in value and re.fullmatch(r"\[[\w ]+\]|[\d ]+", value) is None
            kept += [flag] if value == "true" else [
                flag, json.dumps(value) if is_text else value.strip("[]")]
    if "--vocab-size" not in args:
        kept += ["--vocab-size", "32000" if args.get("--tokenizer-type") == "Llama2Tokenizer"
                 else "256000" if "--tokenizer-model" in args else "50257"]
    return " ".join(kept)


def bytes_of(text, metric):
    """What was logged of a metric, by step; None where it was not."""
    logged = json.loads(text).get(metric) if text else None
    if not isinstance(logged, dict):
        return None
    # Steps that were not logged are "nan".
    return {int(step): int(value) for step, value in logged["values"].items()
            if value != "nan"}


def peaks(repository, folder, card):
    text = show(repository, f"{folder}/golden_values_{CARDS[card][0]}.json")
    most = bytes_of(text, "mem-max-allocated-bytes")
    if most is None:
        return []
    kept = bytes_of(text, "mem-allocated-bytes")
    return [f"{card} {most[min(most)]} {max(most.values())} {kept[min(kept)]}"]


def is_asked(kind, name, args):
    """Is a test with such flags one of the section `kind`?"""
    if name in NOT_ASKED:
        return False
    is_te = args.get("--transformer-impl") == "transformer_engine"
    is_plain = not any(NOT_DENSE.match(flag) for flag in args)
    if kind == "experts":
        return "--num-experts" in args or (is_te and not is_plain)
    return is_te and is_plain


def extract(repository, kind):
    folders = subprocess.run(
        ["git", "--git-dir=" + repository, "ls-tree", "--name-only", COMMIT]
        + [TESTS + folder for folder in FOLDERS[kind]],
        capture_output=True, text=True, check=True).stdout.split()
    print(f"# Facts of Megatron-LM's tests at {COMMIT[:10]}, by published_megatron.py.")
    for folder in folders:
        name = os.path.basename(folder)
        job = sections(show(repository, folder + "/model_config.yaml") or "")
        args = job.get("MODEL_ARGS", {})
        if not is_asked(kind, name, args):
            continue
        lines = peaks(repository, folder, "h100")
        if kind == "dense":
            lines += peaks(repository, folder, "a100")
        if not lines:
            continue
        env = [f"{key}={value}" for key, value in job.get("ENV_VARS", {}).items()
               if key not in SCRIPT]
        print("\n".join([f"job {name}", f"world {WORLD.get(name, 8)}", "env " + " ".join(env),
                         "args " + words(args)] + lines))


def read_facts(kind):
    """The jobs of a section: {word: rest of its line}."""
    jobs = []
    with open(os.path.join(HERE, FACTS[kind]), encoding="utf-8") as f:
        for line in f:
            key, _, rest = line.rstrip("\n").partition(" ")
            if key == "job":
                jobs.append({})
            if key != "#":
                jobs[-1][key] = rest
    return jobs


def allocated(rank):
    """The most bytes up to the end of iteration 1 and up to the end, from the start:
    nothing resets the counter, so what is captured before counts as well; and the
    bytes that are still there at the end of iteration 1."""
    most, first, kept = 0, None, None
    for point in rank["points"]:
        most = max(most, point["allocated_peak_bytes"])
        if point["name"] == "iter0_end":
            first, kept = most, point["allocated_bytes"]
    return first, most, kept


def ask(run, card, job):
    """What memest says of the job's last rank."""
    rank = run("--set", "device.name=" + CARDS[card][1], "--set",
               "impl.importable=transformer_engine", "--world-size", job["world"], "--",
               *shlex.split(job["env"]), "pretrain_gpt.py", *shlex.split(job["args"]))[-1]
    return allocated(rank)


def rows(run, card, jobs, limits, worst):
    """Lines of one card's table; `run` asks memest and gives its ranks."""
    lines, off = [], []
    for job in jobs:
        if card not in job:
            continue
        first, most = map(int, job[card].split()[:2])
        ours = ask(run, card, job)
        off.append(abs(ours[1] / most - 1))
        kind = "unfused" if "--attention-backend unfused" in job["args"] else "flash"
        name = "" if card == "h100" else f" {kind} |"
        lines.append(f"| {job['job'].removeprefix('gpt3_')} |{name} {first:,} | "
                     f"{ours[0] - first:+,} | {most:,} | {ours[1] - most:+,} | "
                     f"{100 * (ours[1] / most - 1):+.2f} % |")
        limit = card if card == "h100" else f"{card}, {kind}"
        newer = re.search("--(cross-entropy-loss-fusion|defer-embedding)", job["args"])
        if newer is None or card == "h100":
            worst[limit] = max(worst[limit], off[-1])
    mean = sum(off) / len(off)
    if card + ", mean" in limits:
        worst[card + ", mean"] = mean
    lines.append(f"\nOf {len(off)} tests, {100 * mean:.2f} % on average, "
                 f"{100 * max(off):.2f} % at most.")
    return "\n".join(lines) + "\n"


def experts(run, worst):
    """The table of jobs with experts."""
    lines, off = [], []
    for job in read_facts("experts"):
        first, most, kept = map(int, job["h100"].split())
        name = f"| {job['job']} | {job['world']} |"
        if job["job"] in REFUSED:
            lines.append(f"{name} {kept:,} | refused | {first:,} | refused | {most:,} | refused |")
            continue
        ours = ask(run, "h100", job)
        off.append(abs(ours[1] / most - 1))
        lines.append(f"{name} {kept:,} | {ours[2] - kept:+,} | "
                     f"{first:,} | {100 * (ours[0] / first - 1):+.2f} % | {most:,} | "
                     f"{100 * (ours[1] / most - 1):+.2f} % |")
    worst["experts"] = max(off)
    worst["experts, mean"] = sum(off) / len(off)
    lines.append(f"\nOf {len(off)} tests, {100 * worst['experts, mean']:.2f} % on average, "
                 f"{100 * max(off):.2f} % at most.")
    return "\n".join(lines) + "\n"


def section(run, limits, worst):
    """The sections, and in `worst` what is most off of each of `limits`."""
    jobs = read_facts("dense")
    return (TEXT + rows(run, "h100", jobs, limits, worst) + H100_NOTES
            + rows(run, "a100", jobs, limits, worst) + A100_NOTES
            + EXPERTS_TEXT + experts(run, worst) + EXPERTS_NOTES)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[-1] == "--help":
        sys.exit(__doc__)
    extract(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "dense")
