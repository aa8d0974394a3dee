/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/rank_device.h"

me_status me_rank_device_set(const me_device_memory *memory,
                             me_rank_result *result)
{
    me_communicator_result communicators[ME_DEVICE_MAX_COMMUNICATORS];
    for (size_t i = 0; i < memory->n_communicators; i++) {
        const me_device_communicator *c = &memory->communicators[i];
        communicators[i] = (me_communicator_result){
            .group = me_group_kind_name(c->group),
            .size = c->shape.size,
            .bytes = c->bytes,
        };
    }
    return me_rank_result_set_device(
        result, &(me_device_result){
                    .is_known = true,
                    .context_bytes = memory->context_bytes,
                    .library_bytes = memory->library_bytes,
                    .communicator_bytes = memory->communicator_bytes,
                    .band_bytes = me_device_memory_band_bytes(memory),
                    .communicators = communicators,
                    .n_communicators = (uint32_t)memory->n_communicators,
                });
}
