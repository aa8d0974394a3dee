/**
 * @file
 * Device memory of Transformer Engine's user buffers (`--tp-comm-overlap`), outside
 * of PyTorch's allocator, from the start of the process on: one for each product
 * that has communication beside it, whether it is used or not, with CUDA's streams,
 * and what their communicator keeps (initialize_ub() in pytorch/module/base.py,
 * common/comm_gemm_overlap/comm_gemm_overlap.cpp, userbuffers/userbuffers-host.cpp
 * of 2.17.1).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_USER_BUFFERS_H
#define MEMEST_PARALLEL_USER_BUFFERS_H

#include "model/job.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_USER_BUFFERS = 12,          /**< of one type of products */
    ME_USER_BUFFERS_SCATTERED = 4, /**< of them, unless configured */
};

/** What user buffers are sized by. */
typedef struct me_user_buffers {
    uint64_t world;  /**< ranks of the job */
    uint64_t tensor; /**< ranks that share a layer */
    uint64_t rows;   /**< of a micro-batch, of all tensor ranks */
    uint64_t hidden; /**< elements of a row */
    bool is_fp8;     /**< products in FP8 have them */
    bool is_bf16;    /**< products in bfloat16 have them */
    uint64_t dgrads; /**< whose result is scattered in pieces: 0 to 2 */
    uint64_t rings;  /**< of all that is scattered, in rings: 0 to 4 */
} me_user_buffers;

/** The job's. */
me_user_buffers me_user_buffers_of(const me_config *config);

/** How many there are. */
uint64_t me_user_buffers_count(const me_user_buffers *shape);

/** Bytes of all of them, of their streams and of their communicator; 0: there are
 *  none. */
uint64_t me_user_buffers_bytes(const me_user_buffers *shape);

#endif /* MEMEST_PARALLEL_USER_BUFFERS_H */
