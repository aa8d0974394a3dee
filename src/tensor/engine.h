/**
 * @file
 * The engine: runs one rank's program on tensors without data. It knows when
 * each storage is born and when its last reference goes, and tells observers.
 *
 * How model code looks: a function of the model stands for a Python function
 * and opens a frame with me_enter(). Tensors that it makes are the frame's
 * and die with me_leave(), in the order they were made, unless returned or
 * held by somebody else (the tape, a module). me_drop() is Python's `del`,
 * or the end of an expression for a temporary. No reference count is touched
 * by hand in model code.
 *
 * Errors stick: after the first failure operations return an empty tensor and
 * do nothing, and the driver looks at me_engine_status() once.
 *
 * One engine belongs to one simulated rank. Local, not thread-safe.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_ENGINE_H
#define MEMEST_TENSOR_ENGINE_H

#include "base/status.h"
#include "model/dtype.h"
#include "model/event.h"
#include "model/host_memory.h"
#include "tensor/module.h"
#include "tensor/shape.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct me_engine me_engine;
typedef struct me_tensor me_tensor;
typedef struct me_node me_node;
typedef struct me_kind me_kind;

/** A block of simulated device memory; views of it share it. */
typedef struct me_storage {
    uint64_t bytes; /**< requested */
    uint32_t refs;
    uint32_t block;   /**< id in events */
    uint32_t serial;  /**< storages of the engine made before it: unique, while
                         ids of blocks are used again */
    uint8_t category; /**< me_category */
    uint8_t stream;   /**< CUDA stream that it was allocated on */
    uint8_t mempool;  /**< private pool that it was taken from, or 0 */
    bool is_late;     /**< another stream uses it: freed late */
    bool is_scratch;  /**< see me_event */
    uint8_t n_attributes; /**< tensors of it that modules keep, see
                               me_attribute_set() */
    bool
        is_handed; /**< of an action's input or its gradient, which the action's
                         caller holds, and graphs that attributes hold */
    uint32_t module;  /**< that allocated it */
    uint32_t version; /**< how often it was changed in place */
    const char *op;   /**< of the allocation, static */
    struct me_storage *next_free;
    bool is_empty;           /**< its block is gone, see me_storage_free() */
    struct me_storage *data; /**< then: whose block it shares; owned, or NULL */
    struct me_storage *awaited; /**< of a collective's output that nobody has
                                     used yet: its input, owned; or NULL */
} me_storage;

/** A view of a storage, with what autograd knows of it. */
struct me_tensor {
    me_storage *storage; /**< NULL: nothing on the device */
    uint32_t refs;
    uint8_t dtype;     /**< me_dtype */
    uint8_t output_nr; /**< which output of grad_fn it is */
    bool requires_grad;
    bool is_view;         /**< PyTorch's `_base is not None` */
    bool is_packed;       /**< stands for what hooks have, see saved_hooks.h */
    bool is_inner;        /**< no leaf in PyTorch, though nothing here made
                                it: what a checkpoint that runs again unpacks */
    bool is_made_later;   /**< of a leaf: nobody is told of the gradient that a
                                backward collects, see me_hand_over_grad() */
    uint8_t n_attributes; /**< of its references, those of modules that keep
                               it, see me_attribute_set() */
    const me_kind *kind;  /**< NULL: a plain tensor; see kind.h */
    me_node *grad_fn;     /**< owned; NULL for a leaf */
    me_node *accumulator; /**< borrowed: the leaf's AccumulateGrad, if alive */
    me_tensor *grad;      /**< owned; of a leaf */
    struct me_parameter *parameter; /**< borrowed; NULL if it is none */
    uint32_t version; /**< of what is saved: its storage's at that time */
    me_shape shape;   /**< from here on not cleared when made */
    uint64_t strides[ME_MAX_DIMS];
};

/** FLOPs done and bytes moved, as the operations' rows say. */
typedef struct me_work {
    uint64_t flops;
    uint64_t bytes;
} me_work;

