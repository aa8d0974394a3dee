/**
 * @file
 * Rotary position embedding (core/models/common/embeddings).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_ROPE_H
#define MEMEST_NN_ROPE_H

#include "nn/nn.h"

typedef struct me_rope {
    me_tensor *inverse_frequencies; /**< (n), float32; owned */
    me_tensor *table;               /**< (s, 1, 1, 2n), float32; owned */
} me_rope;

/** The inverse frequencies, computed on the device. */
void me_rope_create(me_nn *nn, me_rope *rope);

/** Let go of frequencies and table. */
void me_rope_fini(me_engine *e, me_rope *rope);

/** The angles of all positions, (s, 1, 1, 2n) float32: made in the first
 *  forward, then cached. @return borrowed from @p rope */
me_tensor *me_rope_table(me_nn *nn, me_rope *rope);

/**
 * Rotate the first columns of each head: (s, b, a, d) to (s, b, a, d).
 *
 * @param mla_rotary_interleaved  pairs are neighbours: even columns are moved
 *                                before odd ones
 */
me_tensor *me_apply_rotary(me_nn *nn, me_tensor *t, me_tensor *angles,
                           bool mla_rotary_interleaved);

#endif /* MEMEST_NN_ROPE_H */
