/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/checkpoint.h"

#include "base/size.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** The first input's storage is replaced by this tensor rank's part of it. */
static void keep_part(me_nn *nn, me_tensor *x)
{
    me_engine *e = nn->e;
    const uint64_t parts = (uint64_t)nn->config->parallel.tensor;
    const me_frame frame = me_enter(e);
    me_tensor *part = me_empty(e, "split_tensor_into_1d_equal_chunks", x->dtype,
                               ME_SHAPE(me_numel(x) / parts));
    me_set_data(e, x, part);
    me_leave(e, frame, NULL);
}

/** An input is saved as the tensor that it is: what the backward gathers is
 *  whole again for whoever else holds it, and its gradient has that shape. */
static void keep_itself(me_engine *e, me_node *node, me_tensor *x)
{
    if (node == NULL || !me_engine_is_ok(e)) {
        return;
    }
    node->saved[0] = me_retain(x);
    if (x->storage != NULL && x->storage->category == ME_CATEGORY_TEMPORARY) {
        me_categorize(e, x, ME_CATEGORY_ACTIVATION);
    }
}

/** The parts of all tensor ranks, gathered again. */
static void restore_whole(me_nn *nn, me_tensor *x, const me_shape *shape)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_tensor *whole = me_empty(e, "gather_split_1d_tensor", x->dtype, *shape);
    me_communicate(e, nn->comm,
                   (me_call){ME_GROUP_TENSOR, ME_COLLECTIVE_ALL_GATHER,
                             x->dtype, me_numel(x), -1, false});
    me_set_data(e, x, whole);
    me_leave(e, frame, NULL);
}

/** `detach_variable`: leaves that share the saved inputs' storage. */
static void detach_inputs(me_engine *e, const me_node *node, me_tensor **leaves)
{
    for (int i = 0; i < ME_CHECKPOINT_INPUTS; i++) {
        leaves[i] = NULL;
        if (node->saved[i] != NULL) {
            leaves[i] = me_detach(e, node->saved[i]);
            leaves[i]->is_view = false;
            leaves[i]->requires_grad = me_needs(node, (uint32_t)i);
        }
    }
}

static void checkpoint_backward(me_engine *e, me_node *node,
                                me_tensor *const *gy, me_tensor **gx)
{
    const me_section *section = node->data.context;
    me_launch_host(e, ME_HOST_CHECKPOINT);
    if (node->data.flag) {
        restore_whole(section->nn, node->saved[0], &node->data.shape);
    }
    me_tensor *leaves[ME_CHECKPOINT_INPUTS];
    detach_inputs(e, node, leaves);
    const me_context before = me_context_recompute(e);
    const me_autocast_state autocast =
        me_autocast_enter(e, node->data.autocast);
    me_tensor *y = section->run(section, leaves);
    me_autocast_exit(e, autocast);
    me_context_restore(e, before);
    me_backward(e, y, gy[0]);
    for (int i = 0; i < ME_CHECKPOINT_INPUTS; i++) {
        gx[i] = leaves[i] == NULL ? NULL : leaves[i]->grad;
        if (node->region != NULL) { // handed out: `inputs` goes first
            me_clear(e, &node->saved[i]);
        }
    }
}

static const me_op checkpoint_op =
    ME_NODE("CheckpointFunctionBackward", checkpoint_backward);

/** What a function hands on as it is, such as a module without children, comes
 *  out as a view of its own (_view_as_self_with_no_grad() of
 *  custom_function.cpp): the input keeps its place in the graph. */
static me_tensor *as_output(me_engine *e, me_tensor *const *inputs,
                            uint32_t n_inputs, me_tensor *y)
{
    for (uint32_t i = 0; i < n_inputs; i++) {
        if (y == inputs[i] && me_engine_is_ok(e)) {
            return me_alias(e, y, y->shape, y->strides);
        }
    }
    return y;
}

