/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/rank_counts.h"

#include "config/config_private.h"

#include <stdarg.h>
#include <stdio.h>

uint64_t me_rank_counts_ranks(const me_rank_counts *said)
{
    if (said->ranks != 0) {
        return said->ranks;
    }
    if (said->nodes == 0 && said->per_node == 0) {
        return 0;
    }
    // At most 2^48: both are at most 2^24.
    return (said->nodes == 0 ? 1 : said->nodes) *
           (said->per_node == 0 ? 1 : said->per_node);
}

me_status me_config_leave_world_open(me_config *config, me_diag *diag,
                                     const char *format, ...)
{
    char reason[ME_DIAG_TEXT];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (config->own->world_is_open == NULL) {
        config->own->world_is_open = me_arena_strdup(config->own->text, reason);
    }
    return config->own->world_is_open != NULL
               ? ME_OK
               : me_fail(diag, ME_ERR_NOMEM, "no memory for a launch command");
}

me_status me_rank_counts_check_cards(const me_rank_counts *torchrun,
                                     uint64_t visible, me_diag *diag)
{
    return visible == 0 || torchrun->per_node <= visible
               ? ME_OK
               : me_fail(diag, ME_ERR_CONFIG,
                         "torchrun starts %d ranks a node, and "
                         "CUDA_VISIBLE_DEVICES lists %d cards: those without "
                         "one stop",
                         (int)torchrun->per_node, (int)visible);
}
