/**
 * @file
 * What one simulated rank took: everything the reports say about it. Made by
 * the tracker, sent between processes in its encoded form, never changed by a
 * report. All quantities are bytes unless they say otherwise.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_RESULT_H
#define MEMEST_TRACK_RESULT_H

#include "base/arena.h"
#include "base/status.h"
#include "model/event.h"
#include "model/host_memory.h"
#include "time/clock_program.h"
#include "track/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A number that nobody knows: `null` in JSON, "-" in text. */
#define ME_BYTES_UNKNOWN UINT64_MAX

enum {
    ME_SETUP_ITERATION = -1,
    ME_STEADY_ITERATION = 1,   /**< the one whose peak is the rank's peak */
    ME_LIMIT_ITERATIONS = 3,   /**< run under a limit: what is cached after the
                                   steady one may make the next one retry */
    ME_CONTRIBUTORS_MAX = 128, /**< largest ones that a peak keeps */
    ME_COURSE_MAX = 32768      /**< parts of an iteration that are kept */
};

/** The allocator's counters at a named moment; peaks since the one before. */
typedef struct me_point_result {
    const char *name;
    uint64_t requested_bytes;
    uint64_t requested_peak_bytes;
    uint64_t allocated_bytes;
    uint64_t allocated_peak_bytes;
    uint64_t reserved_bytes;
    uint64_t reserved_peak_bytes;
    uint64_t device_bytes;
} me_point_result;

/** Peaks while a phase ran in one iteration. */
typedef struct me_phase_result {
    const char *name; /**< of me_phase, or "forward_backward": all three of
                           forward, backward and recompute */
    uint64_t requested_bytes;
    uint64_t allocated_bytes;
    uint64_t reserved_bytes;
} me_phase_result;

/** Blocks that were live at a peak, of like modules, for the same reason. */
typedef struct me_contributor {
    const char *module; /**< folded: "decoder.layers.0-31.mlp"; "" for none */
    const char *op;     /**< NULL: none */
    uint8_t category;   /**< me_category */
    uint32_t modules;   /**< how many modules are folded into the name */
    uint64_t blocks;
    uint64_t bytes;
} me_contributor;

/** The most that was requested at once in one iteration. */
typedef struct me_peak_result {
    uint64_t requested_bytes;
    uint64_t allocated_bytes; /**< its own peak in the iteration */
    uint64_t reserved_bytes;  /**< the most since the process began */
    uint64_t device_bytes;    /**< with those, and all that is outside of the
                                   allocator when the iteration ended */
    int32_t iteration;
    int32_t microbatch; /**< ME_NO_MICROBATCH outside of one */
    const char *phase;
    const char *module; /**< path; "" outside of any module */
    const char *op;     /**< whose allocation made the peak; NULL: none, the
                             iteration never took more than at its start */
    uint64_t by_category[ME_CATEGORY_COUNT]; /**< adds up to the requested */
    me_contributor *contributors;            /**< by falling bytes */
    uint32_t n_contributors;
} me_peak_result;

typedef struct me_iteration_result {
    int32_t iteration; /**< ME_SETUP_ITERATION: before the first */
    uint64_t requested_bytes;
    uint64_t allocated_bytes;
    uint64_t reserved_bytes; /**< within the iteration */
    me_phase_result *phases;
    uint32_t n_phases;
    me_peak_result peak;
} me_iteration_result;

/** A module of the rank in the steady iteration. */
typedef struct me_module_result {
    const char *name; /**< path */
    uint32_t parent;  /**< index of the parent, UINT32_MAX: at the top */
    uint64_t forward_peak_bytes; /**< UNKNOWN: its forward never ran */
    uint64_t
        backward_peak_bytes; /**< recomputation included; UNKNOWN as well */
    uint64_t parameters;     /**< elements */
    uint64_t parameter_bytes;
    uint64_t activation_bytes; /**< of one micro-batch: allocated in its first
                                    forward and still kept as activation when
                                    the forward phase ended */
} me_module_result;

/** How the job ends when the allocator may not hold more than its limit. */
typedef struct me_limit_result {
    bool is_known; /**< false: nobody asked, the rest is meaningless */
    bool oom;
    int32_t iteration; /**< the four: where it died */
    const char *phase;
    const char *module;
    const char *op;
    const char *message;  /**< as the job would print it; NULL: it ran */
    uint64_t tried_bytes; /**< of the allocation that failed */
    uint64_t num_alloc_retries;
    uint64_t reserved_bytes;
    bool oom_with_less; /**< it dies where there is less memory by the band */
    bool oom_with_more; /**< it dies even with more by the band */
} me_limit_result;

