/* SPDX-License-Identifier: BSD-3-Clause */
/* Which candidates share a probe, and which are the very same job. */
#include "base/alloc.h"
#include "search/probe.h"

#include <stdlib.h>
#include <string.h>

/** A candidate and its key, to be sorted. */
typedef struct keyed {
    char *key; /**< owned; NULL: another has it now */
    uint32_t candidate;
} keyed;

static int compare_keys(const void *a, const void *b)
{
    const keyed *x = a;
    const keyed *y = b;
    const int order = strcmp(x->key, y->key);
    return order != 0
               ? order
               : (x->candidate > y->candidate) - (x->candidate < y->candidate);
}

static me_status make_keys(const me_candidates *c, const me_config *job,
                           me_probe_kind kind, me_diag *diag, keyed *list,
                           uint32_t *n_out)
{
    me_status status = ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < c->count; i++) {
        me_str key = {0};
        bool has_probe = false;
        if (c->items[i].end == ME_SEARCH_UNDECIDED) {
            status = me_candidate_probe_key(&c->items[i], job, kind, diag,
                                            &has_probe, &key);
        }
        if (has_probe) {
            list[*n_out] = (keyed){.key = key.text, .candidate = i};
            ++*n_out;
        } else {
            me_str_fini(&key);
        }
    }
    return status;
}

static me_status fail_probes(me_diag *diag)
{
    return me_fail(diag, ME_ERR_NOMEM, "no host memory for probes");
}

me_status me_probes_find(const me_candidates *candidates, const me_config *job,
                         me_diag *diag, me_probes *probes)
{
    const uint32_t n_candidates = candidates->count;
    uint32_t n = 0;
    keyed *list = me_alloc(n_candidates, sizeof *list, "probes");
    me_probes *p = probes;
    p->of = me_alloc(n_candidates, sizeof *p->of, "probes");
    p->keys = me_alloc(n_candidates, sizeof(char *), "probes");
    p->items = me_alloc(n_candidates, sizeof *p->items, "probes");
    p->first = me_alloc(n_candidates, sizeof *p->first, "probes");
    const bool has_room = list != NULL && p->of != NULL && p->keys != NULL &&
                          p->items != NULL && p->first != NULL;
    const me_status status =
        has_room ? make_keys(candidates, job, p->kind, diag, list, &n)
                 : fail_probes(diag);
    if (status == ME_OK && has_room) {
        memset(p->of, 0xff, n_candidates * sizeof *p->of);
        if (n > 1) {
            qsort(list, n, sizeof *list, compare_keys);
        }
    }
    for (uint32_t i = 0; status == ME_OK && i < n; i++) {
        if (p->count == 0 || strcmp(p->keys[p->count - 1], list[i].key) != 0) {
            p->keys[p->count] = list[i].key;
            p->first[p->count++] = list[i].candidate;
            list[i].key = NULL;
        }
        p->of[list[i].candidate] = p->count - 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        me_free(list[i].key);
    }
    me_free(list);
    return status;
}

/** Keys of those that are undecided, and whose layers were probed. */
static me_status make_like_keys(const me_probes *probes, const me_config *job,
                                const me_candidates *c, me_diag *diag,
                                keyed *list, uint32_t *n_out)
{
    const me_digest none = {0, 0};
    me_status status = ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < c->count; i++) {
        if (c->items[i].end != ME_SEARCH_UNDECIDED ||
            probes->of[i] == UINT32_MAX) {
            continue;
        }
        const me_digest d = probes->items[probes->of[i]].digest;
        me_str key = {0};
        if (!me_digest_is_equal(d, none)) {
            me_str_printf(&key, "%016llx%016llx ", (unsigned long long)d.a,
                          (unsigned long long)d.b);
            status = me_candidate_like_key(&c->items[i], job, diag, &key);
            list[*n_out] = (keyed){.key = key.text, .candidate = i};
            ++*n_out;
        }
    }
    return status;
}

me_status me_probes_find_like(const me_probes *probes, const me_config *job,
                              me_diag *diag, me_candidates *candidates)
{
    uint32_t n = 0;
    me_candidate *items = candidates->items;
    keyed *list = me_alloc(candidates->count, sizeof *list, "probes");
    const me_status status =
        list == NULL ? fail_probes(diag)
                     : make_like_keys(probes, job, candidates, diag, list, &n);
    if (status == ME_OK && n > 1) {
        qsort(list, n, sizeof *list, compare_keys);
    }
    for (uint32_t i = 1; status == ME_OK && i < n; i++) {
        if (strcmp(list[i - 1].key, list[i].key) == 0) {
            items[list[i - 1].candidate].next_like = list[i].candidate;
            items[list[i].candidate].is_like = true;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        me_free(list[i].key);
    }
    me_free(list);
    return status;
}

void me_probes_fini(me_probes *probes)
{
    for (uint32_t i = 0; i < probes->count; i++) {
        me_free(probes->keys[i]);
    }
    me_free((void *)probes->keys);
    me_free(probes->items);
    me_free(probes->first);
    me_free(probes->of);
    *probes = (me_probes){.count = 0};
}
