/* SPDX-License-Identifier: BSD-3-Clause */
/* training/checkpointing.py: load_checkpoint() of a torch_dist checkpoint. Tensors
 * are read into those that are there, so weights take nothing of themselves. What
 * takes memory: first matrices of gated units, which lie in a checkpoint as two
 * and are joined once they are read (apply_swiglu_sharded_factory()), and moments,
 * which Transformer Engine's FusedAdam.load_state_dict() makes anew each time. */
#include "nn/megatron/te_fp8.h"
#include "parallel/shards.h"
#include "train/megatron/bookkeeping.h"
#include "train/megatron/trainer.h"
#include "train/optim/fused_optimizer.h"

#include <string.h>

enum {
    MOMENTS = 2,
    JOINED = 1 + 1 + MOMENTS /* of a matrix: it, its main parameter, moments */
};

/** What is held until the checkpoint is loaded. */
typedef struct loading {
    me_tensor **widened; /**< of parameters in FP8: what is read into, a
                              parameter */
    me_tensor **joined;  /**< JOINED a parameter */
    size_t n_joined;
    me_adam_values *values[ME_OPTIMIZERS_MAX]; /**< of each optimizer, a shard:
                                                    what is read */
    uint32_t *order[ME_OPTIMIZERS_MAX];        /**< of shards in buffers */
    uint32_t *leaving[ME_OPTIMIZERS_MAX];      /**< in which they go */
} loading;

/** A buffer's values go in the other direction: Python's lists, of buckets and in
 *  each of its parameters, let go of what is last in them first. */
static void reverse(const uint32_t *order, uint32_t begin, uint32_t end,
                    uint32_t *leaving)
{
    for (uint32_t i = begin; i < end; i++) {
        leaving[i] = order[begin + end - 1 - i];
    }
}

/** Shards of an optimizer bucket by bucket, as a distributed one goes through
 *  them; of another in its own order. */
static void find_order(me_trainer *t, const me_optimizer *o, uint32_t *order,
                       uint32_t *leaving)
{
    uint32_t *place = me_engine_alloc(t->e, t->parameters.count, sizeof *place);
    uint32_t n = 0;
    for (uint32_t i = 0; place != NULL && i < o->count; i++) {
        place[o->shards[i].parameter->index] = i;
        order[i] = leaving[i] = i;
    }
    for (int32_t c = o->chunk_begin; place != NULL && c < o->chunk_end; c++) {
        for (int k = 0; k < t->ddp[c].n_buffers; k++) {
            const me_ddp_buffer *buffer = &t->ddp[c].buffers[k];
            me_shards *shards = NULL;
            me_diag diag = {.status = ME_OK};
            if (!t->config->optimizer.distributed || buffer->layout == NULL ||
                buffer->sharing != o->sharing ||
                me_shards_create(buffer->layout, t->comm->size[buffer->group],
                                 t->comm->index[buffer->group], &diag,
                                 &shards) != ME_OK) {
                continue;
            }
            const uint32_t begin = n;
            for (uint32_t i = 0; i < shards->count && n < o->count; i++) {
                order[n++] =
                    place[buffer->parameters[shards->items[i].param]->index];
            }
            reverse(order, begin, n, leaving);
            me_shards_destroy(shards);
        }
    }
}

static void make_moments(me_trainer *t, me_shard_state *s,
                         me_tensor *moments_out[MOMENTS])
{
    static const char *const names[MOMENTS] = {"exp_avg", "exp_avg_sq"};
    me_module_switch_to_shard(t->e, s->parameter->module);
    for (int i = 0; i < MOMENTS; i++) {
        moments_out[i] =
            me_make_state(t->e, names[i], s->dtype, ME_SHAPE(s->numel));
    }
}

static bool is_aware(const me_trainer *t)
{
    return t->config->optimizer.precision_aware;
}

/** Empty states of a distributed optimizer's shards, in the order of buffers. */
static void make_dummies(me_trainer *t, const me_optimizer *o, loading *l,
                         int n)
{
    for (uint32_t i = 0; i < o->count; i++) {
        const uint32_t k = l->order[n][i];
        me_module_switch_to_shard(t->e, o->shards[k].parameter->module);
        if (is_aware(t)) {
            me_precision_aware_dummies(t->e, &o->aware, &o->shards[k],
                                       &l->values[n][k]);
        } else {
            make_moments(t, &o->shards[k], l->values[n][k].of);
        }
    }
}

