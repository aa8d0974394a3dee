/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/matmul.h"

#include "tensor/autograd.h"
#include "tensor/saved_hooks.h"

/** CUBLASLT_WORKSPACE_SIZE's default (ATen/cuda/CUDABlas.cpp). */
static const uint64_t LT_WORKSPACE_BYTES = UINT64_C(1) << 20;

/** A workspace that its holder keeps for good. */
static void ensure(me_engine *e, me_tensor **workspace, const char *op,
                   uint64_t bytes)
{
    if (*workspace != NULL || !me_engine_is_ok(e)) {
        return;
    }
    const me_frame frame = me_enter(e);
    const me_category category = me_category_set(e, ME_CATEGORY_BUFFER);
    *workspace = me_retain(me_scratch(e, op, bytes));
    me_category_set(e, category);
    me_leave(e, frame, NULL);
}

void me_lt_workspace(me_engine *e)
{
    ensure(e, me_engine_lt_workspace(e), "cublaslt_workspace",
           LT_WORKSPACE_BYTES);
}

void me_gemm_run(me_engine *e, me_kernel_class kernel, const me_tensor *y,
                 uint64_t inner)
{
    ensure(e, me_engine_workspace(e), "cublas_workspace",
           me_engine_card(e)->cublas_workspace_bytes);
    const uint64_t batch = kernel == ME_KERNEL_BMM ? me_dim(y, 0) : 1;
    const uint64_t columns = me_dim(y, -1);
    const uint64_t rows =
        columns == 0 || batch == 0 ? 0 : me_numel(y) / columns / batch;
    me_launch_product(e, kernel, (me_dtype)y->dtype, batch,
                      (uint64_t[3]){rows, columns, inner});
}

me_tensor *me_gemm(me_engine *e, me_kernel_class kernel, me_dtype dtype,
                   me_shape shape, uint64_t inner)
{
    me_tensor *y = me_empty(e, me_kernel_class_name(kernel), dtype, shape);
    me_gemm_run(e, kernel, y, inner);
    return y;
}

/** (n, p, q) · (n, q, r), off the tape. */
static me_tensor *product(me_engine *e, const me_tensor *a, const me_tensor *b)
{
    return me_gemm(e, ME_KERNEL_BMM, (me_dtype)a->dtype,
                   ME_SHAPE(me_dim(a, 0), me_dim(a, 1), me_dim(b, 2)),
                   me_dim(a, 2));
}

/** The last two dimensions exchanged, off the tape. */
static me_tensor *transposed(me_engine *e, const me_tensor *x)
{
    me_tensor *t = me_detach(e, x);
    t->shape.dim[1] = x->shape.dim[2];
    t->shape.dim[2] = x->shape.dim[1];
    t->strides[1] = x->strides[2];
    t->strides[2] = x->strides[1];
    return t;
}

enum {
    BMM_SAVED_MAT2,
    BMM_SAVED_SELF
};

static void bmm_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                         me_tensor **gx)
{
    if (me_needs(node, 1)) {
        gx[1] = product(e, transposed(e, node->saved[BMM_SAVED_SELF]), gy[0]);
    }
    if (me_needs(node, 0)) {
        gx[0] = product(e, gy[0], transposed(e, node->saved[BMM_SAVED_MAT2]));
    }
    if (me_saved_is_own(node)) { // names of C++ go from the last
        me_clear(e, &node->saved[BMM_SAVED_SELF]);
        me_clear(e, &node->saved[BMM_SAVED_MAT2]);
    }
}

static const me_op bmm_op = ME_NODE("BmmBackward0", bmm_backward);

me_tensor *me_bmm(me_engine *e, me_tensor *a, me_tensor *b)
{
    me_node *node = me_record2(e, &bmm_op, a, b);
    me_save(e, node, BMM_SAVED_MAT2, a->requires_grad ? b : NULL);
    me_save(e, node, BMM_SAVED_SELF, b->requires_grad ? a : NULL);
    return me_output(e, node, product(e, a, b));
}

enum {
    BADDBMM_SAVED_BATCH1,
    BADDBMM_SAVED_BATCH2
};

static const me_op scale_kernel = {"mul", .cost = ME_POINTWISE};

/** The product dies once it has been multiplied by alpha. */
static me_tensor *scaled(me_engine *e, me_tensor *x)
{
    me_tensor *y = me_kernel_like(e, &scale_kernel, ME_TENSORS(x));
    me_drop(e, x);
    return y;
}

static void baddbmm_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                             me_tensor **gx)
{
    me_tensor *const *saved = node->saved;
    if (me_needs(node, 0)) {
        gx[0] = scaled(
            e, product(e, gy[0], transposed(e, saved[BADDBMM_SAVED_BATCH2])));
    }
    if (me_needs(node, 1)) {
        gx[1] = scaled(
            e, product(e, transposed(e, saved[BADDBMM_SAVED_BATCH1]), gy[0]));
    }
}

static const me_op baddbmm_op = ME_NODE("BaddbmmBackward0", baddbmm_backward);

me_tensor *me_baddbmm(me_engine *e, me_tensor *a, me_tensor *b)
{
    me_node *node = me_record2(e, &baddbmm_op, a, b);
    me_save(e, node, BADDBMM_SAVED_BATCH1, b->requires_grad ? a : NULL);
    me_save(e, node, BADDBMM_SAVED_BATCH2, a->requires_grad ? b : NULL);
    return me_output(e, node, product(e, a, b));
}
