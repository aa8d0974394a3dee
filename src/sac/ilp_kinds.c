/* SPDX-License-Identifier: BSD-3-Clause */
/* Layers of a model are alike, and a search among them tries them all in turn.
 * Counting them instead leaves nothing to search. */
#include "sac/ilp_impl.h"

#include <math.h>

static const uint32_t NONE = UINT32_MAX;

static bool is_near(double a, double b, double scale)
{
    return fabs(a - b) <= ME_SAC_TIE * scale;
}

static bool is_alike(const me_sac_ilp *p, uint32_t a, uint32_t b)
{
    const me_sac_candidate *left = &p->candidates[a];
    const me_sac_candidate *right = &p->candidates[b];
    const me_sac_module *m = &p->graph->modules[left->module];
    const me_sac_module *o = &p->graph->modules[right->module];
    bool alike = left->act_bytes == right->act_bytes &&
                 left->all_bytes == right->all_bytes &&
                 left->is_forced == right->is_forced &&
                 m->n_segments == o->n_segments &&
                 is_near(m->sac_ms, o->sac_ms, m->sac_ms);
    for (uint32_t s = 0; alike && s < m->n_segments; s++) {
        const double scale = fmax(fabs(m->slopes[s]), fabs(m->intercepts[s]));
        alike = is_near(m->slopes[s], o->slopes[s], scale) &&
                is_near(m->intercepts[s], o->intercepts[s], scale);
    }
    return alike;
}

/** Are @p a and @p b alike, and what lies in them? */
static bool is_same_tree(const me_sac_ilp *p, uint32_t a, uint32_t b)
{
    if (p->candidates[a].last - a != p->candidates[b].last - b) {
        return false;
    }
    for (uint32_t i = 0; a + i <= p->candidates[a].last; i++) {
        if (p->candidates[a + i].last - a != p->candidates[b + i].last - b ||
            !is_alike(p, a + i, b + i)) {
            return false;
        }
    }
    return true;
}

/** The innermost candidate that @p c lies in, or NONE. */
static uint32_t parent_of(const me_sac_ilp *p, uint32_t c)
{
    for (uint32_t i = c; i > 0; i--) {
        if (p->candidates[i - 1].last >= c) {
            return i - 1;
        }
    }
    return NONE;
}

/** A module in another lies in it as a whole: names can be made that say no. */
static bool is_tree(const me_sac_ilp *p)
{
    for (uint32_t c = 0; c < p->n_candidates; c++) {
        const uint32_t parent = parent_of(p, c);
        if (parent != NONE &&
            p->candidates[c].last > p->candidates[parent].last) {
            return false;
        }
    }
    return true;
}

/** The kind of an earlier candidate that @p c can stand for. What lies in a
 *  member that is not its kind's first is as what lies in the first. */
static uint32_t find_kind(const me_sac_ilp *p, uint32_t c)
{
    const uint32_t parent = parent_of(p, c);
    if (parent != NONE) {
        const uint32_t first = p->kinds[p->candidates[parent].kind].first;
        if (first != parent) {
            return p->candidates[first + (c - parent)].kind;
        }
    }
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        const uint32_t first = p->kinds[k].first;
        if (parent_of(p, first) == parent && is_same_tree(p, first, c)) {
            return k;
        }
    }
    return NONE;
}

void me_sac_find_kinds(me_sac_ilp *p, bool joined)
{
    joined = joined && is_tree(p);
    p->n_kinds = 0;
    for (uint32_t c = 0; c < p->n_candidates; c++) {
        const uint32_t position = p->candidates[c].position;
        uint32_t k = joined ? find_kind(p, c) : NONE;
        if (k == NONE) {
            k = p->n_kinds++;
            p->kinds[k] = (me_sac_kind){c, 0, position, position};
        }
        me_sac_kind *kind = &p->kinds[k];
        kind->n_members++;
        kind->from = position < kind->from ? position : kind->from;
        kind->to = position > kind->to ? position : kind->to;
        p->candidates[c].kind = k;
    }
}

bool me_sac_choose(me_sac_ilp *p)
{
    uint32_t inside = 0; // candidates before this one lie in a chosen one
    for (uint32_t c = 0; c < p->n_candidates; c++) {
        uint32_t *left = &p->counts[p->candidates[c].kind];
        p->chosen[c] = *left > 0 && c >= inside;
        if (p->chosen[c]) {
            (*left)--;
            inside = p->candidates[c].last + 1;
        }
    }
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        if (p->counts[k] > 0) {
            return false;
        }
    }
    return true;
}
