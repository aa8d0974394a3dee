/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/experts.h"

#include "ops/view.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

_Static_assert((int)ME_MAX_LOCAL_EXPERTS <= (int)ME_MAX_LIST,
               "the tape has no room for the lists of all local experts");

void me_experts_create(me_nn *nn, me_module_id parent, me_experts *experts)
{
    me_engine *e = nn->e;
    const me_config *c = nn->config;
    experts->module = me_module_add(e, parent, "experts");
    const uint64_t count = c->moe.num_experts / (uint64_t)c->parallel.expert;
    experts->local = me_engine_alloc(e, count, sizeof *experts->local);
    experts->tokens = me_engine_alloc(e, count, sizeof *experts->tokens);
    experts->tensors = me_engine_alloc(e, 3 * count, sizeof(me_tensor *));
    if (!me_engine_is_ok(e)) {
        return;
    }
    experts->count = (uint32_t)count;
    const me_module_id list =
        me_module_add(e, experts->module, "local_experts");
    const me_mlp_spec spec = {.ffn_hidden_size = c->moe.ffn_hidden_size,
                              .is_expert = true};
    for (uint32_t i = 0; i < experts->count; i++) {
        me_mlp_create(nn, me_module_add_index(e, list, i), &spec,
                      &experts->local[i]);
    }
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
        outputs[i] = me_mlp_forward(nn, &experts->local[i], tokens_list[i],
                                    &scale); // (n_i, h)
        first += tokens[i];
    }
    me_tensor *y = me_cat_first(e, n, outputs); // (R, h)
    for (uint32_t i = n; i > 0; i--) {          // as a list lets go
        me_drop(e, outputs[i - 1]);
    }
    return me_leave(e, frame, y);
}

me_tensor *me_experts_forward(me_nn *nn, const me_experts *experts,
                              me_tensor *x, const uint64_t *tokens,
                              me_tensor *probs)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    const me_token_scale all = {probs, 0};
    me_module_enter(e, experts->module);
    me_tensor *y = experts->count == 1
                       ? me_mlp_forward(nn, &experts->local[0], x, &all)
                       : run_experts(nn, experts, x, tokens, probs);
    me_module_leave(e);
    return y;
}
