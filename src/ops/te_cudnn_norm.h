/**
 * @file
 * Workspaces of norms that Transformer Engine has cuDNN run
 * (`NVTE_NORM_FWD_USE_CUDNN`, `NVTE_NORM_BWD_USE_CUDNN`), as cuDNN 9.19 asked
 * for them on an H200 in half precision and float32. Which kernel it takes for a
 * shape, and how many blocks of that sum up gradients of weights apart, its
 * heuristics say, whose source nobody has: a shape that was not measured has what
 * the next one has, on a card with other SMs for as many of those, and a band.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_OPS_TE_CUDNN_NORM_H
#define MEMEST_OPS_TE_CUDNN_NORM_H

#include "ops/te_norm.h"

/** Bytes of the workspace; at least 1. */
uint64_t me_te_cudnn_norm_workspace_bytes(const me_card *card,
                                          const me_te_norm_call *call);

/** Was it measured: the forward; a backward of these rows and columns on @p card,
 *  or of rows beside which, half to twice as many, kernels ask for the same? */
bool me_te_cudnn_norm_is_measured(const me_card *card,
                                  const me_te_norm_call *call);

/**
 * By how much the allocator may hold more or less, since cuDNN may take another
 * kernel for the call than the one whose workspace is asked for: the most that one
 * measured next to it asks for, which may need a segment of its own; 0 where these
 * ask for the same. Local.
 */
uint64_t me_te_cudnn_norm_doubt_bytes(const me_card *card,
                                      const me_te_norm_call *call);

/** Where SMs are left to others cuDNN has no kernel for some columns, and
 *  Transformer Engine stops: is the call one of those? Local. */
bool me_te_cudnn_norm_stops(const me_te_norm_call *call);

#endif /* MEMEST_OPS_TE_CUDNN_NORM_H */
