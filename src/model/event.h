/**
 * @file
 * The one stream that everything downstream of the engine reads: allocations
 * and frees, modules, phases, collectives and named points, in program order.
 * Allocator, trackers, reports and `--events` are observers of it and know
 * nothing of each other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_MODEL_EVENT_H
#define MEMEST_MODEL_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** X(constant, name): what bytes are for. */
#define ME_CATEGORY_LIST(X)                                                    \
    X(ME_CATEGORY_PARAMETER, "parameter")                                      \
    X(ME_CATEGORY_GRADIENT, "gradient")                                        \
    X(ME_CATEGORY_MAIN_PARAMETER, "main_parameter")                            \
    X(ME_CATEGORY_OPTIMIZER_STATE, "optimizer_state")                          \
    X(ME_CATEGORY_ACTIVATION, "activation")                                    \
    X(ME_CATEGORY_TEMPORARY, "temporary")                                      \
    X(ME_CATEGORY_COMMUNICATION, "communication")                              \
    X(ME_CATEGORY_INPUT, "input")                                              \
    X(ME_CATEGORY_BUFFER, "buffer")                                            \
    X(ME_CATEGORY_OTHER, "other")

/** X(constant, name): which part of a job's life is running. */
#define ME_PHASE_LIST(X)                                                       \
    X(ME_PHASE_SETUP, "setup")                                                 \
    X(ME_PHASE_FORWARD, "forward")                                             \
    X(ME_PHASE_BACKWARD, "backward")                                           \
    X(ME_PHASE_RECOMPUTE, "recompute")                                         \
    X(ME_PHASE_GRADIENT_REDUCTION, "gradient_reduction")                       \
    X(ME_PHASE_OPTIMIZER, "optimizer")                                         \
    X(ME_PHASE_OTHER, "other")                                                 \
    X(ME_PHASE_EVALUATION, "evaluation")

/** X(constant, name): the collectives, named as NCCL names them. */
#define ME_COLLECTIVE_LIST(X)                                                  \
    X(ME_COLLECTIVE_ALL_REDUCE, "AllReduce")                                   \
    X(ME_COLLECTIVE_ALL_GATHER, "AllGather")                                   \
    X(ME_COLLECTIVE_REDUCE_SCATTER, "ReduceScatter")                           \
    X(ME_COLLECTIVE_BROADCAST, "Broadcast")                                    \
    X(ME_COLLECTIVE_REDUCE, "Reduce")                                          \
    X(ME_COLLECTIVE_ALL_TO_ALL, "AllToAll")                                    \
    X(ME_COLLECTIVE_SEND, "Send")                                              \
    X(ME_COLLECTIVE_RECV, "Recv")

/** X(constant, name): the kinds of process groups, Megatron's names: a part of
 * the data-parallel ranks that is one instance of the distributed optimizer,
 * ranks with the same place in theirs, and all ranks of an instance among them;
 * last the two pipeline ranks that hold copies of the same stages, which only
 * schedules of two directions have; both levels of a2a+p2p's context
 * parallelism; and all ranks of a pipeline stage. */
#define ME_GROUP_LIST(X)                                                       \
    X(ME_GROUP_WORLD, "world")                                                 \
    X(ME_GROUP_TENSOR, "tensor")                                               \
    X(ME_GROUP_PIPELINE, "pipeline")                                           \
    X(ME_GROUP_DATA, "data")                                                   \
    X(ME_GROUP_DATA_CONTEXT, "data_context")                                   \
    X(ME_GROUP_CONTEXT, "context")                                             \
    X(ME_GROUP_MODEL, "model")                                                 \
    X(ME_GROUP_EMBEDDING, "embedding")                                         \
    X(ME_GROUP_POSITION_EMBEDDING, "position_embedding")                       \
    X(ME_GROUP_PARTIAL_DATA_CONTEXT, "partial_data_context")                   \
    X(ME_GROUP_INTER_INSTANCE, "inter_instance")                               \
    X(ME_GROUP_OPTIMIZER_INSTANCE, "optimizer_instance")                       \
    X(ME_GROUP_EXPERT, "expert")                                               \
    X(ME_GROUP_EXPERT_TENSOR, "expert_tensor")                                 \
    X(ME_GROUP_EXPERT_TENSOR_EXPERT, "expert_tensor_expert")                   \
    X(ME_GROUP_EXPERT_DATA, "expert_data")                                     \
    X(ME_GROUP_PARTIAL_EXPERT_DATA, "partial_expert_data")                     \
    X(ME_GROUP_EXPERT_MODEL, "expert_model")                                   \
    X(ME_GROUP_TENSOR_CONTEXT, "tensor_context")                               \
    X(ME_GROUP_STAGE_COPIES, "stage_copies")                                   \
    X(ME_GROUP_DATA_SHARD, "data_shard")                                       \
    X(ME_GROUP_DATA_REPLICATE, "data_replicate")                               \
    X(ME_GROUP_CONTEXT_HEADS, "context_heads")                                 \
    X(ME_GROUP_CONTEXT_RING, "context_ring")                                   \
    X(ME_GROUP_TENSOR_DATA_CONTEXT, "tensor_data_context")                     \
    X(ME_GROUP_USER_BUFFERS, "user_buffers")                                   \
    X(ME_GROUP_USER_BUFFERS_WORLD, "user_buffers_world")

