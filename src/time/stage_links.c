/* SPDX-License-Identifier: BSD-3-Clause */
#include "time/stage_links.h"

#include "base/alloc.h"

/** When one side of each transfer of a link was ready, in order. */
typedef struct posts {
    int64_t *at;
    uint32_t count;
    uint32_t capacity;
} posts;

struct me_links {
    int32_t n;
    posts *sides; /**< from, to, output or gradient, receive or send */
};

static size_t count_sides(int32_t n)
{
    return 4 * (size_t)n * (size_t)n;
}

me_links *me_links_create(int32_t n_stages)
{
    me_links *links = me_alloc(1, sizeof *links, "time.links");
    if (links == NULL) {
        return NULL;
    }
    links->n = n_stages;
    links->sides =
        me_alloc(count_sides(n_stages), sizeof *links->sides, "time.links");
    if (links->sides == NULL) {
        me_free(links);
        return NULL;
    }
    return links;
}

void me_links_destroy(me_links *links)
{
    if (links == NULL) {
        return;
    }
    for (size_t i = 0; i < count_sides(links->n); i++) {
        me_free(links->sides[i].at);
    }
    me_free(links->sides);
    me_free(links);
}

static posts *side_of(const me_links *links, const me_link_end *end,
                      bool is_send)
{
    const size_t pair = (size_t)end->from * (size_t)links->n + (size_t)end->to;
    return &links->sides[4 * pair + (end->is_gradient ? 2U : 0U) +
                         (is_send ? 1U : 0U)];
}

me_status me_links_post(me_links *links, const me_link_end *end, int64_t at,
                        uint32_t *number_out)
{
    posts *p = side_of(links, end, end->is_send);
    int64_t *times =
        me_grow(p->at, p->count, &p->capacity, sizeof *times, "time.links");
    if (times == NULL) {
        return ME_ERR_NOMEM;
    }
    p->at = times;
    p->at[p->count] = at;
    *number_out = p->count++;
    return ME_OK;
}

bool me_links_done(const me_links *links, const me_link_end *end,
                   uint32_t number, int64_t ns, int64_t *at)
{
    const posts *sends = side_of(links, end, true);
    const posts *receives = side_of(links, end, false);
    if (number >= sends->count || number >= receives->count) {
        return false;
    }
    const int64_t sent = sends->at[number];
    const int64_t received = receives->at[number];
    const int64_t done = (sent > received ? sent : received) + ns;
    *at = done > *at ? done : *at;
    return true;
}
