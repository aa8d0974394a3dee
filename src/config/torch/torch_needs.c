/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torch/torch_settings.h"

static bool has_pipeline(const me_config *config)
{
    return config->parallel.pipeline > 1;
}

static bool has_several_nodes(const me_config *config)
{
    return config->parallel.world_size > config->device.gpus_per_node;
}

const me_option_need me_torch_needs[] = {
    {"pipeline.", has_pipeline, "parallel.pipeline over 1"},
    {"torch.num_microbatches", has_pipeline, "parallel.pipeline over 1"},
    {"torch.unshard_stages", has_pipeline, "parallel.pipeline over 1"},
    {"torch.returns_outputs", has_pipeline, "parallel.pipeline over 1"},
    {"machine.placement", has_several_nodes, "several nodes"},
    {.option = NULL},
};
