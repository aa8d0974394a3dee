/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/step.h"

#include "ops/elementwise.h"
#include "ops/index.h"
#include "ops/reduce.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/layer_wise.h"
#include "train/megatron/repeat.h"
#include "train/megatron/trainer.h"

#include <stdio.h>
#include <string.h>

static me_tensor *attention_mask(me_trainer *t)
{
    const me_config *c = t->config;
    if (!c->train.create_attention_mask_in_dataloader) {
        return NULL;
    }
    return me_empty(t->e, "attention_mask", ME_DTYPE_BOOL,
                    ME_SHAPE(c->train.micro_batch_size, 1, c->model.seq_length,
                             c->model.seq_length));
}

/** get_batch_on_this_tp_rank(): tensor rank 0 copies from the host, the others
 *  make room for what it broadcasts. */
static void make_batch(me_trainer *t, me_batch *batch)
{
    me_engine *e = t->e;
    const me_config *c = t->config;
    const me_shape tokens =
        ME_SHAPE(c->train.micro_batch_size, c->model.seq_length);
    *batch = (me_batch){.tokens = NULL};
    if (t->comm->index[ME_GROUP_TENSOR] == 0) {
        batch->attention_mask = attention_mask(t);
        batch->labels = me_empty(e, "labels", ME_DTYPE_INT64, tokens);
        batch->loss_mask = me_empty(e, "loss_mask", ME_DTYPE_FLOAT32, tokens);
        batch->position_ids =
            me_empty(e, "position_ids", ME_DTYPE_INT64, tokens);
        batch->tokens = me_empty(e, "tokens", ME_DTYPE_INT64, tokens);
        return;
    }
    batch->tokens = me_empty(e, "tokens", ME_DTYPE_INT64, tokens);
    batch->labels = me_empty(e, "labels", ME_DTYPE_INT64, tokens);
    batch->loss_mask = me_empty(e, "loss_mask", ME_DTYPE_FLOAT32, tokens);
    batch->position_ids = me_empty(e, "position_ids", ME_DTYPE_INT64, tokens);
    batch->attention_mask = attention_mask(t);
}

static void broadcast(me_trainer *t, const me_tensor *x)
{
    if (x != NULL) {
        me_communicate(t->e, t->comm,
                       (me_call){ME_GROUP_TENSOR, ME_COLLECTIVE_BROADCAST,
                                 x->dtype, me_numel(x), 0, false});
    }
}

static void forget(me_engine *e, me_tensor **x)
{
    me_drop(e, *x);
    *x = NULL;
}

/** This rank's chunks of what the loader made along @p dim, and the index that
 *  chooses them, which goes when the next one is made. */
static void take_chunks(me_trainer *t, int32_t dim, me_tensor **x,
                        me_tensor **index)
{
    if (*x == NULL) {
        return;
    }
    me_engine *e = t->e;
    me_tensor *before = *index;
    *index = me_empty(e, "zeros", ME_DTYPE_INT64, ME_SHAPE(2));
    me_drop(e, before);
    me_tensor *part = me_select_chunks(
        e, *x, dim,
        me_dim(*x, dim) / (uint64_t)t->comm->size[ME_GROUP_CONTEXT]);
    me_drop(e, *x);
    *x = part;
}

/** get_batch_on_this_cp_rank(), in the order of the dictionary: that of the loader
 *  or, where the batch was received, of who received it. */
static void take_context_chunks(me_trainer *t, me_batch *batch)
{
    const bool is_loaders = t->comm->index[ME_GROUP_TENSOR] == 0;
    me_tensor *index = NULL;
    if (t->comm->size[ME_GROUP_CONTEXT] <= 1 || !me_engine_is_ok(t->e)) {
        return;
    }
    take_chunks(t, 1, &batch->tokens, &index);
    take_chunks(t, 1, &batch->labels, &index);
    if (is_loaders) {
        take_chunks(t, 2, &batch->attention_mask, &index);
    }
    take_chunks(t, 1, &batch->loss_mask, &index);
    take_chunks(t, 1, &batch->position_ids, &index);
    if (!is_loaders) {
        take_chunks(t, 2, &batch->attention_mask, &index);
    }
    me_drop(t->e, index);
}

/** The depths of multi-token prediction read the batch's tokens again
 *  (mtp_on_this_rank()), and their stage keeps all. */
