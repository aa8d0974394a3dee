/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/weight_gradients.h"

#include "base/alloc.h"
#include "base/size.h"
#include "nn/megatron/linear.h"
#include "nn/megatron/te_fp8.h"
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

static void keep_part(me_engine *e, me_tensor *part)
{
    if (part != NULL) {
        keep(e, part);
    }
}

void me_weight_gradients_keep(me_engine *e, me_weight_gradients *kept,
                              const me_weight_work *work)
{
    me_weight_work *items =
        me_engine_grow(e, kept->items, kept->count, &kept->capacity,
                       sizeof *items, "weight_gradients");
    if (items == NULL) {
        return;
    }
    kept->items = items;
    me_weight_work *item = &kept->items[kept->count++];
    *item = *work;
    for (int i = 0; i < ME_OPERAND_PARTS; i++) {
        keep_part(e, item->x.parts[i]);
        keep_part(e, item->gy.parts[i]);
    }
    me_retain(item->dw);
}

static void clear(me_engine *e, me_weight_operand *operand)
{
    for (int i = 0; i < ME_OPERAND_PARTS; i++) {
        me_clear(e, &operand->parts[i]);
    }
}

static void release(me_engine *e, me_weight_work *work)
{
    clear(e, &work->x);
    clear(e, &work->gy);
    me_clear(e, &work->dw);
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

/** A product of Transformer Engine's. */
static me_tensor *multiply_te(me_nn *nn, const me_weight_work *work)
{
    const me_tensor *weight = work->weight;
    const me_te_product product = {
        .kernel = ME_KERNEL_LINEAR_WGRAD,
        .operands =
            work->is_quantized ? me_fp8_operands(nn) : ME_OPERANDS_AS_RESULT,
    };
    const me_dtype dtype = (me_dtype)weight->dtype;
    const bool is_fused = me_fuses_weight_gradients(nn);
    if (!is_fused && work->dw == NULL) {
        return me_te_gemm_with(nn, product, dtype, weight->shape, work->rows);
    }
    me_te_gemm_into_with(nn, product, dtype, weight->shape, work->rows);
    return is_fused ? me_te_dummy_wgrad(nn, dtype, &weight->shape) : work->dw;
}

/** A product of Megatron-LM's own layers. */
static me_tensor *multiply_local(me_nn *nn, const me_weight_work *work)
{
    const me_tensor *weight = work->weight;
    if (!me_fuses_weight_gradients(nn)) {
        return me_weight_gradient(nn->e, work->gy.parts[0], work->x.parts[0],
                                  weight);
    }
    me_gemm_run(nn->e, ME_KERNEL_LINEAR_WGRAD, weight, work->rows);
    return me_te_dummy_wgrad(nn, weight->dtype, &weight->shape);
}

/** Its product: a new gradient (outputs, inputs), or what stands for one that was
 *  added to what the framework accumulates into. */
static void multiply(me_nn *nn, me_weight_work *work)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_module_switch(e, work->module);
    if (work->gathers_rows) {
        me_gather_rows(nn, work->x.parts[0], false);
    }
    me_tensor *dw =
        work->is_te ? multiply_te(nn, work) : multiply_local(nn, work);
    if (dw != work->dw) {
        work->dw = me_retain(dw);
    }
    me_leave(e, frame, NULL);
}

/** What it was made of goes: lists of gradients and of inputs, from their ends;
 *  where nobody delays weight gradients, the input first. */
static void release_operands(me_nn *nn, me_weight_work *items, uint32_t count)
{
    const bool is_list = nn->config->moe.delay_wgrad_compute;
    for (uint32_t i = count; is_list && i > 0; i--) {
        clear(nn->e, &items[i - 1].gy);
    }
    for (uint32_t i = count; i > 0; i--) {
        clear(nn->e, &items[i - 1].x);
        clear(nn->e, &items[i - 1].gy);
    }
}

/** `weight.grad = …`: they take the place of what autograd cloned in the backward,
 *  where that returned them before they were made. */
static void replace_collected(me_engine *e, const me_weight_work *items,
                              uint32_t count)
{
    for (uint32_t i = 0; i < count && me_engine_is_ok(e); i++) {
        if (items[i].weight->grad != NULL) {
            me_assign(e, &items[i].weight->grad, items[i].dw);
        }
    }
}

static void hand_over(me_nn *nn, me_weight_work *work)
{
    me_engine *e = nn->e;
    const me_frame frame = me_enter(e);
    me_module_switch(e, work->module);
    if (me_engine_is_ok(e)) {
        me_hand_over_grad(e, work->weight, &work->dw);
    }
    me_leave(e, frame, NULL);
}

/** Of @p count weights of one module. Its backward_dw() tells who waits for them
 *  once all are made: of a grouped layer the operands are gone by then, of others
 *  they still have a name. */
