/**
 * @file
 * Be told what a rank does, as it does it: the hooks of modules, allocations
 * and frees, phases, iterations, collectives. A tracker of one's own is a
 * struct and the hooks that it needs.
 *
 * The events of one rank are in the order of its program, and those of
 * allocations are exactly the calls that PyTorch's allocator gets. The whole
 * program is told: set-up, then every iteration, no micro-batch left out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OBSERVER_H
#define MEMEST_OBSERVER_H

#include "memest/error.h"
#include "memest/job.h"
#include "memest/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where the program is. */
typedef struct memest_moment {
    memest_phase phase;
    int32_t iteration;  /**< from 0; -1: set-up */
    int32_t microbatch; /**< from 0; -1: outside of one */
    uint32_t module;    /**< number of the running module; 0: none, or the
                             model itself */
} memest_moment;

/** A module begins or ends. Borrowed for the call, and so are its texts, but
 *  `path`, `name` and `fqn` stay until memest_observe() or memest_track()
 *  returns. */
typedef struct memest_module_event {
    size_t struct_size;
    memest_moment at;
    uint32_t module;            /**< its number, from 1; of one rank; 0: the
                                     model itself, whose name and path are "" */
    const char *name;           /**< its own: "mlp", "3" */
    const char *path;           /**< dotted: "decoder.layers.3.mlp" */
    const char *const *parents; /**< paths of the modules around it, outermost
                                     first, n_parents of them */
    size_t n_parents;
    bool is_backward; /**< within a backward pass: in backward hooks, and in
                            forward hooks where a forward is run again */
    bool is_parent;   /**< plain PyTorch: ModTracker has its name among the
                            parents, those that run */
    const char *fqn;  /**< plain PyTorch: ModTracker's name of it, such as
                           "Transformer.layers.0"; else NULL */
} memest_module_event;

/** A block of the device's memory. Borrowed for the call; `op` and `path` stay
 *  until memest_observe() or memest_track() returns. */
typedef struct memest_block_event {
    size_t struct_size;
    memest_moment at;
    uint32_t block;           /**< unique among live blocks; used again later */
    uint32_t stream;          /**< CUDA stream; 0: the default one */
    uint64_t bytes;           /**< requested */
    memest_category category; /**< what it is for, as far as known */
    memest_category category_before; /**< of a change of it */
    const char *op;   /**< the running operation, as PyTorch names it; or
                           NULL */
    const char *path; /**< of the running module; "": none */
} memest_block_event;

/** Something else happens. Borrowed for the call. */
typedef struct memest_mark_event {
    size_t struct_size;
    memest_moment at;
    const char *name;  /**< of a point or phase; F, B, I or W of an action;
                            NCCL's name of a collective; else NULL */
    const char *group; /**< of a collective: "tensor", "data", …; else NULL */
    int32_t chunk;     /**< of an action: virtual stage of the rank, from 0 */
    int32_t peer;      /**< of a send or receive: place in the group; else -1 */
    uint64_t count;    /**< of a collective: elements, as NCCL counts them */
    const char *dtype; /**< of a collective: "bfloat16"; else NULL */
} memest_mark_event;

/**
 * The hooks; NULL where nobody listens. They must not throw or longjmp through
 * the library, and may call any of its functions on other objects.
 *
 * A hook returns 0 to go on. Anything else stops the run: no hook is called any
 * more, and the function that runs the job fails with MEMEST_ERR_STOPPED and a
 * line that names the observer, the hook, what it returned, and where.
 *
 * A module's forward hooks are called around its forward, and around the
 * recomputation of one. Its backward hooks, in jobs of plain PyTorch, are those
 * of torch.distributed._tools.mod_tracker.ModTracker, once a forward: before
 * the backward of the operation that made its output, when the gradient of that
 * is there; and when the gradient of its input is there, or with the whole
 * backward where the input needs none. They do not nest. Lists of modules have
 * no hooks. In jobs of Megatron-LM backward hooks are called when the backward
 * of its operations begins and when that of others is next, and so more than
 * once where autograd's order leaves a module and comes back. Work on a
 * module's parameters outside of both (set-up, the optimizer) calls neither.
 */
typedef struct memest_observer {
    size_t struct_size;
    void *self; /**< handed to each hook */
    int (*pre_forward)(void *self, const memest_module_event *event);
    int (*post_forward)(void *self, const memest_module_event *event);
    int (*pre_backward)(void *self, const memest_module_event *event);
    int (*post_backward)(void *self, const memest_module_event *event);
    int (*alloc)(void *self, const memest_block_event *event);
    /** The last reference has gone. */
    int (*free_requested)(void *self, const memest_block_event *event);
    /** The allocator has it back: at once, or where another stream still used
     *  the block at the next allocation. */
    int (*free_completed)(void *self, const memest_block_event *event);
    /** A live block turns out to be something else: a temporary that is saved
     *  for the backward, a gradient that reaches its parameter. */
    int (*category_changed)(void *self, const memest_block_event *event);
    int (*iteration_begin)(void *self, const memest_mark_event *event);
    int (*phase_changed)(void *self, const memest_mark_event *event);
    int (*point)(void *self, const memest_mark_event *event);
    int (*collective)(void *self, const memest_mark_event *event);
    int (*action_begin)(void *self, const memest_mark_event *event);
    int (*action_end)(void *self, const memest_mark_event *event);
} memest_observer;

/**
 * Run one rank of a job for observers alone, without a limit of memory. Other
 * ranks are not run, and nobody checks that they agree: memest_estimate() does.
 *
 * @param rank       from 0
 * @param observers  n_observers of them, told one after the other; borrowed
 *                   for the call
 * @return MEMEST_OK; MEMEST_ERR_STOPPED by a hook that did not return 0;
 *         MEMEST_ERR_CONFIG for a rank that the job has not; what
 *         memest_job_check() returns; MEMEST_ERR_OVERFLOW, MEMEST_ERR_NOMEM
 */
MEMEST_API memest_status memest_observe(const memest_job *job, int32_t rank,
                                        const memest_observer *const *observers,
                                        size_t n_observers,
                                        memest_error *error) MEMEST_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_OBSERVER_H */
