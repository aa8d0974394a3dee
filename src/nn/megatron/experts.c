/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/experts.h"

#include "nn/megatron/backend.h"
#include "nn/megatron/quantization_padding.h"
#include "ops/elementwise.h"
#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

_Static_assert((int)ME_MAX_LOCAL_EXPERTS <= (int)ME_MAX_LIST,
               "the tape has no room for the lists of all local experts");

/** SequentialMLP's. */
static void create_local(me_nn *nn, me_experts *experts)
{
    me_engine *e = nn->e;
    const me_config *c = nn->config;
    experts->local = me_engine_alloc(e, experts->count, sizeof *experts->local);
    const me_module_id list =
        me_module_add_as(e, experts->module, "local_experts", "ModuleList");
    const me_mlp_spec spec = {.ffn_hidden_size = c->moe.ffn_hidden_size,
                              .is_expert = true};
    for (uint32_t i = 0; i < experts->count && me_engine_is_ok(e); i++) {
        const me_module_id expert = me_module_add_index(e, list, i);
        me_module_set_class(e, expert, "MLP");
        me_mlp_create(nn, expert, &spec, &experts->local[i]);
    }
}

void me_experts_create(me_nn *nn, me_module_id parent, me_experts *experts)
{
    const me_config *c = nn->config;
    *experts = (me_experts){
        .module = me_module_add(nn->e, parent, "experts"),
        .count = (uint32_t)(c->moe.num_experts / (uint64_t)c->parallel.expert),
        .is_grouped =
            c->moe.grouped_gemm && me_backend_of(nn)->grouped_linear != NULL,
    };
    me_module_set_class(nn->e, experts->module,
                        experts->is_grouped ? "TEGroupedMLP" : "SequentialMLP");
    experts->tensors =
        me_engine_alloc(nn->e, 3 * (size_t)experts->count, sizeof(me_tensor *));
    experts->padded =
        me_engine_alloc(nn->e, experts->count, sizeof *experts->padded);
    if (experts->is_grouped) {
        me_grouped_experts_create(nn, experts);
    } else {
        create_local(nn, experts);
    }
}

/** An expert's rows through its MLP; quantised, padded with zeros, and without
 *  these again, which is a slice even where none are. */
static me_tensor *run_expert(me_nn *nn, const me_mlp *expert, me_tensor *x,
                             const me_token_scale *scale)
{
    if (nn->config->fp8.format == ME_FP8_NONE) {
        return me_mlp_forward(nn, expert, x, scale);
    }
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const uint64_t rows = me_dim(x, 0);
    me_tensor *hidden = me_pad_with_zeros(nn, x);
    me_token_scale all = *scale;
    all.probs = me_pad_with_zeros(nn, scale->probs);
    all.first = all.probs == scale->probs ? scale->first : 0;
    me_tensor *y = me_mlp_forward(nn, expert, hidden, &all);
    return me_leave(e, frame, me_first_rows(e, y, rows));
}

/** `for expert, tokens, probs in zip(…): list.append(expert(tokens, probs))`. */
static me_tensor *run_experts(me_nn *nn, const me_experts *experts,
                              me_tensor *x, const uint64_t *tokens,
                              me_tensor *probs)
{
    me_engine *e = nn->e;
    const uint32_t n = experts->count;
    me_tensor **tokens_list = experts->tensors;
    me_tensor **probs_list = experts->tensors + n;
    me_tensor **outputs = experts->tensors + 2 * (size_t)n;
    const me_frame frame = me_enter(e);
    me_launch_host(e, ME_HOST_EXPERTS);
    me_split_rows(e, x, n, tokens, tokens_list);
    me_split_rows(e, probs, n, tokens, probs_list);
    uint64_t first = 0;
    for (uint32_t i = 0; i < n; i++) {
        const me_token_scale scale = {probs_list[i], first};
        me_launch_host(e, ME_HOST_EXPERT);
        outputs[i] = run_expert(nn, &experts->local[i], tokens_list[i],
                                &scale); // (n_i, h)
        first += tokens[i];
    }
    me_tensor *y = me_cat_first(e, n, outputs); // (R, h)
    for (uint32_t i = n; i > 0; i--) {          // as a list lets go
        me_drop(e, outputs[i - 1]);
    }
    return me_leave(e, frame, y);
}

me_tensor *me_apply_probs_on_input(me_nn *nn, me_tensor *x,
                                   const me_tensor *given, me_tensor **probs)
{
    me_engine *e = nn->e;
    const me_dtype dtype = (me_dtype)x->dtype;
    me_tensor *column = me_view(e, *probs, ME_SHAPE(me_numel(*probs), 1));
    me_tensor *y = me_mul(e, column, x);
    me_drop(e, column);
    y = me_rebind_own(e, x, given, y);
    y = me_rebind(e, y, me_cast(e, y, dtype));
    *probs = me_pointwise(e, "ones_like", *probs, (me_dtype)(*probs)->dtype);
    return y;
}

/** SequentialMLP.forward(). */
static me_tensor *run_local(me_nn *nn, const me_experts *experts, me_tensor *x,
                            const uint64_t *tokens, me_tensor *probs)
{
    const me_frame frame = me_enter(nn->e);
    if (nn->config->moe.apply_probs_on_input) {
        x = me_apply_probs_on_input(nn, x, x, &probs);
    }
    const me_token_scale all = {probs, 0};
    me_tensor *y = experts->count == 1
                       ? run_expert(nn, &experts->local[0], x, &all)
                       : run_experts(nn, experts, x, tokens, probs);
    return me_leave(nn->e, frame, y);
}

me_tensor *me_experts_forward(me_nn *nn, const me_experts *experts,
                              me_tensor *x, const uint64_t *tokens,
                              me_tensor *probs)
{
    if (!me_engine_is_ok(nn->e)) {
        return me_none(nn->e);
    }
    me_module_enter(nn->e, experts->module);
    me_tensor *y =
        experts->is_grouped
            ? me_grouped_experts_forward(nn, experts, x, tokens, probs)
            : run_local(nn, experts, x, tokens, probs);
    me_module_leave(nn->e);
    return y;
}
