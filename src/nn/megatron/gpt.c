/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/gpt.h"

#include "nn/megatron/fine_offload.h"
#include "nn/megatron/loss.h"
#include "nn/megatron/te_state.h"
#include "ops/view.h"
#include "tensor/launch.h"

bool me_gpt_has_rotary_embedding(const me_model_config *c)
{
    return me_model_is_rotary(c) && !c->multi_latent_attention;
}

static void create_output_layer(me_gpt *gpt)
{
    me_nn *nn = &gpt->nn;
    const me_model_config *c = &nn->config->model;
    gpt->is_tied = !c->untie_embeddings_and_output_weights;
    if (gpt->is_tied && gpt->spec.pre_process) {
        gpt->output_layer.module = me_module_add_as(
            nn->e, gpt->spec.parent, "output_layer", "ColumnParallelLinear");
        gpt->output_layer.weight = gpt->embedding.word;
        gpt->output_layer.nn = nn;
        return;
    }
    gpt->output_layer =
        me_column_linear_create(nn, &(me_linear_spec){
                                        .name = "output_layer",
                                        .parent = gpt->spec.parent,
                                        .inputs = c->hidden_size,
                                        .outputs = c->padded_vocab_size,
                                        .is_megatrons = true,
                                    });
    if (nn->config->train.defer_embedding_wgrad_compute &&
        me_fuses_weight_gradients(nn)) {
        gpt->deferred.limit = nn->config->train.wgrad_deferral_limit;
        gpt->output_layer.deferred = &gpt->deferred;
    }
}

/** shared_embedding_or_output_weight(). */
static me_parameter *embedding_or_output_weight(me_gpt *gpt)
{
    return gpt->spec.pre_process || gpt->spec.has_mtp
               ? gpt->embedding.word
               : gpt->output_layer.weight;
}

static void mark_embedding_or_output(me_parameter *weight)
{
    if (weight != NULL) {
        weight->is_embedding_or_output = true;
    }
}

/** LanguageModule.setup_embeddings_and_output_layer(): tied embeddings, and
 *  multi-token prediction's, are kept as equal copies of the first stage's. */
static void set_up_embedding_and_output(me_gpt *gpt)
{
    mark_embedding_or_output(gpt->embedding.word);
    mark_embedding_or_output(gpt->output_layer.weight);
    const me_model_config *c = &gpt->nn.config->model;
    const bool is_tied = !c->untie_embeddings_and_output_weights;
    const bool is_here = gpt->spec.pre_process || gpt->spec.has_mtp ||
                         (is_tied && gpt->spec.post_process);
    me_parameter *weight = embedding_or_output_weight(gpt);
    if (!(is_tied || c->mtp_num_layers > 0) || !is_here ||
        !gpt->spec.is_pipelined || weight == NULL) {
        return;
    }
    weight->is_shared_embedding = true;
    weight->is_replica_of_tied = !gpt->spec.pre_process;
    me_all_reduce(gpt->nn.e, gpt->nn.comm, ME_GROUP_EMBEDDING, weight->tensor);
}

/** has_final_layernorm_in_this_stage(): with multi-token prediction the norm is
 *  behind the decoder's last layer, else before the output layer. */
static bool has_final_layernorm(const me_model_config *c,
                                const me_gpt_spec *spec)
{
    return c->mtp_num_layers == 0
               ? spec->post_process
               : spec->num_layers > 0 &&
                     spec->first_layer + spec->num_layers == c->num_layers;
}

void me_gpt_create(const me_nn *nn, const me_gpt_spec *spec, me_gpt *gpt)
{
    *gpt = (me_gpt){.nn = *nn, .spec = *spec};
    gpt->nn.chunk = spec->chunk;
    const me_model_config *c = &nn->config->model;
    if (spec->pre_process || spec->has_mtp) {
        me_embedding_create(&gpt->nn, spec->parent, &gpt->embedding);
    }
    if (me_gpt_has_rotary_embedding(c)) {
        me_rope_create(&gpt->nn, &gpt->rope);
    }
    me_transformer_block_create(&gpt->nn, spec->parent, spec->first_layer,
                                spec->num_layers, has_final_layernorm(c, spec),
                                &gpt->decoder);
    gpt->decoder.pre_process = spec->pre_process;
    if (spec->has_mtp) {
        me_mtp_block_create(&gpt->nn, spec->parent, &gpt->mtp);
    }
    if (spec->post_process) {
        create_output_layer(gpt);
    }
    set_up_embedding_and_output(gpt);
}

void me_gpt_fini(me_engine *e, me_gpt *gpt)
{
    me_rope_fini(e, &gpt->rope);
    me_mtp_block_fini(e, &gpt->mtp);
    me_transformer_block_fini(e, &gpt->decoder);
    me_deferred_fini(e, &gpt->deferred);
}

