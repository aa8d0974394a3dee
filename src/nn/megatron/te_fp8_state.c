/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_fp8_state.h"

#include "base/size.h"
#include "nn/megatron/te_state.h"
#include "tensor/launch.h"

enum {
    FORWARD_TENSORS = 3, /* of a product: input, weight, output */
    BACKWARD_TENSORS = 2 /* gradients of output and input */
};

static bool has_fp8(const me_nn *nn)
{
    return nn->config->fp8.format != ME_FP8_NONE && nn->te != NULL;
}

static me_fp8_state *state_of(const me_nn *nn)
{
    return &nn->te->fp8;
}

bool me_fp8_is_on(const me_nn *nn)
{
    return has_fp8(nn) && state_of(nn)->is_enabled;
}

bool me_fp8_is_first_run(const me_nn *nn)
{
    return has_fp8(nn) && state_of(nn)->is_recompute &&
           !state_of(nn)->is_second;
}

bool me_fp8_has_outer_context(const me_nn *nn)
{
    return has_fp8(nn) && me_fp8_row_of(nn)->has_state;
}

static void clear_meta(me_engine *e, me_fp8_meta *meta)
{
    me_clear(e, &meta->history);
    me_clear(e, &meta->scale);
}

void me_fp8_state_fini(me_engine *e, me_fp8_state *state)
{
    for (me_fp8_module *m = state->modules; m != NULL; m = m->next) {
        clear_meta(e, &m->forward);
        clear_meta(e, &m->backward);
        clear_meta(e, &m->updated);
        for (me_fp8_stash *s = m->first; s != NULL; s = s->next) {
            clear_meta(e, &s->meta);
        }
        me_fp8_release(e, &m->weight);
    }
    *state = (me_fp8_state){.depth = 0};
}

me_fp8_module *me_fp8_module_create(me_nn *nn, uint32_t n_gemms)
{
    if (!has_fp8(nn)) {
        return NULL;
    }
    me_fp8_module *module = me_engine_alloc(nn->e, 1, sizeof *module);
    if (module != NULL) {
        module->n_forward = FORWARD_TENSORS * n_gemms;
        module->n_backward = BACKWARD_TENSORS * n_gemms;
        module->end = &module->first;
        module->next = state_of(nn)->modules;
        state_of(nn)->modules = module;
    }
    return module;
}

/** is_first_last_bf16_layer(). */
static bool is_bf16_layer(const me_nn *nn, int32_t layer)
{
    const me_fp8_config *c = &nn->config->fp8;
    const int32_t end =
        (int32_t)nn->config->model.num_layers - c->num_layers_at_end_in_bf16;
    return layer >= 0 && c->first_last_layers_bf16 &&
           (layer < c->num_layers_at_start_in_bf16 || layer >= end);
}

/** FP8GlobalStateManager.autocast_enter(). */
static void autocast_enter(me_fp8_state *state, bool is_enabled)
{
    state->is_enabled = is_enabled;
    state->is_first = state->is_first || state->depth == 0;
    state->depth++;
}

/** What a context restores (set_autocast_state()); what has been counted
 *  meanwhile stays. */
static void restore(me_nn *nn, const me_fp8_state *before)
{
    me_fp8_state *state = state_of(nn);
    state->is_enabled = before->is_enabled;
    state->is_first = before->is_first;
    state->depth = before->depth;
}

bool me_fp8_is_layer(const me_nn *nn, int32_t layer)
{
    return has_fp8(nn) && !is_bf16_layer(nn, layer);
}

me_fp8_state me_fp8_enter(me_nn *nn, me_fp8_context where, int32_t layer)
{
    const me_fp8_state none = {.depth = 0};
    if (!has_fp8(nn)) {
        return none;
    }
    const me_fp8_state before = *state_of(nn);
    const bool is_outer = me_fp8_has_outer_context(nn);
    const bool is_here = where == ME_FP8_CONTEXT_ANY ||
                         is_outer == (where == ME_FP8_CONTEXT_OUTER);
    if (is_here && !is_bf16_layer(nn, layer)) {
        autocast_enter(state_of(nn), true);
    }
    return before;
}

/** The end of the outermost context brings the forward's scales up to date. */
static void leave(me_nn *nn, const me_fp8_state *before)
{
    const me_fp8_state *state = state_of(nn);
    if (state->depth == before->depth) {
        return; // no context was entered
    }
    const bool is_last = state->is_enabled && before->depth == 0;
    restore(nn, before);
    if (is_last && me_context_now(nn->e)->is_recording) {
        me_fp8_reduce(nn, true);
    }
}

void me_fp8_exit(me_nn *nn, const me_fp8_state *before)
{
    if (has_fp8(nn)) {
        leave(nn, before);
    }
}

