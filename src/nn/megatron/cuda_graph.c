/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "nn/megatron/cuda_graph_private.h"
#include "ops/elementwise.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"
#include "tensor/tensor.h"

#include <string.h>

static bool grow(me_engine *e, void **items, uint32_t count, uint32_t *capacity,
                 size_t size)
{
    void *larger =
        me_engine_grow(e, *items, count, capacity, size, "nn.cuda_graphs");
    *items = larger == NULL ? *items : larger;
    return larger != NULL;
}

me_graph_module *me_graph_module_create(me_nn *nn)
{
    if (nn->graphs == NULL) {
        return NULL;
    }
    me_graph_module *graph = me_engine_alloc(nn->e, 1, sizeof *graph);
    if (graph != NULL) {
        graph->nn = nn;
    }
    if (nn->config->train.cuda_graph_impl == ME_CUDA_GRAPH_LOCAL) {
        me_stream_set(nn->e, ME_STREAM_BEFORE_CAPTURE);
    }
    return graph;
}

static void add_record(me_cuda_graphs *g, me_engine *e, me_graph_runner *runner,
                       bool is_backward)
{
    void *items = g->records;
    if (grow(e, &items, g->n_records, &g->n_capacity, sizeof *g->records)) {
        g->records = items;
        g->records[g->n_records++] = (me_graph_record){runner, is_backward};
    }
}

/** One more runner takes a tensor. @return its place in the list, or -1 */
static int32_t share(me_cuda_graphs *g, me_engine *e, const me_tensor *x)
{
    for (uint32_t i = 0; i < g->n_shared; i++) {
        if (g->shared[i].serial == x->storage->serial) {
            g->shared[i].uses++;
            return (int32_t)i;
        }
    }
    void *items = g->shared;
    if (!grow(e, &items, g->n_shared, &g->n_shared_capacity,
              sizeof *g->shared)) {
        return -1;
    }
    g->shared = items;
    g->shared[g->n_shared] =
        (me_graph_shared){.serial = x->storage->serial, .uses = 1};
    return (int32_t)g->n_shared++;
}

me_graph_runner *me_graph_add_runner(me_graph_module *graph)
{
    me_engine *e = graph->nn->e;
    me_graph_runner *r = me_engine_alloc(e, 1, sizeof *r);
    if (r != NULL) {
        r->module = graph;
        add_record(graph->nn->graphs, e, r, false);
    }
    return r;
}

/** Without a pipeline one serves all micro-batches. */
static me_graph_runner *add_runner(me_graph_module *graph,
                                   me_tensor *const *inputs)
{
    const me_nn *nn = graph->nn;
    me_engine *e = nn->e;
    me_cuda_graphs *g = nn->graphs;
    me_graph_runner *r = me_graph_add_runner(graph);
    if (r == NULL) {
        return NULL;
    }
    graph->first = r;
    if (nn->config->fp8.format != ME_FP8_NONE && g->skips_fp8_update == NULL) {
        g->skips_fp8_update =
            me_keep(e, "set_skip_fp8_weight_update_tensor", ME_CATEGORY_BUFFER,
                    ME_DTYPE_FLOAT32, ME_SHAPE(1));
    }
    for (int i = 0; i < ME_GRAPH_INPUTS; i++) {
        const me_tensor *x = inputs[i];
        if (x == NULL || x->storage == NULL) {
            continue;
        }
        r->specs[i] = (me_graph_input){.shape = x->shape,
                                       .dtype = (me_dtype)x->dtype,
                                       .is_there = true,
                                       .requires_grad = x->requires_grad,
                                       .shared = i == 0 ? -1 : share(g, e, x)};
    }
    const me_tensor *hidden = inputs[0];
    if (g->last != NULL && hidden != NULL && hidden->storage != NULL &&
        hidden->storage->serial == g->last_serial) {
        r->producer = g->last;
        g->last->is_consumed = true;
    }
    return r;
}

static void record_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    me_graph_runner *r = node->data.owner;
    if (!r->has_recorded_backward) {
        r->has_recorded_backward = true;
        add_record(r->module->nn->graphs, e, r, true);
    }
    gx[0] = gy[0];
}

static const me_op record_op =
    ME_NODE("_CudagraphRecordNodeBackward", record_backward);

