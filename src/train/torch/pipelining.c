/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/torch/pipelining.h"

#include "base/alloc.h"
#include "base/size.h"
#include "nn/torch/parallelize.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/view.h"
#include "tensor/launch.h"
#include "train/torch/grad_scaler.h"
#include "train/torch/torch_fsdp.h"

#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 16
};

/** The part of the model that a stage holds: a Sequential of its share of the
 *  children, numbered anew. NULL after a failure of the engine. */
static const me_layer_tree *part_of_model(me_loop *l, int32_t stage,
                                          int32_t n_stages)
{
    const me_layer_tree *whole = l->config->torch_job.tree;
    const uint32_t n = whole->root.n_children / (uint32_t)n_stages;
    me_layer_tree *part = me_engine_alloc(l->e, 1, sizeof *part);
    me_layer_spec *children = me_engine_alloc(l->e, n, sizeof *children);
    if (part == NULL || children == NULL) {
        return NULL;
    }
    *part = *whole;
    memcpy(children, whole->root.children + (size_t)stage * n,
           n * sizeof *children);
    for (uint32_t i = 0; i < n; i++) {
        children[i].name = whole->root.children[i].name;
    }
    part->root.children = children;
    part->root.n_children = n;
    return part;
}

/** The rank of a stage; -1: there is none. Loops have one a rank. */
static int32_t rank_of(const me_torch_spec *spec, int32_t stage,
                       int32_t n_stages)
{
    if (stage < 0 || stage >= n_stages) {
        return -1;
    }
    return spec->order == NULL ? stage : spec->order->rank_of_stage[stage];
}

/** The stage of this rank's chunk: chunks ascend. */
static int32_t stage_of_chunk(const me_torch_spec *spec, int32_t chunk,
                              int32_t n_stages)
{
    int32_t stage = 0;
    for (int32_t seen = 0; stage < n_stages; stage++) {
        seen += rank_of(spec, stage, n_stages) == spec->pipeline.rank;
        if (seen > chunk) {
            break;
        }
    }
    return stage;
}

/**
 * What passes between stages, which ranks tell each other: found by a forward
 * of the whole model on an engine of its own, which nobody listens to.
 *
 * @param boundaries  n_stages + 1 of them
 */
static me_status find_boundaries(const me_loop *l, me_engine *e,
                                 int32_t n_stages, me_boundary *boundaries)
{
    const bool is_cast =
        l->config->torch.data_parallel == ME_DATA_PARALLEL_FULLY_SHARD &&
        l->fully_shard.has_param_dtype;
    me_parameter_list parameters = {.count = 0};
    me_nn nn = l->nn;
    nn.e = e;
    nn.parameters = &parameters;
    me_communicators comm = *l->comm;
    comm.self = NULL; // here it is only a matter of shapes
    nn.comm = &comm;
    me_ops_install(e);
    me_layer_tree tree = *l->config->torch_job.tree;
    tree.is_meta = true;
    me_layer *model = me_layers_build(&nn, &tree, NULL);
    if (tree.n_styles > 0 && model != NULL) {
        me_parallelize(&nn, model, &tree);
    }
    if (me_engine_is_ok(e)) {
        me_parameters_to(&nn, is_cast ? &l->fully_shard.param_dtype : NULL);
    }
    const me_frame frame = me_enter(e);
    me_grad_enable(e, false);
    const me_autocast_state outer = me_autocast_enter(e, l->autocast);
    me_tensor *x =
        me_empty(e, "input", l->config->torch.input_dtype, l->input_shape);
    boundaries[0] = (me_boundary){x->shape, (me_dtype)x->dtype};
    for (uint32_t i = 0; model != NULL && i < model->n_children; i++) {
        const uint64_t stage =
            (uint64_t)i * (uint64_t)n_stages / model->n_children;
        if (is_cast && me_dtype_is_floating((me_dtype)x->dtype)) {
            x = me_cast(e, x, l->fully_shard.param_dtype); // by each stage
        }
        x = me_layer_forward(&model->children[i], x);
        boundaries[stage + 1] = (me_boundary){x->shape, (me_dtype)x->dtype};
    }
    me_autocast_exit(e, outer);
    me_leave(e, frame, NULL);
    me_parameter_list_fini(e, &parameters);
    return me_engine_status(e, NULL);
}