static void make(me_nn *nn, me_weight_work *items, uint32_t count)
{
    for (uint32_t i = 0; i < count && me_engine_is_ok(nn->e); i++) {
        multiply(nn, &items[i]);
    }
    if (items[0].is_grouped) {
        replace_collected(nn->e, items, count);
        release_operands(nn, items, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        hand_over(nn, &items[i]);
    }
    release_operands(nn, items, count);
}

/** How many weights from @p begin on are of one module's products. */
static uint32_t count_grouped(const me_weight_gradients *kept, uint32_t begin)
{
    const me_weight_work *first = &kept->items[begin];
    uint32_t count = 1;
    while (first->is_grouped && begin + count < kept->count &&
           first[count].is_grouped && first[count].module == first->module) {
        count++;
    }
    return count;
}

void me_weight_gradients_sort(me_weight_gradients *kept)
{
    for (uint32_t i = 1; i < kept->count; i++) {
        const me_weight_work work = kept->items[i];
        uint32_t k = i;
        for (; k > 0 && kept->items[k - 1].turn > work.turn; k--) {
            kept->items[k] = kept->items[k - 1];
        }
        kept->items[k] = work;
    }
}

void me_weight_gradients_make(me_nn *nn, me_weight_gradients *kept)
{
    const bool grad = me_grad_enable(nn->e, false);
    for (uint32_t i = 0; i < kept->count && me_engine_is_ok(nn->e);) {
        const uint32_t count = count_grouped(kept, i);
        make(nn, &kept->items[i], count);
        i += count;
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

/** Append @p x, held, to a list. @return there is room */
static bool append(me_engine *e, me_tensor ***list, uint32_t *count,
                   uint32_t *capacity, me_tensor *x)
{
    me_tensor **grown =
        me_grow(*list, *count, capacity, sizeof *grown, "deferred_gradients");
    if (grown == NULL) {
        me_engine_fail(e, ME_ERR_NOMEM, "no host memory for the backward");
        return false;
    }
    *list = grown;
    grown[(*count)++] = x;
    keep(e, x);
    return true;
}

static bool has_room(const me_deferred_gradients *deferred, uint32_t count)
{
    return deferred->limit == 0 || count < deferred->limit;
}

void me_deferred_keep_input(me_engine *e, me_deferred_gradients *deferred,
                            me_tensor *x)
{
    if (has_room(deferred, deferred->n_inputs)) {
        append(e, &deferred->inputs, &deferred->n_inputs,
               &deferred->inputs_capacity, x);
    }
}

bool me_deferred_keep_gradient(me_engine *e, me_deferred_gradients *deferred,
                               me_tensor *gy)
{
    return has_room(deferred, deferred->n_gradients) &&
           append(e, &deferred->gradients, &deferred->n_gradients,
                  &deferred->gradients_capacity, gy);
}

/** Gather @p x of sequence-parallel ranks into one of two buffers, by turns. */
static void gather_deferred(me_nn *nn, me_deferred_gradients *deferred,
                            const me_tensor *x, uint32_t index)
{
    me_engine *e = nn->e;
    if (!nn->config->parallel.sequence || !me_engine_is_ok(e)) {
        return;
    }
    me_tensor **buffer = &deferred->gathered[index % 2];
    if (*buffer == NULL) {
        const uint64_t ranks = (uint64_t)nn->config->parallel.tensor;
        *buffer = me_keep(e, "global_memory_buffer", ME_CATEGORY_BUFFER,
                          x->dtype, ME_SHAPE(me_size_mul(me_numel(x), ranks)));
    }
    me_communicate(e, nn->comm,
                   (me_call){ME_GROUP_TENSOR, ME_COLLECTIVE_ALL_GATHER,
                             x->dtype, me_numel(x), -1, index > 0});
}

void me_deferred_make(me_nn *nn, me_deferred_gradients *deferred,
                      const me_tensor *weight)
{
    me_engine *e = nn->e;
    for (uint32_t i = 0; i < deferred->n_gradients; i++) {
        if (i == 0) {
            gather_deferred(nn, deferred, deferred->inputs[0], 0);
        }
        if (i + 1 < deferred->n_inputs) {
            gather_deferred(nn, deferred, deferred->inputs[i + 1], i + 1);
        }
        me_gemm_run(e, ME_KERNEL_LINEAR_WGRAD, weight,
                    me_rows(deferred->gradients[i]));
        me_clear(e, &deferred->inputs[i]);
        me_clear(e, &deferred->gradients[i]);
    }
    deferred->n_inputs = 0;
    deferred->n_gradients = 0;
}

void me_deferred_fini(me_engine *e, me_deferred_gradients *deferred)
{
    for (uint32_t i = 0; i < deferred->n_inputs; i++) {
        me_clear(e, &deferred->inputs[i]);
    }
    for (uint32_t i = 0; i < deferred->n_gradients; i++) {
        me_clear(e, &deferred->gradients[i]);
    }
    for (int i = 0; i < 2; i++) {
        me_clear(e, &deferred->gathered[i]);
    }
    me_free(deferred->inputs);
    me_free(deferred->gradients);
    *deferred = (me_deferred_gradients){.limit = 0};
}
