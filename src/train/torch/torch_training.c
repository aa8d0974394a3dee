/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/size.h"
#include "nn/torch/forward.h"
#include "nn/torch/parallelize.h"
#include "ops/reduce.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"
#include "train/torch/grad_scaler.h"
#include "train/torch/loop.h"
#include "train/torch/pipelining.h"
#include "train/torch/torch_ddp.h"
#include "train/torch/torch_fsdp.h"

#include <stdio.h>

enum {
    POINT_NAME_BYTES = 32
};

/** A batch of the loop's, of random numbers. */
static me_tensor *keep_drawn(me_loop *l, const char *op, me_dtype dtype,
                             me_shape shape)
{
    const bool was_drawn = me_drawn_set(l->e, true);
    me_tensor *x = me_keep(l->e, op, ME_CATEGORY_INPUT, dtype, shape);
    me_drawn_set(l->e, was_drawn);
    return x;
}

void me_loop_begin_action(me_loop *l, me_action_kind kind, int32_t chunk,
                          int32_t microbatch)
{
    me_action_begin(l->e, me_action_letter(kind), chunk);
    me_launch_tell(l->e,
                   (me_launch){.kind = ME_LAUNCH_ACTION_BEGIN,
                               .is_backward = kind != ME_ACTION_FORWARD,
                               .is_weights = kind == ME_ACTION_WEIGHT_GRADIENT,
                               .chunk = chunk,
                               .microbatch = microbatch});
}

void me_loop_end_action(me_loop *l)
{
    me_launch_tell(l->e, (me_launch){.kind = ME_LAUNCH_ACTION_END});
    me_action_end(l->e);
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static bool has_reentrant(const me_layer_spec *layer)
{
    bool has = layer->is_checkpointed && layer->is_reentrant;
    for (uint32_t i = 0; i < layer->n_children && !has; i++) {
        has = has_reentrant(&layer->children[i]);
    }
    return has;
}

void me_loop_check_loss(me_loop *l, const me_tensor *loss)
{
    me_engine *e = l->e;
    char shape[ME_SHAPE_TEXT] = "";
    if (!me_engine_is_ok(e)) {
        return;
    }
    if (me_numel(loss) != 1) {
        me_shape_text(&loss->shape, shape);
        me_engine_fail(e, ME_ERR_CONFIG,
                       "a loss of shape %s: PyTorch's backward() begins at one "
                       "number, such as .sum() or .mean() gives",
                       shape);
        me_engine_locate_option(e, "torch.loss");
    } else if (loss->grad_fn == NULL) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "module: nothing that the loss is made of needs a "
                       "gradient, which PyTorch's backward() refuses%s",
                       has_reentrant(&l->config->torch_job.tree->root)
                           ? "; a re-entrant checkpoint wants an input that "
                             "does"
                           : "");
    }
}

/** One row a kind of wrapper. */
static const me_wrapper *const wrappers[] = {
    [ME_DATA_PARALLEL_NONE] = NULL,
    [ME_DATA_PARALLEL_DDP] = &me_ddp_wrapper_row,
    [ME_DATA_PARALLEL_FULLY_SHARD] = &me_fsdp_wrapper_row,
};

/** Does a wrapper stand around the model? Such jobs count their passes. */
static bool is_wrapped(const me_loop *l)
{
    return l->wrapper != NULL;
}

/** A process group has made a barrier, whose tensor it keeps. */
static void begin(me_loop *l)
{
    if (l->config->parallel.world_size > 1) {
        const me_frame frame = me_enter(l->e);
        const me_category before = me_category_set(l->e, ME_CATEGORY_BUFFER);
        l->barrier_byte = me_retain(me_scratch(l->e, "barrier", 1));
        me_category_set(l->e, before);
        me_leave(l->e, frame, NULL);
        me_communicate_c10d(l->e, l->comm,
                            (me_c10d_call){.op = ME_C10D_BARRIER,
                                           .group = ME_GROUP_WORLD,
                                           .peer = -1});
        me_communicate(l->e, l->comm,
                       (me_call){ME_GROUP_WORLD, ME_COLLECTIVE_ALL_REDUCE,
                                 ME_DTYPE_UINT8, 1, -1, false});
    }
    me_point(l->e, "start");
}

/** The targets of a batch, where they are numbers. */
static me_boundary labels_of(const me_loop *l)
{
    const bool has_one_each =
        l->config->torch.target == ME_TORCH_TARGET_CLASSES;
    return (me_boundary){has_one_each ? ME_SHAPE(l->input_shape.dim[0])
                                      : l->input_shape,
                         ME_DTYPE_INT64};
}

