/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/optimizer.h"

#include "base/alloc.h"
#include "base/size.h"
#include "ops/reduce.h"
#include "tensor/launch.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/clip_grads.h"
#include "train/megatron/hybrid_optimizer.h"
#include "train/megatron/layer_wise.h"
#include "train/megatron/quantized_parameters.h"
#include "train/megatron/strands.h"
#include "train/megatron/trainer.h"
#include "train/optim/emerging.h"
#include "train/optim/optim.h"

/** Of a float16 job's dynamic loss scale: its bounds and counters. */
enum {
    CONSTANTS_DYNAMIC = 3
};

static bool is_fp16(const me_trainer *t)
{
    return t->config->train.params_dtype == ME_DTYPE_FLOAT16;
}

bool me_adam_holds_main_parameters(const me_config *config)
{
    const me_optimizer_config *o = &config->optimizer;
    return o->precision_aware &&
           (o->main_params_dtype != ME_DTYPE_FLOAT32 ||
            config->fp8.format == ME_FP8_NONE ||
            config->fp8.recipe == ME_FP8_DELAYED || o->cpu_offload);
}

/** Main parameters of the optimizer's own, apart from those that the kernels of
 *  a precision-aware one hold. */
static bool has_main_parameters(const me_trainer *t)
{
    return !t->wrapper->has_own_main_parameters &&
           !me_adam_holds_main_parameters(t->config) &&
           t->config->train.params_dtype != ME_DTYPE_FLOAT32;
}

/** Is the optimizer one of mixed precision? The distributed one is, of any type. */
static bool is_mixed(const me_trainer *t)
{
    return t->config->train.params_dtype != ME_DTYPE_FLOAT32 ||
           t->config->optimizer.distributed;
}

/** Does it have a MegatronGradScaler? float16's does, and any other one that is
 * given a loss scale; an emerging one never does. */
static bool has_scaler(const me_trainer *t, const me_optimizer *o)
{
    return t->config->train.has_loss_scale && is_mixed(t) &&
           o->part != ME_PART_MATRICES;
}

/** The loss scale, or 1 in its place, and what goes with it: with a scaler
 *  found_inf, and a flag for kernels over many tensors unless the model is bf16. */
static int count_constants(const me_trainer *t, const me_optimizer *o)
{
    const bool is_bf16 = t->config->train.params_dtype == ME_DTYPE_BFLOAT16;
    return 1 + (has_scaler(t, o) ? 1 : 0) + (is_mixed(t) && !is_bf16 ? 1 : 0) +
           (t->config->train.has_dynamic_loss_scale ? CONSTANTS_DYNAMIC : 0);
}

me_tensor *me_make_main_parameter(me_trainer *t, const me_parameter *parameter,
                                  uint64_t numel)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_module_switch_to_shard(e, parameter->module);
    me_tensor *clone =
        me_empty(e, "clone", t->config->train.params_dtype, ME_SHAPE(numel));
    me_tensor *main = me_keep(e, "float", ME_CATEGORY_MAIN_PARAMETER,
                              ME_DTYPE_FLOAT32, ME_SHAPE(numel));
    me_drop(e, clone);
    me_leave(e, frame, NULL);
    return main;
}

static void make_main_parameters(me_trainer *t, me_optimizer *o)
{
    for (int32_t strand = 0; strand < me_strands_count(t); strand++) {
        me_strand_begin(t, strand);
        for (uint32_t i = 0; i < o->count && me_engine_is_ok(t->e); i++) {
            me_shard_state *s = &o->shards[i];
            s->main = me_make_main_parameter(t, s->parameter, s->numel);
        }
        me_module_switch(t->e, ME_NO_MODULE);
        me_strand_end(t);
    }
}

/** _get_qkv_split_shapes(): queries of a group, a key, a value. */
static void create_emerging(const me_trainer *t, me_optimizer *o)
{
    const me_model_config *m = &t->config->model;
    const uint64_t d = m->kv_channels;
    o->emerging = (me_emerging){
        .config = &t->config->optimizer,
        .comm = t->comm,
        .is_adaptive = o->kind == ME_OPTIMIZER_ADAPTIVE_MUON,
        .qkv_rows = {m->num_attention_heads / m->num_query_groups * d, d, d},
    };
}

/** The kernels' flag, which there is but once. */
static void create_flag(me_trainer *t, me_optimizer *o)
{
    if (t->config->impl.optimizer == ME_OPTIMIZER_FUSED &&
        !me_is_emerging_optimizer(o->kind) && o->overflow_flag == NULL) {
        o->overflow_flag = me_keep_scalar(t->e, "overflow_flag", 4);
    }
}

/** The kernels' flag, loss scale and main parameters of one of the chained
 *  optimizers. */
