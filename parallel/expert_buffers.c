/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/expert_buffers.h"

#include "base/size.h"

#include <stddef.h>

/** Tokens that a channel holds of each peer, by number of ranks: the most of
 *  get_dispatch_config() and get_combine_config(), those of other nodes rounded
 *  up to what is sent at a time. */
typedef struct deepep_config {
    int32_t ranks;
    uint64_t nvl_tokens;
    uint64_t rdma_tokens;
} deepep_config;

static const deepep_config configs[] = {
    {2, 256, 132},  {4, 256, 132},   {8, 256, 132},   {16, 288, 140},
    {24, 288, 128}, {32, 288, 128},  {48, 288, 128},  {64, 288, 128},
    {96, 480, 132}, {128, 560, 132}, {144, 720, 132}, {160, 720, 132},
};

static const deepep_config *find(int32_t ranks)
{
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        if (configs[i].ranks == ranks) {
            return &configs[i];
        }
    }
    return NULL;
}

bool me_deepep_knows(int32_t ranks)
{
    return find(ranks) != NULL;
}

enum {
    WORKSPACE_BYTES = 32 << 20,
    HEAP_BYTES = 512 << 20,
    MOST_TOPK = 128, /* that a token's place has room for */
    MOST_SCALES = 128,
    SOURCE_BYTES = 8, /* of where a token comes from */
    INDEX_BYTES = 8,
    ALIGNMENT = 128
};

/** A token in a buffer, with its experts, weights and scales. */
static uint64_t token_bytes(uint64_t hidden_bytes)
{
    return hidden_bytes + SOURCE_BYTES +
           (uint64_t)MOST_TOPK * (INDEX_BYTES + 4) + (uint64_t)MOST_SCALES * 4;
}

uint64_t me_deepep_bytes(int32_t ranks, int32_t sms, uint64_t hidden_bytes)
{
    const deepep_config *config = find(ranks);
    if (config == NULL) {
        return 0;
    }
    const uint64_t channels = (uint64_t)sms / 2;
    const uint64_t peers = me_min_u64((uint64_t)ranks, ME_NVLINK_RANKS);
    const uint64_t nodes = me_max_u64((uint64_t)ranks / ME_NVLINK_RANKS, 1);
    const uint64_t token = token_bytes(hidden_bytes);
    const uint64_t nvl =
        channels * peers * ((2 * nodes + 3) * 4 + config->nvl_tokens * token);
    const uint64_t signals = (uint64_t)ME_NVLINK_RANKS * (4 + 8 + 8);
    uint64_t bytes = me_round_up(nvl, ALIGNMENT) + signals + WORKSPACE_BYTES;
    if (nodes > 1) {
        const uint64_t rdma = 2 * channels * nodes *
                              ((ME_NVLINK_RANKS * 2ULL + 2) * 4 +
                               config->rdma_tokens * (token + 16));
        bytes += me_round_up(rdma, HEAP_BYTES);
    }
    return bytes;
}

uint64_t me_hybridep_bytes(const me_hybridep *shape)
{
    const uint64_t per_node = shape->ranks / shape->nodes;
    const uint64_t scales = shape->hidden / 128 * 4;
    const uint64_t probs = shape->experts * per_node * 4;
    const uint64_t own = shape->hidden * 2 + probs; // a token of a node's ranks
    const uint64_t all = me_size_mul(shape->ranks, shape->tokens);
    uint64_t bytes = me_size_mul(all, own + scales);
    if (shape->nodes > 1) {
        const uint64_t others = (shape->nodes - 1) * shape->tokens;
        const uint64_t sent =
            shape->hidden * 2 + shape->experts * shape->ranks * 4 + scales;
        bytes = me_size_add(bytes, me_size_mul(shape->tokens, sent));
        bytes = me_size_add(bytes, me_size_mul(others, own + scales));
        bytes = me_size_add(bytes, me_size_mul(2 * others, own));
    }
    return bytes;
}