bool me_fp8_init_enter(me_nn *nn, int32_t layer)
{
    if (!has_fp8(nn)) {
        return false;
    }
    const bool before = state_of(nn)->is_init;
    state_of(nn)->is_init = nn->config->fp8.param && !is_bf16_layer(nn, layer);
    return before;
}

void me_fp8_init_exit(me_nn *nn, bool before)
{
    if (has_fp8(nn)) {
        state_of(nn)->is_init = before;
    }
}

me_fp8_state me_fp8_checkpoint_enter(me_nn *nn, bool is_inside)
{
    const me_fp8_state none = {.depth = 0};
    if (!has_fp8(nn)) {
        return none;
    }
    me_fp8_state *state = state_of(nn);
    state->is_second = me_context_now(nn->e)->is_recording;
    if (!state->is_second) {
        state->is_recompute = is_inside;
        state->was_first = state->is_first;
        return *state;
    }
    state->is_first = state->was_first;
    const me_fp8_state before = *state;
    autocast_enter(state, is_inside);
    return before;
}

void me_fp8_checkpoint_exit(me_nn *nn, const me_fp8_state *before)
{
    if (has_fp8(nn)) {
        leave(nn, before);
        state_of(nn)->is_recompute = false;
        state_of(nn)->is_second = false;
    }
}

static me_tensor *keep(me_nn *nn, const char *op, uint64_t numel)
{
    return me_keep(nn->e, op, ME_CATEGORY_BUFFER, ME_DTYPE_FLOAT32,
                   ME_SHAPE(numel));
}

static uint64_t history_numel(const me_nn *nn, uint32_t tensors)
{
    return me_size_mul((uint64_t)nn->config->fp8.amax_history_len, tensors);
}

/** DelayedScalingRecipeState. */
static me_fp8_meta make_meta(me_nn *nn, uint32_t tensors)
{
    me_fp8_meta meta;
    meta.scale = keep(nn, "scale", tensors);
    meta.history = keep(nn, "amax_history", history_numel(nn, tensors));
    return meta;
}

/** `amax_history.clone()`, and then of the scale: each takes the place of what is
 *  there. */
static void clone_meta(me_nn *nn, uint32_t tensors, me_fp8_meta *meta)
{
    me_tensor *history = keep(nn, "clone", history_numel(nn, tensors));
    me_clear(nn->e, &meta->history);
    meta->history = history;
    me_tensor *scale = keep(nn, "clone", tensors);
    me_clear(nn->e, &meta->scale);
    meta->scale = scale;
}

void me_fp8_ensure_meta(me_nn *nn, me_fp8_module *module)
{
    if (module != NULL && me_fp8_row_of(nn)->has_state &&
        module->forward.scale == NULL && me_engine_is_ok(nn->e)) {
        module->forward = make_meta(nn, module->n_forward);
        module->backward = make_meta(nn, module->n_backward);
    }
}

/** copy_forward_fp8_meta_tensors_for_recompute(). */
static void stash(me_nn *nn, me_fp8_module *module)
{
    me_fp8_state *state = state_of(nn);
    me_fp8_stash *s = state->free_stashes;
    if (s != NULL) {
        state->free_stashes = s->next;
    } else {
        s = me_engine_alloc(nn->e, 1, sizeof *s);
    }
    if (s == NULL) {
        return;
    }
    *s = (me_fp8_stash){.next = NULL};
    clone_meta(nn, module->n_forward, &s->meta);
    *module->end = s;
    module->end = &s->next;
}

/** get_old_fp8_meta_tensors_for_recompute(). */
static void unstash(me_nn *nn, me_fp8_module *module)
{
    me_fp8_state *state = state_of(nn);
    me_fp8_stash *s = module->first;
    clone_meta(nn, module->n_forward, &module->updated);
    if (s == NULL) {
        return;
    }
    module->first = s->next;
    if (module->first == NULL) {
        module->end = &module->first;
    }
    me_clear(nn->e, &s->meta.scale);
    me_clear(nn->e, &s->meta.history);
    s->next = state->free_stashes;
    state->free_stashes = s;
}

void me_fp8_prepare_forward(me_nn *nn, me_fp8_module *module)
{
    me_fp8_state *state = nn->te == NULL ? NULL : state_of(nn);
    if (module == NULL || !me_fp8_is_on(nn) || !me_fp8_row_of(nn)->has_state ||
        !me_engine_is_ok(nn->e)) {
        return;
    }
    if (state->is_second) {
        unstash(nn, module);
        return;
    }
    me_fp8_ensure_meta(nn, module);
    if (!module->is_reduced) {
        module->is_reduced = true;
        state->n_amaxes[0] += module->n_forward;
        state->n_amaxes[1] += module->n_backward;
    }
    if (state->is_recompute) {
        stash(nn, module);
    }
}

bool me_fp8_takes_first(me_nn *nn, bool restores)
{
    if (!has_fp8(nn) || !me_context_now(nn->e)->is_recording) {
        return false;
    }
    me_fp8_state *state = state_of(nn);
    const bool is_first = state->is_first;
    state->is_first = restores && state->is_second && is_first;
    return is_first;
}

