/**
 * @file
 * Device memory that the libraries behind the flex dispatcher take for themselves,
 * outside of PyTorch's allocator, when a layer first dispatches: DeepEP's and
 * HybridEP's buffers (deepseek-ai/DeepEP: csrc/legacy/config.hpp and buffer.hpp;
 * branch hybrid-ep: csrc/hybrid_ep/buffer).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_PARALLEL_EXPERT_BUFFERS_H
#define MEMEST_PARALLEL_EXPERT_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_DEEPEP_SMS = 20,  /**< multiprocessors that Megatron-LM gives DeepEP */
    ME_NVLINK_RANKS = 8, /**< of a node, as DeepEP counts */
};

/** Has DeepEP a configuration for so many ranks? */
bool me_deepep_knows(int32_t ranks);

/**
 * DeepEP's buffer for neighbours, for other nodes (NVSHMEM's heap, in whole 512
 * MiB), and its workspace.
 *
 * @param sms           multiprocessors that send, two a channel
 * @param hidden_bytes  of a token
 */
uint64_t me_deepep_bytes(int32_t ranks, int32_t sms, uint64_t hidden_bytes);

/** What HybridEP's buffers are sized by. */
typedef struct me_hybridep {
    uint64_t ranks;   /**< that exchange tokens */
    uint64_t nodes;   /**< domains of NVLink that they are in */
    uint64_t tokens;  /**< of a rank at most */
    uint64_t hidden;  /**< elements of a token */
    uint64_t experts; /**< of a rank */
} me_hybridep;

/** Buffers of dispatch and combine, which share what neighbours write to. */
uint64_t me_hybridep_bytes(const me_hybridep *shape);

#endif /* MEMEST_PARALLEL_EXPERT_BUFFERS_H */