void me_get_batch(me_trainer *t, const me_gpt_spec *stage, me_batch *batch)
{
    *batch = (me_batch){.tokens = NULL};
    const bool has_tokens = stage->pre_process || stage->has_mtp;
    const bool has_labels = stage->post_process || stage->has_mtp;
    if (!has_tokens && !has_labels) {
        return;
    }
    const me_category category = me_category_set(t->e, ME_CATEGORY_INPUT);
    me_launch_host(t->e, ME_HOST_LOADER);
    make_batch(t, batch);
    if (has_tokens) {
        broadcast(t, batch->tokens);
    }
    if (has_labels) {
        broadcast(t, batch->labels);
        broadcast(t, batch->loss_mask);
    }
    broadcast(t, batch->attention_mask);
    if (has_tokens) {
        broadcast(t, batch->position_ids);
    }
    if (!has_labels) {
        forget(t->e, &batch->labels);
        forget(t->e, &batch->loss_mask);
    } else if (!has_tokens) {
        forget(t->e, &batch->tokens);
        forget(t->e, &batch->position_ids);
    }
    take_context_chunks(t, batch);
    me_category_set(t->e, category);
}

/** loss_func() of pretrain_gpt.py: sum over the mask, token count, report. */
static me_tensor *loss_function(me_trainer *t, me_tensor *losses,
                                me_tensor *loss_mask, me_tensor **num_tokens)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *product = me_mul(e, losses, loss_mask); // (b, s)
    me_tensor *loss = me_sum(e, product);
    me_drop(e, product);
    me_tensor *sum = me_scratch(e, "sum", 4);
    me_reduce(e, &(me_reduction){
                     .inputs = me_numel(loss_mask),
                     .outputs = 1,
                     .element_bytes = 4,
                     .accumulator_bytes = 4,
                 });
    me_tensor *copy = me_scratch(e, "clone", 4);
    me_drop(e, sum);
    *num_tokens = me_retain(me_empty(e, "to", ME_DTYPE_INT32, ME_SCALAR));
    me_drop(e, copy);
    copy = me_scratch(e, "clone", 4);
    t->reports[t->n_reports++] = me_retain(me_scratch(e, "cat", 8));
    me_drop(e, copy);
    if (t->config->train.check_for_nan_in_loss_and_grad) {
        me_validate_scalar(t, 4);
    }
    return me_leave(e, frame, loss);
}

/** The scale of the auxiliary loss's gradient: the loss scale over the
 *  micro-batches. @return the loss scale, a variable of the running frame, or
 *  NULL: no experts */
static me_tensor *set_aux_loss_scale(me_trainer *t)
{
    me_engine *e = t->e;
    if (t->config->moe.num_experts == 0) {
        return NULL;
    }
    me_tensor *ones = me_scratch(e, "ones", 4);
    me_tensor *scale = me_scratch(e, "scale_loss", 4);
    me_drop(e, ones);
    if (t->config->train.calculate_per_token_loss) {
        return scale;
    }
    me_tensor *of_contexts = me_scratch(e, "mul", 4);
    me_tensor *of_microbatches = me_scratch(e, "div", 4);
    me_drop(e, of_contexts);
    me_drop(e, of_microbatches); // copied into the class's
    return scale;
}

me_tensor *me_calculate_loss(me_trainer *t, me_tensor *losses,
                             me_tensor *loss_mask, me_tensor **num_tokens)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *loss = loss_function(t, losses, loss_mask, num_tokens);
    if (!t->config->train.calculate_per_token_loss) {
        me_tensor *divisor = me_empty(e, "clamp", ME_DTYPE_INT32, ME_SCALAR);
        loss = me_div_in_place(e, loss, divisor);
        me_drop(e, divisor);
        loss = me_div_number_in_place(e, loss);
    }
    return me_leave(e, frame, loss);
}

void me_set_loss_scales(me_trainer *t)
{
    me_set_mtp_loss_scale(t, set_aux_loss_scale(t));
}

/** pretrain_gpt.py's forward_step(): the batch goes when it returns, but for
 *  what the tape and the loss function keep. */
