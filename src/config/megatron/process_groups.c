/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config.h"
#include "config/megatron/megatron_rules.h"

#include <string.h>

/* What initialize_model_parallel() (core/parallel_state.py) asserts of process
 * groups that are not modelled, of a job with its ranks known. */

/** "UCC-backend requires CUDA_DEVICE_MAX_CONNECTIONS > 1", of jobs without a
 *  pipeline too. */
static me_status check_ucc(const me_config *config, me_diag *diag)
{
    static const char flag[] = "--pipeline-model-parallel-comm-backend";
    const char *connections =
        me_config_variable(config, "CUDA_DEVICE_MAX_CONNECTIONS");
    const bool is_one = connections != NULL && strcmp(connections, "1") == 0;
    return is_one && me_flag_list_has(&config->not_modelled, flag)
               ? me_fail(diag, ME_ERR_CONFIG,
                         "%s ucc does not go with "
                         "CUDA_DEVICE_MAX_CONNECTIONS=1: give more, or none",
                         flag)
               : ME_OK;
}

/** "Hybrid context parallel requires an even number of ranks". */
static me_status check_hybrid(const me_config *config, me_diag *diag)
{
    static const char flag[] = "--hybrid-context-parallel";
    const me_parallel_config *p = &config->parallel;
    const int64_t ranks = (int64_t)p->data * p->context;
    return ranks % 2 != 0 && me_flag_list_has(&config->not_modelled, flag)
               ? me_fail(diag, ME_ERR_CONFIG,
                         "%s needs an even number of ranks of data and context "
                         "parallelism, not %d x %d",
                         flag, (int)p->data, (int)p->context)
               : ME_OK;
}

me_rule *const me_group_rules[] = {
    check_ucc,
    check_hybrid,
    NULL,
};
