/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "nn/nn.h"
#include "tensor/engine.h"

static bool append(me_nn *nn, me_parameter *parameter)
{
    me_parameter_list *list = nn->parameters;
    me_parameter **larger =
        me_grow(list->parameters, list->count, &list->capacity,
                sizeof(me_parameter *), "parameters");
    if (larger == NULL) {
        me_engine_fail(nn->e, ME_ERR_NOMEM, "no host memory for parameters");
        return false;
    }
    list->parameters = larger;
    parameter->index = list->count;
    list->parameters[list->count++] = parameter;
    return true;
}

/** Device memory of a parameter, held by its list and not by a frame. */
static me_tensor *device_tensor(me_nn *nn, const me_parameter *parameter,
                                me_dtype dtype)
{
    return me_keep(nn->e, parameter->name, ME_CATEGORY_PARAMETER, dtype,
                   parameter->shape);
}

void me_parameter_to_device(me_nn *nn, me_parameter *parameter, me_dtype dtype)
{
    me_module_switch(nn->e, parameter->module);
    parameter->tensor = device_tensor(nn, parameter, dtype);
    if (me_engine_is_ok(nn->e)) {
        parameter->tensor->requires_grad = true;
        parameter->tensor->kind = parameter->kind;
        parameter->tensor->is_made_later = parameter->is_made_later;
        parameter->tensor->parameter = parameter;
    }
}

me_parameter *me_parameter_create(me_nn *nn, const me_parameter_spec *spec)
{
    return me_parameter_create_as(nn, spec, nn->config->train.params_dtype);
}

me_parameter *me_parameter_create_as(me_nn *nn, const me_parameter_spec *spec,
                                     me_dtype dtype)
{
    me_parameter *parameter = me_engine_alloc(nn->e, 1, sizeof *parameter);
    if (parameter == NULL || !append(nn, parameter)) {
        return NULL;
    }
    const uint32_t index = parameter->index;
    const me_parallel_config *parallel = &nn->config->parallel;
    const bool is_on_meta = parallel->megatron_fsdp &&
                            parallel->init_model_with_meta_device &&
                            !spec->names_its_device;
    *parameter = (me_parameter){
        .module = spec->module,
        .name = spec->name,
        .numel = me_shape_numel(&spec->shape),
        .shape = spec->shape,
        .dtype = dtype,
        .is_made_on_host = spec->is_made_on_host,
        .is_made_in_params_dtype = spec->is_made_in_params_dtype,
        .is_tensor_sharded = spec->is_tensor_sharded,
        .partition = spec->partition,
        .is_sequence_parallel =
            spec->is_sequence_parallel && nn->config->parallel.sequence,
        .is_expert =
            spec->is_expert && me_has_expert_groups(&nn->config->parallel),
        .is_made_later = spec->is_made_later,
        .chunk = nn->chunk,
        .index = index,
    };
    const me_module_id before = me_module_current(nn->e);
    if (!spec->is_made_on_host && !is_on_meta) {
        const bool was_drawn = me_drawn_set(nn->e, spec->is_drawn);
        me_parameter_to_device(nn, parameter, dtype);
        me_drawn_set(nn->e, was_drawn);
    }
    me_module_switch(nn->e, before);
    me_module_count_parameter(nn->e, spec->module, parameter->numel,
                              parameter->numel * me_dtype_bytes(dtype));
    return parameter;
}

void me_buffer_register(me_nn *nn, me_tensor **tensor, bool stays_float32)
{
    me_parameter_list *list = nn->parameters;
    if (list->n_buffers == list->buffers_capacity) {
        me_module_buffer *larger =
            me_grow(list->buffers, list->n_buffers, &list->buffers_capacity,
                    sizeof *list->buffers, "buffers");
        if (larger == NULL) {
            me_engine_fail(nn->e, ME_ERR_NOMEM, "no host memory for buffers");
            return;
        }
        list->buffers = larger;
    }
    list->buffers[list->n_buffers++] =
        (me_module_buffer){.tensor = tensor,
                           .parameters = list->count,
                           .stays_float32 = stays_float32};
}

void me_parameter_remove(me_nn *nn, me_parameter *parameter)
{
    me_parameter_list *list = nn->parameters;
    list->count--;
    for (uint32_t i = parameter->index; i < list->count; i++) {
        list->parameters[i] = list->parameters[i + 1];
        list->parameters[i]->index = i;
    }
    me_module_discount_parameter(nn->e, parameter->module, parameter->numel,
                                 parameter->numel *
                                     me_dtype_bytes(parameter->dtype));
    me_clear(nn->e, &parameter->tensor);
}

