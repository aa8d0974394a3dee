/**
 * @file
 * Word and position embedding (LanguageModelEmbedding with Megatron's
 * VocabParallelEmbedding).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_EMBEDDING_H
#define MEMEST_NN_MEGATRON_EMBEDDING_H

#include "nn/module_hooks.h"
#include "nn/nn.h"

typedef struct me_embedding_layer {
    me_module_id module;
    me_module_id word_module;
    me_module_id position_module;
    me_parameter *word;                /**< (v/t, h) */
    me_parameter *position;            /**< (p, h), or NULL */
    const me_module_hooks *hooks;      /**< borrowed; NULL: none */
    const me_module_hooks *word_hooks; /**< of the tables, as `hooks` */
    const me_module_hooks *position_hooks;
} me_embedding_layer;

/** The module and its parameters below @p parent; no position table unless
 *  positions are learned. */
void me_embedding_create(me_nn *nn, me_module_id parent,
                         me_embedding_layer *embedding);

/** tokens and positions (b, s) to (s, b, h), s/t under sequence parallelism. */
me_tensor *me_embedding_forward(me_nn *nn, const me_embedding_layer *embedding,
                                me_tensor *tokens, me_tensor *positions);

#endif /* MEMEST_NN_MEGATRON_EMBEDDING_H */
