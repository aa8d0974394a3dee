/**
 * @file
 * PyTorch's memory tools (torch/distributed/_tools, 2.11) on a rank of a job of
 * plain PyTorch: MemTracker, FSDPMemTracker, ModTracker and the operation-level
 * MemoryTracker. What `memest track` prints, as data: while the rank runs, from
 * the hooks of an observer, and when it has run.
 *
 * All numbers are bytes. Functions that fill a record return false, and leave
 * it alone, if there is no such index, if the tool has nothing of the kind, or
 * if `struct_size` is too small to hold anything. Names are borrowed from the
 * tracker until it runs again or is destroyed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACKER_H
#define MEMEST_TRACKER_H

#include "memest/error.h"
#include "memest/job.h"
#include "memest/observer.h"
#include "memest/series.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct memest_tracker memest_tracker;

/** Which tool. */
typedef enum memest_tool {
    MEMEST_TOOL_MEM,     /**< MemTracker */
    MEMEST_TOOL_FSDP2,   /**< FSDPMemTracker, of jobs of fully_shard */
    MEMEST_TOOL_MOD,     /**< ModTracker */
    MEMEST_TOOL_MEMORY,  /**< MemoryTracker: see memest_tracker_series() */
    MEMEST_TOOL_RUNTIME, /**< RuntimeEstimator: text and JSON, as those below */
    MEMEST_TOOL_SAC,     /**< SACEstimator */
    MEMEST_TOOL_ILP,     /**< which modules to checkpoint selectively (sac_ilp);
                              needs CBC in the library */
    MEMEST_TOOL_COMM     /**< collectives of set-up and of the iteration, as
                              PyTorch's fake_collectives counts them */
} memest_tool;

/** How it listens. All zero: MemTracker, what the device has, iteration 0. */
typedef struct memest_tracker_options {
    size_t struct_size;
    memest_tool tool;
    int32_t iteration;  /**< whose modules, operations or hooks are kept, from
                             0. Before it the tool resets itself at the
                             beginning of every iteration */
    bool keep_modules;  /**< modules of all iterations are kept, until
                             memest_tracker_reset_modules() */
    bool as_memtracker; /**< what PyTorch's own tool would say, and what it
                             does to the program (docs/trackers.md) */
    bool input_inside;  /**< the batch is made while the tool listens */
    double budget;      /**< GiB that a rank may take, of ILP; the part of its
                             memory that a module may keep, of SAC: 0 for no
                             policy */
    uint32_t shards; /**< ranks that parameters and gradients are spread over,
                             of ILP; 0: one */
} memest_tracker_options;

/**
 * A tool that has not run.
 *
 * @param options      NULL: all zero
 * @param tracker_out  owned by the caller
 * @return MEMEST_OK; MEMEST_ERR_CONFIG for no such tool or iteration;
 *         MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_tracker_create(
    const memest_tracker_options *options, memest_tracker **tracker_out,
    memest_error *error) MEMEST_MUST_CHECK;

/** Give back; NULL is allowed. Not from a hook of its own run. */
MEMEST_API void memest_tracker_destroy(memest_tracker *tracker);

/**
 * Run one rank of a job under the tool. What it knew of an earlier run is
 * forgotten, but for external memory, once the rank begins to run: a job or
 * rank that is refused leaves it.
 *
 * @param rank       from 0
 * @param tracker    also on failure it says what it has seen so far. Hooks may
 *                   ask it, reset it and tell it of external memory; they find
 *                   in it what they are told of
 * @param observers  n_observers of them, as for memest_observe(): the user's
 *                   hooks, in ModTracker's order; borrowed for the call
 * @return MEMEST_OK; MEMEST_ERR_STOPPED by a hook; MEMEST_ERR_CONFIG for a
 *         rank or iteration that the job has not, or a job that the tool has
 *         nothing to say of; MEMEST_ERR_UNSUPPORTED where PyTorch's tool
 *         raises; what memest_job_check() returns; MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_track(const memest_job *job, int32_t rank,
                                      memest_tracker *tracker,
                                      const memest_observer *const *observers,
                                      size_t n_observers,
                                      memest_error *error) MEMEST_MUST_CHECK;

/** Where memory is. */
typedef enum memest_place {
    MEMEST_PLACE_GPU, /**< of the rank */
    MEMEST_PLACE_HOST /**< what optimizers keep there */
} memest_place;

/**
 * track_external() of a tensor of the user's own, and track_inputs() of
 * FSDPMemTracker: memory that the job does not have. It counts as Other, or
 * Inputs. What the job has (modules, optimizers, its batch) is tracked without.
 * Before the run: it is there from the beginning; from a hook: from now on, and
 * in later runs from the beginning.
 *
 * @param bytes  on the GPU a block of 512 bytes or a multiple
 * @return MEMEST_OK; MEMEST_ERR_CONFIG for a tool other than the two;
 *         MEMEST_ERR_OVERFLOW
 */
MEMEST_API memest_status memest_tracker_track_external(
    memest_tracker *tracker, memest_place place, uint64_t bytes,
    memest_error *error) MEMEST_MUST_CHECK;

/** Such a tensor is gone. @return MEMEST_OK; MEMEST_ERR_CONFIG if there is not
 *  as much */
