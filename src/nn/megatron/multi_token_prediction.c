/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/multi_token_prediction.h"

#include "model/mup.h"
#include "nn/megatron/backend.h"
#include "nn/megatron/loss.h"
#include "nn/megatron/roll_tensor.h"
#include "nn/megatron/te_fp8_state.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

/** `name = x`, also where the name is new. */
static void set(me_engine *e, me_tensor **name, me_tensor *x)
{
    *name = *name == NULL ? x : me_rebind(e, *name, x);
}

/** A norm of its own, of which Megatron-LM makes no view. */
static me_tensor *norm(me_nn *nn, const me_norm *module, me_tensor *x)
{
    const me_frame frame = me_enter(nn->e);
    me_tensor *y = me_norm_forward(nn, module, x);
    return me_leave(nn->e, frame, me_make_viewless(nn->e, y));
}

me_tensor *me_mtp_concat_embeddings(me_nn *nn, const me_mtp_layer *layer,
                                    me_tensor *hidden, me_tensor *decoder_input)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *embedded = norm(nn, &layer->enorm, decoder_input);
    me_tensor *x = norm(nn, &layer->hnorm, hidden);
    x = me_rebind(e, x, me_cat_last(e, embedded, x)); // (s, b, 2h)
    x = me_rebind(e, x, me_column_parallel(nn, &layer->eh_proj, x));
    if (nn->config->parallel.tensor > 1) {
        x = me_rebind(e, x, me_gather_from_tensor_region(e, nn->comm, x));
    }
    if (nn->config->parallel.sequence) {
        x = me_rebind(e, x, me_scatter_to_sequence_region(e, nn->comm, x));
    }
    return me_leave(e, frame, x);
}

me_tensor *me_mtp_postprocess(me_nn *nn, const me_mtp_layer *layer,
                              me_tensor *hidden)
{
    return norm(nn, &layer->final_layernorm, hidden);
}

/** _proj_and_transformer_layer(); inputs: hidden states, embedding, mask and
 *  angles. */
static me_tensor *run_layer(const me_section *section, me_tensor *const *inputs)
{
    me_nn *nn = section->nn;
    const me_mtp_layer *layer = section->self;
    const me_frame frame = me_enter(nn->e);
    me_fp8_state before = me_fp8_enter(nn, ME_FP8_CONTEXT_ANY, -1);
    me_tensor *x = me_mtp_concat_embeddings(nn, layer, inputs[0], inputs[1]);
    me_fp8_exit(nn, &before);
    before = me_fp8_enter(nn, ME_FP8_CONTEXT_ANY, -1);
    x = me_rebind(nn->e, x,
                  me_transformer_layer_forward(nn, &layer->mtp_model_layer, x,
                                               inputs[2], inputs[3]));
    me_fp8_exit(nn, &before);
    x = me_rebind(nn->e, x, me_mtp_postprocess(nn, layer, x));
    return me_leave(nn->e, frame, x);
}

/** It under te_checkpoint(). */
static me_tensor *run_checkpointed(const me_section *section,
                                   me_tensor *const *inputs)
{
    const me_fp8_state before = me_fp8_checkpoint_enter(
        section->nn, me_fp8_has_outer_context(section->nn));
    me_tensor *y = run_layer(section, inputs);
    me_fp8_checkpoint_exit(section->nn, &before);
    return y;
}

/** _checkpointed_forward(). */
static me_tensor *run_recomputed(me_nn *nn, const me_mtp_layer *layer,
                                 me_tensor *const *inputs)
{
    const bool distributes =
        nn->config->recompute.distribute_saved_activations &&
        !nn->config->parallel.sequence;
    const me_fp8_state before = me_fp8_enter(nn, ME_FP8_CONTEXT_OUTER, -1);
    me_tensor *y = me_checkpoint(nn, &layer->section, inputs, distributes);
    me_fp8_exit(nn, &before);
    return y;
}