/** What variables tell Transformer Engine's kernels; none of them: all zero. */
typedef struct me_te_settings {
    uint32_t forward_norm_margin; /**< SMs that norms leave to others */
    uint32_t backward_norm_margin;
    uint32_t inference_norm_margin; /**< forward under torch.no_grad() */
    bool is_deterministic;          /**< attention never adds in any order */
    bool has_torch_softmax; /**< unfused attention has no kernel of its own */
    bool is_op_by_op;       /**< nothing of its own is compiled */
    bool batches_exchanges; /**< context ranks send and receive at once */
    bool has_cudnn_norm_forward; /**< norms are cuDNN's */
    bool has_cudnn_norm_backward;
} me_te_settings;

/** What the kernels of the simulated card look like. */
typedef struct me_card {
    uint32_t compute_capability; /**< 90: 9.0 */
    uint32_t multiprocessors;    /**< SMs */
    uint32_t threads_per_multiprocessor;
    uint64_t cublas_workspace_bytes; /**< PyTorch's choice for the card */
    uint64_t te_workspace_bytes;     /**< Transformer Engine's */
    uint64_t l2_cache_bytes;
    bool has_any_order_fp8; /**< products of FP8 take operands of any order
                                 (nvte_is_non_tn_fp8_gemm_supported()) */
    bool has_lone_pairs;    /**< rings of two context ranks send and receive one
                                 by one, as longer ones do */
    me_te_settings te;
} me_card;

/** What is known of a compiled kernel: how often it has been compiled, and the
 *  strides of its input the first time. */
typedef struct me_compiled {
    uint32_t versions;
    uint64_t strides[ME_MAX_DIMS];
} me_compiled;

enum {
    ME_MAX_OBSERVERS = 24,
    ME_MAX_COMPILED = 32
};

/** CUDA streams: the default one; the one that Megatron-LM wraps its models on
 *  and that DDP's buffers are of; FSDP's for gradients, for parameters, and for
 *  the all-reduce of gradients over copies of the shards; the second one of
 *  Transformer Engine's attention with context parallelism; that of shared
 *  experts; DeepEP's; the one that a job whose layers are to be captured as CUDA
 *  graphs works on until they are; the one that they are captured on;
 *  that of warm-ups before a capture. */
enum {
    ME_STREAM_DEFAULT = 0,
    ME_STREAM_SIDE = 1,
    ME_STREAM_REDUCE = 2,
    ME_STREAM_GATHER = 3,
    ME_STREAM_ALL_REDUCE = 4,
    ME_STREAM_CONTEXT = 5,
    ME_STREAM_SHARED_EXPERTS = 6,
    ME_STREAM_DISPATCH = 7,
    ME_STREAM_OFFLOAD = 8, /**< copies of activations to the host */
    ME_STREAM_RELOAD = 9,  /**< and back */
    ME_STREAM_BEFORE_CAPTURE = 10,
    ME_STREAM_CAPTURE = 11,
    ME_STREAM_WARM_UP = 12,
    ME_STREAMS
};

/** Private pools of the allocator, each of its own; last, what operations of a
 *  captured graph take when it is replayed: memory that lies in its pool
 *  already, of which nobody is told. */
enum {
    ME_MEMPOOL_DEFAULT = 0,
    ME_MEMPOOL_GRAPHS = 1,
    ME_MEMPOOL_REPLAY = 128
};

/**
 * A new engine.
 *
 * @param card        copied
 * @param engine_out  owned by the caller
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_engine_create(const me_card *card, me_engine **engine_out);

/** Give the engine and everything made in it back; NULL is allowed. */
void me_engine_destroy(me_engine *e);

/** Add an observer; they are told in the order they were added. At most
 *  ME_MAX_OBSERVERS; what it points to is borrowed. */
void me_engine_observe(me_engine *e, me_observer observer);

/** Observers hear nothing more: what is torn down after the program has ended
 *  is no event of the job. */
void me_engine_mute(me_engine *e);

/** The first failure, or ME_OK; its reason is copied to @p diag. */
me_status me_engine_status(const me_engine *e, me_diag *diag);

/** Record a failure of the program that runs; the first one counts. */
void me_engine_fail(me_engine *e, me_status status, const char *format, ...)
    ME_PRINTF(3, 4);

/** If the engine has failed with ME_ERR_CONFIG and the message names no place
 * in the user's input yet: add that of the running module
 * (me_module_set_source()) and its name. */
void me_engine_locate(me_engine *e);

/** As me_engine_locate(), with an option of the user's as the place. */
void me_engine_locate_option(me_engine *e, const char *option);