void me_gpt_make_deferred(me_gpt *gpt)
{
    const me_parameter *weight = gpt->output_layer.weight != NULL
                                     ? gpt->output_layer.weight
                                     : gpt->embedding.word;
    if (gpt->output_layer.deferred != NULL) {
        me_deferred_make(&gpt->nn, &gpt->deferred, weight->tensor);
    }
}

void me_gpt_set_input(me_engine *e, me_gpt *gpt, me_tensor *x)
{
    me_tensor *before = gpt->decoder.input_tensor;
    gpt->decoder.input_tensor = me_retain(x);
    me_release(e, before);
}

/** Hidden states of the decoder and all depths, below each other. */
static me_tensor *predict_further(me_gpt *gpt, const me_batch *batch,
                                  me_tensor *x, me_tensor *angles)
{
    me_nn *nn = &gpt->nn;
    const me_mtp_inputs inputs = {
        .embedding = &gpt->embedding,
        .tokens = batch->tokens,
        .position_ids = batch->position_ids,
        .attention_mask = batch->attention_mask,
        .angles = angles,
    };
    return me_mtp_block_forward(nn, &gpt->mtp, &inputs, x);
}

/** The loss of all depths, and back to the decoder's own hidden states. */
static me_tensor *tie_depths(me_gpt *gpt, const me_batch *batch, me_tensor *x,
                             const me_parameter *output_weight)
{
    const me_mtp_head head = {
        .output_layer = &gpt->output_layer,
        .output_weight = output_weight,
        .labels = batch->labels,
        .loss_mask = batch->loss_mask,
    };
    return me_process_mtp_loss(&gpt->nn, &gpt->mtp, &head, x);
}

me_tensor *me_gpt_postprocess(me_gpt *gpt, const me_batch *batch, me_tensor *x,
                              me_tensor *angles, bool mtp_in_postprocess)
{
    me_nn *nn = &gpt->nn;
    const me_parameter *weight = gpt->is_tied ? gpt->embedding.word : NULL;
    const me_frame frame = me_enter(nn->e);
    me_tensor *y = x;
    if (mtp_in_postprocess) {
        y = predict_further(gpt, batch, x, angles);
    }
    if (!gpt->spec.post_process) {
        return me_leave(nn->e, frame, y);
    }
    if (nn->config->model.mtp_num_layers > 0) {
        me_tensor *of_decoder = tie_depths(gpt, batch, y, weight);
        y = y == x ? of_decoder : me_rebind(nn->e, y, of_decoder);
    }
    me_launch_host(nn->e, ME_HOST_HEAD);
    me_tensor *logits = me_scale_logits(
        nn, me_column_linear(nn, &gpt->output_layer, y, weight));
    return me_leave(nn->e, frame,
                    me_language_model_loss(nn, batch->labels, logits));
}

me_tensor *me_gpt_preprocess(me_gpt *gpt, const me_batch *batch,
                             me_tensor **angles_out)
{
    me_nn *nn = &gpt->nn;
    me_tensor *x = gpt->decoder.input_tensor;
    if (gpt->spec.pre_process) {
        x = me_embedding_forward(nn, &gpt->embedding, batch->tokens,
                                 batch->position_ids);
    }
    *angles_out = me_gpt_has_rotary_embedding(&nn->config->model)
                      ? me_rope_table(nn, &gpt->rope)
                      : NULL;
    return x;
}

/** GPTModel.forward. */
static me_tensor *run_model(me_gpt *gpt, const me_batch *batch)
{
    me_nn *nn = &gpt->nn;
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *angles = NULL;
    me_tensor *x = me_gpt_preprocess(gpt, batch, &angles);
    me_tensor *y = me_transformer_block_forward(nn, &gpt->decoder, x,
                                                batch->attention_mask, angles);
    if (gpt->spec.post_process || gpt->spec.has_mtp) {
        y = me_gpt_postprocess(gpt, batch, y, angles, gpt->spec.has_mtp);
    }
    return me_leave(e, frame, y);
}

me_tensor *me_gpt_forward(me_gpt *gpt, const me_batch *batch)
{
    if (!me_engine_is_ok(gpt->nn.e)) {
        return me_none(gpt->nn.e);
    }
    (void)me_pre_forward(gpt->hooks, batch->tokens);
    me_fine_offload_begin_chunk(gpt->nn.e, gpt->nn.fine_offload,
                                gpt->spec.chunk);
    me_tensor *y = run_model(gpt, batch);
    y = me_post_forward(gpt->hooks, y);
    return y;
}

void me_gpt_clip_qk(me_gpt *gpt)
{
    for (int32_t i = 0; i < gpt->decoder.num_layers; i++) {
        const me_sublayer *attention = &gpt->decoder.layers[i].attention;
        if (attention->self != NULL) {
            me_core_attention_clip(
                &gpt->nn, attention->mixer->core_attention(attention->self));
        }
    }
}
