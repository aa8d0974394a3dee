/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_graphs.h"

#include "nn/megatron/cuda_graph_private.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"
#include "tensor/tensor.h"

/** What is made between two iterations. */
typedef struct maker {
    me_nn *nn;
    const me_te_graph_plan *plan;
    me_graph_runner **runners; /**< of a chunk its micro-batches, of each its
                                    layers */
    uint32_t *first;           /**< of each chunk in `runners` */
    uint32_t n_runners;
    int32_t *n_forwards; /**< of each chunk so far */
    int32_t *n_backwards;
    uint32_t *consumed; /**< runners whose backward has been: a queue */
    uint32_t consumed_begin;
    uint32_t consumed_end;
    me_tensor *angles;             /**< of all chunks; owned by their table */
    me_graph_outputs warm_outputs; /**< of the last warm-up, with gradients */
    me_graph_outputs last_outputs; /**< of the last forward captured */
    me_graph_outputs read_outputs; /**< of the last backward's forward */
    me_graph_runner
        *last_of_chunk; /**< whose gradients leave for another rank */
} maker;

static const me_te_graph_chunk *chunk_of(const maker *m, int32_t chunk)
{
    return &m->plan->chunks[chunk];
}

static uint32_t runner_index(const maker *m, int32_t chunk, int32_t microbatch,
                             uint32_t layer)
{
    return m->first[chunk] +
           (uint32_t)microbatch * chunk_of(m, chunk)->n_modules + layer;
}

static bool init(maker *m)
{
    me_engine *e = m->nn->e;
    const size_t chunks = (size_t)m->plan->n_chunks;
    m->first = me_engine_alloc(e, chunks, sizeof *m->first);
    m->n_forwards = me_engine_alloc(e, chunks, sizeof *m->n_forwards);
    m->n_backwards = me_engine_alloc(e, chunks, sizeof *m->n_backwards);
    for (int32_t i = 0; i < m->plan->n_chunks && me_engine_is_ok(e); i++) {
        m->first[i] = m->n_runners;
        m->n_runners +=
            (uint32_t)m->plan->n_microbatches * chunk_of(m, i)->n_modules;
    }
    m->runners = me_engine_alloc(e, m->n_runners, sizeof(me_graph_runner *));
    m->consumed = me_engine_alloc(e, m->n_runners, sizeof *m->consumed);
    return me_engine_is_ok(e);
}

/** Rows of a rank's hidden states. */
static uint64_t rows_of(const me_nn *nn)
{
    const me_config *c = nn->config;
    return c->parallel.sequence ? me_over_tensor(nn, c->model.rank_seq_length)
                                : c->model.rank_seq_length;
}

/** `~(tril(ones(…)).bool()).to(device).reshape(…).tile(…)`: (b, 1, s/c, s). */
static me_tensor *make_mask(const me_nn *nn)
{
    me_engine *e = nn->e;
    const me_model_config *c = &nn->config->model;
    const me_frame frame = me_enter(e);
    me_tensor *moved =
        me_empty(e, "to", ME_DTYPE_BOOL,
                 ME_SHAPE(1, 1, c->rank_seq_length, c->seq_length));
    me_tensor *tiled = me_graph_mask(nn, "tile");
    me_drop(e, moved);
    me_tensor *mask = me_retain(me_graph_mask(nn, "bitwise_not"));
    me_drop(e, tiled);
    me_leave(e, frame, NULL);
    return mask;
}

/** The angles, which no table has for this caller; made once. */
static me_tensor *make_angles(maker *m, const me_te_graph_chunk *chunk)
{
    me_engine *e = m->nn->e;
    if (m->angles == NULL && chunk->rope != NULL) {
        me_rope *fresh = me_engine_alloc(e, 1, sizeof *fresh);
        if (fresh != NULL) {
            *fresh = (me_rope){.inverse_frequencies =
                                   me_retain(chunk->rope->inverse_frequencies)};
            m->angles = me_rope_table(chunk->nn, fresh);
        }
    }
    return m->angles;
}

