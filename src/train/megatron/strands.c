/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/strands.h"

#include "base/alloc.h"
#include "tensor/strand.h"
#include "train/megatron/clip_grads.h"
#include "train/megatron/trainer.h"

bool me_megatron_can_have_strands(const me_config *config)
{
    const me_optimizer_config *o = &config->optimizer;
    return me_model_wrapper_of(config) == &me_distributed_data_parallel &&
           me_config_scatters_gradients(config) &&
           config->impl.optimizer == ME_OPTIMIZER_FUSED &&
           !me_is_emerging_optimizer(o->kind) && !o->precision_aware &&
           !o->cpu_offload && !o->overlap_param_gather_with_optimizer_step &&
           !o->log_num_zeros_in_grad && !config->fp8.param &&
           config->train.loads == ME_CHECKPOINT_NOTHING;
}

int32_t me_strands_count(const me_trainer *t)
{
    return t->spec->n_strands > 1 ? t->spec->n_strands : 1;
}

static me_shard_list list_of(const me_optimizer *o)
{
    me_shard_list list = {.shards = o->shards, .count = o->count};
    for (int i = 0; i < ME_OPTIMIZER_GROUPS; i++) {
        list.group_end[i] = o->group_end[i];
    }
    return list;
}

static void set_list(me_optimizer *o, const me_shard_list *list)
{
    o->shards = list->shards;
    o->count = list->count;
    for (int i = 0; i < ME_OPTIMIZER_GROUPS; i++) {
        o->group_end[i] = list->group_end[i];
    }
}

static void set_lists(me_trainer *t, int32_t strand)
{
    for (int i = 0; i < t->n_optimizers; i++) {
        set_list(&t->optimizers[i], &t->optimizers[i].strands[strand]);
    }
}

static void keep_lists(me_trainer *t, int32_t strand)
{
    for (int i = 0; i < t->n_optimizers; i++) {
        t->optimizers[i].strands[strand] = list_of(&t->optimizers[i]);
    }
}

/** The program cannot stand for all of them. */
static void give_up(me_trainer *t)
{
    if (me_engine_is_ok(t->e) && t->spec->must_run_apart != NULL) {
        *t->spec->must_run_apart = true;
        me_engine_fail(t->e, ME_ERR_INTERNAL,
                       "ranks with other shards do more than those");
    }
}

/** Does each optimizer have of all what the first strand's has? */
static bool is_like_first(const me_trainer *t, const me_strand_traits *firsts)
{
    bool is_like = true;
    for (int i = 0; i < t->n_optimizers; i++) {
        const me_strand_traits own = me_strand_traits_of(t, i);
        is_like = is_like && own.has_shards == firsts[i].has_shards &&
                  own.has_norm == firsts[i].has_norm &&
                  own.has_split_norm == firsts[i].has_split_norm;
    }
    return is_like;
}

void me_strands_collect(me_trainer *t)
{
    const int32_t n = me_strands_count(t);
    const me_communicators *own = t->comm;
    me_strand_traits firsts[ME_OPTIMIZERS_MAX] = {{.has_shards = false}};
    if (n == 1 || !me_engine_is_ok(t->e)) {
        return;
    }
    for (int i = 0; i < t->n_optimizers; i++) {
        firsts[i] = me_strand_traits_of(t, i);
    }
    keep_lists(t, 0);
    for (int32_t strand = 1; strand < n; strand++) {
        for (int i = 0; i < t->n_optimizers; i++) {
            set_list(&t->optimizers[i], &(me_shard_list){.count = 0});
        }
        t->comm = &t->spec->strands[strand];
        me_optimizer_collect(t);
        keep_lists(t, strand);
        if (!is_like_first(t, firsts)) {
            give_up(t);
        }
    }
    t->comm = own;
    set_lists(t, 0);
}

void me_strands_destroy(me_trainer *t)
{
    for (int32_t strand = 1; strand < me_strands_count(t); strand++) {
        for (int i = 0; i < t->n_optimizers; i++) {
            me_shard_list *list = &t->optimizers[i].strands[strand];
            for (uint32_t k = 0; k < list->count; k++) {
                me_shard_state_fini(t->e, &list->shards[k]);
            }
            me_free(list->shards);
            *list = (me_shard_list){.count = 0};
        }
    }
}

void me_strand_begin(me_trainer *t, int32_t strand)
{
    if (me_strands_count(t) > 1) {
        if (!me_strands_can_part(t->e)) {
            give_up(t);
        }
        me_strand_set(t->e, strand);
        set_lists(t, strand);
    }
}

void me_strand_end(me_trainer *t)
{
    if (me_strands_count(t) > 1) {
        if (!me_strands_can_part(t->e)) {
            give_up(t);
        }
        me_strand_set(t->e, ME_STRANDS_ALL);
        set_lists(t, 0);
    }
}
