# SPDX-License-Identifier: BSD-3-Clause
"""The jobs and the flags of docs/saving_memory.md; tools/saving-memory asks for them.

Settings are memest's options, with `;` between them; `{alone}` are those of the job with
one pipeline stage. Where jobs differ a dictionary has each job's, and a job that it lacks
has no such row.
"""
from collections import namedtuple

Job = namedtuple("Job", "key short title words alone has_experts")
Row = namedtuple("Row", "flag settings when beside", defaults=("", ("", "")))
Group = namedtuple("Group", "title text rows")


def words(model, world_size, *settings):
    return ["--model", model, "--world-size", str(world_size),
            *(x for s in settings for x in ("--set", s))]


EXPERTS = ("moe.grouped_gemm=true", "moe.token_dispatcher=alltoall",
           "optimizer.distributed=true", "train.micro_batch_size=1")
JOBS = (
    Job("L", "Llama-3-70B",
        "Llama-3-70B: 64 GPUs, tensor 8 with sequence parallelism, pipeline 4, data 2",
        words("llama-3-70b", 64, "parallel.tensor=8", "parallel.pipeline=4",
              "parallel.sequence=true", "optimizer.distributed=true",
              "train.micro_batch_size=1", "train.global_batch_size=32"),
        "parallel.pipeline=1", False),
    Job("Q", "Qwen3-30B-A3B",
        "Qwen3-30B-A3B: 16 GPUs, pipeline 2, 8 expert ranks, grouped experts",
        words("qwen3-30b-a3b", 16, "parallel.pipeline=2", "parallel.expert=8", *EXPERTS,
              "train.global_batch_size=64"),
        "parallel.pipeline=1", True),
    Job("D", "DeepSeek-V3",
        "DeepSeek-V3: 1,024 GPUs, pipeline 16, 64 expert ranks, grouped experts",
        words("deepseek-v3", 1024, "parallel.pipeline=16",
              "parallel.pipeline_layout=Et*3|(tttt|)*14ttL", "parallel.expert=64",
              *EXPERTS, "train.global_batch_size=2048"),
        "parallel.pipeline=1;parallel.pipeline_layout=;recompute.granularity=full;"
        "recompute.num_layers=1", True),
)
ALONE = """\
Some flags want a job without pipeline stages: `PP1` is the job with
`--pipeline-model-parallel-size 1`, DeepSeek-V3 with full recomputation as well."""


def of(jobs, settings):
    """Settings of some jobs alone, by their letters."""
    return dict.fromkeys(jobs, settings)


def and_more(first, second):
    """A row's neighbour with one flag more."""
    return f"{first[0]} {second[0]}".strip(), ";".join(
        x for x in (first[1], second[1]) if x)