static void create(me_trainer *t, me_optimizer *o)
{
    if (t->config->optimizer.cpu_offload) {
        me_hybrid_build_whole(t, o);
    } else {
        create_flag(t, o);
    }
    const me_optimizer_config *c = &t->config->optimizer;
    const bool has_masters = me_adam_holds_main_parameters(t->config);
    o->aware = (me_precision_aware){
        .has_masters = has_masters,
        .params_dtype =
            has_masters ? t->config->train.params_dtype : ME_DTYPE_FLOAT32,
        .grad_dtype = me_step_grad_dtype(t),
        .dtypes = {c->exp_avg_dtype, c->exp_avg_sq_dtype, c->main_params_dtype},
    };
    if (me_is_emerging_optimizer(o->kind)) {
        create_emerging(t, o);
    }
    const int n = count_constants(t, o);
    for (int i = 0; i < n; i++) {
        o->constants[i] = me_keep_scalar(t->e, "loss_scale", 4);
    }
    if (has_main_parameters(t)) {
        make_main_parameters(t, o);
    }
    if (t->config->optimizer.cpu_offload) {
        me_hybrid_build(t, o);
    }
}

/** Those that there are: experts' only where there are experts. */
static int count_used(const me_trainer *t)
{
    return t->wrapper->has_one_optimizer ||
                   me_is_emerging_optimizer(t->config->optimizer.kind) ||
                   me_has_experts_optimizer(t)
               ? t->n_optimizers
               : t->n_optimizers - 1;
}

/** Groups of experts are gathered before it is known whether there are any. */
void me_optimizer_create(me_trainer *t)
{
    me_optimizer_collect(t);
    me_strands_collect(t);
    if (!me_engine_is_ok(t->e)) {
        return;
    }
    const int used = count_used(t);
    const bool is_emerging =
        me_is_emerging_optimizer(t->config->optimizer.kind);
    for (int i = 0; i < t->n_optimizers; i++) {
        if (i == 0 || !is_emerging) { // which makes the groups of all at once
            me_gather_parameter_groups(t, &t->optimizers[i]);
        }
        // A layer-wise optimizer is given those that are built.
        for (int k = 0;
             i == 0 && k < used && me_config_is_layer_wise(t->config); k++) {
            create_flag(t, &t->optimizers[k]);
        }
        if (i < used) {
            create(t, &t->optimizers[i]);
        }
    }
}

static void destroy(me_trainer *t, me_optimizer *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        me_shard_state_fini(t->e, &o->shards[i]);
    }
    me_precision_aware_fini(t->e, &o->aware);
    me_hybrid_forget_whole(t, o);
    me_clear(t->e, &o->overflow_flag);
    for (int i = 0; i < ME_OPTIMIZER_CONSTANTS; i++) {
        me_clear(t->e, &o->constants[i]);
    }
    me_free(o->shards);
    o->shards = NULL;
    o->count = 0;
}

void me_optimizer_destroy(me_trainer *t)
{
    me_strands_destroy(t);
    for (int i = 0; i < t->n_optimizers; i++) {
        destroy(t, &t->optimizers[i]);
    }
}

/** Those of one rank. */
static void zero_own_gradients(me_trainer *t)
{
    for (int i = 0; i < t->n_optimizers; i++) {
        for (uint32_t k = 0; k < t->optimizers[i].count; k++) {
            me_shard_state *s = &t->optimizers[i].shards[k];
            me_clear(t->e, &s->gradient);
            if (t->wrapper->has_dtensors) {
                me_clear(t->e, &s->parameter->tensor->grad);
            }
        }
    }
}

/** Are there float32 copies of gradients? An Adam that holds main parameters takes
 *  them as they are. */
static bool copies_gradients(const me_trainer *t)
{
    return t->config->train.grad_dtype != ME_DTYPE_FLOAT32 &&
           !t->wrapper->has_own_main_parameters &&
           !me_adam_holds_main_parameters(t->config);
}

void me_optimizer_zero_grad(me_trainer *t)
{
    if (!copies_gradients(t)) {
        zero_own_gradients(t);
        return;
    }
    for (int32_t strand = 0; strand < me_strands_count(t); strand++) {
        me_strand_begin(t, strand);
        zero_own_gradients(t);
        me_strand_end(t);
    }
}

me_dtype me_step_grad_dtype(const me_trainer *t)
{
    const me_parallel_config *p = &t->config->parallel;
    if (p->megatron_fsdp && p->fsdp_main_params_dtype >= 0) {
        return (me_dtype)p->fsdp_main_params_dtype;
    }
    return p->megatron_fsdp || me_adam_holds_main_parameters(t->config)
               ? t->config->train.grad_dtype
               : ME_DTYPE_FLOAT32;
}

