/**
 * @file
 * PyTorch's MemTracker and FSDPMemTracker (torch/distributed/_tools, 2.11):
 * bytes by category now and at their peak, and snapshots of every module before
 * and after its forward and backward and at the most that was there during them.
 *
 * By default it counts what the device really has: blocks that PyTorch's own
 * tools do not see (workspaces of libraries, memory that a kernel takes and
 * gives back) are in a row of their own, and every allocation can make a peak.
 * With `as_memtracker` it says what PyTorch's tool says.
 *
 * Two devices: the rank's GPU, and the host with what optimizers keep there.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRACK_MEM_TRACKER_H
#define MEMEST_TRACK_MEM_TRACKER_H

#include "track/mod_tracker.h"

#include <stdbool.h>
#include <stdint.h>

/** X(constant, label) of MemTracker's categories, in its order. */
#define ME_MEM_CATEGORY_LIST(X)                                                \
    X(ME_MEM_PARAMETER, "Parameter")                                           \
    X(ME_MEM_BUFFER, "Buffer")                                                 \
    X(ME_MEM_GRADIENT, "Gradient")                                             \
    X(ME_MEM_ACTIVATION, "Activation")                                         \
    X(ME_MEM_TEMP, "Temp")                                                     \
    X(ME_MEM_OPTSTATE, "Optstate")                                             \
    X(ME_MEM_OTHER, "Other")                                                   \
    X(ME_MEM_UNSEEN, "Unseen")

/** X(constant, label) of FSDPMemTracker's. */
#define ME_FSDP_MEM_CATEGORY_LIST(X)                                           \
    X(ME_FSDP_MEM_SHARDED_PARAM, "Sharded Param")                              \
    X(ME_FSDP_MEM_UNSHARDED_PARAM, "Unsharded Param")                          \
    X(ME_FSDP_MEM_BUFFER, "Buffer")                                            \
    X(ME_FSDP_MEM_SHARDED_GRAD, "Sharded Grad")                                \
    X(ME_FSDP_MEM_UNSHARDED_GRAD, "Unsharded Grad")                            \
    X(ME_FSDP_MEM_ACTIVATION, "Activation")                                    \
    X(ME_FSDP_MEM_TEMP, "Temp")                                                \
    X(ME_FSDP_MEM_ALL_GATHER, "All Gather")                                    \
    X(ME_FSDP_MEM_REDUCE_SCATTER, "Reduce Scatter")                            \
    X(ME_FSDP_MEM_OPTSTATE, "OptState")                                        \
    X(ME_FSDP_MEM_INPUTS, "Inputs")                                            \
    X(ME_FSDP_MEM_UNSEEN, "Unseen")

/** X(constant, label) of the states of a module in MemTracker, in its order. */
#define ME_MEM_STATE_LIST(X)                                                   \
    X(ME_MEM_PRE_FW, "Pre-Forward")                                            \
    X(ME_MEM_POST_FW, "Post-Forward")                                          \
    X(ME_MEM_PEAK_FW, "Peak-Forward")                                          \
    X(ME_MEM_PRE_BW, "Pre-Backward")                                           \
    X(ME_MEM_PRE_FW_AC, "Pre-Forward-AC")                                      \
    X(ME_MEM_POST_FW_AC, "Post-Forward-AC")                                    \
    X(ME_MEM_POST_BW, "Post-Backward")                                         \
    X(ME_MEM_PEAK_BW, "Peak-Backward")

/** X(constant, label) of its states in FSDPMemTracker. The first eight are in
 *  the order of me_shard_moment. */
#define ME_FSDP_MEM_STATE_LIST(X)                                              \
    X(ME_FSDP_MEM_BEF_PRE_FW, "Before Pre-Forward")                            \
    X(ME_FSDP_MEM_AFT_PRE_FW, "After Pre-Forward")                             \
    X(ME_FSDP_MEM_BEF_POST_FW, "Before Post-Forward")                          \
    X(ME_FSDP_MEM_AFT_POST_FW, "After Post-Forward")                           \
    X(ME_FSDP_MEM_BEF_PRE_BW, "Before Pre-Backward")                           \
    X(ME_FSDP_MEM_AFT_PRE_BW, "After Pre-Backward")                            \
    X(ME_FSDP_MEM_BEF_POST_BW, "Before Post-Backward")                         \
    X(ME_FSDP_MEM_AFT_POST_BW, "After Post-Backward")                          \
    X(ME_FSDP_MEM_PRE_FW_AC, "Pre-Forward AC")                                 \
    X(ME_FSDP_MEM_POST_FW_AC, "Post-Forward AC")                               \
    X(ME_FSDP_MEM_PEAK_FW, "Peak Forward")                                     \
    X(ME_FSDP_MEM_PEAK_BW, "Peak Backward")

#define ME_MEM_ENUM(constant, label) constant,

typedef enum me_mem_category {
    ME_MEM_CATEGORY_LIST(ME_MEM_ENUM) ME_MEM_CATEGORIES
} me_mem_category;

typedef enum me_fsdp_mem_category {
    ME_FSDP_MEM_CATEGORY_LIST(ME_MEM_ENUM) ME_FSDP_MEM_CATEGORIES
} me_fsdp_mem_category;

