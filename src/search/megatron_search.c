/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/rules.h"

const me_search_rules me_megatron_search = {
    .axes = me_megatron_axes,
    .bound = me_megatron_bound,
    .has_probe = me_megatron_has_probe,
    .probe_options = me_megatron_probe_options,
    .set_probe = me_megatron_set_probe,
    .has_flags = true,
};
