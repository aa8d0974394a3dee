/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/layer_wise.h"

#include "base/alloc.h"
#include "base/size.h"
#include "train/megatron/trainer.h"

#include <stdlib.h>

/** A shard in the order in which optimizers have them. */
typedef struct card {
    me_shard_state shard;
    uint32_t position;
    int optimizer;
    int group;
    int32_t owner;
} card;

static bool is_dealt_out(const me_trainer *t)
{
    return me_config_is_layer_wise(t->config) &&
           t->comm->size[ME_GROUP_DATA_CONTEXT] > 1;
}

static me_group_kind group_of(const me_parameter *p)
{
    return p->is_expert ? ME_GROUP_EXPERT_DATA : ME_GROUP_DATA_CONTEXT;
}

/** The smaller first; equal ones as they come. */
static int compare(const void *a, const void *b)
{
    const card *x = a;
    const card *y = b;
    if (x->shard.numel != y->shard.numel) {
        return x->shard.numel < y->shard.numel ? -1 : 1;
    }
    return x->position < y->position ? -1 : x->position > y->position;
}

/** Ranks 0 to n - 1 in turn, and then from n - 1 to 0. */
static int32_t owner_at(uint32_t turn, int32_t ranks)
{
    const int32_t at = (int32_t)(turn % (2 * (uint32_t)ranks));
    return at < ranks ? at : 2 * ranks - 1 - at;
}

/** All shards, by size. @return how many */
static uint32_t list_cards(const me_trainer *t, card *cards)
{
    uint32_t n = 0;
    for (int k = 0; k < t->n_optimizers; k++) {
        const me_optimizer *o = &t->optimizers[k];
        int group = 0;
        for (uint32_t i = 0; i < o->count; i++) {
            while (i >= o->group_end[group]) {
                group++;
            }
            cards[n] = (card){.shard = o->shards[i],
                              .position = n,
                              .optimizer = k,
                              .group = group};
            n++;
        }
    }
    qsort(cards, n, sizeof *cards, compare);
    return n;
}

/** Whose each is; the experts' are dealt for themselves. */
static void find_owners(me_trainer *t, card *cards, uint32_t n)
{
    uint32_t turns[2] = {0, 0};
    for (uint32_t i = 0; i < n; i++) {
        const me_parameter *p = cards[i].shard.parameter;
        cards[i].owner =
            owner_at(turns[p->is_expert]++, t->comm->size[group_of(p)]);
        t->layer_owner[p->index] = cards[i].owner;
    }
}

/** An optimizer keeps this rank's, group by group, dense ones before those of
 *  experts, by size. */
static void keep_own(me_trainer *t, int optimizer, const card *cards,
                     uint32_t n)
{
    me_optimizer *o = &t->optimizers[optimizer];
    o->count = 0;
    for (int list = 0; list < 2 * ME_OPTIMIZER_GROUPS; list++) {
        for (uint32_t i = 0; i < n; i++) {
            const me_parameter *p = cards[i].shard.parameter;
            if (cards[i].optimizer == optimizer && cards[i].group == list / 2 &&
                p->is_expert == (list % 2 == 1) &&
                cards[i].owner == t->comm->index[group_of(p)]) {
                o->shards[o->count++] = cards[i].shard;
            }
        }
        o->group_end[list / 2] = o->count;
    }
}

void me_layer_wise_deal(me_trainer *t)
{
    if (!is_dealt_out(t) || !me_engine_is_ok(t->e)) {
        return;
    }
    if (t->layer_owner == NULL) {
        t->layer_owner =
            me_engine_alloc(t->e, t->parameters.count, sizeof(int32_t));
    }
    card *cards = me_alloc(t->parameters.count, sizeof *cards, "layer_wise");
    if (cards == NULL || t->layer_owner == NULL) {
        me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for the optimizer");
        me_free(cards);
        return;
    }
    const uint32_t n = list_cards(t, cards);
    find_owners(t, cards, n);
    for (int k = 0; k < t->n_optimizers; k++) {
        keep_own(t, k, cards, n);
    }
    me_free(cards);
}

/** Parameters of one data-parallel group: all of them, or a bucket's. */
typedef struct hands {
    me_group_kind group;
    const me_ddp_buffer *buffer; /**< NULL: all */
    const me_bucket *bucket;
} hands;

/** What a rank has of them. */
typedef struct hand {
    uint64_t numel;
    uint32_t count;
} hand;

static void take(const me_trainer *t, const me_parameter *p, int32_t rank,
                 hand *h)
{
    if (t->layer_owner[p->index] == rank) {
        h->numel = me_size_add(h->numel, p->numel);
        h->count++;
    }
}

static hand hand_of(const me_trainer *t, const hands *of, int32_t rank)
{
    hand h = {0, 0};
    for (uint32_t i = 0; of->bucket != NULL && i < of->bucket->n_slots; i++) {
        const me_slot *slot =
            &of->buffer->layout->slots[of->bucket->first_slot + i];
        take(t, of->buffer->parameters[slot->param], rank, &h);
    }
    for (uint32_t i = 0; of->bucket == NULL && i < t->parameters.count; i++) {
        const me_parameter *p = t->parameters.parameters[i];
        if (group_of(p) == of->group) {
            take(t, p, rank, &h);
        }
    }
    return h;
}

