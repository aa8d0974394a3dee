/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/embedding_lookup.h"

#include "base/size.h"
#include "ops/sort.h"
#include "tensor/autograd.h"
#include "tensor/launch.h"

/** Above so many indices the gradient is made by sorting them
 *  (aten/native/cuda/Embedding.cu). */
enum {
    EMBEDDING_SORT_ABOVE = 3072
};

/** Bytes of CUB's temporary of a compaction, up to 16,384 indices. */
enum {
    CUB_UNIQUE_BYTES = 1279
};

static me_tensor *indices_buffer(me_engine *e, const char *op, uint64_t count)
{
    return me_empty_inside(e, op, ME_DTYPE_INT64, ME_SHAPE(count));
}

/** Sort indices with their positions. */
static void sort_indices(me_engine *e, uint64_t n, me_tensor **sorted,
                         me_tensor **positions)
{
    *sorted = indices_buffer(e, "embedding_backward.sorted", n);
    *positions = indices_buffer(e, "embedding_backward.positions", n);
    me_tensor *range = indices_buffer(e, "arange", n);
    me_fill_resized(e, 8);
    me_temporary(e, "cub.sort",
                 me_radix_sort_bytes(&(me_radix_sort){n, 64, 8, false}));
    me_drop(e, range);
}

/**
 * Temporary of CUB's scan of 8-byte values: a state of 16 bytes for each tile
 * of 128 threads times 7 items (tuning_scan.cuh) and for 32 more, rounded to
 * 256 bytes, and thrust's own on top.
 */
static uint64_t scan_temporary_bytes(uint64_t n)
{
    const uint64_t tiles = me_div_up(n, UINT64_C(128) * 7);
    return me_size_add(me_round_up(me_size_mul(16, tiles + 32), 256), 511);
}

/** Sum gradients segment by segment of equal indices
 *  (aten/native/cuda/EmbeddingBackwardKernel.cu). */
static void sum_segments(me_engine *e, uint64_t n, const me_shape *weight)
{
    const uint64_t rows = weight->dim[0];
    const uint64_t columns = weight->dim[1];
    me_tensor *segments = indices_buffer(e, "embedding_backward.segments", n);
    me_tensor *count = indices_buffer(e, "embedding_backward.count", 1);
    me_tensor *unique = indices_buffer(e, "embedding_backward.unique", n);
    me_temporary(e, "cub.unique", CUB_UNIQUE_BYTES);
    me_drop(e, unique);
    const uint64_t k = me_min_u64(n, rows);
    me_tensor *parts = indices_buffer(e, "embedding_backward.parts", k);
    me_tensor *offsets = indices_buffer(e, "embedding_backward.offsets", k);
    me_temporary(e, "cub.scan", scan_temporary_bytes(k));
    me_tensor *total = indices_buffer(e, "embedding_backward.total", 1);
    const uint64_t q = me_size_add(n / 10, k);
    me_tensor *starts = indices_buffer(e, "embedding_backward.starts", q);
    me_tensor *sums = me_empty_inside(e, "embedding_backward.partial_sums",
                                      ME_DTYPE_FLOAT32, ME_SHAPE(q, columns));
    me_drop(e, sums);
    me_drop(e, starts);
    me_drop(e, total);
    me_drop(e, offsets);
    me_drop(e, parts);
    me_drop(e, count);
    me_drop(e, segments);
}

static const me_op embedding_gradient = {
    "embedding_dense_backward",
    .dispatcher = "embedding_dense_backward.default"};

static void embedding_backward(me_engine *e, me_node *node,
                               me_tensor *const *gy, me_tensor **gx)
{
    const me_op *op = &embedding_gradient;
    const me_shape *shape = &node->data.shape;
    const uint64_t n = me_numel(node->saved[0]);
    const me_dtype dtype = gy[0]->dtype;
    me_tensor *grad = NULL;
    // Zeros of the whole table, then each row is read and added.
    me_launch_kernel(
        e, ME_KERNEL_EMBEDDING, 0,
        me_size_add(3 * me_bytes(gy[0]),
                    me_size_mul(me_shape_numel(shape), me_dtype_bytes(dtype))));
    me_launch_host(e, ME_HOST_EMBEDDING);
    if (!me_tensor_is_contiguous(gy[0])) {
        grad = me_empty_inside(e, "contiguous", dtype, gy[0]->shape);
    }
    if (n <= EMBEDDING_SORT_ABOVE) {
        gx[0] = me_empty(e, op->event, dtype, *shape);
    } else {
        me_tensor *sorted = NULL;
        me_tensor *positions = NULL;
        sort_indices(e, n, &sorted, &positions);
        gx[0] = me_empty(e, op->event, dtype, *shape);
        sum_segments(e, n, shape);
        me_drop(e, positions);
        me_drop(e, sorted);
    }
    me_drop(e, grad);
    me_op_tell(e, op, ME_TENSORS(gy[0], node->saved[0]), ME_TENSORS(gx[0]));
}

static const me_op embedding_op =
    ME_OP("embedding", "embedding.default", ME_COST(EMBEDDING, 0, 0, 2),
          "EmbeddingBackward0", .backward = embedding_backward);

me_tensor *me_embedding(me_engine *e, me_tensor *indices, me_tensor *weight)
{
    me_node *node = me_record1(e, &embedding_op, weight);
    me_save(e, node, 0, indices);
    me_shape shape = indices->shape;
    if (me_engine_is_ok(e)) {
        shape.dim[shape.ndim++] = me_dim(weight, 1);
    }
    me_tensor *y = me_kernel(e, &embedding_op, ME_TENSORS(weight, indices),
                             (me_dtype)weight->dtype, shape);
    me_fill_resized(e, me_dtype_bytes((me_dtype)weight->dtype));
    return me_output(e, node, y);
}

static const me_op masked_write_gradient = {"IndexPutBackward0",
                                            .cost = ME_POINTWISE};
static const me_op masked_write_op = {.node = "IndexPutBackward0",
                                      .backward = me_gradient_backward,
                                      .gradient = &masked_write_gradient};

me_tensor *me_masked_write_zero(me_engine *e, me_tensor *y,
                                const me_tensor *mask)
{
    me_node *node = me_record1(e, &masked_write_op, y);
    me_save(e, node, 0, mask);
    return me_output(e, node, y);
}
