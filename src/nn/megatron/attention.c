/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/attention.h"

#include "base/size.h"
#include "nn/megatron/backend.h"
#include "nn/megatron/fine_offload.h"
#include "nn/megatron/rope.h"
#include "ops/elementwise.h"
#include "ops/view.h"
#include "tensor/launch.h"

#include <string.h>

static void mark_qk_norm(const me_norm *norm)
{
    if (norm->weight != NULL) {
        norm->weight->is_qk_norm = true;
    }
    if (norm->bias != NULL) {
        norm->bias->is_qk_norm = true;
    }
}

void me_attention_create(me_nn *nn, me_module_id parent, int32_t number,
                         me_attention *attention)
{
    const me_model_config *c = &nn->config->model;
    const uint64_t d = c->kv_channels;
    const uint64_t heads = c->num_attention_heads;
    me_attention *a = attention;
    a->module =
        me_module_add_as(nn->e, parent, "self_attention", "SelfAttention");
    a->has_no_rope = nn->is_no_rope_layer != NULL && number >= 0 &&
                     nn->is_no_rope_layer[me_attention_number(nn, number)];
    me_core_attention_create(nn, a->module, number, &a->core_attention);
    a->linear_proj =
        me_row_linear_create(nn, &(me_linear_spec){
                                     .name = "linear_proj",
                                     .parent = a->module,
                                     .inputs = heads * d,
                                     .outputs = c->hidden_size,
                                     .has_bias = c->add_bias_linear,
                                     .save_original_input = true,
                                     .skip_bias_add = true,
                                 });
    a->linear_qkv = me_column_linear_create(
        nn, &(me_linear_spec){
                .name = "linear_qkv",
                .parent = a->module,
                .inputs = c->hidden_size,
                .outputs = (heads * (c->attention_output_gate ? 2 : 1) +
                            2 * c->num_query_groups) *
                           d,
                .has_norm = me_norms_are_fused(nn),
                .has_bias = c->add_bias_linear || c->add_qkv_bias,
            });
    a->linear_proj.turn = ME_TURN_PROJ;
    a->linear_qkv.turn = ME_TURN_QKV;
    if (a->linear_qkv.weight != NULL) {
        a->linear_qkv.weight->is_qkv = true;
    }
    if (c->qk_l2_norm) {
        a->q_layernorm = me_norm_create_l2(nn, a->module, "q_layernorm");
        a->k_layernorm = me_norm_create_l2(nn, a->module, "k_layernorm");
    } else if (c->qk_layernorm) {
        const bool is_whole = c->qk_layernorm_across_heads;
        a->q_layernorm = me_norm_create(nn, a->module, "q_layernorm",
                                        is_whole ? heads * d : d);
        a->k_layernorm = me_norm_create(nn, a->module, "k_layernorm",
                                        is_whole ? c->num_query_groups * d : d);
        mark_qk_norm(&a->q_layernorm);
        mark_qk_norm(&a->k_layernorm);
    }
}

/** Fewer query groups than tensor ranks: each rank gets the mixed projection
 *  of all and takes its group's part. */
static me_tensor *select_group(me_nn *nn, me_tensor *mixed)
{
    const uint64_t groups = nn->config->model.num_query_groups;
    const uint64_t ranks = (uint64_t)nn->config->parallel.tensor;
    const uint64_t rank = (uint64_t)nn->comm->index[ME_GROUP_TENSOR];
    const me_frame frame = me_enter(nn->e);
    me_tensor *all = me_gather_last_from_tensor_region(nn->e, nn->comm, mixed);
    const uint64_t size = me_dim(all, -1) / groups;
    const uint64_t begin = rank / (ranks / groups) * size;
    return me_leave(nn->e, frame,
                    me_slice(nn->e, all, -1, begin, begin + size));
}

/** And of its group's query heads, this rank's. */
static me_tensor *select_heads(me_nn *nn, me_tensor *query)
{
    const uint64_t sharers = (uint64_t)nn->config->parallel.tensor /
                             nn->config->model.num_query_groups;
    const uint64_t rank = (uint64_t)nn->comm->index[ME_GROUP_TENSOR];
    const uint64_t size = me_dim(query, 2) / sharers;
    const uint64_t begin = rank % sharers * size;
    return me_slice(nn->e, query, 2, begin, begin + size);
}

