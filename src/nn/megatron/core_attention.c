/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/core_attention.h"

#include "base/size.h"
#include "model/cp_comm.h"
#include "nn/megatron/linear.h"
#include "nn/megatron/te_attention.h"
#include "nn/megatron/te_fp8_state.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/flash_attention.h"
#include "ops/matmul.h"
#include "ops/softmax.h"
#include "ops/view.h"
#include "tensor/launch.h"

enum {
    PRODUCTS = 3 /* of DotProductAttention, to FP8: of queries and keys, of
                    values, and one more */
};

/** Upper triangle of ones as bools, made anew by every layer. */
static me_tensor *causal_mask(me_engine *e, uint64_t s)
{
    const me_frame frame = me_enter(e);
    me_tensor *ones = me_empty(e, "ones", ME_DTYPE_FLOAT32, ME_SHAPE(s, s));
    me_tensor *triangle = me_empty_like(e, "triu", ones);
    me_drop(e, ones);
    me_tensor *mask = me_pointwise(e, "to", triangle, ME_DTYPE_BOOL);
    me_drop(e, triangle);
    return me_leave(e, frame, mask);
}

/** FusedScaleMaskSoftmax.forward_torch_softmax. The scores' last name,
 *  mask_output, stands behind that of a mask that is made here. */
static me_tensor *scale_mask_softmax(me_nn *nn, me_tensor *scores,
                                     me_tensor *mask)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const me_dtype dtype = scores->dtype;
    const bool is_scaled = nn->config->model.query_key_layer_scaling;
    const bool in_fp32 =
        dtype != ME_DTYPE_FLOAT32 &&
        (is_scaled || nn->config->model.attention_softmax_in_fp32);
    me_tensor *input = in_fp32 ? me_cast(e, scores, ME_DTYPE_FLOAT32) : scores;
    if (is_scaled) {
        input = me_rebind_own(e, input, scores, me_mul_number(e, input));
    }
    if (mask == NULL && me_dim(scores, 2) > 1) {
        mask = causal_mask(e, me_dim(scores, 2));
    }
    if (mask != NULL) {
        me_masked_fill_in_place(e, input, mask); // (b, a/t, s, s)
    }
    me_name_last(e, input);
    me_tensor *probs = me_softmax(e, input);
    if (in_fp32) {
        probs = me_rebind(e, probs, me_cast(e, probs, dtype));
    }
    return me_leave(e, frame, probs);
}

/** FusedScaleMaskSoftmax.is_kernel_available() of a causal mask: blocks of Apex's
 *  kernel (get_batch_per_block()) have 128 threads, and a warp takes two rows of
 *  at most 128 columns or one of more. */
static bool has_softmax_kernel(const me_nn *nn, const me_tensor *scores)
{
    enum {
        LEAST_KEYS = 16,
        MOST_KEYS = 4096,
        TWO_ROWS_KEYS = 128,
        BLOCK_WARPS = 4
    };

    const uint64_t queries = me_dim(scores, 2);
    const uint64_t keys = me_dim(scores, 3);
    const uint64_t batches = me_size_mul(me_dim(scores, 0), me_dim(scores, 1));
    const uint64_t block =
        keys <= TWO_ROWS_KEYS ? 2 * BLOCK_WARPS : BLOCK_WARPS;
    return nn->config->train.masked_softmax_fusion &&
           nn->config->model.softmax_type == ME_SOFTMAX_VANILLA &&
           scores->dtype != ME_DTYPE_FLOAT32 && keys > LEAST_KEYS &&
           keys <= MOST_KEYS && queries % 4 == 0 && keys % 4 == 0 &&
           batches % block == 0;
}

/** Scores of every query against every key: (b, a/t, s, s), from @p query
 *  (s, ba, d) and key that has as many heads. The product itself lives on in
 *  the caller. */