/** The peaks of the steady iteration if what another stream uses comes back as
 *  late as is possible: the upper ends of ranges whose lower ones are those of
 *  the iteration itself. */
typedef struct me_late_result {
    bool is_known; /**< false: nobody asked */
    uint64_t requested_bytes;
    uint64_t allocated_bytes;
    uint64_t reserved_bytes; /**< the most since the process began */
} me_late_result;

typedef struct me_communicator_result {
    const char *group; /**< me_group_kind's name */
    int32_t size;      /**< ranks */
    uint64_t bytes;
} me_communicator_result;

/** Device memory outside of the allocator. */
typedef struct me_device_result {
    bool is_known;
    uint64_t context_bytes;
    uint64_t library_bytes;
    uint64_t user_buffer_bytes; /**< of those, Transformer Engine's */
    uint64_t communicator_bytes;
    uint64_t band_bytes; /**< how far off the three together may be */
    me_communicator_result *communicators;
    uint32_t n_communicators;
} me_device_result;

/** What a rank hands to one kind of collective in the steady iteration. */
typedef struct me_volume_result {
    uint64_t calls;
    uint64_t bytes; /**< elements as NCCL counts them for this kind, times the
                         size of one: what is sent of an all-gather, what is
                         received of a reduce-scatter */
} me_volume_result;

/** Bytes while a part of an iteration ran. */
typedef struct me_course_bytes {
    uint64_t begin; /**< when it began */
    uint64_t peak;  /**< the most since the part before had ended, so that the
                         largest of an iteration is the iteration's peak */
    uint64_t end;   /**< when it ended */
} me_course_bytes;

/** A part of the steady iteration; parts follow each other in time. */
typedef struct me_course_part {
    const char *name;   /**< an action: F, B, I or W; the phases outside of
                             actions; "other": the rest, up to the end */
    int32_t chunk;      /**< of an action, from 0; -1 */
    int32_t microbatch; /**< of an action; ME_NO_MICROBATCH */
    me_course_bytes requested;
    me_course_bytes allocated; /**< all three may be unknown */
    me_course_bytes reserved;  /**< likewise */
    uint64_t
        end_by_category[ME_CATEGORY_COUNT]; /**< requested, when it ended */
} me_course_part;

/** Points and modules, which results of ranks that one run stands for have in
 *  common, as they are the run's. Each result holds it, and so does whoever made
 *  it; it goes with the last of them, on whichever thread. */
typedef struct me_result_common {
    me_point_result *points;
    uint32_t n_points;
    me_module_result *modules;
    uint32_t n_modules;
    me_arena *arena; /**< of what the pointers name */
    _Atomic(uint32_t) n_holders;
} me_result_common;

/** Owned by whoever got it; what its pointers name lives in its arena, or in what
 *  it has in common with others. */
typedef struct me_rank_result {
    uint64_t parameters; /**< elements */
    uint64_t parameter_bytes;
    me_point_result *points;
    uint32_t n_points;
    me_iteration_result *iterations; /**< set-up first, then rising */
    uint32_t n_iterations;
    me_module_result *modules; /**< parents first; without the root */
    uint32_t n_modules;
    me_limit_result limit;
    me_device_result device;
    me_host_memory host;          /**< all 0: the job keeps nothing there */
    uint64_t timing_buffer_bytes; /**< by how much reserved bytes may be others,
                                    since nobody knows whether compiled kernels
                                    are timed; 0: the job says, or has none */
    uint64_t
        workspace_doubt_bytes;   /**< by how much reserved bytes may be others,
                                    since nobody knows which kernel a library
                                    takes, and with it which workspace */
    uint64_t private_pool_bytes; /**< of what the allocator reserves, segments
                                    of private pools when the job ends, which
                                    captured CUDA graphs alone can use */
    me_late_result late;
    me_time_program time; /**< empty: the card's rates are not known, or the
                               result was decoded */
    me_volume_result volume[ME_GROUP_COUNT][ME_COLLECTIVE_COUNT];
    me_course_part *course; /**< of the steady iteration, if it was kept */
    uint32_t n_course;
    uint64_t course_begin_by_category[ME_CATEGORY_COUNT]; /**< requested, when
                                   the iteration began; 0 without a course */
    uint32_t course_left_out; /**< parts after ME_COURSE_MAX ones; the last one
                                   kept, "other", has their peak */
    me_result_common *common; /**< held; NULL: it has points and modules of its
                                   own */
    me_arena *arena;
} me_rank_result;