/** Has nothing failed so far? Guards arithmetic on shapes. Also false while a
 * recomputation that was stopped early returns from its functions
 * (me_region_is_stopped()). */
bool me_engine_is_ok(const me_engine *e);

/**
 * Zeroed memory that lives as long as the engine: modules, lists.
 *
 * @return owned by the engine; NULL, and the engine has failed, without memory
 */
void *me_engine_alloc(me_engine *e, size_t count, size_t size);

/**
 * Room for one more item of a list, as me_grow() makes it. Local.
 *
 * @param name  of the request, see base/alloc.h
 * @return the list's memory, the caller's to give back; NULL, and the engine has
 *         failed, without any: the old memory stays
 */
void *me_engine_grow(me_engine *e, void *items, uint32_t count,
                     uint32_t *capacity, size_t size, const char *name);

/** The tree of modules, borrowed. */
const me_module_tree *me_engine_modules(const me_engine *e);

/** FLOPs done and bytes moved in a phase so far. */
me_work me_engine_work(const me_engine *e, me_phase phase);

/** Where cuBLAS's workspace of the running host thread on the current stream is
 *  kept, which outlives every frame: NULL until its first product; the engine's
 *  (ATen/cuda/CublasHandlePool.cpp keeps them by handle and stream). */
me_tensor **me_engine_workspace(me_engine *e);
/** As me_engine_workspace() for cuBLASLt, which has one of its own. */
me_tensor **me_engine_lt_workspace(me_engine *e);
/** Where the scratch of a type that kernels share is kept (Megatron's global
 *  memory buffer): NULL until first used; the engine's. */
me_tensor **me_engine_global_buffer(me_engine *e, me_dtype dtype);

/** What is known of compiled kernel @p kernel (src/ops numbers them); all zero
 *  until it is changed. */
me_compiled *me_engine_compiled(me_engine *e, uint32_t kernel);

/** The card's kernels, borrowed. */
const me_card *me_engine_card(const me_engine *e);

/** torch.use_deterministic_algorithms(True); a new engine's is false. */
void me_deterministic_set(me_engine *e, bool is_deterministic);

/** Are operations deterministic? */
bool me_is_deterministic(const me_engine *e);

/** Are timings of compiled kernels found in Inductor's cache, so that none is
 * timed? A new engine's are not. */
void me_compile_cache_set(me_engine *e, bool is_warm);
bool me_compile_cache_is_warm(const me_engine *e);

/** A compiled kernel is timed, for which the card's cache is flushed with a buffer
 *  of its size, unless its timing is found.
 *  @param bytes  that the timing asks for in all, in whole segments */
void me_compile_timing_note(me_engine *e, uint64_t bytes);

/** Bytes of all that timings asked for, or would have; 0: there was none. Local. */
uint64_t me_compile_timing_bytes(const me_engine *e);

/** Objects in cycles are garbage that Python's collector will find: @p collect lets
 *  go of what they hold. It is called once, by me_collect(); NULL: there is
 *  none. */
void me_collect_later(me_engine *e, void (*collect)(void *self, me_engine *e),
                      void *self);
/** Python's collector runs: as torch.compile compiles its first function. */
void me_collect(me_engine *e);

/** Events emitted so far. */
uint64_t me_engine_events(const me_engine *e);

/** Do all observers skip echoes (me_observer)? */
bool me_engine_skips_echoes(const me_engine *e);

/** Count @p count events of which nobody is told. */
void me_engine_count_events(me_engine *e, uint64_t count);

/** Tell observers of @p event, which is borrowed; fills in its iteration,
 *  micro-batch, phase and module. */
void me_emit(me_engine *e, me_event *event);

/** May an exchange in @p group be told as a whole, me_emit_exchange(), in place of
 *  an event for each send and receive? */
bool me_engine_takes_exchange(const me_engine *e, me_group_kind group);

/** Observers were told of sends to and receives from all members of @p group. */
void me_engine_has_exchanged(me_engine *e, me_group_kind group);

/** Tell observers of an exchange that me_engine_takes_exchange() lets through;
 *  fills in its iteration. It counts as many events as it has calls. */
void me_emit_exchange(me_engine *e, me_exchange_event *exchange);

/** @name Where the program is: what events carry
 *  @{ */
/** A named moment: observers read and reset their peaks. @p name lives as long
 *  as the engine. */
