/**
 * @file
 * The log of a search: a line of JSON a candidate that was simulated, behind one
 * that says of which job. A second search of the same job takes from it what the
 * first has done.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_SEARCH_LOG_H
#define MEMEST_SEARCH_SEARCH_LOG_H

#include "base/str.h"
#include "run/job_card.h"
#include "search/candidates.h"

#include <stdio.h>

/** Of a job, all that its candidates have in common, and of memest. */
typedef struct me_search_digest {
    char text[33]; /**< hexadecimal */
} me_search_digest;

/**
 * The digest of a job: its options, the contents of the files that they name,
 * the card, memest's version. Local.
 *
 * @param job   read, not finished
 * @return ME_OK; ME_ERR_NOMEM; ME_ERR_IO for a file that cannot be read
 */
me_status me_search_digest_make(const me_config *job, const me_job_card *card,
                                bool strict, me_diag *diag,
                                me_search_digest *digest_out) ME_MUST_CHECK;

/**
 * Read what there is of a log, whole lines. Local.
 *
 * @param text_out  appended to; nothing of a file that is not there; the caller's
 * @return ME_OK; ME_ERR_CONFIG: it cannot be read; ME_ERR_NOMEM
 */
me_status me_search_log_read(const char *path, me_diag *diag,
                             me_str *text_out) ME_MUST_CHECK;

/**
 * Fill in the candidates that a log knows. Local.
 *
 * @param text  of the log, borrowed
 * @return ME_OK; ME_ERR_CONFIG for a log of another job or another memest;
 *         ME_ERR_SYNTAX with the line; ME_ERR_NOMEM
 */
me_status me_search_log_apply(const char *path, const char *text,
                              const me_search_digest *digest, me_diag *diag,
                              me_candidates *candidates) ME_MUST_CHECK;

/**
 * Open the log to write on, its first line written, and without what a run that
 * was killed left of a line. Local.
 *
 * @param text      of the log as it was read
 * @param file_out  for fclose()
 * @return ME_OK; ME_ERR_IO, ME_ERR_NOMEM
 */
me_status me_search_log_open(const char *path, const char *text,
                             const me_search_digest *digest, me_diag *diag,
                             FILE **file_out) ME_MUST_CHECK;

/** Append a candidate that was simulated, or refused when it was. Local.
 *  @return ME_OK; ME_ERR_IO, ME_ERR_NOMEM */
me_status me_search_log_add(FILE *file, const char *path,
                            const me_candidate *candidate,
                            me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_SEARCH_SEARCH_LOG_H */
