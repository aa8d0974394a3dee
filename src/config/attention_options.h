/**
 * @file
 * Rows of the table in options.c about which layers' attention does what, and what
 * becomes of queries and keys, written in that table's macros.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_ATTENTION_OPTIONS_H
#define MEMEST_CONFIG_ATTENTION_OPTIONS_H

/* clang-format off */
#define ME_ATTENTION_OPTIONS \
    BOOL("model.window_attention", "false", model.window_attention, \
        "Attention of some layers looks at a window; Transformer Engine's keeps as much."), \
    INT("model.window_keys", "0", 0, tokens_max, "tokens", "all", model.window_keys, \
        "Keys that a window shows a query, its own too. Counts where keys are gathered " \
        "(parallel.cp_comm_type = all_gather)."), \
    STRING("model.window_attn_skip_freq", "", model.window_attn_skip_freq, \
        "Every how many layers one has no window, or a list with a 1 for each that has one; " \
        "empty: all have one."), \
    BOOL("model.qk_clip", "false", model.qk_clip, \
        "Weights of queries and keys are clipped by each head's largest score."), \
    BOOL("model.log_max_attention_logit", "false", model.log_max_attention_logit, \
        "The largest score of attention is kept for the log."), \
    BOOL("model.qk_l2_norm", "false", model.qk_l2_norm, \
        "Each head's queries and keys are divided by their length, in place of norms " \
        "with weights."), \
    STRING("model.no_rope_freq", "", model.no_rope_freq, \
        "Every how many layers one has no rotary embedding, or a list with a 1 for each " \
        "that has none; empty: all have it."),
/* clang-format on */

#endif /* MEMEST_CONFIG_ATTENTION_OPTIONS_H */
