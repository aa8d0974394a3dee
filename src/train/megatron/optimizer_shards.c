/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "parallel/shards.h"
#include "train/megatron/trainer.h"

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
        if (me_parameter_group_of(t, buffer->parameters[i]) == group) {
            append(o, buffer->parameters[i], buffer->parameters[i]->numel);
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

/** A chunk's, of all its buffers that the optimizer steps. */
static void append_chunk(me_trainer *t, me_optimizer *o, const me_ddp *ddp,
                         me_parameter_group group)
{
    for (int i = 0; i < ddp->n_buffers; i++) {
        const me_ddp_buffer *buffer = &ddp->buffers[i];
        if (buffer->sharing != o->sharing) {
            continue;
        }
        if (buffer->layout != NULL && t->config->optimizer.distributed) {
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
        for (int32_t c = o->chunk_begin; c < o->chunk_end; c++) {
            append_chunk(t, o, &t->ddp[c], g);
        }
        o->group_end[group] = o->count;
    }
}

static void chain(me_trainer *t, me_sharing sharing, int32_t chunk_begin,
                  int32_t chunk_end)
{
    me_optimizer *o = &t->optimizers[t->n_optimizers++];
    o->sharing = sharing;
    o->chunk_begin = chunk_begin;
    o->chunk_end = chunk_end;
    collect_shards(t, o);
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
    chain(t, ME_SHARING_DENSE, 0, first);
    if (first < chunks) {
        chain(t, ME_SHARING_DENSE, first, chunks);
    }
    if (!t->wrapper->has_one_optimizer) {
        chain(t, ME_SHARING_EXPERT, 0, chunks);
    }
}
