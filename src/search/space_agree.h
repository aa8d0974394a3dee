/**
 * @file
 * Processes hold their spaces against each other: what a file of `--space` said,
 * and what is in the files that words name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SEARCH_SPACE_AGREE_H
#define MEMEST_SEARCH_SPACE_AGREE_H

#include "collectives/transport.h"
#include "search/space.h"

/**
 * Collective, before anything is decided by the space.
 *
 * @param space  of this process
 * @return ME_OK; ME_ERR_CONFIG with what differs, and for a file that is written
 *         as well (me_input_keep_apart()); ME_ERR_NOMEM, ME_ERR_MPI
 */
me_status me_space_agree(me_transport *transport, const me_space *space,
                         me_diag *diag) ME_MUST_CHECK;

#endif /* MEMEST_SEARCH_SPACE_AGREE_H */