void me_point(me_engine *e, const char *name);
/** torch.cuda.empty_cache(): late frees complete, since it waits for the GPU,
 *  and the allocator gives back what nobody uses. */
void me_empty_cache(me_engine *e);
/** An iteration begins, from 0; what comes before is iteration -1. */
void me_iteration(me_engine *e, int32_t iteration);
/** What follows is of a micro-batch, or of none: ME_NO_MICROBATCH. */
void me_microbatch(me_engine *e, int32_t microbatch);
/** The iteration that runs, -1 during set-up. */
int32_t me_iteration_get(const me_engine *e);
/** The micro-batch that runs, or ME_NO_MICROBATCH. */
int32_t me_microbatch_get(const me_engine *e);
/** How often a forward has run a module before that it runs several times; a node's
 *  backward has that of its forward. @return what it was. */
uint8_t me_pass_set(me_engine *e, uint8_t pass);
/** 0 outside of such modules. */
uint8_t me_pass_get(const me_engine *e);
/** An action of the pipeline's order begins: F, B, I or W (@p name, static) of
 *  a chunk of the rank and the running micro-batch. Actions do not nest. */
void me_action_begin(me_engine *e, const char *name, int32_t chunk);
/** It ends. */
void me_action_end(me_engine *e);

/** Host threads that run operations: the program's, and autograd's. */
enum {
    ME_THREAD_MAIN,
    ME_THREAD_AUTOGRAD,
    ME_THREADS
};

/** What holds for all that runs: a function that changes more than one of them
 *  copies them first, and puts them back. */
typedef struct me_context {
    me_phase phase;
    me_category category; /**< of what is allocated */
    int thread;           /**< of the host, that runs operations */
    uint8_t stream;       /**< that kernels and blocks go to */
    uint8_t mempool; /**< that blocks are taken from, ME_MEMPOOL_DEFAULT … */
    bool is_drawn;   /**< what is allocated is filled with random numbers as it
                            is made, with uniform_(), randn() and the like */
    bool is_recording; /**< the tape is on; not under torch.no_grad() */
} me_context;

/** What holds now; borrowed. */
const me_context *me_context_now(const me_engine *e);
/** What held before holds again. */
void me_context_restore(me_engine *e, me_context before);
/** A function of the forward runs once more. @return what held before */
me_context me_context_recompute(me_engine *e);

/** One of them: holds from now on. @return the one before
 *  @{ */
me_phase me_phase_set(me_engine *e, me_phase phase);
me_category me_category_set(me_engine *e, me_category category);
bool me_drawn_set(me_engine *e, bool is_drawn);
uint8_t me_stream_set(me_engine *e, uint8_t stream);
uint8_t me_mempool_set(me_engine *e, uint8_t mempool);
bool me_grad_enable(me_engine *e, bool enable);
/** @} */
/** @} */

/** @name Modules
 *  @{ */
/** Add a module below @p parent (0: at the top); @p name is copied.
 *  @return its index, 0 after a failure of the engine */
me_module_id me_module_add(me_engine *e, me_module_id parent, const char *name);
/** As me_module_add(), with its class (me_module_set_class()). */
me_module_id me_module_add_as(me_engine *e, me_module_id parent,
                              const char *name, const char *class_name);
/** As me_module_add() with a number for a name, as in a ModuleList. */
me_module_id me_module_add_index(me_engine *e, me_module_id parent,
                                 uint32_t index);
/** Enter a module's forward (or set-up); pairs with me_module_leave(). */
void me_module_enter(me_engine *e, me_module_id module);
/** Leave it: its parent is current again. */
void me_module_leave(me_engine *e);
/** After me_module_leave() of a module whose parent is a list, which has no
 * forward and was never entered: @p module runs on. */
void me_module_resume(me_engine *e, me_module_id module);
/** The module that runs, 0: none. */
me_module_id me_module_current(const me_engine *e);
/** Go to a module by whatever enters and leaves that takes (backward). */
void me_module_switch(me_engine *e, me_module_id module);
/** The same for work on this rank's part of a parameter of @p module: what is
 *  allocated up to the next switch is the part's (me_event.is_shard). */
void me_module_switch_to_shard(me_engine *e, me_module_id module);
/** Count @p numel elements and @p bytes of a parameter for a module and those
 *  above it. */