MEMEST_API memest_status memest_tracker_release_external(
    memest_tracker *tracker, memest_place place, uint64_t bytes,
    memest_error *error) MEMEST_MUST_CHECK;

/** reset_mod_stats(): forget all modules, such as between iterations. */
MEMEST_API void memest_tracker_reset_modules(memest_tracker *tracker);

/** Labels of the tool's categories ("Activation"), in their order; NULL beyond
 *  the last. Static. Unseen, the last, is memest's own and is not there with
 *  `as_memtracker`. */
MEMEST_API const char *
memest_tracker_category_name(const memest_tracker *tracker, size_t category);

/** Room for the categories of a snapshot. */
#define MEMEST_MAX_TRACKED_CATEGORIES 16

/** What is on a place at an instant. */
typedef struct memest_snapshot {
    size_t struct_size;
    uint64_t total_bytes; /**< 0: PyTorch's snapshot does not have the place */
    size_t n_categories;
    uint64_t category_bytes[MEMEST_MAX_TRACKED_CATEGORIES];
} memest_snapshot;

/** get_tracker_snapshot("current"), and "peak": the most since the beginning
 *  of iteration 0, each place by itself. */
MEMEST_API bool memest_tracker_current(const memest_tracker *tracker,
                                       memest_place place,
                                       memest_snapshot *snapshot_out);
MEMEST_API bool memest_tracker_peak(const memest_tracker *tracker,
                                    memest_place place,
                                    memest_snapshot *snapshot_out);

/** What was there at the named points of the program, from the beginning of
 *  iteration 0 on; NULL beyond the last. */
MEMEST_API const char *memest_tracker_point_name(const memest_tracker *tracker,
                                                 size_t index);
MEMEST_API bool memest_tracker_point(const memest_tracker *tracker,
                                     size_t index, memest_place place,
                                     memest_snapshot *snapshot_out);

/** A module's statistics; MEMEST_BYTES_UNKNOWN where the tool has none. */
typedef struct memest_tracked_module {
    size_t struct_size;
    const char *name;         /**< ModTracker's: "Transformer.layers.0" */
    uint64_t parameter_bytes; /**< with what is below it, as are buffers */
    uint64_t buffer_bytes;
    uint64_t input_bytes; /**< of the last forward */
    uint64_t output_bytes;
    uint64_t gpu_peak_bytes; /**< most in total while its last forward or
                                  backward ran */
    uint64_t host_peak_bytes;
    size_t n_states; /**< that it has been in */
} memest_tracked_module;

/** Modules in the order of their first call. */
MEMEST_API size_t memest_tracker_n_modules(const memest_tracker *tracker);
MEMEST_API bool memest_tracker_module(const memest_tracker *tracker,
                                      size_t index,
                                      memest_tracked_module *module_out);

/** The state @p state of a module ("Pre-Forward", "Peak-Backward"), in the
 *  order in which they were seen; static; NULL for none. And how often it was
 *  in it: a module that runs several times has several calls. */
MEMEST_API const char *memest_tracker_state_name(const memest_tracker *tracker,
                                                 size_t module, size_t state);
MEMEST_API size_t memest_tracker_n_calls(const memest_tracker *tracker,
                                         size_t module, size_t state);

/** What was there when a module was in a state. */
MEMEST_API bool memest_tracker_module_snapshot(const memest_tracker *tracker,
                                               size_t module, size_t state,
                                               size_t call, memest_place place,
                                               memest_snapshot *snapshot_out);

/** ModTracker.parents beside "Global": names of the modules that run now, in
 *  the order in which they became known; NULL beyond the last. For hooks. */
MEMEST_API const char *memest_tracker_parent(const memest_tracker *tracker,
                                             size_t index);

/** What MemoryTracker has seen; borrowed until the next run. NULL for other
 *  tools, before a run and while one is going on. */
MEMEST_API const memest_series *
memest_tracker_series(const memest_tracker *tracker);

/** As what a tool is printed. */
typedef enum memest_track_format {
    MEMEST_TRACK_TEXT, /**< as PyTorch prints it */
    MEMEST_TRACK_JSON, /**< in bytes; not of ModTracker. Of MemoryTracker: what
                            save_stats() saves, in MB */
    MEMEST_TRACK_HTML  /**< of MemoryTracker: a page with its plots */
} memest_track_format;

/** How it is printed. All zero: text, in bytes. */
typedef struct memest_track_style {
    size_t struct_size;
    memest_track_format format;
    const char *units; /**< of text: "B", "KiB", "MiB", "GiB"; NULL: "B" */
    uint32_t depth;    /**< names of a module's path at most; 0: 2 */
    uint32_t top;      /**< operations of MemoryTracker's summary; 0: 20 */
    bool tabulate;     /**< tables in the text */
} memest_track_style;

/**
 * What `memest track` prints.
 *
 * @param style     NULL: all zero
 * @param text_out  ends with a NUL; owned by the caller, for
 *                  memest_text_destroy()
 * @return MEMEST_OK; MEMEST_ERR_CONFIG for a format that the tool has not,
 *         other units, or a tool that has not run; MEMEST_ERR_UNSUPPORTED for a
 *         page that is not built in; MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_tracker_text(
    const memest_tracker *tracker, const memest_track_style *style,
    char **text_out, memest_error *error) MEMEST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_TRACKER_H */
