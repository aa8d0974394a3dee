/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/pool.h"
#include "alloc/replay.h"
#include "api/api_private.h"
#include "base/alloc.h"
#include "run/job_card.h"

/** Where a block of the pool's is in its life. */
typedef enum block_state {
    BLOCK_FREE,
    BLOCK_LIVE,
    BLOCK_PENDING
} block_state;

/** What is known of one of the pool's numbers, which it uses again. */
typedef struct block_info {
    uint32_t generation; /**< how often it was used */
    uint32_t epoch;      /**< of a pending free */
    block_state state;
} block_info;

struct memest_pool {
    me_pool *pool;
    block_info *blocks; /**< by the pool's number; owned */
    uint32_t n_blocks;
};

static me_status read_options(const memest_pool_options *options, me_diag *diag,
                              me_pool_options *pool_out)
{
    memest_pool_options asked;
    if (!me_api_read(options, &asked, sizeof asked)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "struct_size of the options is too small: begin with "
                       "MEMEST_INIT(memest_pool_options)");
    }
    *pool_out = me_replay_options_default().pool;
    pool_out->limit_bytes = asked.limit_bytes;
    me_status status = ME_OK;
    if (asked.alloc_conf != NULL) {
        status = me_alloc_conf_parse(asked.alloc_conf, diag, &pool_out->conf);
    }
    return status == ME_OK && asked.device != NULL
               ? me_card_pool(asked.device, diag, pool_out)
               : status;
}

memest_status memest_pool_create(const memest_pool_options *options,
                                 memest_pool **pool_out, memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    me_pool_options pool_options;
    me_status status = read_options(options, diag, &pool_options);
    if (status != ME_OK) {
        return me_api_status(status);
    }
    memest_pool *pool = me_alloc(1, sizeof *pool, "api.pool");
    status = pool == NULL ? ME_ERR_NOMEM
                          : me_pool_create(&pool_options, &pool->pool);
    if (status != ME_OK) {
        memest_pool_destroy(pool);
        return me_api_status(
            me_fail(diag, status, "no host memory for a pool"));
    }
    *pool_out = pool;
    return MEMEST_OK;
}

void memest_pool_destroy(memest_pool *pool)
{
    if (pool != NULL) {
        me_pool_destroy(pool->pool);
        me_free(pool->blocks);
        me_free(pool);
    }
}

/** Room for what is known of block @p number. */
static me_status reserve(memest_pool *pool, uint32_t number)
{
    const uint32_t before = pool->n_blocks;
    block_info *blocks = me_grow_to(pool->blocks, number, &pool->n_blocks,
                                    sizeof *blocks, "api.blocks");
    if (blocks == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = before; i < pool->n_blocks; i++) {
        blocks[i] = (block_info){.state = BLOCK_FREE};
    }
    pool->blocks = blocks;
    return ME_OK;
}

static memest_status fail_alloc(const memest_pool *pool, me_status status,
                                uint64_t bytes, me_diag *diag)
{
    if (status == ME_ERR_CAPACITY) {
        me_str text = {0};
        me_pool_oom_text(pool->pool, &text);
        (void)me_fail(diag, status, "%s", me_str_text(&text));
        me_str_fini(&text);
    } else {
        (void)me_fail(diag, status, "cannot serve a request of %llu bytes: %s",
                      (unsigned long long)bytes, me_status_text(status));
    }
    return me_api_status(status);
}

memest_status memest_pool_alloc(memest_pool *pool, uint64_t bytes,
                                uint64_t stream, memest_block *block_out,
                                memest_error *error)
{
    me_pool_block number = ME_POOL_NO_BLOCK;
    me_status status = me_pool_alloc(pool->pool, bytes, stream, &number);
    if (status == ME_OK && number != ME_POOL_NO_BLOCK) {
        status = reserve(pool, number);
        if (status != ME_OK) {
            me_pool_free(pool->pool, number);
        }
    }
    if (status != ME_OK) {
        return fail_alloc(pool, status, bytes, me_api_diag(error));
    }
    if (number == ME_POOL_NO_BLOCK) {
        *block_out = 0;
        return MEMEST_OK;
    }
    block_info *info = &pool->blocks[number];
    info->generation++;
    info->state = BLOCK_LIVE;
    *block_out = (uint64_t)info->generation << 32 | number;
    return MEMEST_OK;
}

/** What is known of a caller's block; NULL: it is not in @p state. */
static block_info *find(memest_pool *pool, memest_block block,
                        block_state state)
{
    const uint32_t number = (uint32_t)block;
    block_info *info = number < pool->n_blocks ? &pool->blocks[number] : NULL;
    return info != NULL && info->state == state &&
                   info->generation == (uint32_t)(block >> 32)
               ? info
               : NULL;
}

