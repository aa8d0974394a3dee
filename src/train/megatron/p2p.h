/**
 * @file
 * Point-to-point communication between stages
 * (core/pipeline_parallel/p2p_communication.py).
 *
 * A received tensor exists before any send or receive is issued, so before any
 * wait, and is owned by the caller. Tensors that travel are used by NCCL's stream
 * as well, so they are freed late.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TRAIN_MEGATRON_P2P_H
#define MEMEST_TRAIN_MEGATRON_P2P_H

#include "tensor/tensor.h"

struct me_trainer;

/** What one exchange does; tensors that are sent may be NULL. */
typedef struct me_exchange {
    me_tensor *to_next;     /**< an output */
    me_tensor *to_previous; /**< an input's gradient */
    bool from_previous;     /**< receive an input */
    bool from_next;         /**< receive an output's gradient */
    int32_t input_chunk;    /**< whose input is received */
    int32_t gradient_chunk; /**< of whose output the gradient is */
} me_exchange;

/** Run one exchange; what is not asked for is NULL, and the outputs may be. */
void me_exchange_run(struct me_trainer *t, const me_exchange *exchange,
                     me_tensor **from_previous_out, me_tensor **from_next_out);
/** Receive a chunk's input (@p is_forward) or its output's gradient from a rank
 *  of the pipeline. @return owned by the caller */
me_tensor *me_receive_from(struct me_trainer *t, bool is_forward, int32_t chunk,
                           int32_t rank);
/** Say that one transfer of an order is launched, for times: @p transfer is
 *  an ME_TRANSFER_ bit, @p rank the other side's, chunk and micro-batch what
 *  it belongs to. */
void me_tell_transfer(struct me_trainer *t, int transfer, int32_t rank,
                      int32_t chunk, int32_t microbatch);
/** Send a tensor to a rank of the pipeline. */
void me_send_to(struct me_trainer *t, me_tensor *x, int32_t rank);

#endif /* MEMEST_TRAIN_MEGATRON_P2P_H */
