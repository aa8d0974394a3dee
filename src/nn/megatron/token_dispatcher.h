/**
 * @file
 * Bringing tokens to the ranks of their experts and back
 * (core/transformer/moe/token_dispatcher.py), by all-to-all or all-gather.
 *
 * R is the number of rows that this rank's experts get of a micro-batch; the
 * other letters are those of router.h.
 *
 * A dispatcher keeps what it was given last, until its layer's next forward:
 * the routing weights with their graph, the map, and where rows came from.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TOKEN_DISPATCHER_H
#define MEMEST_NN_MEGATRON_TOKEN_DISPATCHER_H

#include "nn/megatron/all_to_all.h"

enum {
    ME_DISPATCHER_KEPT = 3,
    ME_DISPATCHER_COUNTS = 6
};

typedef struct me_dispatcher {
    const struct me_dispatcher_kind *kind;
    me_nn *nn;
    uint32_t n_local;  /**< experts of this rank */
    uint64_t *counts;  /**< rows of each for this micro-batch; of the engine */
    uint64_t n_rows;   /**< R, their sum */
    uint64_t n_sent;   /**< rows of this rank's tokens, K·T unless some
                            are dropped or padded */
    uint64_t n_tokens; /**< T */
    me_shape shape;    /**< of the layer's input, (s, b, h) */
    me_token_exchange exchange;
    me_tensor *probs;       /**< attributes, owned */
    me_tensor *routing_map; /**< (T, E) */
    me_tensor *row_numbers; /**< the token of each row, or a kernel's row map */
    me_tensor
        *counts_of_experts;     /**< of all-to-all with fused permutation: rows
                                       that each rank sends each local expert */
    me_tensor *chunk_orders[2]; /**< and the orders of their chunks */
    struct me_shared_experts
        *shared_experts;  /**< that run beside what it communicates; borrowed;
                              NULL: none do */
    me_tensor *local_map; /**< all-gather: of this rank's experts */
    me_tensor *kept[ME_DISPATCHER_KEPT]; /**< what else its kind keeps */
    me_tensor *late_counts[ME_DISPATCHER_COUNTS]; /**< all-to-all: that the host
                                                       gets when rows leave */
    uint32_t n_late_counts;
} me_dispatcher;

/** Tokens in rows, and the routing weight of each. */
typedef struct me_dispatched {
    me_tensor *tokens; /**< (rows, h) */
    me_tensor *probs;  /**< (rows) */
} me_dispatched;

/** A kind of dispatcher: its own code for the stages below; NULL: nothing is
 *  done. */
typedef struct me_dispatcher_kind {
    /** What it makes when the model is built. */
    void (*create)(me_dispatcher *d);
    me_dispatched (*dispatch_preprocess)(me_dispatcher *d, me_tensor *tokens,
                                         me_tensor *probs, me_tensor *map);
    me_dispatched (*token_dispatch)(me_dispatcher *d, me_dispatched rows);
    me_dispatched (*dispatch_postprocess)(me_dispatcher *d, me_dispatched rows);
    me_tensor *(*combine_preprocess)(me_dispatcher *d, me_tensor *rows);
    me_tensor *(*token_combine)(me_dispatcher *d, me_tensor *rows);
    me_tensor *(*combine_postprocess)(me_dispatcher *d, me_tensor *rows);
    bool adds_shared_experts; /**< combine_postprocess() adds their output */
    bool spans_tensor_ranks;  /**< tokens travel among those of an expert too */
} me_dispatcher_kind;

extern const me_dispatcher_kind me_dispatcher_all_gather;
extern const me_dispatcher_kind me_dispatcher_all_to_all;
/** Flex, by its library. */
extern const me_dispatcher_kind me_dispatcher_deepep;
extern const me_dispatcher_kind me_dispatcher_hybridep;
/** All-to-all of experts that all get their capacity. */
extern const me_dispatcher_kind me_dispatcher_padded;

/** Ranks that the tokens of a dispatcher travel among. */
int32_t me_dispatcher_ranks(const me_dispatcher *d);

/** What a dispatcher named, in the order of cudagraph_attrs; held. */
typedef struct me_dispatcher_stash {
    me_tensor *items[ME_DISPATCHER_COUNTS + 4];
    uint32_t n_late_counts;
} me_dispatcher_stash;

/** Take its names' tensors away, @p stash_out then holds them. */
void me_dispatcher_take(me_dispatcher *d, me_dispatcher_stash *stash_out);

/** They are named again, and what is named now goes. */
void me_dispatcher_put_back(me_dispatcher *d, me_dispatcher_stash *stash);

/** They go, in their order. */
void me_dispatcher_let_go(me_dispatcher *d, me_dispatcher_stash *stash);

/** cudagraph_attrs of all-to-all: what it keeps of dispatch_preprocess(), the
 *  routing weights last; borrowed. @return how many */
uint32_t me_dispatcher_attributes(me_dispatcher *d, me_tensor **attributes_out);

/** For layer @p layer of the model, counted from 0. */
void me_dispatcher_create(me_nn *nn, int32_t layer, me_dispatcher *dispatcher);

/** Let go of what it keeps. */
void me_dispatcher_fini(me_engine *e, me_dispatcher *dispatcher);

/** What the host does for all stages of a layer beside their kernels, in the
 *  direction that runs. */
void me_dispatcher_launch_host(const me_nn *nn);

/** @name The stages of a layer, in their order
 *  @{ */
/** dispatch_preprocess(): (s, b, h) and routing to rows. */
me_dispatched me_dispatch_preprocess(me_dispatcher *d, me_tensor *x,
                                     me_tensor *probs, me_tensor *map);
/** token_dispatch(): rows to their experts' ranks. Tensors that do not change
 *  are the given ones. */
me_dispatched me_token_dispatch(me_dispatcher *d, me_dispatched rows);
/** dispatch_postprocess(): rows sorted by expert (R, h). */
me_dispatched me_dispatch_postprocess(me_dispatcher *d, me_dispatched rows);
/** combine_preprocess(): in the order in which they came, or summed. */
me_tensor *me_combine_preprocess(me_dispatcher *d, me_tensor *rows);
/** token_combine(): back to their tokens' ranks. */
me_tensor *me_token_combine(me_dispatcher *d, me_tensor *rows);
/** combine_postprocess(): to (s, b, h). */
me_tensor *me_combine_postprocess(me_dispatcher *d, me_tensor *rows);
/** @} */

#endif /* MEMEST_NN_MEGATRON_TOKEN_DISPATCHER_H */