void me_loop_to_empty(me_loop *l)
{
    if (l->config->torch_job.tree->is_meta && me_engine_is_ok(l->e)) {
        if (l->config->torch_job.tree->n_styles >
            0) { // `empty_like()` of a DTensor
            me_fake_device(l->e);
        }
        me_parameters_to(&l->nn, NULL);
    }
}

/** torch.optim raises of an empty list. */
static void check_parameters(me_loop *l)
{
    if (l->parameters.count == 0 && me_engine_is_ok(l->e)) {
        me_engine_fail(l->e, ME_ERR_CONFIG,
                       "module: no parameters %s, and PyTorch's optimizers "
                       "refuse an empty list",
                       l->spec->pipeline.ranks == 1
                           ? "in this model"
                           : "in the stages of a pipeline rank");
    }
}

static void set_up(me_loop *l)
{
    me_phase_set(l->e, ME_PHASE_SETUP);
    begin(l);
    l->model = me_layers_build(&l->nn, l->config->torch_job.tree, NULL);
    check_parameters(l);
    l->called = me_loop_find_called(l);
    if (l->config->torch_job.tree->n_styles > 0 && me_engine_is_ok(l->e)) {
        me_parallelize(&l->nn, l->model, l->config->torch_job.tree);
        me_point(l->e, "parallelized");
    }
    if (is_wrapped(l) && me_engine_is_ok(l->e)) {
        l->wrapper_state = l->wrapper->wrap(l);
    }
    me_loop_to_empty(l);
    me_point(l->e, is_wrapped(l) ? "wrapped" : "model_built");
    l->input =
        keep_drawn(l, "input", l->config->torch.input_dtype, l->input_shape);
    if (l->config->torch.target != ME_TORCH_TARGET_OUTPUT) {
        const me_boundary labels = labels_of(l);
        l->target = keep_drawn(l, "labels", labels.dtype, labels.shape);
    }
    me_point(l->e, "input");
}

/** What a point of a micro-batch is numbered with. */
static int counted(const me_loop *l, int32_t microbatch)
{
    return is_wrapped(l) || l->spec->pipeline.microbatches > 1 ? microbatch
                                                               : -1;
}

/** The point "iterI_WHAT", or "iterI_WHATK" of micro-batch K; -1: of none. */
static void mark_point(me_loop *l, const char *what, int microbatch)
{
    char *name = me_engine_alloc(l->e, POINT_NAME_BYTES, 1);
    if (name == NULL) {
        return;
    }
    if (microbatch < 0) {
        (void)snprintf(name, POINT_NAME_BYTES, "iter%d_%s", l->iteration, what);
    } else {
        (void)snprintf(name, POINT_NAME_BYTES, "iter%d_%s%d", l->iteration,
                       what, microbatch);
    }
    me_point(l->e, name);
}

/** `y = model(x)`, or of a module of it, then the loss, both under autocast
 * where there is one.
 *  @param y_out  a variable of the running frame, as the loss is */
static me_tensor *forward_loss(me_loop *l, int32_t microbatch,
                               me_tensor **y_out)
{
    me_engine *e = l->e;
    const me_autocast_state outer = me_autocast_enter(e, l->autocast);
    if (is_wrapped(l) && l->wrapper->pre_forward != NULL) {
        l->wrapper->pre_forward(l->wrapper_state);
    }
    me_tensor *y = me_layer_call(l->called, l->input);
    if (is_wrapped(l) && l->wrapper->post_forward != NULL) {
        y = l->wrapper->post_forward(l->wrapper_state, y);
    }
    if (l->config->torch.keeps_last_output) {
        me_assign(e, &l->output, y);
    }
    mark_point(l, "forward", counted(l, microbatch));
    me_tensor *operands[] = {y, l->target};
    me_tensor *loss =
        me_forward_run(&l->nn, l->config->torch_job.loss, 2, operands);
    me_autocast_exit(e, outer);
    *y_out = y;
    return loss;
}

/** `loss.backward()` with the seed, `ones_like(loss)`. */
static void run_backward(me_loop *l, me_tensor *loss)
{
    me_engine *e = l->e;
    me_loop_check_loss(l, loss);
    const me_frame frame = me_enter(e);
    me_tensor *seed = me_empty_like(e, "ones_like", loss);
    me_tell_op(e, "ones_like.default", ME_TENSORS(loss), ME_TENSORS(seed));
    me_launch_host(e, ME_HOST_BACKWARD);
    me_backward(e, loss, seed);
    if (l->wrapper != NULL && l->wrapper->end_backward != NULL) {
        l->wrapper->end_backward(l->wrapper_state);
    }
    me_leave(e, frame, NULL);
}

