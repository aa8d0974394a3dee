/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/shared_experts.h"

#include "nn/megatron/backend.h"
#include "nn/megatron/te_fp8_state.h"
#include "ops/elementwise.h"
#include "ops/functional_linear.h"
#include "ops/scores.h"
#include "tensor/autograd.h"

/** torch.iinfo(torch.int).max: a node with this number runs as soon as it can. */
static const uint64_t first_of_all = INT32_MAX;

static me_tensor *run_checkpointed(const me_section *section,
                                   me_tensor *const *inputs);

static bool is_recomputed(const me_nn *nn)
{
    const me_recompute_config *recompute = &nn->config->recompute;
    return recompute->granularity == ME_RECOMPUTE_SELECTIVE &&
           recompute->shared_experts;
}

void me_shared_experts_create(me_nn *nn, me_module_id parent, int32_t layer,
                              me_shared_experts *shared)
{
    const me_moe_options *c = &nn->config->moe;
    const me_module_id module =
        me_module_add_as(nn->e, parent, "shared_experts", "SharedExpertMLP");
    *shared = (me_shared_experts){.nn = nn};
    if (c->shared_expert_gate) { // the module's own, before those below it
        shared->gate_weight = me_parameter_create(
            nn, &(me_parameter_spec){
                    .name = "gate_weight",
                    .module = module,
                    .shape = ME_SHAPE(1, nn->config->model.hidden_size),
                    .is_made_on_host = true,
                    .is_made_in_params_dtype = true,
                    .is_sequence_parallel = true,
                });
    }
    const me_mlp_spec spec = {
        .ffn_hidden_size = c->shared_expert_intermediate_size,
        .explicit_comm = c->shared_expert_overlap,
        .save_original_input = !is_recomputed(nn), // the router has it
    };
    me_mlp_create(nn, module, &spec, &shared->mlp);
    shared->section = (me_section){
        .nn = nn, .run = run_checkpointed, .self = shared, .first = layer};
}

void me_shared_experts_fini(me_engine *e, me_shared_experts *shared)
{
    me_clear(e, &shared->cached_fc1_input);
    me_clear(e, &shared->cached_fc2_input);
    me_clear(e, &shared->cached_output);
    me_clear(e, &shared->gate_score);
}

/** sigmoid(x · gate_weightᵀ): (s, b, h) to (s, b, 1). The logits are a variable
 *  of the caller's. */
static me_tensor *gate(const me_shared_experts *shared, me_tensor *x)
{
    me_engine *e = shared->nn->e;
    me_tensor *logits =
        me_functional_linear(e, x, shared->gate_weight->tensor, NULL);
    return me_sigmoid(e, logits);
}

/** SharedExpertMLP.forward(). */
static me_tensor *run(const me_section *section, me_tensor *const *inputs)
{
    const me_shared_experts *shared = section->self;
    me_nn *nn = section->nn;
    const me_frame frame = me_enter(nn->e);
    me_tensor *y = me_mlp_forward(nn, &shared->mlp, inputs[0], NULL);
    if (shared->gate_weight != NULL) {
        me_tensor *score = gate(shared, inputs[0]);
        y = me_rebind(nn->e, y, me_mul(nn->e, y, score));
    }
    return me_leave(nn->e, frame, y);
}

/** It under te_checkpoint(), which recomputes it in FP8 as the layer does. */
static me_tensor *run_checkpointed(const me_section *section,
                                   me_tensor *const *inputs)
{
    const me_fp8_state before = me_fp8_checkpoint_enter(
        section->nn, me_fp8_is_layer(section->nn, section->first));
    me_tensor *y = run(section, inputs);
    me_fp8_checkpoint_exit(section->nn, &before);
    return y;
}

me_tensor *me_shared_experts_forward(me_nn *nn, const me_shared_experts *shared,
                                     me_tensor *x)
{
    me_tensor *const inputs[ME_CHECKPOINT_INPUTS] = {x};
    return is_recomputed(nn)
               ? me_checkpoint(nn, &shared->section, inputs, false)
               : run(&shared->section, inputs);
}

