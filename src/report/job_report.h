/**
 * @file
 * What memest says about a job: every rank's result brought together on
 * process 0, the verdict, and the formats it is printed in.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_REPORT_JOB_REPORT_H
#define MEMEST_REPORT_JOB_REPORT_H

#include "base/status.h"
#include "base/str.h"
#include "base/text_wrap.h"
#include "collectives/transport.h"
#include "config/config.h"
#include "time/cluster.h"
#include "time/pipeline_step.h"
#include "time/rates.h"
#include "track/result.h"

#include <stdbool.h>
#include <stdint.h>

/** Where a rank stands in the grid. */
typedef struct me_rank_place {
    int32_t rank;
    int32_t tp;
    int32_t pp;
    int32_t dp;
    int32_t cp;
    int32_t ep;
    int32_t class_id; /**< equal for ranks with equal programs */
} me_rank_place;

extern const me_schema me_place_schema; /**< of me_rank_place */

/** A result and the ranks it speaks for. All borrowed. */
typedef struct me_report_part {
    const me_rank_result *result;
    const me_rank_place *places;
    uint32_t n_places;    /**< at least 1 */
    me_rank_result *lent; /**< `result`, if it lives as long as the report does,
                               which then need not have its own; or NULL */
} me_report_part;

/** What the report is told beside the results. All borrowed. */
typedef struct me_report_input {
    const me_config *config;
    const char *version;     /**< of memest */
    int32_t world_size;      /**< ranks */
    uint64_t capacity_bytes; /**< of the card; 0: nobody knows */
    uint64_t limit_bytes;    /**< what the allocator may hold; 0: no limit */
    const char *const *assumptions; /**< beside those of the configuration */
    uint32_t n_assumptions;
    const me_rates *rates; /**< of the card; is_known: times are predicted */
    const me_link_uses *links; /**< what groups cross; kept. NULL, or without a
                                    cluster: the card's links */
} me_report_input;

/** X(constant, name, phrase): how sure the verdict is, and as it is said. */
#define ME_RISK_LIST(X)                                                        \
    X(ME_RISK_UNKNOWN, "unknown", "no capacity given")                         \
    X(ME_RISK_FITS, "fits", "fits")                                            \
    X(ME_RISK_TIGHT, "tight", "fits, but tight")                               \
    X(ME_RISK_COIN_FLIP, "coin_flip", "coin flip, too close to call")          \
    X(ME_RISK_DOES_NOT_FIT, "does_not_fit", "does not fit")                    \
    X(ME_RISK_CANNOT_SAY, "cannot_say", "cannot say")

typedef enum me_risk {
#define ME_RISK_ENUM(constant, name, phrase) constant,
    ME_RISK_LIST(ME_RISK_ENUM)
#undef ME_RISK_ENUM
} me_risk;

/** X(constant, name): the number that is held against the capacity. */
#define ME_BASIS_LIST(X)                                                       \
    X(ME_BASIS_DEVICE, "device")                                               \
    X(ME_BASIS_RESERVED, "reserved")                                           \
    X(ME_BASIS_REQUESTED, "requested")

typedef enum me_basis {
#define ME_BASIS_ENUM(constant, name) constant,
    ME_BASIS_LIST(ME_BASIS_ENUM)
#undef ME_BASIS_ENUM
} me_basis;

/** X(member, what it is): the parts of the band, each of a cause of its own. */
#define ME_BAND_LIST(X)                                                        \
    X(device, "outside of the allocator")                                      \
    X(segment, "one segment")                                                  \
    X(compile_cache, "compile cache")                                          \
    X(workspace, "cuDNN's kernels")                                            \
    X(late_frees, "late frees")                                                \
    X(overlap, "overlapped reduction")                                         \
    X(routing, "expert routing")

/** How far off a rank's bytes may be, part by part. */
typedef struct me_band {
#define ME_BAND_MEMBER(member, what) uint64_t member;
    ME_BAND_LIST(ME_BAND_MEMBER)
#undef ME_BAND_MEMBER
} me_band;