PP1 = ("PP1", "{alone}")
LAYOUTS = Group(
    "Layout: what a rank holds", "Degrees are of a rank's share of everything; those of "
    "the jobs are held to half of them, and the pipeline to twice.", (
        Row("tensor ranks, twice as many, with `--sequence-parallel`",
            {"L": "parallel.tensor=8", "Q": "parallel.tensor=2;parallel.sequence=true;"
             "parallel.expert_tensor=1",
             "D": "parallel.tensor=2;parallel.sequence=true;parallel.expert_tensor=1"},
            "up to a node's GPUs; experts keep theirs whole "
            "(`--expert-tensor-parallel-size 1`)",
            ("half", {"L": "parallel.tensor=4", "Q": "", "D": ""})),
        Row("pipeline stages, twice as many",
            {"L": "parallel.pipeline=8", "Q": "parallel.pipeline=4",
             "D": "parallel.pipeline=32;parallel.pipeline_layout=Ett|(tt|)*29t|L"},
            "weights and optimizer halve, activations of the first stage hardly"),
        Row("`--expert-model-parallel-size`, twice as large",
            {"Q": "parallel.expert=8", "D": "parallel.expert=64"},
            "as long as data ranks are left", ("half", {"Q": "parallel.expert=4",
                                                        "D": "parallel.expert=32"})),
        Row("`--context-parallel-size 2`", "parallel.context=2",
            "long sequences; half as many data ranks, so more micro-batches"),
        Row("`--context-parallel-size 2 --cp-comm-type all_gather`",
            "parallel.context=2;parallel.cp_comm_type=all_gather",
            "keys and values of all ranks at once"),
        Row("`--context-parallel-size 2 --cp-comm-type a2a`",
            "parallel.context=2;parallel.cp_comm_type=a2a",
            "all of the sequence of some heads"),
        Row("`--context-parallel-size 2 --cp-comm-type a2a+p2p "
            "--hierarchical-context-parallel-sizes 2 1`",
            "parallel.context=2;parallel.cp_comm_type=a2a+p2p;parallel.context_heads=2",
            "as a2a inside of a node, a ring between nodes"),
        Row("`--decoder-first-pipeline-num-layers`, two or three layers fewer",
            {"L": "parallel.decoder_first_pipeline_num_layers=17",
             "Q": "parallel.decoder_first_pipeline_num_layers=22"},
            "where the first stage decides; DeepSeek's layout has it"),
        Row("without chunks of stages (`--num-virtual-stages-per-pipeline-rank 1`)",
            {"L": "parallel.virtual_pipeline=1", "Q": "parallel.virtual_pipeline=1",
             "D": "parallel.pipeline_layout=Et*3|(tttt|)*14ttL"},
            "chunks cost memory for a shorter bubble",
            ("2", {"L": "parallel.virtual_pipeline=2", "Q": "parallel.virtual_pipeline=2",
                   "D": "parallel.pipeline_layout=Ett|(tt|)*29t|L"})),
    ))

FP8 = ("`--fp8-format hybrid`", "train.fp8=hybrid")
TENSORWISE = ("`--fp8-format hybrid --fp8-recipe tensorwise`",
              "train.fp8=hybrid;train.fp8_recipe=tensorwise")
BLOCKWISE = ("`--fp8-format hybrid --fp8-recipe blockwise`",
             "train.fp8=hybrid;train.fp8_recipe=blockwise")
MFSDP = ("PP1 `--use-megatron-fsdp`",
         "{alone};parallel.megatron_fsdp=true;train.gradient_accumulation_fusion=false")
UNCLIPPED = and_more(MFSDP, ("`--clip-grad 0`", "optimizer.clip_grad=0"))
FSDP2 = ("PP1 `--use-torch-fsdp2`",
         of("L", "{alone};parallel.torch_fsdp2=true;optimizer.distributed=false;"
            "train.gradient_accumulation_fusion=false"))
FP8_SHARDS = ("PP1 `--use-megatron-fsdp --fp8-format hybrid --fp8-recipe tensorwise "
              "--fp8-param-gather`",
              f"{MFSDP[1]};{TENSORWISE[1]};train.fp8_param=true")
INSTANCES = ("PP1 `--use-megatron-fsdp --num-distributed-optimizer-instances 2`",
             of("LQ", MFSDP[1] + ";optimizer.num_distributed_optimizer_instances=2"))



def strategy(word, when, jobs="LQ"):
    return Row(f"`--use-megatron-fsdp --data-parallel-sharding-strategy {word}`",
               of(jobs, f"{MFSDP[1]};parallel.sharding_strategy={word}"), when, PP1)


SHARDS = Group(
    "Weights, gradients and optimizer: shared by data ranks",
    "`--use-distributed-optimizer` shares out the optimizer, FSDP the rest as well, for "
    "jobs without pipeline stages.", (
        Row("`--use-distributed-optimizer`, which the jobs have",
            "optimizer.distributed=true", "always",
            ("the job without", "optimizer.distributed=false")),
        strategy("no_shard", "never for memory: buffers of its own beside all"),
        strategy("optim", "as the distributed optimizer"),
        strategy("optim_grads", "as ZeRO-2"),
        strategy("optim_grads_params", "as ZeRO-3, the default: few layers' weights at a "
                 "time, gathered for each micro-batch", "LQD"),
        Row("`--use-torch-fsdp2` without `--use-distributed-optimizer`", FSDP2[1],
            "PyTorch's; not with expert ranks", PP1),
    ))
