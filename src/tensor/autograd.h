/**
 * @file
 * The autograd tape: nodes with what they saved, and the engine that runs them
 * backward in PyTorch's order.
 *
 * A node's life follows torch/csrc/autograd: it is numbered when it is made;
 * the ready queue pops the largest number; its gradients are made, summed to
 * the input's shape and cast to its dtype, then the incoming gradients go,
 * then what it saved, and then its gradients are handed on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_AUTOGRAD_H
#define MEMEST_TENSOR_AUTOGRAD_H

#include "tensor/autocast.h"
#include "tensor/engine.h"
#include "tensor/op.h"

#include <stddef.h>

/** Of an operation; those of a list of tensors have more (me_record_wide()). */
enum {
    ME_MAX_INPUTS = 6,
    ME_MAX_OUTPUTS = 4,
    ME_MAX_SAVED = 8,
    ME_MAX_LIST = 2056
};

/** Where a gradient goes: input @p output_nr of @p node (a GradientEdge). */
typedef struct me_edge {
    me_node *node;
    uint32_t output_nr;
} me_edge;

/** Told of the gradients of a node's outputs before it runs
 *  (Node.register_prehook); they are borrowed. */
typedef struct me_prehook {
    void (*run)(void *self, me_engine *e, me_tensor *const *gy);
    void *self;
    struct me_prehook *next; /**< of the same node, me_prehook_add()'s */
} me_prehook;

typedef struct me_node_hook me_node_hook;

/** Numbers that a backward needs besides tensors. */
typedef struct me_node_data {
    me_shape shape; /**< of the first input, until the operation says another */
    uint64_t strides[ME_MAX_DIMS];
    uint64_t n[2];
    int32_t dim;
    bool flag;
    me_autocast_state autocast; /**< that a checkpoint ran under */
    const void *context;        /**< borrowed; a module, a checkpoint */
    void *owner; /**< borrowed; who is told that the backward runs */
    struct me_output_checkpoint *checkpoint; /**< borrowed */
} me_node_data;

/** What the node of a list of tensors (a concatenation, a split) needs beyond
 *  the places that every node has; of the engine, used again. */
typedef struct me_wide {
    struct me_wide *next_free;
    uint32_t capacity;     /**< inputs or outputs */
    me_edge *edges;        /**< of the inputs */
    uint64_t *extents;     /**< of the inputs, for the operation */
    me_shape *shapes;      /**< of the outputs, which share a dtype */
    me_tensor **gradients; /**< of the outputs, awaited */
    me_tensor **made;      /**< gradients of the inputs, while it runs */
    me_tensor **saved;     /**< see me_record_saving() */
    uint32_t n_saved;
} me_wide;

struct me_node {
    const me_op *op;
    uint64_t sequence;
    uint32_t refs;
    uint16_t n_inputs;
    uint16_t n_outputs;
    uint8_t thread;
    uint8_t stream; /**< CUDA stream of its forward, which its backward takes */
    uint8_t mempool; /**< likewise, where blocks are taken from */
    bool is_view;    /**< me_record_view() made it */
    bool is_dtensor; /**< its outputs are, and so their gradients, which are
                          never summed in place */
    uint8_t needed;  /**< a bit an input: the backward that runs wants its
                         gradient */
    uint8_t pass;    /**< of its forward, see me_pass_set() */
    me_module_id module;
    me_prehook *prehooks; /**< in their order; borrowed; NULL: none */
    me_node_hook *hooks;  /**< of the tensors it made, see hooks.h */
    me_edge *edges;       /**< `few_edges`, or those of `wide` */
    me_wide *wide;        /**< NULL: few inputs and outputs */
    me_edge few_edges[ME_MAX_INPUTS];
    me_tensor *saved[ME_MAX_SAVED]; /**< released in this order */
    me_tensor *variable;            /**< of an AccumulateGrad: the leaf */
    me_node_data data;
    const struct me_saved_hooks *saved_hooks; /**< that have what it saved, or
                                                   some of it; NULL: none */
    struct me_region *region; /**< what it saved stands there, see region.h */
    uint32_t n_holders;       /**< of its region */
    uint64_t task;            /**< which backward it waits in, 0: none */
    uint32_t slot;            /**< where in that backward's list */
    me_node *next_free;
    /** Of the outputs there are; not cleared when made. */
    uint8_t output_dtype[ME_MAX_OUTPUTS];
    me_shape output_shape[ME_MAX_OUTPUTS];
};

