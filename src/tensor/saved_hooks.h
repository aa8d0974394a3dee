/**
 * @file
 * Hooks of what operations save (torch.autograd.graph.saved_tensors_hooks):
 * while they are on, a tensor that is saved may be taken over by whoever hung
 * them up, and comes back when the backward of its operation begins.
 *
 * Under a region (region.h) that runs without a node of its own there are none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TENSOR_SAVED_HOOKS_H
#define MEMEST_TENSOR_SAVED_HOOKS_H

#include "tensor/autograd.h"

/** One pair of hooks; lives as long as the graph. */
typedef struct me_saved_hooks {
    /**
     * An operation saves @p x, a handle of its own.
     *
     * @param place_out  what unpack() is asked for, set where true comes back
     * @return true: @p x is the hooks'; false: the node keeps it
     */
    bool (*pack)(void *self, me_engine *e, const me_op *op, me_tensor *x,
                 uint32_t *place_out);
    /** The tensor that stands for @p place: one reference, the caller's; NULL
     *  after a failure of the engine. @p like has its type and shape. */
    me_tensor *(*unpack)(void *self, me_engine *e, uint32_t place,
                         const me_tensor *like);
    void *self;
    bool hands_over; /**< all that is saved is packed, and what is unpacked is
                          the backward's alone, whose names die with it */
} me_saved_hooks;

/** Hang hooks up, or none with NULL; borrowed. @return those before */
const me_saved_hooks *me_saved_hooks_set(me_engine *e,
                                         const me_saved_hooks *hooks);

/** Is what the node saved the running backward's own (hands_over)? */
bool me_saved_is_own(const me_node *node);

/** Others than its backward ask for what @p node saved, which it has in its
 *  places from now on. @return false: no hooks had any of it */
bool me_saved_unpack_for(me_engine *e, me_node *node);

/** clear_tensor_data(): the saved tensor's data goes, whoever else has a name
 *  of it. */
void me_saved_clear_data(me_engine *e, me_node *node, uint32_t index);

/** @name For the tape alone
 *  @{ */
/** Hand @p saved to the hooks. @return what the node keeps in its place */
me_tensor *me_saved_pack(me_engine *e, me_node *node, me_tensor *saved);
/** Put tensors into the places of @p node, as its backward begins. */
void me_saved_unpack(me_engine *e, me_node *node);
/** Its backward has ended: names of its own die in the order in which they were
 *  saved. */
void me_saved_drop(me_engine *e, me_node *node);
/** @} */

#endif /* MEMEST_TENSOR_SAVED_HOOKS_H */
