/**
 * @file
 * The keys of torchtitan's configuration, and the job that they describe; see
 * torchtitan.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_TORCHTITAN_TORCHTITAN_PRIVATE_H
#define MEMEST_CONFIG_TORCHTITAN_TORCHTITAN_PRIVATE_H

#include "base/str.h"
#include "config/config.h"
#include "config/torchtitan/toml.h"
#include "config/torchtitan/torchtitan.h"

/** Which torchtitan a key is of: bits. */
enum {
    ME_TITAN_2024 = 1, /**< December 2024 (9dec370) */
    ME_TITAN_0_2 = 2,  /**< releases 0.2 */
    ME_TITAN_ALL = 3
};

/** Values that decide about memory. */
typedef enum me_titan_field {
    ME_TITAN_NOTHING,
    ME_TITAN_MODEL,
    ME_TITAN_FLAVOR,
    ME_TITAN_TOKENIZER,
    ME_TITAN_OPTIMIZER,
    ME_TITAN_FUSED,
    ME_TITAN_IMPLEMENTATION,
    ME_TITAN_BATCH_SIZE,
    ME_TITAN_GLOBAL_BATCH_SIZE,
    ME_TITAN_SEQ_LEN,
    ME_TITAN_MAX_NORM,
    ME_TITAN_REPLICATE,
    ME_TITAN_SHARD,
    ME_TITAN_TENSOR,
    ME_TITAN_NO_LOSS_PARALLEL,
    ME_TITAN_RESHARD,
    ME_TITAN_PIPELINE,
    ME_TITAN_SCHEDULE,
    ME_TITAN_SCHEDULE_CSV,
    ME_TITAN_SPLIT_POINTS,
    ME_TITAN_MICROBATCHES,
    ME_TITAN_MICROBATCH_SIZE,
    ME_TITAN_FIRST_STAGE_LESS,
    ME_TITAN_LAST_STAGE_LESS,
    ME_TITAN_LAYERS_PER_STAGE,
    ME_TITAN_PARAM_DTYPE,
    ME_TITAN_CPU_OFFLOAD,
    ME_TITAN_CHECKPOINT,
    ME_TITAN_CHECKPOINT_OPTION,
    ME_TITAN_EARLY_STOP,
    ME_TITAN_FIELDS
} me_titan_field;

/** What a key does where its value is not among the neutral ones. */
typedef enum me_titan_use {
    ME_TITAN_SETS,       /**< a field */
    ME_TITAN_NO_EFFECT,  /**< nothing that memory depends on */
    ME_TITAN_UNMODELLED, /**< is listed */
    ME_TITAN_REFUSED     /**< is an error */
} me_titan_use;

/** What holds for some keys of a table. All texts are static. */
typedef struct me_titan_rule {
    const char *table;
    const char *keys; /**< bars between them */
    int versions;     /**< bits */
    me_titan_use use;
    me_toml_type type; /**< of fields; a whole number is a decimal as well */
    me_titan_field field;
    const char *neutral; /**< of UNMODELLED and REFUSED: values, bars between */
    const char *note;    /**< one phrase; NULL of fields */
    me_effect effect;    /**< of what is not modelled */
} me_titan_rule;

/** A value that was given; text NULL: it was not. */
typedef struct me_titan_value {
    const char *text;
    const char *name; /**< "training.batch_size" or the flag */
    int line;         /**< of the file; 0: a flag */
} me_titan_value;

/** What a file and flags say. */
typedef struct me_titan_job {
    me_config *config;
    const char *where; /**< the file, or NULL */
    int versions;      /**< bits: which the keys so far are of */
    const char *told;  /**< the key that told them apart, or NULL */
    me_titan_value values[ME_TITAN_FIELDS];
    me_diag *diag;
} me_titan_job;

/** The rule of a key, or NULL. Local. */
const me_titan_rule *me_titan_rule_find(const char *table, const char *key);

/** Is there a table of this name, or one below it? Local. */
bool me_titan_table_is_known(const char *table);

/** The table whose name is nearest; NULL: none is near. Local. */
const char *me_titan_nearest_table(const char *table);

/** The key whose name is nearest, as "table.key"; false: none is near. */
bool me_titan_nearest(const char *table, const char *key, me_str *name_out);

/** Fail for a value that was given, naming it. */
me_status me_titan_fail(const me_titan_job *job, me_status status,
                        const me_titan_value *value, const char *what);

/** Is it the newer torchtitan's? That is what files without a telling key are
 *  read as. */
static inline bool me_titan_is_0_2(const me_titan_job *job)
{
    return (job->versions & ME_TITAN_0_2) != 0;
}

/** Write the job as a `.cfg` file describes it, and read that. Local. */
me_status me_titan_apply(me_titan_job *job,
                         me_torchtitan_job *job_out) ME_MUST_CHECK;

/** me_titan_apply(), and keep the keys for me_torchtitan_set(). Local. */
me_status me_titan_keep_and_apply(me_titan_job *job) ME_MUST_CHECK;

/** Take the value of a key that is written as a flag's. Local. */
me_status me_titan_take_text(me_titan_job *job, const char *table,
                             const char *key, const char *name,
                             const char *value) ME_MUST_CHECK;

#endif /* MEMEST_CONFIG_TORCHTITAN_TORCHTITAN_PRIVATE_H */
