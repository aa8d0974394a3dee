/**
 * @file
 * Multi-latent attention's rotary embedding by one kernel for queries and one for
 * keys and values (core/fusions/fused_mla_yarn_rope_apply.py). Heads of the query
 * turn where they are; keys are put together from their own columns and those
 * that all heads share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_MLA_ROPE_H
#define MEMEST_NN_MEGATRON_MLA_ROPE_H

#include "nn/nn.h"

/** Does the job use them? Yarn's cosines and sines, of whole sequences. */
bool me_mla_rope_is_fused(const me_nn *nn);

/** fused_apply_mla_rope_for_q(): a view of @p q (s, b, a, c + r). */
me_tensor *me_mla_rope_query(me_nn *nn, me_tensor *q);

/** fused_apply_mla_rope_for_kv(): @p kv (s, b, a, c + u) and the shared columns
 *  (s, b, 1, r) to key (s, b, a, c + r) and value (s, b, a, u), two variables. */
void me_mla_rope_key_value(me_nn *nn, me_tensor *kv, me_tensor *k_pos_emb,
                           me_tensor **key_value_out);

#endif /* MEMEST_NN_MEGATRON_MLA_ROPE_H */
