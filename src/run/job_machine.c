/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/job_machine.h"

#include "base/data_files.h"
#include "base/parse.h"
#include "config/options.h"
#include "run/machine_xml.h"

#include <stdio.h>

static me_status read_machine(const me_config *config, me_diag *diag,
                              const me_rates *rates, me_cluster *cluster_out)
{
    const char *name = config->machine.file;
    me_str path = {0};
    me_status status = me_data_find(&me_data_machines, name, diag, &path);
    if (status == ME_OK) {
        const char *file = me_str_text(&path);
        status = me_ends_with(file, ".xml")
                     ? me_machine_read_hwloc(file, rates, diag, cluster_out)
                     : me_cluster_load(file, diag, cluster_out);
    }
    me_str_fini(&path);
    return status;
}

/** A wider or narrower NVLink than the card's is in that proportion. */
static void scale_nvlink(const me_rates *rates, me_cluster_link *nvlink)
{
    if (nvlink->is_cards && nvlink->bytes > 0 && rates->nvlink > 0) {
        nvlink->scale = nvlink->bytes / rates->nvlink;
    }
}

/** Ranks and memory of a node: as the job says, else all that the machine has. */
static me_status fit_nodes(me_config *config, me_diag *diag,
                           const me_cluster *cluster)
{
    int32_t *ranks = &config->device.gpus_per_node;
    if (!me_config_is_set(config, "device.gpus_per_node")) {
        *ranks = cluster->gpus;
    }
    if (config->device.host_memory_bytes == 0) {
        config->device.host_memory_bytes = cluster->host_bytes;
    }
    if (*ranks > cluster->gpus) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "device.gpus_per_node = %d: a node of machine %.200s "
                       "has %d GPUs",
                       (int)*ranks, config->machine.file, (int)cluster->gpus);
    }
    if (config->parallel.world_size > *ranks &&
        !cluster->links[ME_LINK_NETWORK].is_there) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "machine.file = %.200s: it has no links.network, which "
                       "%d ranks at %d a node need",
                       config->machine.file, (int)config->parallel.world_size,
                       (int)*ranks);
    }
    return ME_OK;
}

/** What the machine does not change. */
static me_status assume(me_config *config, me_diag *diag,
                        const me_cluster *cluster)
{
    return me_config_assume(
        config, diag,
        "machine %s (%s): links decide predicted times alone; what NCCL's "
        "communicators take is as on the card's own links",
        cluster->name, config->machine.file);
}

me_status me_machine_choose(me_config *config, me_diag *diag, me_job_card *job)
{
    me_status status = ME_OK;
    job->has_machine = config->machine.file[0] != '\0';
    if (job->has_machine) {
        status = read_machine(config, diag, &job->rates, &job->machine);
        if (status == ME_OK) {
            status = fit_nodes(config, diag, &job->machine);
        }
        if (status == ME_OK) {
            status = assume(config, diag, &job->machine);
        }
        scale_nvlink(&job->rates, &job->machine.links[ME_LINK_NVLINK]);
    }
    job->layout = (me_cluster_layout){
        .world = config->parallel.world_size,
        .gpus_per_node = config->device.gpus_per_node,
        .is_cyclic = config->machine.placement == ME_RANKS_CYCLIC,
    };
    job->machine.layout = job->layout;
    return status;
}

me_status me_job_files_check(const me_config *config, me_diag *diag)
{
    me_device_card card;
    me_rates rates;
    me_cluster machine;
    const me_status status =
        me_card_choose(config->device.name, diag, &card, &rates);
    return status != ME_OK || config->machine.file[0] == '\0'
               ? status
               : read_machine(config, diag, &rates, &machine);
}
