/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/framework.h"
#include "config/torch/torch_schedule.h"
#include "parallel/schedule_lower.h"

static bool shards_parameters(const me_config *config)
{
    return config->torch.data_parallel == ME_DATA_PARALLEL_FULLY_SHARD;
}

static bool has_twins(const me_config *config)
{
    (void)config;
    return false;
}

static bool late_frees_matter(const me_config *config)
{
    return config->parallel.pipeline > 1;
}

static bool waits_for_transfers(const me_config *config)
{
    (void)config;
    return false;
}

static const char *host_lacks(const me_config *config)
{
    if (config->parallel.tensor > 1) {
        return "DTensor's dispatch";
    }
    if (config->parallel.pipeline > 1 &&
        config->torch.data_parallel != ME_DATA_PARALLEL_NONE) {
        return config->torch.data_parallel == ME_DATA_PARALLEL_FULLY_SHARD
                   ? "fully_shard in pipeline stages"
                   : "DistributedDataParallel in pipeline stages";
    }
    return config->torch.cpu_offload ? "copies and an optimizer of its own"
                                     : NULL;
}

static const char *untimed(const me_config *config)
{
    (void)config;
    return NULL;
}

static me_status check_card(me_config *config, uint64_t compute_capability,
                            me_diag *diag)
{
    (void)config;
    (void)compute_capability;
    (void)diag;
    return ME_OK;
}

const me_framework_traits me_torch_traits = {
    .shards_parameters = shards_parameters,
    .has_twins = has_twins,
    .untimed = untimed,
    .late_frees_matter = late_frees_matter,
    .waits_for_transfers = waits_for_transfers,
    .host_lacks = host_lacks,
    .runs_without_order = me_torch_has_loop,
    .check_order = me_torch_check_order,
    .lower_order = me_pipeline_order_lower_torch,
    .check_card = check_card,
    .has_module_hooks = true,
};
