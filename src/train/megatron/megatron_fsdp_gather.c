/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/megatron/te_fp8.h"
#include "ops/view.h"
#include "tensor/hooks.h"
#include "tensor/launch.h"
#include "train/megatron/megatron_fsdp.h"
#include "train/megatron/trainer.h"

/** Where buckets are gathered ahead of their use. */
typedef enum prefetch {
    PREFETCH_NONE,
    PREFETCH_NEXT,  /**< the following ones: of a forward */
    PREFETCH_BEFORE /**< the preceding ones: of a backward */
} prefetch;

/** What has a double buffer gives it back, and what is to persist stays. */
static void release(me_megatron_fsdp *f, me_fsdp_group_buffers *b)
{
    const bool persists =
        f->t->config->parallel.fsdp_db_use_persist_buf_on_alloc_fail;
    if (b->status != ME_FSDP_EMPTY && b->is_pooled) {
        me_fsdp_pool_give(&f->weight_pool, (uint32_t)(b - f->buckets));
    } else if (b->status != ME_FSDP_EMPTY && b->weights != NULL && !persists) {
        me_storage_free(f->t->e, b->weights);
    }
    b->status = ME_FSDP_EMPTY;
}

/** recycle_unused_buckets(). */
static void recycle(me_megatron_fsdp *f)
{
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        if (f->buckets[i].can_be_released) {
            release(f, &f->buckets[i]);
            f->buckets[i].can_be_released = false;
        }
    }
}

/** async_bucket_gather(). */
static void gather(me_megatron_fsdp *f, me_fsdp_group_buffers *b)
{
    me_engine *e = f->t->e;
    b->can_be_released = false;
    if (b->status == ME_FSDP_GATHERED || b->shard == NULL) {
        return;
    }
    b->status = ME_FSDP_GATHERED;
    recycle(f);
    const me_category category = me_category_set(e, ME_CATEGORY_PARAMETER);
    const uint8_t stream = me_stream_set(e, ME_STREAM_GATHER);
    if (b->instances > 1 && f->microbatches == 0) {
        me_communicate(e, f->t->comm,
                       (me_call){ME_GROUP_INTER_INSTANCE,
                                 ME_COLLECTIVE_ALL_GATHER, b->dtype,
                                 b->numel / b->ranks / b->instances, -1, true});
    }
    if (b->is_pooled) {
        me_megatron_fsdp_point(f, b,
                               me_fsdp_pool_take(f, &f->weight_pool,
                                                 (uint32_t)(b - f->buckets),
                                                 b->dtype, true));
    } else if (b->weights != NULL) {
        me_storage_alloc(e, b->weights, "resize_");
    }
    me_communicate(e, f->t->comm,
                   (me_call){b->group, ME_COLLECTIVE_ALL_GATHER, b->dtype,
                             b->numel / b->ranks, -1, true});
    me_stream_set(e, stream);
    me_category_set(e, category);
}

/** The bucket that follows the asked ones without a gap, or precedes them;
 *  -1: there is none. */
static int64_t next_bucket(const me_megatron_fsdp *f, bool is_forward)
{
    const int64_t n = f->n_buckets;
    const int64_t step = is_forward ? 1 : -1;
    int64_t i = is_forward ? 0 : n - 1;
    while (i >= 0 && i < n && !f->is_asked[i]) {
        i += step;
    }
    while (i >= 0 && i < n && f->is_asked[i]) {
        i += step;
    }
    return i < n ? i : -1;
}

/** All that are gathered together with a bucket. @return their elements that
 *  were not asked for */
static uint64_t ask_group(me_megatron_fsdp *f, uint32_t bucket)
{
    uint64_t numel = 0;
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        if (f->buckets[i].first == f->buckets[bucket].first &&
            !f->is_asked[i]) {
            f->is_asked[i] = true;
            numel += f->buckets[i].numel;
        }
    }
    return numel;
}

/** Units of a gather, of which double buffers hold two. */
typedef struct unit_set {
    int32_t units[ME_FSDP_POOL_BUFFERS];
    int count;
} unit_set;

/** @return are there more than double buffers hold? */
static bool add_unit(unit_set *set, int32_t unit)
{
    for (int i = 0; i < set->count; i++) {
        if (set->units[i] == unit) {
            return false;
        }
    }
    if (set->count == ME_FSDP_POOL_BUFFERS) {
        return true;
    }
    set->units[set->count++] = unit;
    return false;
}

