/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/multi_latent_attention.h"

#include "nn/megatron/attention.h"
#include "nn/megatron/backend.h"
#include "nn/megatron/fine_offload.h"
#include "nn/megatron/mla_rope.h"
#include "ops/view.h"

/** Attention.__init__() makes a projection for heads of kv_channels, which
 *  MultiLatentAttention.__init__() then replaces. */
static void make_base_projection(me_nn *nn, me_tensor **weight,
                                 me_tensor **bias)
{
    const me_config *c = nn->config;
    const uint64_t inputs =
        me_over_tensor(nn, c->model.num_attention_heads * c->model.kv_channels);
    const me_category category = me_category_set(nn->e, ME_CATEGORY_PARAMETER);
    *weight = me_empty(nn->e, "weight", c->train.params_dtype,
                       ME_SHAPE(c->model.hidden_size, inputs));
    *bias = c->model.add_bias_linear
                ? me_empty(nn->e, "bias", c->train.params_dtype,
                           ME_SHAPE(c->model.hidden_size))
                : NULL;
    me_category_set(nn->e, category);
}

/** A projection that is cut over tensor ranks; with the norm of its @p inputs
 *  columns where there is one and the back end has both as one. */
static me_linear column_parallel(me_nn *nn, me_module_id parent,
                                 const char *name, uint64_t inputs,
                                 uint64_t outputs, bool has_norm)
{
    return me_column_linear_create(
        nn, &(me_linear_spec){
                .name = name,
                .parent = parent,
                .inputs = inputs,
                .outputs = outputs,
                .has_norm =
                    has_norm && me_backend_of(nn)->fuse_layernorm_and_linear,
            });
}

/** A projection down to a latent: whole on each tensor rank, if the back end
 *  has such a layer. */
static me_linear down_projection(me_nn *nn, me_module_id parent,
                                 const char *name, uint64_t outputs)
{
    return me_column_linear_create(
        nn, &(me_linear_spec){
                .name = name,
                .parent = parent,
                .inputs = nn->config->model.hidden_size,
                .outputs = outputs,
                .is_duplicated = me_backend_of(nn)->linear != NULL,
            });
}

/** FusedMLASelfAttention: both latents and the norm before them are of one
 *  layer, whose columns are cut over tensor ranks. */
static bool fuses_down_projections(const me_nn *nn)
{
    return nn->config->model.mla_down_proj_fusion &&
           me_backend_of(nn)->fuse_layernorm_and_linear;
}

static void create_query_projections(me_nn *nn, me_multi_latent_attention *a)
{
    const me_model_config *c = &nn->config->model;
    const uint64_t outputs =
        c->num_attention_heads * (c->qk_head_dim + c->qk_pos_emb_head_dim);
    if (c->q_lora_rank == 0) {
        // QKNormConfigResolver: normed once more, by a weight of its own.
        a->linear_q_proj =
            column_parallel(nn, a->module, "linear_q_proj", c->hidden_size,
                            outputs, c->qk_layernorm);
        return;
    }
    if (fuses_down_projections(nn)) {
        a->linear_qkv_down_proj = column_parallel(
            nn, a->module, "linear_qkv_down_proj", c->hidden_size,
            c->q_lora_rank + c->kv_lora_rank + c->qk_pos_emb_head_dim, true);
    } else {
        a->linear_q_down_proj = down_projection(
            nn, a->module, "linear_q_down_proj", c->q_lora_rank);
    }
    a->linear_q_up_proj =
        column_parallel(nn, a->module, "linear_q_up_proj", c->q_lora_rank,
                        outputs, c->qk_layernorm);
}

static void create_key_value_projections(me_nn *nn,
                                         me_multi_latent_attention *a)
{
    const me_model_config *c = &nn->config->model;
    if (!fuses_down_projections(nn)) {
        a->linear_kv_down_proj =
            down_projection(nn, a->module, "linear_kv_down_proj",
                            c->kv_lora_rank + c->qk_pos_emb_head_dim);
    }
    a->linear_kv_up_proj = column_parallel(
        nn, a->module, "linear_kv_up_proj", c->kv_lora_rank,
        c->num_attention_heads * (c->qk_head_dim + c->v_head_dim),
        c->qk_layernorm);
}

/** Norms of the latents that are no part of the projections up. */
static void create_norms(me_nn *nn, me_multi_latent_attention *a)
{
    const me_model_config *c = &nn->config->model;
    if (!c->qk_layernorm || me_backend_of(nn)->fuse_layernorm_and_linear) {
        return;
    }
    if (c->q_lora_rank > 0) {
        a->q_layernorm =
            me_norm_create(nn, a->module, "q_layernorm", c->q_lora_rank);
    }
    a->kv_layernorm =
        me_norm_create(nn, a->module, "kv_layernorm", c->kv_lora_rank);
}