static void set_boundaries(me_loop *l, me_schedule_run *run)
{
    const int32_t n = l->spec->pipeline.ranks * l->spec->pipeline.chunks;
    me_boundary *all = me_engine_alloc(l->e, (size_t)n + 1, sizeof *all);
    me_engine *e = NULL;
    if (all == NULL || me_engine_create(me_engine_card(l->e), &e) != ME_OK) {
        me_engine_fail(l->e, ME_ERR_NOMEM, "no host memory for stages");
        return;
    }
    me_diag diag = {.status = ME_OK};
    const me_status status = find_boundaries(l, e, n, all);
    if (me_engine_status(e, &diag) != ME_OK) {
        me_engine_fail(l->e, status, "%s", diag.text);
    }
    me_engine_destroy(e);
    for (int32_t i = 0; i < run->n_stages; i++) {
        run->stages[i].input = all[run->stages[i].index];
        run->stages[i].output = all[run->stages[i].index + 1];
    }
}

static void build_stage(me_loop *l, me_stage *stage, int32_t chunk)
{
    const int32_t n_stages = l->spec->pipeline.ranks * l->spec->pipeline.chunks;
    const int32_t index = stage_of_chunk(l->spec, chunk, n_stages);
    const int32_t previous = rank_of(l->spec, index - 1, n_stages);
    const int32_t next = rank_of(l->spec, index + 1, n_stages);
    *stage = (me_stage){
        .loop = l,
        .index = index,
        .chunk = chunk,
        .n_stages = n_stages,
        .has_previous_here = previous == l->spec->pipeline.rank,
        .has_next_here = next == l->spec->pipeline.rank,
        .previous_rank = previous,
        .next_rank = next,
        .n_microbatches = l->spec->pipeline.microbatches,
    };
    stage->microbatches = me_engine_alloc(l->e, (size_t)stage->n_microbatches,
                                          sizeof *stage->microbatches);
    const uint32_t first = l->parameters.count;
    const me_layer_tree *part = part_of_model(l, index, n_stages);
    char *name = me_engine_alloc(l->e, NAME_BYTES, 1);
    if (part == NULL || name == NULL) {
        return;
    }
    (void)snprintf(name, NAME_BYTES, "stage%d", index);
    stage->model = me_layers_build(&l->nn, part, name);
    if (part->n_styles > 0 && me_engine_is_ok(l->e)) {
        me_parallelize_stage(&l->nn, stage->model, part);
    }
    if (l->config->torch.data_parallel == ME_DATA_PARALLEL_FULLY_SHARD &&
        me_engine_is_ok(l->e)) {
        stage->fsdp = me_loop_fully_shard(l, stage->model, true);
    }
    if (l->config->torch.data_parallel == ME_DATA_PARALLEL_DDP &&
        me_engine_is_ok(l->e)) {
        stage->ddp = me_ddp_wrap(l, stage->model, first);
    }
    me_loop_to_empty(l);
    stage->n_weights = l->parameters.count - first;
    stage->weights = me_engine_alloc(l->e, (size_t)stage->n_weights + 1,
                                     sizeof(me_tensor *));
    stage->first_parameter = first;
}

void me_schedule_build(me_loop *l, me_schedule_run *run_out)
{
    me_schedule_run *run = run_out;
    *run = (me_schedule_run){.loop = l, .n_stages = l->spec->pipeline.chunks};
    if (l->spec->order != NULL) {
        run->actions = &l->spec->order->ranks[l->spec->pipeline.rank];
    }
    run->stages =
        me_engine_alloc(l->e, (size_t)run->n_stages, sizeof *run->stages);
    run->losses = me_engine_alloc(l->e, (size_t)l->spec->pipeline.microbatches,
                                  sizeof(me_tensor *));
    for (int32_t i = 0; i < run->n_stages && me_engine_is_ok(l->e); i++) {
        build_stage(l, &run->stages[i], i);
    }
    if (me_engine_is_ok(l->e)) {
        set_boundaries(l, run);
    }
}

static uint64_t boundary_bytes(const me_boundary *b)
{
    return me_size_mul(me_shape_numel(&b->shape), me_dtype_bytes(b->dtype));
}

