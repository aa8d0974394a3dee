/**
 * @file
 * What the files of the public API share: its objects, and how records and
 * texts go to the caller.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_API_API_PRIVATE_H
#define MEMEST_API_API_PRIVATE_H

#include "base/status.h"
#include "base/str.h"
#include "collectives/transport.h"
#include "config/config.h"
#include "memest/memest.h"
#include "run/job_run.h"

#include <stdbool.h>
#include <stddef.h>

struct memest_error {
    me_diag diag;
};

struct memest_job {
    me_config *config; /**< read, not finished; owned */
};

/** The diag that a failure is written to; NULL if the caller wants none. */
me_diag *me_api_diag(memest_error *error);

/** The status of the library's functions; they are numbered alike. */
memest_status me_api_status(me_status status);

/**
 * Fill a caller's record from a whole one: as much as both have, the rest
 * zero. Both begin with their size, which stays the caller's.
 *
 * @param size  bytes of @p whole
 * @return false: the caller's size is none
 */
bool me_api_fill(void *record_out, const void *whole, size_t size);

/** The other way: a caller's record, or NULL for one that is all zero, as one
 *  of @p size bytes. @return false: the caller's size is none */
bool me_api_read(const void *record, void *whole_out, size_t size);

/**
 * Hand a text to the caller, or say why there is none. Ends @p text.
 *
 * @param status      what came of making it
 * @param length_out  may be NULL
 */
memest_status me_api_text(me_status status, me_str *text, me_diag *diag,
                          char **text_out, size_t *length_out);

/** A job that is planned, in a process of its own. */
typedef struct me_api_run {
    me_transport *transport;
    me_run *run;
} me_api_run;

/**
 * Finish and plan a job.
 *
 * @param run_out  to be given back with me_api_run_fini(), also on failure
 */
me_status me_api_plan(const memest_job *job, const me_run_options *options,
                      me_diag *diag, me_api_run *run_out) ME_MUST_CHECK;

/** Give back. */
void me_api_run_fini(me_api_run *run);

struct memest_report {
    me_api_run run;          /**< none where the report is a comparison's */
    const me_report *report; /**< the run's */
};

#endif /* MEMEST_API_API_PRIVATE_H */