static me_tensor *forward_model(me_trainer *t, me_gpt *gpt,
                                me_tensor **loss_mask)
{
    me_engine *e = t->e;
    me_batch batch;
    const me_frame frame = me_enter(e);
    me_get_batch(t, &gpt->spec, &batch);
    me_layer_wise_gather_chunk(t, (int32_t)(gpt - t->chunks));
    me_tensor *y = me_gpt_forward(gpt, &batch);
    forget(e, &batch.attention_mask);
    forget(e, &batch.labels);
    forget(e, &batch.position_ids);
    forget(e, &batch.tokens);
    *loss_mask = batch.loss_mask;
    me_leave_with(e, frame, batch.loss_mask == NULL ? 1 : 2,
                  (me_tensor *[]){y, batch.loss_mask});
    return y;
}

const char *me_forward_name(me_trainer *t, const char *what)
{
    enum {
        NAME_BYTES = 32
    };

    char *name = me_engine_alloc(t->e, NAME_BYTES, 1);
    if (name != NULL) {
        (void)snprintf(name, NAME_BYTES, "fwd%d_%s", t->forwards, what);
    }
    return name;
}

void me_forward_point(me_trainer *t, const char *what)
{
    if (t->iteration == 1) {
        me_point(t->e, me_forward_name(t, what));
    }
}

/** An action of the pipeline's order, and what it is put into. */
typedef struct action {
    me_launch begin; /**< says which it is */
    me_context before;
} action;

/** An action of a micro-batch begins: its events and its launches belong to it
 *  until it ends. */
static action begin_action(me_trainer *t, me_action_kind kind, int32_t chunk,
                           int32_t microbatch)
{
    me_engine *e = t->e;
    const bool is_forward = kind == ME_ACTION_FORWARD;
    me_microbatch(e, microbatch);
    action a = {.begin = {.kind = ME_LAUNCH_ACTION_BEGIN,
                          .is_backward = !is_forward,
                          .is_input = kind == ME_ACTION_INPUT_GRADIENT,
                          .is_weights = kind == ME_ACTION_WEIGHT_GRADIENT,
                          .chunk = chunk,
                          .microbatch = microbatch}};
    a.before = *me_context_now(e);
    me_phase_set(e, !is_forward           ? ME_PHASE_BACKWARD
                    : t->nn.is_evaluating ? ME_PHASE_EVALUATION
                                          : ME_PHASE_FORWARD);
    me_category_set(e, ME_CATEGORY_TEMPORARY);
    me_repeats_begin_action(t, kind, chunk, microbatch);
    me_action_begin(e, me_action_letter(kind), chunk);
    me_launch_tell(e, a.begin);
    if (kind != ME_ACTION_WEIGHT_GRADIENT) {
        me_launch_host(e, ME_HOST_MICROBATCH);
    }
    return a;
}

static void end_action(me_trainer *t, const action *a)
{
    me_engine *e = t->e;
    me_launch_tell(e, (me_launch){.kind = ME_LAUNCH_ACTION_END});
    me_repeats_end_action(t, &a->begin);
    me_action_end(e);
    me_context_restore(e, a->before);
    me_microbatch(e, ME_NO_MICROBATCH);
}

/** The model and its loss. @return owned, as are the others */
static me_tensor *run_forward(me_trainer *t, me_gpt *gpt,
                              me_tensor **num_tokens, me_tensor **report)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    const int32_t n_reports = t->n_reports;
    me_tensor *loss_mask = NULL;
    me_tensor *y = forward_model(t, gpt, &loss_mask);
    me_forward_point(t, "end");
    me_tensor *loss = NULL;
    if (gpt->spec.post_process && me_engine_is_ok(e)) {
        loss = me_calculate_loss(t, y, loss_mask, num_tokens);
    }
    me_set_loss_scales(t);
    if (loss != NULL) {
        me_drop(e, loss_mask);
        y = me_rebind(e, y, loss);
    }
    me_retain(y);
    me_leave(e, frame, NULL);
    if (t->n_reports > n_reports) {
        *report = t->reports[--t->n_reports];
    }
    return y;
}

/** The model and its loss, told or run. @return owned, as are the tokens */
static me_tensor *forward(me_trainer *t, me_gpt *gpt, me_tensor *input,
                          me_tensor **num_tokens)
{
    me_tensor *const inputs[ME_SCRIPT_INPUTS] = {input};
    me_tensor *outputs[ME_ACTION_OUTPUTS] = {NULL}; // output, tokens, report
    if (!me_repeats_tell(t, inputs, outputs)) {
        outputs[0] = run_forward(t, gpt, &outputs[1], &outputs[2]);
        me_repeats_end(t, inputs, outputs);
    }
    if (outputs[2] != NULL) {
        t->reports[t->n_reports++] = outputs[2];
    }
    *num_tokens = outputs[1];
    return outputs[0];
}