void me_fp8_reduce(me_nn *nn, bool is_forward)
{
    me_engine *e = nn->e;
    const uint64_t n = state_of(nn)->n_amaxes[is_forward ? 0 : 1];
    if (n == 0 || !me_engine_is_ok(e)) {
        return;
    }
    const me_frame frame = me_enter(e);
    me_tensor *amaxes =
        me_empty(e, "reduce_and_update", ME_DTYPE_FLOAT32, ME_SHAPE(n));
    if (nn->comm->size[ME_GROUP_TENSOR_DATA_CONTEXT] > 1) {
        me_all_reduce(e, nn->comm, ME_GROUP_TENSOR_DATA_CONTEXT, amaxes);
    }
    me_leave(e, frame, NULL);
}

/** Is this module's first micro-batch of the step? */
static bool is_first_microbatch(const me_nn *nn, const me_fp8_module *module)
{
    return module->iteration != me_iteration_get(nn->e) + 1;
}

void me_fp8_prepare_weight(me_nn *nn, me_fp8_module *module,
                           const me_parameter *parameter, bool columns,
                           me_quantized *made_out)
{
    *made_out = (me_quantized){NULL, NULL, NULL, NULL};
    if (module == NULL || !me_engine_is_ok(nn->e)) {
        return;
    }
    me_quantized *q = me_quantized_of(parameter);
    if (q != NULL) {
        if (columns) {
            me_fp8_weight_columns(nn, q, parameter->tensor);
        }
        return;
    }
    const bool is_there = module->weight.rows != NULL;
    const bool lacks_columns = columns && module->weight.columns == NULL &&
                               !me_engine_card(nn->e)->has_any_order_fp8;
    if (!is_there || (lacks_columns && me_fp8_row_of(nn)->remakes_weights)) {
        *made_out = me_fp8_quantize_weight(nn, parameter->tensor,
                                           (me_usage){true, columns},
                                           ME_CATEGORY_BUFFER);
    } else if (is_first_microbatch(nn, module)) {
        if (!module->keeps_columns) {
            me_fp8_release_columns(nn->e, &module->weight);
        }
        me_fp8_requantize_weight(nn, parameter->tensor);
    }
}

void me_fp8_keep_weight(me_nn *nn, me_fp8_module *module, bool columns,
                        const me_quantized *made)
{
    if (module == NULL) {
        return;
    }
    module->iteration = me_iteration_get(nn->e) + 1;
    if (made->rows != NULL) {
        me_fp8_release(nn->e, &module->weight);
        module->weight = *made;
        module->keeps_columns = columns;
    }
}

void me_fp8_prepare_weight_columns(me_nn *nn, me_fp8_module *module,
                                   const me_parameter *parameter)
{
    me_quantized *q = me_quantized_of(parameter);
    if (module != NULL) {
        me_fp8_weight_columns(nn, q == NULL ? &module->weight : q,
                              parameter->tensor);
    }
}

/** The tensor keeps shape and type, and no memory. */
static void empty_tensor(me_nn *nn, me_parameter *parameter)
{
    me_tensor *none =
        me_keep_on_host(nn->e, parameter->dtype, parameter->shape);
    me_set_data(nn->e, parameter->tensor, none);
    me_release(nn->e, none);
}

void me_fp8_init_meta(me_nn *nn, me_fp8_module *module)
{
    if (me_engine_is_ok(nn->e) && state_of(nn)->is_init) {
        me_fp8_ensure_meta(nn, module);
    }
}

void me_fp8_quantize_parameter(me_nn *nn, me_fp8_module *module,
                               me_parameter *parameter)
{
    if (module == NULL || parameter == NULL || !me_engine_is_ok(nn->e) ||
        !state_of(nn)->is_init) {
        return;
    }
    me_fp8_ensure_meta(nn, module);
    me_quantized_kind *kind = me_engine_alloc(nn->e, 1, sizeof *kind);
    me_quantized *held = me_engine_alloc(nn->e, 1, sizeof *held);
    if (kind == NULL || held == NULL) {
        return;
    }
    *kind =
        (me_quantized_kind){.kind = {.name = ME_KIND_QUANTIZED}, .held = held};
    parameter->kind = &kind->kind;
    if (parameter->tensor != NULL) {
        me_fp8_quantize_made(nn, parameter);
    }
}

void me_fp8_quantize_made(me_nn *nn, me_parameter *parameter)
{
    me_quantized *held = me_quantized_of(parameter);
    if (held == NULL || !me_engine_is_ok(nn->e)) {
        return;
    }
    *held = me_fp8_quantize_weight(
        nn, parameter->tensor, (me_usage){true, true}, ME_CATEGORY_PARAMETER);
    parameter->tensor->kind = parameter->kind;
    empty_tensor(nn, parameter);
}
