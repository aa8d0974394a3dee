/**
 * @file
 * Which layers communicate over tensor ranks beside their products, in
 * Transformer Engine's user buffers (`--tp-comm-overlap`), and what of a layer
 * stands in them in place of PyTorch's memory. The buffers themselves:
 * parallel/user_buffers.h.
 *
 * Left out: MXFP8, whose scales are gathered beside them; products with counters
 * of their own; results that are scattered in FP8.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_TE_OVERLAP_H
#define MEMEST_NN_MEGATRON_TE_OVERLAP_H

#include "nn/megatron/linear.h"
#include "nn/megatron/te_state.h"

/** What TELinear and TELayerNormColumnParallelLinear ask of Transformer Engine for
 *  a layer that is built now. @param name  the module's */
me_linear_overlap me_te_overlap_of(me_nn *nn, const me_linear *linear,
                                   const char *name);

/** Is the layer's input gathered in a buffer in the forward that runs? */
bool me_te_gathers_in_buffer(const me_nn *nn, const me_linear *linear);

/** The workspace of the forward's product. */
me_te_workspace me_te_forward_workspace(const me_nn *nn,
                                        const me_linear *linear);

/** The workspace of the input gradient's product. */
me_te_workspace me_te_dgrad_workspace(const me_linear *linear);

/** The workspace of the weight gradient's product. */
me_te_workspace me_te_wgrad_workspace(const me_linear *linear);

/** Do the operations that Transformer Engine fuses (te_mlp.h) communicate beside
 *  this layer's products? They do with all of a layer's that its modules could,
 *  whichever of them --tp-comm-overlap-… asks for, and ask as they run. */
bool me_te_ops_overlap(const me_nn *nn, const me_linear *linear);

/** The workspace of such an operation's forward and of its input gradient. */
me_te_workspace me_te_ops_workspace(const me_nn *nn, const me_linear *linear);

/** The shape of @p x with the rows of all tensor ranks. */
me_shape me_te_all_rows(const me_nn *nn, const me_tensor *x);

/** Where this rank's rows of a row-parallel layer's output arrive, (s/t, b, out)
 *  of @p x, (s, b, in/t): a new variable. */
me_tensor *me_te_scattered_rows(me_nn *nn, const me_linear *linear,
                                const me_tensor *x);

/** The same, or NULL: they come otherwise. */
me_tensor *me_te_scattered(me_nn *nn, const me_linear *linear,
                           const me_tensor *x);

/** This rank's rows of a gradient, copied out of the buffer that it was made in:
 *  clone(). @param like  the layer's input */
me_tensor *me_te_copy_out(me_nn *nn, const me_tensor *like);

#endif /* MEMEST_NN_MEGATRON_TE_OVERLAP_H */
