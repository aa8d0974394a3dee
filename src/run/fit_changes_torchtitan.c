/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a torchtitan job are keys of its own: the model is written from them,
 * and what torchtitan would run no option of memest's says. */
#include "config/torchtitan/torchtitan.h"
#include "run/fit_builder.h"

#include <inttypes.h>

/** A key by its name in releases 0.2 and in December 2024; NULL: it has none. */
typedef struct titan_key {
    const char *of_0_2;
    const char *of_2024;
} titan_key;

static const titan_key batch_key = {"training.local_batch_size",
                                    "training.batch_size"};
static const titan_key replicate_key = {
    "parallelism.data_parallel_replicate_degree",
    "training.data_parallel_replicate_degree"};
static const titan_key shard_key = {"parallelism.data_parallel_shard_degree",
                                    "training.data_parallel_shard_degree"};
static const titan_key tensor_key = {"parallelism.tensor_parallel_degree",
                                     "training.tensor_parallel_degree"};
static const titan_key pipeline_key = {"parallelism.pipeline_parallel_degree",
                                       "experimental.pipeline_parallel_degree"};

enum {
    MOST_STAGES = 16
};

static const me_torchtitan_job *job_of(const me_fit_builder *b)
{
    return me_torchtitan_of(b->config);
}

static const char *name_of(const me_fit_builder *b, const titan_key *key)
{
    return job_of(b)->is_0_2 ? key->of_0_2 : key->of_2024;
}

static void set_number(const me_fit_builder *b, me_fit_change *change,
                       const titan_key *key, int64_t value)
{
    me_fit_set(change, "%s=%" PRId64, name_of(b, key), value);
}

/** A step trains as many samples as before. */
static void keep_batch(const me_fit_builder *b, me_fit_change *change)
{
    if (job_of(b)->is_0_2) {
        me_fit_set(change, "training.global_batch_size=%" PRIu64,
                   b->config->train.global_batch_size);
    }
}

static void add_reshard(me_fit_builder *b)
{
    const me_torchtitan_job *j = job_of(b);
    if (j->is_0_2 && j->is_sharded && !j->always_reshards) {
        me_fit_set(me_fit_add(b, "resharding after forwards"),
                   "parallelism.fsdp_reshard_after_forward=always");
    }
}

static void add_optimizer(me_fit_builder *b)
{
    const me_torchtitan_job *j = job_of(b);
    if (!j->is_fused) {
        me_fit_set(me_fit_add(b, "fused optimizer"), "%s",
                   j->is_0_2 ? "optimizer.implementation=fused"
                             : "optimizer.fused=true");
    }
}

static void add_shards(me_fit_builder *b)
{
    const me_torchtitan_job *j = job_of(b);
    if (j->replicate > 1) {
        me_fit_change *c =
            me_fit_add(b, "fully_shard over all ranks of a batch");
        set_number(b, c, &replicate_key, 1);
        set_number(b, c, &shard_key,
                   j->shard < 0 ? -1 : j->shard * j->replicate);
    }
}

static void add_checkpoint(me_fit_builder *b, const char *name,
                           const char *mode, const char *option)
{
    me_fit_change *c = me_fit_add(b, "%s", name);
    me_fit_set(c, "activation_checkpoint.mode=%s", mode);
    if (option != NULL) {
        me_fit_set(c, "activation_checkpoint.selective_ac_option=%s", option);
    }
}

static void add_recomputation(me_fit_builder *b)
{
    const me_torchtitan_job *j = job_of(b);
    if (!j->is_checkpointed) {
        add_checkpoint(b, "recomputation of every other block", "selective",
                       "2");
    }
    if (!j->is_op_checkpoint && !j->is_full_checkpoint) {
        add_checkpoint(b, "recomputation of all but expensive operations",
                       "selective", "op");
    }
    if (!j->is_full_checkpoint) {
        add_checkpoint(b, "recomputation of all blocks", "full", NULL);
    }
}

/** Smaller batches of a rank, and as many more of them: December 2024 has no
 *  steps of several. */
static void add_batch(me_fit_builder *b)
{
    const me_torchtitan_job *j = job_of(b);
    for (uint64_t f = 2; j->is_0_2 && f <= 16 && j->batch_size % f == 0;
         f *= 2) {
        me_fit_change *c =
            me_fit_add(b, "local batch %" PRIu64, j->batch_size / f);
        set_number(b, c, &batch_key, (int64_t)(j->batch_size / f));
        keep_batch(b, c);
    }
}

/** Ranks of a batch become those of a degree. */
static void add_degree(me_fit_builder *b, const char *what,
                       const titan_key *key, int64_t degree, int64_t factor)
{
    const me_torchtitan_job *j = job_of(b);
    if (j->shard > 0 && j->shard % factor != 0) {
        return;
    }
    me_fit_change *c = me_fit_add(b, "%s %" PRId64, what, degree);
    set_number(b, c, key, degree);
    if (j->shard > 0) {
        set_number(b, c, &shard_key, j->shard / factor);
    }
    if (!j->is_0_2) {
        set_number(b, c, &batch_key, (int64_t)j->batch_size * factor);
    }
    keep_batch(b, c);
}

static void add_degrees(me_fit_builder *b)
{
    const me_torchtitan_job *j = job_of(b);
    const int64_t node = b->config->device.gpus_per_node;
    for (int64_t f = 2; j->tensor * f <= node; f *= 2) {
        add_degree(b, "tensor", &tensor_key, j->tensor * f, f);
    }
    for (int64_t f = 2; j->pipeline * f <= MOST_STAGES; f *= 2) {
        add_degree(b, "pipeline", &pipeline_key, j->pipeline * f, f);
    }
}

static void add_host(me_fit_builder *b)
{
    const me_torchtitan_job *j = job_of(b);
    if (j->is_sharded && !j->is_offloaded) {
        me_fit_set(me_fit_add(b, "shards on the host"),
                   "training.enable_cpu_offload=true");
    }
}

/** What is on the host, where that has no room. */
static void add_from_host(me_fit_builder *b)
{
    if (b->host_is_short && job_of(b)->is_offloaded) {
        me_fit_set(me_fit_add(b, "shards on the card"),
                   "training.enable_cpu_offload=false");
    }
}

static void add_precision(me_fit_builder *b)
{
    const me_torchtitan_job *j = job_of(b);
    if (!j->is_bfloat16) {
        me_fit_set(me_fit_add(b, "mixed precision in bf16"),
                   "training.mixed_precision_param=bfloat16");
    }
}

const me_fit_kind me_fit_torchtitan_kinds[] = {
    {add_from_host, false, 0},     {add_reshard, false, 0},
    {add_optimizer, false, 0},     {add_shards, false, 0},
    {add_recomputation, false, 0}, {add_batch, false, 0},
    {add_degrees, false, 0},       {add_host, false, 0},
    {add_precision, true, 0},      {NULL, false, 0},
};