/** The asked buckets are not released. @return are some of units? */
static bool keep_asked(me_megatron_fsdp *f, unit_set *set)
{
    bool has_units = false;
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        me_fsdp_group_buffers *b = &f->buckets[i];
        if (f->is_asked[i]) {
            b->can_be_released = false;
            has_units = has_units || b->layout->unit != ME_NO_FSDP_UNIT;
            if (b->is_pooled) {
                (void)add_unit(set, b->layout->unit);
            }
        }
    }
    return has_units;
}

/** Buckets are asked ahead of their use: as many as the limit allows, and with
 *  double buffers no more than two units, and none ahead of what is of none. */
static void ask_ahead(me_megatron_fsdp *f, bool is_forward, bool has_units,
                      unit_set *set)
{
    const bool is_double = f->t->config->parallel.fsdp_double_buffer;
    if (is_double && !has_units) {
        return;
    }
    uint64_t numel = 0;
    int64_t next = next_bucket(f, is_forward);
    while (next >= 0 && numel < f->prefetch_numel) {
        if (is_double && add_unit(set, f->buckets[next].layout->unit)) {
            return;
        }
        numel += ask_group(f, (uint32_t)next);
        next = next_bucket(f, is_forward);
    }
}

/** all_gather_params(), of the buckets that are asked. */
static void gather_asked(me_megatron_fsdp *f, prefetch ahead)
{
    unit_set set = {.count = 0};
    const bool has_units = keep_asked(f, &set);
    if (ahead != PREFETCH_NONE) {
        ask_ahead(f, ahead == PREFETCH_NEXT, has_units, &set);
    }
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        for (uint32_t k = i; f->buckets[i].first == i && k < f->n_buckets;
             k++) {
            if (f->buckets[k].first == i && f->is_asked[k]) {
                gather(f, &f->buckets[k]);
            }
        }
    }
}

static void ask_nothing(me_megatron_fsdp *f)
{
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        f->is_asked[i] = false;
    }
}

/** Is the parameter the module's own, or below a unit? */
static bool has(const me_fsdp_module *m, uint32_t parameter)
{
    return &m->fsdp->modules[m->fsdp->module_of[parameter]] == m;
}

static void gather_module(const me_fsdp_module *m, prefetch ahead)
{
    me_megatron_fsdp *f = m->fsdp;
    bool is_asked = false;
    ask_nothing(f);
    for (uint32_t i = 0; i < f->t->parameters.count; i++) {
        if (has(m, i)) {
            f->is_asked[f->bucket_of[i]] = true;
            is_asked = true;
        }
    }
    if (is_asked) {
        gather_asked(f, ahead);
        me_launch_stream_waits(f->t->e);
    }
}

/** release_module_parameters(). */
static void release_module(const me_fsdp_module *m, bool is_lazy)
{
    me_megatron_fsdp *f = m->fsdp;
    for (uint32_t i = 0; i < f->t->parameters.count; i++) {
        me_fsdp_group_buffers *b = &f->buckets[f->bucket_of[i]];
        if (!has(m, i) || b->status == ME_FSDP_EMPTY) {
            continue;
        }
        if (is_lazy) {
            b->can_be_released = true;
        } else {
            release(f, b);
        }
    }
    for (uint32_t i = 0; i < f->t->parameters.count; i++) {
        me_quantized *q = me_quantized_of(f->t->parameters.parameters[i]);
        if (has(m, i) && q != NULL &&
            !f->t->config->parallel.fsdp_keep_fp8_columns) {
            me_fp8_release_columns(f->t->e, q);
        }
    }
}

/** create_transpose_cache(), of a unit's parameters in FP8. */
static void make_columns(const me_fsdp_module *m)
{
    me_trainer *t = m->fsdp->t;
    for (uint32_t i = 0; i < t->parameters.count; i++) {
        const me_parameter *p = t->parameters.parameters[i];
        if (has(m, i) && me_quantized_of(p) != NULL) {
            me_fp8_weight_columns(&t->nn, me_quantized_of(p), p->tensor);
        }
    }
}

/** _post_backward_release_module(). */
static void post_backward(me_fsdp_module *m)
{
    release_module(m, false);
    m->state = ME_TRAINING_IDLE;
}

static void input_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                           me_tensor **gx)
{
    (void)e;
    gx[0] = gy[0];
    // The module outlives the tape, which only borrows it.
    post_backward(*(me_fsdp_module *const *)node->data.context);
}

static const me_op input_op =
    ME_NODE("RegisterFSDPBackwardFunctionBackward", input_backward);