#define ME_EVENT_ENUM(constant, name) constant,

typedef enum me_category {
    ME_CATEGORY_LIST(ME_EVENT_ENUM) ME_CATEGORY_COUNT
} me_category;

typedef enum me_phase {
    ME_PHASE_LIST(ME_EVENT_ENUM) ME_PHASE_COUNT
} me_phase;

typedef enum me_collective {
    ME_COLLECTIVE_LIST(ME_EVENT_ENUM) ME_COLLECTIVE_COUNT
} me_collective;

typedef enum me_group_kind {
    ME_GROUP_LIST(ME_EVENT_ENUM) ME_GROUP_COUNT
} me_group_kind;

#undef ME_EVENT_ENUM

typedef enum me_event_kind {
    ME_EVENT_ALLOC,          /**< a block is asked for */
    ME_EVENT_FREE_REQUESTED, /**< its last reference has gone */
    ME_EVENT_FREE_COMPLETED, /**< the allocator has it back; comes at once
                                  after the request unless another stream
                                  still uses the block, then at the start of
                                  the next allocation */
    ME_EVENT_RECATEGORIZE,   /**< a live block is now known to be something
                                  else (a temporary that was saved) */
    ME_EVENT_MODULE_ENTER,   /**< forward, backward or recompute of a module */
    ME_EVENT_MODULE_LEAVE,
    ME_EVENT_ACTION_BEGIN, /**< of a pipeline's order: `name` of `chunk` */
    ME_EVENT_ACTION_END,
    ME_EVENT_PHASE,       /**< the phase has changed to `phase` */
    ME_EVENT_ITERATION,   /**< iteration `iteration` begins */
    ME_EVENT_COLLECTIVE,  /**< a collective or a send or receive */
    ME_EVENT_EMPTY_CACHE, /**< the program waits for its GPU, and what the
                               allocator keeps for later goes back */
    ME_EVENT_POINT        /**< a named moment: peaks are read and reset */
} me_event_kind;

enum {
    ME_NO_MODULE = 0,     /**< the root of the module tree: no module */
    ME_NO_MICROBATCH = -1 /**< outside of any micro-batch */
};

/**
 * One event. What a kind does not use is zero. Pointers are borrowed and live
 * as long as the engine that emits the event; names are static strings.
 */
typedef struct me_event {
    me_event_kind kind;
    uint8_t category;     /**< me_category; alloc, free, recategorize */
    uint8_t old_category; /**< me_category before; recategorize */
    uint8_t phase;        /**< me_phase that is running */
    uint8_t stream;       /**< CUDA stream of the block; 0 is the default one */
    uint8_t collective;   /**< me_collective; collective */
    uint8_t group;        /**< me_group_kind; collective */
    uint8_t dtype;        /**< me_dtype of the elements; collective */
    uint8_t mempool;      /**< private pool that the block is taken from, as of
                               CUDA graphs; 0: the default one; alloc */
    bool is_lone;         /**< outside of a batch of sends and receives, which
                               PyTorch does on a communicator of the pair */
    bool is_scratch;      /**< a kernel's own memory or a library's workspace,
                               no tensor of the program; alloc */
    bool is_late;         /**< another stream uses the block as well; free */
    bool is_drawn;        /**< filled with random numbers as it is made, for
                               which no arithmetic kernel runs; alloc */
    bool is_shard;      /**< of a rank's part of a parameter, which is what its
                               module is of; alloc */
    int32_t iteration;  /**< training iteration, -1 during set-up */
    int32_t microbatch; /**< ME_NO_MICROBATCH outside of one */

    union {
        int32_t peer;  /**< the other side, by its place in the group; send,
                            receive */
        int32_t chunk; /**< of the rank, from 0; action */
    };

    uint32_t module;  /**< index into the module tree */
    uint32_t block;   /**< id of the block: unique among live blocks, used
                              again after the block's FREE_COMPLETED */
    uint64_t bytes;   /**< requested bytes; alloc, free, recategorize */
    uint64_t count;   /**< elements; collective */
    const char *op;   /**< the operation that runs, as PyTorch names it */
    const char *name; /**< the point's name; point. F, B, I or W, as
                               parallel/schedule.h has them; action */
} me_event;

/** Does a span of time end with it, of which observers read peaks? */
static inline bool me_event_ends_span(const me_event *event)
{
    return event->kind == ME_EVENT_PHASE || event->kind == ME_EVENT_POINT ||
           event->kind == ME_EVENT_ACTION_BEGIN ||
           event->kind == ME_EVENT_ACTION_END;
}