/** One node that a running backward will visit. */
typedef struct me_task_slot {
    me_node *node;
    uint32_t dependencies;
    uint64_t outer_task; /**< what the node's fields were before */
    uint32_t outer_slot;
    bool is_needed;    /**< it leads to what the run was asked for */
    me_tensor **taken; /**< its gradient is handed out there, or NULL */
    me_tensor *gradients[ME_MAX_OUTPUTS];
} me_task_slot;

/** State of all running backwards (one inside another under recomputation). */
typedef struct me_tape {
    uint64_t sequence[ME_THREADS];
    uint64_t tasks; /**< backwards begun so far */
    me_task_slot *slots;
    uint32_t n_slots;
    uint32_t slots_capacity;
    me_node **stack; /**< of the search for dependencies */
    uint32_t n_stack;
    uint32_t stack_capacity;
    me_node **heap; /**< ready nodes of all running backwards */
    uint32_t n_heap;
    uint32_t heap_capacity;
    me_node *free_nodes;
    me_wide *free_wides;
    void (*on_grad)(void *self, me_engine *e, me_tensor *parameter);
    void *on_grad_self;
    bool is_quiet; /**< on_grad is not told */
    me_tensor *(*sum_to)(me_engine *e, me_tensor *gradient,
                         const me_shape *shape);
    void (*on_end)(void *self, me_engine *e); /**< NULL: none */
    void *on_end_self;
} me_tape;

/**
 * Put an operation on the tape.
 *
 * @param inputs  whose gradients it will make; at most ME_MAX_INPUTS
 * @return the node, borrowed until me_output() gives it to an output; NULL if
 *         the tape is off or no input needs a gradient, which me_save() and
 *         me_output() accept
 */
me_node *me_record(me_engine *e, const me_op *op, uint32_t n_inputs,
                   me_tensor *const *inputs);

/** As me_record() for another view of @p a, which waits for no collective: its
 *  output is awaited as its input is. */
me_node *me_record_view(me_engine *e, const me_op *op, me_tensor *a);

/** As me_record() for one input. */
me_node *me_record1(me_engine *e, const me_op *op, me_tensor *a);
/** As me_record() for two inputs. */
me_node *me_record2(me_engine *e, const me_op *op, me_tensor *a, me_tensor *b);

/**
 * As me_record() for an operation on lists, of @p n_inputs tensors or with
 * @p n_outputs outputs, at most ME_MAX_LIST.
 */
me_node *me_record_wide(me_engine *e, const me_op *op, uint32_t n_inputs,
                        me_tensor *const *inputs, uint32_t n_outputs);

/** As me_record() for an operation that saves @p n_saved tensors, at most
 *  ME_MAX_LIST, beside the ME_MAX_SAVED of every node, and after those. */
me_node *me_record_saving(me_engine *e, const me_op *op, uint32_t n_inputs,
                          me_tensor *const *inputs, uint32_t n_saved);

/** The node keeps @p x until it has run; @p index, below ME_MAX_SAVED and what
 *  me_record_saving() adds to it, orders the release. @p x or the node may be
 *  NULL. A temporary becomes an activation. */
void me_save(me_engine *e, me_node *node, uint32_t index, const me_tensor *x);

/** `x.grad_fn._set_sequence_nr(number)`: when the node that made @p x is ready, it
 *  runs before those with lower numbers. Nothing without a node. */
void me_set_sequence(const me_tensor *x, uint64_t number);

/** @p y is the node's next output. @return @p y */
me_tensor *me_output(me_engine *e, me_node *node, me_tensor *y);

/** Shape of output @p nr. */
static inline me_shape *me_output_shape(me_node *node, uint32_t nr)
{
    return node->wide != NULL ? &node->wide->shapes[nr]
                              : &node->output_shape[nr];
}

/** Its dtype. */
static inline me_dtype me_output_dtype(const me_node *node, uint32_t nr)
{
    return (me_dtype)node->output_dtype[node->wide != NULL ? 0 : nr];
}

/** `x.detach_()`: @p x lets go of its graph. */
void me_detach_in_place(me_engine *e, me_tensor *x);