/** `loss.backward()`, or of the loss that the scaler has scaled. */
static void backward(me_loop *l, me_tensor *loss)
{
    const me_frame frame = me_enter(l->e);
    run_backward(l, l->config->torch.grad_scaler ? me_grad_scaler_scale(l, loss)
                                                 : loss);
    me_leave(l->e, frame, NULL);
}

/** Does the loop name the loss? `loss(y).backward(); del y` does not; one that
 *  is made in a context, or of a wrapped model, ends with `del y, loss`. */
static bool names_loss(const me_loop *l)
{
    return is_wrapped(l) || l->autocast.is_enabled ||
           l->config->torch.grad_scaler;
}

/** One micro-batch. */
static void forward_backward(me_loop *l, int32_t microbatch)
{
    me_engine *e = l->e;
    const me_frame frame = me_enter(e);
    me_microbatch(e, microbatch);
    me_phase_set(e, ME_PHASE_FORWARD);
    me_category_set(e, ME_CATEGORY_TEMPORARY);
    me_loop_begin_action(l, ME_ACTION_FORWARD, 0, microbatch);
    me_tensor *y = NULL;
    me_tensor *loss = forward_loss(l, microbatch, &y);
    if (!l->config->torch.keeps_output && loss != y) {
        me_drop(e, y);
    }
    me_loop_end_action(l);
    me_loop_begin_action(l, ME_ACTION_BACKWARD, 0, microbatch);
    backward(l, loss);
    if (!names_loss(l) && loss != y) {
        me_drop(e, loss);
    }
    me_leave(e, frame, NULL);
    me_loop_end_action(l);
    me_phase_set(e, ME_PHASE_OTHER);
    me_microbatch(e, ME_NO_MICROBATCH);
    mark_point(l, "backward", counted(l, microbatch));
}

/** An optimizer's step, and gradients set to None. */
static void update(me_loop *l)
{
    me_launch_tell(l->e, (me_launch){.kind = ME_LAUNCH_OPTIMIZER});
    const bool is_scaled = l->config->torch.grad_scaler;
    if (l->config->optimizer.clip_grad > 0 && is_scaled) {
        me_grad_scaler_unscale(l);
    }
    if (l->config->optimizer.clip_grad > 0) {
        me_loop_clip_gradients(l);
    }
    if (is_scaled) {
        me_grad_scaler_step(l);
        me_grad_scaler_update(l);
    } else {
        me_loop_step(l);
    }
    mark_point(l, "step", -1);
    me_loop_zero_grad(l);
    mark_point(l, "end", -1);
}

/** One iteration without a pipeline. */
static void train_step(me_loop *l)
{
    me_iteration(l->e, l->iteration);
    me_phase_set(l->e, ME_PHASE_OTHER);
    if (!is_wrapped(l)) {
        mark_point(l, "begin", -1);
    }
    const int32_t n = l->spec->pipeline.microbatches;
    for (int32_t i = 0; i < n && me_engine_is_ok(l->e); i++) {
        l->is_last_pass = i == n - 1;
        forward_backward(l, i);
    }
    update(l);
}

static void run_loop(me_loop *l)
{
    set_up(l);
    for (int32_t i = 0; i < l->spec->iterations && me_engine_is_ok(l->e); i++) {
        l->iteration = i;
        train_step(l);
    }
}

/** The whole batch of a pipeline: all micro-batches. */
static me_tensor *batch(me_loop *l, const char *op,
                        const me_boundary *microbatch)
{
    me_shape shape = microbatch->shape;
    shape.dim[0] =
        me_size_mul(shape.dim[0], (uint64_t)l->spec->pipeline.microbatches);
    return me_keep(l->e, op, ME_CATEGORY_INPUT, microbatch->dtype, shape);
}

static void set_up_pipeline(me_loop *l, me_schedule_run *run)
{
    me_phase_set(l->e, ME_PHASE_SETUP);
    begin(l);
    me_schedule_build(l, run);
    check_parameters(l);
    for (int32_t i = 0; i < run->n_stages && me_engine_is_ok(l->e); i++) {
        if (run->stages[i].index == 0) {
            l->input = batch(l, "input", &run->stages[i].input);
        }
    }
    for (int32_t i = 0; i < run->n_stages && me_engine_is_ok(l->e); i++) {
        if (run->stages[i].index == run->stages[i].n_stages - 1) {
            const me_boundary labels = labels_of(l);
            l->target = l->config->torch.target == ME_TORCH_TARGET_OUTPUT
                            ? batch(l, "target", &run->stages[i].output)
                            : batch(l, "labels", &labels);
        }
    }
    me_point(l->e, "input");
}

