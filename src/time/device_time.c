/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/event.h"
#include "time/rates.h"

#include <assert.h>
#include <math.h>

/** What a kernel takes beside its work: filling the card and draining it.
 *  Assumed, not measured. */
static const double PRODUCT_OVERHEAD_S = 3e-6;
static const double MEMORY_OVERHEAD_S = 2.5e-6;
static const double FLASH_OVERHEAD_S = 5e-6;

/** Of a large product's mean rate to what its best tile reaches; and of a
 *  copy's rate that a product's operands come with. Assumed. */
static const double MEAN_OF_BEST = 0.95;
static const double PRODUCT_OF_COPY = 0.85;

/** Rows of queries of one block of flash attention, and waves from which on a
 *  last one that is not full does not matter. */
enum {
    FLASH_BLOCK = 128,
    FLASH_WAVES = 6,
    FLASH_SMALL_HEAD = 64
};

/** cuBLAS's tiles and what each reaches of the largest one's rate. */
static const struct {
    double m, n, efficiency;
} tiles[] = {{128, 256, 1.0}, {128, 128, 0.88}, {64, 128, 0.72}, {64, 64, 0.5}};

enum {
    N_TILES = sizeof tiles / sizeof tiles[0],
    MAX_SPLIT = 8
};

static int64_t nanoseconds(double seconds)
{
    return (int64_t)(seconds * 1e9 + 0.5);
}

static double product_rate(const me_rates *r, const me_launch *p)
{
    switch (p->dtype) {
    case ME_DTYPE_FLOAT32: return r->single_product;
    case ME_DTYPE_UINT8: return r->fp8_product[p->is_block_scaled];
    default: return r->half_product;
    }
}

/** One tile a multiprocessor at a time, wave after wave. */
static double product_seconds(const me_rates *r, const me_launch *p)
{
    const double peak = product_rate(r, p) / MEAN_OF_BEST;
    double best = INFINITY;
    for (int t = 0; t < N_TILES; t++) {
        const double count = (double)p->batch *
                             ceil((double)p->m / tiles[t].m) *
                             ceil((double)p->n / tiles[t].n);
        for (int split = 1; split <= MAX_SPLIT; split *= 2) {
            const double waves = ceil(count * split / r->multiprocessors);
            const double flops = waves * r->multiprocessors * 2 * tiles[t].m *
                                 tiles[t].n * (double)p->k / split;
            best = fmin(best, flops / (peak * tiles[t].efficiency));
        }
    }
    const double memory =
        (double)p->bytes / (PRODUCT_OF_COPY * r->memory[ME_KERNEL_COPY]);
    return fmax(best, memory) + PRODUCT_OVERHEAD_S;
}

static bool is_attention(const me_launch *l)
{
    return l->kernel == ME_KERNEL_FLASH ||
           l->kernel == ME_KERNEL_FLASH_BACKWARD ||
           l->kernel == ME_KERNEL_FUSED_ATTENTION ||
           l->kernel == ME_KERNEL_FUSED_ATTENTION_BACKWARD;
}

static double flash_seconds(const me_rates *r, const me_launch *f)
{
    const bool is_fused = f->kernel == ME_KERNEL_FUSED_ATTENTION ||
                          f->kernel == ME_KERNEL_FUSED_ATTENTION_BACKWARD;
    const bool is_backward = f->kernel == ME_KERNEL_FLASH_BACKWARD ||
                             f->kernel == ME_KERNEL_FUSED_ATTENTION_BACKWARD;
    const bool is_large = f->k > FLASH_SMALL_HEAD;
    const double flash = is_fused ? r->fused[is_large][is_backward]
                                  : r->flash[is_large][is_backward];
    // Of float32 there is no tensor core's kernel.
    const double rate =
        f->dtype == ME_DTYPE_FLOAT32 ? fmin(flash, r->single_product) : flash;
    const double blocks =
        (double)f->batch * ceil((double)f->m / (double)FLASH_BLOCK);
    double waves = blocks / r->multiprocessors;
    double fill = 1;
    if (waves > 0 && waves < FLASH_WAVES) {
        fill = waves / ceil(waves);
    }
    return (double)f->flops / (rate * fill) + FLASH_OVERHEAD_S;
}

int64_t me_kernel_ns(const me_rates *rates, const me_launch *kernel)
{
    if (kernel->n > 0) {
        return nanoseconds(product_seconds(rates, kernel));
    }
    if (is_attention(kernel)) {
        return nanoseconds(flash_seconds(rates, kernel));
    }
    assert(rates->memory[kernel->kernel] > 0.0); // products have none
    return nanoseconds(MEMORY_OVERHEAD_S +
                       (double)kernel->bytes / rates->memory[kernel->kernel]);
}

/** How often each byte of the whole buffer crosses a link of a ring: twice in
 *  an all-reduce, once in the others, but for the rank's own part. */
static double crossings(me_collective kind, int32_t size)
{
    const double others = (double)(size - 1) / (double)size;
    return kind == ME_COLLECTIVE_ALL_REDUCE ? 2 * others : others;
}

/** Of the whole buffer, as for a group of the size it was measured with. */
static double buffer_rate(const me_link_rates *l, me_collective kind)
{
    return kind == ME_COLLECTIVE_ALL_REDUCE   ? l->all_reduce
           : kind == ME_COLLECTIVE_ALL_TO_ALL ? l->all_to_all
                                              : l->all_gather;
}

enum {
    PAIR = 2,
    MEASURED = 4 /**< ranks of the group that `node` is measured with */
};

/** Bytes that cross each link of a ring in a second. */
static double bus_rate(const me_link_rates *l, me_collective kind, int32_t size)
{
    return buffer_rate(l, kind) *
           crossings(kind, size == PAIR ? PAIR : MEASURED);
}

double me_link_bus_rate(const me_rates *rates, me_collective kind, int32_t size)
{
    return bus_rate(size == PAIR ? &rates->pair : &rates->node, kind, size);
}

int64_t me_collective_ns(const me_rates *rates, const me_launch *collective,
                         const me_time_group *group)
{
    const me_collective kind = (me_collective)collective->collective;
    if (group->size <= 1) {
        return nanoseconds(MEMORY_OVERHEAD_S);
    }
    const me_link_rates *l = group->is_remote      ? &rates->network
                             : group->size == PAIR ? &rates->pair
                                                   : &rates->node;
    const double rate =
        bus_rate(l, kind, group->size) / crossings(kind, group->size);
    return nanoseconds(l->latency_s + (double)collective->bytes / rate);
}

int64_t me_transfer_ns(const me_rates *rates, uint64_t bytes, bool is_remote)
{
    const me_link_rates *l = is_remote ? &rates->network : &rates->pair;
    return nanoseconds(l->p2p_latency_s + (double)bytes / l->p2p);
}
