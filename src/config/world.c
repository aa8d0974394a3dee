/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/size.h"
#include "config/config_private.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

uint64_t me_config_model_parallel(const me_config *config)
{
    const me_parallel_config *p = &config->parallel;
    return me_size_mul(me_size_mul((uint64_t)p->tensor, (uint64_t)p->pipeline),
                       (uint64_t)p->context);
}

/** A reason that begins with an option is about that one. */
static me_status refuse_open(const char *reason, me_diag *diag)
{
    char option[64];
    const me_status status = me_fail(diag, ME_ERR_CONFIG, "%s", reason);
    (void)snprintf(option, sizeof option, "%.*s", (int)strcspn(reason, " "),
                   reason);
    return reason[0] == '-' ? me_fail_flag(diag, status, option) : status;
}

me_status me_config_derive_world(me_config *config, int32_t num_processes,
                                 me_diag *diag)
{
    me_parallel_config *p = &config->parallel;
    const uint64_t model_parallel = me_config_model_parallel(config);
    me_status status = ME_OK;
    if (p->world_size == 0 && config->own->world_is_open != NULL) {
        return refuse_open(config->own->world_is_open, diag);
    }
    if (p->world_size == 0 && num_processes > 1) {
        p->world_size = num_processes;
        status = me_config_assume_of(config, "parallel.world_size", diag,
                                     "the world size is %d, the number of MPI "
                                     "processes",
                                     (int)num_processes);
    } else if (p->world_size == 0 && config->own->tasks_around != 0) {
        p->world_size = (int32_t)config->own->tasks_around;
        status = me_config_assume_of(
            config, "parallel.world_size", diag,
            "the world size is %d, %s, since no launcher and no WORLD_SIZE "
            "gives it",
            (int)p->world_size, config->own->tasks_variable);
    } else if (p->world_size == 0) {
        p->world_size = (int32_t)me_min_u64(model_parallel, INT32_MAX);
        status = me_config_assume_of(
            config,
            "parallel.world_size parallel.tensor parallel.pipeline parallel.context",
            diag,
            "the world size is %d, tensor x pipeline x "
            "context, since nothing else gives it",
            (int)p->world_size);
    }
    p->data =
        (int32_t)((uint64_t)p->world_size / me_max_u64(model_parallel, 1));
    return status;
}