/** They go in the order of shards, but for the one made last, which still has a
 *  name. */
static void drop_dummies(me_trainer *t, const me_optimizer *o, loading *l,
                         int n)
{
    const uint32_t last = o->count == 0 ? 0 : l->order[n][o->count - 1];
    for (uint32_t i = 0; i < o->count; i++) {
        if (i != last) {
            me_adam_values_drop(t->e, &l->values[n][i]);
        }
    }
    if (o->count > 0) {
        me_adam_values_drop(t->e, &l->values[n][last]);
    }
}

/** sharded_state_dict() for loading: moments exist from now on. A distributed
 *  optimizer makes them empty, and FusedAdam once more. */
static void begin_optimizer(me_trainer *t, me_optimizer *o, loading *l, int n)
{
    l->values[n] = me_engine_alloc(t->e, o->count, sizeof *l->values[n]);
    l->order[n] = me_engine_alloc(t->e, o->count, sizeof *l->order[n]);
    l->leaving[n] = me_engine_alloc(t->e, o->count, sizeof *l->leaving[n]);
    if (l->values[n] == NULL || l->order[n] == NULL || l->leaving[n] == NULL) {
        l->values[n] = NULL;
        return;
    }
    find_order(t, o, l->order[n], l->leaving[n]);
    const bool is_distributed = t->config->optimizer.distributed;
    if (is_distributed) {
        make_dummies(t, o, l, n);
    }
    if (is_aware(t)) {
        me_precision_aware_load(t->e, &o->aware, o->shards, o->count, false);
    }
    for (uint32_t i = 0; !is_aware(t) && i < o->count; i++) {
        make_moments(t, &o->shards[i], o->shards[i].moments);
    }
    if (is_distributed) {
        drop_dummies(t, o, l, n);
    }
    for (uint32_t i = 0; is_aware(t) && i < o->count; i++) {
        const uint32_t k = l->order[n][i];
        me_module_switch_to_shard(t->e, o->shards[k].parameter->module);
        me_precision_aware_read(t->e, &o->aware, &o->shards[k],
                                !o->aware.has_masters, &l->values[n][k]);
    }
    o->has_stepped = true;
}

/** load_state_dict() of a precision-aware optimizer: it is given float32 copies
 *  of its own states, and then what was read, in the order of buffers; that is
 *  copied as it is where main parameters are not its kernels' own. */
static void end_aware(me_trainer *t, me_optimizer *o, const loading *l, int n)
{
    me_adam_values *own = me_engine_alloc(t->e, o->count, sizeof *own);
    for (uint32_t i = 0; own != NULL && i < o->count; i++) {
        me_module_switch_to_shard(t->e, o->shards[i].parameter->module);
        me_precision_aware_read(t->e, &o->aware, &o->shards[i], false, &own[i]);
    }
    me_precision_aware_load(t->e, &o->aware, o->shards, o->count, true);
    for (uint32_t i = 0;
         o->aware.has_masters && l->values[n] != NULL && i < o->count; i++) {
        const me_shard_state *s = &o->shards[l->order[n][i]];
        me_module_switch_to_shard(t->e, s->parameter->module);
        me_precision_aware_set(t->e, &o->aware, s);
    }
    for (uint32_t i = 0; own != NULL && i < o->count; i++) {
        me_adam_values_drop(t->e, &own[i]);
    }
}

/** load_state_dict(): those that were read stay while new ones are filled. */
static void end_optimizer(me_trainer *t, me_optimizer *o, loading *l, int n)
{
    if (is_aware(t)) {
        end_aware(t, o, l, n);
        return;
    }
    for (uint32_t i = 0; l->values[n] != NULL && i < o->count; i++) {
        me_shard_state *s = &o->shards[i];
        memcpy(l->values[n][i].of, s->moments, sizeof s->moments);
        make_moments(t, s, s->moments);
    }
}

