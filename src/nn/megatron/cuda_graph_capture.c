/* SPDX-License-Identifier: BSD-3-Clause */
/* Warming up and capturing what the first iteration has written down. */
#include "nn/megatron/cuda_graph_private.h"
#include "nn/megatron/te_fp8_state.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

enum {
    SEED_BYTES = 8,
    /** Seed and offset of each generator: the tracker's for data, for model and
     *  for expert parallel ranks, and the default one. */
    TRACKED_SEEDS = 6,
    SEEDS = ME_GRAPH_SEEDS
};

static me_tensor *zeros(me_engine *e, const me_graph_input *spec)
{
    const uint8_t mempool = me_mempool_set(e, ME_MEMPOOL_GRAPHS);
    me_tensor *x =
        me_keep(e, "zeros", ME_CATEGORY_ACTIVATION, spec->dtype, spec->shape);
    me_mempool_set(e, mempool);
    return x;
}

static me_graph_shared *shared_of(const me_cuda_graphs *g,
                                  const me_graph_input *spec)
{
    me_graph_shared *s =
        spec->is_there && spec->shared >= 0 ? &g->shared[spec->shared] : NULL;
    return s != NULL && s->uses > 1 ? s : NULL;
}

/** A buffer that shows @p x. */
static me_tensor *strong_reference(me_engine *e, const me_tensor *x,
                                   const me_graph_input *spec)
{
    me_tensor *y = me_retain(me_detach(e, x));
    y->is_view = false;
    y->requires_grad = spec->requires_grad;
    return y;
}

/** Fresh buffers out of the pool, or those that others have made; first those
 *  that are shared. */
static void make_inputs(me_graph_runner *r)
{
    me_nn *nn = r->module->nn;
    me_engine *e = nn->e;
    for (int i = 0; i < ME_GRAPH_INPUTS; i++) {
        me_graph_shared *s = shared_of(nn->graphs, &r->specs[i]);
        if (s != NULL && s->buffer == NULL) {
            s->buffer = zeros(e, &r->specs[i]);
            s->left = s->uses;
        }
    }
    for (int i = 0; i < ME_GRAPH_INPUTS; i++) {
        const me_graph_input *spec = &r->specs[i];
        const me_graph_shared *s = shared_of(nn->graphs, spec);
        if (i == 0 && r->producer != NULL) {
            r->inputs[i] =
                strong_reference(e, r->producer->outputs.items[0], spec);
        } else if (s != NULL) {
            r->inputs[i] = strong_reference(e, s->buffer, spec);
        } else if (spec->is_there) {
            r->inputs[i] = zeros(e, spec);
            r->inputs[i]->requires_grad = spec->requires_grad;
        }
    }
}

void me_graph_run_module(me_graph_runner *r, me_tensor *const *inputs,
                         me_graph_outputs *outputs_out)
{
    me_graph_module *graph = r->module;
    me_engine *e = graph->nn->e;
    const me_phase phase = me_phase_set(e, ME_PHASE_FORWARD);
    const me_category category = me_category_set(e, ME_CATEGORY_TEMPORARY);
    me_module_enter(e, graph->module);
    const me_fp8_state before =
        me_fp8_enter(graph->nn, ME_FP8_CONTEXT_ANY, graph->number);
    graph->run(graph->nn, graph->self, inputs, outputs_out);
    me_fp8_exit(graph->nn, &before);
    me_module_leave(e);
    me_category_set(e, category);
    me_phase_set(e, phase);
}

me_graph_outputs me_graph_roots(const me_graph_outputs *outputs)
{
    me_graph_outputs roots = {.count = 0};
    for (uint32_t i = 0; i < outputs->count; i++) {
        if (outputs->items[i] != NULL && outputs->items[i]->requires_grad) {
            roots.items[roots.count++] = outputs->items[i];
        }
    }
    return roots;
}

void me_graph_run_grad(me_engine *e, const me_graph_outputs *roots,
                       const me_graph_outputs *gradients,
                       me_node *const *leaves, uint32_t n_leaves,
                       me_tensor **gradients_out)
{
    me_edge edges[ME_GRAPH_OUTPUTS];
    me_node *held[ME_GRAPH_OUTPUTS] = {NULL};
    for (uint32_t i = 0; i < roots->count; i++) {
        me_tensor *y = roots->items[i];
        held[i] = y->grad_fn == NULL ? me_leaf_accumulator(e, y) : NULL;
        edges[i] = held[i] == NULL ? (me_edge){y->grad_fn, y->output_nr}
                                   : (me_edge){held[i], 0};
    }
    me_autograd_grad(e, &(me_grad_request){
                            .n_roots = roots->count,
                            .roots = edges,
                            .gradients = gradients->items,
                            .n_inputs = n_leaves,
                            .inputs = leaves,
                            .gradients_out = gradients_out,
                            .makes_all = true,
                        });
    for (uint32_t i = 0; i < roots->count; i++) {
        me_node_release(e, held[i]);
    }
}