static me_tensor *scores_of(me_nn *nn, me_tensor *query, me_tensor *key)
{
    me_engine *e = nn->e;
    const uint64_t s = me_dim(key, 0);
    const uint64_t b = me_dim(key, 1);
    const uint64_t a = me_dim(key, 2);
    const uint64_t d = me_dim(key, 3);
    me_tensor *rows = me_view(e, key, ME_SHAPE(s, b * a, d)); // named key
    me_global_buffer(nn, query->dtype, ME_SHAPE(b * a, s, s));
    me_tensor *q = me_transpose(e, query, 0, 1); // (ba, s, d)
    me_tensor *k = me_transpose(e, rows, 0, 1);
    me_tensor *kt = me_transpose(e, k, 1, 2);  // (ba, d, s)
    me_tensor *product = me_baddbmm(e, q, kt); // (ba, s, s)
    me_drop(e, kt);
    me_drop(e, k);
    me_drop(e, rows); // the caller's name keeps what it views
    return me_view(e, product, ME_SHAPE(b, a, s, s));
}

/** Values weighed by probabilities, heads beside each other: (s, b, ad/t). */
static me_tensor *context_of(me_engine *e, me_tensor *probs, me_tensor *value)
{
    const uint64_t s = me_dim(value, 0);
    const uint64_t b = me_dim(value, 1);
    const uint64_t a = me_dim(value, 2);
    const uint64_t d = me_dim(value, 3);
    me_tensor *named = me_view(e, value, ME_SHAPE(s, b * a, d));
    me_tensor *p = me_view(e, probs, ME_SHAPE(b * a, s, s));
    me_tensor *v = me_transpose(e, named, 0, 1);
    me_tensor *rows = me_bmm(e, p, v); // (ba, s, d)
    me_drop(e, v);
    me_drop(e, named); // as in scores_of()
    me_tensor *heads = me_view(e, rows, ME_SHAPE(b, a, s, d));
    me_tensor *turned = me_permute(e, heads, (int32_t[]){2, 0, 1, 3});
    me_tensor *context = me_contiguous(e, turned); // (s, b, a, d)
    if (context != turned) {
        me_drop(e, rows);
        me_drop(e, heads);
        me_drop(e, turned);
    }
    return me_view(e, context, ME_SHAPE(s, b, a * d));
}

/** Megatron's DotProductAttention.forward. */
static me_tensor *unfused(me_nn *nn, const me_core_attention *core,
                          me_tensor *const *inputs)
{
    (void)core;
    me_engine *e = nn->e;
    me_tensor *query = inputs[0];
    me_tensor *key = inputs[1];
    me_tensor *value = inputs[2];
    const me_frame frame = me_enter(e);
    const uint64_t a = me_dim(query, 2);
    if (me_dim(key, 2) != a) {
        key = me_repeat_heads(e, key, a / me_dim(key, 2));
        value = me_repeat_heads(e, value, a / me_dim(value, 2));
    }
    query = me_reshape(
        e, query,
        ME_SHAPE(me_dim(query, 0), me_dim(query, 1) * a, me_dim(query, 3)));
    me_name_last(e, key); // an argument, as query, which dies first
    me_name_last(e, value);
    me_tensor *scores = scores_of(nn, query, key);
    me_tensor *probs = has_softmax_kernel(nn, scores)
                           ? me_scaled_masked_softmax(e, scores)
                           : scale_mask_softmax(nn, scores, inputs[3]);
    me_tensor *dropped =
        me_dropout(e, probs, nn->config->model.attention_dropout);
    probs = me_rebind(e, probs, dropped);
    return me_leave(e, frame, context_of(e, probs, value));
}

/** scaled_dot_product_attention with heads before the sequence. */
static me_tensor *sdpa_flash(me_nn *nn, const me_core_attention *core,
                             me_tensor *const *inputs)
{
    (void)core;
    me_engine *e = nn->e;
    me_tensor *query = inputs[0];
    me_tensor *key = inputs[1];
    me_tensor *value = inputs[2];
    const me_frame frame = me_enter(e);
    const int32_t order[4] = {1, 2, 0, 3};
    me_tensor *q = me_permute(e, query, order); // (b, a, s, d)
    me_tensor *k = me_permute(e, key, order);
    me_tensor *v = me_permute(e, value, order);
    me_tensor *o =
        me_sdpa_flash(e, q, k, v, nn->config->model.attention_dropout);
    me_tensor *turned = me_permute(e, o, (int32_t[]){2, 0, 1, 3});
    const uint64_t width = me_size_mul(me_dim(query, 2), me_dim(value, 3));
    return me_leave(
        e, frame,
        me_reshape(e, turned,
                   ME_SHAPE(me_dim(query, 0), me_dim(query, 1), width)));
}