/** The float32 copies of one rank's gradients. */
static void copy_own_gradients(me_trainer *t, const me_optimizer *o)
{
    me_engine *e = t->e;
    for (uint32_t i = 0; i < o->count; i++) {
        me_shard_state *s = &o->shards[i];
        const me_frame frame = me_enter(e);
        me_module_switch_to_shard(e, s->parameter->module);
        s->gradient = me_retain(
            me_empty(e, "float", ME_DTYPE_FLOAT32, ME_SHAPE(s->numel)));
        me_launch_kernel(e, ME_KERNEL_CAST, 0, 6 * s->numel);
        if (t->wrapper->has_dtensors) { // model_param.grad = None
            me_clear(e, &s->parameter->tensor->grad);
        }
        me_leave(e, frame, NULL);
    }
    me_module_switch(e, ME_NO_MODULE);
}

/** Gradients that are not float32 get a float32 copy until they are zeroed. */
static void copy_gradients(me_trainer *t, me_optimizer *o)
{
    if (!copies_gradients(t)) {
        return;
    }
    const me_category category = me_category_set(t->e, ME_CATEGORY_GRADIENT);
    for (int32_t strand = 0; strand < me_strands_count(t); strand++) {
        me_strand_begin(t, strand);
        copy_own_gradients(t, o);
        me_strand_end(t);
    }
    me_category_set(t->e, category);
}

/** Unscale by the inverse of the loss scale, and look for an overflow. */
static void unscale(me_trainer *t, const me_optimizer *o)
{
    me_engine *e = t->e;
    const me_frame frame = me_enter(e);
    me_tensor *wide = me_scratch(e, "double", 8);
    me_tensor *reciprocal = me_scratch(e, "reciprocal", 8);
    me_drop(e, wide);
    me_tensor *inverse = me_scratch(e, "float", 4);
    me_drop(e, reciprocal);
    me_communicate(e, t->comm,
                   (me_call){me_statistics_group(t, o),
                             ME_COLLECTIVE_ALL_REDUCE, ME_DTYPE_FLOAT32, 1, -1,
                             false});
    for (uint32_t i = 0; i < o->count; i++) {
        const uint64_t numel = o->shards[i].numel;
        me_launch_kernel(e, ME_KERNEL_OPTIMIZER, numel, 8 * numel);
    }
    me_launch_host_waits(e); // found_inf.item()
    me_drop(e, inverse);
    me_leave(e, frame, NULL);
}

/** A dynamic scale starts at 2^32, which the first steps never survive; from
 *  the second overflow in a row on it is lowered. */
static void overflow(me_trainer *t, me_optimizer *o)
{
    me_engine *e = t->e;
    o->overflows++;
    if (o->overflows == 1) {
        return;
    }
    const me_frame frame = me_enter(e);
    me_tensor *lower = me_scratch(e, "mul", 4);
    const me_category category = me_category_set(e, ME_CATEGORY_OTHER);
    me_tensor *scale = me_retain(me_scratch(e, "max", 4)); // it stays
    me_category_set(e, category);
    me_drop(e, lower);
    me_release(e, o->constants[0]);
    o->constants[0] = scale;
    me_leave(e, frame, NULL);
}

/** Group by group, from the first shard that is the device's on. */
void me_optimizer_step_groups(me_trainer *t, me_optimizer *o)
{
    const me_optimizer_config *c = &t->config->optimizer;
    uint32_t begin = o->n_offloaded;
    for (int group = 0; group < ME_OPTIMIZER_GROUPS; group++) {
        const me_step_group g = {
            .shards = o->shards + begin,
            .count =
                o->group_end[group] > begin ? o->group_end[group] - begin : 0,
            .impl = t->config->impl.optimizer,
            .is_first_step = !o->has_stepped,
            .is_decayed = group != ME_GROUP_UNDECAYED &&
                          t->config->optimizer.weight_decay > 0,
            .has_momentum = t->config->optimizer.sgd_momentum > 0,
            .aware = c->precision_aware && !c->cpu_offload ? &o->aware : NULL,
            .emerging = &o->emerging,
        };
        me_optim_step(t->e, o->kind, &g);
        begin += g.count;
    }
    me_precision_aware_end(t->e, &o->aware);
    me_emerging_end(t->e, &o->emerging);
}

/** As each strand in turn. */
static void step_strands(me_trainer *t, me_optimizer *o)
{
    for (int32_t strand = 0; strand < me_strands_count(t); strand++) {
        me_strand_begin(t, strand);
        me_optimizer_step_groups(t, o);
        me_strand_end(t);
    }
}

/** _copy_main_params_to_model_params(): fp16 takes the way of multi-tensor
 *  scaling, of which Megatron-LM's own makes each scaled parameter before it is
 *  copied. */
