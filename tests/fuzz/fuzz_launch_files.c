/* SPDX-License-Identifier: BSD-3-Clause */
/* links: config base */
#include "config/launch_accelerate.h"
#include "config/launch_hosts.h"
#include "config/launch_mpirun.h"
#include "support/fuzz.h"

static void check(me_status status, const me_config *config,
                  const me_rank_counts *counts)
{
    if (status == ME_OK && config->parallel.world_size != 0) {
        abort(); // nobody is to set it here
    }
    if (status == ME_OK && counts->per_node > ME_RANKS_MOST) {
        abort();
    }
}

/** Host files and accelerate's configuration: any file can be given to any
 *  launcher. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const me_gpus_here here = {.of_node = 4};
    const char *path = fuzz_file(".hosts", data, size);
    const me_deepspeed_said deepspeed = {.host_file = path, .is_used = true};
    const me_accelerate_said accelerate = {.file = path, .is_used = true};
    const me_launch_hosts hosts = {.file = path};
    me_config *config = me_config_create();
    for (int i = 0; config != NULL && i < 3; i++) {
        me_diag diag = {.status = ME_OK};
        me_rank_counts counts = {.is_used = true};
        const me_status status =
            i == 0
                ? me_deepspeed_settle(&deepspeed, &here, &counts, config, &diag)
            : i == 1 ? me_accelerate_settle(&accelerate, &here, &counts, config,
                                            &diag)
                     : me_mpirun_settle(&hosts, 0, &counts, config, &diag);
        check(status, config, &counts);
        if (status != ME_OK) {
            fuzz_check_line(diag.text);
        }
    }
    me_config_destroy(config);
    (void)unlink(path);
    return 0;
}
