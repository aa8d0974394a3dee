/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/user_buffers.h"

#include "base/size.h"

#include <stddef.h>

enum {
    GRANULARITY = 2 << 20, /* of CUDA's memory, mapped or not */
    BF16_BYTES = 2,
    REGIONS = 32, /* NVTE_MAX_REGIONS */
    PEERS = 8192, /* NVTE_MAX_PEERS */
    NEIGHBOURS = 32,
    MULTIPROCESSORS = 32,
    OPERATIONS = 32,
    FLAGS_OF_A_KIND = 1024,
    KINDS = 5,
    INT_BYTES = 4,
    FLAG_PAGES_BYTES = 2 * (64 << 10),
    GATHERED_IN_RINGS = 4, /* qkv, fc1 forward; proj, fc2 backward */
    STREAMS = 3,           /* that products run on at most, of four pieces */
    STREAM_BYTES = 544 << 10
};

/** Memory of CUDA's own comes in whole pieces. */
static uint64_t allocated(uint64_t bytes)
{
    return me_round_up(bytes, GRANULARITY);
}

/** LOCALSIZE: addresses of neighbours, flags of operations and of all peers. */
static uint64_t region_bytes(void)
{
    const uint64_t single_node =
        2 * (uint64_t)NEIGHBOURS * MULTIPROCESSORS + OPERATIONS;
    const uint64_t offset =
        2 * (uint64_t)REGIONS * NEIGHBOURS + 2 * single_node + PEERS;
    const uint64_t flags =
        (uint64_t)FLAGS_OF_A_KIND * KINDS + (uint64_t)PEERS * REGIONS * 3;
    return INT_BYTES * (offset + flags);
}

/** create_communicator_grouped2(): the region, and in pieces of their own what
 *  was sent to and received of each rank, and pages of flags. */
static uint64_t communicator_bytes(uint64_t world)
{
    const uint64_t counters =
        me_size_mul(world, (uint64_t)(1 + REGIONS) * INT_BYTES);
    return me_size_add(allocated(region_bytes()),
                       allocated(me_size_add(counters, FLAG_PAGES_BYTES)));
}

/** CommOverlapP2PBase::initialize(): what ranks send is kept beside the rank's
 *  own until it is summed. */
static uint64_t ring_bytes(uint64_t bytes, uint64_t ranks)
{
    return me_size_mul(bytes / ranks, 2 * ranks - 1);
}

/** CommOverlapCore::initialize() and what is built on it: streams for products, one
 *  for communication; in rings one to send for each of those, and one to receive.
 *  What CUDA takes for a stream was measured on an H200: 28 MiB of 52, 30 of 56,
 *  56 of 104, in pieces of 2 MiB. */
static uint64_t stream_count(const me_user_buffers *s)
{
    const uint64_t rings = GATHERED_IN_RINGS + s->rings;
    return rings * (2 * me_min_u64(s->tensor, STREAMS) + 1) +
           (ME_USER_BUFFERS - rings) * (STREAMS + 1);
}

/** The buffers of products of one type. */
static uint64_t set_bytes(const me_user_buffers *s, uint64_t gathered_bytes)
{
    const uint64_t elements = me_size_mul(s->rows, s->hidden);
    const uint64_t scattered_bytes = me_size_mul(elements, BF16_BYTES);
    const uint64_t scattered = ME_USER_BUFFERS_SCATTERED + s->dgrads;
    const uint64_t plain =
        me_size_mul(scattered - s->rings, allocated(scattered_bytes));
    const uint64_t rings = me_size_mul(
        s->rings, allocated(ring_bytes(scattered_bytes, s->tensor)));
    const uint64_t gathered =
        me_size_mul(ME_USER_BUFFERS - scattered,
                    allocated(me_size_mul(elements, gathered_bytes)));
    return me_size_add(gathered, me_size_add(plain, rings));
}

uint64_t me_user_buffers_count(const me_user_buffers *shape)
{
    return ME_USER_BUFFERS *
           ((uint64_t)shape->is_fp8 + (uint64_t)shape->is_bf16);
}

uint64_t me_user_buffers_bytes(const me_user_buffers *shape)
{
    if (me_user_buffers_count(shape) == 0) {
        return 0;
    }
    const uint64_t fp8 = shape->is_fp8 ? set_bytes(shape, 1) : 0;
    const uint64_t bf16 = shape->is_bf16 ? set_bytes(shape, BF16_BYTES) : 0;
    const uint64_t sets = (uint64_t)shape->is_fp8 + (uint64_t)shape->is_bf16;
    const uint64_t streams =
        allocated(sets * stream_count(shape) * STREAM_BYTES);
    return me_size_add(communicator_bytes(shape->world),
                       me_size_add(streams, me_size_add(fp8, bf16)));
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

me_user_buffers me_user_buffers_of(const me_config *config)
{
    const me_tp_overlap_config *o = &config->tp_overlap;
    const me_parallel_config *p = &config->parallel;
    const me_fp8_config *f = &config->fp8;
    const bool is_fp8 = f->format != ME_FP8_NONE;
    const bool has_bf16_ends =
        f->first_last_layers_bf16 && (f->num_layers_at_start_in_bf16 > 0 ||
                                      f->num_layers_at_end_in_bf16 > 0);
    return (me_user_buffers){
        .world = (uint64_t)p->world_size,
        .tensor = (uint64_t)p->tensor,
        .rows = me_size_mul(config->train.micro_batch_size,
                            config->model.seq_length) /
                (uint64_t)p->context,
        .hidden = config->model.hidden_size,
        .is_fp8 = o->is_on && is_fp8,
        .is_bf16 = o->is_on && (!is_fp8 || has_bf16_ends),
        .dgrads = (uint64_t)(o->qkv_dgrad != ME_OVERLAP_BULK) +
                  (uint64_t)(o->fc1_dgrad != ME_OVERLAP_BULK),
        .rings = count_rings(o),
    };
}
