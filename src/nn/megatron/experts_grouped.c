/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/backend.h"
#include "nn/megatron/experts.h"
#include "nn/megatron/fine_offload.h"
#include "nn/megatron/quantization_padding.h"
#include "ops/elementwise.h"
#include "ops/view.h"

/** _remove_glu_interleaving(): blocks of the gate and of what it gates, in turns,
 *  sorted into two halves. */
static me_tensor *remove_interleaving(me_engine *e, me_tensor *u, uint64_t size)
{
    const me_frame frame = me_enter(e);
    const uint64_t rows = me_dim(u, 0);
    const uint64_t columns = me_dim(u, 1);
    me_tensor *blocks =
        me_view(e, u, ME_SHAPE(rows, columns / (2 * size), 2, size));
    me_tensor *sorted = me_contiguous(e, me_transpose(e, blocks, 1, 2));
    return me_leave(e, frame, me_view(e, sorted, u->shape)); // (R, 2f)
}

/** bias_act_func() of TEGroupedMLP.forward(); inputs: what fc1 gave, weights. What
 *  is in turns has no fused function. */
static me_tensor *run_activation(const me_section *section,
                                 me_tensor *const *inputs)
{
    me_nn *nn = section->nn;
    const uint64_t size = nn->config->moe.glu_interleave_size;
    const me_token_scale scale = {inputs[1], 0};
    if (size == 0 || !me_activation_is_gated(nn)) {
        return me_mlp_activation(nn, inputs[0], NULL, &scale);
    }
    const me_frame frame = me_enter(nn->e);
    me_tensor *u = remove_interleaving(nn->e, inputs[0], size);
    return me_leave(nn->e, frame, me_mlp_open_activation(nn, u, NULL, &scale));
}

void me_grouped_experts_create(me_nn *nn, me_experts *experts)
{
    const me_config *c = nn->config;
    const uint64_t f = c->moe.ffn_hidden_size;
    const uint64_t h = me_expert_hidden_size(nn);
    me_linear_spec spec = {
        .name = "linear_fc1",
        .parent = experts->module,
        .inputs = h,
        .outputs = me_activation_is_gated(nn) ? 2 * f : f,
        .has_bias = c->model.add_bias_linear,
        .is_expert = true,
    };
    me_grouped_linear_create(nn, &spec, experts->count, false,
                             &experts->linear_fc1);
    spec.name = "linear_fc2";
    spec.inputs = f;
    spec.outputs = h;
    spec.skip_bias_add = true;
    // set_save_original_input(): what is run again for the backward
    spec.save_original_input =
        c->recompute.granularity == ME_RECOMPUTE_SELECTIVE &&
        c->recompute.moe_act;
    me_grouped_linear_create(nn, &spec, experts->count, true,
                             &experts->linear_fc2);
    experts->activation =
        (me_section){.nn = nn, .run = run_activation, .self = experts};
}

/** It, or what is run again for the backward. */
static me_tensor *activation(me_nn *nn, const me_experts *experts,
                             me_tensor *const *inputs,
                             me_output_checkpoint **checkpoint_out)
{
    const me_recompute_config *recompute = &nn->config->recompute;
    if (recompute->granularity != ME_RECOMPUTE_SELECTIVE ||
        !recompute->moe_act) {
        return run_activation(&experts->activation, inputs);
    }
    const me_section_call call = {
        .n_inputs = 2, .n_outputs = 1, .inputs = inputs};
    me_tensor *a = NULL;
    me_checkpoint_outputs(nn, &experts->activation, &call, &a, checkpoint_out);
    return a;
}

/** _apply_bias(): each expert's bias times its rows' weights, one expert after the
 *  other, all joined. */
static me_tensor *apply_bias(me_nn *nn, const me_experts *experts, me_tensor *y,
                             const uint64_t *tokens, me_tensor *probs)
{
    me_engine *e = nn->e;
    const uint32_t n = experts->count;
    me_parameter *const *biases = experts->linear_fc2.biases;
    me_tensor **rows = experts->tensors;
    me_tensor **weights = experts->tensors + n;
    me_tensor **sums = experts->tensors + 2 * (size_t)n;
    const me_frame frame = me_enter(e);
    me_split_rows(e, y, n, tokens, rows);
    me_split_rows(e, probs, n, tokens, weights);
    for (uint32_t i = 0; i < n; i++) {
        me_tensor *weighted = me_mul(e, biases[i]->tensor, weights[i]);
        sums[i] = me_add(e, rows[i], weighted); // (n_i, h)
        me_drop(e, weighted);
    }
    me_tensor *all = me_cat_first(e, n, sums); // (R, h)
    for (uint32_t i = n; i > 0; i--) {         // as a list lets go
        me_drop(e, sums[i - 1]);
    }
    all = me_rebind(e, all, me_cast(e, all, (me_dtype)y->dtype));
    return me_leave(e, frame, all);
}

me_tensor *me_grouped_experts_forward(me_nn *nn, const me_experts *experts,
                                      me_tensor *x, const uint64_t *tokens,
                                      me_tensor *probs)
{
    me_engine *e = nn->e;
    const me_backend *backend = me_backend_of(nn);
    const me_frame frame = me_enter(e);
    const me_tensor *const given = x;
    me_tensor *weights = me_view(e, probs, ME_SHAPE(me_numel(probs), 1));
    const uint64_t *rows = tokens;
    const uint64_t n_rows = me_numel(probs);
    if (me_experts_pad(nn)) {
        const uint64_t n_padded =
            me_padded_counts(nn, experts->count, tokens, experts->padded);
        rows = experts->padded;
        x = me_change_padding(nn, x, n_padded);
        weights = me_change_padding(nn, weights, n_padded);
    }
    if (nn->config->moe.apply_probs_on_input) {
        me_tensor *const applied = weights;
        x = me_apply_probs_on_input(nn, x, given, &weights);
        me_drop(e, applied);
    }
    me_offload_group group;
    x = me_offload_enter(nn, &group, ME_OFFLOAD_EXPERT_FC1, x);
    me_name_last(e, x); // off_interface's object holds it, a later name
    me_tensor *u = backend->grouped_linear(nn, &experts->linear_fc1, x, rows);
    me_offload_exit(nn, &group);
    u = me_rebind(e, u, me_offload_commit(nn, &group, u, 1, &x));
    u = me_rebind(e, u, me_offload_enter(nn, &group, ME_OFFLOAD_MOE_ACT, u));
    me_output_checkpoint *c = NULL;
    me_tensor *a = activation(nn, experts, (me_tensor *[]){u, weights}, &c);
    me_offload_exit(nn, &group);
    me_tensor *y = backend->grouped_linear(nn, &experts->linear_fc2, a, rows);
    me_checkpoint_discard(c, y);
    y = me_rebind(e, y, me_offload_commit(nn, &group, y, 1, &u));
    if (experts->linear_fc2.biases != NULL) {
        y = me_rebind(e, y, apply_bias(nn, experts, y, rows, weights));
    }
    if (me_dim(y, 0) != n_rows) {
        y = me_rebind(e, y, me_change_padding(nn, y, n_rows));
    }
    return me_leave(e, frame, y); // (R, h)
}