/** What a node's ranks keep in its host's memory. */
typedef struct me_node_memory {
    int32_t node;            /**< counted from 0 */
    int32_t first_rank;      /**< its lowest */
    int32_t n_ranks;         /**< 0: no rank keeps anything */
    uint64_t bytes;          /**< the most of each, together */
    uint64_t pinned_bytes;   /**< of these */
    uint64_t capacity_bytes; /**< what the job may have of it; 0: unknown */
} me_node_memory;

typedef struct me_verdict {
    me_risk risk; /**< UNKNOWN: no capacity to hold it against */
    bool fits;    /**< meaningless when the risk is unknown or cannot be said */
    me_basis basis;
    uint64_t capacity_bytes; /**< 0: unknown */
    uint64_t worst_bytes;    /**< of the worst rank, in its whole life */
    me_band band;            /**< of the worst rank */
    uint64_t band_bytes;     /**< its sum: how far off worst_bytes may be */
    uint64_t tight_bytes;    /**< with a margin below this it is tight */
    uint64_t lower_bytes;    /**< by which what is not modelled may lower
                                  worst_bytes at most; UINT64_MAX: any */
    uint64_t higher_bytes;   /**< likewise, raise */
    int32_t worst_rank;      /**< lowest of the ranks with most bytes */
    int32_t oom_rank;        /**< lowest that dies under its limit; -1: none */
    me_node_memory node;     /**< whose host holds most; one that has less makes
                                  the job not fit, whatever its cards have */
} me_verdict;

/** A rank in the report. */
typedef struct me_report_rank {
    me_rank_place place;
    uint32_t result; /**< index into the report's results */
} me_report_rank;

/** Two predictions nearer than this are a tie: of pairs of measured jobs whose
 *  times differ by less, a third is predicted in the wrong order
 *  (docs/time.md). */
#define ME_TIME_TIE 0.15

/** How long a training step takes, as predicted. */
typedef struct me_report_time {
    me_step_time *step;        /**< NULL: not predicted; owned */
    char reason[ME_DIAG_TEXT]; /**< why it is not, where it should be */
    const char *host_lacks; /**< what of the host's time is not in it, so that
                                 it is a lower bound; static; NULL: nothing */
    char source[ME_RATES_TEXT];         /**< of the card's rates */
    char network_source[ME_RATES_TEXT]; /**< ""; the job is on one node */
    double uncertainty;                 /**< of the card's rates: 0.1 is 10 % */
    double tokens_per_second;           /**< of all ranks; 0: not known; an
                                             upper bound as the step is a
                                             lower one */
    double flops_utilisation; /**< model FLOPs, nothing counted twice for
                                   recomputation, of the data sheet's; 0: not
                                   counted */
} me_report_time;

extern const me_schema me_time_schema;       /**< of me_report_time */
extern const me_schema me_step_schema;       /**< of me_step_time */
extern const me_schema me_stage_time_schema; /**< of me_time_stage */

/** The whole report; on process 0 only. */
typedef struct me_report {
    const me_config *config;
    char *version;
    int32_t world_size;
    me_rank_result **results; /**< all different, in the order of the lowest
                                   rank that has them; owned, with what they
                                   point to unless that is lent */
    uint32_t n_results;
    bool has_lent_results;
    me_report_rank *ranks; /**< world_size of them, by rank */
    char **assumptions;    /**< owned */
    uint32_t n_assumptions;
    uint64_t limit_bytes; /**< what the allocator may hold; 0: no limit */
    me_verdict verdict;
    me_report_time time;
    const me_link_uses *links; /**< borrowed; NULL: the card's links */
    const struct me_fit *fit;  /**< what would make it fit (report/fit.h);
                                   borrowed; NULL: nobody looked for it */
} me_report;