/** Requested bytes at the end of one span of an action (a change of phase, a
 * point, its own end), and their peak in that span; both relative to the
 * action's beginning. */
typedef struct me_repeat_mark {
    int64_t requested;
    int64_t peak;
    bool is_early; /**< it ends before the action's first allocation, so pending
                      frees still count */
} me_repeat_mark;

/** An action that is repeated from a script: its events come with other blocks
 * (tensor/script.h). */
typedef struct me_repeated {
    uint32_t id; /**< small; equal of a rank's actions that are the same */
    const me_repeat_mark *marks; /**< borrowed while it is told */
    uint32_t n_marks;
    uint64_t pending_bytes; /**< of pending frees, which its first allocation
                               completes; marks count from what is left */
    uint64_t entered_bytes; /**< of these, still pending when it first enters a
                               module */
    bool has_actions; /**< it is a round of several actions, which begin and end
                         within it */
    bool is_usual; /**< it leaves exactly the modules that it enters, and frees
                      what the recorded one freed */
} me_repeated;

/** What happens to a block in a repeated action. */
typedef enum me_block_change {
    ME_BLOCK_ALLOC,
    ME_BLOCK_FREE, /**< asked for and completed at once */
    ME_BLOCK_FREE_REQUESTED,
    ME_BLOCK_FREE_COMPLETED
} me_block_change;

/** One change of a block; small, for an action has thousands. */
typedef struct me_block_op {
    uint64_t bytes;    /**< requested; alloc */
    uint32_t slot;     /**< of the block in me_block_ops.ids */
    uint8_t change;    /**< me_block_change */
    uint8_t stream;    /**< alloc */
    uint8_t mempool;   /**< alloc */
    bool is_late : 1;  /**< another stream uses the block; free */
    bool is_input : 1; /**< it is of ME_CATEGORY_INPUT; alloc */
} me_block_op;

/** What happens to blocks in a stretch of such an action, in order. */
typedef struct me_block_ops {
    const me_block_op *ops;
    uint32_t n_ops;
    const uint32_t *ids; /**< slot -> id of its block, as in events */
    /** The event of an alloc, for whoever has to say where it failed. */
    void (*describe)(const struct me_block_ops *blocks, uint32_t op,
                     me_event *event_out);
    const void *self; /**< for `describe` */
    uint32_t first;   /**< likewise */
} me_block_ops;

/** The bit of a kind of event in me_observer.kinds. */
#define ME_EVENT_BIT(kind) (UINT32_C(1) << (unsigned)(kind))

/** Beside the bits of kinds in what me_observer.on_repeated returns. */
#define ME_REPEATED_PASSING (UINT32_C(1) << 31)

/** Calls of one direction, and their elements together. */
typedef struct me_exchange_sum {
    uint32_t calls;
    uint64_t count;
} me_exchange_sum;

/** Sends and receives of a group that complete together, in place of an event
 *  each. */
typedef struct me_exchange_event {
    uint8_t group; /**< me_group_kind */
    uint8_t dtype; /**< me_dtype of the elements */
    me_exchange_sum sent;
    me_exchange_sum received;
    int32_t iteration; /**< as me_event's */
} me_exchange_event;

/** Reads events. `on_event` must not keep the pointer. */
typedef struct me_observer {
    void (*on_event)(void *self, const me_event *event);
    void *self;
    uint32_t kinds; /**< bits of the kinds that it is told of; 0: all */
    /**
     * Optional: an action that the observer knows is about to be repeated. If
     * any observer lacks this function, every action is run. One that has it
     * reads the state of others only at changes of phase, at points, and where
     * the action begins and ends.
     *
     * @return bits of the kinds that it must be told of this time, with
     *         ME_REPEATED_PASSING unless it can do without the blocks that come
     *         and go within the action
     */
    uint32_t (*on_repeated)(void *self, const me_repeated *action);
    /** Optional: the repeated action has been told. */
    void (*on_repeated_end)(void *self);
    /**
     * Optional: takes the changes of blocks of a stretch of a repeated action
     * in one call, in place of events. A stretch has no change of phase and no
     * point.
     */
    void (*on_blocks)(void *self, const me_block_ops *blocks);
    /**
     * Optional: takes the sends and receives of an exchange in one call, of a
     * group in which it was told of one with all members, call by call.
     */
    void (*on_exchange)(void *self, const me_exchange_event *exchange);
    /** It skips echoes: need not be told of a block that is allocated and freed
     * exactly as the one just before, since that would not change it. */
    bool skips_echoes;
} me_observer;

/** Lower-case name as reports and JSON write it; static. */
const char *me_category_name(me_category category);
const char *me_phase_name(me_phase phase);
const char *me_collective_name(me_collective collective);
const char *me_group_kind_name(me_group_kind group);

/** Is a phase, as records have it, that of an evaluation? NULL is none. */
bool me_phase_is_evaluation(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* MEMEST_MODEL_EVENT_H */