SHARDS_MORE = Group(
    "Weights, gradients and optimizer: how FSDP shares them",
    "Beside `optim_grads_params`, the default, where no strategy is named.", (
        Row("`--fsdp-double-buffer`", "parallel.fsdp_double_buffer=true",
            "two buffers for like layers, which stay: less fragmentation", MFSDP),
        Row("`--fsdp-db-use-persist-buf-on-alloc-fail`",
            "parallel.fsdp_db_use_persist_buf_on_alloc_fail=true",
            "what is like no other layer stays too",
            and_more(MFSDP, ("`--fsdp-double-buffer`", "parallel.fsdp_double_buffer=true"))),
        Row("`--suggested-communication-unit-size 200000000`",
            "parallel.suggested_communication_unit_size=200000000",
            "fewer layers gathered ahead; the default is a billion elements", MFSDP),
        Row("`--megatron-fsdp-main-params-dtype auto`", "parallel.fsdp_main_params_dtype=auto",
            "the optimizer steps bf16 parameters: losses come out otherwise", UNCLIPPED),
        Row("`--megatron-fsdp-main-params-dtype bf16`", "parallel.fsdp_main_params_dtype=bf16",
            "likewise, in a buffer of its own", UNCLIPPED),
        Row("`--megatron-fsdp-main-grads-dtype fp32`",
            "parallel.fsdp_main_grads_dtype=fp32", "sums of many micro-batches", MFSDP),
        Row("`--megatron-fsdp-grad-comm-dtype bf16`",
            "parallel.fsdp_grad_comm_dtype=bf16", "reduced in bf16, kept in float32",
            and_more(MFSDP, ("`--megatron-fsdp-main-grads-dtype fp32`",
                             "parallel.fsdp_main_grads_dtype=fp32"))),
        Row("`--init-model-with-meta-device`", "parallel.init_model_with_meta_device=true",
            "where the whole model does not fit before it is cut", MFSDP),
        Row("`--fp8-format hybrid --fp8-recipe tensorwise --fp8-param-gather`",
            f"{TENSORWISE[1]};train.fp8_param=true", "bytes are gathered", MFSDP),
        Row("without `--keep-fp8-transpose-cache`", "parallel.fsdp_keep_fp8_columns=false",
            "transposes are made again for each backward",
            (FP8_SHARDS[0] + " `--keep-fp8-transpose-cache`",
             FP8_SHARDS[1] + ";parallel.fsdp_keep_fp8_columns=true")),
        Row("`--outer-dp-sharding-strategy optim`", "parallel.outer_sharding_strategy=optim",
            "the optimizer over all instances, weights inside of one", INSTANCES),
        Row("without `--torch-fsdp2-no-reshard-after-forward`",
            of("L", "parallel.torch_fsdp2_reshard_after_forward=true"),
            "weights are gathered again for the backward",
            ("PP1 `--use-torch-fsdp2 --torch-fsdp2-no-reshard-after-forward`",
             of("L", FSDP2[1]["L"] + ";parallel.torch_fsdp2_reshard_after_forward=false"))),
        Row("one instance, PP1",
            of("LQ", "{alone};optimizer.num_distributed_optimizer_instances=1"),
            "`--num-distributed-optimizer-instances 2` reduces inside of one first, and "
            "half as many ranks share a state",
            ("two", of("LQ", "{alone};optimizer.num_distributed_optimizer_instances=2"))),
    ))

