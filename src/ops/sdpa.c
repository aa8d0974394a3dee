/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/sdpa.h"

#include "base/size.h"
#include "ops/autocast_casts.h"
#include "tensor/autograd.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"
#include "tensor/region.h"

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

/** One number a query. */
static me_shape per_query(const me_tensor *query, uint64_t align)
{
    return ME_SHAPE(me_dim(query, 0), me_dim(query, 1),
                    me_round_up(me_dim(query, 2), align));
}

/** Log-sum-exps, which these two kernels make only where a backward will read
 *  them (attention.cpp, should_compute_logsumexp()). */
static me_tensor *make_lse(me_engine *e, const me_node *node,
                           const me_tensor *query, uint64_t align)
{
    return me_empty(e, "sdpa.lse", ME_DTYPE_FLOAT32,
                    node == NULL
                        ? ME_SHAPE(me_dim(query, 0), me_dim(query, 1), 0)
                        : per_query(query, align));
}

static void gradients(me_engine *e, const me_node *node, me_tensor **gx)
{
    gx[0] = me_empty_like(e, "sdpa_bwd.dq", node->saved[SDPA_SAVED_QUERY]);
    gx[1] = me_empty_like(e, "sdpa_bwd.dk", node->saved[SDPA_SAVED_KEY]);
    gx[2] = me_empty_like(e, "sdpa_bwd.dv", node->saved[SDPA_SAVED_VALUE]);
}

/** Of @p products over the whole square of queries and keys. */
static uint64_t square_flops(const me_tensor *query, const me_tensor *key,
                             uint64_t products)
{
    return me_size_mul(2 * products,
                       me_size_mul(me_numel(query), me_dim(key, 2)));
}

/** Two products forward, five backward, over the whole square. */
static void count_work(me_engine *e, const me_tensor *query,
                       const me_tensor *key, uint64_t products)
{
    me_launch_attention(
        e, products == 2 ? ME_KERNEL_FLASH : ME_KERNEL_FLASH_BACKWARD,
        (me_dtype)query->dtype, square_flops(query, key, products),
        (uint64_t[3]){me_size_mul(me_dim(query, 0), me_dim(query, 1)),
                      me_dim(query, 2), me_dim(query, 3)});
}

/** Seed and offset of the random numbers: int64s, of the memory-efficient kernel
 *  on the host. */
static uint64_t host_bytes(const me_tensor *seed)
{
    return seed == NULL ? 2 * sizeof(int64_t) : 0;
}

/** @param results  seed, offset, output, log-sum-exps */
static void tell_forward(me_engine *e, const char *op,
                         const me_tensor *const inputs[3],
                         const me_tensor *const results[4])
{
    me_tell_operation(
        e, &(me_operation){.name = op,
                           .arguments = {.count = 3, .items = inputs},
                           .results = {.count = 4, .items = results},
                           .more_bytes = host_bytes(results[0]),
                           .flops = square_flops(inputs[0], inputs[1], 2)});
}

static void tell_backward(me_engine *e, const char *op, const me_node *node,
                          const me_tensor *gy, me_tensor *const *gx)
{
    me_tensor *const *saved = node->saved;
    me_tell_operation(
        e,
        &(me_operation){.name = op,
                        .arguments = ME_TENSORS(
                            gy, saved[SDPA_SAVED_QUERY], saved[SDPA_SAVED_KEY],
                            saved[SDPA_SAVED_VALUE], saved[SDPA_SAVED_OUTPUT],
                            saved[SDPA_SAVED_LSE], saved[SDPA_SAVED_SEED],
                            saved[SDPA_SAVED_OFFSET]),
                        .results = ME_TENSORS(gx[0], gx[1], gx[2]),
                        .more_bytes = host_bytes(saved[SDPA_SAVED_SEED]),
                        .flops = square_flops(saved[SDPA_SAVED_QUERY],
                                              saved[SDPA_SAVED_KEY], 5)});
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
    // delta = (grad · out).sum(-1): the product, its sum, the sum in float32.
    me_tensor *product =
        me_empty_inside(e, "mul", ME_DTYPE_FLOAT32, query->shape);
    me_tensor *sum =
        me_empty_inside(e, "sum", ME_DTYPE_FLOAT32, per_query(query, 1));
    me_tensor *delta = me_empty_inside(e, "sdpa_bwd.delta", ME_DTYPE_FLOAT32,
                                       per_query(query, 1));
    me_drop(e, sum);
    me_drop(e, product);
    me_tensor *workspace =
        me_scratch(e, "sdpa_bwd.workspace", efficient_workspace(query));
    count_work(e, query, node->saved[SDPA_SAVED_KEY], 5);
    me_drop(e, delta);
    me_drop(e, workspace);
    tell_backward(e, "_scaled_dot_product_efficient_attention_backward.default",
                  node, gy[0], gx);
}

