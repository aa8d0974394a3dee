/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/shards.h"

#include "app/program.h"
#include "train/megatron/megatron.h"

me_status me_shards_find(void *self, const me_plan *plan, int32_t rank,
                         me_diag *diag, int32_t *class_out)
{
    (void)self;
    const me_card no_card = {.multiprocessors = 1};
    me_engine *engine = NULL;
    me_program program = {.chunks = NULL};
    me_status status = me_engine_create(&no_card, &engine);
    if (status == ME_OK) {
        status = me_program_init(plan, rank, &program);
    }
    if (status != ME_OK) {
        (void)me_fail(diag, status, "no host memory for the plan");
    } else {
        (void)me_megatron_shard_classes(engine, &program.config, &program.comm,
                                        class_out);
        status = me_engine_status(engine, diag);
    }
    me_program_fini(&program);
    me_engine_destroy(engine);
    return status;
}
