/**
 * @file
 * What a card, its links and its host are able to do, from the `rates` group
 * of a file of `configs/cards/`, and how long one launch takes by it.
 *
 * Rates are of real code and not of a data sheet: for a card that was not
 * measured they are its sheet times what a measured card reaches of its own,
 * and the file says so and how far off they may be.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TIME_RATES_H
#define MEMEST_TIME_RATES_H

#include "base/status.h"
#include "base/str.h"
#include "model/event.h"
#include "tensor/launch.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_RATES_TEXT = 160
};

/** A link's two collectives of one size of group; all others are as these. */
typedef struct me_link_rates {
    double latency_s;  /**< of a collective */
    double all_reduce; /**< bytes of the whole buffer a second */
    double all_gather; /**< and of a reduce-scatter */
    double all_to_all;
    double p2p_latency_s;
    double p2p; /**< bytes a second */
} me_link_rates;

/** Bytes and FLOPs a second, and seconds. */
typedef struct me_rates {
    char source[ME_RATES_TEXT]; /**< "measured on …" or what they are by */
    bool is_known;              /**< the card's file has the group */
    double uncertainty;         /**< 0.1: 10 % */
    double multiprocessors;
    double half_product;   /**< FLOPs a second, bf16 and fp16 */
    double single_product; /**< fp32, tf32 off */
    double fp8_product[2]; /**< FP8, with a scale a tensor, and a block */
    double nvlink;         /**< bytes a second one way, of the data sheet: other
                                cards' links are to these as theirs to it */
    double half_sheet;     /**< what the data sheet says, dense */
    double single_sheet;
    double flash[2][2]; /**< FLOPs a second; head size 64, 128; forward,
                                backward */
    double fused[2][2]; /**< the same of cuDNN's kernels */
    double memory[ME_KERNEL_COUNT]; /**< bytes a second; of products: 85 % of
                                         a copy's */
    double sm_clock;                /**< Hz at most; 0: the file does not say */
    double memory_sheet; /**< bytes a second of the card's memory, by its clock
                              and the width of its bus; 0: as sm_clock */
    double launch_s;     /**< an in-place add from Python, of the host */
    me_link_rates pair;  /**< of 2 ranks of a node */
    me_link_rates node;  /**< of 4 ranks and more of a node */
    me_link_rates network;
    char network_source[ME_RATES_TEXT];
} me_rates;

/**
 * Read the `rates` of a card's file. Local.
 *
 * @return ME_OK, with is_known false if the file has no such group; ME_ERR_IO;
 *         ME_ERR_SYNTAX; ME_ERR_CONFIG for a value that is missing or absurd
 */
me_status me_rates_load(const char *path, me_diag *diag,
                        me_rates *rates_out) ME_MUST_CHECK;

/** Add every rate to a statement (base/statement.h): "rates.copy_tbs"; none
 *  if they are not known. Local. */
void me_rates_state(const me_rates *rates, me_str *statement);

/** Who takes part in a collective. */
typedef struct me_time_group {
    int32_t size;
    bool is_remote; /**< its ranks lie on several nodes */
} me_time_group;

/** Nanoseconds that a kernel keeps the card busy. */
int64_t me_kernel_ns(const me_rates *rates, const me_launch *kernel);

/** Nanoseconds of a collective once all are there. */
int64_t me_collective_ns(const me_rates *rates, const me_launch *collective,
                         const me_time_group *group);

/** Bytes that cross each link of a ring of @p size ranks of a node in a second,
 *  by the rates of the card's own links. */
double me_link_bus_rate(const me_rates *rates, me_collective kind,
                        int32_t size);

/** Nanoseconds of a transfer between two stages. */
int64_t me_transfer_ns(const me_rates *rates, uint64_t bytes, bool is_remote);

/** Whose Python and C++ the host runs. */
typedef enum me_host_program {
    ME_HOST_OF_MEGATRON,
    ME_HOST_OF_TORCH,
    ME_HOST_PROGRAMS
} me_host_program;

/** Nanoseconds of the host for a launch: of a kernel, a collective, its own
 *  work, or one exchange. */
int64_t me_host_ns(const me_rates *rates, me_host_program program,
                   const me_launch *launch);

#endif /* MEMEST_TIME_RATES_H */
