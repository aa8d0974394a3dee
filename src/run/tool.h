/**
 * @file
 * PyTorch's memory tools on the program of one rank: what `memest track` runs
 * and what the library's memest_tracker is.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_RUN_TOOL_H
#define MEMEST_RUN_TOOL_H

#include "alloc/pool_observer.h"
#include "base/str.h"
#include "report/mem_text.h"
#include "run/job_run.h"
#include "tensor/engine.h"
#include "track/comm_tracker.h"
#include "track/mem_tracker.h"
#include "track/memory_tracker.h"
#include "track/mod_tracker.h"
#include "track/runtime_estimator.h"
#include "track/sac_estimator.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum me_tool_kind {
    ME_TOOL_MEM,     /**< MemTracker */
    ME_TOOL_FSDP2,   /**< FSDPMemTracker */
    ME_TOOL_MOD,     /**< ModTracker */
    ME_TOOL_MEMORY,  /**< the operation-level MemoryTracker */
    ME_TOOL_RUNTIME, /**< RuntimeEstimator */
    ME_TOOL_SAC,     /**< SACEstimator */
    ME_TOOL_ILP,     /**< what to checkpoint selectively: sac_ilp */
    ME_TOOL_COMM     /**< fake_collectives' names and sizes */
} me_tool_kind;

/** Which tool, and how it listens. */
typedef struct me_tool_options {
    me_tool_kind kind;
    bool as_memtracker;   /**< what PyTorch's own tool would say */
    bool is_input_inside; /**< see me_mem_options, as the next one */
    bool keeps_all;
    double budget;   /**< of sac, the part of its memory that a module's policy
                            may keep, below 0: none is asked for; of ilp, GiB */
    uint32_t shards; /**< of ilp: ranks that parameters and gradients are
                            spread over; 0: as 1 */
    int32_t iteration; /**< whose modules, operations or hooks are kept */
    uint64_t external[ME_MEM_DEVICES]; /**< bytes that are there from the
                                            beginning, as blocks take them */
} me_tool_options;

/** A tool and what it knows, also when the engine is gone. All zero but for
 *  its options is one that has not begun. */
typedef struct me_tool {
    me_tool_options options;
    me_engine *engine; /**< while it runs */
    me_mod_tracker *mod;
    me_mem_tracker *mem;       /**< of mem, fsdp2 and ilp */
    me_memory_tracker *memory; /**< of memory, as its allocator */
    me_pool_observer *pool;
    me_comm_tracker *comm;         /**< of comm */
    me_str hooks;                  /**< of mod: a line a hook */
    me_runtime_estimator *runtime; /**< of runtime and ilp */
    me_sac_estimator *sac;         /**< of sac and ilp */
    char card[ME_CARD_TEXT];       /**< by whose roofline */
} me_tool;

/** As what it is printed. */
typedef struct me_tool_format {
    const char *name; /**< "text", "json", "html" */
    me_mem_format mem;
    uint32_t top; /**< operations of a summary */
} me_tool_format;

enum {
    ME_TOOL_DEPTH = 2, /**< names of a module's path, where nobody says */
    ME_TOOL_TOP = 20
};

/** Find a tool by its name. @return ME_OK; ME_ERR_CONFIG with those that are */
me_status me_tool_find(const char *name, me_diag *diag,
                       me_tool_kind *kind_out) ME_MUST_CHECK;

/** Is a tool printed so? @return ME_OK; ME_ERR_CONFIG with what is known */
me_status me_tool_check_format(me_tool_kind kind, const char *format,
                               me_diag *diag) ME_MUST_CHECK;

/** Has the tool something to say of a rank of a finished job? @return ME_OK;
 *  ME_ERR_CONFIG with what would be right */
me_status me_tool_check(const me_tool_options *options, const me_config *config,
                        int32_t rank, me_diag *diag) ME_MUST_CHECK;

/**
 * Hook into the engine, before its program runs.
 *
 * @param t  fresh; for me_tool_fini() on failure as well, after the engine
 * @return ME_OK; ME_ERR_CONFIG (an allocator's setting), ME_ERR_NOMEM
 */
me_status me_tool_begin(me_tool *t, const me_run *run, me_engine *e,
                        me_diag *diag) ME_MUST_CHECK;

/** Append what the tool knows. @return ME_OK, ME_ERR_NOMEM;
 *  ME_ERR_UNSUPPORTED for a page without Vega */
me_status me_tool_append(const me_tool *t, const me_tool_format *format,
                         me_diag *diag, me_str *text) ME_MUST_CHECK;

/** The same for a series alone. */
me_status me_tool_append_series(const me_op_series *series,
                                const me_tool_format *format, me_diag *diag,
                                me_str *text) ME_MUST_CHECK;

/** Give back what it holds; its options stay. */
void me_tool_fini(me_tool *t);

#endif /* MEMEST_RUN_TOOL_H */