static memest_status fail_block(memest_error *error, memest_block block,
                                const char *what)
{
    return me_api_status(me_fail(me_api_diag(error), ME_ERR_CONFIG,
                                 "block %llu %s", (unsigned long long)block,
                                 what));
}

memest_status memest_pool_free(memest_pool *pool, memest_block block,
                               memest_error *error)
{
    if (block == 0) {
        return MEMEST_OK;
    }
    block_info *info = find(pool, block, BLOCK_LIVE);
    if (info == NULL) {
        return fail_block(error, block, "is not in use, and cannot be freed");
    }
    info->state = BLOCK_FREE;
    me_pool_free(pool->pool, (me_pool_block)block);
    return MEMEST_OK;
}

memest_status memest_pool_free_requested(memest_pool *pool, memest_block block,
                                         memest_error *error)
{
    if (block == 0) {
        return MEMEST_OK;
    }
    block_info *info = find(pool, block, BLOCK_LIVE);
    if (info == NULL) {
        return fail_block(error, block, "is not in use, and cannot be freed");
    }
    info->state = BLOCK_PENDING;
    info->epoch = me_pool_free_requested(pool->pool, (me_pool_block)block);
    return MEMEST_OK;
}

memest_status memest_pool_free_completed(memest_pool *pool, memest_block block,
                                         memest_error *error)
{
    if (block == 0) {
        return MEMEST_OK;
    }
    block_info *info = find(pool, block, BLOCK_PENDING);
    if (info == NULL) {
        return fail_block(error, block, "has no free that could complete");
    }
    info->state = BLOCK_FREE;
    me_pool_free_completed(pool->pool, (me_pool_block)block, info->epoch);
    return MEMEST_OK;
}

memest_status memest_pool_empty_cache(memest_pool *pool, memest_error *error)
{
    const me_status status = me_pool_empty_cache(pool->pool);
    if (status != ME_OK) {
        (void)me_fail(me_api_diag(error), status,
                      "no host memory to empty the cache");
    }
    return me_api_status(status);
}

void memest_pool_reset_peaks(memest_pool *pool)
{
    me_pool_reset_peaks(pool->pool);
}

bool memest_pool_read(const memest_pool *pool,
                      memest_pool_counters *counters_out)
{
    me_pool_stats stats;
    me_pool_read(pool->pool, &stats);
#define STAT(kind) stats.stat[ME_POOL_##kind][ME_POOL_ALL]
    const memest_pool_counters whole = {
        .requested_bytes = STAT(REQUESTED_BYTES).current,
        .requested_peak_bytes = STAT(REQUESTED_BYTES).peak,
        .allocated_bytes = STAT(ALLOCATED_BYTES).current,
        .allocated_peak_bytes = STAT(ALLOCATED_BYTES).peak,
        .reserved_bytes = STAT(RESERVED_BYTES).current,
        .reserved_peak_bytes = STAT(RESERVED_BYTES).peak,
        .active_bytes = STAT(ACTIVE_BYTES).current,
        .active_peak_bytes = STAT(ACTIVE_BYTES).peak,
        .inactive_split_bytes = STAT(INACTIVE_SPLIT_BYTES).current,
        .inactive_split_peak_bytes = STAT(INACTIVE_SPLIT_BYTES).peak,
        .allocations = STAT(ALLOCATION).current,
        .segments = STAT(SEGMENT).current,
        .num_alloc_retries = stats.num_alloc_retries,
        .num_ooms = stats.num_ooms,
    };
#undef STAT
    return me_api_fill(counters_out, &whole, sizeof whole);
}

memest_status memest_pool_message(const memest_pool *pool, char **text_out,
                                  memest_error *error)
{
    me_str text = {0};
    if (me_pool_last_oom(pool->pool)->requested_bytes > 0) {
        me_pool_oom_text(pool->pool, &text);
    }
    return me_api_text(ME_OK, &text, me_api_diag(error), text_out, NULL);
}

memest_status memest_replay(const memest_pool_options *options,
                            const char *path, memest_replay_format format,
                            char **text_out, memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    me_replay_options replay = me_replay_options_default();
    me_str text = {0};
    memest_pool_options asked;
    me_status status = read_options(options, diag, &replay.pool);
    if (status == ME_OK && (unsigned)format > MEMEST_REPLAY_CSV) {
        status = me_fail(diag, ME_ERR_CONFIG, "no such format of a replay: %d",
                         (int)format);
    }
    if (status == ME_OK) {
        (void)me_api_read(options, &asked, sizeof asked);
        replay.conf_text = asked.alloc_conf;
        replay.format = (me_replay_format)format;
        status = me_replay_run(&replay, path, diag, NULL, &text);
    }
    return me_api_text(status, &text, diag, text_out, NULL);
}