static void create_layer(me_nn *nn, me_module_id parent, int32_t index,
                         me_mtp_layer *layer)
{
    const uint64_t h = nn->config->model.hidden_size;
    me_mtp_layer *l = layer;
    const bool before = me_fp8_init_enter(nn, -1);
    l->module = me_module_add_index(nn->e, parent, (uint32_t)index);
    me_module_set_class(nn->e, l->module, "MultiTokenPredictionLayer");
    l->enorm = me_norm_create(nn, l->module, "enorm", h);
    l->hnorm = me_norm_create(nn, l->module, "hnorm", h);
    l->eh_proj = me_column_linear_create(nn, &(me_linear_spec){
                                                 .name = "eh_proj",
                                                 .parent = l->module,
                                                 .inputs = 2 * h,
                                                 .outputs = h,
                                             });
    me_transformer_layer_create(
        nn, me_module_add(nn->e, l->module, "mtp_model_layer"),
        nn->config->model.num_layers + index, &l->mtp_model_layer);
    l->final_layernorm = me_norm_create(nn, l->module, "final_layernorm", h);
    l->eh_proj.turn = ME_TURN_MTP;
    l->section = (me_section){.nn = nn, .run = run_checkpointed, .self = l};
    me_fp8_init_exit(nn, before);
}

void me_mtp_block_create(me_nn *nn, me_module_id parent, me_mtp_block *block)
{
    const me_model_config *c = &nn->config->model;
    const int32_t count = c->mtp_use_repeated_layer ? 1 : c->mtp_num_layers;
    *block =
        (me_mtp_block){.module = me_module_add_as(nn->e, parent, "mtp",
                                                  "MultiTokenPredictionBlock")};
    block->layers =
        me_engine_alloc(nn->e, (size_t)count, sizeof *block->layers);
    if (block->layers == NULL) {
        return;
    }
    block->num_layers = count;
    const me_module_id layers =
        me_module_add_as(nn->e, block->module, "layers", "ModuleList");
    for (int32_t i = 0; i < count; i++) {
        create_layer(nn, layers, i, &block->layers[i]);
    }
}

void me_mtp_block_fini(me_engine *e, me_mtp_block *block)
{
    for (int32_t i = 0; i < block->num_layers; i++) {
        me_transformer_layer_fini(e, &block->layers[i].mtp_model_layer);
    }
    me_clear(e, &block->metrics.loss_values);
    me_clear(e, &block->metrics.correct_values);
    me_clear(e, &block->metrics.total_values);
}

me_tensor *me_mtp_get_embeddings(me_nn *nn, const me_embedding_layer *embedding,
                                 me_tensor **state)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *sum = NULL;
    me_tensor *last_sum = NULL;
    me_tensor *tokens = me_roll_tensor(nn, state[ME_MTP_TOKENS], &sum);
    me_tensor *positions =
        me_roll_tensor(nn, state[ME_MTP_POSITIONS], &last_sum);
    me_rebind(e, sum, last_sum);
    me_tensor *decoder_input =
        me_embedding_forward(nn, embedding, tokens, positions);
    me_tensor *hidden = me_make_viewless(e, state[ME_MTP_HIDDEN]);
    state[ME_MTP_HIDDEN] = hidden;
    state[ME_MTP_TOKENS] = tokens;
    state[ME_MTP_POSITIONS] = positions;
    me_leave_with(e, frame, 4,
                  (me_tensor *[]){tokens, positions, decoder_input, hidden});
    return decoder_input;
}

/** MultiTokenPredictionLayer.forward: replaces @p state. */
static void layer_forward(me_nn *nn, const me_mtp_layer *layer,
                          const me_mtp_inputs *inputs, me_tensor **state)
{
    me_engine *e = nn->e;
    const me_config *c = nn->config;
    const me_module_id before = me_module_current(e);
    me_module_enter(e, layer->module);
    const me_frame frame = me_enter(e);
    me_tensor *decoder_input =
        me_mtp_get_embeddings(nn, inputs->embedding, state);
    me_tensor *const now[ME_CHECKPOINT_INPUTS] = {
        state[ME_MTP_HIDDEN], decoder_input, inputs->attention_mask,
        inputs->angles};
    const bool is_recomputed = c->recompute.granularity == ME_RECOMPUTE_FULL &&
                               c->recompute.method == ME_RECOMPUTE_UNIFORM;
    me_tensor *y = is_recomputed ? run_recomputed(nn, layer, now)
                                 : run_layer(&layer->section, now);
    state[ME_MTP_HIDDEN] = me_rebind(e, state[ME_MTP_HIDDEN], y);
    me_leave_with(e, frame, ME_MTP_STATE, state);
    me_module_leave(e);
    me_module_resume(e, before);
}

