/**
 * @file
 * Recomputation without a node of its own: `torch.utils.checkpoint` with
 * use_reentrant=False. What the region's operations save is replaced by
 * holders; the first of them that the backward asks for makes the region run
 * again, until its last holder has its tensor. Each holder hands its tensor out
 * once, to the operation that saved it.
 *
 * Regions do not nest.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_REGION_H
#define MEMEST_TENSOR_REGION_H

#include "tensor/autograd.h"

/** What is run, and run again; @p self lives as long as the graph. */
typedef struct me_region_function {
    me_tensor *(*run)(void *self, me_engine *e, me_tensor *x);
    void *self;
} me_region_function;

/** Run a function as a region. @return a variable of the running frame */
me_tensor *me_region_forward(me_engine *e, const me_region_function *function,
                             me_tensor *x);

/** Has the recomputation that runs all that it ran for? Its functions unwind. */
bool me_region_is_stopped(const me_engine *e);

/** A local variable of a function that unwinds: the traceback holds it until the
 *  recomputation has ended. Nothing happens otherwise. */
void me_region_hold_local(me_engine *e, me_tensor *x);

/** @name For the tape alone
 *  @{ */
/** The holder that stands for a tensor that @p node saves now. */
me_tensor *me_region_hold(me_engine *e, me_node *node);
/** A tensor was saved while a region runs again; it may stop that. */
void me_region_fill(me_engine *e, const me_tensor *saved);
/** Put tensors into the places of the holders of @p node. */
void me_region_unpack(me_engine *e, me_node *node);
/** The node has no holders any more. */
void me_region_let_go(me_engine *e, me_node *node);
/** @} */

#endif /* MEMEST_TENSOR_REGION_H */