void me_parameters_to_device(me_nn *nn)
{
    for (uint32_t i = 0; i < nn->parameters->count; i++) {
        me_parameter *parameter = nn->parameters->parameters[i];
        if (parameter->is_made_on_host && me_engine_is_ok(nn->e)) {
            me_parameter_to_device(nn, parameter,
                                   parameter->is_made_in_params_dtype
                                       ? nn->config->train.params_dtype
                                       : ME_DTYPE_FLOAT32);
        }
    }
    me_module_switch(nn->e, ME_NO_MODULE);
}

static void cast_buffer(me_nn *nn, me_tensor **buffer, me_dtype dtype)
{
    const me_category category = me_category_set(nn->e, ME_CATEGORY_BUFFER);
    const me_frame frame = me_enter(nn->e);
    me_assign(nn->e, buffer, me_empty_like_as(nn->e, "to", *buffer, dtype));
    me_leave(nn->e, frame, NULL);
    me_category_set(nn->e, category);
}

/** Another dtype takes as many elements and other bytes. */
static void count_cast(me_nn *nn, me_parameter *parameter, me_dtype dtype)
{
    const uint64_t numel = parameter->numel;
    me_module_discount_parameter(nn->e, parameter->module, numel,
                                 numel * me_dtype_bytes(parameter->dtype));
    me_module_count_parameter(nn->e, parameter->module, numel,
                              numel * me_dtype_bytes(dtype));
    parameter->dtype = dtype;
}

void me_parameters_to_half(me_nn *nn)
{
    const me_dtype dtype = nn->config->train.params_dtype;
    if (dtype == ME_DTYPE_FLOAT32) {
        return;
    }
    const me_parameter_list *list = nn->parameters;
    uint32_t b = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        for (; b < list->n_buffers && list->buffers[b].parameters == i; b++) {
            cast_buffer(nn, list->buffers[b].tensor, dtype);
        }
        me_parameter *parameter = list->parameters[i];
        const bool is_other =
            parameter->is_made_on_host || parameter->dtype != dtype;
        if (!is_other || parameter->is_made_in_params_dtype ||
            !me_engine_is_ok(nn->e)) {
            continue;
        }
        if (parameter->tensor == NULL) { // on the meta device
            count_cast(nn, parameter, dtype);
            continue;
        }
        me_module_switch(nn->e, parameter->module);
        me_tensor *half = device_tensor(nn, parameter, dtype);
        me_set_data(nn->e, parameter->tensor, half);
        me_release(nn->e, half);
        if (parameter->dtype != dtype) {
            count_cast(nn, parameter, dtype);
        }
    }
    for (b = 0; b < list->n_buffers; b++) {
        if (list->buffers[b].stays_float32 && me_engine_is_ok(nn->e)) {
            cast_buffer(nn, list->buffers[b].tensor, ME_DTYPE_FLOAT32);
        }
    }
    me_module_switch(nn->e, ME_NO_MODULE);
}

void me_parameters_cast_on_meta(me_nn *nn, me_dtype dtype)
{
    for (uint32_t i = 0; i < nn->parameters->count && me_engine_is_ok(nn->e);
         i++) {
        me_parameter *parameter = nn->parameters->parameters[i];
        if (parameter->dtype != dtype) {
            count_cast(nn, parameter, dtype);
        }
    }
}

void me_parameters_to(me_nn *nn, const me_dtype *dtype)
{
    for (uint32_t i = 0; i < nn->parameters->count && me_engine_is_ok(nn->e);
         i++) {
        me_parameter *parameter = nn->parameters->parameters[i];
        const me_dtype to = dtype == NULL ? parameter->dtype : *dtype;
        const bool is_cast = parameter->dtype != to;
        me_module_switch(nn->e, parameter->module);
        if (is_cast) {
            count_cast(nn, parameter, to);
        }
        if (parameter->parted_from != NULL) {
            continue; // shares what the other one has then
        }
        if (parameter->tensor == NULL) {
            me_parameter_to_device(nn, parameter, to);
        } else if (is_cast) {
            me_tensor *cast = device_tensor(nn, parameter, to);
            me_set_data(nn->e, parameter->tensor, cast);
            me_release(nn->e, cast);
        }
    }
    me_module_switch(nn->e, ME_NO_MODULE);
}

void me_parameter_list_fini(me_engine *e, me_parameter_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        me_clear(e, &list->parameters[i]->tensor);
    }
    me_free(list->parameters);
    me_free(list->buffers);
    *list = (me_parameter_list){0};
}