/** Does the backward that runs want the gradient of input @p index? */
static inline bool me_needs(const me_node *node, uint32_t index)
{
    return node->wide != NULL ? node->edges[index].node != NULL
                              : ((unsigned)node->needed >> index & 1U) != 0;
}

/**
 * Run backward from @p root. Collects the gradients of leaves in their `grad`.
 *
 * @param root      its grad_fn starts; without one a leaf gets a copy of the
 *                  gradient, and nothing else happens
 * @param gradient  of @p root; borrowed
 */
void me_backward(me_engine *e, me_tensor *root, me_tensor *gradient);

/**
 * As me_backward() from several tensors at once
 * (torch.autograd.backward(tensors, gradients)).
 *
 * @param roots      outputs of nodes that there are
 * @param gradients  of each root; borrowed
 */
void me_backward_all(me_engine *e, uint32_t n_roots, const me_edge *roots,
                     me_tensor *const *gradients);

/** What a leaf's AccumulateGrad does with a gradient, which is borrowed. */
void me_accumulate_grad(me_engine *e, me_tensor *leaf, me_tensor *gradient);

/** `leaf.grad = gradient`, and who waits for it is told: outside of a backward, for
 *  gradients that are made later. What the leaf has collected goes. @p gradient is
 *  a reference that the leaf takes over. */
void me_hand_over_grad(me_engine *e, me_tensor *leaf, me_tensor **gradient);

/** What torch.autograd.grad() is asked; all of it is borrowed. */
typedef struct me_grad_request {
    uint32_t n_roots;
    const me_edge *roots;        /**< where the backward begins */
    me_tensor *const *gradients; /**< of each root */
    uint32_t n_inputs;
    me_node *const *inputs;    /**< whose incoming gradients are asked for:
                                    the AccumulateGrad of a leaf */
    me_tensor **gradients_out; /**< of each input; the caller's, NULL where
                                    none arrived */
    bool retain_graph;         /**< nodes keep what they saved */
    bool makes_all; /**< nodes make gradients that nobody asked for as well, as
                         autograd functions in Python do; they go at once */
} me_grad_request;

/**
 * Run backward over nothing but the paths from the roots to the inputs: nodes
 * beside them do not run, and nodes on them make only the gradients that lead
 * there. Nothing is collected in any `grad`.
 */
void me_autograd_grad(me_engine *e, const me_grad_request *request);

/** What is told when a parameter has got its gradient (a post-accumulate hook). */
void me_tape_on_grad(me_engine *e,
                     void (*on_grad)(void *self, me_engine *e,
                                     me_tensor *parameter),
                     void *self);

/** Whether what me_tape_on_grad() set is told of nothing for now: who asked for
 *  gradients takes those of a backward inside of his as well. */
void me_tape_be_quiet(me_engine *e, bool is_quiet);

/** What runs once the backward that runs has ended (queue_callback()); one at a
 *  time. */
void me_tape_at_end(me_engine *e, void (*on_end)(void *self, me_engine *e),
                    void *self);

/** Make the parameter's AccumulateGrad now and hold it (as DDP's hooks do). It, and
 *  what it tells, run on the side stream. */
me_node *me_accumulator_hold(me_engine *e, me_tensor *parameter);

/** The leaf's AccumulateGrad, made if it is not alive; the caller holds it.
 *  NULL if it needs no gradient. */
me_node *me_leaf_accumulator(me_engine *e, me_tensor *leaf);

/** release_variables(): what the node saved goes, in the order in which it was
 *  saved, and what its region has for it. */
void me_node_release_saved(me_engine *e, me_node *node);

/** One holder of a node lets go; NULL is allowed. */
void me_node_release(me_engine *e, me_node *node);

/**
 * Sums a gradient to the shape of the input it belongs to. The operations'
 * layer installs its reduction here, since autograd calls it by itself when an
 * input was broadcast.
 *
 * @return a new variable of the running frame
 */
typedef me_tensor *(*me_sum_to_function)(me_engine *e, me_tensor *gradient,
                                         const me_shape *shape);
/** Install it; once, before the first backward. */
void me_tape_set_sum_to(me_engine *e, me_sum_to_function sum_to);

/** Give back the tape's own memory. */
void me_tape_fini(me_tape *tape);

#endif /* MEMEST_TENSOR_AUTOGRAD_H */