/** get_layer_static_inputs(), and the angles. */
static void make_inputs(maker *m, const me_te_graph_chunk *chunk,
                        me_graph_runner *r)
{
    const me_nn *nn = m->nn;
    me_engine *e = nn->e;
    r->inputs[0] =
        me_keep(e, "ones", ME_CATEGORY_ACTIVATION, ME_DTYPE_BFLOAT16,
                ME_SHAPE(rows_of(nn), nn->config->train.micro_batch_size,
                         nn->config->model.hidden_size));
    r->inputs[0]->requires_grad = true;
    if (r->module->takes_mask) {
        r->inputs[1] = make_mask(nn);
        me_tensor *angles = make_angles(m, chunk);
        r->inputs[2] = angles == NULL ? NULL : me_retain(angles);
    }
}

static void clear_inputs(me_engine *e, me_graph_runner *r)
{
    for (int i = 0; i < ME_GRAPH_INPUTS; i++) {
        me_clear(e, &r->inputs[i]);
    }
}

/** Inputs of the first micro-batch of a layer are made in any case; those of a
 *  forward whose backward has been are taken again. */
static void take_inputs(maker *m, int32_t chunk, uint32_t layer,
                        me_graph_runner *r)
{
    me_engine *e = m->nn->e;
    const bool is_first = m->n_forwards[chunk] == 0;
    const bool is_again = m->consumed_begin < m->consumed_end;
    (void)layer;
    if (is_first || !is_again) {
        make_inputs(m, chunk_of(m, chunk), r);
    }
    if (is_again) {
        const me_graph_runner *other =
            m->runners[m->consumed[m->consumed_begin++]];
        clear_inputs(e, r);
        for (int i = 0; i < ME_GRAPH_INPUTS; i++) {
            r->inputs[i] =
                other->inputs[i] == NULL ? NULL : me_retain(other->inputs[i]);
        }
    }
}

/** The runner of module @p k of a chunk, with its inputs. */
static void add_runner(maker *m, int32_t chunk, uint32_t k, uint32_t index)
{
    me_graph_runner *r = me_graph_add_runner(chunk_of(m, chunk)->modules[k]);
    m->runners[index] = r;
    if (r != NULL) {
        take_inputs(m, chunk, k, r);
    }
}

/** _get_sample_arguments(). */
static void make_sample_inputs(maker *m)
{
    for (int32_t i = 0; i < m->plan->n_steps && me_engine_is_ok(m->nn->e);
         i++) {
        const bool is_backward = m->plan->steps[i].is_backward;
        const int32_t chunk = m->plan->steps[i].chunk;
        const uint32_t n = chunk_of(m, chunk)->n_modules;
        int32_t *place =
            is_backward ? &m->n_backwards[chunk] : &m->n_forwards[chunk];
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t index = runner_index(m, chunk, *place, k);
            if (is_backward) {
                m->consumed[m->consumed_end++] = index;
            } else {
                add_runner(m, chunk, k, index);
            }
        }
        ++*place;
    }
}

/** A function's name takes another tuple, whose items go first item first. */
static void rebind(me_engine *e, me_graph_outputs *name,
                   const me_graph_outputs *outputs)
{
    me_graph_outputs before = *name;
    me_graph_outputs_retain(outputs, name);
    me_graph_outputs_clear(e, &before);
}

/** Tuples of gradients go last item first. */
static void release_gradients(me_engine *e, me_graph_runner *r)
{
    for (uint32_t i = r->n_made; r->made != NULL && i-- > 0;) {
        me_clear(e, &r->made[i]);
    }
}

/** _none_grad_context_wrapper(): what a recomputation within the graph has left at
 *  leaves is among the gradients, and DDP is not told of it. */
static void collect(me_node *const *leaves, const me_graph_runner *r)
{
    for (uint32_t i = 0; i < r->n_made; i++) {
        me_tensor *leaf = leaves[i] == NULL ? NULL : leaves[i]->variable;
        if (leaf != NULL && leaf->grad != NULL && r->made[i] == NULL) {
            r->made[i] = leaf->grad;
            leaf->grad = NULL;
        }
    }
}