void me_schedule_tell(const me_stage *stage, const me_stage_exchange *exchange)
{
    const int with_next = ME_TRANSFER_TO_NEXT | ME_TRANSFER_FROM_NEXT;
    int transfers = exchange->transfers;
    if (stage->next_rank < 0 || stage->has_next_here) {
        transfers &= ~with_next;
    }
    if (stage->previous_rank < 0 || stage->has_previous_here) {
        transfers &= with_next;
    }
    if (transfers == 0) {
        return;
    }
    const me_boundary *boundary =
        (transfers & with_next) != 0 ? &stage->output : &stage->input;
    me_launch_tell(
        stage->loop->e,
        (me_launch){
            .kind = ME_LAUNCH_EXCHANGE,
            .transfers = (uint8_t)transfers,
            .is_async = exchange->is_async,
            .is_queued = true,
            .chunk = stage->chunk,
            .microbatch = exchange->microbatch,
            .next = stage->next_rank < 0 ? 0 : stage->next_rank,
            .previous = stage->previous_rank < 0 ? 0 : stage->previous_rank,
            .bytes = boundary_bytes(boundary),
        });
}

void me_schedule_send(me_stage *stage, me_tensor *x, int32_t rank)
{
    if (x == NULL || rank < 0 || !me_engine_is_ok(stage->loop->e)) {
        return;
    }
    me_record_stream(x);
    me_stage_tell_p2p(stage, ME_C10D_SEND, x, rank);
    me_communicate(stage->loop->e, stage->loop->comm,
                   (me_call){me_stage_group(stage), ME_COLLECTIVE_SEND,
                             x->dtype, me_numel(x), rank, false});
}

void me_schedule_receive(me_stage *stage, const me_tensor *x, int32_t rank)
{
    if (x == NULL || rank < 0 || !me_engine_is_ok(stage->loop->e)) {
        return;
    }
    me_stage_tell_p2p(stage, ME_C10D_RECV_, x, rank);
    me_communicate(stage->loop->e, stage->loop->comm,
                   (me_call){me_stage_group(stage), ME_COLLECTIVE_RECV,
                             x->dtype, me_numel(x), rank, false});
}

/** A micro-batch's rows of the whole batch, a view; NULL of NULL. */
static me_tensor *rows_of(me_loop *l, me_tensor *whole, int32_t m)
{
    if (whole == NULL || !me_engine_is_ok(l->e)) {
        return NULL;
    }
    const uint64_t rows =
        me_dim(whole, 0) / (uint64_t)l->spec->pipeline.microbatches;
    return me_slice(l->e, whole, 0, rows * (uint64_t)m,
                    rows * (uint64_t)(m + 1));
}

me_tensor *me_schedule_forward(me_schedule_run *run, me_stage *stage, int32_t m)
{
    me_engine *e = run->loop->e;
    const me_frame frame = me_enter(e);
    me_microbatch(e, m);
    me_tensor *x =
        stage->index == 0 ? rows_of(run->loop, run->loop->input, m) : NULL;
    me_tensor *y = me_stage_forward(stage, m, x);
    me_leave(e, frame, NULL);
    return y;
}

void me_schedule_add_loss(me_schedule_run *run, me_stage *stage, int32_t m)
{
    me_engine *e = run->loop->e;
    if (stage->index != stage->n_stages - 1 || !me_engine_is_ok(e)) {
        return;
    }
    const me_frame frame = me_enter(e);
    const me_phase phase = me_phase_set(e, ME_PHASE_FORWARD);
    const me_category category = me_category_set(e, ME_CATEGORY_TEMPORARY);
    me_tensor *operands[] = {stage->microbatches[m].output,
                             rows_of(run->loop, run->loop->target, m)};
    const me_autocast_state outer = me_autocast_enter(e, run->loop->autocast);
    me_tensor *loss = me_forward_run(
        &run->loop->nn, run->loop->config->torch_job.loss, 2, operands);
    me_autocast_exit(e, outer);
    if (run->loop->config->torch.grad_scaler) { // by the loss function
        loss = me_grad_scaler_scale(run->loop, loss);
    }
    me_assign(e, &run->losses[m], loss);
    me_loop_check_loss(run->loop, loss);
    me_category_set(e, category);
    me_phase_set(e, phase);
    me_leave(e, frame, NULL);
}

