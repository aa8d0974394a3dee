/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/margin.h"

#include "base/size.h"
#include "report/verdict.h"

static int64_t band(const me_config *config, me_basis basis,
                    const me_rank_result *result)
{
    const me_band parts = me_verdict_band(config, basis, result);
    return (int64_t)me_band_bytes(&parts);
}

me_margin me_margin_more(const me_config *config, const me_rank_result *result)
{
    return (me_margin){band(config, ME_BASIS_RESERVED, result),
                       band(config, ME_BASIS_DEVICE, result)};
}

me_margin me_margin_less(const me_config *config, const me_rank_result *result)
{
    const me_margin more = me_margin_more(config, result);
    return (me_margin){-more.limit_bytes, -more.card_bytes};
}

uint64_t me_margin_apply(uint64_t bytes, int64_t more)
{
    if (more >= 0) {
        return me_size_add(bytes, (uint64_t)more);
    }
    const uint64_t less = (uint64_t)-more;
    return bytes == UINT64_MAX ? bytes : bytes - me_min_u64(less, bytes - 1);
}

bool me_margin_fits(const me_simulation *simulation,
                    const me_footprint *footprint, me_margin margin)
{
    const uint64_t limit = simulation->memory_limit_bytes;
    const uint64_t card = simulation->card->card.total_bytes;
    return simulation->alloc_conf.garbage_collection_threshold <= 0.0 &&
           (limit == 0 || footprint->reserved_bytes <=
                              me_margin_apply(limit, margin.limit_bytes)) &&
           me_size_add(footprint->reserved_bytes, footprint->outside_bytes) <=
               me_margin_apply(card, margin.card_bytes);
}

bool me_margin_is_hopeless(const me_simulation *simulation,
                           const me_footprint *footprint,
                           const me_rank_result *result)
{
    const uint64_t requested = me_result_most_bytes(result, ME_BASIS_REQUESTED);
    if (requested == ME_BYTES_UNKNOWN) {
        return false;
    }
    const me_margin more = me_margin_more(simulation->plan->config, result);
    const uint64_t limit = simulation->memory_limit_bytes;
    const me_device_card *card = &simulation->card->card;
    const uint64_t limited = me_size_add(
        me_margin_apply(limit, more.limit_bytes), footprint->timing_bytes);
    const uint64_t held =
        me_size_add(me_margin_apply(card->total_bytes, more.card_bytes),
                    footprint->timing_bytes);
    return (limit != 0 && requested > limited) ||
           me_size_add(requested, card->context_bytes) > held;
}
