/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/search_queue.h"

#include "base/alloc.h"

bool me_search_entry_is_before(const me_search_entry *a,
                               const me_search_entry *b)
{
    if (a->bound.step_ns != b->bound.step_ns) {
        return a->bound.step_ns < b->bound.step_ns;
    }
    if (a->bound.bytes != b->bound.bytes) {
        return a->bound.bytes < b->bound.bytes;
    }
    return a->index < b->index;
}

me_status me_search_queue_init(uint32_t capacity, me_search_queue *queue_out)
{
    me_search_entry *items = me_alloc(capacity, sizeof *items, "search.queue");
    if (items == NULL) {
        return ME_ERR_NOMEM;
    }
    *queue_out = (me_search_queue){.items = items};
    return ME_OK;
}

void me_search_queue_fini(me_search_queue *queue)
{
    me_free(queue->items);
    *queue = (me_search_queue){.count = 0};
}

void me_search_queue_push(me_search_queue *queue, me_search_entry entry)
{
    me_search_entry *items = queue->items;
    uint32_t i = queue->count++;
    while (i > 0 && me_search_entry_is_before(&entry, &items[(i - 1) / 2])) {
        items[i] = items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    items[i] = entry;
}

void me_search_queue_pop(me_search_queue *queue)
{
    me_search_entry *items = queue->items;
    const uint32_t n = --queue->count;
    const me_search_entry last = items[n];
    uint32_t i = 0;
    for (uint32_t child = 1; child < n; child = 2 * i + 1) {
        child += child + 1 < n &&
                 me_search_entry_is_before(&items[child + 1], &items[child]);
        if (!me_search_entry_is_before(&items[child], &last)) {
            break;
        }
        items[i] = items[child];
        i = child;
    }
    items[i] = last;
}
