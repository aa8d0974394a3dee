/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"

/* Flags that earlier versions of Megatron-LM had and core_v0.19.0's parser does
 * not know: the last release whose arguments.py has them, and what does the same
 * now. Those without a meaning for memory are in flags_forks.c. */
/** clang-format off */
const me_flag_rule me_flags_removed[] = {
    {"--fp32-allreduce",
     .note = "v2.0 was the last with it: use "
             "--accumulate-allreduce-grads-in-fp32",
     .effect = ME_EITHER(MUCH)},
    {"--no-scaled-masked-softmax-fusion",
     .note = "v2.0 was the last with it: use --no-masked-softmax-fusion",
     .effect = ME_HIGHER(SOME)},
    {"--scaled-upper-triang-masked-softmax-fusion:s",
     .note = "v2.0 was the last with it: the kernel is chosen by the mask",
     .effect = ME_EITHER(SOME)},
    {"--checkpoint-num-layers:i",
     .note = "v2.5 was the last with it: use --recompute-granularity full "
             "--recompute-method uniform --recompute-num-layers",
     .effect = ME_EITHER(ANY)},
    {"--activations-checkpoint-method:uniform|block",
     .note = "v2.6 was the last with it: use --recompute-granularity full "
             "--recompute-method",
     .effect = ME_LOWER(ANY)},
    {"--activations-checkpoint-num-layers:i",
     .note = "v2.6 was the last with it: use --recompute-num-layers",
     .effect = ME_EITHER(ANY)},
    {"--fp8-e4m3", .note = "23.06 was the last with it: use --fp8-format e4m3",
     .effect = ME_EITHER(ANY)},
    {"--fp8-hybrid",
     .note = "23.06 was the last with it: use --fp8-format hybrid",
     .effect = ME_EITHER(ANY)},
    {"--embedding-weights-in-fp32",
     .note = "23.06 was the last with it: no embedding is looked up in FP32",
     .effect = ME_HIGHER(ANY)},
    {"--distribute-checkpointed-activations",
     .note = "v2.6 was the last with it: use --distribute-saved-activations",
     .effect = ME_LOWER(ANY)},
    {"--moe-token-dropping",
     .note = "core_v0.6.0 was the last with it: use "
             "--moe-expert-capacity-factor",
     .effect = ME_EITHER(ANY)},
    {"--standalone-embedding-stage",
     .note = "core_v0.10.0 was the last with it: use "
             "--pipeline-model-parallel-layout, whose first stage is E",
     .effect = ME_EITHER(ANY)},
    {"--pipeline-model-parallel-split-rank:i",
     .note = "core_v0.13.0 was the last with it: encoders and decoders of one "
             "pipeline are gone",
     .effect = ME_EITHER(ANY)},
    {"--encoder-tensor-model-parallel-size:i "
     "--encoder-pipeline-model-parallel-size:i",
     .neutral = "0",
     .note = "core_v0.13.0 was the last with it: encoders and decoders of one "
             "pipeline are gone",
     .effect = ME_EITHER(ANY)},
    {"--use-custom-fsdp",
     .note = "core_v0.13.0 was the last with it: use --use-megatron-fsdp",
     .effect = ME_EITHER(ANY)},
    {"--keep-fp8-transpose-cache-when-using-custom-fsdp",
     .note = "core_v0.13.0 was the last with it: use "
             "--keep-fp8-transpose-cache",
     .effect = ME_HIGHER(ANY)},
    {"--moe-extended-tp",
     .note = "core_v0.15.0 was the last with it: use "
             "--expert-tensor-parallel-size",
     .effect = ME_EITHER(ANY)},
    {"--retro-add-retriever --retro-cyclic-train-iters:i "
     "--retro-encoder-layers:i --retro-encoder-hidden-dropout:f "
     "--retro-encoder-attention-dropout:f --retro-num-neighbors:i "
     "--retro-num-retrieved-chunks:i --retro-attention-gate:i "
     "--retro-project-dir:s --retro-workdir:s",
     .note = "core_v0.15.0 was the last with it: Retro is gone",
     .effect = ME_EITHER(ANY)},
    {.flags = NULL},
};
/* clang-format on */
