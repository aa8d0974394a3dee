/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/flags.h"

/* The flags that Megatron-LM core_v0.19.0 still knows only to stop at them. */
/** clang-format off */
const me_flag_rule me_flags_refused[] = {
    {"--batch-size:i", .note = "use --micro-batch-size"},
    {"--warmup:i", .note = "use --lr-warmup-fraction"},
    {"--model-parallel-size:i", .note = "use --tensor-model-parallel-size"},
    {"--checkpoint-activations", .note = "use --recompute-activations"},
    {.flags = NULL},
};
/* clang-format on */