PRECISE = ("`--use-precision-aware-optimizer`", "optimizer.precision_aware=true")
GRADIENTS = Group(
    "Gradients", "Float32 of all parameters, unless they are told otherwise.", (
        Row("`--grad-reduce-in-bf16`", "train.grad_reduce_in_bf16=true",
            "few micro-batches: sums are bf16 too"),
        Row("`--main-grads-dtype bf16`", "optimizer.main_grads_dtype=bf16",
            "the same, of the precision-aware optimizer", PRECISE),
        Row("`--overlap-grad-reduce`", "optimizer.overlap_grad_reduce=true",
            "for time; nothing saved"),
        Row("`--ddp-bucket-size 10000000`", "optimizer.ddp_bucket_size=10000000",
            "buckets are cut from one buffer: their ends are padded",
            ("`--overlap-grad-reduce`", "optimizer.overlap_grad_reduce=true")),
        Row("`--overlap-param-gather`", "optimizer.overlap_param_gather=true",
            "for time; nothing saved",
            ("`--overlap-grad-reduce`", "optimizer.overlap_grad_reduce=true")),
        Row("`--ddp-pad-buckets-for-high-nccl-busbw`",
            "optimizer.ddp_pad_buckets_for_high_nccl_busbw=true", "ends padded further",
            ("`--overlap-grad-reduce`", "optimizer.overlap_grad_reduce=true")),
        Row("without `--ddp-reduce-scatter-with-fp32-accumulation`",
            "optimizer.ddp_reduce_scatter_with_fp32_accumulation=false",
            "it receives all parts of a bucket beside it",
            ("`--grad-reduce-in-bf16 --ddp-reduce-scatter-with-fp32-accumulation`",
             "train.grad_reduce_in_bf16=true;"
             "optimizer.ddp_reduce_scatter_with_fp32_accumulation=true")),
        Row("without `--no-gradient-accumulation-fusion`",
            "train.gradient_accumulation_fusion=true",
            "weight gradients go into the buffer at once",
            ("it", "train.gradient_accumulation_fusion=false")),
        Row("without `--defer-embedding-wgrad-compute`",
            "train.defer_embedding_wgrad_compute=false",
            "inputs of the output layer wait for the flush",
            ("it", "train.defer_embedding_wgrad_compute=true")),
    ))

LOW = ("`--use-precision-aware-optimizer --main-grads-dtype bf16`",
       PRECISE[1] + ";optimizer.main_grads_dtype=bf16")
OFFLOADED = ("`--use-precision-aware-optimizer --optimizer-cpu-offload`",
             PRECISE[1] + ";optimizer.cpu_offload=true")


def moments(word):
    return (f"`--exp-avg-dtype {word} --exp-avg-sq-dtype {word}`",
            f"optimizer.exp_avg_dtype={word};optimizer.exp_avg_sq_dtype={word}")


OPTIMIZERS = Group(
    "Optimizer", "Main parameters and two moments, 12 bytes of each parameter that a rank "
    "steps: the more data ranks share them, the less there is to save.", (
        Row(*PRECISE, "float32 main parameters as bf16 parameters and 16 low bits"),
        Row(*moments("bf16"), "losses come out otherwise", PRECISE),
        Row(*moments("fp16"),
            "likewise, with scales; float32 copies in the step, which stay reserved", PRECISE),
        Row(*moments("fp8"), "likewise, and fewest bytes", PRECISE),
        Row("`--main-params-dtype fp16`", "optimizer.main_params_dtype=fp16",
            "no fewer bits than the 16 low ones; copies in the step", PRECISE),
        Row("`--main-grads-dtype bf16 --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16`",
            "optimizer.main_grads_dtype=bf16;" + moments("bf16")[1],
            "all that is usual together", PRECISE),
        Row("`--use-precision-aware-optimizer --optimizer-cpu-offload`", OFFLOADED[1],
            "the host's memory and its time, which is not in the step"),
        Row("`--optimizer-offload-fraction 0.5`", "optimizer.offload_fraction=0.5",
            "half as much, where the host has no more", OFFLOADED),
        Row("without `--overlap-cpu-optimizer-d2h-h2d`",
            "optimizer.overlap_cpu_optimizer_d2h_h2d=false",
            "it copies on streams of their own",
            (OFFLOADED[0] + " `--overlap-cpu-optimizer-d2h-h2d`",
             OFFLOADED[1] + ";optimizer.overlap_cpu_optimizer_d2h_h2d=true")),
        Row("`--no-pin-cpu-grads`", "optimizer.pin_cpu_grads=false",
            "pageable memory of the host", OFFLOADED),
        Row("`--optimizer muon`", "optimizer.kind=muon",
            "one moment of matrices; ranks have whole ones, some more than others"),
        Row("`--muon-tp-mode distributed`", of("L", "optimizer.muon_tp_mode=distributed"),
            "products over tensor ranks", ("`--optimizer muon`", "optimizer.kind=muon")),
        Row("`--muon-scalar-optimizer lion`", "optimizer.muon_scalar_optimizer=lion",
            "one moment of the rest too", ("`--optimizer muon`", "optimizer.kind=muon")),
        Row("`--optimizer adaptive_muon`", "optimizer.kind=adaptive_muon",
            "muon with a second moment"),
        Row("`--optimizer lion`", "optimizer.kind=lion", "one moment; whole matrices too"),
        Row("`--optimizer soap`", "optimizer.kind=soap",
            "four squares of a matrix' sides beside two moments"),
        Row("`--optimizer sgd`", "optimizer.kind=sgd", "one moment",
            ("adam, both without `--use-distributed-optimizer`",
             "optimizer.distributed=false")),
    ))


