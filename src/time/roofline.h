/**
 * @file
 * The roofline that PyTorch's RuntimeEstimator costs operations with
 * (torch/utils/_runtime_estimation.py, "operator-level-cost-model"): what an
 * operation moves by the memory's rate, or what it computes by three quarters of
 * the multiply-adds that the multiprocessors are able to do at their highest
 * clock, whichever takes longer. Views and what fills memory cost nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TIME_ROOFLINE_H
#define MEMEST_TIME_ROOFLINE_H

#include "tensor/hooks.h"
#include "time/rates.h"

/** A card's limits, all above 0. */
typedef struct me_roofline {
    double half_peak;   /**< multiply-adds a second, bf16 and fp16 */
    double single_peak; /**< fp32, tf32 off */
    double memory;      /**< bytes a second */
} me_roofline;

/**
 * The limits of a card by its clock, multiprocessors and memory.
 *
 * @return ME_OK; ME_ERR_CONFIG where the card's file does not say them
 */
me_status me_roofline_of(const me_rates *rates, const char *card, me_diag *diag,
                         me_roofline *roofline_out) ME_MUST_CHECK;

/** Bytes that an operation reads of a tensor, or writes: a dimension that is
 *  expanded counts once. 0 for NULL. */
uint64_t me_roofline_tensor_bytes(const me_tensor *x);

/** The same of all tensors of an operation, and of its lists. */
uint64_t me_roofline_bytes(const me_operation *operation);

/** Milliseconds of an operation. */
double me_roofline_ms(const me_roofline *roofline,
                      const me_operation *operation);

#endif /* MEMEST_TIME_ROOFLINE_H */
