/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"

/* The flags that Megatron-LM core_v0.19.0 still knows only to stop at them. */
/** clang-format off */
const me_flag_rule me_flags_refused[] = {
    {"--batch-size:i", .note = "use --micro-batch-size"},
    {"--warmup:i", .note = "use --lr-warmup-fraction"},
    {"--model-parallel-size:i", .note = "use --tensor-model-parallel-size"},
    {"-h --help", .note = "it prints the flags, and no job follows"},
    {"--init-method-xavier-uniform",
     .note = "it sets a field that TransformerConfig has not "
             "(scaled_init_method), and the job ends: use --init-method-std"},
    /* Megatron-DeepSpeed, and what else was v2.5: arguments.py. */
    {"--checkpoint-activations", .option = "recompute.granularity",
     .constant = "full",
     .needs = "--deepspeed --deepspeed_config --zero-stage "
              "--deepspeed-activation-checkpointing --data-impl --DDP-impl",
     .note = "use --recompute-activations (v2.5 was the last with it)"},
    {.flags = NULL},
};
/* clang-format on */
