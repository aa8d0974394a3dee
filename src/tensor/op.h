/**
 * @file
 * An operation as a row of what is known of it: what events, PyTorch's
 * dispatcher and the tape call it, what its kernel costs, and how its gradient
 * is made. One call allocates the result, launches the kernel and tells who
 * listens.
 *
 * A row may be of less: a kernel of a backward has no node, what several
 * kernels make has no cost of its own, a view allocates nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_OP_H
#define MEMEST_TENSOR_OP_H

#include "tensor/engine.h"
#include "tensor/launch.h"

/** Tensors in a row, borrowed; NULL where one is left out. */
typedef struct me_tensors {
    uint32_t count;
    const me_tensor *const *items;
} me_tensors;

/** Those of the argument list, for as long as the block that it stands in. */
#define ME_TENSORS(...)                                                        \
    ((me_tensors){                                                             \
        .count = sizeof((const me_tensor *const[]){__VA_ARGS__}) /             \
                 sizeof(const me_tensor *),                                    \
        .items = (const me_tensor *const[]){__VA_ARGS__},                      \
    })

/** None. */
#define ME_NO_TENSORS ((me_tensors){.count = 0, .items = NULL})

/** What a kernel does; all zero: there is none, or its caller launches it. */
typedef struct me_cost {
    uint8_t kernel; /**< me_kernel_class; one of element-wise kernels that makes
                         another type of its widest argument is a cast */
    uint8_t flops;  /**< for each element of its result, or of a first argument
                         that is read and has more */
    uint8_t
        reads; /**< so many of its arguments, from the first, each once; those
                         behind it may be left out */
    uint8_t passes; /**< over its result: 1 where it is written once */
} me_cost;

/** A cost for a row; @p class without its ME_KERNEL_. */
#define ME_COST(class, flops, reads, passes)                                   \
    {                                                                          \
        ME_KERNEL_##class, flops, reads, passes                                \
    }

/** Of an element-wise kernel of one or two arguments. */
#define ME_POINTWISE ME_COST(ELEMENTWISE, 1, 2, 1)

/** A row; what follows @p node are members by their names, the backward first. */
#define ME_OP(event_, dispatcher_, cost_, node_, ...)                          \
    {                                                                          \
        .event = (event_), .dispatcher = (dispatcher_), .cost = cost_,         \
        .node = (node_), __VA_ARGS__                                           \
    }

/** A row of an operation that the tape alone knows: other code runs kernels. */
#define ME_NODE(name, function)                                                \
    {                                                                          \
        .node = (name), .backward = (function)                                 \
    }

/**
 * An operation.
 *
 * `backward` gets the gradients of the node's outputs (NULL: undefined), which
 * it borrows, and puts those of its inputs into @p gx in the order in which
 * PyTorch makes them; an entry whose edge is NULL need not be made.
 */
typedef struct me_op {
    const char *event;      /**< what it allocates is named so in events */
    const char *dispatcher; /**< PyTorch's name there, as "addmm.default"; NULL:
                                 nobody is told */
    me_cost cost;
    const char *node; /**< PyTorch's name of its node; NULL: no tape has it */
    void (*backward)(me_engine *e, me_node *node, me_tensor *const *gy,
                     me_tensor **gx);
    const struct me_op *gradient; /**< the kernel of a backward that several
                                       rows share; NULL: it knows its own */
    uint8_t queries;    /**< of its first input's device by PyTorch's own code
                          before it is recorded, see hooks.h */
    bool marks_saved;   /**< what it saves besides parameters is marked for the
                           host (mark_activation_offload()) */
    bool offloads_base; /**< views that it saves go to the host as what they are
                             views of (Transformer Engine's start_offload()) */
    bool is_view;       /**< to ADInplaceOrView, which asks whether the base's
                          device knows strides (support_as_strided()); detach()
                          and _unsafe_view() are none */
} me_op;

/** A new tensor, dense in row-major order, that @p op makes of @p arguments: a
 *  variable of the running frame. The kernel is launched and whoever listens
 *  told. */
me_tensor *me_kernel(me_engine *e, const me_op *op, me_tensors arguments,
                     me_dtype dtype, me_shape shape);

/** As me_kernel() of the shape and type of the first argument. */
me_tensor *me_kernel_dense(me_engine *e, const me_op *op, me_tensors arguments);

/** As me_kernel_dense() with the first argument's order of strides. */
me_tensor *me_kernel_like(me_engine *e, const me_op *op, me_tensors arguments);

/** As me_kernel_like() in another type. */
me_tensor *me_kernel_as(me_engine *e, const me_op *op, me_tensors arguments,
                        me_dtype dtype);

/** The kernel runs on what is there: an operation in place, or one of several
 *  results, of which the first counts. Launches and tells. */
void me_op_run(me_engine *e, const me_op *op, me_tensors arguments,
               me_tensors results);

/** The kernel alone, of which nobody is told. */
void me_op_launch(me_engine *e, const me_op *op, me_tensors arguments,
                  const me_tensor *result);

/** Tell alone: of a view, or of what several kernels do. */
void me_op_tell(me_engine *e, const me_op *op, me_tensors arguments,
                me_tensors results);

/** A backward of one kernel, the row's `gradient`, on what arrives. */
void me_gradient_backward(me_engine *e, me_node *node, me_tensor *const *gy,
                          me_tensor **gx);

/** As me_gradient_backward(), in the shape of the first input. */
void me_gradient_shaped_backward(me_engine *e, me_node *node,
                                 me_tensor *const *gy, me_tensor **gx);

/** Likewise, into zeros, once what arrives has been read. */
void me_gradient_scattered_backward(me_engine *e, me_node *node,
                                    me_tensor *const *gy, me_tensor **gx);

#endif /* MEMEST_TENSOR_OP_H */