/** `x = norm(x)`. */
static void rebind_norm(me_nn *nn, const me_norm *norm, me_tensor **x)
{
    *x = me_rebind(nn->e, *x, me_norm_forward(nn, norm, *x));
}

/** (s, b, a/t, d) to (s, b, a/t d); a copy where it is a part of the mixed
 *  projection. */
static void rebind_flat(me_engine *e, me_tensor **x)
{
    const uint64_t all = me_size_mul(me_dim(*x, 2), me_dim(*x, 3));
    *x = me_rebind(
        e, *x, me_reshape(e, *x, ME_SHAPE(me_dim(*x, 0), me_dim(*x, 1), all)));
}

/** Norms of each head's query and key; or of all heads at once, as
 *  Megatron-Bridge's OLMoESelfAttention has them. */
static void norm_query_key(me_nn *nn, const me_attention *attention,
                           me_tensor **qkv)
{
    me_engine *e = nn->e;
    const bool is_whole = nn->config->model.qk_layernorm_across_heads;
    const me_shape heads[2] = {qkv[0]->shape, qkv[1]->shape};
    for (int i = 0; is_whole && i < 2; i++) {
        rebind_flat(e, &qkv[i]);
    }
    rebind_norm(nn, &attention->q_layernorm, &qkv[0]);
    rebind_norm(nn, &attention->k_layernorm, &qkv[1]);
    for (int i = 0; is_whole && i < 2; i++) {
        qkv[i] = me_rebind(e, qkv[i], me_view(e, qkv[i], heads[i]));
    }
}

/** What there is of each query head of a rank: in the mixed projection, behind a
 *  group's queries, and shared out like those. */
static me_tensor *heads_of(me_nn *nn, me_tensor *part, uint64_t heads,
                           bool shares_group)
{
    me_engine *e = nn->e;
    me_tensor *y = me_reshape(e, part,
                              ME_SHAPE(me_dim(part, 0), me_dim(part, 1), heads,
                                       nn->config->model.kv_channels));
    return shares_group ? select_heads(nn, y) : y;
}

/** Query, key, value and, where the output is gated, the gate: views of the mixed
 *  projection, but for queries and gate of several groups. */
static void query_key_value(me_nn *nn, const me_attention *attention,
                            me_tensor *x, me_tensor **qkv_out)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const me_config *c = nn->config;
    const uint64_t d = c->model.kv_channels;
    const uint64_t per_group =
        c->model.num_attention_heads / c->model.num_query_groups;
    const bool shares_group =
        c->model.num_query_groups < (uint64_t)c->parallel.tensor;
    const uint64_t g =
        shares_group ? 1 : me_over_tensor(nn, c->model.num_query_groups);
    me_tensor *mixed = me_column_parallel(nn, &attention->linear_qkv, x);
    if (shares_group) {
        mixed = me_rebind(e, mixed, select_group(nn, mixed));
    }
    const bool is_gated = c->model.attention_output_gate;
    const uint64_t of_queries = per_group * d;
    const uint64_t sizes[] = {of_queries, of_queries, d, d};
    mixed = me_view(e, mixed,
                    ME_SHAPE(me_dim(mixed, 0), me_dim(mixed, 1), g,
                             (is_gated ? of_queries : 0) + of_queries + 2 * d));
    me_tensor *parts[4] = {NULL}; // query, gate, key, value
    me_split_last(e, mixed, is_gated ? 4 : 3, is_gated ? sizes : sizes + 1,
                  is_gated ? parts : parts + 1);
    if (!is_gated) {
        parts[0] = parts[1];
        parts[1] = NULL;
    }
    me_tensor *made[4] = {
        heads_of(nn, parts[0], g * per_group, shares_group),
        parts[2],
        parts[3],
        NULL,
    };
    if (c->model.qk_layernorm || c->model.qk_l2_norm) {
        norm_query_key(nn, attention, made);
    }
    if (is_gated) {
        made[3] = heads_of(nn, parts[1], g * per_group, shares_group);
    }
    memcpy(qkv_out, made, sizeof made);
    me_leave_with(e, frame, is_gated ? 4 : 3, qkv_out);
}