me_tensor *me_mtp_block_forward(me_nn *nn, me_mtp_block *block,
                                const me_mtp_inputs *inputs, me_tensor *hidden)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    me_module_enter(e, block->module);
    const me_frame frame = me_enter(e);
    const int32_t depths = nn->config->model.mtp_num_layers;
    me_tensor *list[1 + ME_MTP_MAX_DEPTHS] = {NULL};
    me_tensor *state[ME_MTP_STATE] = {
        [ME_MTP_TOKENS] = me_hold(e, inputs->tokens),
        [ME_MTP_POSITIONS] = me_hold(e, inputs->position_ids),
    };
    me_chunk_first(e, hidden, 1, list);
    for (int32_t i = 0; i < depths && me_engine_is_ok(e); i++) {
        me_tensor *const before[ME_MTP_STATE] = {state[0], state[1], state[2]};
        state[ME_MTP_HIDDEN] = list[i];
        me_pass_set(e, (uint8_t)(i / block->num_layers));
        layer_forward(nn, &block->layers[i % block->num_layers], inputs, state);
        list[i + 1] = state[ME_MTP_HIDDEN];
        me_rebind(e, before[ME_MTP_TOKENS], state[ME_MTP_TOKENS]);
        me_rebind(e, before[ME_MTP_POSITIONS], state[ME_MTP_POSITIONS]);
    }
    me_pass_set(e, 0);
    me_tensor *y = me_cat_first(e, 1 + (uint32_t)depths, list);
    me_leave(e, frame, y);
    me_module_leave(e);
    return y;
}

/** MTPLossLoggingHelper.save_metrics_to_tracker(): added in place. */
static void save_metrics(me_nn *nn, me_mtp_metrics *metrics)
{
    me_engine *e = nn->e;
    if (metrics->loss_values != NULL || !me_engine_is_ok(e)) {
        return;
    }
    const me_shape shape = ME_SHAPE((uint64_t)nn->config->model.mtp_num_layers);
    const me_category category = me_category_set(e, ME_CATEGORY_OTHER);
    const me_frame frame = me_enter(e);
    me_tensor **vectors[3] = {&metrics->loss_values, &metrics->correct_values,
                              &metrics->total_values};
    for (int i = 0; i < 3; i++) {
        *vectors[i] = me_retain(me_empty(e, "zeros", ME_DTYPE_FLOAT32, shape));
    }
    me_leave(e, frame, NULL);
    me_category_set(e, category);
}

/** `x.sum().float()` of flags: they are widened for the sum. */
static me_tensor *count_true(me_engine *e, const me_tensor *flags)
{
    me_tensor *sum = me_scratch(e, "sum", 8);
    me_tensor *wide = me_pointwise(e, "to", flags, ME_DTYPE_INT64);
    me_reduce_all(e, wide);
    me_drop(e, wide);
    return sum;
}

static me_tensor *to_float(me_engine *e, me_tensor *sum)
{
    me_tensor *y = me_empty(e, "to", ME_DTYPE_FLOAT32, ME_SCALAR);
    me_drop(e, sum);
    return y;
}

/** The largest logit's place in its row, (s, b) int64. */
static me_tensor *argmax(me_engine *e, const me_tensor *logits,
                         const me_tensor *like)
{
    me_tensor *y = me_pointwise(e, "argmax", like, ME_DTYPE_INT64);
    me_reduce_to(e, logits, me_numel(like), 16);
    return y;
}

/** _vocab_parallel_argmax(): each rank's best, gathered and compared. */
static me_tensor *vocab_parallel_argmax(me_nn *nn, const me_tensor *logits,
                                        const me_tensor *like)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const uint64_t ranks = (uint64_t)nn->config->parallel.tensor;
    const uint64_t n = me_numel(like);
    me_tensor *value = me_pointwise(e, "max", like, (me_dtype)logits->dtype);
    me_tensor *place = argmax(e, logits, like);
    const me_tensor *own[2] = {value, place};
    for (int i = 0; i < 2; i++) { // lists of tensors, one a rank
        for (uint64_t k = 0; k < ranks; k++) {
            me_empty_like(e, "empty_like", own[i]);
        }
    }
    for (int i = 0; i < 2; i++) { // NCCL writes into one flat tensor first
        me_tensor *flat = me_empty(e, "all_gather", (me_dtype)own[i]->dtype,
                                   ME_SHAPE(ranks, n));
        me_communicate(e, nn->comm,
                       (me_call){ME_GROUP_TENSOR, ME_COLLECTIVE_ALL_GATHER,
                                 own[i]->dtype, n, -1, false});
        me_drop(e, flat);
    }
    for (int i = 0; i < 2; i++) {
        me_empty(e, "stack", (me_dtype)own[i]->dtype, ME_SHAPE(ranks, n));
    }
    me_tensor *winner = me_pointwise(e, "argmax", like, ME_DTYPE_INT64);
    me_pointwise(e, "gather", like, ME_DTYPE_INT64);
    me_tensor *offset = me_pointwise(e, "mul", winner, ME_DTYPE_INT64);
    me_tensor *y = me_pointwise(e, "add", winner, ME_DTYPE_INT64);
    me_drop(e, offset);
    return me_leave(e, frame, y);
}

