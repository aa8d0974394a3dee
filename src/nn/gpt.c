/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpt.h"

#include "nn/loss.h"
#include "ops/view.h"

/** Of the model's own; layers of multi-latent attention have theirs. */
static bool has_rotary_embedding(const me_transformer_config *c)
{
    return c->position_embedding == ME_POSITION_ROPE &&
           !c->multi_latent_attention;
}

static void create_output_layer(me_gpt *gpt)
{
    me_nn *nn = &gpt->nn;
    const me_transformer_config *c = nn->config;
    gpt->is_tied = !c->untie_embeddings_and_output_weights;
    if (gpt->is_tied && gpt->spec.pre_process) {
        gpt->output_layer.module =
            me_module_add(nn->e, gpt->spec.parent, "output_layer");
        gpt->output_layer.weight = gpt->embedding.word;
        return;
    }
    gpt->output_layer =
        me_column_linear_create(nn, &(me_linear_spec){
                                        .name = "output_layer",
                                        .parent = gpt->spec.parent,
                                        .inputs = c->hidden_size,
                                        .outputs = c->padded_vocab_size,
                                    });
    if (gpt->is_tied && gpt->output_layer.weight != NULL) {
        gpt->output_layer.weight->is_shared_embedding = true;
        gpt->output_layer.weight->is_replica_of_tied = true;
    }
}

/** LanguageModule.setup_embeddings_and_output_layer(): first and last stage
 *  begin with equal copies of what they share. */
static void equalise_shared_embedding(me_gpt *gpt)
{
    const me_parameter *shared =
        gpt->spec.pre_process ? gpt->embedding.word : gpt->output_layer.weight;
    if (shared != NULL && shared->is_shared_embedding &&
        (gpt->spec.pre_process || gpt->spec.post_process)) {
        me_all_reduce(gpt->nn.e, gpt->nn.comm, ME_GROUP_EMBEDDING,
                      shared->tensor);
    }
}

void me_gpt_create(const me_nn *nn, const me_gpt_spec *spec, me_gpt *gpt)
{
    *gpt = (me_gpt){.nn = *nn, .spec = *spec};
    gpt->nn.chunk = spec->chunk;
    const me_transformer_config *c = nn->config;
    if (spec->pre_process) {
        me_embedding_create(&gpt->nn, spec->parent, &gpt->embedding);
        if (gpt->embedding.word != NULL && spec->is_pipelined &&
            !c->untie_embeddings_and_output_weights) {
            gpt->embedding.word->is_shared_embedding = true;
        }
    }
    if (has_rotary_embedding(c)) {
        me_rope_create(&gpt->nn, &gpt->rope);
    }
    me_transformer_block_create(&gpt->nn, spec->parent, spec->first_layer,
                                spec->num_layers, spec->post_process,
                                &gpt->decoder);
    gpt->decoder.pre_process = spec->pre_process;
    if (spec->post_process) {
        create_output_layer(gpt);
    }
    equalise_shared_embedding(gpt);
}

void me_gpt_fini(me_engine *e, me_gpt *gpt)
{
    me_rope_fini(e, &gpt->rope);
    me_transformer_block_fini(e, &gpt->decoder);
}

void me_gpt_set_input(me_engine *e, me_gpt *gpt, me_tensor *x)
{
    me_tensor *before = gpt->decoder.input_tensor;
    gpt->decoder.input_tensor = me_retain(x);
    me_release(e, before);
}

/** LanguageModule.compute_language_model_loss: (s, b, v/t) to (b, s). */
static me_tensor *language_model_loss(me_nn *nn, me_tensor *labels,
                                      me_tensor *logits)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *turned = me_transpose(e, labels, 0, 1);
    me_tensor *target = me_contiguous(e, turned); // (s, b)
    me_tensor *loss = me_vocab_parallel_cross_entropy(nn, logits, target);
    me_tensor *back = me_transpose(e, loss, 0, 1);
    me_tensor *dense = me_contiguous(e, back); // (b, s)
    if (dense != back) {
        me_drop(e, loss);
        me_drop(e, back);
    }
    return me_leave(e, frame, dense);
}

/** GPTModel._postprocess. */
static me_tensor *postprocess(me_gpt *gpt, me_tensor *x, me_tensor *labels)
{
    me_nn *nn = &gpt->nn;
    const me_frame frame = me_enter(nn->e);
    me_tensor *logits = me_column_linear(nn, &gpt->output_layer, x, NULL);
    return me_leave(nn->e, frame, language_model_loss(nn, labels, logits));
}

me_tensor *me_gpt_forward(me_gpt *gpt, const me_batch *batch)
{
    me_nn *nn = &gpt->nn;
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    const me_frame frame = me_enter(e);
    me_tensor *x = gpt->decoder.input_tensor;
    if (gpt->spec.pre_process) {
        x = me_embedding_forward(nn, &gpt->embedding, batch->tokens,
                                 batch->position_ids);
    }
    me_tensor *angles =
        has_rotary_embedding(nn->config) ? me_rope_table(nn, &gpt->rope) : NULL;
    me_tensor *y = me_transformer_block_forward(nn, &gpt->decoder, x,
                                                batch->attention_mask, angles);
    if (gpt->spec.post_process) {
        y = postprocess(gpt, y, batch->labels);
    }
    return me_leave(e, frame, y);
}
