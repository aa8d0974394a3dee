/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/embedding.h"

#include "model/mup.h"
#include "nn/megatron/vocabulary.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/embedding_lookup.h"
#include "ops/index.h"
#include "ops/view.h"
#include "tensor/launch.h"

static bool reduce_scatters(const me_nn *nn)
{
    return nn->config->parallel.sequence &&
           nn->config->model.position_embedding != ME_POSITION_LEARNED_ABSOLUTE;
}

void me_embedding_create(me_nn *nn, me_module_id parent,
                         me_embedding_layer *embedding)
{
    const me_model_config *c = &nn->config->model;
    me_embedding_layer *l = embedding;
    l->module =
        me_module_add_as(nn->e, parent, "embedding", "LanguageModelEmbedding");
    l->word_module = me_module_add_as(nn->e, l->module, "word_embeddings",
                                      "VocabParallelEmbedding");
    const uint64_t rows = me_over_tensor(nn, c->padded_vocab_size);
    l->word =
        me_parameter_create(nn, &(me_parameter_spec){
                                    .name = "weight",
                                    .module = l->word_module,
                                    .shape = ME_SHAPE(rows, c->hidden_size),
                                    .is_drawn = true,
                                    .is_tensor_sharded = true,
                                    .names_its_device = true,
                                });
    if (c->position_embedding == ME_POSITION_LEARNED_ABSOLUTE) {
        l->position_module = me_module_add_as(
            nn->e, l->module, "position_embeddings", "Embedding");
        l->position = me_parameter_create(
            nn,
            &(me_parameter_spec){
                .name = "weight",
                .module = l->position_module,
                .shape = ME_SHAPE(c->max_position_embeddings, c->hidden_size),
                .is_made_on_host = true,
            });
        if (l->position != NULL) {
            l->position->is_position_embedding = true;
        }
    }
}

/** VocabParallelEmbedding.forward: (b, s) to (b, s, h) or (s/t, b, h). */
static me_tensor *vocab_parallel(me_nn *nn, const me_embedding_layer *embedding,
                                 me_tensor *tokens)
{
    me_engine *e = nn->e;
    me_module_enter(e, embedding->word_module);
    const me_frame frame = me_enter(e);
    tokens = me_pre_forward(embedding->word_hooks, tokens);
    me_tensor *mask = NULL;
    me_tensor *rows = tokens;
    if (nn->config->parallel.tensor > 1) {
        mask = me_mask_other_vocabulary(e, tokens, &rows);
    }
    me_tensor *word = embedding->word->tensor;
    me_tensor *y = nn->config->train.deterministic_mode
                       ? me_index_rows(e, word, rows)
                       : me_embedding(e, rows, word); // (b, s, h)
    if (mask != NULL) {
        y = me_masked_write_zero(e, y, mask);
    }
    if (reduce_scatters(nn)) {
        me_tensor *turned = me_transpose(e, y, 0, 1);
        me_tensor *dense = me_contiguous(e, turned); // (s, b, h)
        if (dense != turned) {
            me_drop(e, y);
            me_drop(e, turned);
        }
        y = me_reduce_scatter_to_sequence_region(e, nn->comm, dense);
    } else if (nn->config->parallel.tensor > 1) {
        y = me_reduce_from_tensor_region(e, nn->comm, y);
    }
    me_leave(e, frame, y);
    me_module_leave(e);
    return y;
}

static me_tensor *look_up_positions(me_nn *nn,
                                    const me_embedding_layer *embedding,
                                    me_tensor *positions)
{
    me_module_enter(nn->e, embedding->position_module);
    positions = me_pre_forward(embedding->position_hooks, positions);
    me_tensor *y = me_embedding(nn->e, positions, embedding->position->tensor);
    me_module_leave(nn->e);
    return y;
}

/** `x.transpose(0, 1).contiguous()`. */
static me_tensor *sequence_first(me_engine *e, me_tensor *x)
{
    const me_frame frame = me_enter(e);
    me_tensor *turned = me_transpose(e, x, 0, 1);
    return me_leave(e, frame, me_contiguous(e, turned)); // (s, b, h)
}

/** LanguageModelEmbedding.forward. */
static me_tensor *embed(me_nn *nn, const me_embedding_layer *embedding,
                        me_tensor *tokens, me_tensor *positions)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_launch_host(e, ME_HOST_EMBEDDING);
    me_tensor *words = vocab_parallel(nn, embedding, tokens);
    me_tensor *y = NULL;
    if (embedding->position != NULL) {
        me_tensor *places = look_up_positions(nn, embedding, positions);
        y = me_add(e, words, places); // (b, s, h)
    } else {
        y = me_hold(e, words);
    }
    if (!reduce_scatters(nn)) {
        y = me_rebind(e, y, sequence_first(e, y)); // (s, b, h)
    }
    if (me_model_scales_embeddings(&nn->config->model)) {
        y = me_rebind(e, y, me_mul_number(e, y));
    }
    if (nn->config->parallel.sequence) {
        if (!reduce_scatters(nn)) {
            y = me_rebind(e, y, me_scatter_to_sequence_region(e, nn->comm, y));
        }
        y = me_rebind(e, y, me_clone(e, y)); // (s/t, b, h)
    }
    y = me_rebind(e, y, me_dropout(e, y, nn->config->model.hidden_dropout));
    return me_leave(e, frame, y);
}

me_tensor *me_embedding_forward(me_nn *nn, const me_embedding_layer *embedding,
                                me_tensor *tokens, me_tensor *positions)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    me_module_enter(e, embedding->module);
    tokens = me_pre_forward(embedding->hooks, tokens);
    me_tensor *y = embed(nn, embedding, tokens, positions);
    y = me_post_forward(embedding->hooks, y);
    me_module_leave(e);
    return y;
}
