/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/mla_rope.h"

#include "nn/megatron/rope.h"
#include "ops/view.h"
#include "tensor/autograd.h"

static const me_op query_kernel = {"mla_rope_q",
                                   .cost = ME_COST(CAST, 0, 1, 1)};
static const me_op key_value_kernel = {"mla_rope_kv",
                                       .cost = ME_COST(CAST, 0, 1, 1)};

bool me_mla_rope_is_fused(const me_nn *nn)
{
    const me_model_config *c = &nn->config->model;
    return nn->config->train.apply_rope_fusion &&
           c->rope_type == ME_ROPE_TYPE_YARN;
}

/** Kernels, each tuned in its first call. */
enum {
    KERNEL_QUERY,
    KERNEL_KEY_VALUE,
    KERNEL_QUERY_BACKWARD,
    KERNEL_KEY_VALUE_BACKWARD
};

/** Block sizes that are tried, each with triton's buffer that empties the cache;
 *  what a kernel changes in place is copied before (restore_value). */
static void tune(const me_nn *nn, int kernel, const me_tensor *changed)
{
    enum {
        CONFIGURATIONS = 8,
        CACHE_BYTES = 256 << 20
    };

    if (nn->rope_cache == NULL) {
        return;
    }
    bool *is_tuned = &nn->rope_cache->is_tuned[kernel];
    for (int i = 0; i < CONFIGURATIONS && !*is_tuned; i++) {
        me_tensor *cache =
            me_scratch(nn->e, "get_empty_cache_for_benchmark", CACHE_BYTES);
        if (changed != NULL) {
            me_drop(nn->e, me_empty_like(nn->e, "clone", changed));
        }
        me_drop(nn->e, cache);
    }
    *is_tuned = true;
}

static void query_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    me_tensor *dense = me_contiguous(e, gy[0]);
    tune(node->data.context, KERNEL_QUERY_BACKWARD, dense);
    me_op_run(e, &query_kernel, ME_TENSORS(dense), ME_TENSORS(dense));
    gx[0] = me_alias(e, dense, dense->shape, dense->strides);
    if (me_engine_is_ok(e)) {
        gx[0]->is_view = true;
    }
}

static const me_op query_op =
    ME_NODE("ApplyMLARotaryEmbQBackward", query_backward);

me_tensor *me_mla_rope_query(me_nn *nn, me_tensor *q)
{
    me_engine *e = nn->e;
    me_node *node = me_record1(e, &query_op, q);
    if (node != NULL) {
        node->data.context = nn;
    }
    tune(nn, KERNEL_QUERY, q);
    me_op_run(e, &query_kernel, ME_TENSORS(q), ME_TENSORS(q));
    return me_output(e, node, me_alias(e, q, q->shape, q->strides));
}

static void key_value_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    me_tensor *dk = me_contiguous(e, gy[0]);
    me_tensor *dv = me_contiguous(e, gy[1]);
    const uint64_t columns = node->data.n[0];
    const uint64_t width = me_dim(dk, -1) - columns + me_dim(dv, -1);
    gx[0] =
        me_kernel(e, &key_value_kernel, ME_TENSORS(dk, dv), (me_dtype)dk->dtype,
                  me_shape_with_last(&dk->shape, width));
    gx[1] = me_empty(e, key_value_kernel.event, (me_dtype)dk->dtype,
                     ME_SHAPE(me_dim(dk, 0), me_dim(dk, 1), 1, columns));
    tune(node->data.context, KERNEL_KEY_VALUE_BACKWARD, NULL);
    if (me_engine_is_ok(e)) {
        gx[0]->is_view = true;
        gx[1]->is_view = true;
    }
}

static const me_op key_value_op =
    ME_NODE("ApplyMLARotaryEmbKVBackward", key_value_backward);

void me_mla_rope_key_value(me_nn *nn, me_tensor *kv, me_tensor *k_pos_emb,
                           me_tensor **key_value_out)
{
    me_engine *e = nn->e;
    const me_model_config *c = &nn->config->model;
    me_node *node = me_record2(e, &key_value_op, kv, k_pos_emb);
    if (node != NULL) {
        node->data.context = nn;
        node->data.n[0] = c->qk_pos_emb_head_dim;
    }
    me_tensor *key = me_kernel(
        e, &key_value_kernel, ME_TENSORS(kv, k_pos_emb), (me_dtype)kv->dtype,
        me_shape_with_last(&kv->shape,
                           c->qk_head_dim + c->qk_pos_emb_head_dim));
    me_tensor *value = me_empty(e, key_value_kernel.event, (me_dtype)kv->dtype,
                                me_shape_with_last(&kv->shape, c->v_head_dim));
    tune(nn, KERNEL_KEY_VALUE, NULL);
    key_value_out[0] = me_output(e, node, key);
    key_value_out[1] = me_output(e, node, value);
}