void me_module_count_parameter(me_engine *e, me_module_id module,
                               uint64_t numel, uint64_t bytes);

/** Count a buffer of @p bytes for a module and those above it. */
void me_module_count_buffer(me_engine *e, me_module_id module, uint64_t bytes);

/** A module uses a parameter of another one: it and those above it that do not
 *  hold the owner have its blocks as well. */
void me_module_share_parameter(me_engine *e, me_module_id module,
                               me_module_id owner, uint64_t bytes);

/** The class of a module, for PyTorch's names of roots; @p name lives as long
 *  as the engine. */
void me_module_set_class(me_engine *e, me_module_id module, const char *name);

/** Where the user has written a module; @p where lives as long as the engine,
 *  and is NULL where nobody has. */
void me_module_set_source(me_engine *e, me_module_id module, const char *where,
                          int line);

/** Undo me_module_count_parameter(). */
void me_module_discount_parameter(me_engine *e, me_module_id module,
                                  uint64_t numel, uint64_t bytes);

/** Dotted name of the running module for messages: "(root)" for none; borrowed. */
const char *me_module_shown(const me_engine *e);

/** @} */

/** @name The host's memory, which no event tells of
 *  @{ */
/** A tensor of @p bytes for @p use lives from now on, pinned or not. */
void me_host_hold(me_engine *e, me_host_use use, uint64_t bytes,
                  bool is_pinned);
/** A tensor that me_host_hold() was told of is gone; its pinned block is free for
 *  the next one of its size. */
void me_host_release(me_engine *e, me_host_use use, uint64_t bytes,
                     bool is_pinned);
/** What is held; borrowed. */
const me_host_memory *me_engine_host(const me_engine *e);

/** @} */

/** @name Frames
 *  @{ */
/** A Python frame: where its variables begin. */
typedef struct me_frame {
    uint32_t base;
} me_frame;

/** Begin a frame. @return where the caller's began, for me_leave() */
me_frame me_enter(me_engine *e);

/**
 * End a frame: its variables die in the order they were made.
 *
 * @param result  lives on in the frame of the caller; may be a tensor that is
 *                not the frame's own, or NULL
 * @return @p result
 */
me_tensor *me_leave(me_engine *e, me_frame frame, me_tensor *result);

/** As me_leave() for functions that return several tensors. */
void me_leave_with(me_engine *e, me_frame frame, uint32_t count,
                   me_tensor *const *results);

/** The running frame forgets a variable: Python's `del`. */
void me_drop(me_engine *e, me_tensor *x);

/** `x = y`: @p y takes the place of @p x, and then @p x is dropped. */
me_tensor *me_rebind(me_engine *e, me_tensor *x, me_tensor *y);
/** As me_rebind(), where @p x may be the argument @p given, which stays as it is:
 *  the caller has a name for it. @return @p y */
me_tensor *me_rebind_own(me_engine *e, me_tensor *x, const me_tensor *given,
                         me_tensor *y);

/** The running frame's name of @p x comes behind all its others, as a
 * function's names do that it binds later than it makes the tensor: it dies
 * last. */
void me_name_last(me_engine *e, me_tensor *x);

/** `y = x`: a second name in the running frame. @return @p x */
me_tensor *me_hold(me_engine *e, me_tensor *x);

/** Another holder than a frame (an attribute, a list) holds @p x. */
me_tensor *me_retain(me_tensor *x);

/** That holder lets go; NULL is allowed. */
void me_release(me_engine *e, me_tensor *x);

/** Let go of *x and forget it. */
void me_clear(me_engine *e, me_tensor **x);

/** `name = x` where the name is another holder's: binds, then lets go of what
 *  it held before. @p x may be NULL. */
void me_assign(me_engine *e, me_tensor **name, me_tensor *x);

/** me_assign() to what a module keeps from one micro-batch to the next: a
 *  recorded action may let go of what another one gave it (tensor/script.h).
 *  NULL clears it. @p attribute is where the engine finds it as long as it
 *  lives. */
void me_attribute_set(me_engine *e, me_tensor **attribute, me_tensor *x);

/** A frame takes over the reference that a holder had. */
me_tensor *me_adopt(me_engine *e, me_tensor *x);
/** @} */

#endif /* MEMEST_TENSOR_ENGINE_H */