/** _compute_mtp_acceptance_counts(): how many predictions were right, and of
 *  how many; two scalars. */
static void acceptance_counts(me_nn *nn, const me_tensor *logits,
                              me_tensor *labels, me_tensor *loss_mask,
                              me_tensor **counts_out)
{
    me_engine *e = nn->e;
    const bool grad = me_grad_enable(e, false);
    const me_frame frame = me_enter(e);
    me_tensor *label_rows = me_transpose(e, labels, 0, 1); // (s, b)
    me_tensor *mask_rows = me_transpose(e, loss_mask, 0, 1);
    nn->config->parallel.tensor > 1
        ? vocab_parallel_argmax(nn, logits, label_rows)
        : argmax(e, logits, label_rows);
    me_contiguous(e, label_rows);
    me_tensor *mask = me_contiguous(e, mask_rows);
    me_tensor *valid = me_pointwise(e, "to", mask, ME_DTYPE_BOOL);
    me_tensor *equal = me_pointwise(e, "eq", mask, ME_DTYPE_BOOL);
    me_tensor *right = me_pointwise(e, "and", mask, ME_DTYPE_BOOL);
    me_drop(e, equal);
    me_tensor *sum = count_true(e, right);
    me_drop(e, right);
    counts_out[0] = to_float(e, sum);
    counts_out[1] = to_float(e, count_true(e, valid));
    me_leave_with(e, frame, 2, counts_out);
    me_grad_enable(e, grad);
}

/** Variables of process_mtp_loss() that one depth takes over from the one
 *  before; in the order in which they die. */
typedef struct loss_variables {
    me_tensor *ignored_sum; /**< `_`: of the labels */
    me_tensor *labels;
    me_tensor *original_num_tokens;
    me_tensor *logits;
    me_tensor *num_tokens;
    me_tensor *loss;            /**< (b, s), masked */
    me_tensor *for_log[3];      /**< at least 1; is there a token; the loss */
    me_tensor *counts[2];       /**< correct, total */
    me_tensor *num_tokens_safe; /**< at least 1, of a loss per token */
    me_tensor *loss_mask;       /**< an argument: outlives the others */
} loss_variables;

/** `sum(loss) * (num_tokens > 0) / num_tokens.clamp(min=1)`, which the log
 *  reads; its graph keeps two of the scalars: the quotient's node, which goes
 *  first, its divisor, the product's its factor. */
static void loss_for_log(me_nn *nn, loss_variables *v)
{
    me_engine *e = nn->e;
    me_tensor *log[3] = {NULL, NULL, NULL};
    me_tensor *sum = me_sum_detached(e, v->loss);
    me_tensor *is_any = me_scratch(e, "gt", 1);
    log[1] = me_scratch(e, "to", 4);
    me_drop(e, is_any);
    me_tensor *product = me_scratch(e, "mul", 4);
    me_drop(e, sum);
    log[0] = me_scratch(e, "clamp", 4);
    me_name_last(e, log[1]);
    log[2] = me_scratch(e, "div", 4);
    me_drop(e, product);
    for (int i = 0; i < 3; i++) {
        set(e, &v->for_log[i], log[i]);
    }
}

static void auto_scaler_backward(me_engine *e, me_node *node,
                                 me_tensor *const *gy, me_tensor **gx)
{
    const me_tensor *loss = node->saved[0];
    gx[0] = gy[0];
    me_tensor *ones = me_pointwise(e, "ones_like", loss, ME_DTYPE_FLOAT32);
    gx[1] = me_pointwise(e, "mul", loss, ME_DTYPE_FLOAT32);
    me_drop(e, ones);
}

static const me_op auto_scaler_op =
    ME_NODE("MTPLossAutoScalerBackward", auto_scaler_backward);