/** All ranks' columns, where a layer has made this rank's. */
static me_tensor *gather_columns(me_nn *nn, me_tensor *x)
{
    return nn->config->parallel.tensor == 1
               ? x
               : me_rebind(nn->e, x,
                           me_gather_from_tensor_region(nn->e, nn->comm, x));
}

/** This rank's rows again, where a column-parallel layer gathered them. */
static me_tensor *scatter_rows(me_nn *nn, me_tensor *x)
{
    return !nn->config->parallel.sequence
               ? x
               : me_rebind(nn->e, x,
                           me_scatter_to_sequence_region(nn->e, nn->comm, x));
}

/** A down projection: of this rank's rows, or of all rows and this rank's
 *  columns, which are gathered. */
static me_tensor *project_down(me_nn *nn, const me_linear *linear, me_tensor *x)
{
    return linear->is_duplicated
               ? me_backend_of(nn)->linear(nn, linear, x)
               : gather_columns(nn, me_column_parallel(nn, linear, x));
}

/** _qkv_down_projection(): the query's latent (s/t, b, Q), or @p x without one,
 *  and that of key and value with the columns that turn, (s, b, V + r), of this
 *  rank's rows if the layer is duplicated. */
static void project_down_both(me_nn *nn,
                              const me_multi_latent_attention *attention,
                              me_tensor *x, me_tensor **out)
{
    const me_multi_latent_attention *a = attention;
    if (nn->config->model.q_lora_rank == 0) {
        out[0] = x;
    } else {
        out[0] = project_down(nn, &a->linear_q_down_proj, x);
        if (!a->linear_q_down_proj.is_duplicated) {
            out[0] = scatter_rows(nn, out[0]);
        }
    }
    out[1] = project_down(nn, &a->linear_kv_down_proj, x);
}

/** The same of FusedMLASelfAttention. */
static void project_down_at_once(me_nn *nn,
                                 const me_multi_latent_attention *attention,
                                 me_tensor *x, me_tensor **out)
{
    const me_model_config *c = &nn->config->model;
    const me_frame frame = me_enter(nn->e);
    me_tensor *qkv =
        me_column_parallel(nn, &attention->linear_qkv_down_proj, x);
    const uint64_t sizes[2] = {
        me_over_tensor(nn, c->q_lora_rank),
        me_over_tensor(nn, c->kv_lora_rank + c->qk_pos_emb_head_dim)};
    me_split_last(nn->e, qkv, 2, sizes, out);
    out[0] = scatter_rows(nn, gather_columns(nn, out[0]));
    me_leave_with(nn->e, frame, 2, out);
    out[1] = gather_columns(nn, out[1]);
}

/** `x = norm(x)`, or nothing where there is no such norm. */
static me_tensor *normalise(me_nn *nn, const me_norm *norm, me_tensor *x)
{
    return norm->weight == NULL
               ? x
               : me_rebind(nn->e, x, me_norm_forward(nn, norm, x));
}

/** The latents (s/t, b, Q), (s/t, b, V), and the key's columns that turn,
 *  (s, b, r). Without a query latent that is @p x itself. */
static void project_to_latents(me_nn *nn,
                               const me_multi_latent_attention *attention,
                               me_tensor *x, me_tensor **latents_out)
{
    const me_model_config *c = &nn->config->model;
    const me_multi_latent_attention *a = attention;
    me_tensor *down[2] = {NULL, NULL};
    if (fuses_down_projections(nn)) {
        project_down_at_once(nn, a, x, down);
    } else {
        project_down_both(nn, a, x, down);
    }
    me_tensor *parts[2] = {NULL, NULL};
    me_split_last(nn->e, down[1], 2,
                  (uint64_t[]){c->kv_lora_rank, c->qk_pos_emb_head_dim}, parts);
    if (!a->linear_kv_down_proj.is_duplicated) {
        parts[0] = scatter_rows(nn, parts[0]);
    } else if (nn->config->parallel.sequence) {
        parts[1] = me_rebind(
            nn->e, parts[1],
            me_gather_from_sequence_region(nn->e, nn->comm, parts[1]));
    }
    latents_out[1] = parts[0];
    latents_out[2] = parts[1];
    latents_out[0] = normalise(nn, &a->q_layernorm, down[0]);
    latents_out[1] = normalise(nn, &a->kv_layernorm, latents_out[1]);
}

