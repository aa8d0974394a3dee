/**
 * @file
 * Transfers between the stages of a pipeline: the k-th send from one stage to
 * another meets the k-th receive of it there, outputs and gradients apart.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TIME_STAGE_LINKS_H
#define MEMEST_TIME_STAGE_LINKS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct me_links me_links;

/** One side of a link. */
typedef struct me_link_end {
    int32_t from; /**< pipeline ranks */
    int32_t to;
    bool is_gradient; /**< else an output */
    bool is_send;
} me_link_end;

/** @return NULL without memory; owned by the caller */
me_links *me_links_create(int32_t n_stages);

/** Give back; NULL is allowed. */
void me_links_destroy(me_links *links);

/**
 * One side of the next transfer is ready.
 *
 * @param number_out  of the transfer on its link
 * @return ME_OK or ME_ERR_NOMEM
 */
me_status me_links_post(me_links *links, const me_link_end *end, int64_t at,
                        uint32_t *number_out) ME_MUST_CHECK;

/** When both sides of transfer @p number were ready: *at is raised to it and
 *  @p ns more. @return false: not yet known */
bool me_links_done(const me_links *links, const me_link_end *end,
                   uint32_t number, int64_t ns, int64_t *at);

#endif /* MEMEST_TIME_STAGE_LINKS_H */
