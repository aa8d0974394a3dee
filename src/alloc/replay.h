/**
 * @file
 * `memest replay`: a recording through the simulated allocator under any
 * setting, and what its counters would have been. One device, one pool; the
 * recording's own frees of segments are not replayed, the pool decides.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_ALLOC_REPLAY_H
#define MEMEST_ALLOC_REPLAY_H

#include "alloc/pool.h"
#include "base/progress.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** X(constant, name): what a replay's report is written as. */
#define ME_REPLAY_FORMAT_LIST(X)                                               \
    X(ME_REPLAY_TEXT, "text")                                                  \
    X(ME_REPLAY_JSON, "json")                                                  \
    X(ME_REPLAY_CSV, "csv")

typedef enum me_replay_format {
#define ME_REPLAY_FORMAT_ENUM(constant, name) constant,
    ME_REPLAY_FORMAT_LIST(ME_REPLAY_FORMAT_ENUM)
#undef ME_REPLAY_FORMAT_ENUM
} me_replay_format;

/** How to replay. */
typedef struct me_replay_options {
    me_pool_options pool;   /**< settings, limit, card */
    const char *conf_text;  /**< the settings as given, for the report; NULL */
    int device;             /**< of a snapshot; -1: the only one in it */
    bool is_order_modelled; /**< do not look for the order of segments in the
                               recording, see replay_search.h */
    uint64_t max_search_steps; /**< calls that the search for it may try */
    me_replay_format format;
    me_progress_part *part; /**< of reading; borrowed; NULL: nobody looks */
} me_replay_options;

/** What came of it, for the exit code. */
typedef struct me_replay_summary {
    uint64_t n_events;
    uint64_t reserved_peak_bytes; /**< of the whole recording */
    uint64_t num_alloc_retries;
    bool is_oom;
} me_replay_summary;

/** The options of an empty command line: an endless card, text. */
me_replay_options me_replay_options_default(void);

/** The format called @p name. Local. @return false: there is none */
bool me_replay_format_find(const char *name, me_replay_format *format_out);

/**
 * Replay a recording. Local.
 *
 * @param path         file, or "-" for standard input
 * @param summary_out  may be NULL
 * @param report       the report is appended; nothing on failure
 * @return ME_OK, also when the recording runs out of device memory;
 *         ME_ERR_SYNTAX with the line of a call that makes no sense;
 *         ME_ERR_IO, ME_ERR_NOMEM, ME_ERR_OVERFLOW
 */
me_status me_replay_run(const me_replay_options *options, const char *path,
                        me_diag *diag, me_replay_summary *summary_out,
                        me_str *report) ME_MUST_CHECK;

/** As me_replay_run() for an open file, which stays the caller's; if it can be
 * rewound it is read from its beginning. Local. */
me_status me_replay_file(const me_replay_options *options, FILE *file,
                         const char *name, me_diag *diag,
                         me_replay_summary *summary_out,
                         me_str *report) ME_MUST_CHECK;

#endif /* MEMEST_ALLOC_REPLAY_H */