def recompute(*modules):
    """Settings of selective recomputation of some modules."""
    chosen = ["recompute.granularity=selective", "recompute.core_attn=false"]
    return ";".join(chosen + [f"recompute.{m}=true" for m in modules])


def selective(modules, settings, when):
    """Rows of `--recompute-modules`; `settings` are of all jobs or of some."""
    return Row("`--recompute-granularity selective --recompute-modules "
               f"{modules}`", settings, when)


UNIFORM = "recompute.granularity=full;recompute.num_layers=1"
NO_SEQUENCE = ("tensor ranks without `--sequence-parallel`",
               of("L", "parallel.sequence=false"))
RECOMPUTE = Group(
    "Activations: computed again", "Time for memory, a layer's forward at most.", (
        Row("`--recompute-granularity full --recompute-method uniform "
            "--recompute-num-layers 1`", UNIFORM,
            "where nothing less is enough: a layer keeps its input alone"),
        Row("`--recompute-granularity full --recompute-method uniform "
            "--recompute-num-layers 2`",
            "recompute.granularity=full;recompute.num_layers=2",
            "inputs of every second layer; two layers at a time in the backward"),
        Row("`--recompute-granularity full --recompute-method block "
            "--recompute-num-layers N`, half of a stage's layers",
            {"L": "recompute.granularity=full;recompute.method=block;"
             "recompute.num_layers=10",
             "Q": "recompute.granularity=full;recompute.method=block;"
             "recompute.num_layers=12",
             "D": "recompute.granularity=full;recompute.method=block;"
             "recompute.num_layers=2"},
            "only as many layers as it takes"),
        Row("`--distribute-saved-activations`",
            of("L", "recompute.distribute_saved_activations=true"),
            "inputs of layers are shared out and gathered again",
            and_more((NO_SEQUENCE[0] + " with full recomputation", NO_SEQUENCE[1]["L"]),
                     ("", UNIFORM))),
        Row("`--recompute-activations`", "recompute.granularity=selective",
            "core attention: fused attention keeps little anyhow"),
        selective("mlp", {"L": recompute("mlp"), "D": recompute("mlp")},
                  "dense layers"),
        selective("layernorm", recompute("layernorm"),
                  "norms that are modules of their own, as experts have"),
        selective("moe_act", of("QD", recompute("moe_act")), "cheap, of grouped experts"),
        selective("moe_act layernorm", of("QD", recompute("moe_act", "layernorm")),
                  "the first to try with experts"),
        selective("moe", of("QD", recompute("moe")), "whole layers of experts"),
        selective("shared_experts", of("D", recompute("shared_experts")),
                  "shared experts alone"),
        selective("mla_up_proj", of("D", recompute("mla_up_proj")),
                  "heads are made of the latents again"),
        selective("mla_up_proj moe_act layernorm",
                  of("D", recompute("mla_up_proj", "moe_act", "layernorm")),
                  "the three that cost least"),
    ))


def offload(modules, when, jobs="LQD", more=""):
    settings = ";".join(f"offload.{m}=true" for m in ("fine_grained", *modules.split()))
    return Row(f"`--fine-grained-activation-offloading --offload-modules {modules}`"
               + (f" `{more[0]}`" if more else ""),
               of(jobs, settings + (f";{more[1]}" if more else "")), when)