/** Tensors of a warm-up that live to the next one's forward. */
typedef struct warm_up {
    me_tensor *inputs[ME_GRAPH_INPUTS];
    me_tensor *output;
} warm_up;

/** Clones of the inputs, forward, a gradient of zeros, backward. */
static void run_warm_up(me_graph_runner *r, warm_up *last)
{
    me_engine *e = r->module->nn->e;
    warm_up now = {.output = NULL};
    for (int i = 0; i < ME_GRAPH_INPUTS; i++) {
        if (r->inputs[i] != NULL) {
            now.inputs[i] = me_empty_like(e, "clone", r->inputs[i]);
            now.inputs[i]->requires_grad = r->inputs[i]->requires_grad;
        }
    }
    me_graph_outputs outputs;
    me_graph_run_module(r, now.inputs, &outputs);
    now.output = outputs.items[0];
    if (last->output != NULL) {
        me_drop(e, last->output);
    }
    for (int i = ME_GRAPH_INPUTS;
         i-- > 0;) { // the tuple's last item goes first
        if (last->inputs[i] != NULL) {
            me_drop(e, last->inputs[i]);
        }
    }
    *last = now;
    if (!me_engine_is_ok(e) || now.output->grad_fn == NULL) {
        return;
    }
    me_node *leaf = me_leaf_accumulator(e, now.inputs[0]);
    me_tensor *gradient = me_empty_like(e, "zeros_like", now.output);
    me_tensor *made = NULL;
    me_graph_run_grad(e, &outputs,
                      &(me_graph_outputs){.items = {gradient}, .count = 1},
                      &leaf, leaf == NULL ? 0 : 1, &made);
    me_node_release(e, leaf);
    me_drop(e, gradient);
    me_release(e, made);
}

/** Those of the tracker's generators before the first graph, those of the default
 *  one before its capture. */
static void register_generators(me_nn *nn, int first, int end)
{
    me_cuda_graphs *g = nn->graphs;
    for (int i = first; i < end && g->seeds[i] == NULL; i++) {
        g->seeds[i] =
            me_keep(nn->e, "register_generator_state", ME_CATEGORY_BUFFER,
                    ME_DTYPE_UINT8, ME_SHAPE(SEED_BYTES));
    }
}

/** _backup_grads_before_capture(): variables of the running frame. */
static void clone_main_gradients(const me_graph_module *graph)
{
    const me_nn *nn = graph->nn;
    for (uint32_t i = graph->first_parameter; i < graph->end_parameter; i++) {
        (void)me_empty(nn->e, "clone", nn->config->train.grad_dtype,
                       nn->parameters->parameters[i]->shape);
    }
}

void me_graph_register_generators(me_nn *nn)
{
    register_generators(nn, 0, TRACKED_SEEDS);
}

me_context me_graph_begin_capture(me_nn *nn)
{
    me_engine *e = nn->e;
    const me_context before = *me_context_now(e);
    me_empty_cache(e);
    me_launch_host_waits(e);
    me_stream_set(e, ME_STREAM_CAPTURE);
    register_generators(nn, TRACKED_SEEDS, SEEDS);
    me_mempool_set(e, ME_MEMPOOL_GRAPHS);
    return before;
}

/** make_weakref(): whoever holds the tensor holds its memory no more. */
static void weaken(me_engine *e, me_tensor **x)
{
    if (*x == NULL) {
        return;
    }
    me_tensor *weak = me_keep_on_host(e, (me_dtype)(*x)->dtype, (*x)->shape);
    me_set_data(e, *x, weak);
    me_release(e, weak);
    me_clear(e, x);
}

/** Does a Python function save the input for its backward? */
static bool is_saved(const me_nn *nn, int input)
{
    const bool is_angles = input == ME_GRAPH_INPUTS - 1;
    return input == 0 || (is_angles && nn->config->train.apply_rope_fusion);
}

/** Graphs that share an input let it go with the last one; a runner keeps what
 *  its backward reads. */