/** record_graph_capture(): as ever, and a node by which the backward is known. */
static me_tensor *run_recorded(me_graph_module *graph, me_tensor *const *inputs)
{
    me_nn *nn = graph->nn;
    me_engine *e = nn->e;
    me_graph_runner *r =
        graph->first != NULL ? graph->first : add_runner(graph, inputs);
    const me_frame frame = me_enter(e);
    me_graph_outputs outputs;
    graph->run(nn, graph->self, inputs, &outputs);
    me_tensor *y = outputs.items[0];
    if (r == NULL || !me_engine_is_ok(e)) {
        return me_leave(e, frame, y);
    }
    me_node *node = me_record1(e, &record_op, y);
    if (node != NULL) {
        node->data.owner = r;
    }
    me_tensor *out = me_output(e, node, me_alias(e, y, y->shape, y->strides));
    nn->graphs->last = r;
    nn->graphs->last_serial = out->storage->serial;
    return me_leave(e, frame, out);
}

/** A tensor of the graph's own with the contents of @p x, as the graph has it in
 *  its pool. */
static me_tensor *copy(me_engine *e, const me_tensor *x)
{
    me_tensor *y = me_empty_like(e, "copy_", x);
    me_launch_kernel(e, ME_KERNEL_ELEMENTWISE, me_numel(x), 2 * me_bytes(x));
    return y;
}

static bool is_replayed(const me_tensor *x)
{
    return x->storage == NULL || x->storage->mempool == ME_MEMPOOL_REPLAY;
}

static void input_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    (void)e;
    (void)node;
    gx[0] = gy[0];
}

/** What comes in is copied where the graph expects it. */
static const me_op input_op =
    ME_NODE("_CudagraphReplayNodeBackward", input_backward);

/** materialize_grads: zeros for outputs to which no gradient has come, counts and
 *  maps included, outside of the graph's pool. The function's tuple of gradients
 *  goes last item first. */
static void make_zeros(me_engine *e, const me_graph_module *graph)
{
    me_tensor *zeros[ME_GRAPH_OUTPUTS];
    for (uint32_t i = 0; i < graph->n_unread; i++) {
        zeros[i] = me_empty(e, "zeros", ME_DTYPE_UINT8,
                            ME_SHAPE(graph->unread_bytes[i]));
    }
    for (uint32_t i = graph->n_unread; i-- > 0;) {
        me_drop(e, zeros[i]);
    }
}

/** So are the gradients of what goes out. */
static void output_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                            me_tensor **gx)
{
    make_zeros(e, node->data.context);
    const uint8_t mempool = me_mempool_set(e, ME_MEMPOOL_REPLAY);
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        gx[i] = gy[i] == NULL || is_replayed(gy[i]) ? gy[i] : copy(e, gy[i]);
    }
    me_mempool_set(e, mempool);
}

static const me_op output_op =
    ME_NODE("_CudagraphReplayNodeBackward", output_backward);

/** What goes out: one function's outputs, so that its backward waits for all
 *  their gradients. */
static void connect_outputs(me_graph_module *graph, me_graph_outputs *outputs)
{
    me_engine *e = graph->nn->e;
    me_tensor *inputs[ME_GRAPH_GRADS];
    uint32_t places[ME_GRAPH_GRADS];
    uint32_t n = 0;
    graph->n_unread = 0;
    for (uint32_t i = 0; i < outputs->count; i++) {
        me_tensor *y = outputs->items[i];
        if (y->grad_fn == NULL || y == outputs->unread) {
            graph->unread_bytes[graph->n_unread++] = me_bytes(y);
        } else if (n < ME_GRAPH_GRADS) {
            places[n] = i;
            inputs[n++] = y;
        }
    }
    me_node *node = me_record(e, &output_op, n, inputs);
    if (node != NULL) {
        node->data.context = graph;
    }
    for (uint32_t i = 0; i < n; i++) {
        me_tensor *y = inputs[i];
        outputs->items[places[i]] =
            me_output(e, node, me_alias(e, y, y->shape, y->strides));
    }
}

/** _CudagraphReplayNode, and Graphed of Transformer Engine: what sums gradients
 *  of its output is no part of the graph. */
