/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "train/megatron/finalize.h"
#include "train/megatron/megatron.h"
#include "train/megatron/trainer.h"

#include <string.h>

/** A part of a parameter that is stepped. */
typedef struct piece {
    uint64_t parameter;
    uint64_t numel;
} piece;

/** The pieces of one class, a list of one more place than parameters. */
typedef struct owned {
    piece *pieces;
    uint32_t count;
    uint64_t hash;
} owned;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static void append(owned *out, uint64_t parameter, uint64_t numel)
{
    out->pieces[out->count++] = (piece){parameter, numel};
    out->hash = mix(out->hash, parameter);
    out->hash = mix(out->hash, numel);
}

/** What the optimizer has collected; decayed parameters come first, so the
 *  order says which group a piece is in. */
static void read_pieces(const me_optimizer *o, owned *out)
{
    for (uint32_t i = 0; i < o->count; i++) {
        append(out, o->shards[i].parameter->index, o->shards[i].numel);
    }
}

/** Of DTensors the first rank deals out gradients that tensor ranks have only
 *  parts of: each of the others stands in another place to it. */
static bool scatters(const me_trainer *t)
{
    for (uint32_t i = 0; t->wrapper->has_dtensors && i < t->parameters.count;
         i++) {
        if (me_gradient_is_partial(t, t->parameters.parameters[i])) {
            return t->config->parallel.tensor > 1;
        }
    }
    return false;
}

static bool is_same(const owned *a, const owned *b)
{
    return a->hash == b->hash && a->count == b->count &&
           memcmp(a->pieces, b->pieces, a->count * sizeof *a->pieces) == 0;
}

/** The class among the @p n first that is like the one after them, or n. */
static int32_t find(const owned *classes, int32_t n)
{
    int32_t i = 0;
    while (!is_same(&classes[i], &classes[n])) {
        i++;
    }
    return i;
}

/** Ask the optimizer as each member of the group in turn; @p comm is what the
 *  trainer reads. */
static void number_members(me_trainer *t, me_communicators *comm,
                           const int32_t *expert_index, owned *classes,
                           int32_t *class_out)
{
    int32_t n = 0;
    for (int32_t i = 0; i < comm->size[ME_GROUP_DATA_CONTEXT]; i++) {
        comm->index[ME_GROUP_DATA_CONTEXT] = i;
        comm->index[ME_GROUP_PARTIAL_DATA_CONTEXT] =
            i % comm->size[ME_GROUP_PARTIAL_DATA_CONTEXT];
        comm->index[ME_GROUP_EXPERT_DATA] = expert_index[i];
        if (classes[n].pieces == NULL) {
            classes[n].pieces = me_engine_alloc(
                t->e, (size_t)t->parameters.count + 1, sizeof(piece));
        }
        me_optimizer_collect(t);
        if (!me_engine_is_ok(t->e)) {
            return;
        }
        classes[n].count = 0;
        classes[n].hash = 0;
        for (int k = 0; k < t->n_optimizers; k++) {
            read_pieces(&t->optimizers[k], &classes[n]);
        }
        if (scatters(t)) {
            append(&classes[n], UINT64_MAX, (uint64_t)i);
        }
        me_optimizer_destroy(t);
        class_out[i] = find(classes, n);
        n += class_out[i] == n ? 1 : 0;
    }
}

me_status me_megatron_shard_classes(me_engine *e, const me_megatron_spec *spec,
                                    const me_communicators *comm,
                                    const int32_t *expert_index,
                                    int32_t *class_out)
{
    me_trainer t;
    me_communicators as_member = *comm;
    me_trainer_init(&t, e, spec, &as_member);
    const int32_t ranks = comm->size[ME_GROUP_DATA_CONTEXT];
    owned *classes = me_engine_alloc(e, (size_t)ranks, sizeof *classes);
    if (me_engine_is_ok(e)) {
        me_build_model(&t);
    }
    if (me_engine_is_ok(e)) {
        number_members(&t, &as_member, expert_index, classes, class_out);
    }
    me_trainer_fini(&t);
    return me_engine_status(e, NULL);
}