static void let_go_of_inputs(me_graph_runner *r)
{
    me_nn *nn = r->module->nn;
    for (int i = 0; i < ME_GRAPH_INPUTS; i++) {
        me_graph_shared *s = shared_of(nn->graphs, &r->specs[i]);
        if (s != NULL && --s->left == 0) {
            me_clear(nn->e, &s->buffer);
        }
    }
    for (int i = 0; i < ME_GRAPH_INPUTS; i++) {
        if (!is_saved(nn, i)) {
            weaken(nn->e, &r->inputs[i]);
        }
    }
}

static void create_forward(me_graph_runner *r)
{
    me_nn *nn = r->module->nn;
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    clone_main_gradients(r->module);
    me_graph_register_generators(nn);
    make_inputs(r);
    warm_up last = {.output = NULL};
    for (int32_t i = 0;
         i < nn->config->train.cuda_graph_warmup_steps && me_engine_is_ok(e);
         i++) {
        run_warm_up(r, &last);
    }
    for (int i = ME_GRAPH_INPUTS; i-- > 0;) {
        if (last.inputs[i] != NULL) {
            me_name_last(e, last.inputs[i]);
        }
    }
    register_generators(nn, TRACKED_SEEDS, SEEDS);
    const me_context before = me_graph_begin_capture(r->module->nn);
    me_graph_outputs outputs;
    me_graph_run_module(r, r->inputs, &outputs);
    me_graph_outputs_retain(&outputs, &r->outputs);
    me_context_restore(e, before);
    me_drop(e, r->outputs.items[0]);
    let_go_of_inputs(r);
    me_leave(e, frame, NULL);
}

me_node **me_graph_make_leaves(me_graph_runner *r, uint32_t *count_out)
{
    const me_graph_module *graph = r->module;
    const me_nn *nn = graph->nn;
    const uint32_t n = graph->end_parameter - graph->first_parameter + 1;
    me_node **leaves = me_engine_alloc(nn->e, n, sizeof(me_node *));
    *count_out = leaves == NULL ? 0 : n;
    for (uint32_t i = 0; i < *count_out; i++) {
        leaves[i] = me_leaf_accumulator(
            nn->e,
            i == 0 ? r->inputs[0]
                   : nn->parameters->parameters[graph->first_parameter + i - 1]
                         ->tensor);
    }
    return leaves;
}

/** Static gradients go, then what the forward kept, then those of parameters, the
 *  list's last item first, but for the very last one, which a name still has. */
static void end_backward(me_graph_runner *r, me_tensor *gradient,
                         me_tensor **made, uint32_t n_made)
{
    me_engine *e = r->module->nn->e;
    if (r->producer != NULL) {
        r->producer->output_grad = made[0];
    } else {
        me_release(e, made[0]);
    }
    me_release(e, gradient);
    for (int i = 0; i < ME_GRAPH_INPUTS; i++) {
        weaken(e, &r->inputs[i]);
    }
    weaken(e, &r->outputs.items[0]);
    for (uint32_t i = n_made - 1; i-- > 1;) {
        me_release(e, made[i]);
    }
    if (n_made > 1) {
        me_release(e, made[n_made - 1]);
    }
}

static void create_backward(me_graph_runner *r)
{
    me_engine *e = r->module->nn->e;
    uint32_t n = 0;
    me_node **leaves = me_graph_make_leaves(r, &n);
    me_tensor **made = me_engine_alloc(e, n, sizeof(me_tensor *));
    if (made == NULL || !me_engine_is_ok(e)) {
        return;
    }
    const me_tensor *output = r->outputs.items[0];
    me_tensor *gradient = r->output_grad;
    r->output_grad = NULL;
    if (gradient == NULL) {
        gradient =
            zeros(e, &(me_graph_input){.shape = output->shape,
                                       .dtype = (me_dtype)output->dtype});
    }
    const me_context before = me_graph_begin_capture(r->module->nn);
    me_graph_run_grad(e, &r->outputs,
                      &(me_graph_outputs){.items = {gradient}, .count = 1},
                      leaves, n, made);
    me_context_restore(e, before);
    for (uint32_t i = 0; i < n; i++) {
        me_node_release(e, leaves[i]);
    }
    if (me_engine_is_ok(e)) {
        end_backward(r, gradient, made, n);
    }
}

void me_cuda_graphs_create(me_nn *nn)
{
    me_cuda_graphs *g = nn->graphs;
    if (g == NULL || g->is_created || g->n_records == 0) {
        return;
    }
    for (uint32_t i = 0; i < g->n_records && me_engine_is_ok(nn->e); i++) {
        if (g->records[i].is_backward) {
            create_backward(g->records[i].runner);
        } else {
            create_forward(g->records[i].runner);
        }
    }
    g->is_created = true;
    me_stream_set(nn->e, ME_STREAM_DEFAULT);
}
