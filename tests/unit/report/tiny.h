/**
 * @file
 * A job of four ranks on two stages whose report can be worked out by hand.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_UNIT_REPORT_TINY_H
#define MEMEST_TESTS_UNIT_REPORT_TINY_H

#include "report/job_report.h"

enum {
    TINY_WORLD = 4
};

me_config me_tiny_config(void);

/**
 * Simulate and gather. Stage 1 is stage 0 with 1000 more bytes, all times
 * 2^26, so that 16 bytes of the stream are a GiB. The work is dealt out to the
 * processes of @p transport.
 *
 * @param is_folded  a part for each of the two classes, or one for each rank,
 *                   the highest rank first
 */
me_status me_tiny_gather(me_transport *transport, const me_config *config,
                         bool is_folded, me_diag *diag, me_report **report_out);

#endif /* MEMEST_TESTS_UNIT_REPORT_TINY_H */
