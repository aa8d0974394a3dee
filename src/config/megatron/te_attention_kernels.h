/**
 * @file
 * Which jobs the kernels of Transformer Engine's attention take: the conditions of
 * nvte_get_fused_attn_backend() and of get_attention_backend() on flash-attn, of
 * 2.17.1 with cuDNN 9.19, which PyTorch 2.11 has, for training. Which of them a
 * job's layers get is te_attention_rules.c's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_MEGATRON_TE_ATTENTION_KERNELS_H
#define MEMEST_CONFIG_MEGATRON_TE_ATTENTION_KERNELS_H

#include "config/config_private.h"

enum {
    ME_TE_MOST_HEAD_SIZE = 256 /**< columns of a head */
};

/** Ten times a card's compute capability. */
enum {
    ME_CAPABILITY_AMPERE = 80,
    ME_CAPABILITY_HOPPER = 90,
    ME_CAPABILITY_BLACKWELL = 100,
    ME_CAPABILITY_CONSUMER_BLACKWELL = 120
};

/** Head sizes of a core attention, in columns. */
typedef struct me_te_heads {
    uint64_t query;
    uint64_t value;
} me_te_heads;

me_te_heads me_te_heads_of(const me_config *config);

/** The wider of both. */
uint64_t me_te_widest_head(me_te_heads heads);

/** TEDotProductAttention asks for `return_max_logit`. */
bool me_te_returns_max_logit(const me_config *config);

/** Does cuDNN's kernel take the job on some card: half precision, heads of a
 *  multiple of 8 columns, at most 256, no dropout within a window? Before 9.21 it
 *  gives no largest scores. @param is_windowed  of layers with a window */
bool me_te_takes_fused(const me_config *config, bool is_windowed);

/** … and do heads and determinism go with that card? */
bool me_te_takes_fused_on(const me_config *config, uint64_t capability);

/** cuDNN has no deterministic gradient of a softmax with an offset. */
bool me_te_refuses_fused(const me_config *config);

/** What of the job, or of a card of that capability, keeps cuDNN's kernel from all
 *  layers, or else from those with a window, to follow on "does not go with"; NULL:
 *  nothing. Static text. */
const char *me_te_lacks_fused(const me_config *config, uint64_t capability);

/** flash-attn 2, where it is there; it pads values to the queries' heads. */
bool me_te_takes_flash_2(const me_config *config, uint64_t capability);

/** flash-attn 3, where it is there: on compute capability 9.0 alone, without
 *  dropout; sums of the widest heads' gradients have no order. */
bool me_te_takes_flash_3(const me_config *config, uint64_t capability);

/** flash-attn 4, where it is there: without dropout and context parallelism, heads
 *  as its own check has them. Where 3 is taken it is not. */
bool me_te_takes_flash_4(const me_config *config, uint64_t capability);

/** … and does it stop in the first backward: on cards before Hopper, which it has
 *  for inference alone, and where it sums up in no order but must? */
bool me_te_flash_4_stops(const me_config *config, uint64_t capability);

#endif /* MEMEST_CONFIG_MEGATRON_TE_ATTENTION_KERNELS_H */
