/**
 * @file
 * Rates that a pencil can work with.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_RATES_EXAMPLE_H
#define MEMEST_TESTS_SUPPORT_RATES_EXAMPLE_H

#include "time/rates.h"

/** 1 TB/s, 1 PFLOP/s of the best tile, 100 GB/s links, the measured host. */
static inline me_rates rates_example(void)
{
    me_rates r = {
        .is_known = true,
        .multiprocessors = 132,
        .half_product = 0.95e15,
        .single_product = 0.095e15,
        .fp8_product = {1.9e15, 0.95e15},
        .flash = {{0.25e15, 0.2e15}, {0.5e15, 0.4e15}},
        .fused = {{0.5e15, 0.4e15}, {1e15, 0.8e15}},
        .launch_s = 9.476595499999974e-06,
        .pair = {10e-6, 100e9, 200e9, 300e9, 5e-6, 50e9},
        .node = {20e-6, 100e9, 200e9, 300e9, 5e-6, 50e9},
        .network = {40e-6, 10e9, 20e9, 20e9, 25e-6, 5e9},
    };
    for (int i = 0; i < ME_KERNEL_COUNT; i++) {
        r.memory[i] = 1e12;
    }
    return r;
}

#endif /* MEMEST_TESTS_SUPPORT_RATES_EXAMPLE_H */