/** Has each rank as many elements as the others? */
static bool is_even(const me_trainer *t, const hands *of)
{
    const uint64_t numel = hand_of(t, of, 0).numel;
    bool is = true;
    for (int32_t i = 1; i < t->comm->size[of->group]; i++) {
        is = is && hand_of(t, of, i).numel == numel;
    }
    return is;
}

/** all_gather() of parts that are equal goes by way of one flat tensor; of others
 *  each rank sends its own. */
static void call(me_trainer *t, const hands *of, bool is_async)
{
    const int32_t ranks = t->comm->size[of->group];
    const me_dtype dtype = t->config->train.params_dtype;
    if (is_even(t, of)) {
        const uint64_t numel = hand_of(t, of, 0).numel;
        me_tensor *flat = me_empty(t->e, "all_gather", dtype,
                                   ME_SHAPE((uint64_t)ranks * numel));
        me_communicate(t->e, t->comm,
                       (me_call){of->group, ME_COLLECTIVE_ALL_GATHER, dtype,
                                 numel, -1, is_async});
        me_drop(t->e, flat);
        return;
    }
    for (int32_t i = 0; i < ranks; i++) {
        me_communicate(t->e, t->comm,
                       (me_call){of->group, ME_COLLECTIVE_BROADCAST, dtype,
                                 hand_of(t, of, i).numel, i, is_async});
    }
}

/** The last rank whose parameters are copied to where they belong: the views of
 *  what came from it keep it until the end. */
static int32_t last_copied(const me_trainer *t, const hands *of)
{
    int32_t i = t->comm->size[of->group] - 1;
    while (i >= 0 &&
           (i == t->comm->index[of->group] || hand_of(t, of, i).count == 0)) {
        i--;
    }
    return i;
}

/** This rank's parameters flat, a copy unless there is one alone; room for those of
 *  each other rank; after the exchange they are copied to where they belong. */
static void gather(me_trainer *t, me_group_kind group)
{
    me_engine *e = t->e;
    const hands of = {.group = group};
    const me_dtype dtype = t->config->train.params_dtype;
    const int32_t ranks = t->comm->size[group];
    const int32_t own = t->comm->index[group];
    const hand mine = hand_of(t, &of, own);
    const me_frame frame = me_enter(e);
    me_tensor **parts = me_engine_alloc(e, (size_t)ranks, sizeof(me_tensor *));
    if (parts == NULL) {
        return;
    }
    if (mine.count != 1) {
        parts[own] = me_empty(e, "flatten", dtype, ME_SHAPE(mine.numel));
    }
    for (int32_t i = 0; i < ranks; i++) {
        if (i != own) {
            parts[i] =
                me_empty(e, "empty", dtype, ME_SHAPE(hand_of(t, &of, i).numel));
        }
    }
    call(t, &of, false);
    const int32_t last = last_copied(t, &of);
    for (int32_t i = ranks - 1; i >= 0; i--) {
        if (i != last && parts[i] != NULL) {
            me_drop(e, parts[i]);
        }
    }
    me_leave(e, frame, NULL);
}

void me_layer_wise_gather(me_trainer *t)
{
    if (!is_dealt_out(t) || t->layer_owner == NULL ||
        t->config->optimizer.overlap_param_gather) {
        return;
    }
    bool has_experts = false;
    for (uint32_t i = 0; i < t->parameters.count; i++) {
        has_experts = has_experts || t->parameters.parameters[i]->is_expert;
    }
    gather(t, ME_GROUP_DATA_CONTEXT);
    if (has_experts && t->comm->size[ME_GROUP_EXPERT_DATA] > 1) {
        gather(t, ME_GROUP_EXPERT_DATA);
    }
}

/** start_param_sync() of a bucket: the buffer of gradients is where parameters
 *  arrive, and this rank's are flat for the time of a copy. */
static void gather_bucket(me_trainer *t, const me_ddp_buffer *buffer,
                          const me_bucket *bucket)
{
    const hands of = {buffer->group, buffer, bucket};
    const hand mine = hand_of(t, &of, t->comm->index[buffer->group]);
    const me_dtype dtype = t->config->train.params_dtype;
    if (t->comm->size[buffer->group] == 1) {
        return;
    }
    const me_frame frame = me_enter(t->e);
    if (mine.count > 1) {
        (void)me_empty(t->e, "flatten", dtype, ME_SHAPE(mine.numel));
    }
    call(t, &of, true);
    me_leave(t->e, frame, NULL);
}

void me_layer_wise_gather_chunk(me_trainer *t, int32_t chunk)
{
    me_ddp *ddp = &t->ddp[chunk];
    if (!is_dealt_out(t) || !t->config->optimizer.overlap_param_gather ||
        ddp->is_gathered || t->iteration == 0) {
        return;
    }
    ddp->is_gathered = true;
    for (int i = 0; i < ddp->n_buffers; i++) {
        const me_ddp_buffer *b = &ddp->buffers[i];
        for (uint32_t k = b->layout == NULL ? 0 : b->layout->n_buckets; k > 0;
             k--) {
            gather_bucket(t, b, &b->layout->buckets[k - 1]);
        }
    }
}