/** apply_rotary_pos_emb(): queries or keys, (s, b, a/t, d). */
static me_tensor *rotate(me_nn *nn, me_tensor *x, me_tensor *angles)
{
    const me_backend *backend = me_backend_of(nn);
    if (backend->fused_rope != NULL && nn->config->train.apply_rope_fusion) {
        me_launch_host(nn->e, ME_HOST_ROTARY);
        return backend->fused_rope(nn->e, x, angles);
    }
    return me_apply_rotary(nn, x, angles, false);
}

me_tensor *me_attention_run_core(me_nn *nn, const me_core_attention *core,
                                 me_tensor *qkv[3], me_tensor *mask)
{
    me_engine *e = nn->e;
    me_offload_group group;
    if (me_core_attention_is_recomputed(nn)) {
        return me_core_attention_forward(nn, core, qkv[0], qkv[1], qkv[2],
                                         mask);
    }
    qkv[0] = me_rebind(
        e, qkv[0], me_offload_enter(nn, &group, ME_OFFLOAD_CORE_ATTN, qkv[0]));
    me_tensor *context =
        me_core_attention_forward(nn, core, qkv[0], qkv[1], qkv[2], mask);
    me_offload_exit(nn, &group);
    return me_rebind(e, context,
                     me_offload_commit(nn, &group, context, 3, qkv));
}

me_tensor *me_attention_project(me_nn *nn, const me_linear *projection,
                                me_tensor *context)
{
    me_engine *e = nn->e;
    me_offload_group group;
    context =
        me_rebind(e, context,
                  me_offload_enter(nn, &group, ME_OFFLOAD_ATTN_PROJ, context));
    me_tensor *y = me_row_parallel(nn, projection, context);
    me_offload_exit(nn, &group);
    return me_rebind(e, y, me_offload_commit(nn, &group, y, 1, &context));
}

me_tensor *me_attention_forward(me_nn *nn, const me_attention *attention,
                                me_tensor *x, me_tensor *mask,
                                me_tensor *angles)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    if (attention->has_no_rope) {
        angles = NULL;
    }
    me_module_enter(e, attention->module);
    const me_frame frame = me_enter(e);
    me_tensor *qkv[4] = {NULL}; // held to the end: a tuple; the last: a gate
    me_launch_host(e, ME_HOST_ATTENTION);
    me_offload_group group;
    x = me_offload_enter(nn, &group, ME_OFFLOAD_QKV_LINEAR, x);
    query_key_value(nn, attention, x, qkv);
    me_offload_exit(nn, &group);
    qkv[0] =
        me_rebind(e, qkv[0], me_offload_commit(nn, &group, qkv[0], 0, NULL));
    me_tensor *turned[3] = {qkv[0], qkv[1], qkv[2]};
    if (angles != NULL) {
        turned[0] = rotate(nn, qkv[0], angles); // (s, b, a/t, d)
        turned[1] = rotate(nn, qkv[1], angles); // (s, b, g/t, d)
    }
    me_tensor *context =
        me_attention_run_core(nn, &attention->core_attention, turned, mask);
    if (qkv[3] != NULL) {
        context =
            me_rebind(e, context, me_fused_output_gate(e, context, qkv[3]));
        me_drop(e, qkv[3]);
    }
    me_tensor *y = me_attention_project(nn, &attention->linear_proj, context);

    if (angles != NULL) { // the tuple goes, its last item first
        me_drop(e, qkv[1]);
        me_drop(e, qkv[0]);
    }
    me_drop(e, turned[1]); // then the names key, value, query
    me_drop(e, turned[2]);
    me_drop(e, turned[0]);
    me_leave(e, frame, y);
    me_module_leave(e);
    return y;
}