static void replay(me_graph_module *graph, me_tensor *const *given,
                   me_graph_outputs *outputs_out)
{
    me_engine *e = graph->nn->e;
    me_tensor *inputs[ME_GRAPH_INPUTS];
    memcpy(inputs, given, sizeof inputs);
    const uint8_t mempool = me_mempool_set(e, ME_MEMPOOL_REPLAY);
    const me_frame frame = me_enter(e);
    me_node *of_input = me_record1(e, &input_op, given[0]);
    inputs[0] =
        me_output(e, of_input,
                  is_replayed(given[0]) ? me_alias(e, given[0], given[0]->shape,
                                                   given[0]->strides)
                                        : copy(e, given[0]));
    const uint8_t stream = me_stream_set(e, ME_STREAM_CAPTURE);
    graph->run(graph->nn, graph->self, inputs, outputs_out);
    me_stream_set(e, stream);
    me_mempool_set(e, mempool);
    if (me_engine_is_ok(e)) {
        connect_outputs(graph, outputs_out);
    }
    me_leave_with(e, frame, outputs_out->count, outputs_out->items);
}

void me_graph_module_forward(me_graph_module *graph,
                             me_tensor *const inputs[ME_GRAPH_INPUTS],
                             me_graph_outputs *outputs_out)
{
    me_nn *nn = graph->nn;
    const bool is_te = nn->config->train.cuda_graph_impl == ME_CUDA_GRAPH_TE;
    *outputs_out = (me_graph_outputs){.count = 0};
    if (!nn->graphs->is_created && is_te) {
        graph->run(nn, graph->self, inputs, outputs_out);
        return;
    }
    if (!nn->graphs->is_created) {
        outputs_out->items[outputs_out->count++] = run_recorded(graph, inputs);
        return;
    }
    const me_frame frame = me_enter(nn->e);
    if (is_te && graph->takes_mask && inputs[1] == NULL) {
        (void)me_graph_mask(nn, "zeros"); // get_zero_attention_mask()
    }
    replay(graph, inputs, outputs_out);
    me_leave_with(nn->e, frame, outputs_out->count, outputs_out->items);
}

void me_graph_outputs_retain(const me_graph_outputs *outputs,
                             me_graph_outputs *kept_out)
{
    *kept_out = *outputs;
    for (uint32_t i = 0; i < outputs->count; i++) {
        kept_out->items[i] =
            outputs->items[i] == NULL ? NULL : me_retain(outputs->items[i]);
    }
}

void me_graph_outputs_clear(me_engine *e, me_graph_outputs *outputs)
{
    for (uint32_t i = 0; i < outputs->count; i++) {
        me_clear(e, &outputs->items[i]);
    }
    outputs->count = 0;
}

me_tensor *me_graph_mask(const me_nn *nn, const char *op)
{
    const me_model_config *c = &nn->config->model;
    return me_empty(nn->e, op, ME_DTYPE_BOOL,
                    ME_SHAPE(nn->config->train.micro_batch_size, 1,
                             c->rank_seq_length, c->seq_length));
}

static void fini_runner(me_engine *e, me_graph_runner *r)
{
    me_clear(e, &r->module->residual);
    for (int i = 0; i < ME_GRAPH_INPUTS; i++) {
        me_clear(e, &r->inputs[i]);
    }
    me_graph_outputs_clear(e, &r->outputs);
    me_clear(e, &r->output_grad);
    for (uint32_t i = 0; i < r->n_made; i++) {
        me_clear(e, &r->made[i]);
    }
}

void me_cuda_graphs_fini(me_engine *e, me_cuda_graphs *graphs)
{
    for (uint32_t i = 0; i < graphs->n_records; i++) {
        fini_runner(e, graphs->records[i].runner);
    }
    for (uint32_t i = 0; i < graphs->n_shared; i++) {
        me_clear(e, &graphs->shared[i].buffer);
    }
    for (int i = 0; i < ME_GRAPH_SEEDS; i++) {
        me_clear(e, &graphs->seeds[i]);
    }
    me_clear(e, &graphs->skips_fp8_update);
    for (uint32_t i = 0; i < graphs->n_output_grads; i++) {
        me_graph_outputs_clear(e, &graphs->output_grads[i]);
    }
    me_free(graphs->records);
    me_free(graphs->shared);
}