/** `schedule.step(…)`, in a context of its own where one is around it. */
static void step_schedule(const me_loop *l, me_schedule_run *run)
{
    if (!l->config->torch.autocast_backward) {
        me_schedule_step(run);
        return;
    }
    const me_autocast_state outer = me_autocast_enter(l->e, l->autocast);
    me_schedule_step(run);
    me_autocast_exit(l->e, outer);
}

static void run_pipeline(me_loop *l, me_schedule_run *run)
{
    set_up_pipeline(l, run);
    for (int32_t i = 0; i < l->spec->iterations && me_engine_is_ok(l->e); i++) {
        l->iteration = i;
        me_iteration(l->e, i);
        me_phase_set(l->e, ME_PHASE_OTHER);
        step_schedule(l, run);
        mark_point(l, "schedule", -1);
        if (l->config->torch.grad_scaler) {
            me_grad_scaler_begin(l);
        }
        update(l);
    }
}

static me_fully_shard_config fully_shard_config(const me_torch_options *t)
{
    return (me_fully_shard_config){
        .reshard_after_forward = t->reshard_after_forward,
        .has_param_dtype = t->param_dtype >= 0,
        .param_dtype = t->param_dtype >= 0 ? (me_dtype)t->param_dtype : 0,
        .has_reduce_dtype = t->reduce_dtype >= 0,
        .reduce_dtype = t->reduce_dtype >= 0 ? (me_dtype)t->reduce_dtype : 0,
        .syncs_last = !t->requires_gradient_sync,
        .all_reduces_last = !t->requires_all_reduce,
        .offloads = t->cpu_offload,
        .pins_memory = t->pin_memory,
    };
}

static me_autocast_state autocast_state(const me_torch_options *t)
{
    return (me_autocast_state){
        .is_enabled = t->autocast >= 0,
        .dtype = t->autocast >= 0 ? (me_dtype)t->autocast : ME_DTYPE_FLOAT32,
    };
}

static void loop_init(me_loop *l, me_engine *e, const me_torch_spec *spec,
                      const me_communicators *comm)
{
    const me_config *c = spec->config;
    *l = (me_loop){
        .e = e,
        .config = c,
        .spec = spec,
        .comm = comm,
        .input_shape = {.ndim = c->torch_job.n_input_dims},
        .autocast = autocast_state(&c->torch),
        .fully_shard = fully_shard_config(&c->torch),
        .wrapper = wrappers[c->torch.data_parallel],
        .iteration = -1,
    };
    for (int32_t i = 0; i < c->torch_job.n_input_dims; i++) {
        l->input_shape.dim[i] = c->torch_job.input_dims[i];
    }
    l->nn = (me_nn){
        .e = e,
        .config = c,
        .comm = comm,
        .parameters = &l->parameters,
        .is_loss_parallel = c->torch.loss_parallel,
    };
    me_ops_install(e);
}

static void loop_fini(me_loop *l)
{
    for (uint32_t i = 0; i < l->n_states; i++) {
        me_release(l->e, l->states[i].moments[0]);
        me_release(l->e, l->states[i].moments[1]);
        me_release(l->e, l->states[i].step);
    }
    me_free(l->states);
    if (l->wrapper != NULL) {
        l->wrapper->unwrap(l->wrapper_state);
    }
    me_grad_scaler_fini(l);
    me_release(l->e, l->barrier_byte);
    me_release(l->e, l->input);
    me_release(l->e, l->target);
    me_release(l->e, l->output);
    me_parameter_list_fini(l->e, &l->parameters);
}

me_status me_torch_run(me_engine *e, const me_torch_spec *spec,
                       const me_communicators *comm)
{
    me_loop l;
    me_schedule_run run = {.n_stages = 0};
    loop_init(&l, e, spec, comm);
    if (spec->pipeline.ranks == 1) {
        run_loop(&l);
    } else {
        run_pipeline(&l, &run);
    }
    // What the program still holds at its end is no event of the job.
    const me_status status = me_engine_status(e, NULL);
    me_engine_mute(e);
    me_schedule_fini(&run);
    loop_fini(&l);
    return status;
}
