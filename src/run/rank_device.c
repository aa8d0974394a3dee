/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/rank_device.h"

#include "base/size.h"
#include "parallel/expert_buffers.h"
#include "parallel/user_buffers.h"

uint64_t me_rank_exchange_bytes(const me_config *config)
{
    const me_moe_options *m = &config->moe;
    const me_parallel_config *p = &config->parallel;
    if (m->num_experts == 0 || m->token_dispatcher != ME_DISPATCHER_FLEX) {
        return 0;
    }
    const int32_t ranks = p->expert_tensor * p->expert;
    const uint64_t hidden =
        m->latent_size > 0 ? m->latent_size : config->model.hidden_size;
    if (m->flex_backend == ME_FLEX_DEEPEP) {
        return me_deepep_bytes(ranks, ME_DEEPEP_SMS, 2 * hidden);
    }
    const uint64_t tokens =
        me_size_mul(config->train.micro_batch_size, config->model.seq_length) /
        (uint64_t)(p->tensor * p->context);
    return me_hybridep_bytes(&(me_hybridep){
        .ranks = (uint64_t)ranks,
        .nodes = me_max_u64((uint64_t)ranks / ME_NVLINK_RANKS, 1),
        .tokens = tokens,
        .hidden = hidden,
        .experts = m->num_experts / (uint64_t)p->expert,
    });
}

uint64_t me_rank_user_buffer_bytes(const me_config *config)
{
    const me_user_buffers buffers = me_user_buffers_of(config);
    return me_user_buffers_bytes(&buffers);
}

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
                    .user_buffer_bytes = memory->user_buffer_bytes,
                    .communicator_bytes = memory->communicator_bytes,
                    .band_bytes = me_device_memory_band_bytes(memory),
                    .communicators = communicators,
                    .n_communicators = (uint32_t)memory->n_communicators,
                });
}