OFFLOAD = Group(
    "Activations: in the host's memory", "Copies run beside the products; whether the host's "
    "links keep up is not in the step. Transformer Engine wants `NVTE_CPU_OFFLOAD_V1=1`.", (
        offload("core_attn attn_proj", "the two go together"),
        offload("qkv_linear core_attn attn_proj", "all of attention"),
        offload("qkv_linear core_attn attn_proj", "half of the groups",
                more=("--activation-offload-fraction 0.5", "offload.fraction=0.5")),
        offload("qkv_linear core_attn attn_proj",
                "later stages, which hold less, keep more", "L",
                more=("--delta-offload-bytes-across-pp-ranks 536870912",
                      "offload.delta_bytes=536870912")),
        offload("attn_norm", "norms that are modules of their own", "LQD"),
        offload("mlp_norm", "likewise", "LQD"),
        offload("expert_fc1 moe_act", "most of what experts keep", "QD"),
        offload("qkv_linear core_attn attn_proj expert_fc1 moe_act", "all of them", "QD"),
        Row("`--cpu-offloading-num-layers N`, a quarter of the layers",
            {"L": "offload.num_layers=20", "Q": "offload.num_layers=12"},
            "jobs without pipeline stages and recomputation", PP1),
    ))

CHUNKS = ("two chunks a stage", {"Q": "parallel.virtual_pipeline=2",
                                 "D": "parallel.pipeline_layout=Ett|(tt|)*29t|L"})
LOW_PRECISION = Group(
    "Weights and activations: in FP8", "Inputs of products are kept as bytes, and weights in "
    "both types unless they are gathered as bytes (`--fp8-param-gather`). Losses come out "
    "otherwise.", (
        Row(*FP8, "delayed scaling, of earlier steps"),
        Row("`--fp8-param-gather`", "train.fp8_param=true",
            "weights are bytes alone; the optimizer has what they are made of", FP8),
        Row(*TENSORWISE, "scaled by its own maximum"),
        Row("`--fp8-param-gather`", "train.fp8_param=true", "likewise", TENSORWISE),
        Row(*BLOCKWISE, "a scale of each block of 128"),
        Row("`--fp8-param-gather`", "train.fp8_param=true", "likewise", BLOCKWISE),
        Row("`--fp8-format e4m3 --fp8-recipe mxfp8`, on a B200",
            "train.fp8=e4m3;train.fp8_recipe=mxfp8;device.name=b200-180gb",
            "a scale of each block of 32", ("bf16 on a B200", "device.name=b200-180gb")),
        Row("`--first-last-layers-bf16`", "train.first_last_layers_bf16=true",
            "for the loss: costs what FP8 saves there", TENSORWISE),
    ))