/* What these records are made of (track/result_schema.c). */
extern const me_schema me_point_schema;
extern const me_schema me_peak_schema;
extern const me_schema me_iteration_schema;
extern const me_schema me_module_schema;
extern const me_schema me_late_schema;
extern const me_schema me_volume_schema;
extern const me_schema me_course_schema;
/** What a rank's record has in every report. */
extern const me_schema me_result_schema;
/** What it has where there is such a thing. */
extern const me_schema me_result_optional_schema;

/** Nothing yet, held by the caller; NULL without memory. Local. */
me_result_common *me_result_common_create(void);

/** Hold it no longer; NULL is allowed. Local. */
void me_result_common_release(me_result_common *common);

/** An empty result, owned by the caller; NULL without memory. Local. */
me_rank_result *me_rank_result_create(void);

/** Have points and modules in common with others. They are complete, and the result
 *  has none so far. Local. */
void me_rank_result_share(me_rank_result *result, me_result_common *common);

/** Give back; NULL is allowed. Local. */
void me_rank_result_destroy(me_rank_result *result);

/** Is it no iteration of training, but an evaluation? Local. */
bool me_is_evaluation(const me_iteration_result *iteration);

/**
 * The peak of the steady iteration, or of the last one before it if the job
 * never got there; of the evaluation, where that takes more; NULL if there is
 * none at all. Borrowed. Local.
 */
const me_peak_result *me_rank_result_peak(const me_rank_result *result);

/** Reserved bytes that no block held when each was at its most: what
 *  fragmentation costs; ME_BYTES_UNKNOWN if nobody knows. Local. */
uint64_t me_peak_fragmentation(const me_peak_result *peak);

/** Iteration @p iteration, borrowed; NULL if it was not simulated. Local. */
const me_iteration_result *
me_rank_result_iteration(const me_rank_result *result, int32_t iteration);

/**
 * Say how the job ends under its limit. Texts are copied. Local.
 *
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_rank_result_set_limit(me_rank_result *result,
                                   const me_limit_result *limit) ME_MUST_CHECK;

/**
 * Say what the device holds beside the allocator's segments. Communicators
 * and texts are copied. Local.
 *
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status
me_rank_result_set_device(me_rank_result *result,
                          const me_device_result *device) ME_MUST_CHECK;

/**
 * Say how the steady iteration runs in time. Copied. Local.
 *
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_rank_result_set_time(me_rank_result *result,
                                  const me_time_program *time) ME_MUST_CHECK;

/**
 * Write the times of @p result as bytes, which are no part of those of
 * me_rank_result_encode(): ranks that take the same memory are equal whatever
 * they do in time. Local.
 *
 * @param bytes_out  owned by the caller, for me_free()
 * @param size_out   bytes
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_rank_result_encode_time(const me_rank_result *result,
                                     unsigned char **bytes_out,
                                     size_t *size_out) ME_MUST_CHECK;

/**
 * Read what me_rank_result_encode_time() wrote. The bytes may be anything.
 * Local.
 *
 * @param arena  the program's items live there
 * @return ME_OK, ME_ERR_SYNTAX, ME_ERR_NOMEM
 */
me_status me_time_program_decode(const unsigned char *bytes, size_t size,
                                 me_arena *arena, me_diag *diag,
                                 me_time_program *program_out) ME_MUST_CHECK;

/**
 * Write @p result as bytes: fixed widths, little-endian, with a version; equal
 * results give equal bytes on every machine. Local.
 *
 * @param bytes_out  owned by the caller, for me_free()
 * @param size_out   bytes
 * @return ME_OK, ME_ERR_NOMEM
 */
me_status me_rank_result_encode(const me_rank_result *result,
                                unsigned char **bytes_out,
                                size_t *size_out) ME_MUST_CHECK;

/**
 * Read what me_rank_result_encode() wrote. The bytes may be anything: what is
 * not a whole result of this version is refused. Local.
 *
 * @param bytes       @p size bytes, borrowed
 * @param result_out  owned by the caller
 * @return ME_OK, ME_ERR_SYNTAX, ME_ERR_NOMEM
 */
me_status me_rank_result_decode(const unsigned char *bytes, size_t size,
                                me_diag *diag,
                                me_rank_result **result_out) ME_MUST_CHECK;

#endif /* MEMEST_TRACK_RESULT_H */
