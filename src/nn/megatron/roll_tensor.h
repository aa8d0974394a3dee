/**
 * @file
 * roll_tensor() (core/transformer/multi_token_prediction.py): what a depth of
 * multi-token prediction reads of tokens, positions, labels and their mask, one
 * token further. Packed sequences are left out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_NN_MEGATRON_ROLL_TENSOR_H
#define MEMEST_NN_MEGATRON_ROLL_TENSOR_H

#include "nn/nn.h"

/**
 * (b, s) to (b, s), new; off the tape. Under context parallelism a rank has two
 * pieces of its sequence that lie apart: each is rolled by itself, and what it
 * ends with comes from the rank whose piece follows.
 *
 * @param sum_out  of the result, a scalar
 */
me_tensor *me_roll_tensor(me_nn *nn, me_tensor *x, me_tensor **sum_out);

#endif /* MEMEST_NN_MEGATRON_ROLL_TENSOR_H */