ONE_LOSS = ("`--cross-entropy-loss-fusion`", "train.cross_entropy_loss_fusion=true")
ACTIVATIONS = Group(
    "Activations: fewer or smaller", "The cheapest come first.", (
        Row("`--sequence-parallel`, which the job has", of("L", "parallel.sequence=true"),
            "with tensor ranks always",
            ("the job without", of("L", "parallel.sequence=false"))),
        Row("`--micro-batch-size 1`, which the jobs have", "train.micro_batch_size=1",
            "always the first to halve", ("2", "train.micro_batch_size=2")),
        Row("fused SwiGLU", "train.bias_swiglu_fusion=true", "the default",
            ("`--no-bias-swiglu-fusion`", "train.bias_swiglu_fusion=false")),
        Row("fused rotary embeddings", "train.apply_rope_fusion=true", "the default",
            ("`--no-rope-fusion`", "train.apply_rope_fusion=false")),
        Row("`--moe-grouped-gemm`, which the jobs have", of("QD", "moe.grouped_gemm=true"),
            "with experts always", ("experts one by one", of("QD", "moe.grouped_gemm=false"))),
        Row("`--moe-token-dispatcher-type alltoall`, which the jobs have",
            of("QD", "moe.token_dispatcher=alltoall"),
            "tokens go to their experts' ranks alone",
            ("allgather", of("QD", "moe.token_dispatcher=allgather"))),
        Row("`--moe-token-dispatcher-type flex`", of("QD", "moe.token_dispatcher=flex"),
            "DeepEP: a token goes to a rank once", ("alltoall", of("QD", ""))),
        Row(*ONE_LOSS, "logits in float32 once less; the last stage"),
        Row("`--cross-entropy-loss-fusion --cross-entropy-fusion-impl te`",
            "train.cross_entropy_loss_fusion=true;train.cross_entropy_fusion_impl=te",
            "core_v0.19.0 stops at it, earlier versions and Megatron-Bridge do not"),
        Row("`--no-create-attention-mask-in-dataloader`",
            "train.create_attention_mask_in_dataloader=false",
            "a mask of the sequence's square, which causal attention does not read"),
        Row("fused attention (`--attention-backend fused`)", "impl.attention_backend=fused",
            "unfused keeps scores of the sequence's square",
            ("`--attention-backend unfused`", "impl.attention_backend=unfused")),
        Row("`--moe-expert-capacity-factor 1.0`", of("QD", "moe.capacity_factor=1.0"),
            "drops tokens: it limits what an uneven routing takes, here it is even"),
        Row("`--moe-expert-capacity-factor 1.0 --moe-pad-expert-input-to-capacity`",
            of("QD", "moe.capacity_factor=1.0;moe.pad_to_capacity=true"),
            "static shapes, for CUDA graphs"),
        Row("`--moe-expert-capacity-factor 1.0`", of("QD", "moe.capacity_factor=1.0"),
            "the same where some experts get more",
            ("a rank with twice its share of tokens", of("QD", "moe.imbalance=2"))),
        Row("`--moe-permute-fusion`", of("QD", "moe.permute_fusion=true"),
            "fused sorting of tokens"),
        Row("`--moe-router-fusion`", of("QD", "moe.router_fusion=true"), "fused routing"),
        Row("without `--moe-shared-expert-overlap`",
            of("D", "moe.shared_expert_overlap=false"),
            "shared experts run beside the exchange and hold their memory",
            ("it", of("D", "moe.shared_expert_overlap=true"))),
        Row("without `--overlap-moe-expert-parallel-comm`",
            of("QD", "moe.overlap_expert_comm=false"),
            "two micro-batches run in turns, layer by layer",
            (CHUNKS[0] + " with it", {k: v + ";moe.overlap_expert_comm=true"
                                      for k, v in CHUNKS[1].items()})),
        Row("`--ep-overlap-early-attn-memory-release`",
            of("QD", "moe.overlap_early_attention=true"),
            "attention's backward before the other micro-batch's experts",
            (CHUNKS[0] + " and `--overlap-moe-expert-parallel-comm`",
             {k: v + ";moe.overlap_expert_comm=true" for k, v in CHUNKS[1].items()})),
        Row("without `--delay-wgrad-compute`", of("QD", "moe.delay_wgrad_compute=false"),
            "weight gradients wait for the exchange",
            (CHUNKS[0] + " and `--overlap-moe-expert-parallel-comm --delay-wgrad-compute`",
             {k: v + ";moe.overlap_expert_comm=true;moe.delay_wgrad_compute=true"
              for k, v in CHUNKS[1].items()})),
        Row("`--use-te-activation-func --no-bias-swiglu-fusion`",
            of("LD", "train.use_te_activation_func=true;train.bias_swiglu_fusion=false"),
            "an operation of Transformer Engine's"),
        Row("`--use-transformer-engine-op-fuser`", of("L", "train.te_op_fuser=true"),
            "norm and MLP as one function"),
        Row("`--mla-down-proj-fusion`", of("D", "model.mla_down_proj_fusion=true"),
            "both latents of one product"),
    ))


def graphs(scope, settings, when, beside=("", "")):
    return Row(f"`--cuda-graph-impl {scope}`", settings, when, beside)