me_tensor *me_checkpoint(me_nn *nn, const me_section *section,
                         me_tensor *const inputs[ME_CHECKPOINT_INPUTS],
                         bool distribute)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    me_node *node = me_record(e, &checkpoint_op, ME_CHECKPOINT_INPUTS, inputs);
    const bool grad = me_grad_enable(e, false);
    me_launch_host(e, ME_HOST_CHECKPOINT);
    me_tensor *y = as_output(e, inputs, ME_CHECKPOINT_INPUTS,
                             section->run(section, inputs));
    me_grad_enable(e, grad);
    if (node != NULL) {
        node->data.context = section;
        node->data.flag = distribute;
        node->data.autocast = me_autocast_now(e);
    }
    if (distribute) {
        keep_part(nn, inputs[0]);
        keep_itself(e, node, inputs[0]);
    }
    for (uint32_t i = distribute ? 1 : 0; i < ME_CHECKPOINT_INPUTS; i++) {
        me_save(e, node, i, inputs[i]);
    }
    return me_output(e, node, y);
}

struct me_output_checkpoint {
    const me_section *section;
    me_node *node;     /**< borrowed: it holds the input until it has run */
    me_tensor *output; /**< discarded, until it is there again */
    me_tensor *leaf;   /**< input of the second run */
    me_tensor *again;  /**< its output */
    me_prehook hook;   /**< on what the discarded output went into */
};

/** `_recompute`: the output's storage gets what the second run made. */
static void run_again(void *self, me_engine *e, me_tensor *const *gy)
{
    (void)gy;
    me_output_checkpoint *c = self;
    const me_section *section = c->section;
    if (!me_engine_is_ok(e) || c->output == NULL) {
        return;
    }
    const me_frame frame = me_enter(e);
    me_tensor *leaf = me_detach(e, c->node->saved[0]);
    leaf->is_view = false;
    leaf->requires_grad = c->node->edges[0].node != NULL;
    me_launch_host(e, ME_HOST_CHECKPOINT);
    const me_context before = me_context_recompute(e);
    me_tensor *again = section->run(section, &leaf);
    me_context_restore(e, before);
    me_restore_data(e, c->output, again);
    c->leaf = me_retain(leaf);
    c->again = me_retain(again);
    me_clear(e, &c->output);
    me_leave(e, frame, NULL);
}

static void output_checkpoint_backward(me_engine *e, me_node *node,
                                       me_tensor *const *gy, me_tensor **gx)
{
    me_output_checkpoint *c = node->data.checkpoint;
    if (c->leaf == NULL) {
        return;
    }
    me_backward(e, c->again, gy[0]);
    gx[0] = me_hold(e, c->leaf)->grad;
    (void)me_hold(e, c->again);
    me_clear(e, &c->again);
    me_clear(e, &c->leaf);
}

static const me_op output_checkpoint_op = ME_NODE(
    "CheckpointWithoutOutputFunctionBackward", output_checkpoint_backward);

me_tensor *me_checkpoint_output(me_nn *nn, const me_section *section,
                                me_tensor *input,
                                me_output_checkpoint **checkpoint_out)
{
    me_engine *e = nn->e;
    *checkpoint_out = NULL;
    me_node *node = me_record1(e, &output_checkpoint_op, input);
    const bool grad = me_grad_enable(e, false);
    me_launch_host(e, ME_HOST_CHECKPOINT);
    me_tensor *y = section->run(section, &input);
    me_grad_enable(e, grad);
    me_output_checkpoint *c =
        node == NULL ? NULL : me_engine_alloc(e, 1, sizeof *c);
    if (c == NULL) {
        return y;
    }
    *c = (me_output_checkpoint){.section = section, .node = node};
    node->data.checkpoint = c;
    me_save(e, node, 0, input);
    me_output(e, node, y);
    c->output = me_retain(y);
    *checkpoint_out = c;
    return y;
}

void me_checkpoint_discard(me_output_checkpoint *checkpoint, me_tensor *hooked)
{
    if (checkpoint == NULL) {
        return;
    }
    me_storage_free(checkpoint->section->nn->e, checkpoint->output);
    checkpoint->hook = (me_prehook){.run = run_again, .self = checkpoint};
    if (hooked->grad_fn != NULL) {
        hooked->grad_fn->prehook = &checkpoint->hook;
    }
}
