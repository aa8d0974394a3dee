/* SPDX-License-Identifier: BSD-3-Clause */
#include "time/transfers.h"

#include "base/alloc.h"
#include "tensor/launch.h"

enum {
    N_BITS = 4
};

me_link_end me_link_end_of(const me_time_item *exchange, int32_t stage,
                           unsigned bit)
{
    const int32_t next = exchange->next;
    const int32_t previous = exchange->previous;
    switch (bit) {
    case ME_TRANSFER_TO_NEXT: return (me_link_end){stage, next, false, true};
    case ME_TRANSFER_TO_PREVIOUS:
        return (me_link_end){stage, previous, true, true};
    case ME_TRANSFER_FROM_PREVIOUS:
        return (me_link_end){previous, stage, false, false};
    default: return (me_link_end){next, stage, true, false};
    }
}

me_status me_transfers_add(me_transfers *t, const me_time_item *exchange,
                           int64_t asked)
{
    me_transfer *items = me_grow(t->items, t->count, &t->capacity,
                                 sizeof *items, "time.transfers");
    if (items == NULL) {
        return ME_ERR_NOMEM;
    }
    t->items = items;
    t->items[t->count++] = (me_transfer){
        .item = *exchange,
        .asked = asked,
        .done = ME_TIME_NEVER,
    };
    return ME_OK;
}

int64_t me_transfers_end(const me_transfers *t)
{
    return t->n_done == 0 ? ME_TIME_NEVER : t->items[t->n_done - 1].done;
}

/** Its turn has come. */
static me_status begin(me_transfers *t, me_transfer *x, me_links *links)
{
    const int64_t before = me_transfers_end(t);
    const int64_t at = x->asked > before ? x->asked : before;
    me_status status = ME_OK;
    for (unsigned i = 0; i < N_BITS && status == ME_OK; i++) {
        const unsigned bit = 1U << i;
        const me_link_end end = me_link_end_of(&x->item, t->stage, bit);
        if ((x->item.transfers & bit) != 0) {
            status = me_links_post(links, &end, at, &x->numbers[i]);
        }
    }
    x->has_begun = true;
    return status;
}

static bool is_done(const me_transfers *t, const me_transfer *x,
                    const me_links *links, int64_t *at_out)
{
    int64_t at = ME_TIME_NEVER;
    for (unsigned i = 0; i < N_BITS; i++) {
        const unsigned bit = 1U << i;
        const me_link_end end = me_link_end_of(&x->item, t->stage, bit);
        if ((x->item.transfers & bit) != 0 &&
            !me_links_done(links, &end, x->numbers[i], x->item.ns, &at)) {
            return false;
        }
    }
    *at_out = at;
    return true;
}

me_status me_transfers_run(me_transfers *t, me_links *links,
                           bool *has_moved_out)
{
    while (t->n_done < t->count) {
        me_transfer *x = &t->items[t->n_done];
        if (!x->has_begun) {
            *has_moved_out = true;
            const me_status status = begin(t, x, links);
            if (status != ME_OK) {
                return status;
            }
        }
        if (!is_done(t, x, links, &x->done)) {
            break;
        }
        *has_moved_out = true;
        t->n_done++;
    }
    return ME_OK;
}

me_transfer *me_transfers_find(me_transfers *t, const me_time_item *action)
{
    const unsigned bit = action->part == ME_TIME_BACKWARD
                             ? ME_TRANSFER_FROM_NEXT
                             : ME_TRANSFER_FROM_PREVIOUS;
    for (uint32_t i = 0; i < t->count; i++) {
        me_transfer *x = &t->items[i];
        if (!x->is_taken && (x->item.transfers & bit) != 0 &&
            x->item.chunk == action->chunk &&
            x->item.microbatch == action->microbatch) {
            return x;
        }
    }
    return NULL;
}

void me_transfers_fini(me_transfers *t)
{
    me_free(t->items);
    *t = (me_transfers){.count = 0};
}