typedef enum me_mem_state {
    ME_MEM_STATE_LIST(ME_MEM_ENUM) ME_MEM_STATES
} me_mem_state;

typedef enum me_fsdp_mem_state {
    ME_FSDP_MEM_STATE_LIST(ME_MEM_ENUM) ME_FSDP_MEM_STATES
} me_fsdp_mem_state;

#undef ME_MEM_ENUM

enum {
    ME_MEM_MAX_CATEGORIES = 12,
    ME_MEM_MAX_STATES = 12
};

/** Devices of a snapshot. */
enum {
    ME_MEM_CUDA,
    ME_MEM_CPU,
    ME_MEM_DEVICES
};

/** Labels of one of the two tools; the last category is memest's own. */
typedef struct me_mem_labels {
    const char *const *categories;
    uint32_t n_categories;
    const char *const *states;
    uint32_t n_states;
} me_mem_labels;

/** Bytes of one device. */
typedef struct me_mem_device {
    uint64_t by_category[ME_MEM_MAX_CATEGORIES];
    uint64_t total;
} me_mem_device;

/** Both devices; one whose total is 0 is not there. */
typedef struct me_mem_snapshot {
    me_mem_device device[ME_MEM_DEVICES];
} me_mem_snapshot;

/** Snapshots of one state of a module, one a call. */
typedef struct me_mem_calls {
    me_mem_snapshot *snapshots;
    uint32_t count;
    uint32_t capacity;
} me_mem_calls;

/** What is known of a module since the last iteration began. */
typedef struct me_mem_module {
    me_module_id module;
    const char *fqn; /**< borrowed from the ModTracker */
    uint64_t parameter_bytes;
    uint64_t buffer_bytes;
    uint64_t input_bytes;
    uint64_t output_bytes;
    uint64_t local_peak[ME_MEM_DEVICES];
    uint8_t order[ME_MEM_MAX_STATES]; /**< states as first seen */
    uint32_t n_order;
    me_mem_calls states[ME_MEM_MAX_STATES];
} me_mem_module;

/** A named moment of the program (model/event.h) and what was there then. */
typedef struct me_mem_point {
    char *name; /**< owned: the tracker outlives the engine */
    me_mem_snapshot snapshot;
} me_mem_point;

typedef struct me_mem_options {
    bool is_fsdp;         /**< FSDPMemTracker */
    bool as_memtracker;   /**< what PyTorch's tool would say */
    bool is_input_inside; /**< the input is made while the tool listens, and
                                is an activation */
    int32_t iteration;    /**< whose modules are kept; those before it are
                                reset at its beginning (reset_mod_stats) */
    bool keeps_all;       /**< modules of every iteration are kept, until
                                me_mem_tracker_reset_modules() */
} me_mem_options;

typedef struct me_mem_tracker me_mem_tracker;

/**
 * A tracker on the program of @p e, before it runs. It listens from the
 * beginning of iteration 0; what is there by then it knows.
 *
 * @param mod  of the same engine; borrowed
 * @return owned by the caller; NULL without memory
 */
me_mem_tracker *me_mem_tracker_create(me_engine *e, me_mod_tracker *mod,
                                      const me_mem_options *options);

/** Give back; NULL is allowed. */
void me_mem_tracker_destroy(me_mem_tracker *t);

/** Of the tool that it is; of either tool. Static. */
const me_mem_labels *me_mem_tracker_labels(const me_mem_tracker *t);
const me_mem_labels *me_mem_labels_of(bool is_fsdp);

/** What is there now, and each device's peak; borrowed. */
const me_mem_snapshot *me_mem_tracker_current(const me_mem_tracker *t);
const me_mem_snapshot *me_mem_tracker_peak(const me_mem_tracker *t);

/** Modules of the asked iteration in the order of their first call; borrowed. */
const me_mem_module *me_mem_tracker_modules(const me_mem_tracker *t,
                                            uint32_t *count_out);

/** Points from the beginning of iteration 0 on; borrowed. */
const me_mem_point *me_mem_tracker_points(const me_mem_tracker *t,
                                          uint32_t *count_out);

/** Forget the modules and what was seen of them: reset_mod_stats(). */
void me_mem_tracker_reset_modules(me_mem_tracker *t);

/** What a tensor of the user's own takes of a device, ME_MEM_CUDA or
 *  ME_MEM_CPU: blocks of the first are rounded up. */
uint64_t me_mem_external_bytes(int device, uint64_t bytes);

/** Memory that the program does not have and the user's own code takes: what
 *  track_external() makes of a tensor (Other), in FSDPMemTracker track_inputs()
 *  (Inputs). @param bytes  as me_mem_external_bytes() has them */
void me_mem_tracker_add_external(me_mem_tracker *t, int device, uint64_t bytes);

/** As much of it is gone again. */
void me_mem_tracker_drop_external(me_mem_tracker *t, int device,
                                  uint64_t bytes);

/** Is a category shown: all of PyTorch's, and memest's own unless the tool says
 *  what PyTorch's would. */
uint32_t me_mem_tracker_shown(const me_mem_tracker *t);

#endif /* MEMEST_TRACK_MEM_TRACKER_H */
