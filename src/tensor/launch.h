/**
 * @file
 * What the host of a simulated rank launches, in program order: kernels by
 * class, collectives, transfers, its own work, and where it or the card waits.
 * Predicted times are made of it. Nobody has to listen: then a launch is the
 * count of its FLOPs and bytes and nothing else.
 *
 * Launches are no events: they say what takes time and not what takes memory,
 * and an action that is repeated from a script (script.h) launches nothing but
 * says which one it repeats.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_LAUNCH_H
#define MEMEST_TENSOR_LAUNCH_H

#include "tensor/engine.h"

/** X(constant, name): classes of kernels. Those of one class have one rate on
 *  a card and one cost on the host. Products are called as their results are
 *  in events. */
#define ME_KERNEL_LIST(X)                                                      \
    X(ME_KERNEL_LINEAR, "linear")                                              \
    X(ME_KERNEL_LINEAR_DGRAD, "linear.dgrad")                                  \
    X(ME_KERNEL_LINEAR_WGRAD, "linear.wgrad")                                  \
    X(ME_KERNEL_ROUTER, "router")                                              \
    X(ME_KERNEL_ROUTER_DGRAD, "router.dgrad")                                  \
    X(ME_KERNEL_ROUTER_WGRAD, "router.wgrad")                                  \
    X(ME_KERNEL_BMM, "bmm")                                                    \
    X(ME_KERNEL_FLASH, "flash_fwd")                                            \
    X(ME_KERNEL_FLASH_BACKWARD, "flash_bwd")                                   \
    X(ME_KERNEL_FUSED_ATTENTION, "fused_attn_fwd")                             \
    X(ME_KERNEL_FUSED_ATTENTION_BACKWARD, "fused_attn_bwd")                    \
    X(ME_KERNEL_COPY, "copy")                                                  \
    X(ME_KERNEL_STRIDED, "strided_copy")                                       \
    X(ME_KERNEL_ELEMENTWISE, "elementwise")                                    \
    X(ME_KERNEL_CAST, "cast")                                                  \
    X(ME_KERNEL_QUANTIZE, "quantize")                                          \
    X(ME_KERNEL_ACCUMULATE, "accumulate")                                      \
    X(ME_KERNEL_SILU, "silu")                                                  \
    X(ME_KERNEL_GELU, "gelu")                                                  \
    X(ME_KERNEL_DROPOUT, "dropout")                                            \
    X(ME_KERNEL_SOFTMAX, "softmax")                                            \
    X(ME_KERNEL_MASKED_FILL, "masked_fill")                                    \
    X(ME_KERNEL_NORM, "norm")                                                  \
    X(ME_KERNEL_REDUCE, "reduce")                                              \
    X(ME_KERNEL_EMBEDDING, "embedding")                                        \
    X(ME_KERNEL_INDEX, "index")                                                \
    X(ME_KERNEL_COMPILED, "compiled")                                          \
    X(ME_KERNEL_OPTIMIZER, "optimizer")                                        \
    X(ME_KERNEL_ADAMW, "adamw")

/** X(constant, name): what the host does beside launching kernels. */
#define ME_HOST_LIST(X)                                                        \
    X(ME_HOST_MICROBATCH, "micro-batch")                                       \
    X(ME_HOST_LOADER, "loader")                                                \
    X(ME_HOST_EMBEDDING, "embedding")                                          \
    X(ME_HOST_ATTENTION, "attention")                                          \
    X(ME_HOST_ROTARY, "rotary")                                                \
    X(ME_HOST_ACTIVATION, "activation")                                        \
    X(ME_HOST_RESIDUAL, "residual")                                            \
    X(ME_HOST_CHECKPOINT, "checkpoint")                                        \
    X(ME_HOST_HEAD, "head")                                                    \
    X(ME_HOST_LOSS, "loss")                                                    \
    X(ME_HOST_STEP, "step")                                                    \
    X(ME_HOST_PARAMETER, "parameter")                                          \
    X(ME_HOST_BACKWARD, "backward")                                            \
    X(ME_HOST_ACTION, "action")                                                \
    X(ME_HOST_INPUT_GROUP, "input_group")                                      \
    X(ME_HOST_WEIGHT_GROUP, "weight_group")                                    \
    X(ME_HOST_DDP, "ddp")                                                      \
    X(ME_HOST_FSDP, "fsdp")                                                    \
    X(ME_HOST_ROUTER, "router")                                                \
    X(ME_HOST_AUX_LOSS, "aux_loss")                                            \
    X(ME_HOST_ALL_GATHER_DISPATCHER, "all_gather_dispatcher")                  \
    X(ME_HOST_ALL_TO_ALL_DISPATCHER, "all_to_all_dispatcher")                  \
    X(ME_HOST_EXPERT_RANKS, "expert_ranks")                                    \
    X(ME_HOST_EXPERTS, "experts")                                              \
    X(ME_HOST_EXPERT, "expert")

#define ME_LAUNCH_ENUM(constant, name) constant,

typedef enum me_kernel_class {
    ME_KERNEL_LIST(ME_LAUNCH_ENUM) ME_KERNEL_COUNT
} me_kernel_class;

typedef enum me_host_work {
    ME_HOST_LIST(ME_LAUNCH_ENUM) ME_HOST_COUNT
} me_host_work;

#undef ME_LAUNCH_ENUM

