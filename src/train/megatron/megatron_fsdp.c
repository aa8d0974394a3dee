/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/megatron_fsdp.h"

#include "tensor/autograd.h"
#include "tensor/launch.h"
#include "train/megatron/finalize.h"
#include "train/megatron/trainer.h"

/** The hooks of a module that has parameters of its own; NULL: it is below a
 *  unit, or has none. */
static const me_module_hooks *hooks_of(const me_megatron_fsdp *f,
                                       me_module_id module)
{
    for (uint32_t i = 0; i < f->n_modules; i++) {
        if (f->modules[i].module == module) {
            return &f->modules[i].hooks;
        }
    }
    return NULL;
}

/** Where ranks own parts of the parameters, each module outside of units gathers
 *  its own, and each unit all of its. Elsewhere hooks gather what has memory. */
static void hook_modules(me_megatron_fsdp *f)
{
    me_gpt *gpt = &f->t->chunks[0];
    if (f->t->config->parallel.sharding_strategy !=
        ME_SHARDING_OPTIM_GRADS_PARAMS) {
        return;
    }
    me_megatron_fsdp_hook(f);
    gpt->embedding.word_hooks = hooks_of(f, gpt->embedding.word_module);
    gpt->embedding.position_hooks = hooks_of(f, gpt->embedding.position_module);
    for (int32_t i = 0; i < gpt->decoder.num_layers; i++) {
        gpt->decoder.layers[i].hooks =
            hooks_of(f, gpt->decoder.layers[i].module);
    }
    gpt->decoder.final_layernorm.hooks =
        hooks_of(f, gpt->decoder.final_layernorm.module);
    for (int32_t i = 0; i < gpt->mtp.num_layers; i++) {
        me_mtp_layer *layer = &gpt->mtp.layers[i];
        layer->enorm.hooks = hooks_of(f, layer->enorm.module);
        layer->hnorm.hooks = hooks_of(f, layer->hnorm.module);
        layer->eh_proj.hooks = hooks_of(f, layer->eh_proj.module);
        layer->mtp_model_layer.hooks =
            hooks_of(f, layer->mtp_model_layer.module);
        layer->final_layernorm.hooks =
            hooks_of(f, layer->final_layernorm.module);
    }
    gpt->output_layer.hooks = hooks_of(f, gpt->output_layer.module);
}

static void wrap(me_trainer *t)
{
    if (!t->config->parallel.init_model_with_meta_device) {
        me_parameters_to_device(&t->nn);
    }
    me_parameters_to_half(&t->nn);
    me_megatron_fsdp *f = me_engine_alloc(t->e, 1, sizeof *f);
    if (f == NULL) {
        return;
    }
    f->t = t;
    t->megatron_fsdp = f;
    me_megatron_fsdp_lay_out(f);
    if (me_engine_is_ok(t->e)) {
        me_megatron_fsdp_make_pools(f);
    }
    if (me_engine_is_ok(t->e)) {
        me_megatron_fsdp_build(f);
        hook_modules(f);
        t->main_grads =
            (me_main_grads){.get = me_megatron_fsdp_main_grad, .self = f};
        me_tape_on_grad(t->e, me_megatron_fsdp_on_grad, t);
    }
}

static void zero_grad_buffer(me_trainer *t)
{
    me_megatron_fsdp_zero_grad(t->megatron_fsdp);
}

static void finish_grad_sync(me_trainer *t, int32_t chunk)
{
    (void)chunk; // the only one
    me_megatron_fsdp_finish_grad_sync(t->megatron_fsdp);
}

static void begin_backward(me_trainer *t)
{
    me_megatron_fsdp_begin_backward(t->megatron_fsdp);
}

static void end_backward(me_trainer *t)
{
    me_megatron_fsdp_end_backward(t->megatron_fsdp);
}

static void end_step(me_trainer *t)
{
    me_megatron_fsdp_start_param_sync(t->megatron_fsdp);
}

static void scale_gradients(me_trainer *t)
{
    me_megatron_fsdp_update_main_grads(t->megatron_fsdp);
}

/** Of this rank's parts, float32. One of them alone is reduced in place. */
static void reduce_partial_gradients(me_trainer *t, uint64_t numel)
{
    me_engine *e = t->e;
    uint64_t own = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->parameters.count; i++) {
        const me_parameter *p = t->parameters.parameters[i];
        const uint64_t part = me_megatron_fsdp_slice(t->megatron_fsdp, p).numel;
        if (me_gradient_is_partial(t, p) && part > 0) {
            own += part;
            count++;
        }
    }
    if (count == 0) {
        return;
    }
    (void)numel;
    const me_frame frame = me_enter(e);
    me_tensor *flat =
        me_empty(e, "flatten", me_step_grad_dtype(t), ME_SHAPE(own));
    me_all_reduce(e, t->comm, ME_GROUP_TENSOR, flat);
    me_drop(e, flat);
    me_leave(e, frame, NULL);
}

static uint64_t local_numel(const me_trainer *t, const me_parameter *p)
{
    return me_megatron_fsdp_slice(t->megatron_fsdp, p).numel;
}

static void fini(me_trainer *t)
{
    me_megatron_fsdp *f = t->megatron_fsdp;
    for (uint32_t i = 0; f != NULL && i < f->n_buckets; i++) {
        me_clear(t->e, &f->buckets[i].shard);
        me_clear(t->e, &f->buckets[i].weights);
        me_clear(t->e, &f->buckets[i].main);
        me_clear(t->e, &f->buckets[i].sent);
        me_clear(t->e, &f->buckets[i].gradients);
    }
    if (f != NULL) {
        for (int i = 0; i < 3; i++) {
            me_clear(t->e, &f->gradients[i]);
        }
        me_fsdp_pool_fini(t->e, f, &f->weight_pool);
        me_fsdp_pool_fini(t->e, f, &f->gradient_pool);
        me_fsdp_buckets_destroy(f->layout);
    }
}

/** It follows which buckets are gathered, so that all actions are run. */
const me_model_wrapper me_megatron_fully_sharded_data_parallel = {
    .wrap = wrap,
    .zero_grad_buffer = zero_grad_buffer,
    .finish_grad_sync = finish_grad_sync,
    .begin_backward = begin_backward,
    .end_backward = end_backward,
    .end_step = end_step,
    .scale_gradients = scale_gradients,
    .reduce_partial_gradients = reduce_partial_gradients,
    .local_numel = local_numel,
    .fini = fini,
    .has_own_main_parameters = true,
    .has_one_optimizer = true,
};