/** RegisterFSDPBackwardFunction: an identity whose backward comes once that of
 *  the module is done. */
static me_tensor *register_post_backward(me_fsdp_module *m, me_tensor *x)
{
    me_engine *e = m->fsdp->t->e;
    me_node *node = me_record1(e, &input_op, x);
    if (node == NULL) {
        return x;
    }
    node->data.context = &m->hooks.self;
    return me_output(e, node, me_alias(e, x, x->shape, x->strides));
}

/** _pre_forward_param_unshard(). */
static me_tensor *pre_forward(void *self, me_tensor *x)
{
    me_fsdp_module *m = self;
    if (!me_engine_is_ok(m->fsdp->t->e)) {
        return x;
    }
    const bool is_recomputed = m->state == ME_TRAINING_PRE_BACKWARD;
    if (!is_recomputed) {
        m->state = ME_TRAINING_FORWARD;
    }
    gather_module(m, is_recomputed ? PREFETCH_NONE : PREFETCH_NEXT);
    return m->is_unit ? register_post_backward(m, x) : x;
}

/** _pre_backward_param_unshard(). */
static void pre_backward(void *self, uint32_t number)
{
    me_fsdp_module *m = &((me_megatron_fsdp *)self)->modules[number];
    m->state = ME_TRAINING_PRE_BACKWARD;
    gather_module(m, PREFETCH_BEFORE);
    make_columns(m);
}

/** _post_forward(). What a backward runs again keeps its parameters up to the
 *  next gather. The hook of the gradient is one of a view of the output. */
static me_tensor *post_forward(void *self, me_tensor *y)
{
    me_fsdp_module *m = self;
    me_megatron_fsdp *f = m->fsdp;
    me_engine *e = f->t->e;
    if (!me_engine_is_ok(e)) {
        return y;
    }
    const bool is_recomputed = m->state == ME_TRAINING_PRE_BACKWARD;
    if (!is_recomputed) {
        m->state = ME_TRAINING_IDLE;
    }
    release_module(m, is_recomputed);
    me_tensor *view = me_view(e, y, y->shape);
    me_node_release(e, me_tensor_hook(e, view, pre_backward, f,
                                      (uint32_t)(m - f->modules)));
    return view;
}

void me_megatron_fsdp_begin_backward(me_megatron_fsdp *f)
{
    if (f->t->config->parallel.sharding_strategy ==
        ME_SHARDING_OPTIM_GRADS_PARAMS) {
        for (uint32_t i = 0; i < f->n_modules; i++) {
            f->modules[i].state = ME_TRAINING_PRE_BACKWARD;
        }
        for (uint32_t i = 0; i < f->n_buckets; i++) {
            if (f->buckets[i].layout->unit != ME_NO_FSDP_UNIT) {
                f->buckets[i].can_be_released = true;
            }
        }
    }
    for (uint32_t i = 0; i < f->t->parameters.count; i++) {
        f->is_awaited[i] = true;
    }
}

void me_megatron_fsdp_reset_gathers(me_megatron_fsdp *f)
{
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        me_fsdp_group_buffers *b = &f->buckets[i];
        if (b->layout->unit == ME_NO_FSDP_UNIT) {
            b->status = ME_FSDP_PRESERVED;
        } else {
            b->can_be_released = true;
        }
    }
    recycle(f);
}

/** Parameters that are not cut are there for every module: they are gathered in
 *  place, here in the order of the buckets. */
void me_megatron_fsdp_start_param_sync(me_megatron_fsdp *f)
{
    const me_config *c = f->t->config;
    if (f->n_buckets == 0 ||
        c->parallel.sharding_strategy == ME_SHARDING_NO_SHARD) {
        return;
    }
    ask_nothing(f);
    if (c->parallel.sharding_strategy == ME_SHARDING_OPTIM_GRADS_PARAMS) {
        f->is_asked[f->bucket_of[0]] = true;
        gather_asked(f, PREFETCH_NEXT);
        return;
    }
    me_megatron_fsdp_reset_gathers(f);
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        gather(f, &f->buckets[i]);
    }
}

void me_megatron_fsdp_hook(me_megatron_fsdp *f)
{
    for (uint32_t i = 0; i < f->n_modules; i++) {
        me_fsdp_module *m = &f->modules[i];
        m->hooks =
            (me_module_hooks){.pre_forward = pre_forward,
                              .post_forward = m->is_unit ? post_forward : NULL,
                              .self = m};
    }
}
