/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/megatron/megatron_fsdp.h"
#include "train/megatron/trainer.h"

/* param_and_grad_buffer.py's FixedPoolAllocator: --fsdp-double-buffer. */

enum {
    NO_BUFFER = -1
};

/** Elements of a bucket's parameters, without what pads them. */
static uint64_t own_numel(const me_megatron_fsdp *f, uint32_t bucket)
{
    const me_fsdp_bucket *b = f->buckets[bucket].layout;
    uint64_t numel = 0;
    for (uint32_t i = 0; i < b->n_items; i++) {
        numel += f->layout->items[b->first_item + i].numel;
    }
    return numel;
}

/** The n-th bucket of a unit; the number of all buckets: it has fewer. */
static uint32_t bucket_of_unit(const me_megatron_fsdp *f, int32_t unit,
                               uint32_t n)
{
    uint32_t i = 0;
    while (i < f->n_buckets &&
           (f->buckets[i].layout->unit != unit || n-- > 0)) {
        i++;
    }
    return i;
}

/** _is_two_bucket_group_equal(). */
static bool is_like(const me_megatron_fsdp *f, int32_t a, int32_t b)
{
    uint32_t n = 0;
    for (;; n++) {
        const uint32_t i = bucket_of_unit(f, a, n);
        const uint32_t k = bucket_of_unit(f, b, n);
        if (i == f->n_buckets || k == f->n_buckets) {
            return i == k && n > 0;
        }
        if (f->buckets[i].dtype != f->buckets[k].dtype ||
            own_numel(f, i) != own_numel(f, k)) {
            return false;
        }
    }
}

/** Units that are like one, as many as there are of any; ME_NO_FSDP_UNIT: there
 *  are no units. */
static int32_t most_frequent_unit(const me_megatron_fsdp *f)
{
    int32_t most = ME_NO_FSDP_UNIT;
    uint32_t count = 0;
    for (int32_t a = 0; a < (int32_t)f->n_modules; a++) {
        uint32_t like = 0;
        for (int32_t b = 0; b < (int32_t)f->n_modules; b++) {
            like += is_like(f, b, a) ? 1 : 0;
        }
        if (like > count) {
            most = a;
            count = like;
        }
    }
    return most;
}

static void make_pool(me_megatron_fsdp *f, me_fsdp_pool *pool)
{
    me_engine *e = f->t->e;
    const size_t n = (size_t)f->n_buckets + 1;
    pool->buffers =
        me_engine_alloc(e, ME_FSDP_POOL_BUFFERS * n, sizeof(me_tensor *));
    pool->planned = me_engine_alloc(e, n, sizeof *pool->planned);
    pool->used = me_engine_alloc(e, n, sizeof *pool->used);
    for (uint32_t i = 0; me_engine_is_ok(e) && i < f->n_buckets; i++) {
        pool->planned[i] = NO_BUFFER;
        pool->used[i] = NO_BUFFER;
    }
}

void me_megatron_fsdp_make_pools(me_megatron_fsdp *f)
{
    if (!f->t->config->parallel.fsdp_double_buffer) {
        return;
    }
    make_pool(f, &f->weight_pool);
    make_pool(f, &f->gradient_pool);
    const int32_t most = most_frequent_unit(f);
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        me_fsdp_group_buffers *b = &f->buckets[i];
        const int32_t unit = b->layout->unit;
        b->is_pooled = unit != ME_NO_FSDP_UNIT && is_like(f, unit, most);
        while (b->is_pooled && bucket_of_unit(f, unit, b->place) != i) {
            b->place++;
        }
    }
}

static me_tensor **buffer_of(const me_fsdp_pool *pool, uint32_t place,
                             int8_t buffer)
{
    return &pool->buffers[(uint32_t)ME_FSDP_POOL_BUFFERS * place +
                          (uint32_t)buffer];
}

/** Is a buffer free for the place of a bucket in its unit? */
static bool is_idle(const me_megatron_fsdp *f, const me_fsdp_pool *pool,
                    uint32_t place, int8_t buffer)
{
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        if (f->buckets[i].is_pooled && f->buckets[i].place == place &&
            pool->used[i] == buffer) {
            return false;
        }
    }
    return true;
}

/** The buffer that was planned for the bucket, or the first that is free. */
static int8_t choose(const me_megatron_fsdp *f, me_fsdp_pool *pool,
                     uint32_t bucket, bool is_strict)
{
    const uint32_t place = f->buckets[bucket].place;
    const int8_t planned = pool->planned[bucket];
    if (is_strict && planned != NO_BUFFER && is_idle(f, pool, place, planned)) {
        return planned;
    }
    for (int i = 0; i < ME_FSDP_POOL_BUFFERS; i++) {
        const int8_t buffer = (int8_t)i;
        if (is_idle(f, pool, place, buffer)) {
            if (is_strict && planned == NO_BUFFER) {
                pool->planned[bucket] = buffer;
            }
            return buffer;
        }
    }
    return NO_BUFFER;
}

me_tensor *me_fsdp_pool_take(me_megatron_fsdp *f, me_fsdp_pool *pool,
                             uint32_t bucket, me_dtype dtype, bool is_strict)
{
    me_engine *e = f->t->e;
    const me_fsdp_group_buffers *b = &f->buckets[bucket];
    if (pool->used[bucket] == NO_BUFFER) {
        pool->used[bucket] = choose(f, pool, bucket, is_strict);
    }
    if (pool->used[bucket] == NO_BUFFER) {
        me_engine_fail(e, ME_ERR_CONFIG,
                       "Megatron-FSDP's double buffers are all in use where "
                       "one more layer needs its own, which Megatron-LM stops "
                       "at (--fsdp-double-buffer)");
        return me_none(e);
    }
    me_tensor **buffer = buffer_of(pool, b->place, pool->used[bucket]);
    if (*buffer == NULL || me_numel(*buffer) < b->numel) {
        me_tensor *larger = me_keep(e, "get_tensor", ME_CATEGORY_BUFFER, dtype,
                                    ME_SHAPE(b->numel));
        me_release(e, *buffer);
        *buffer = larger;
    }
    return *buffer;
}

void me_fsdp_pool_give(me_fsdp_pool *pool, uint32_t bucket)
{
    pool->used[bucket] = NO_BUFFER;
}

void me_fsdp_pool_fini(me_engine *e, const me_megatron_fsdp *f,
                       me_fsdp_pool *pool)
{
    const uint32_t n = pool->buffers == NULL
                           ? 0
                           : (uint32_t)ME_FSDP_POOL_BUFFERS * f->n_buckets;
    for (uint32_t i = 0; i < n; i++) {
        me_clear(e, &pool->buffers[i]);
    }
}
