/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/weight_gradients.h"

#include "base/alloc.h"
#include "nn/megatron/linear.h"
#include "nn/megatron/te_state.h"
#include "ops/matmul.h"
#include "ops/view.h"
#include "tensor/autograd.h"

/** As for what a node saves: a temporary that is kept is an activation. */
static void keep(me_engine *e, me_tensor *x)
{
    me_retain(x);
    if (me_engine_is_ok(e) && x->storage != NULL &&
        x->storage->category == ME_CATEGORY_TEMPORARY) {
        me_categorize(e, x, ME_CATEGORY_ACTIVATION);
    }
}

void me_weight_gradients_keep(me_engine *e, me_weight_gradients *kept,
                              const me_weight_work *work)
{
    me_weight_work *items = me_grow(kept->items, kept->count, &kept->capacity,
                                    sizeof *items, "weight_gradients");
    if (items == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for the backward");
        return;
    }
    kept->items = items;
    me_weight_work *item = &kept->items[kept->count++];
    *item = *work;
    keep(e, item->x);
    keep(e, item->gy);
}

static void release(me_engine *e, me_weight_work *work)
{
    me_clear(e, &work->x);
    me_clear(e, &work->gy);
}

me_tensor *me_weight_gradient(me_engine *e, me_tensor *gy, me_tensor *x,
                              const me_tensor *weight)
{
    const uint64_t outputs = me_dim(weight, 0);
    me_tensor *dense_gy = me_contiguous(e, gy);
    me_tensor *dense_x = me_contiguous(e, x);
    me_tensor *dw =
        me_gemm(e, ME_KERNEL_LINEAR_WGRAD, weight->dtype, weight->shape,
                outputs == 0 ? 0 : me_numel(gy) / outputs);
    if (dense_gy != gy) {
        me_drop(e, dense_gy);
    }
    if (dense_x != x) {
        me_drop(e, dense_x);
    }
    return dw;
}

/** (outputs, inputs), added to what the framework accumulates into. */
static void make(me_nn *nn, me_weight_work *work)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_module_switch(e, work->module);
    if (work->gathers_rows) {
        me_gather_rows(nn, work->x, false);
    }
    me_tensor *dw = NULL;
    if (me_fuses_weight_gradients(nn)) {
        me_te_gemm_into(nn, ME_KERNEL_LINEAR_WGRAD, work->weight->dtype,
                        work->weight->shape, me_rows(work->gy));
        dw = me_te_dummy_wgrad(nn, work->weight->dtype, &work->weight->shape);
    } else {
        dw = me_weight_gradient(e, work->gy, work->x, work->weight);
    }
    if (me_engine_is_ok(e)) {
        me_accumulate_grad(e, work->weight, dw);
    }
    me_leave(e, frame, NULL);
    release(e, work);
}

void me_weight_gradients_make(me_nn *nn, me_weight_gradients *kept)
{
    const bool grad = me_grad_enable(nn->e, false);
    for (uint32_t i = 0; i < kept->count && me_engine_is_ok(nn->e); i++) {
        make(nn, &kept->items[i]);
    }
    me_module_switch(nn->e, ME_NO_MODULE);
    me_grad_enable(nn->e, grad);
    me_weight_gradients_fini(nn->e, kept);
}

void me_weight_gradients_fini(me_engine *e, me_weight_gradients *kept)
{
    for (uint32_t i = 0; i < kept->count; i++) {
        release(e, &kept->items[i]);
    }
    me_free(kept->items);
    *kept = (me_weight_gradients){.items = NULL};
}