/** MTPLossAutoScaler: the hidden states, to whose backward the loss is tied. */
static me_tensor *tie_loss(me_engine *e, me_tensor *hidden, me_tensor *loss)
{
    me_node *node = me_record2(e, &auto_scaler_op, hidden, loss);
    me_save(e, node, 0, loss);
    return me_output(e, node,
                     me_alias(e, hidden, hidden->shape, hidden->strides));
}

/** `scale * loss / num_tokens.clamp(min=1)`, (b, s). */
static me_tensor *loss_of_mean(me_engine *e, const loss_variables *v)
{
    const me_frame frame = me_enter(e);
    me_tensor *safe = me_empty(e, "clamp", ME_DTYPE_FLOAT32, ME_SCALAR);
    me_tensor *scaled = me_mul_number(e, v->loss);
    me_tensor *mean = me_div(e, scaled, safe);
    me_drop(e, scaled);
    return me_leave(e, frame, mean);
}

/** `scale * loss * (original_num_tokens / num_tokens.clamp(min=1))`, (b, s): the
 *  end of the backward divides by all tokens. */
static me_tensor *loss_per_token(me_engine *e, loss_variables *v)
{
    set(e, &v->num_tokens_safe,
        me_empty(e, "clamp", ME_DTYPE_FLOAT32, ME_SCALAR));
    const me_frame frame = me_enter(e);
    me_tensor *scaled = me_mul_number(e, v->loss);
    me_tensor *ratio = me_empty(e, "div", ME_DTYPE_FLOAT32, ME_SCALAR);
    me_tensor *shares = me_mul(e, scaled, ratio);
    me_drop(e, scaled);
    return me_leave(e, frame, shares);
}

/** The loss of one depth, from its hidden states. @return the model's */
static me_tensor *depth_loss(me_nn *nn, me_mtp_metrics *metrics,
                             const me_mtp_head *head, me_tensor *const *hidden,
                             loss_variables *v)
{
    me_engine *e = nn->e;
    set(e, &v->logits,
        me_column_linear(nn, head->output_layer, hidden[1],
                         head->output_weight)); // (s, b, v/t)
    me_drop(e, v->ignored_sum); // the name holds the missing bias now
    v->ignored_sum = NULL;
    if (me_model_scales_logits(&nn->config->model)) {
        set(e, &v->logits, me_mul_number(e, v->logits));
    }
    me_tensor *sum = NULL;
    me_tensor *labels = me_roll_tensor(nn, v->labels, &sum);
    set(e, &v->labels, labels);
    set(e, &v->ignored_sum, sum);
    me_tensor *mask = me_roll_tensor(nn, v->loss_mask, &sum);
    v->loss_mask = me_rebind(e, v->loss_mask, mask);
    set(e, &v->num_tokens, sum);
    set(e, &v->loss, me_language_model_loss(nn, v->labels, v->logits));
    set(e, &v->loss, me_mul(e, v->loss_mask, v->loss)); // (b, s)
    loss_for_log(nn, v);
    me_tensor *counts[2] = {NULL, NULL};
    acceptance_counts(nn, v->logits, v->labels, v->loss_mask, counts);
    set(e, &v->counts[0], counts[0]);
    set(e, &v->counts[1], counts[1]);
    save_metrics(nn, metrics);
    me_tensor *shares = nn->config->train.calculate_per_token_loss
                            ? loss_per_token(e, v)
                            : loss_of_mean(e, v);
    me_tensor *tied = tie_loss(e, hidden[0], shares);
    me_drop(e, shares);
    return tied;
}

me_tensor *me_process_mtp_loss(me_nn *nn, me_mtp_block *block,
                               const me_mtp_head *head, me_tensor *hidden)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    const me_frame frame = me_enter(e);
    const int32_t depths = nn->config->model.mtp_num_layers;
    me_tensor *list[1 + ME_MTP_MAX_DEPTHS] = {NULL};
    loss_variables v = {.loss_mask = me_hold(e, head->loss_mask)};
    me_chunk_first(e, hidden, 1 + (uint32_t)depths, list);
    me_tensor *y = list[0];
    v.labels = me_clone_detached(e, head->labels);
    v.original_num_tokens = me_sum_detached(e, head->loss_mask);
    for (int32_t i = 0; i < depths && me_engine_is_ok(e); i++) {
        y = depth_loss(nn, &block->metrics, head,
                       (me_tensor *[]){y, list[i + 1]}, &v);
    }
    me_drop(e, v.ignored_sum); // it was named before the others
    return me_leave(e, frame, y);
}
