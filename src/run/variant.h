/**
 * @file
 * What `memest compare` varies: `--schedule NAME[:CHUNKS]` and
 * `--variant [NAME:]KEY=VALUE[,KEY=VALUE…]`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_VARIANT_H
#define MEMEST_RUN_VARIANT_H

#include "base/status.h"
#include "config/config.h"
#include "parallel/schedule.h"

#include <stdint.h>

enum {
    ME_VARIANT_NAME = 256,
    ME_VARIANT_MAX_SETS = 32
};

/** A schedule that was asked for. */
typedef struct me_schedule_choice {
    const me_schedule *schedule; /**< NULL: the job's own */
    int32_t chunks;              /**< of a rank; 0: not given */
    char name[ME_VARIANT_NAME];  /**< for the report: "interleaved:2" */
} me_schedule_choice;

/** Settings beside those of the job. */
typedef struct me_variant {
    char name[ME_VARIANT_NAME];      /**< "": the job as it is */
    char *text;                      /**< as given; owned */
    const char *assignments;         /**< of it, without the name */
    char *sets[ME_VARIANT_MAX_SETS]; /**< "KEY=VALUE"; owned */
    int32_t n_sets;
} me_variant;

/**
 * Read `NAME[:CHUNKS]`. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG for a name or number that is none
 */
me_status
me_schedule_choice_parse(const char *text, me_diag *diag,
                         me_schedule_choice *choice_out) ME_MUST_CHECK;

/**
 * Read `[NAME:]KEY=VALUE[,KEY=VALUE…]`. A name ends at a colon before the
 * first `=`; without one the assignments are the name, and a digest stands for
 * what is too long for one. A comma begins a new assignment if a key and a `=`
 * follow it, else it belongs to the value. Local.
 *
 * @param variant_out  for me_variant_fini(), also on failure
 * @return ME_OK; ME_ERR_CONFIG for what is none; ME_ERR_NOMEM
 */
me_status me_variant_parse(const char *given, me_diag *diag,
                           me_variant *variant_out) ME_MUST_CHECK;

/** Give back. Local. */
void me_variant_fini(me_variant *variant);

/** Set the variant's options in an unfinished job. @return as me_config_set()
 */
me_status me_variant_apply(const me_variant *variant, me_config *config,
                           me_diag *diag) ME_MUST_CHECK;

/**
 * Have an unfinished job run a schedule. Local.
 *
 * @return ME_OK; ME_ERR_CONFIG; whether the job can run it is seen when it is
 *         finished
 */
me_status me_schedule_choice_apply(const me_schedule_choice *choice,
                                   me_config *config,
                                   me_diag *diag) ME_MUST_CHECK;

/** Name the schedule that a finished job runs: "none", "1f1b",
 *  "interleaved:2". Local. */
void me_schedule_choice_name(const me_config *config,
                             char name[ME_VARIANT_NAME]);

#endif /* MEMEST_RUN_VARIANT_H */