/** What the softmax sums beside the scores, or NULL. */
static me_tensor *offset_of(const me_core_attention *core)
{
    return core->softmax_offset != NULL ? core->softmax_offset->tensor
                                        : core->softmax_one;
}

static me_tensor *te_fused(me_nn *nn, const me_core_attention *core,
                           me_tensor *const *inputs)
{
    return me_te_attention_fused(nn, core->cp_comm_type, inputs,
                                 offset_of(core));
}

static me_tensor *te_unfused(me_nn *nn, const me_core_attention *core,
                             me_tensor *const *inputs)
{
    return me_te_attention_unfused(nn, inputs,
                                   &(me_te_unfused_spec){
                                       .mask = inputs[3],
                                       .offset = offset_of(core),
                                       .is_windowed = core->is_windowed,
                                       .max_logits = core->max_logits,
                                   });
}

static me_tensor *te_flash(me_nn *nn, const me_core_attention *core,
                           me_tensor *const *inputs)
{
    return me_te_attention_flash(nn, core->cp_comm_type, inputs);
}

static me_tensor *te_flash_3(me_nn *nn, const me_core_attention *core,
                             me_tensor *const *inputs)
{
    return me_te_attention_flash_3(nn, core->cp_comm_type, core->is_windowed,
                                   inputs);
}

static me_tensor *te_flash_4(me_nn *nn, const me_core_attention *core,
                             me_tensor *const *inputs)
{
    return me_te_attention_flash_4(nn, core->is_windowed, inputs);
}

/** One row an implementation; inputs: query, key, value and mask. */
static me_tensor *(*const implementations[])(me_nn *nn,
                                             const me_core_attention *core,
                                             me_tensor *const *inputs) = {
    [ME_CORE_ATTENTION_UNFUSED] = unfused,
    [ME_CORE_ATTENTION_SDPA_FLASH] = sdpa_flash,
    [ME_CORE_ATTENTION_TE_FUSED] = te_fused,
    [ME_CORE_ATTENTION_TE_UNFUSED] = te_unfused,
    [ME_CORE_ATTENTION_TE_FLASH] = te_flash,
    [ME_CORE_ATTENTION_TE_FLASH_3] = te_flash_3,
    [ME_CORE_ATTENTION_TE_FLASH_4] = te_flash_4,
};

static me_tensor *forward(me_nn *nn, const me_core_attention *core,
                          me_tensor *const *inputs)
{
    me_module_enter(nn->e, core->module);
    me_fp8_prepare_forward(nn, core->fp8);
    me_tensor *y = implementations[core->kind](nn, core, inputs);
    me_module_leave(nn->e);
    return y;
}

static me_tensor *run_section(const me_section *section,
                              me_tensor *const *inputs)
{
    return forward(section->nn, section->self, inputs);
}

/** TE's DotProductAttention makes what its softmax sums beside the scores. */
static void create_softmax_offset(me_nn *nn, me_core_attention *core)
{
    const me_model_config *c = &nn->config->model;
    const me_shape shape = ME_SHAPE(me_over_tensor(nn, c->num_attention_heads));
    if (nn->config->impl.transformer != ME_TRANSFORMER_ENGINE) {
        return;
    }
    if (c->softmax_type == ME_SOFTMAX_OFF_BY_ONE) {
        core->softmax_one = me_keep(nn->e, "softmax_offset", ME_CATEGORY_BUFFER,
                                    ME_DTYPE_FLOAT32, shape);
    } else if (c->softmax_type == ME_SOFTMAX_LEARNABLE) {
        core->softmax_offset =
            me_parameter_create_as(nn,
                                   &(me_parameter_spec){
                                       .name = "softmax_offset",
                                       .module = core->module,
                                       .shape = shape,
                                       // its heads; no attribute says so
                                       .is_tensor_sharded = false,
                                   },
                                   ME_DTYPE_FLOAT32);
    }
}

