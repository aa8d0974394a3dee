/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/rules.h"

const me_search_rules *me_search_rules_of(me_framework framework)
{
    static const me_search_rules *const rows[] = {
        [ME_FRAMEWORK_MEGATRON] = &me_megatron_search,
        [ME_FRAMEWORK_TORCH] = &me_torch_search,
    };
    return rows[framework];
}
