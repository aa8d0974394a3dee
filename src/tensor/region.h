/**
 * @file
 * Recomputation without a node of its own: `torch.utils.checkpoint` with
 * use_reentrant=False. What the region's operations save is replaced by
 * holders; the first of them that the backward asks for makes the region run
 * again, until its last holder has its tensor. Each holder hands its tensor out
 * once a backward, to the operation that saved it. A backward over a part of
 * the graph (torch.autograd.grad) has the region run for itself, and leaves
 * with its holders what it did not unpack.
 *
 * Regions nest. What is saved is the innermost one's, and the input of a region
 * is saved by the one around it: while that runs again, regions in it run as in
 * a forward, and the run ends with the last of what it itself saved.
 *
 * A selective region (create_selective_checkpoint_contexts) keeps the results
 * of some operations besides: when it runs again they are handed out where they
 * would be made. Which ones is the policy that torchtitan's training and
 * PyTorch's tutorial use: attention, every other matrix product, and what is
 * reduced and scattered over tensor-parallel ranks.
 *
 * Each selective region around an operation counts and keeps for itself. One
 * that runs again has regions in it run as in a forward, which keep what it
 * hands out; when one of those runs again on its own, the one around it has
 * nothing for it, and what it has kept of it stays until it goes.
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
    bool is_selective;
    bool runs_to_end; /**< again: with early_stop=False */
} me_region_function;

/** Operations that a selective region knows. */
typedef enum me_region_op {
    ME_REGION_MM,            /**< aten.mm: the first, the third, … of a run */
    ME_REGION_ATTENTION,     /**< scaled_dot_product_attention, all results */
    ME_REGION_REDUCE_SCATTER /**< reduce_scatter_tensor of a DTensor */
} me_region_op;

/** Run a function as a region. @return a variable of the running frame */
me_tensor *me_region_forward(me_engine *e, const me_region_function *function,
                             me_tensor *x);

/** Has the running recomputation made every tensor that it was started for?
 * PyTorch then raises an exception (early stop), and its functions return
 * without doing more. */
bool me_region_is_stopped(const me_engine *e);

/** Hold a local variable of a function that is left by early stop: the
 * exception's traceback keeps it until the recomputation has ended. Does
 * nothing unless one was stopped. */
void me_region_hold_local(me_engine *e, me_tensor *x);
/** An operation has made its results: selective regions that run for the first
 *  time, one inside the other, may keep them. */
void me_region_keep(me_engine *e, me_region_op op, uint32_t count,
                    me_tensor *const *results);

/**
 * What a selective region that runs again has kept of an operation, which then
 * does not run.
 *
 * @param results_out  variables of the running frame; set where true comes back
 */
bool me_region_kept(me_engine *e, me_region_op op, uint32_t count,
                    me_tensor **results_out);

/** Give back the memory of regions that are left after a failure. Tensors that
 * they hold belong to the engine and go with it. */
void me_regions_fini(me_engine *e);

/** @name For the tape alone
 *  @{ */
/** The holder that stands for a tensor that @p node saves now. */
me_tensor *me_region_hold(me_engine *e, me_node *node);
/** A tensor was saved while a region runs again: hand it to its holder. The
 * last one that is needed stops the recomputation. */
void me_region_fill(me_engine *e, const me_tensor *saved);
/**
 * Put tensors into the places of the holders of @p node.
 *
 * @param task         of the backward that runs
 * @param holders_out  ME_MAX_SAVED, NULL before: the holders, to be put back
 *                     once the node has run
 */
void me_region_unpack(me_engine *e, me_node *node, uint64_t task,
                      me_tensor **holders_out);
/** Drop the node's holders, with tensors that were made for them and never
 * unpacked. */
void me_region_give_up(me_engine *e, const me_node *node);
/** The node has no holders any more. */
void me_region_let_go(me_engine *e, me_node *node);
/** @} */

#endif /* MEMEST_TENSOR_REGION_H */