# Captured after the first iteration, to be seen in the next.
TE_GRAPHS = "train.cuda_graph_impl=transformer_engine;train.cuda_graph_warmup_steps=1"
BUFFERS = Group(
    "Buffers and graphs", "For time, which is predicted without what graphs save of the "
    "host's. What they replay lies in pools of their own, reserved and not requested: look at "
    "the card. All after `--cuda-graph-warmup-steps 1`.", (
        graphs("transformer_engine", TE_GRAPHS, "whole layers"),
        graphs("transformer_engine --cuda-graph-modules mlp",
               of("LD", TE_GRAPHS + ";train.cuda_graph_modules=mlp"), "dense MLPs alone"),
        graphs("transformer_engine --cuda-graph-modules attn",
               TE_GRAPHS + ";train.cuda_graph_modules=attn",
               "attention alone: shapes of experts are not static"),
        graphs("local", of("LQ", "train.cuda_graph_impl=local"),
               "not with pipeline stages, nor with full recomputation", PP1),
        graphs("full_iteration", of("LQ", "train.cuda_graph_impl=full_iteration"),
               "forward and backward of an iteration",
               ("PP1 `--no-check-for-nan-in-loss-and-grad`",
                of("LQ", "{alone};train.check_for_nan_in_loss_and_grad=false"))),
        Row("`--tp-comm-overlap`", of("L", "parallel.tp_comm_overlap=true"),
            "user buffers outside of PyTorch's allocator"),
    ))
FRAGMENTS = Group(
    "Fragmentation: what is reserved and not requested", "Nothing is requested less: look at "
    "the card.", (
        Row("`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`",
            "device.alloc_conf=expandable_segments:True", "the first to try, on pools that are fragmented"),
        Row("`--empty-unused-memory-level 1`", "train.empty_unused_memory_level=1",
            "cached blocks go back before the optimizer's step"),
        Row("`--empty-unused-memory-level 2`", "train.empty_unused_memory_level=2",
            "after it as well"),
        Row("`PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512`",
            "device.alloc_conf=max_split_size_mb:512", "large blocks stay whole"),
        Row("`PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:8`",
            "device.alloc_conf=roundup_power2_divisions:8",
            "sizes that vary, as of uneven experts"),
    ))
GROUPS = (LAYOUTS, SHARDS, SHARDS_MORE, GRADIENTS, OPTIMIZERS, RECOMPUTE, OFFLOAD,
          LOW_PRECISION, ACTIVATIONS, BUFFERS, FRAGMENTS)
TAIL = """\
## Not here

Named and not modelled (`docs/not_modelled.md`): FP4, `--optimizer-cuda-graph`,
`--moe-paged-stash` and `--moe-expert-rank-capacity-factor`,
`--offload-modules fused_group_mlp`, `--recompute-modules gdn_norm_out`,
`--reuse-grad-buf-for-mxfp8-param-ag`, `--use-nccl-ub`,
`--megatron-fsdp-max-pool-double-buffer`, `--use-fused-weighted-squared-relu`,
`--megatron-fsdp-enable-fine-grained-param-gather`, `--delay-offload-until-cuda-graph`,
`--tensor-parallel-num-weight-shards`, `--expert-tensor-parallel-num-weight-shards`,
`--hybrid-context-parallel`, `--mlp-chunks-for-training`, `--mtp-detach-heads`,
`--use-cpu-initialization`.

Modelled, and for `memest compare` with a job of one's own: `--moe-layer-recompute`
(`--recompute-modules core_attn moe`, or `moe` beside those that are named),
`--ddp-num-buckets` (`--ddp-bucket-size` by their number), `--wgrad-deferral-limit`,
`--min-offloaded-tensor-size`, `--microbatch-group-size-per-virtual-pipeline-stage`,
`--account-for-embedding-in-pipeline-split`, `--account-for-loss-in-pipeline-split`,
`--overlap-param-gather-with-optimizer-step`, and without fused kernels
`--no-bias-gelu-fusion`, `--no-bias-dropout-fusion`, `--no-masked-softmax-fusion`.

Nothing on the card by the source: `--use-torch-optimizer-for-cpu-offload`,
`--no-pin-cpu-params` and `--enable-full-sharding-in-hsdp`, which nothing reads;
`--cpu-offloading-retain-pinned-cpu-buffers` (the host's); `--manual-gc`.
"""
