/**
 * @file
 * A torchtitan job as numbers, between the two halves of me_titan_apply(): what
 * the keys say is worked out (torchtitan_job.c), and the model is written
 * (torchtitan_model.c).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCHTITAN_TORCHTITAN_MODEL_H
#define MEMEST_CONFIG_TORCHTITAN_TORCHTITAN_MODEL_H

#include "config/torchtitan/torchtitan_private.h"

enum {
    ME_TITAN_STAGES_MAX = 512
};

/** A flavor of llama3 (torchtitan/models/llama3/__init__.py). */
typedef struct me_titan_flavor {
    const char *name;
    uint64_t dim;
    uint64_t n_layers;
    uint64_t n_heads;
    uint64_t n_kv_heads;
    uint64_t multiple_of;       /**< of the MLP's width */
    uint64_t multiplier_tenths; /**< of it: ffn_dim_multiplier */
    int versions;
} me_titan_flavor;

/** The job as numbers. */
typedef struct me_titan_model {
    const me_titan_job *job;
    const me_titan_flavor *flavor;
    bool is_0_2;
    uint64_t vocabulary;
    uint64_t batch_size;
    uint64_t seq_len;
    int64_t replicate;
    int64_t shard; /**< -1: what is left */
    uint64_t tensor;
    bool is_loss_parallel;
    uint64_t pipeline;
    uint64_t stages;
    uint64_t microbatches;
    uint64_t first_layer[ME_TITAN_STAGES_MAX + 1]; /**< of each stage */
    bool is_sharded;
    const char *checkpoint; /**< none, selective, full */
    const char *option;     /**< op, or every how many blocks */
    bool stops_early;
    uint64_t n_blocks; /**< written so far: names must differ */
    me_str text;
} me_titan_model;

/** What stands around a block. */
typedef struct me_titan_block {
    bool is_checkpointed;
    bool keeps_unsharded;
} me_titan_block;

/** A value that was given. */
const me_titan_value *me_titan_given(const me_titan_model *m,
                                     me_titan_field field);

/** Its text, or @p otherwise. */
const char *me_titan_text(const me_titan_model *m, me_titan_field field,
                          const char *otherwise);

/** A whole number that was checked when it was read, or @p otherwise. */
int64_t me_titan_number(const me_titan_model *m, me_titan_field field,
                        int64_t otherwise);

/** What stands around block @p layer of a whole model or stage whose last one is
 *  @p last. */
me_titan_block me_titan_block_of(const me_titan_model *m, uint64_t layer,
                                 uint64_t last);

/** Are norm and output in a module that stands for their group of fully_shard?
 *  So in releases 0.2. */
bool me_titan_has_head(const me_titan_model *m);

/** Fail for a value that is wrong, naming it. */
me_status me_titan_wrong(const me_titan_model *m, me_titan_field field,
                         const char *what);

/** A number that must be at least one. */
me_status me_titan_count(const me_titan_model *m, me_titan_field field,
                         uint64_t otherwise, uint64_t *count_out);

/** The stages of a pipeline, their layers and micro-batches (torchtitan_stages.c);
 *  one stage without a pipeline. */
me_status me_titan_read_stages(me_titan_model *m);

/** Append the plan of apply_tp() (torchtitan_plan.c); nothing without tensor
 *  parallelism. */
void me_titan_plan_write(me_titan_model *m);

/** Append the job to the model's text, as a `.cfg` file describes it. */
void me_titan_model_write(me_titan_model *m);

#endif /* MEMEST_CONFIG_TORCHTITAN_TORCHTITAN_MODEL_H */
