/**
 * @file
 * How far the number of a verdict can be trusted, in a word: what it leaves out,
 * and what in it nobody can decide beforehand.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_CONFIDENCE_H
#define MEMEST_REPORT_CONFIDENCE_H

#include "base/json_text.h"
#include "report/job_report.h"

#include <stdint.h>

/** X(constant, word). */
#define ME_CONFIDENCE_LIST(X)                                                  \
    X(ME_CONFIDENCE_EXACT, "exact")                                            \
    X(ME_CONFIDENCE_MODELLED, "modelled")                                      \
    X(ME_CONFIDENCE_APPROXIMATED, "approximated")                              \
    X(ME_CONFIDENCE_NOT_MODELLED, "not modelled")

typedef enum me_confidence_level {
#define ME_CONFIDENCE_ENUM(constant, name) constant,
    ME_CONFIDENCE_LIST(ME_CONFIDENCE_ENUM)
#undef ME_CONFIDENCE_ENUM
} me_confidence_level;

typedef struct me_confidence {
    /** Exact: to the byte. Modelled: all that the job asks of the allocator is in
     *  the number, on a measured card; what remains is its band. Approximated: a
     *  part is estimated, or nobody can decide it. Not modelled: a part of any
     *  size is not in it. */
    me_confidence_level level;
    uint64_t lower_bytes;  /**< at most so much less; ME_BYTES_UNKNOWN: any */
    uint64_t higher_bytes; /**< at most so much more; likewise */
} me_confidence;

/** Of the worst rank of a judged report. Local. */
me_confidence me_confidence_of(const me_report *report);

/** "exact", "modelled, -0.068 to +0.068 GiB", "approximated, -0.010 to +0.500
 *  GiB", "not modelled". Local. */
void me_confidence_append(const me_confidence *confidence, me_str *text);

/** Its word alone; static. Local. */
const char *me_confidence_word(me_confidence_level level);

/** As an object of level, lower_bytes and higher_bytes; new, or NULL. Local. */
json_t *me_confidence_json(const me_confidence *confidence);

#endif /* MEMEST_REPORT_CONFIDENCE_H */
