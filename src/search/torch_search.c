/* SPDX-License-Identifier: BSD-3-Clause */
/* A plain PyTorch job says its layout in its tree and its options: what is
 * varied of it is what the user names. */
#include "search/rules.h"

static const me_space_axis_kind axes[] = {
    {.name = "parallel.world_size",
     .title = "gpus",
     .is_asked = true,
     .degree = offsetof(me_degrees, world)},
    {.name = NULL},
};

/** Nothing is known of a tree of modules before it runs. */
static me_search_bound bound_of(const me_config *config,
                                const me_job_card *card, const me_probe *probe)
{
    (void)config;
    (void)card;
    (void)probe;
    return (me_search_bound){.bytes = 0};
}

static const char *const no_options[] = {NULL};

const me_search_rules me_torch_search = {
    .axes = axes,
    .bound = bound_of,
    .like_options = no_options,
};