/** force_all_tensors_to_non_fp8(): of parameters that are kept in FP8 a copy in
 *  the model's type is read into; they are copied once all is read. Megatron-LM
 *  does so at once with tensorwise scaling, the one recipe that is loaded here
 *  (validate_args() turns stream_ckpt_dequant off). */
static void widen_weights(me_trainer *t, loading *l)
{
    l->widened = me_engine_alloc(t->e, t->parameters.count, sizeof *l->widened);
    for (uint32_t i = 0; l->widened != NULL && i < t->parameters.count; i++) {
        const me_parameter *p = t->parameters.parameters[i];
        if (me_quantized_of(p) != NULL) {
            me_module_switch(t->e, p->module);
            l->widened[i] = me_keep(t->e, "dequantize", ME_CATEGORY_TEMPORARY,
                                    p->dtype, ME_SHAPE(p->numel));
        }
    }
}

/** Half of it is the gate. */
static bool is_gated(const me_trainer *t, const me_parameter *p)
{
    const me_module_tree *tree = me_engine_modules(t->e);
    return p->module != ME_NO_MODULE &&
           me_is_gated_activation(t->config->model.activation) &&
           strcmp(tree->modules[p->module].name, "linear_fc1") == 0 &&
           (strncmp(p->name, "weight", 6) == 0 ||
            strncmp(p->name, "bias", 4) == 0);
}

static void join(me_trainer *t, loading *l, me_dtype dtype, uint64_t numel)
{
    l->joined[l->n_joined++] =
        me_keep(t->e, "cat", ME_CATEGORY_TEMPORARY, dtype, ME_SHAPE(numel));
}

/** apply_factory_merges(): of weights, and of main parameters and moments where
 *  each is a whole parameter's. */
static void join_gates(me_trainer *t, loading *l)
{
    const size_t most = (size_t)t->parameters.count * JOINED;
    l->joined = me_engine_alloc(t->e, most, sizeof *l->joined);
    for (uint32_t i = 0; l->joined != NULL && i < t->parameters.count; i++) {
        const me_parameter *p = t->parameters.parameters[i];
        if (is_gated(t, p)) {
            me_module_switch(t->e, p->module);
            join(t, l, p->dtype, p->numel);
        }
    }
    for (int n = 0; l->joined != NULL && n < t->n_optimizers; n++) {
        const me_optimizer *o = &t->optimizers[n];
        for (uint32_t i = 0; l->values[n] != NULL && i < o->count; i++) {
            const me_shard_state *s = &o->shards[i];
            for (int k = s->main == NULL;
                 !t->config->optimizer.distributed &&
                 is_gated(t, s->parameter) && k < 1 + MOMENTS;
                 k++) {
                join(t, l, s->dtype, s->numel);
            }
        }
    }
}

/** What load_checkpoint()'s names hold goes. */
static void let_go(me_trainer *t, loading *l)
{
    for (uint32_t i = 0; l->widened != NULL && i < t->parameters.count; i++) {
        me_clear(t->e, &l->widened[i]);
    }
    for (size_t i = 0; i < l->n_joined; i++) {
        me_clear(t->e, &l->joined[i]);
    }
    for (int n = 0; n < t->n_optimizers; n++) {
        for (uint32_t i = 0; l->values[n] != NULL && i < t->optimizers[n].count;
             i++) {
            me_adam_values_drop(t->e, &l->values[n][l->leaving[n][i]]);
        }
    }
}

void me_load_checkpoint(me_trainer *t)
{
    const me_checkpoint_load kind = t->config->train.loads;
    loading l = {.n_joined = 0};
    if (kind == ME_CHECKPOINT_NOTHING) {
        return;
    }
    for (int n = 0; kind == ME_CHECKPOINT_ALL && n < t->n_optimizers; n++) {
        begin_optimizer(t, &t->optimizers[n], &l, n);
    }
    widen_weights(t, &l);
    join_gates(t, &l);
    for (int n = 0; kind == ME_CHECKPOINT_ALL && n < t->n_optimizers; n++) {
        end_optimizer(t, &t->optimizers[n], &l, n);
    }
    me_module_switch(t->e, ME_NO_MODULE);
    me_barriers(t, 1);
    me_empty_cache(t->e);
    let_go(t, &l);
}
