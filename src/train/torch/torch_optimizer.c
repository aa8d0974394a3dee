/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/size.h"
#include "nn/torch/dtensor.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"
#include "train/torch/loop.h"

/** `torch.autograd.profiler.record_function()`, in which optimizers step and let
 *  gradients go. */
static const char RECORD_ENTER[] = "_record_function_enter_new.default";
static const char RECORD_EXIT[] = "_record_function_exit._RecordFunction";

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

me_dlayout me_loop_gradient_layout(const me_loop *l, const me_parameter *p)
{
    switch (l->config->torch.data_parallel) {
    case ME_DATA_PARALLEL_NONE: return me_dparameter_of(p)->gradient;
    case ME_DATA_PARALLEL_DDP: return ME_DLAYOUT_NONE; // local tensors
    case ME_DATA_PARALLEL_FULLY_SHARD: break;
    }
    return me_dparameter_of(p)->tensor.layout;
}

void me_loop_refuse_mixed(me_loop *l, const char *what)
{
    const bool has_plan =
        l->config->torch_job.tree->n_styles > 0 &&
        l->config->torch.data_parallel != ME_DATA_PARALLEL_DDP;
    for (uint32_t i = 0;
         has_plan && i < l->parameters.count && me_engine_is_ok(l->e); i++) {
        const me_parameter *p = l->parameters.parameters[i];
        if (p->kind == NULL) {
            me_module_switch(l->e, p->module);
            me_engine_fail(l->e, ME_ERR_CONFIG,
                           "%s: PyTorch refuses gradients of which some are "
                           "DTensors and some are not; parallelize_plan leaves "
                           "out module %s",
                           what, me_module_shown(l->e));
            me_engine_locate(l->e);
        }
    }
}

/** Are parameters DTensors whose gradients come as backward makes them?
 *  fully_shard() hands out gradients that lie as the parameters do. */
static bool has_dtensors(const me_loop *l)
{
    return l->config->torch_job.tree->n_styles > 0 &&
           l->config->torch.data_parallel == ME_DATA_PARALLEL_NONE;
}

/** The first step on the host makes the state there. */
static void step_on_host(me_loop *l)
{
    const me_optimizer_config *o = &l->config->optimizer;
    const bool is_adam = o->kind != ME_OPTIMIZER_SGD;
    const uint64_t moments = is_adam ? 2 : o->sgd_momentum > 0 ? 1 : 0;
    const uint64_t counter = is_adam ? me_dtype_bytes(ME_DTYPE_FLOAT32) : 0;
    for (uint32_t i = 0; !l->has_stepped && i < l->n_states; i++) {
        const me_shard_state *s = &l->states[i];
        const uint64_t bytes = me_size_mul(s->numel, me_dtype_bytes(s->dtype));
        me_host_hold(l->e, ME_HOST_OPTIMIZER_STATE,
                     me_size_add(me_size_mul(bytes, moments), counter), false);
    }
}

static void step_on_device(me_loop *l)
{
    const me_config *c = l->config;
    if (has_dtensors(l) && c->impl.optimizer != ME_OPTIMIZER_TORCH_FOR_LOOP) {
        me_loop_refuse_mixed(l, "impl.optimizer");
    }
    me_optim_step(l->e, c->optimizer.kind,
                  &(me_step_group){
                      .shards = l->states,
                      .count = l->n_states,
                      .nn = has_dtensors(l) ? &l->nn : NULL,
                      .impl = c->impl.optimizer,
                      .has_plain_tensors =
                          !has_dtensors(l) && c->torch.data_parallel !=
                                                  ME_DATA_PARALLEL_FULLY_SHARD,
                      .is_first_step = !l->has_stepped,
                      .is_scaled = c->torch.grad_scaler,
                      .is_decayed = c->optimizer.weight_decay > 0,
                      .adds_decay = c->optimizer.kind == ME_OPTIMIZER_ADAM,
                      .has_momentum = c->optimizer.sgd_momentum > 0,
                  });
}

uint64_t me_loop_gradient_bytes(const me_loop *l)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        const me_tensor *grad = l->parameters.parameters[i]->tensor->grad;
        bytes = me_size_add(bytes, grad == NULL ? 0 : me_bytes(grad));
    }
    return bytes;
}

void me_loop_step(me_loop *l)
{
    me_engine *e = l->e;
    if (!me_engine_is_ok(e)) {
        return;
    }
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
    me_tell_op_of(e, RECORD_ENTER, 0);
    me_tell_optimizer_step(e, true);
    if (l->config->torch.cpu_offload) {
        step_on_host(l);
    } else {
        step_on_device(l);
    }
    me_tell_optimizer_step(e, false);
    me_tell_op_of(e, RECORD_EXIT, 0);
    l->has_stepped = true;
    me_category_set(e, category);
    me_phase_set(e, phase);
}

void me_loop_zero_grad(me_loop *l)
{
    if (!l->config->torch.zero_grad_set_to_none) {
        return; // _foreach_zero_(), in place
    }
    me_tell_op_of(l->e, RECORD_ENTER, 0);
    for (uint32_t i = 0; i < l->parameters.count; i++) {
        me_clear(l->e, &l->parameters.parameters[i]->tensor->grad);
    }
    me_tell_op_of(l->e, RECORD_EXIT, 0);
}