/**
 * Bring all parts to process 0. The report is the same for any number of
 * processes and however the ranks are spread over them. Collective: every
 * process returns the same status.
 *
 * @param parts       what this process simulated; n_parts may be 0
 * @param input       the same on all processes
 * @param report_out  on process 0 owned by the caller; NULL elsewhere; the
 *                    configuration is borrowed as long as the report lives
 * @return ME_OK, ME_ERR_NOMEM, ME_ERR_MPI; ME_ERR_INTERNAL if a rank is
 *         missing or comes twice
 */
me_status me_report_gather(me_transport *transport,
                           const me_report_input *input,
                           const me_report_part *parts, uint32_t n_parts,
                           me_diag *diag, me_report **report_out) ME_MUST_CHECK;

/**
 * Predict the step's time. Local.
 *
 * @param programs  one a stage
 * @return ME_OK, also for stages that would wait for each other for ever: then
 *         the time's reason says so; ME_ERR_NOMEM
 */
me_status me_report_predict(me_report *report, const me_rates *rates,
                            const me_time_program *programs,
                            me_diag *diag) ME_MUST_CHECK;

/** The lowest rank that has a result, which some rank has. Local. */
int32_t me_report_lowest_rank(const me_report *report, uint32_t result);

/** Give back; NULL is allowed. Local. */
void me_report_destroy(me_report *report);

/** X(constant, name): the formats, as `--format` names them. */
#define ME_FORMAT_LIST(X)                                                      \
    X(ME_FORMAT_TEXT, "text")                                                  \
    X(ME_FORMAT_JSON, "json")                                                  \
    X(ME_FORMAT_CSV, "csv")                                                    \
    X(ME_FORMAT_HTML, "html")

typedef enum me_format {
#define ME_FORMAT_ENUM(constant, name) constant,
    ME_FORMAT_LIST(ME_FORMAT_ENUM)
#undef ME_FORMAT_ENUM
    ME_FORMAT_JSON_CLASSES, /**< JSON with a record for equal ranks together;
                                 has no name */
    ME_FORMAT_CHECK, /**< text of `memest check`: one screen; has no name */
    ME_FORMAT_FIT,   /**< text of `memest fit`: all of what would make it fit;
                          has no name */
    ME_FORMAT_BRIEF, /**< text on one screen; has no name */
    ME_FORMAT_BRIEF_RANKS /**< with each rank in place of each stage; has no
                               name */
} me_format;

/**
 * The format that `--format` and `--json-ranks` ask for. Local.
 *
 * @param json_ranks  NULL: not given
 * @return ME_OK; ME_ERR_CONFIG naming the flag and what would be right;
 *         ME_ERR_UNSUPPORTED for html without Vega
 */
me_status me_format_read(const char *name, const char *json_ranks,
                         me_diag *diag, me_format *format_out) ME_MUST_CHECK;

/**
 * Append the report, without colours. Local.
 *
 * @return ME_OK; ME_ERR_NOMEM, ME_ERR_OVERFLOW, as me_report_write()
 */
me_status me_report_append(const me_report *report, me_format format,
                           me_diag *diag, me_str *text) ME_MUST_CHECK;

/**
 * Print the report. Local.
 *
 * @param path       of a file that is written whole or not at all; NULL or
 *                   "-": standard output
 * @param terminal   that text is for; what is said does not change
 * @return ME_OK, ME_ERR_IO, ME_ERR_NOMEM, ME_ERR_OVERFLOW (a number that JSON
 *         cannot hold)
 */
me_status me_report_write(const me_report *report, me_format format,
                          const char *path, const me_terminal *terminal,
                          me_diag *diag) ME_MUST_CHECK;

/** Name as JSON writes it; static. Local. */
const char *me_risk_name(me_risk risk);
/** As it is said to people; static. Local. */
const char *me_risk_phrase(me_risk risk);
const char *me_basis_name(me_basis basis);

/** The verdict in one line without its end. Local. */
void me_verdict_print(const me_report *report, me_str *text);

/** May the job be started: it fits, and not by chance. Local. */
bool me_verdict_lets_go(const me_verdict *verdict);

#endif /* MEMEST_REPORT_JOB_REPORT_H */
