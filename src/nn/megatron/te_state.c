/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_state.h"

#include "base/alloc.h"
#include "base/size.h"

void me_te_state_fini(me_engine *e, me_te_state *state)
{
    for (uint32_t i = 0; i < state->count; i++) {
        me_clear(e, &state->entries[i].tensor);
    }
    me_free(state->entries);
    me_fp8_state_fini(e, &state->fp8);
    *state = (me_te_state){.entries = NULL};
}

/** Where such a tensor is kept, NULL there until it is made; the place moves when
 *  another is asked for. NULL after a failure. */
static me_tensor **kept(me_nn *nn, const char *what, me_dtype dtype,
                        const me_shape *shape)
{
    me_te_state *state = nn->te;
    if (!me_engine_is_ok(nn->e) || state == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < state->count; i++) {
        const me_te_entry *entry = &state->entries[i];
        if (entry->what == what && entry->dtype == dtype &&
            me_shape_equal(&entry->shape, shape)) {
            return &state->entries[i].tensor;
        }
    }
    me_te_entry *entries =
        me_engine_grow(nn->e, state->entries, state->count, &state->capacity,
                       sizeof *entries, "te");
    if (entries == NULL) {
        return NULL;
    }
    state->entries = entries;
    state->entries[state->count] =
        (me_te_entry){.what = what, .dtype = dtype, .shape = *shape};
    return &state->entries[state->count++].tensor;
}

/** The tensor that is kept under these, made if it is not there. */
static me_tensor *keep(me_nn *nn, const char *what, me_dtype dtype,
                       const me_shape *shape)
{
    me_tensor **tensor = kept(nn, what, dtype, shape);
    if (tensor == NULL) {
        return me_none(nn->e);
    }
    if (*tensor == NULL) {
        *tensor = me_keep(nn->e, what, ME_CATEGORY_BUFFER, dtype, *shape);
    }
    return *tensor;
}

static const char workspace[] = "get_cublas_workspace";
static const char overlap_workspace[] = "get_cublas_workspace.ub";
static const char dummy[] = "get_dummy_wgrad";
static const char cu_seqlens[] = "get_full_cu_seqlens";
static const char cu_seqlens_of_rank[] = "get_cu_seqlens_info_with_cp";
static const char cu_seqlens_of_half[] = "get_cu_seqlens_info_with_cp.half";
static const char ids_before[] = "get_seq_chunk_ids_before_attn";
static const char ids_after[] = "get_seq_chunk_ids_after_attn";
static const char ids_of_offset[] = "softmax_offset_chunk_ids";
static const char causal_mask[] = "default_causal_mask";

/** get_cublas_workspace() (pytorch/cpp_extensions/gemm.py). */
static void ensure_workspace(me_nn *nn, me_te_workspace which)
{
    enum {
        STREAMS = 3 // _NUM_MAX_UB_STREAMS
    };

    const uint64_t bytes = me_engine_card(nn->e)->te_workspace_bytes;
    if (which == ME_TE_WORKSPACE_OVERLAP) {
        (void)keep(nn, overlap_workspace, ME_DTYPE_UINT8,
                   &ME_SHAPE(me_size_mul(STREAMS, bytes)));
    } else {
        (void)keep(nn, workspace, ME_DTYPE_UINT8, &ME_SHAPE(bytes));
    }
}

/** tex.get_num_cublas_streams() of them, in which products of experts run at
 *  once. */
static void ensure_grouped_workspaces(me_nn *nn)
{
    static const char *const names[] = {
        "get_cublas_workspace.grouped0", "get_cublas_workspace.grouped1",
        "get_cublas_workspace.grouped2", "get_cublas_workspace.grouped3"};
    const uint64_t bytes = me_engine_card(nn->e)->te_workspace_bytes;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)keep(nn, names[i], ME_DTYPE_UINT8, &ME_SHAPE(bytes));
    }
}

static void tell_product(me_nn *nn, me_kernel_class kernel,
                         me_operands operands, me_dtype dtype,
                         const me_shape *shape, uint64_t inner)
{
    const uint64_t columns = shape->ndim == 0 ? 0 : shape->dim[shape->ndim - 1];
    const uint64_t rows = columns == 0 ? 0 : me_shape_numel(shape) / columns;
    me_launch_product_of(nn->e, kernel, operands, dtype,
                         (uint64_t[3]){rows, columns, inner});
}

me_tensor *me_te_gemm_with(me_nn *nn, me_te_product product, me_dtype dtype,
                           me_shape shape, uint64_t inner)
{
    ensure_workspace(nn, product.workspace);
    me_tensor *y =
        me_empty(nn->e, me_kernel_class_name(product.kernel), dtype, shape);
    tell_product(nn, product.kernel, product.operands, dtype, &shape, inner);
    return y;
}

