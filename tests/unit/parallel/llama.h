/**
 * @file
 * The parameters of the small Llama that the measured jobs train: 4 layers,
 * hidden size 1024, feed-forward 2816, 16 heads in 4 groups, 32,000 words.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_UNIT_PARALLEL_LLAMA_H
#define MEMEST_TESTS_UNIT_PARALLEL_LLAMA_H

#include "parallel/buffer.h"

#include <stdint.h>

/** Sizes of its parameters. */
#define ME_LLAMA_WORDS UINT64_C(32768000)
#define ME_LLAMA_NORM  UINT64_C(1024)
#define ME_LLAMA_PROJ  UINT64_C(1048576)
#define ME_LLAMA_QKV   UINT64_C(1572864)
#define ME_LLAMA_FC1   UINT64_C(5767168)
#define ME_LLAMA_FC2   UINT64_C(2883584)

/** A layer in the order of registration. */
#define ME_LLAMA_LAYER                                                         \
    {ME_LLAMA_NORM, false}, {ME_LLAMA_PROJ, false}, {ME_LLAMA_QKV, false},     \
        {ME_LLAMA_NORM, false}, {ME_LLAMA_FC1, false},                         \
    {                                                                          \
        ME_LLAMA_FC2, false                                                    \
    }

enum {
    ME_LLAMA_PARAMS = 27,
    ME_LLAMA_OUTPUT = 26, /**< index of the output layer */
    ME_LLAMA_FINAL_NORM = 25
};

/** Index of a layer's parameter: 0 input norm to 5 second feed-forward. */
static inline uint32_t me_llama_index(uint32_t layer, uint32_t param)
{
    return 1 + 6 * layer + param;
}

static const me_buffer_param me_llama[ME_LLAMA_PARAMS] = {
    {ME_LLAMA_WORDS, false}, ME_LLAMA_LAYER, ME_LLAMA_LAYER,
    ME_LLAMA_LAYER,          ME_LLAMA_LAYER, {ME_LLAMA_NORM, false},
    {ME_LLAMA_WORDS, false},
};

#endif /* MEMEST_TESTS_UNIT_PARALLEL_LLAMA_H */