void me_shared_experts_pre_forward_comm(me_shared_experts *shared, me_tensor *x)
{
    me_nn *nn = shared->nn;
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const uint8_t stream = me_stream_set(e, ME_STREAM_SHARED_EXPERTS);
    if (shared->gate_weight != NULL) {
        me_assign(e, &shared->gate_score, gate(shared, x));
    }
    me_tensor *all = nn->config->parallel.sequence
                         ? me_gather_from_sequence_region(e, nn->comm, x)
                         : me_copy_to_tensor_region(e, nn->comm, x);
    me_set_sequence(all, first_of_all);
    me_assign(e, &shared->cached_fc1_input, all);
    me_stream_set(e, stream);
    me_leave(e, frame, NULL);
}

static void identity_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                              me_tensor **gx)
{
    (void)e;
    (void)node;
    gx[0] = gy[0];
}

static const me_op stream_wait_op =
    ME_NODE("_BackwardStreamWaitBackward", identity_backward);

/** _BackwardStreamWait.apply(): @p x, whose gradient the stream waits for. */
static me_tensor *wait_in_backward(me_engine *e, me_tensor *x)
{
    me_node *node = me_record1(e, &stream_wait_op, x);
    return me_output(e, node, me_alias(e, x, x->shape, x->strides));
}

void me_shared_experts_fc1_and_act(me_shared_experts *shared,
                                   const me_tensor *overlapped)
{
    me_nn *nn = shared->nn;
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const uint8_t stream = me_stream_set(e, ME_STREAM_SHARED_EXPERTS);
    me_module_enter(e, shared->mlp.module);
    me_tensor *u = me_column_parallel(nn, &shared->mlp.linear_fc1,
                                      shared->cached_fc1_input);
    me_clear(e, &shared->cached_fc1_input);
    me_tensor *a = me_rebind(e, u, me_mlp_plain_activation(nn, u));
    me_module_leave(e);
    me_stream_set(e, stream);
    if (overlapped->grad_fn != NULL) {
        me_set_sequence(a, overlapped->grad_fn->sequence - 1);
        a = wait_in_backward(e, a);
    }
    me_assign(e, &shared->cached_fc2_input, a);
    me_leave(e, frame, NULL);
}

void me_shared_experts_fc2(me_shared_experts *shared,
                           const me_tensor *overlapped)
{
    me_nn *nn = shared->nn;
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_set_sequence(overlapped, first_of_all);
    const uint8_t stream = me_stream_set(e, ME_STREAM_SHARED_EXPERTS);
    me_module_enter(e, shared->mlp.module);
    me_tensor *y =
        me_row_parallel(nn, &shared->mlp.linear_fc2, shared->cached_fc2_input);
    me_clear(e, &shared->cached_fc2_input);
    y = me_rebind(e, y,
                  nn->config->parallel.sequence
                      ? me_reduce_scatter_to_sequence_region(e, nn->comm, y)
                      : me_reduce_from_tensor_region(e, nn->comm, y));
    me_set_sequence(y, first_of_all);
    me_assign(e, &shared->cached_output, y);
    me_module_leave(e);
    me_stream_set(e, stream);
    me_leave(e, frame, NULL);
}

me_tensor *me_shared_experts_get_output(me_shared_experts *shared)
{
    me_engine *e = shared->nn->e;
    me_tensor *y = me_hold(e, shared->cached_output);
    if (shared->gate_weight != NULL) {
        const uint8_t stream = me_stream_set(e, ME_STREAM_SHARED_EXPERTS);
        y = me_rebind(e, y, me_mul(e, y, shared->gate_score));
        me_clear(e, &shared->gate_score);
        me_stream_set(e, stream);
    }
    me_clear(e, &shared->cached_output);
    return y;
}
