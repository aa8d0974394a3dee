/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/schedule_node.h"

#include "base/assert.h"
#include "ops/view.h"
#include "tensor/autograd.h"

me_flow me_flow_hold(me_flow flow)
{
    for (uint32_t i = 0; i < flow.count; i++) {
        me_retain(flow.items[i]);
    }
    return flow;
}

void me_flow_release(me_engine *e, me_flow *flow)
{
    for (uint32_t i = flow->count; i > 0; i--) {
        me_clear(e, &flow->items[i - 1]);
    }
    flow->count = 0;
}

void me_flow_bind(me_engine *e, me_flow *name, me_flow flow)
{
    me_flow before = *name;
    *name = flow;
    me_flow_release(e, &before);
}

void me_use_on_stream(me_engine *e, me_tensor *x)
{
    if (me_engine_is_ok(e) && x->storage != NULL &&
        x->storage->stream != me_context_now(e)->stream) {
        me_record_stream(x);
    }
}

static void append(me_flow *flow, me_tensor *x)
{
    ME_ASSERT(flow->count < ME_NODE_TENSORS);
    flow->items[flow->count++] = me_retain(x);
}

/** What a node is given, cut off its graph. */
static me_tensor *leaf_of(me_engine *e, me_tensor *x)
{
    me_tensor *leaf = me_detach(e, me_make_viewless(e, x));
    if (me_engine_is_ok(e)) {
        leaf->requires_grad = x->requires_grad;
    }
    return leaf;
}

void me_schedule_node_begin(me_nn *nn, me_schedule_node *node,
                            const me_flow *given)
{
    me_engine *e = nn->e;
    node->stream = me_stream_set(e, node->communicates ? ME_STREAM_DISPATCH
                                                       : ME_STREAM_DEFAULT);
    for (uint32_t i = 0; i < given->count; i++) {
        const me_frame frame = me_enter(e);
        append(&node->inputs, leaf_of(e, given->items[i]));
        me_leave(e, frame, NULL);
    }
    node->frame = me_enter(e);
}

me_tensor *me_schedule_node_detach(me_engine *e, me_schedule_node *node,
                                   me_tensor *x)
{
    const me_frame frame = me_enter(e);
    me_tensor *leaf = leaf_of(e, x);
    append(&node->before_detached, x);
    append(&node->detached, leaf);
    me_leave(e, frame, NULL);
    return leaf;
}

me_flow me_schedule_node_end(me_nn *nn, me_schedule_node *node,
                             uint32_t n_outputs, me_tensor *const *outputs,
                             const me_flow *given, bool frees_input)
{
    me_engine *e = nn->e;
    for (uint32_t i = 0; i < n_outputs; i++) {
        append(&node->outputs, me_make_viewless(e, outputs[i]));
    }
    me_leave(e, node->frame, NULL);
    for (uint32_t i = 0; frees_input && i < given->count; i++) {
        if (me_engine_is_ok(e)) {
            me_use_on_stream(e, given->items[i]);
            me_storage_free(e, given->items[i]);
        }
    }
    me_stream_set(e, node->stream);
    return me_flow_hold(node->outputs);
}

/** Where the backward begins, and with what. */
typedef struct roots {
    uint32_t count;
    me_edge edges[2 * ME_NODE_TENSORS];
    me_tensor *gradients[2 * ME_NODE_TENSORS];
} roots;

static void add_root(roots *r, const me_tensor *x, me_tensor *gradient)
{
    if (x->grad_fn != NULL && gradient != NULL) {
        r->edges[r->count] = (me_edge){x->grad_fn, x->output_nr};
        r->gradients[r->count++] = gradient;
    }
}

static void run(me_nn *nn, me_schedule_node *node, const me_flow *gradients)
{
    me_engine *e = nn->e;
    if (node->outputs.count == 1 && node->outputs.items[0]->grad_fn == NULL) {
        me_backward(e, node->outputs.items[0], gradients->items[0]);
        return;
    }
    roots r = {.count = 0};
    for (uint32_t i = 0; i < node->outputs.count; i++) {
        add_root(&r, node->outputs.items[i], gradients->items[i]);
    }
    for (uint32_t i = 0; i < node->detached.count; i++) {
        add_root(&r, node->before_detached.items[i],
                 node->detached.items[i]->grad);
    }
    for (uint32_t i = 0; i < r.count; i++) { // grad_tensors holds them too
        me_retain(r.gradients[i]);
    }
    me_backward_all(e, r.count, r.edges, r.gradients);
    for (uint32_t i = 0; i < r.count; i++) {
        me_use_on_stream(e, r.gradients[i]); // maybe from another
        me_release(e, r.gradients[i]);
    }
}

me_flow me_schedule_node_backward(me_nn *nn, me_schedule_node *node,
                                  const me_flow *gradients, bool delays)
{
    me_engine *e = nn->e;
    me_flow result = {.count = 0};
    if (!me_engine_is_ok(e)) {
        return result;
    }
    me_weight_gradients *before = nn->weights;
    if (delays) {
        node->weights.is_split = true;
        nn->weights = &node->weights;
    }
    const uint8_t stream = me_stream_set(
        e, node->communicates ? ME_STREAM_DISPATCH : ME_STREAM_DEFAULT);
    const me_frame frame = me_enter(e);
    run(nn, node, gradients);
    me_leave(e, frame, NULL);
    me_stream_set(e, stream);
    nn->weights = before;
    for (uint32_t i = 0; i < node->inputs.count; i++) {
        append(&result, node->inputs.items[i]->grad);
    }
    me_flow_release(e, &node->inputs);
    me_flow_release(e, &node->outputs);
    return result;
}

void me_schedule_node_weights(me_nn *nn, me_schedule_node *node)
{
    if (node->weights.count > 0) {
        me_weight_gradients_sort(&node->weights);
        me_weight_gradients_make(nn, &node->weights);
    }
}

void me_schedule_node_fini(me_engine *e, me_schedule_node *node)
{
    me_flow_release(e, &node->inputs);
    me_flow_release(e, &node->outputs);
    me_flow_release(e, &node->before_detached);
    me_flow_release(e, &node->detached);
    me_weight_gradients_fini(e, &node->weights);
}