static const me_op efficient_op =
    ME_NODE("ScaledDotProductEfficientAttentionBackward0", efficient_backward);

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
    me_tensor *results[2] = {NULL, NULL};
    me_tensor *seed = NULL;
    me_tensor *offset = NULL;
    if (!me_region_kept(e, ME_REGION_ATTENTION, 2, results)) {
        results[0] = me_empty_like(e, "sdpa.out", query);
        results[1] = make_lse(e, node, query, EFFICIENT_ALIGN);
        if (me_is_fake(e)) { // else they are on the host
            seed = me_empty(e, "sdpa.seed", ME_DTYPE_INT64, ME_SCALAR);
            offset = me_empty(e, "sdpa.offset", ME_DTYPE_INT64, ME_SCALAR);
        }
        count_work(e, query, key, 2);
        tell_forward(
            e, "_scaled_dot_product_efficient_attention.default",
            (const me_tensor *[]){query, key, value},
            (const me_tensor *[]){seed, offset, results[0], results[1]});
        me_region_keep(e, ME_REGION_ATTENTION, 2, results);
    }
    me_save(e, node, SDPA_SAVED_LSE, results[1]);
    me_save(e, node, SDPA_SAVED_OUTPUT, results[0]);
    me_save(e, node, SDPA_SAVED_OFFSET, offset);
    me_save(e, node, SDPA_SAVED_SEED, seed);
    me_drop(e, results[1]);
    me_drop(e, offset);
    me_drop(e, seed);
    return me_output(e, node, results[0]);
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
    tell_backward(e, "_scaled_dot_product_cudnn_attention_backward.default",
                  node, gy[0], gx);
}

static const me_op cudnn_op = {.node =
                                   "ScaledDotProductCudnnAttentionBackward0",
                               .backward = cudnn_backward};

/** What the forward kernel makes. */
enum {
    CUDNN_SEED,
    CUDNN_OFFSET,
    CUDNN_OUT,
    CUDNN_LSE,
    CUDNN_RESULTS
};

/** @param qkv  three tensors */
static void run_cudnn(me_engine *e, const me_node *node,
                      const me_tensor *const *qkv, me_tensor **results_out)
{
    const me_tensor *query = qkv[0];
    results_out[CUDNN_SEED] =
        me_empty(e, "sdpa.seed", ME_DTYPE_INT64, ME_SCALAR);
    results_out[CUDNN_OFFSET] =
        me_empty(e, "sdpa.offset", ME_DTYPE_INT64, ME_SCALAR);
    results_out[CUDNN_OUT] = me_empty_like(e, "sdpa.out", query);
    results_out[CUDNN_LSE] = make_lse(e, node, query, 1);
    me_temporary(e, "cudnn_workspace", CUDNN_SMALL_WORKSPACE);
    tell_forward(e, "_scaled_dot_product_cudnn_attention.default", qkv,
                 (const me_tensor *const *)results_out);
    count_work(e, query, qkv[1], 2);
}

static me_tensor *cudnn(me_engine *e, me_tensor *query, me_tensor *key,
                        me_tensor *value)
{
    me_node *node =
        me_record(e, &cudnn_op, 3, (me_tensor *[]){query, key, value});
    save_inputs(e, node, query, key, value);
    me_tensor *results[CUDNN_RESULTS] = {NULL};
    if (!me_region_kept(e, ME_REGION_ATTENTION, CUDNN_RESULTS, results)) {
        run_cudnn(e, node, (const me_tensor *[]){query, key, value}, results);
        me_region_keep(e, ME_REGION_ATTENTION, CUDNN_RESULTS, results);
    }
    me_save(e, node, SDPA_SAVED_LSE, results[CUDNN_LSE]);
    me_save(e, node, SDPA_SAVED_OUTPUT, results[CUDNN_OUT]);
    me_save(e, node, SDPA_SAVED_OFFSET, results[CUDNN_OFFSET]);
    me_save(e, node, SDPA_SAVED_SEED, results[CUDNN_SEED]);
    me_drop(e, results[CUDNN_LSE]);
    me_drop(e, results[CUDNN_OFFSET]);
    me_drop(e, results[CUDNN_SEED]);
    return me_output(e, node, results[CUDNN_OUT]);
}

/** validate_sdpa_input(): one floating-point type. */
static bool are_alike(me_engine *e, const me_tensor *query,
                      const me_tensor *key, const me_tensor *value)
{
    if (me_engine_is_ok(e) &&
        (!me_dtype_is_floating((me_dtype)query->dtype) ||
         query->dtype != key->dtype || query->dtype != value->dtype)) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "scaled_dot_product_attention of q, k and v of %s, %s "
                       "and %s: PyTorch wants one floating-point type",
                       me_dtype_name((me_dtype)query->dtype),
                       me_dtype_name((me_dtype)key->dtype),
                       me_dtype_name((me_dtype)value->dtype));
    }
    return me_engine_is_ok(e);
}

/** validate_sdpa_input() compares k and v with q; the choice of a kernel, and what
 *  follows it, asks of q: two kernels are turned down for float32, then one of
 *  two questions is taken; cuDNN's is the first (transformers/attention.cpp,
 *  cuda/sdp_utils.cpp). */
static void tell_choice(me_engine *e, const me_tensor *query,
                        const me_tensor *key, const me_tensor *value)
{
    me_tell_device_query(e, key);
    me_tell_device_query(e, query);
    me_tell_device_query(e, value);
    me_tell_device_queries(e, query, query->dtype == ME_DTYPE_FLOAT32 ? 8 : 6);
}

me_tensor *me_sdpa(me_engine *e, me_tensor *query, me_tensor *key,
                   me_tensor *value)
{
    if (!me_engine_is_ok(e)) {
        return me_none(e);
    }
    const me_frame frame = me_enter(e);
    value = me_autocast_lower(e, value);
    key = me_autocast_lower(e, key);
    query = me_autocast_lower(e, query);
    if (!are_alike(e, query, key, value)) {
        return me_leave(e, frame, me_none(e));
    }
    tell_choice(e, query, key, value);
    me_tensor *y = query->dtype == ME_DTYPE_FLOAT32
                       ? efficient(e, query, key, value)
                       : cudnn(e, query, key, value);
    return me_leave(e, frame, y);
}