static void copy_to_model(me_trainer *t, const me_optimizer *o)
{
    me_quantize_parameters(t, o);
    for (uint32_t i = 0; has_main_parameters(t) && i < o->count; i++) {
        const uint64_t numel = o->shards[i].numel;
        me_launch_kernel(t->e, ME_KERNEL_CAST, 0, 6 * numel);
    }
    if (!is_fp16(t) || t->config->optimizer.distributed ||
        t->config->impl.optimizer == ME_OPTIMIZER_FUSED) {
        return;
    }
    for (uint32_t i = 0; i < o->count; i++) {
        me_temporary(t->e, "multi_tensor_scale", 4 * o->shards[i].numel);
    }
}

/** Updated shards go to all data-parallel ranks, in the buffer itself. */
static void gather_buffer(me_trainer *t, const me_ddp_buffer *buffer)
{
    const me_buffer *layout = buffer->layout;
    const uint64_t ranks = (uint64_t)t->comm->size[buffer->group];
    for (uint32_t b = 0; layout != NULL && b < layout->n_buckets; b++) {
        const me_bucket *bucket = &layout->buckets[b];
        me_communicate(t->e, t->comm,
                       (me_call){buffer->group, ME_COLLECTIVE_ALL_GATHER,
                                 me_ddp_param_dtype(t, buffer),
                                 (bucket->end - bucket->start) / ranks, -1,
                                 false});
    }
}

/** A chunk's buffers of a sharing. */
static void gather_chunk(me_trainer *t, const me_ddp *ddp, me_sharing sharing)
{
    for (int i = 0; i < ddp->n_buffers; i++) {
        if (ddp->buffers[i].sharing == sharing) {
            gather_buffer(t, &ddp->buffers[i]);
        }
    }
}

/** After a step. A first chunk that has its own optimizer is gathered whole
 *  then, its experts as well, which are not stepped yet. */
static void gather_parameters(me_trainer *t, const me_optimizer *o)
{
    const bool is_early =
        t->config->optimizer.overlap_param_gather_with_optimizer_step;
    for (int32_t c = o->chunk_begin;
         c < o->chunk_end && me_config_scatters_gradients(t->config); c++) {
        const bool is_expert = o->sharing == ME_SHARING_EXPERT;
        if (!is_early || c > 0 || !is_expert) {
            gather_chunk(t, &t->ddp[c], o->sharing);
        }
        if (is_early && c == 0 && !is_expert) {
            gather_chunk(t, &t->ddp[c], ME_SHARING_EXPERT);
        }
    }
}

/** Does a step end with the parameters of all, rather than a forward fetch them? */
static bool waits_for_parameters(const me_trainer *t)
{
    return t->config->parallel.megatron_fsdp ||
           (me_config_scatters_gradients(t->config) &&
            !t->config->optimizer.overlap_param_gather);
}

/** The gradients are ready and no step is skipped. Only an optimizer that is in
 *  no chain times its clipping and its counting of zeros. */
static void step_all(me_trainer *t, int count)
{
    const int timed = t->wrapper->has_one_optimizer ? 1 : 0;
    me_start_timers(t, timed);
    me_clip_gradients(t, count);
    me_start_timers(t, timed);
    if (t->config->optimizer.log_num_zeros_in_grad) {
        me_count_zeros(t, count);
    }
    for (int i = 0; i < count; i++) {
        me_start_timers(t, 1);
        if (t->config->optimizer.cpu_offload) {
            me_hybrid_step(t, &t->optimizers[i]);
        } else {
            step_strands(t, &t->optimizers[i]);
        }
        t->optimizers[i].has_stepped = true;
        me_start_timers(t, is_mixed(t) ? 1 : 0);
        copy_to_model(t, &t->optimizers[i]);
        me_start_timers(t, waits_for_parameters(t) ? 1 : 0);
        gather_parameters(t, &t->optimizers[i]);
    }
    me_layer_wise_gather(t);
    if (t->wrapper->end_step != NULL) {
        t->wrapper->end_step(t);
    }
}

bool me_optimizer_step(me_trainer *t)
{
    me_engine *e = t->e;
    const me_phase phase = me_phase_set(e, ME_PHASE_OPTIMIZER);
    const me_category category = me_category_set(e, ME_CATEGORY_TEMPORARY);
    const int count = count_used(t);
    me_point(e, "optimizer_begin");
    for (int i = 0; i < count; i++) {
        me_start_timers(t, 1);
        copy_gradients(t, &t->optimizers[i]);
        if (has_scaler(t, &t->optimizers[i])) {
            me_start_timers(t, 1);
            unscale(t, &t->optimizers[i]);
        }
    }
    const bool is_skipped = t->config->train.first_steps_overflow &&
                            t->iteration < t->spec->iterations;
    for (int i = 0; i < count && is_skipped; i++) {
        overflow(t, &t->optimizers[i]);
    }
    if (!is_skipped) {
        step_all(t, count);
    }
    me_point(e, "optimizer_end");
    me_category_set(e, category);
    me_phase_set(e, phase);
    return !is_skipped;
}