me_tensor *me_forward_step(me_trainer *t, int32_t chunk, int32_t microbatch,
                           me_tensor *input, me_tensor **num_tokens_out)
{
    me_gpt *gpt = &t->chunks[chunk];
    const action a = begin_action(t, ME_ACTION_FORWARD, chunk, microbatch);
    me_gpt_set_input(t->e, gpt, input);
    me_forward_point(t, "begin");
    me_tensor *y = forward(t, gpt, input, num_tokens_out);
    t->forwards++;
    end_action(t, &a);
    return y;
}

me_tensor *me_scale_loss(me_trainer *t, me_tensor *loss)
{
    me_engine *e = t->e;
    me_tensor *scale = t->optimizers[0].constants[0];
    me_tensor *ones = me_alias(e, scale, ME_SHAPE(1), (uint64_t[]){1});
    ones->dtype = ME_DTYPE_FLOAT32;
    me_tensor *scaled = me_mul(e, loss, ones);
    me_drop(e, ones);
    return scaled;
}

static void run_backward(me_trainer *t, int32_t chunk, me_tensor **output,
                         me_tensor *gradient)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    if (t->chunks[chunk].spec.post_process) {
        me_tensor *scaled = me_scale_loss(t, *output);
        me_assign(e, output, scaled);
        me_drop(e, scaled);
        gradient = me_pointwise(e, "ones_like", *output, ME_DTYPE_FLOAT32);
    }
    me_begin_backward(t);
    me_backward(e, *output, gradient);
    me_end_backward(t);
    me_leave(e, frame, NULL);
}

/** The backward, told or run. */
static void backward(me_trainer *t, int32_t chunk, me_tensor **output,
                     me_tensor *gradient)
{
    me_engine *e = t->e;
    me_tensor *input = me_repeats_input(t);
    me_tensor *const before = *output;
    me_tensor *const inputs[ME_SCRIPT_INPUTS] = {input, before, gradient};
    me_tensor *outputs[ME_ACTION_OUTPUTS] = {
        NULL}; // input's gradient, scaled loss
    me_repeats_name_output(t, output);
    if (!me_repeats_tell(t, inputs, outputs)) {
        run_backward(t, chunk, output, gradient);
        outputs[0] = input == NULL ? NULL : input->grad;
        outputs[1] = *output == before ? NULL : *output;
        me_repeats_end(t, inputs, outputs);
        return;
    }
    if (input != NULL) {
        input->grad = outputs[0];
    }
    if (outputs[1] != NULL) {
        me_assign(e, output, outputs[1]);
        me_release(e, outputs[1]);
    }
}

void me_backward_step(me_trainer *t, int32_t chunk, int32_t microbatch,
                      me_tensor **output, me_tensor *gradient)
{
    if (!me_engine_is_ok(t->e)) {
        return;
    }
    const action a = begin_action(
        t, t->weights.is_split ? ME_ACTION_INPUT_GRADIENT : ME_ACTION_BACKWARD,
        chunk, microbatch);
    backward(t, chunk, output, gradient);
    end_action(t, &a);
}

void me_weight_step(me_trainer *t, int32_t chunk, int32_t microbatch,
                    me_weight_gradients *weights)
{
    const action a =
        begin_action(t, ME_ACTION_WEIGHT_GRADIENT, chunk, microbatch);
    me_tensor *const inputs[ME_SCRIPT_INPUTS] = {NULL};
    me_tensor *outputs[ME_ACTION_OUTPUTS] = {NULL};
    if (!me_repeats_tell(t, inputs, outputs)) {
        me_weight_gradients_make(&t->nn, weights);
        me_repeats_end(t, inputs, outputs);
    }
    end_action(t, &a);
}

void me_deallocate_output(me_trainer *t, me_tensor *output)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *one =
        me_empty(e, "deallocate_output_tensor", output->dtype, ME_SHAPE(1));
    me_set_data(e, output, one);
    me_leave(e, frame, NULL);
}