/** An up projection, its columns dealt to heads: (s, b, a/t, d). */
static me_tensor *project_up(me_nn *nn, const me_linear *linear, me_tensor *x,
                             uint64_t head_size)
{
    me_tensor *y = me_column_parallel(nn, linear, x);
    const uint64_t heads =
        me_over_tensor(nn, nn->config->model.num_attention_heads);
    return me_view(nn->e, y,
                   ME_SHAPE(me_dim(y, 0), me_dim(y, 1), heads, head_size));
}

/** What qkv_up_proj_and_rope_apply() works on. */
enum {
    INPUT_QUERY_LATENT,
    INPUT_KEY_VALUE_LATENT,
    INPUT_KEY_POSITION,
    INPUT_ANGLES,
    N_INPUTS
};

/** qkv_up_proj_and_rope_apply(): query and key (s, b, a/t, c + r), value
 *  (s, b, a/t, u). */
static void project_to_heads(const me_section *section,
                             me_tensor *const *latents, me_tensor **qkv_out)
{
    me_nn *nn = section->nn;
    me_engine *e = nn->e;
    const me_multi_latent_attention *attention = section->self;
    const me_model_config *c = &nn->config->model;
    const me_frame frame = me_enter(e);
    me_tensor *angles = latents[INPUT_ANGLES];
    me_tensor *k_pos_emb =
        me_hold(e, latents[INPUT_KEY_POSITION]); // an argument dies first
    me_tensor *q = project_up(nn,
                              c->q_lora_rank > 0 ? &attention->linear_q_up_proj
                                                 : &attention->linear_q_proj,
                              latents[INPUT_QUERY_LATENT],
                              c->qk_head_dim + c->qk_pos_emb_head_dim);
    me_tensor *kv = project_up(nn, &attention->linear_kv_up_proj,
                               latents[INPUT_KEY_VALUE_LATENT],
                               c->qk_head_dim + c->v_head_dim);
    k_pos_emb =
        me_rebind(e, k_pos_emb,
                  me_view(e, k_pos_emb,
                          ME_SHAPE(me_dim(k_pos_emb, 0), me_dim(k_pos_emb, 1),
                                   1, c->qk_pos_emb_head_dim)));
    if (me_mla_rope_is_fused(nn)) {
        qkv_out[0] = me_mla_rope_query(nn, q);
        me_mla_rope_key_value(nn, kv, k_pos_emb, qkv_out + 1);
        me_leave_with(e, frame, 3, qkv_out);
        return;
    }
    me_tensor *query[2] = {NULL, NULL}; // without and with position
    me_tensor *pair[2] = {NULL, NULL};  // key without position, value
    me_split_last(e, q, 2, (uint64_t[]){c->qk_head_dim, c->qk_pos_emb_head_dim},
                  query);
    me_split_last(e, kv, 2, (uint64_t[]){c->qk_head_dim, c->v_head_dim}, pair);
    query[1] =
        me_rebind(e, query[1], me_apply_rotary(nn, query[1], angles, true));
    k_pos_emb =
        me_rebind(e, k_pos_emb, me_apply_rotary(nn, k_pos_emb, angles, true));
    qkv_out[0] = me_cat_last(e, query[0], query[1]);
    me_shape shown = k_pos_emb->shape;
    shown.dim[2] = me_dim(query[0], 2);
    k_pos_emb = me_rebind(e, k_pos_emb, me_expand(e, k_pos_emb, shown));
    qkv_out[1] = me_cat_last(e, pair[0], k_pos_emb);
    qkv_out[2] = me_rebind(e, pair[1], me_contiguous(e, pair[1]));
    me_leave_with(e, frame, 3, qkv_out);
}

/** get_query_key_value_tensors(): query, key, value and the two latents. */
static void query_key_value(me_nn *nn,
                            const me_multi_latent_attention *attention,
                            me_tensor *x, me_tensor **out,
                            me_output_checkpoint **checkpoint_out)
{
    const me_frame frame = me_enter(nn->e);
    const me_recompute_config *recompute = &nn->config->recompute;
    me_tensor *inputs[N_INPUTS] = {NULL};
    if (me_mla_rope_is_fused(nn)) {
        me_rope_cos_sin(nn, attention->rotary_pos_emb);
    } else {
        inputs[INPUT_ANGLES] = me_rope_table(nn, attention->rotary_pos_emb);
    }
    project_to_latents(nn, attention, x, inputs);
    *checkpoint_out = NULL;
    if (recompute->granularity == ME_RECOMPUTE_SELECTIVE &&
        recompute->mla_up_proj) {
        const me_section_call call = {
            .n_inputs = N_INPUTS, .n_outputs = 3, .inputs = inputs};
        me_checkpoint_outputs(nn, &attention->heads_section, &call, out,
                              checkpoint_out);
    } else {
        project_to_heads(&attention->heads_section, inputs, out);
    }
    out[3] = inputs[INPUT_QUERY_LATENT];
    out[4] = inputs[INPUT_KEY_VALUE_LATENT];
    me_leave_with(nn->e, frame, 5, out);
}

