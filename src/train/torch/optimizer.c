/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/size.h"
#include "tensor/launch.h"
#include "train/torch/loop.h"

/** The optimizer lists parameters that have a gradient. */
static uint32_t list_states(me_loop *l)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        me_parameter *parameter = l->parameters.parameters[i];
        if (parameter->tensor->grad != NULL) {
            l->states[count++] = (me_shard_state){
                .parameter = parameter,
                .numel = me_numel(parameter->tensor),
                .dtype = (me_dtype)parameter->tensor->dtype,
            };
        }
    }
    return count;
}

/** Elements that a block of the foreach kernels takes
 *  (aten/native/cuda/MultiTensorApply.cuh). */
enum {
    FOREACH_CHUNK = 65536
};

/** `torch._foreach_norm(grads)`: a partial result a chunk of the largest, then
 *  a scalar each, which the list keeps (ForeachReduceOp.cu). @return how many */
static uint32_t foreach_norm(me_loop *l)
{
    me_engine *e = l->e;
    uint64_t largest = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        const me_tensor *grad = l->parameters.parameters[i]->tensor->grad;
        if (grad != NULL) {
            largest = me_max_u64(largest, me_numel(grad));
            count++;
        }
    }
    me_tensor *partial = me_empty(
        e, "_foreach_norm", ME_DTYPE_FLOAT32,
        ME_SHAPE(me_size_mul(count, me_div_up(largest, FOREACH_CHUNK))));
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        const me_tensor *grad = l->parameters.parameters[i]->tensor->grad;
        if (grad != NULL) {
            (void)me_empty(e, "_foreach_norm", (me_dtype)grad->dtype,
                           ME_SCALAR);
            me_launch_kernel(e, ME_KERNEL_REDUCE, me_numel(grad),
                             me_bytes(grad));
        }
    }
    me_drop(e, partial);
    return count;
}

/** _get_total_norm(): the norms stacked, and their norm, which outlives them. */
static me_tensor *total_norm(me_loop *l)
{
    me_engine *e = l->e;
    const me_frame frame = me_enter(e);
    const uint32_t count = foreach_norm(l);
    me_tensor *stack = me_empty(e, "stack", ME_DTYPE_FLOAT32, ME_SHAPE(count));
    me_tensor *total =
        me_empty(e, "linalg_vector_norm", ME_DTYPE_FLOAT32, ME_SCALAR);
    me_drop(e, stack);
    return me_leave(e, frame, total);
}

/** The norm, the coefficient max_norm / (norm + 1e-6), which Python makes of
 *  the sum's reciprocal, and what it is clamped to; gradients are multiplied in
 *  place (torch/nn/utils/clip_grad.py). */
void me_loop_clip_gradients(me_loop *l)
{
    me_engine *e = l->e;
    if (!me_engine_is_ok(e)) {
        return;
    }
    const me_phase phase = me_phase_set(e, ME_PHASE_OPTIMIZER);
    const me_category category = me_category_set(e, ME_CATEGORY_TEMPORARY);
    const me_frame frame = me_enter(e);
    (void)total_norm(l);
    me_tensor *sum = me_empty(e, "add", ME_DTYPE_FLOAT32, ME_SCALAR);
    me_tensor *inverse = me_empty(e, "reciprocal", ME_DTYPE_FLOAT32, ME_SCALAR);
    me_tensor *coefficient = me_empty(e, "mul", ME_DTYPE_FLOAT32, ME_SCALAR);
    me_drop(e, inverse);
    me_drop(e, sum);
    (void)me_empty(e, "clamp", ME_DTYPE_FLOAT32, ME_SCALAR);
    me_drop(e, coefficient);
    me_leave(e, frame, NULL);
    me_category_set(e, category);
    me_phase_set(e, phase);
}

/** Are parameters DTensors whose gradients come as backward makes them?
 *  fully_shard() hands out gradients that lie as the parameters do. */
static bool has_dtensors(const me_loop *l)
{
    return l->config->tree->n_styles > 0 &&
           l->config->data_parallel == ME_DATA_PARALLEL_NONE;
}

void me_loop_step(me_loop *l)
{
    me_engine *e = l->e;
    if (!me_engine_is_ok(e)) {
        return;
    }
    const me_torch_config *c = l->config;
    const me_phase phase = me_phase_set(e, ME_PHASE_OPTIMIZER);
    const me_category category = me_category_set(e, ME_CATEGORY_TEMPORARY);
    if (!l->has_stepped) {
        l->states = me_alloc((size_t)l->parameters.count + 1, sizeof *l->states,
                             "torch.optimizer");
        if (l->states == NULL) {
            me_engine_fail(e, ME_ERR_NOMEM, "no host memory for a step");
            return;
        }
        l->n_states = list_states(l);
    }
    me_launch_host(e, ME_HOST_STEP);
    me_optim_step(e, c->optimizer,
                  &(me_step_group){
                      .shards = l->states,
                      .count = l->n_states,
                      .nn = has_dtensors(l) ? &l->nn : NULL,
                      .impl = c->optimizer_impl,
                      .is_first_step = !l->has_stepped,
                      .is_decayed = c->decays_weights,
                      .adds_decay = c->adds_decay,
                      .has_momentum = c->has_momentum,
                  });
    l->has_stepped = true;
    me_category_set(e, category);
    me_phase_set(e, phase);
}

void me_loop_zero_grad(me_loop *l)
{
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        me_clear(l->e, &l->parameters.parameters[i]->tensor->grad);
    }
}
