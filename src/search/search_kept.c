/* SPDX-License-Identifier: BSD-3-Clause */
/* What screens have simulated, until all ranks of their candidates are. */
#include "search/search_private.h"
#include "search/search_queue.h"

static me_search_entry entry_of(const me_search_run *s, uint32_t index)
{
    return (me_search_entry){s->candidates.items[index].bound, index};
}

/** The kept one that comes last. */
static me_search_kept *find_last(me_search_run *s)
{
    me_search_kept *last = &s->kept[0];
    for (uint32_t i = 1; i < s->n_kept; i++) {
        const me_search_entry a = entry_of(s, last->index);
        const me_search_entry b = entry_of(s, s->kept[i].index);
        last = me_search_entry_is_before(&a, &b) ? &s->kept[i] : last;
    }
    return last;
}

void me_search_keep(me_search_run *run, uint32_t index, me_units_done *done)
{
    me_search_run *s = run;
    const bool is_wanted = done->count > 0 && s->candidates.items[index].end ==
                                                  ME_SEARCH_UNDECIDED;
    if (is_wanted && s->n_kept == ME_SEARCH_KEPT) {
        me_search_kept *last = find_last(s);
        me_units_done_fini(&last->done);
        *last = s->kept[--s->n_kept];
    }
    if (is_wanted) {
        s->kept[s->n_kept++] = (me_search_kept){index, *done};
        *done = (me_units_done){.count = 0};
    }
    me_units_done_fini(done);
}

me_units_done me_search_kept_of(me_search_run *run, uint32_t index)
{
    me_search_run *s = run;
    for (uint32_t i = 0; i < s->n_kept; i++) {
        if (s->kept[i].index == index) {
            const me_units_done done = s->kept[i].done;
            s->kept[i] = s->kept[--s->n_kept];
            return done;
        }
    }
    return (me_units_done){.count = 0};
}