/** backward_dw(). */
static void set_turns(me_multi_latent_attention *a)
{
    a->linear_kv_up_proj.turn = ME_TURN_QKV;
    a->linear_kv_down_proj.turn = ME_TURN_KV_DOWN;
    a->linear_qkv_down_proj.turn = ME_TURN_KV_DOWN;
    a->linear_q_proj.turn = ME_TURN_Q_DOWN;
    a->linear_q_down_proj.turn = ME_TURN_Q_DOWN;
    a->linear_q_up_proj.turn = ME_TURN_Q_UP;
    a->linear_proj.turn = ME_TURN_PROJ;
}

void me_multi_latent_attention_create(me_nn *nn, me_module_id parent,
                                      int32_t number,
                                      me_multi_latent_attention *attention)
{
    const me_model_config *c = &nn->config->model;
    me_multi_latent_attention *a = attention;
    a->module =
        me_module_add_as(nn->e, parent, "self_attention",
                         fuses_down_projections(nn) ? "FusedMLASelfAttention"
                                                    : "MLASelfAttention");
    me_core_attention_create(nn, a->module, number, &a->core_attention);
    a->rotary_pos_emb = me_engine_alloc(nn->e, 1, sizeof *a->rotary_pos_emb);
    if (a->rotary_pos_emb == NULL) {
        return;
    }
    const me_frame frame = me_enter(nn->e);
    me_tensor *replaced_weight = NULL;
    me_tensor *replaced_bias = NULL;
    make_base_projection(nn, &replaced_weight, &replaced_bias);
    me_rope_create(nn, a->rotary_pos_emb);
    a->linear_proj = me_row_linear_create(
        nn, &(me_linear_spec){
                .name = "linear_proj",
                .parent = a->module,
                .inputs = c->num_attention_heads * c->v_head_dim,
                .outputs = c->hidden_size,
                .has_bias = c->add_bias_linear,
                .save_original_input = true,
                .skip_bias_add = true,
            });
    me_drop(nn->e, replaced_weight);
    me_drop(nn->e, replaced_bias);
    create_query_projections(nn, a);
    create_key_value_projections(nn, a);
    create_norms(nn, a);
    set_turns(a);
    a->heads_section =
        (me_section){.nn = nn, .run_many = project_to_heads, .self = a};
    me_leave(nn->e, frame, NULL);
}

void me_multi_latent_attention_fini(me_engine *e,
                                    me_multi_latent_attention *attention)
{
    me_core_attention_fini(e, &attention->core_attention);
    if (attention->rotary_pos_emb != NULL) {
        me_rope_fini(e, attention->rotary_pos_emb);
    }
}

me_tensor *
me_multi_latent_attention_forward(me_nn *nn,
                                  const me_multi_latent_attention *attention,
                                  me_tensor *x, me_tensor *mask)
{
    me_engine *e = nn->e;
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    me_module_enter(e, attention->module);
    const me_frame frame = me_enter(e);
    me_tensor *qkv_and_latents[5] = {NULL, NULL, NULL, NULL, NULL};
    me_output_checkpoint *checkpoint = NULL;
    me_offload_group group;
    x = me_offload_enter(nn, &group, ME_OFFLOAD_QKV_LINEAR, x);
    query_key_value(nn, attention, x, qkv_and_latents, &checkpoint);
    me_offload_exit(nn, &group);
    qkv_and_latents[0] =
        me_rebind(e, qkv_and_latents[0],
                  me_offload_commit(nn, &group, qkv_and_latents[0], 1, &x));
    me_hold(e, qkv_and_latents[0]); // core_attn_manager, for offloading
    me_tensor *context = me_attention_run_core(nn, &attention->core_attention,
                                               qkv_and_latents, mask);
    me_checkpoint_discard(checkpoint, context);
    me_tensor *y = me_attention_project(nn, &attention->linear_proj, context);
    me_leave(e, frame, y);
    me_module_leave(e);
    return y;
}
