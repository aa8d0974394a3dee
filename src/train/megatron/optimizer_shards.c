/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "parallel/shards.h"
#include "train/megatron/layer_wise.h"
#include "train/megatron/trainer.h"

bool me_optimizer_takes(const me_optimizer *o, const me_parameter *p)
{
    return o->part == ME_PART_ALL ||
           (o->part == ME_PART_MATRICES) == me_is_layer_matrix(p);
}

static void append(me_optimizer *o, me_parameter *parameter, uint64_t numel)
{
    o->shards[o->count++] =
        (me_shard_state){.parameter = parameter, .numel = numel};
}

/** This data-parallel rank's parts of a chunk's parameters, buffer order. */
static void append_shards(me_trainer *t, me_optimizer *o,
                          const me_ddp_buffer *buffer, me_parameter_group group)
{
    me_shards *shards = NULL;
    me_diag diag = {.status = ME_OK};
    const me_status status =
        me_shards_create(buffer->layout, t->comm->size[buffer->group],
                         t->comm->index[buffer->group], &diag, &shards);
    if (status != ME_OK) {
        me_engine_fail(t->e, status, "%s", diag.text);
        return;
    }
    for (uint32_t i = 0; i < shards->count; i++) {
        me_parameter *p = buffer->parameters[shards->items[i].param];
        if (me_parameter_group_of(t, p) == group) {
            append(o, p, shards->items[i].numel);
        }
    }
    me_shards_destroy(shards);
}

static void append_parameters(const me_trainer *t, me_optimizer *o,
                              const me_ddp_buffer *buffer,
                              me_parameter_group group)
{
    for (uint32_t i = 0; i < buffer->n_parameters; i++) {
        me_parameter *p = buffer->parameters[i];
        if (me_optimizer_takes(o, p) && me_parameter_group_of(t, p) == group) {
            append(o, p, p->numel);
        }
    }
}

/** This data-parallel rank's rows of each parameter. */
static void append_rows(me_trainer *t, me_optimizer *o,
                        me_parameter_group group)
{
    for (uint32_t i = 0; i < t->parameters.count; i++) {
        me_parameter *p = t->parameters.parameters[i];
        const uint64_t numel = t->wrapper->local_numel(t, p);
        // A DTensor without rows is stepped; without a gradient nothing is.
        if (me_parameter_group_of(t, p) == group &&
            (numel > 0 || t->wrapper->has_dtensors)) {
            append(o, p, numel);
        }
    }
}

/** A chunk's, of all its buffers of a sharing. */
static void append_chunk(me_trainer *t, me_optimizer *o, const me_ddp *ddp,
                         me_parameter_group group, me_sharing sharing)
{
    for (int i = 0; i < ddp->n_buffers; i++) {
        const me_ddp_buffer *buffer = &ddp->buffers[i];
        if (buffer->sharing != sharing ||
            (buffer->sharing != o->sharing && !o->has_all_sharings)) {
            continue;
        }
        if (buffer->layout != NULL && me_config_scatters_gradients(t->config)) {
            append_shards(t, o, buffer, group);
        } else {
            append_parameters(t, o, buffer, group);
        }
    }
}

/** Group by group. */
static void collect_shards(me_trainer *t, me_optimizer *o)
{
    o->shards =
        me_alloc(t->parameters.count, sizeof *o->shards, "optimizer.shards");
    if (o->shards == NULL) {
        me_engine_fail(t->e, ME_ERR_NOMEM, "no host memory for the optimizer");
        return;
    }
    for (int group = 0; group < ME_OPTIMIZER_GROUPS; group++) {
        const me_parameter_group g = (me_parameter_group)group;
        if (t->wrapper->local_numel != NULL && o->sharing == ME_SHARING_DENSE) {
            append_rows(t, o, g);
        }
        for (int32_t i = 0; i < ME_SHARINGS * (o->chunk_end - o->chunk_begin);
             i++) {
            const int32_t n = o->chunk_end - o->chunk_begin;
            append_chunk(t, o, &t->ddp[o->chunk_begin + i % n], g,
                         (me_sharing)(i / n));
        }
        o->group_end[group] = o->count;
    }
}

/** What an optimizer of all chunks is of, besides. */
static me_optimizer *chain(me_trainer *t, me_sharing sharing,
                           int32_t chunk_begin, int32_t chunk_end)
{
    me_optimizer *o = &t->optimizers[t->n_optimizers++];
    o->kind = t->config->optimizer.kind;
    o->part = ME_PART_ALL;
    o->has_all_sharings = false;
    o->sharing = sharing;
    o->chunk_begin = chunk_begin;
    o->chunk_end = chunk_end;
    return o;
}

/** The optimizer of a part: an emerging one of matrices, else one that a job names
 *  for Muon and Adam for others. */
static void chain_part(me_trainer *t, me_optimizer_part part,
                       me_sharing sharing)
{
    const me_optimizer_config *c = &t->config->optimizer;
    me_optimizer *o = chain(t, sharing, 0, t->spec->n_chunks);
    o->part = part;
    o->has_all_sharings = me_config_is_layer_wise(t->config);
    if (part == ME_PART_REST) {
        o->kind =
            me_is_muon(c->kind) ? c->muon_scalar_optimizer : ME_OPTIMIZER_ADAM;
    }
    collect_shards(t, o);
}

/** _get_megatron_emerging_optimizer(): by part and, unless they are layer-wise,
 *  by sharing. */
static void collect_emerging(me_trainer *t)
{
    const bool is_apart =
        !me_config_is_layer_wise(t->config) && me_job_has_expert_groups(t);
    chain_part(t, ME_PART_MATRICES, ME_SHARING_DENSE);
    if (is_apart) {
        chain_part(t, ME_PART_MATRICES, ME_SHARING_EXPERT);
    }
    chain_part(t, ME_PART_REST, ME_SHARING_DENSE);
    if (is_apart && t->config->model.add_bias_linear) {
        chain_part(t, ME_PART_REST, ME_SHARING_EXPERT);
    }
    me_layer_wise_deal(t);
}

/** get_megatron_optimizer(): the first chunk has its own where its parameters
 * are to be gathered while the others are stepped. */
void me_optimizer_collect(me_trainer *t)
{
    const int32_t chunks = t->spec->n_chunks;
    const int32_t first =
        t->config->optimizer.overlap_param_gather_with_optimizer_step ? 1
                                                                      : chunks;
    t->n_optimizers = 0;
    if (me_is_emerging_optimizer(t->config->optimizer.kind)) {
        collect_emerging(t);
        return;
    }
    collect_shards(t, chain(t, ME_SHARING_DENSE, 0, first));
    if (first < chunks) {
        collect_shards(t, chain(t, ME_SHARING_DENSE, first, chunks));
    }
    if (!t->wrapper->has_one_optimizer) {
        collect_shards(t, chain(t, ME_SHARING_EXPERT, 0, chunks));
    }
}
