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

/** Of the four whose results are scattered by a method that the job names. */
static uint64_t count_rings(const me_tp_overlap_config *o)
{
    const me_overlap_method methods[] = {o->qkv_dgrad, o->fc1_dgrad,
                                         o->proj_fprop, o->fc2_fprop};
    uint64_t rings = 0;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        rings += methods[i] == ME_OVERLAP_RING_EXCHANGE;
    }
    return rings;
}

uint64_t me_rank_user_buffer_bytes(const me_config *config)
{
    const me_tp_overlap_config *o = &config->tp_overlap;
    const me_parallel_config *p = &config->parallel;
    const bool is_fp8 = config->fp8.format != ME_FP8_NONE;
    const bool has_bf16_ends = config->fp8.first_last_layers_bf16 &&
                               (config->fp8.num_layers_at_start_in_bf16 > 0 ||
                                config->fp8.num_layers_at_end_in_bf16 > 0);
    if (!o->is_on) {
        return 0;
    }
    const uint64_t rows =
        me_size_mul(config->train.micro_batch_size, config->model.seq_length) /
        (uint64_t)p->context;
    return me_user_buffers_bytes(&(me_user_buffers){
        .world = (uint64_t)p->world_size,
        .tensor = (uint64_t)p->tensor,
        .rows = rows,
        .hidden = config->model.hidden_size,
        .is_fp8 = is_fp8,
        .is_bf16 = !is_fp8 || has_bf16_ends,
        .dgrads = (uint64_t)(o->qkv_dgrad != ME_OVERLAP_BULK) +
                  (uint64_t)(o->fc1_dgrad != ME_OVERLAP_BULK),
        .rings = count_rings(o),
    });
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
