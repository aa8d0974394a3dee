/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/checkpoint.h"

#include "base/assert.h"
#include "base/size.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"
#include "tensor/saved_hooks.h"

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
    uint32_t n_inputs;
    uint32_t n_outputs;
    me_node *node; /**< borrowed: it holds the inputs until it has run */
    me_tensor *outputs[ME_MAX_OUTPUTS]; /**< discarded, until they are there
                                             again */
    me_tensor *leaves[ME_CHECKPOINT_INPUTS]; /**< inputs of the second run */
    me_tensor *again[ME_MAX_OUTPUTS];        /**< its outputs */
    me_prehook hooks[ME_MAX_OUTPUTS]; /**< on what the discarded outputs went
                                           into */
    uint32_t n_hooks;
};

/** Outputs of a section are variables of the running frame. */
static void run_section(const me_section *section, me_tensor *const *inputs,
                        me_tensor **outputs_out)
{
    if (section->run_many != NULL) {
        section->run_many(section, inputs, outputs_out);
    } else {
        outputs_out[0] = section->run(section, inputs);
    }
}

/** `_recompute`: the outputs' storages get what the second run made. */
static void run_again(void *self, me_engine *e, me_tensor *const *gy)
{
    (void)gy;
    me_output_checkpoint *c = self;
    if (!me_engine_is_ok(e) || c->outputs[0] == NULL) {
        return;
    }
    const me_frame frame = me_enter(e);
    const bool was_packed = me_saved_unpack_for(e, c->node);
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        if (c->node->saved[i] != NULL) {
            c->leaves[i] = me_retain(me_detach(e, c->node->saved[i]));
            c->leaves[i]->is_view = false;
            c->leaves[i]->requires_grad = c->node->edges[i].node != NULL;
        }
        if (was_packed) {
            me_clear(e, &c->node->saved[i]);
        }
    }
    me_launch_host(e, ME_HOST_CHECKPOINT);
    const me_context before = me_context_recompute(e);
    me_mempool_set(e, c->node->mempool); // a replayed graph recomputes within
    me_tensor *again[ME_MAX_OUTPUTS] = {NULL};
    run_section(c->section, c->leaves, again);
    me_context_restore(e, before);
    const uint32_t n = c->n_outputs;
    ME_ASSERT(n <= ME_MAX_OUTPUTS);
    for (uint32_t i = 0; i < n; i++) {
        me_restore_data(e, c->outputs[i], again[i]);
        c->again[i] = me_retain(again[i]);
        me_clear(e, &c->outputs[i]);
    }
    me_leave(e, frame, NULL);
}

/** torch.autograd.backward(outputs, args). */
static void run_backwards(me_engine *e, const me_output_checkpoint *c,
                          me_tensor *const *gy)
{
    if (c->n_outputs == 1) {
        me_backward(e, c->again[0], gy[0]);
        return;
    }
    me_edge roots[ME_MAX_OUTPUTS];
    for (uint32_t i = 0; i < c->n_outputs; i++) {
        roots[i] = (me_edge){c->again[i]->grad_fn, c->again[i]->output_nr};
    }
    me_backward_all(e, c->n_outputs, roots, gy);
}

static void output_checkpoint_backward(me_engine *e, me_node *node,
                                       me_tensor *const *gy, me_tensor **gx)
{
    me_output_checkpoint *c = node->data.checkpoint;
    if (c->again[0] == NULL) {
        return;
    }
    run_backwards(e, c, gy);
    // The function's own tuples `inputs` and `outputs` go last item first.
    for (uint32_t i = c->n_inputs; i-- > 0;) {
        gx[i] = c->leaves[i] == NULL ? NULL : me_hold(e, c->leaves[i])->grad;
    }
    for (uint32_t i = c->n_outputs; i-- > 0;) {
        (void)me_hold(e, c->again[i]);
        me_clear(e, &c->again[i]);
    }
    for (uint32_t i = 0; i < c->n_inputs; i++) {
        me_clear(e, &c->leaves[i]);
    }
}

static const me_op output_checkpoint_op = ME_NODE(
    "CheckpointWithoutOutputFunctionBackward", output_checkpoint_backward);

/** What is saved is a detached leaf: where hooks have it, its AccumulateGrad,
 *  which the SavedVariable owns, holds it as well. */
static void hold_leaf(me_engine *e, me_node *node, uint32_t index,
                      const me_tensor *input)
{
    const me_saved_hooks *hooks = me_saved_hooks_set(e, NULL);
    if (hooks != NULL && input != NULL && input->requires_grad) {
        me_save(e, node, ME_CHECKPOINT_INPUTS + index, input);
    }
    me_saved_hooks_set(e, hooks);
}

void me_checkpoint_outputs(me_nn *nn, const me_section *section,
                           const me_section_call *call, me_tensor **outputs_out,
                           me_output_checkpoint **checkpoint_out)
{
    me_engine *e = nn->e;
    *checkpoint_out = NULL;
    me_node *node =
        me_record(e, &output_checkpoint_op, call->n_inputs, call->inputs);
    const bool grad = me_grad_enable(e, false);
    me_launch_host(e, ME_HOST_CHECKPOINT);
    run_section(section, call->inputs, outputs_out);
    me_grad_enable(e, grad);
    me_output_checkpoint *c =
        node == NULL ? NULL : me_engine_alloc(e, 1, sizeof *c);
    if (c == NULL) {
        return;
    }
    *c = (me_output_checkpoint){.section = section,
                                .n_inputs = call->n_inputs,
                                .n_outputs = call->n_outputs,
                                .node = node};
    node->data.checkpoint = c;
    for (uint32_t i = 0; i < call->n_inputs; i++) {
        me_save(e, node, i, call->inputs[i]);
        hold_leaf(e, node, i, call->inputs[i]);
    }
    for (uint32_t i = 0; i < call->n_outputs; i++) {
        c->outputs[i] = me_retain(me_output(e, node, outputs_out[i]));
    }
    *checkpoint_out = c;
}

me_tensor *me_checkpoint_output(me_nn *nn, const me_section *section,
                                me_tensor *input,
                                me_output_checkpoint **checkpoint_out)
{
    me_tensor *y = NULL;
    const me_section_call call = {
        .n_inputs = 1, .n_outputs = 1, .inputs = &input};
    me_checkpoint_outputs(nn, section, &call, &y, checkpoint_out);
    return y;
}

void me_checkpoint_discard(me_output_checkpoint *checkpoint, me_tensor *hooked)
{
    me_output_checkpoint *c = checkpoint;
    if (c == NULL) {
        return;
    }
    for (uint32_t i = 0; c->n_hooks == 0 && i < c->n_outputs; i++) {
        me_storage_free(c->section->nn->e, c->outputs[i]);
    }
    ME_ASSERT(c->n_hooks < ME_MAX_OUTPUTS);
    me_prehook *hook = &c->hooks[c->n_hooks++];
    *hook = (me_prehook){.run = run_again, .self = c};
    if (hooked->grad_fn != NULL) {
        me_prehook_add(hooked->grad_fn, hook);
    }
}
