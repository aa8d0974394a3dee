/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "time/step_private.h"

bool me_step_reserve(me_step_run *s, void **items, uint32_t count,
                     uint32_t *capacity, size_t size)
{
    void *larger = me_grow(*items, count, capacity, size, "time.step");
    if (larger == NULL) {
        s->status = ME_ERR_NOMEM;
        return false;
    }
    *items = larger;
    return true;
}

/** Of the item's group. */
static me_meetings *meetings_of(const me_step_run *s, const me_time_item *x)
{
    return &s->meetings[x->group * s->n + x->first_stage];
}

bool me_step_meet(me_step_run *s, me_step_runner *r, const me_time_item *x)
{
    me_meetings *all = meetings_of(s, x);
    const uint32_t number = r->met[x->group];
    while (all->count <= number) {
        void *items = all->items;
        if (!me_step_reserve(s, &items, all->count, &all->capacity,
                             sizeof *all->items)) {
            return false;
        }
        all->items = items;
        all->items[all->count++] = (me_meeting){.latest = ME_TIME_NEVER};
    }
    me_meeting *m = &all->items[number];
    if (!r->is_posted) {
        m->arrived++;
        m->latest = me_step_later(m->latest, me_step_all_time(r));
        r->is_posted = true;
    }
    if (m->arrived < all->members) {
        return false;
    }
    const int64_t done = m->latest + x->ns;
    r->clocks[ME_CLOCK_COMMUNICATION] = done;
    r->clocks[ME_CLOCK_COMPUTE] =
        me_step_later(r->clocks[ME_CLOCK_COMPUTE], done);
    r->stage->card_busy_ns += x->ns;
    r->met[x->group]++;
    return true;
}

void me_step_count_members(me_step_run *s)
{
    for (int32_t i = 0; i < s->n; i++) {
        const me_time_program *p = s->runners[i].program;
        bool is_in[ME_GROUP_COUNT] = {false};
        for (uint32_t k = 0; k < p->n_items; k++) {
            const me_time_item *x = &p->items[k];
            if (x->kind == ME_TIME_MEET && !is_in[x->group]) {
                is_in[x->group] = true;
                meetings_of(s, x)->members++;
            }
        }
    }
}
