/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/sdpa.h"

#include "base/size.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** In the order in which they are released. */
enum {
    SDPA_SAVED_KEY,
    SDPA_SAVED_QUERY,
    SDPA_SAVED_VALUE,
    SDPA_SAVED_LSE,
    SDPA_SAVED_OUTPUT,
    SDPA_SAVED_OFFSET,
    SDPA_SAVED_SEED
};

/** Log-sum-exps of the memory-efficient kernel come in rows of so many
 *  (mem_eff_attention/kernel_forward.h, kAlignLSE). */
enum {
    EFFICIENT_ALIGN = 32,
    EFFICIENT_BLOCK = 64,
    CUDNN_SMALL_WORKSPACE = 256
};

/** One float32 a query. */
static me_tensor *per_query(me_engine *e, const char *op,
                            const me_tensor *query, uint64_t align)
{
    return me_empty(e, op, ME_DTYPE_FLOAT32,
                    ME_SHAPE(me_dim(query, 0), me_dim(query, 1),
                             me_round_up(me_dim(query, 2), align)));
}

static void gradients(me_engine *e, const me_node *node, me_tensor **gx)
{
    gx[0] = me_empty_like(e, "sdpa_bwd.dq", node->saved[SDPA_SAVED_QUERY]);
    gx[1] = me_empty_like(e, "sdpa_bwd.dk", node->saved[SDPA_SAVED_KEY]);
    gx[2] = me_empty_like(e, "sdpa_bwd.dv", node->saved[SDPA_SAVED_VALUE]);
}

/** Two products forward, five backward, over the whole square. */
static void count_work(me_engine *e, const me_tensor *query,
                       const me_tensor *key, uint64_t products)
{
    const uint64_t scores = me_size_mul(me_numel(query), me_dim(key, 2));
    me_launch_attention(
        e, products == 2 ? ME_KERNEL_FLASH : ME_KERNEL_FLASH_BACKWARD,
        (me_dtype)query->dtype, me_size_mul(2 * products, scores),
        (uint64_t[3]){me_size_mul(me_dim(query, 0), me_dim(query, 1)),
                      me_dim(query, 2), me_dim(query, 3)});
}

/**
 * Workspace of the memory-efficient backward: the query's gradient in float32,
 * block by block, each with a lock and a counter in 16 bytes
 * (mem_eff_attention/kernel_backward.h, GradQTempStorage).
 */
static uint64_t efficient_workspace(const me_tensor *query)
{
    const uint64_t blocks = me_div_up(me_dim(query, 2), EFFICIENT_BLOCK);
    const uint64_t columns = me_round_up(me_dim(query, 3), EFFICIENT_BLOCK);
    const uint64_t heads = me_size_mul(me_dim(query, 0), me_dim(query, 1));
    return me_size_mul(me_size_mul(heads, blocks),
                       4 * (EFFICIENT_BLOCK * columns + 4));
}

static void efficient_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    const me_tensor *query = node->saved[SDPA_SAVED_QUERY];
    gradients(e, node, gx);
    /* delta = (grad · out).sum(-1): the product, its sum, the sum in float32. */
    me_tensor *product = me_empty(e, "mul", ME_DTYPE_FLOAT32, query->shape);
    me_tensor *sum = per_query(e, "sum", query, 1);
    me_tensor *delta = per_query(e, "sdpa_bwd.delta", query, 1);
    me_drop(e, sum);
    me_drop(e, product);
    me_tensor *workspace =
        me_scratch(e, "sdpa_bwd.workspace", efficient_workspace(query));
    count_work(e, query, node->saved[SDPA_SAVED_KEY], 5);
    me_drop(e, delta);
    me_drop(e, workspace);
    (void)gy;
}

static const me_op efficient_op = {
    "ScaledDotProductEfficientAttentionBackward0", efficient_backward};

/** Before the kernel runs: what its backward needs of the inputs. */
static void save_inputs(me_engine *e, me_node *node, me_tensor *query,
                        me_tensor *key, me_tensor *value)
{
    me_save(e, node, SDPA_SAVED_KEY, key);
    me_save(e, node, SDPA_SAVED_QUERY, query);
    me_save(e, node, SDPA_SAVED_VALUE, value);
}

static me_tensor *efficient(me_engine *e, me_tensor *query, me_tensor *key,
                            me_tensor *value)
{
    me_node *node =
        me_record(e, &efficient_op, 3, (me_tensor *[]){query, key, value});
    save_inputs(e, node, query, key, value);
    me_tensor *out = me_empty_like(e, "sdpa.out", query);
    me_tensor *lse = per_query(e, "sdpa.lse", query, EFFICIENT_ALIGN);
    count_work(e, query, key, 2);
    me_save(e, node, SDPA_SAVED_LSE, lse);
    me_save(e, node, SDPA_SAVED_OUTPUT, out);
    me_drop(e, lse);
    return me_output(e, node, out);
}

/** cuDNN's workspace: the query's gradient and one number a query in float32. */
static void cudnn_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    const me_tensor *query = node->saved[SDPA_SAVED_QUERY];
    const uint64_t heads = me_size_mul(me_dim(query, 0), me_dim(query, 1));
    const uint64_t queries = me_size_mul(heads, me_dim(query, 2));
    gradients(e, node, gx);
    me_tensor *workspace = me_scratch(
        e, "cudnn_workspace",
        me_size_add(me_size_mul(4 * queries, me_dim(query, 3)),
                    me_size_add(4 * queries, CUDNN_SMALL_WORKSPACE)));
    count_work(e, query, node->saved[SDPA_SAVED_KEY], 5);
    me_drop(e, workspace);
    (void)gy;
}

static const me_op cudnn_op = {"ScaledDotProductCudnnAttentionBackward0",
                               cudnn_backward};

static me_tensor *cudnn(me_engine *e, me_tensor *query, me_tensor *key,
                        me_tensor *value)
{
    me_node *node =
        me_record(e, &cudnn_op, 3, (me_tensor *[]){query, key, value});
    save_inputs(e, node, query, key, value);
    me_tensor *seed = me_empty(e, "sdpa.seed", ME_DTYPE_INT64, ME_SCALAR);
    me_tensor *offset = me_empty(e, "sdpa.offset", ME_DTYPE_INT64, ME_SCALAR);
    me_tensor *out = me_empty_like(e, "sdpa.out", query);
    me_tensor *lse = per_query(e, "sdpa.lse", query, 1);
    me_drop(e, me_scratch(e, "cudnn_workspace", CUDNN_SMALL_WORKSPACE));
    count_work(e, query, key, 2);
    me_save(e, node, SDPA_SAVED_LSE, lse);
    me_save(e, node, SDPA_SAVED_OUTPUT, out);
    me_save(e, node, SDPA_SAVED_OFFSET, offset);
    me_save(e, node, SDPA_SAVED_SEED, seed);
    me_drop(e, lse);
    me_drop(e, offset);
    me_drop(e, seed);
    return me_output(e, node, out);
}

me_tensor *me_sdpa(me_engine *e, me_tensor *query, me_tensor *key,
                   me_tensor *value)
{
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    return query->dtype == ME_DTYPE_FLOAT32 ? efficient(e, query, key, value)
                                            : cudnn(e, query, key, value);
}
