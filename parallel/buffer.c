/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/buffer.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/size.h"

#define ME_PARAM_ALIGNMENT   UINT64_C(64)
#define ME_BUCKET_ALIGNMENT  UINT64_C(128)
#define ME_BANDWIDTH_PADDING UINT64_C(65536)
#define ME_BUCKET_NUMEL      UINT64_C(40000000)
#define ME_BUCKET_RANK_NUMEL UINT64_C(1000000)

/** A layout under construction. */
typedef struct me_layout {
    const me_buffer_rules *rules;
    me_buffer *buffer;
    uint64_t at; /**< where the next parameter starts, before alignment */
} me_layout;

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t lcm(uint64_t a, uint64_t b)
{
    return me_size_mul(a / gcd(a, b), b);
}

/** max(40,000,000, 1,000,000 ranks) elements unless given. */
uint64_t me_bucket_numel(const me_bucket_choice *choice)
{
    if (!choice->overlaps_reduction || choice->pipeline_rank > 0 ||
        choice->chunk > 0 || choice->gathers_in_step) {
        return 0;
    }
    if (choice->given_numel != 0) {
        return choice->given_numel;
    }
    ME_ASSERT(choice->shard_ranks >= 1);
    return me_max_u64(ME_BUCKET_NUMEL,
                      ME_BUCKET_RANK_NUMEL * (uint64_t)choice->shard_ranks);
}

uint64_t me_bucket_divisor(const me_buffer_rules *rules)
{
    if (!rules->is_distributed) {
        return 1;
    }
    const uint64_t divisor =
        lcm((uint64_t)rules->shard_ranks, ME_BUCKET_ALIGNMENT);
    return rules->pads_for_bandwidth ? lcm(divisor, ME_BANDWIDTH_PADDING)
                                     : divisor;
}

static me_bucket *last_bucket(const me_buffer *buffer)
{
    return &buffer->buckets[buffer->n_buckets - 1];
}

/** Open a bucket at the present place, which is that of a parameter. */
static void open_bucket(me_layout *layout)
{
    me_buffer *buffer = layout->buffer;
    buffer->buckets[buffer->n_buckets++] =
        (me_bucket){.start = layout->at, .first_slot = buffer->n_slots};
}

/** Close the last bucket at the present place; the next starts at its end. */
static void close_bucket(me_layout *layout)
{
    me_bucket *bucket = last_bucket(layout->buffer);
    bucket->unpadded_numel = layout->at - bucket->start;
    bucket->end = me_round_up(layout->at, me_bucket_divisor(layout->rules));
    bucket->n_slots = layout->buffer->n_slots - bucket->first_slot;
    layout->at = bucket->end;
}

/**
 * Place one parameter.
 *
 * @param is_open  a bucket with parameters is open
 * @return is one open afterwards?
 */
static bool place_param(me_layout *layout, const me_buffer_param *param,
                        uint32_t index, bool is_open)
{
    const me_buffer_rules *rules = layout->rules;
    me_buffer *buffer = layout->buffer;
    const bool is_alone = rules->is_distributed && param->is_shared_embedding;
    if (rules->is_distributed) {
        layout->at = me_round_up(layout->at, ME_PARAM_ALIGNMENT);
    }
    if (is_alone && is_open) {
        close_bucket(layout);
        is_open = false;
    }
    if (!is_open) {
        open_bucket(layout);
    }
    buffer->slots[buffer->n_slots++] =
        (me_slot){.param = index,
                  .bucket = buffer->n_buckets - 1,
                  .start = layout->at,
                  .numel = param->numel};
    layout->at = me_size_add(layout->at, param->numel);
    // Padding between the parameters counts towards the size of a bucket.
    const uint64_t held = layout->at - last_bucket(buffer)->start;
    if (is_alone || (rules->bucket_numel != 0 && held >= rules->bucket_numel)) {
        close_bucket(layout);
        return false;
    }
    return true;
}

/** Place all parameters, the last registered first, as backward meets them. */
static me_status place_params(const me_buffer_param *params, uint32_t n_params,
                              const me_buffer_rules *rules, me_diag *diag,
                              me_buffer *buffer)
{
    me_layout layout = {.rules = rules, .buffer = buffer};
    bool is_open = false;
    for (uint32_t i = n_params; i > 0; i--) {
        is_open = place_param(&layout, &params[i - 1], i - 1, is_open);
    }
    if (is_open) {
        close_bucket(&layout);
    }
    if (!me_size_is_valid(layout.at)) {
        return me_fail(diag, ME_ERR_OVERFLOW,
                       "the buffer of %u parameters has more elements than "
                       "64 bits can count",
                       n_params);
    }
    buffer->numel = layout.at;
    return ME_OK;
}

me_status me_buffer_create(const me_buffer_param *params, uint32_t n_params,
                           const me_buffer_rules *rules, me_diag *diag,
                           me_buffer **buffer_out)
{
    if (rules->shard_ranks < 1) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "a buffer can't be cut for %d ranks",
                       rules->shard_ranks);
    }
    me_status status = ME_OK;
    me_buffer *buffer = me_alloc(1, sizeof *buffer, "buffer");
    if (buffer != NULL) {
        buffer->slots =
            me_alloc(n_params, sizeof *buffer->slots, "buffer.slots");
        buffer->buckets =
            me_alloc(n_params, sizeof *buffer->buckets, "buffer.buckets");
    }
    if (buffer == NULL || buffer->slots == NULL || buffer->buckets == NULL) {
        status =
            me_fail(diag, ME_ERR_NOMEM,
                    "no host memory for a buffer of %u parameters", n_params);
        goto out;
    }
    status = place_params(params, n_params, rules, diag, buffer);
    if (status != ME_OK) {
        goto out;
    }
    *buffer_out = buffer;
    buffer = NULL;
out:
    me_buffer_destroy(buffer);
    return status;
}

void me_buffer_destroy(me_buffer *buffer)
{
    if (buffer == NULL) {
        return;
    }
    me_free(buffer->slots);
    me_free(buffer->buckets);
    me_free(buffer);
}
