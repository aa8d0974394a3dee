/**
 * @file
 * Rotary position embedding (core/models/common/embeddings), and yarn's
 * (yarn_rotary_pos_embedding.py), which multi-latent attention may have.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_ROPE_H
#define MEMEST_NN_MEGATRON_ROPE_H

#include "nn/nn.h"

typedef struct me_rope {
    me_tensor *inverse_frequencies; /**< (n), float32; owned, as all here */
    me_tensor *table;               /**< (s, 1, 1, 2n), float32 */
    me_tensor *yarn[4]; /**< frequencies to extra- and interpolate, (n), and
                             cosines and sines of the original positions,
                             (4096, 1, 1, 2n); float32 */
    bool is_cached;     /**< those are of the sequence, in the model's type */
    bool is_forgotten;  /**< the table goes while others are used, else never */
} me_rope;

enum {
    ME_ROPE_CACHE_SIZE = 32
};

/** The tables that a rank keeps: `lru_cache(maxsize=32)` is the class's, so
 *  that embeddings share it, one a chunk or one a layer. */
typedef struct me_rope_cache {
    me_rope *ropes[ME_ROPE_CACHE_SIZE]; /**< the last used first; borrowed */
    int count;
    int n_created;      /**< embeddings that may come */
    uint64_t n_touched; /**< times that one was used */
    bool is_tuned[4];   /**< kernels of mla_rope.c */
} me_rope_cache;

/** Will both forget the same tables, whatever is used next? */
bool me_rope_caches_are_alike(const me_rope_cache *a, const me_rope_cache *b);

/** The embeddings of @p cache are in the order of @p after. */
void me_rope_cache_order(me_rope_cache *cache, const me_rope_cache *after);

/** The inverse frequencies, computed on the device. */
void me_rope_create(me_nn *nn, me_rope *rope);

/** Let go of frequencies and table. */
void me_rope_fini(me_engine *e, me_rope *rope);

/** The angles of all positions, (s, 1, 1, 2n) float32: made in the first
 *  forward, then cached while few others are used in between. @return borrowed
 *  from @p rope until the next call */
me_tensor *me_rope_table(me_nn *nn, me_rope *rope);

/** get_cached_cos_sin(): yarn's cosines and sines of the sequence, of which the
 *  first call makes tables in the model's type. */
void me_rope_cos_sin(me_nn *nn, me_rope *rope);

/**
 * Rotate the first columns of each head: (s, b, a, d) to (s, b, a, d).
 *
 * @param mla_rotary_interleaved  pairs are neighbours: even columns are moved
 *                                before odd ones
 */
me_tensor *me_apply_rotary(me_nn *nn, me_tensor *t, me_tensor *angles,
                           bool mla_rotary_interleaved);

#endif /* MEMEST_NN_MEGATRON_ROPE_H */
