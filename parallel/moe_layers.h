/**
 * @file
 * Which layers of a model are of a kind: have experts, as Megatron-LM's
 * --moe-layer-freq says it, or attention within a window, as
 * --window-attn-skip-freq does, or no rotary embedding, as --no-rope-freq does. A
 * period, or a list with a 1 for each layer that is of the kind and a 0 for the
 * others, in Python's way: `[0,1,1,1]` or `([0]*1+[1]*26)`. Of what _eval_pattern()
 * (training/arguments.py) gives to Python there are numbers, lists, `+`, `*`, `**`
 * and parentheses, and no spaces; an element of a list is none that is read.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_MOE_LAYERS_H
#define MEMEST_PARALLEL_MOE_LAYERS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/**
 * Which layers have experts.
 *
 * @param text        the period (`2`: layers 0, 2, 4 …) or the list
 * @param n_layers    of the model
 * @param is_moe_out  for each layer; on failure not to be read
 * @return ME_OK; ME_ERR_CONFIG saying what is wrong with it
 */
me_status me_moe_layers_read(const char *text, int32_t n_layers, me_diag *diag,
                             bool *is_moe_out) ME_MUST_CHECK;

/**
 * Which layers look at a window (is_layer_window_attention()).
 *
 * @param text  the period, each end of which looks at everything (`2`: layers 0,
 *              2, 4 … have a window), or the list, of at least @p n_layers; empty:
 *              all have one
 * @param has_window_out  for each layer; on failure not to be read
 * @return as me_moe_layers_read()
 */
me_status me_window_layers_read(const char *text, int32_t n_layers,
                                me_diag *diag,
                                bool *has_window_out) ME_MUST_CHECK;

/**
 * Which layers have no rotary embedding (TransformerConfig.no_rope_freq).
 *
 * @param text  the period, each end of which has none (`4`: layers 3, 7 …), which
 *              divides @p n_layers, or the list, as long; empty or `0`: all have it
 * @param lacks_rope_out  for each layer; on failure not to be read
 * @return as me_moe_layers_read()
 */
me_status me_no_rope_layers_read(const char *text, int32_t n_layers,
                                 me_diag *diag,
                                 bool *lacks_rope_out) ME_MUST_CHECK;

#endif /* MEMEST_PARALLEL_MOE_LAYERS_H */