int32_t me_attention_number(const me_nn *nn, int32_t number)
{
    const int32_t layers = nn->config->model.num_layers;
    return number < layers || layers < 1 ? number : (number - layers) % layers;
}

/** is_layer_window_attention() */
static bool is_windowed(const me_nn *nn, int32_t number)
{
    return nn->is_window_layer != NULL && number >= 0 &&
           nn->is_window_layer[me_attention_number(nn, number)];
}

static bool keeps_max_logits(const me_nn *nn)
{
    return nn->config->model.qk_clip ||
           nn->config->model.log_max_attention_logit;
}

void me_core_attention_create(me_nn *nn, me_module_id parent, int32_t number,
                              me_core_attention *core)
{
    core->is_windowed = is_windowed(nn, number);
    core->cp_comm_type =
        me_cp_comm_of(&nn->config->parallel, me_attention_number(nn, number));
    core->kind = core->is_windowed ? nn->config->impl.window_attention
                                   : nn->config->impl.core_attention;
    core->max_logits = keeps_max_logits(nn)
                           ? me_engine_alloc(nn->e, 1, sizeof *core->max_logits)
                           : NULL;
    core->module =
        me_module_add_as(nn->e, parent, "core_attention",
                         nn->config->impl.transformer == ME_TRANSFORMER_LOCAL
                             ? "DotProductAttention"
                             : "TEDotProductAttention");
    core->section = (me_section){.nn = nn, .run = run_section, .self = core};
    core->fp8 = me_fp8_module_create(nn, PRODUCTS);
    create_softmax_offset(nn, core);
}

void me_core_attention_fini(me_engine *e, me_core_attention *core)
{
    me_clear(e, &core->softmax_one);
    if (core->max_logits != NULL) {
        me_clear(e, core->max_logits);
    }
}

/** SelfAttention.clip_qk(): no score is taken to exceed the threshold. A group of
 *  heads has one number, a head of latent attention its own. */
static void compare_with_threshold(me_nn *nn, me_tensor **largest_kept)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    const me_tensor *largest = *largest_kept;
    uint64_t n = me_numel(largest);
    if (!nn->config->model.multi_latent_attention) {
        n = me_over_tensor(nn, nn->config->model.num_query_groups);
        (void)me_empty(e, "max", (me_dtype)largest->dtype, ME_SHAPE(n));
        me_temporary(e, "max.indices", me_size_mul(n, 8));
    }
    me_tensor *is_above = me_scratch(e, "gt", n);
    me_tensor *any = me_scratch(e, "any", 1);
    me_drop(e, is_above);
    me_drop(e, any);
    me_clear(e, largest_kept); // before what the function has of them
    me_leave(e, frame, NULL);
}

void me_core_attention_clip(me_nn *nn, const me_core_attention *core)
{
    const me_tensor *largest =
        core->max_logits == NULL ? NULL : *core->max_logits;
    if (largest == NULL || !me_engine_is_ok(nn->e)) {
        return;
    }
    me_communicate(nn->e, nn->comm,
                   (me_call){ME_GROUP_DATA_CONTEXT, ME_COLLECTIVE_ALL_REDUCE,
                             largest->dtype, me_numel(largest), -1, false});
    me_temporary(nn->e, "max", me_dtype_bytes((me_dtype)largest->dtype));
    me_launch_host_waits(nn->e); // item()
    if (nn->config->model.qk_clip) {
        compare_with_threshold(nn, core->max_logits);
    }
    me_clear(nn->e, core->max_logits);
}

bool me_core_attention_is_recomputed(const me_nn *nn)
{
    return nn->config->recompute.granularity == ME_RECOMPUTE_SELECTIVE &&
           nn->config->recompute.core_attn;
}

me_tensor *me_core_attention_forward(me_nn *nn, const me_core_attention *core,
                                     me_tensor *query, me_tensor *key,
                                     me_tensor *value, me_tensor *mask)
{
    if (!me_engine_is_ok(nn->e)) {
        return me_none(nn->e);
    }
    me_tensor *const inputs[ME_CHECKPOINT_INPUTS] = {query, key, value, mask};
    if (me_core_attention_is_recomputed(nn)) {
        return me_checkpoint(nn, &core->section, inputs, false);
    }
    return forward(nn, core, inputs);
}
