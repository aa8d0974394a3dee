/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/torch/torch_fsdp.h"

#include "nn/torch/dtensor.h"
#include "train/fsdp/fsdp.h"

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static uint32_t count_marked(const me_layer *layer)
{
    uint32_t count = layer->spec->is_sharded ? 1 : 0;
    for (uint32_t i = 0; i < layer->n_children; i++) {
        count += count_marked(&layer->children[i]);
    }
    return count;
}

/** FSDPParamGroup._init_mp_dtypes(): a group's parameters are of one type. */
static void refuse_types(const me_fsdp_group *group, me_engine *e)
{
    const me_dtype first =
        group->n_params == 0
            ? ME_DTYPE_FLOAT32
            : (me_dtype)group->params[0].parameter->tensor->dtype;
    for (uint32_t i = 1; i < group->n_params && me_engine_is_ok(e); i++) {
        const me_parameter *p = group->params[i].parameter;
        if (p->tensor->dtype != (uint8_t)first) {
            me_module_switch(e, p->module);
            me_engine_fail(e, ME_ERR_CONFIG,
                           "module %s: fully_shard() of %s and %s parameters "
                           "in one group, which PyTorch wants of one type; "
                           "fully_shard = true makes a group of a module",
                           me_module_shown(e), me_dtype_name(first),
                           me_dtype_name((me_dtype)p->tensor->dtype));
            me_engine_locate(e);
        }
    }
}

static void wrap_layer(me_fsdp *fsdp, me_layer *layer)
{
    me_fsdp_group *group = me_fsdp_wrap(fsdp, layer->module);
    if (group != NULL) {
        refuse_types(group, layer->nn->e);
        group->keeps_unsharded = layer->spec->keeps_unsharded;
        layer->hooks = &group->hooks;
    }
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the tree
static void wrap_marked(me_fsdp *fsdp, me_layer *layer, const me_layer *model)
{
    for (uint32_t i = 0; i < layer->n_children; i++) {
        wrap_marked(fsdp, &layer->children[i], model);
    }
    if (layer->spec->is_sharded && layer != model) {
        wrap_layer(fsdp, layer);
    }
}

/** fully_shard() over parts of DTensors that are padded, or that two modules
 *  have. */
static void refuse_parts(me_loop *l)
{
    for (uint32_t i = 0; i < l->parameters.count && me_engine_is_ok(l->e);
         i++) {
        const me_parameter *p = l->parameters.parameters[i];
        if (me_dparameter_of(p)->is_uneven || (p->is_tied && p->kind != NULL)) {
            me_engine_fail(l->e, ME_ERR_CONFIG,
                           "torch.data_parallel = \"fully_shard\" over a "
                           "parallelize_plan with %s is not modelled",
                           me_dparameter_of(p)->is_uneven
                               ? "dimensions that parallel.tensor "
                                 "does not divide"
                               : "tied weights");
        }
    }
}

me_fsdp *me_loop_fully_shard(me_loop *l, me_layer *model, bool is_stage)
{
    refuse_parts(l);
    me_fsdp *fsdp = me_fsdp_create(&(me_fully_shard_spec){
        .nn = &l->nn,
        .group = me_mesh_group(l->comm, ME_GROUP_DATA_SHARD),
        .has_copies = l->comm->size[ME_GROUP_DATA_REPLICATE] > 1,
        .copies = me_mesh_group(l->comm, ME_GROUP_DATA_REPLICATE),
        .is_last_pass = &l->is_last_pass,
        .config = &l->fully_shard,
        .n_modules = count_marked(model) + 1,
        .is_meta = l->config->torch_job.tree->is_meta,
        .is_stage = is_stage,
    });
    if (fsdp != NULL) {
        wrap_marked(fsdp, model, model);
        wrap_layer(fsdp, model);
    }
    return fsdp;
}

static void *wrap(me_loop *l)
{
    return me_loop_fully_shard(l, l->model, false);
}

static void end_backward(void *self)
{
    me_fsdp_end_backward(self);
}

static void unwrap(void *self)
{
    me_fsdp_fini(self);
}

const me_wrapper me_fsdp_wrapper_row = {
    .wrap = wrap,
    .end_backward = end_backward,
    .unwrap = unwrap,
};
