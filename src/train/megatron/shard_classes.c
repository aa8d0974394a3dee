/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "train/megatron/bookkeeping.h"
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
    uint64_t *traits;  /**< of each piece what programs ask of its parameter */
    uint32_t *modules; /**< of each piece its parameter's */
    uint32_t *alike;   /**< of each piece the first one of the same module */
    uint32_t count;
    uint64_t hash;
} owned;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/** @param traits  of the parameter; UINT64_MAX: it is like no other */
static void append(owned *out, piece p, uint64_t traits, uint32_t module)
{
    uint32_t alike = 0;
    while (alike < out->count && out->modules[alike] != module) {
        alike++;
    }
    out->pieces[out->count] = p;
    out->traits[out->count] = traits;
    out->modules[out->count] = module;
    out->alike[out->count++] = alike;
    out->hash = mix(out->hash, p.parameter);
    out->hash = mix(out->hash, p.numel);
}

/** What the step asks of a parameter: does its gradient count for norms, and what
 *  is it made as. How those are stepped that lie on the host or in FP8 depends on
 *  more, as it does of matrices that are orthogonalised, and under FSDP forward and
 *  backward handle shards as well. */
static uint64_t traits_of(const me_trainer *t, const me_parameter *p)
{
    if (t->config->optimizer.cpu_offload || t->wrapper->local_numel != NULL ||
        me_is_emerging_optimizer(t->config->optimizer.kind) ||
        t->config->parallel.megatron_fsdp || p->kind != NULL) {
        return UINT64_MAX;
    }
    return (uint64_t)p->dtype << 3 | (uint64_t)p->is_expert << 2 |
           (uint64_t)p->is_tensor_sharded << 1 |
           (uint64_t)p->is_replica_of_tied;
}

/** What the optimizer has collected, group by group. */
static void read_pieces(const me_trainer *t, const me_optimizer *o, owned *out)
{
    for (uint32_t i = 0; i < o->count; i++) {
        const me_parameter *p = o->shards[i].parameter;
        const uint64_t traits = traits_of(t, p);
        const uint64_t group = (uint64_t)me_parameter_group_of(t, p);
        const uint64_t optimizer = (uint64_t)(o - t->optimizers);
        append(out, (piece){p->index, o->shards[i].numel},
               traits == UINT64_MAX ? traits
                                    : traits << 16 | optimizer << 8 | group,
               p->module);
    }
}

/** Of DTensors the first rank deals out gradients that tensor ranks have only
 *  parts of: each of the others stands in another place to it. So does each
 *  member of several instances that share what Megatron-FSDP cuts. */
static bool scatters(const me_trainer *t)
{
    if (t->config->parallel.megatron_fsdp &&
        t->config->optimizer.num_instances > 1) {
        return true;
    }
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

/** Are they of one kin? */
static bool is_kin(const owned *a, const owned *b)
{
    bool is = a->count == b->count;
    for (uint32_t i = 0; is && i < a->count; i++) {
        is = a->traits[i] == b->traits[i] && a->traits[i] != UINT64_MAX &&
             a->pieces[i].numel == b->pieces[i].numel &&
             a->alike[i] == b->alike[i];
    }
    return is;
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

static bool make_owned(me_trainer *t, owned *out)
{
    const size_t n = (size_t)t->parameters.count + 1;
    if (out->pieces == NULL) {
        out->pieces = me_engine_alloc(t->e, n, sizeof(piece));
        out->traits = me_engine_alloc(t->e, n, sizeof(uint64_t));
        out->modules = me_engine_alloc(t->e, n, sizeof(uint32_t));
        out->alike = me_engine_alloc(t->e, n, sizeof(uint32_t));
    }
    out->count = 0;
    out->hash = 0;
    return me_engine_is_ok(t->e);
}

/** Which of the @p n classes are of one kin, and their modules. */
static void write_kin(me_trainer *t, const owned *classes, int32_t n,
                      me_shard_kin *kin)
{
    size_t pieces = 0;
    for (int32_t i = 0; i < n; i++) {
        pieces += classes[i].count;
    }
    kin->kin = me_alloc((size_t)n, sizeof *kin->kin, "plan.kin");
    kin->begin = me_alloc((size_t)n + 1, sizeof *kin->begin, "plan.kin");
    kin->modules = me_alloc(pieces, sizeof *kin->modules, "plan.kin");
    if (kin->kin == NULL || kin->begin == NULL || kin->modules == NULL) {
        me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for the plan");
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        int32_t first = 0;
        while (first < i && !is_kin(&classes[first], &classes[i])) {
            first++;
        }
        kin->kin[i] = first;
        kin->begin[i + 1] = kin->begin[i] + classes[i].count;
        memcpy(kin->modules + kin->begin[i], classes[i].modules,
               classes[i].count * sizeof *kin->modules);
    }
    kin->n_classes = n;
}

/** Ask the optimizer as each member of the group in turn; @p comm is what the
 *  trainer reads. */
static int32_t number_members(me_trainer *t, me_communicators *comm,
                              const int32_t *expert_index, owned *classes,
                              int32_t *class_out)
{
    int32_t n = 0;
    for (int32_t i = 0; i < comm->size[ME_GROUP_DATA_CONTEXT]; i++) {
        comm->index[ME_GROUP_DATA_CONTEXT] = i;
        comm->index[ME_GROUP_PARTIAL_DATA_CONTEXT] =
            i % comm->size[ME_GROUP_PARTIAL_DATA_CONTEXT];
        comm->index[ME_GROUP_INTER_INSTANCE] =
            i / comm->size[ME_GROUP_PARTIAL_DATA_CONTEXT];
        comm->index[ME_GROUP_EXPERT_DATA] = expert_index[i];
        comm->index[ME_GROUP_PARTIAL_EXPERT_DATA] =
            expert_index[i] % comm->size[ME_GROUP_PARTIAL_EXPERT_DATA];
        me_optimizer_collect(t);
        if (!make_owned(t, &classes[n])) {
            return n;
        }
        for (int k = 0; k < t->n_optimizers; k++) {
            read_pieces(t, &t->optimizers[k], &classes[n]);
        }
        if (scatters(t)) {
            append(&classes[n], (piece){UINT64_MAX, (uint64_t)i}, UINT64_MAX,
                   0);
        }
        me_optimizer_destroy(t);
        class_out[i] = find(classes, n);
        n += class_out[i] == n ? 1 : 0;
    }
    return n;
}

me_status me_megatron_shard_classes(me_engine *e, const me_megatron_spec *spec,
                                    const me_communicators *comm,
                                    const int32_t *expert_index,
                                    int32_t *class_out, me_shard_kin *kin)
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
        const int32_t n =
            number_members(&t, &as_member, expert_index, classes, class_out);
        if (me_engine_is_ok(e)) {
            write_kin(&t, classes, n, kin);
        }
    }
    me_trainer_fini(&t);
    return me_engine_status(e, NULL);
}