void me_te_gemm_into_with(me_nn *nn, me_te_product product, me_dtype dtype,
                          me_shape shape, uint64_t inner)
{
    ensure_workspace(nn, product.workspace);
    tell_product(nn, product.kernel, product.operands, dtype, &shape, inner);
}

me_tensor *me_te_gemm(me_nn *nn, me_kernel_class kernel, me_dtype dtype,
                      me_shape shape, uint64_t inner)
{
    return me_te_gemm_with(nn, (me_te_product){.kernel = kernel}, dtype, shape,
                           inner);
}

void me_te_gemm_into(me_nn *nn, me_kernel_class kernel, me_dtype dtype,
                     me_shape shape, uint64_t inner)
{
    me_te_gemm_into_with(nn, (me_te_product){.kernel = kernel}, dtype, shape,
                         inner);
}

me_tensor *me_te_grouped_gemm(me_nn *nn, me_kernel_class kernel,
                              me_operands operands, me_dtype dtype,
                              me_shape shape, uint64_t inner)
{
    me_tensor *y = me_empty(nn->e, me_kernel_class_name(kernel), dtype, shape);
    ensure_grouped_workspaces(nn);
    tell_product(nn, kernel, operands, dtype, &shape, inner);
    return y;
}

void me_te_grouped_gemm_into(me_nn *nn, me_operands operands, me_dtype dtype,
                             uint32_t count, me_shape shape, uint64_t inner)
{
    ensure_grouped_workspaces(nn);
    for (uint32_t i = 0; i < count; i++) {
        tell_product(nn, ME_KERNEL_LINEAR_WGRAD, operands, dtype, &shape,
                     inner / count);
    }
}

bool me_fuses_weight_gradients(const me_nn *nn)
{
    return nn->config->train.gradient_accumulation_fusion;
}

void me_main_grad_get(const me_nn *nn, const me_tensor *weight)
{
    if (me_fuses_weight_gradients(nn) && nn->main_grads != NULL &&
        nn->main_grads->get != NULL && weight->parameter != NULL) {
        nn->main_grads->get(nn->main_grads->self, weight->parameter);
    }
}

bool me_te_is_dummy_wgrad(const me_nn *nn, const me_tensor *gradient)
{
    const me_te_state *state = nn->te;
    for (uint32_t i = 0; state != NULL && i < state->count; i++) {
        const me_te_entry *entry = &state->entries[i];
        if (entry->what == dummy && entry->tensor != NULL &&
            entry->tensor->storage == gradient->storage) {
            return true;
        }
    }
    return false;
}

me_tensor *me_te_dummy_wgrad(me_nn *nn, me_dtype dtype, const me_shape *shape)
{
    return me_detach(nn->e, keep(nn, dummy, dtype, shape));
}

/** Lengths of sequences, kept by samples and rows. */
static void keep_lengths(me_nn *nn, const char *what, uint64_t batch,
                         uint64_t rows)
{
    me_tensor **tensor = kept(nn, what, ME_DTYPE_INT32, &ME_SHAPE(batch, rows));
    if (tensor != NULL && *tensor == NULL) {
        *tensor = me_keep(nn->e, what, ME_CATEGORY_BUFFER, ME_DTYPE_INT32,
                          ME_SHAPE(me_size_add(batch, 1)));
        me_fill_resized(nn->e, 4); // arange
    }
}

void me_te_full_cu_seqlens(me_nn *nn, uint64_t batch, uint64_t rows)
{
    keep_lengths(nn, cu_seqlens, batch, rows);
}

void me_te_context_cu_seqlens(me_nn *nn, uint64_t batch, uint64_t rows)
{
    keep_lengths(nn, cu_seqlens_of_rank, batch, rows);
    keep_lengths(nn, cu_seqlens_of_half, batch, rows);
}

void me_te_chunk_ids(me_nn *nn, bool is_before, uint64_t ranks)
{
    (void)keep(nn, is_before ? ids_before : ids_after, ME_DTYPE_INT32,
               &ME_SHAPE(me_size_mul(2, ranks)));
}

void me_te_offset_ids(me_nn *nn, uint64_t ranks)
{
    (void)keep(nn, ids_of_offset, ME_DTYPE_INT32, &ME_SHAPE(ranks));
}

me_tensor *me_te_causal_mask(me_nn *nn, uint64_t rows)
{
    const me_shape shape = ME_SHAPE(rows, rows);
    me_tensor **tensor = kept(nn, causal_mask, ME_DTYPE_BOOL, &shape);
    if (tensor == NULL) {
        return me_none(nn->e);
    }
    if (*tensor == NULL) {
        const me_frame frame = me_enter(nn->e);
        (void)me_empty(nn->e, "ones", ME_DTYPE_BOOL, shape);
        *tensor = me_keep(nn->e, causal_mask, ME_CATEGORY_BUFFER, ME_DTYPE_BOOL,
                          shape);
        me_leave(nn->e, frame, NULL);
    }
    return *tensor;
}