me_tensor *me_schedule_loss(const me_schedule_run *run, const me_stage *stage,
                            int32_t m)
{
    return stage->index == stage->n_stages - 1 ? run->losses[m] : NULL;
}

/** _get_init_p2p_neighbors_ops(): a number to and from each neighbour, so that
 *  the connections exist. @p dummies are the caller's: two a stage. */
static void connect(me_schedule_run *run, me_tensor **dummies)
{
    me_loop *l = run->loop;
    for (int32_t i = 0; i < 2 * run->n_stages; i++) {
        dummies[i] =
            me_keep(l->e, "init_p2p_neighbors", ME_CATEGORY_COMMUNICATION,
                    ME_DTYPE_FLOAT32, ME_SHAPE(1));
    }
    me_communicate_group(l->e, l->comm, true);
    for (int32_t i = 0; i < run->n_stages; i++) {
        me_stage *stage = &run->stages[i];
        me_tensor *received = dummies[2 * (size_t)i];
        me_tensor *sent = dummies[2 * (size_t)i + 1];
        const int32_t previous =
            stage->has_previous_here ? -1 : stage->previous_rank;
        const int32_t next = stage->has_next_here ? -1 : stage->next_rank;
        me_schedule_receive(stage, received, previous);
        me_schedule_send(stage, sent, next);
        me_schedule_send(stage, sent, previous);
        me_schedule_receive(stage, received, next);
        if (me_engine_is_ok(l->e)) {
            me_record_stream(received);
        }
    }
    me_communicate_group(l->e, l->comm, false);
}

/** _initialize_stages(), in the first step. */
static void initialize(me_schedule_run *run)
{
    me_engine *e = run->loop->e;
    me_tensor **dummies =
        me_engine_alloc(e, 2 * (size_t)run->n_stages, sizeof(me_tensor *));
    if (run->is_initialized || dummies == NULL) {
        return;
    }
    run->is_initialized = true;
    connect(run, dummies);
    for (int32_t i = 0; i < run->n_stages; i++) {
        me_stage_prepare_forward(&run->stages[i]);
    }
    for (int32_t i = 0; i < run->n_stages; i++) {
        me_stage_prepare_backward(&run->stages[i]);
    }
    for (int32_t i = 0; i < 2 * run->n_stages; i++) {
        me_release(e, dummies[i]);
    }
}

/** _merge_outputs(): returned to a caller who does not want it. */
static void merge_outputs(me_schedule_run *run)
{
    me_engine *e = run->loop->e;
    const me_stage *last = &run->stages[0];
    for (int32_t i = 0; i < run->n_stages; i++) {
        last = run->stages[i].index == run->stages[i].n_stages - 1
                   ? &run->stages[i]
                   : last;
    }
    if (last->index != last->n_stages - 1 || !me_engine_is_ok(e) ||
        !run->loop->config->torch.returns_outputs) {
        return;
    }
    me_shape shape = last->output.shape;
    if (shape.ndim == 0) {
        return;
    }
    shape.dim[0] = me_size_mul(shape.dim[0], (uint64_t)last->n_microbatches);
    const me_frame frame = me_enter(e);
    me_empty(e, "cat", last->output.dtype, shape);
    me_leave(e, frame, NULL);
}

static void step_microbatches(me_schedule_run *run)
{
    if (run->actions != NULL) {
        me_schedule_runtime(run);
    } else if (strcmp(run->loop->spec->schedule->name, "gpipe") == 0) {
        me_schedule_gpipe(run);
    } else {
        me_schedule_1f1b(run);
    }
}

void me_schedule_step(me_schedule_run *run)
{
    me_engine *e = run->loop->e;
    for (int32_t i = 0; i < run->n_stages; i++) {
        me_stage_clear(&run->stages[i]);
    }
    initialize(run);
    if (me_engine_is_ok(e)) {
        step_microbatches(run);
    }
    merge_outputs(run);
    for (int32_t m = run->loop->spec->pipeline.microbatches - 1; m >= 0; m--) {
        me_clear(e, &run->losses[m]); // with the caller's list
    }
}

void me_schedule_fini(me_schedule_run *run)
{
    for (int32_t i = 0; run->stages != NULL && i < run->n_stages; i++) {
        if (run->stages[i].loop != NULL &&
            run->stages[i].microbatches != NULL) {
            me_stage_fini(&run->stages[i]);
        }
    }
}