typedef enum me_launch_kind {
    ME_LAUNCH_KERNEL,
    ME_LAUNCH_COLLECTIVE,   /**< on the communication stream, which waits for
                                 what was launched before */
    ME_LAUNCH_STREAM_WAITS, /**< kernels from now on wait for collectives */
    ME_LAUNCH_HOST,         /**< the host works */
    ME_LAUNCH_HOST_WAITS,   /**< the host waits for the card: `.item()` */
    ME_LAUNCH_EXCHANGE,     /**< sends and receives between stages */
    ME_LAUNCH_ACTION_BEGIN, /**< a forward or backward of a micro-batch */
    ME_LAUNCH_ACTION_END,
    ME_LAUNCH_ACTION_REPEATED, /**< the last action of this kind and chunk is
                                  repeated */
    ME_LAUNCH_OPTIMIZER /**< the rest of the iteration is the optimizer's */
} me_launch_kind;

/** Bits of me_launch.transfers. */
enum {
    ME_TRANSFER_TO_NEXT = 1,
    ME_TRANSFER_TO_PREVIOUS = 2,
    ME_TRANSFER_FROM_PREVIOUS = 4,
    ME_TRANSFER_FROM_NEXT = 8
};

/** One launch; what a kind does not use is zero. */
typedef struct me_launch {
    me_launch_kind kind;
    uint8_t kernel;     /**< me_kernel_class; kernel */
    uint8_t dtype;      /**< me_dtype of a product's operands, FP8 as uint8;
                             kernel */
    uint8_t host;       /**< me_host_work; host */
    uint8_t collective; /**< me_collective; collective */
    uint8_t group;      /**< me_group_kind; collective */
    uint8_t phase;      /**< me_phase that runs */
    uint8_t transfers;  /**< bits; exchange */
    bool is_async; /**< collective: kernels do not wait for it unless a launch
                      says so; exchange: its transfers are not batched */
    bool is_block_scaled; /**< an FP8 product with a scale for each block of its
                               operands; kernel */
    bool is_ahead;    /**< it does not wait for earlier kernels; collective */
    bool is_queued;   /**< those of a rank run one after the other and the host
                         waits for none; unless it is asynchronous, kernels wait
                         for it at once; exchange */
    bool is_backward; /**< which action it is; action */
    bool is_input;    /**< a backward of the input alone; action */
    bool is_weights;  /**< a backward of the weights alone; action */
    int32_t chunk; /**< action: its chunk; asynchronous exchange: the chunk that
                      receives, or -1, with the micro-batch, where the next
                      action does, whichever it is */
    int32_t microbatch; /**< as chunk */
    int32_t next;       /**< pipeline rank that outputs go to and their
                             gradients come from; exchange */
    int32_t previous;   /**< the other way round; exchange */
    uint64_t flops;     /**< kernel */
    uint64_t bytes;     /**< moved by a kernel; the whole buffer of a
                             collective; one transfer of an exchange */
    uint64_t batch;     /**< products of (m, k) and (k, n), or heads of
                             attention over (m, k) queries; kernel */
    uint64_t m, n, k;
} me_launch;

/** Hears the launches of one iteration. */
typedef struct me_launch_listener {
    void (*on_launch)(void *self, const me_launch *launch);
    void *self;
    int32_t iteration;
} me_launch_listener;

/** Have @p listener told from now on; what it points to is borrowed. */
void me_engine_listen(me_engine *e, me_launch_listener listener);

/** The listener hears nothing, until it is told otherwise. */
void me_launch_mute(me_engine *e, bool is_mute);

/** Tell the listener, if there is one; fills in the phase. */
void me_launch_tell(me_engine *e, me_launch launch);

/** A kernel that memory bounds; adds FLOPs and bytes to the running phase. */
void me_launch_kernel(me_engine *e, me_kernel_class kernel, uint64_t flops,
                      uint64_t bytes);

/** A library may launch another kernel than is known of it, with another workspace.
 *  @param bytes  that the allocator may hold more or less by it; 0: none */
void me_launch_doubt(me_engine *e, uint64_t bytes);

/** The most bytes of those so far: a workspace is gone before the next. Local. */
uint64_t me_launch_doubt_bytes(const me_engine *e);

/** Operands of a product. */
typedef enum me_operands {
    ME_OPERANDS_AS_RESULT,
    ME_OPERANDS_FP8,       /**< a scale a tensor */
    ME_OPERANDS_FP8_BLOCKS /**< a scale a block */
} me_operands;

/** As me_launch_product(), of one with such operands and a result of @p dtype. */
void me_launch_product_of(me_engine *e, me_kernel_class kernel,
                          me_operands operands, me_dtype dtype,
                          const uint64_t mnk[3]);

/** @p batch products of (m, k) and (k, n) into (m, n). */
void me_launch_product(me_engine *e, me_kernel_class kernel, me_dtype dtype,
                       uint64_t batch, const uint64_t mnk[3]);

/** Attention of @p heads_rows_size[0] heads, samples times heads of each, over
 *  that many rows of queries of that size. */
void me_launch_attention(me_engine *e, me_kernel_class kernel, me_dtype dtype,
                         uint64_t flops, const uint64_t heads_rows_size[3]);

/** Work of the host's own. */
void me_launch_host(me_engine *e, me_host_work work);

/** The host waits for all that it has launched. */
void me_launch_host_waits(me_engine *e);

/** Kernels wait for the collectives so far. */
void me_launch_stream_waits(me_engine *e);

/** As reports write it; static. */
const char *me_kernel_class_name(me_kernel_class kernel);

#endif /* MEMEST_TENSOR_LAUNCH_H */