/** Backward from @p roots, whose gradients of inputs and parameters are kept in
 *  the runner. */
static void run_backward(me_graph_runner *r, const me_graph_outputs *roots,
                         const me_graph_outputs *gradients)
{
    me_engine *e = r->module->nn->e;
    uint32_t n = 0;
    me_node **leaves = me_graph_make_leaves(r, &n);
    if (r->made == NULL) {
        r->made = me_engine_alloc(e, n, sizeof(me_tensor *));
        r->n_made = r->made == NULL ? 0 : n;
    }
    if (me_engine_is_ok(e)) {
        me_tape_be_quiet(e, true);
        me_graph_run_grad(e, roots, gradients, leaves, n, r->made);
        me_tape_be_quiet(e, false);
        collect(leaves, r);
    }
    for (uint32_t i = 0; leaves != NULL && i < n; i++) {
        me_node_release(e, leaves[i]);
    }
}

/** `tuple(torch.empty_like(o) for o in outputs)`. */
static me_graph_outputs gradients_like(me_engine *e,
                                       const me_graph_outputs *roots)
{
    me_graph_outputs gradients = {.count = roots->count};
    for (uint32_t i = 0; i < roots->count; i++) {
        gradients.items[i] = me_empty_like(e, "empty_like", roots->items[i]);
    }
    return gradients;
}

static void warm_up(maker *m, me_graph_runner *r)
{
    me_engine *e = m->nn->e;
    for (int32_t i = 0; i < m->plan->n_warm_ups && me_engine_is_ok(e); i++) {
        const me_frame frame = me_enter(e);
        me_graph_outputs outputs;
        me_graph_run_module(r, r->inputs, &outputs);
        const me_graph_outputs roots = me_graph_roots(&outputs);
        rebind(e, &m->warm_outputs, &roots);
        if (me_engine_is_ok(e)) {
            const me_graph_outputs gradients = gradients_like(e, &roots);
            run_backward(r, &roots, &gradients);
            for (uint32_t k = 0; k < gradients.count; k++) {
                me_drop(e, gradients.items[k]);
            }
        }
        for (uint32_t k = 0; k < outputs.count; k++) {
            me_drop(e, outputs.items[k]);
        }
        release_gradients(e, r);
        me_leave(e, frame, NULL);
    }
}

/** All of them on a stream of their own, in the order of the forwards. */
static void warm_up_all(maker *m)
{
    me_engine *e = m->nn->e;
    const uint8_t stream = me_stream_set(e, ME_STREAM_WARM_UP);
    for (int32_t i = 0; i < m->plan->n_chunks; i++) {
        m->n_forwards[i] = 0;
        m->n_backwards[i] = 0;
    }
    for (int32_t i = 0; i < m->plan->n_steps; i++) {
        const int32_t chunk = m->plan->steps[i].chunk;
        if (m->plan->steps[i].is_backward) {
            continue;
        }
        for (uint32_t k = 0;
             k < chunk_of(m, chunk)->n_modules && me_engine_is_ok(e); k++) {
            warm_up(
                m, m->runners[runner_index(m, chunk, m->n_forwards[chunk], k)]);
        }
        m->n_forwards[chunk]++;
    }
    for (int32_t i = 0; i < m->plan->n_chunks; i++) {
        m->n_forwards[i] = 0;
    }
    me_stream_set(e, stream);
}

static void capture_forward(maker *m, me_graph_runner *r)
{
    me_engine *e = m->nn->e;
    const me_frame frame = me_enter(e);
    const me_context before = me_graph_begin_capture(m->nn);
    me_graph_outputs outputs;
    me_graph_run_module(r, r->inputs, &outputs);
    me_graph_outputs_retain(&outputs, &r->outputs);
    me_context_restore(e, before);
    rebind(e, &m->last_outputs, &outputs);
    me_leave(e, frame, NULL);
}

