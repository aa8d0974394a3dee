/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/rules.h"

const me_search_rules me_megatron_search = {
    .axes = me_megatron_axes,
    .bound = me_megatron_bound,
    .probes =
        {
            [ME_PROBE_LAYER] = {me_megatron_has_layer, me_megatron_layer_sets,
                                me_megatron_set_layer, me_megatron_has_rest},
            [ME_PROBE_PLACE] = {me_megatron_has_place, me_megatron_place_sets,
                                me_megatron_set_place, NULL},
        },
    .like_options = me_megatron_like_options,
    .has_flags = true,
};