static bool are_alike(const me_graph_outputs *a, const me_graph_outputs *b)
{
    bool alike = a->count == b->count;
    for (uint32_t i = 0; alike && i < a->count; i++) {
        alike = a->items[i]->dtype == b->items[i]->dtype &&
                me_shape_equal(&a->items[i]->shape, &b->items[i]->shape);
    }
    return alike;
}

/** Gradients of outputs are static, and those of all outputs of their shapes. */
static const me_graph_outputs *output_grads(maker *m,
                                            const me_graph_outputs *roots)
{
    me_engine *e = m->nn->e;
    me_cuda_graphs *g = m->nn->graphs;
    for (uint32_t i = 0; i < g->n_output_grads; i++) {
        if (are_alike(&g->output_grads[i], roots)) {
            return &g->output_grads[i];
        }
    }
    if (g->n_output_grads == ME_GRAPH_KINDS) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "layers of more than %d kinds are captured",
                       (int)ME_GRAPH_KINDS);
        return &g->output_grads[0];
    }
    me_graph_outputs *grads = &g->output_grads[g->n_output_grads++];
    grads->count = roots->count;
    for (uint32_t i = 0; i < roots->count; i++) {
        const me_tensor *y = roots->items[i];
        grads->items[i] = me_keep(e, "empty_like", ME_CATEGORY_ACTIVATION,
                                  (me_dtype)y->dtype, y->shape);
    }
    return grads;
}

/** @param previous  whose backward was captured before, of the same micro-batch
 *                   and chunk; or NULL */
static void capture_backward(maker *m, me_graph_runner *r,
                             me_graph_runner *previous)
{
    me_engine *e = m->nn->e;
    rebind(e, &m->read_outputs, &r->outputs);
    const me_graph_outputs roots = me_graph_roots(&r->outputs);
    const me_graph_outputs *gradients = output_grads(m, &roots);
    const me_context before = me_graph_begin_capture(m->nn);
    run_backward(r, &roots, gradients);
    me_context_restore(e, before);
    me_graph_outputs_clear(e, &r->outputs);
    if (previous != NULL) {
        release_gradients(e, previous);
    }
}

static void capture_backwards(maker *m, int32_t chunk)
{
    me_engine *e = m->nn->e;
    me_graph_runner *previous = NULL;
    for (uint32_t k = chunk_of(m, chunk)->n_modules;
         k-- > 0 && me_engine_is_ok(e);) {
        me_graph_runner *r =
            m->runners[runner_index(m, chunk, m->n_backwards[chunk], k)];
        capture_backward(m, r, previous);
        previous = r;
    }
    if (m->last_of_chunk != NULL) {
        release_gradients(e, m->last_of_chunk);
    }
    m->last_of_chunk = previous;
    m->n_backwards[chunk]++;
}

static void capture_all(maker *m)
{
    for (int32_t i = 0; i < m->plan->n_steps && me_engine_is_ok(m->nn->e);
         i++) {
        const int32_t chunk = m->plan->steps[i].chunk;
        if (m->plan->steps[i].is_backward) {
            capture_backwards(m, chunk);
            continue;
        }
        for (uint32_t k = 0; k < chunk_of(m, chunk)->n_modules; k++) {
            capture_forward(
                m, m->runners[runner_index(m, chunk, m->n_forwards[chunk], k)]);
        }
        m->n_forwards[chunk]++;
    }
}

void me_te_graphs_create(me_nn *nn, const me_te_graph_plan *plan)
{
    me_engine *e = nn->e;
    maker m = {.nn = nn, .plan = plan};
    if (!init(&m)) {
        return;
    }
    me_empty_cache(e);
    me_launch_host_waits(e);
    make_sample_inputs(&m);
    me_graph_register_generators(nn);
    warm_up_all(&m);
    capture_all(&m);
    me_graph_outputs_clear(e, &m.warm_outputs);
    me_graph_outputs_clear(e, &m.last_outputs);
    me_graph_outputs_clear(e, &m.read_outputs);
    me_empty_cache(e);
    nn->graphs->is_created = true;
}
