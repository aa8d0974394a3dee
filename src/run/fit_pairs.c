/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "run/fit_internal.h"

#include <stdlib.h>

/** What a change alone saves of the rank that is worst; 0: nothing. */
static uint64_t saved_by(const me_fit_run *r, const me_fit_trial *t)
{
    return t->end == ME_FIT_REFUSED || t->bytes >= r->base_bytes
               ? 0
               : r->base_bytes - t->bytes;
}

/** Those first that would be enough, by what they cost; then by what they
 *  save. */
static int compare_pairs(const void *x, const void *y)
{
    const me_fit_pair *a = x;
    const me_fit_pair *b = y;
    if (a->is_promising != b->is_promising) {
        return a->is_promising ? -1 : 1;
    }
    if (!a->is_promising && a->saved_bytes != b->saved_bytes) {
        return a->saved_bytes > b->saved_bytes ? -1 : 1;
    }
    if (a->a + a->b != b->a + b->b) {
        return a->a + a->b - b->a - b->b;
    }
    return a->a - b->a;
}

int32_t me_fit_pairs_make(const me_fit_run *run, me_fit_pair *pairs)
{
    const me_fit_run *r = run;
    int32_t n = 0;
    for (int32_t i = 0; i < r->n_singles; i++) {
        const uint64_t saved = saved_by(r, &r->singles[i]);
        for (int32_t j = i + 1; j < r->n_singles && saved > 0; j++) {
            const uint64_t more = saved_by(r, &r->singles[j]);
            if (more > 0) {
                pairs[n++] = (me_fit_pair){.a = i,
                                           .b = j,
                                           .saved_bytes = saved + more,
                                           .is_promising =
                                               saved + more >= r->excess_bytes};
            }
        }
    }
    qsort(pairs, (size_t)n, sizeof *pairs, compare_pairs);
    return n;
}

/** The trial that takes least of those that exist; NULL: none. */
static const me_fit_trial *least_of(const me_fit_trial *trials, int32_t n)
{
    const me_fit_trial *least = NULL;
    for (int32_t i = 0; i < n; i++) {
        if (trials[i].end != ME_FIT_REFUSED &&
            (least == NULL || trials[i].bytes < least->bytes)) {
            least = &trials[i];
        }
    }
    return least;
}

me_status me_fit_try_pairs(me_fit_run *run, me_diag *diag, bool *found_out)
{
    me_fit_run *r = run;
    const size_t most = (size_t)r->n_singles * (size_t)r->n_singles / 2 + 1;
    me_fit_pair *pairs = me_alloc(most, sizeof *pairs, "fit.pairs");
    me_fit_trial *trials =
        me_alloc((size_t)r->bounds.pairs, sizeof *trials, "fit.trials");
    me_status status =
        pairs == NULL || trials == NULL ? me_fit_no_memory(diag) : ME_OK;
    status = me_transport_agree(r->transport, status, diag);
    if (status == ME_OK && pairs != NULL && trials != NULL) {
        const int32_t n_pairs = me_fit_pairs_make(r, pairs);
        int32_t n = 0;
        for (int32_t i = 0; i < n_pairs && n < r->bounds.pairs; i++) {
            n += me_fit_changes_join(&r->singles[pairs[i].a].change,
                                     &r->singles[pairs[i].b].change,
                                     &trials[n].change)
                     ? 1
                     : 0;
        }
        r->fit.n_together = 2;
        status = me_fit_try(r, trials, n, diag, found_out);
        const me_fit_trial *least = least_of(trials, n);
        r->has_pair = least != NULL;
        if (least != NULL) {
            r->pair = *least;
        }
    }
    me_free(pairs);
    me_free(trials);
    return status;
}

/** From changes that were tried together on: always the next that saves most.
 *
 *  @param trials  room for all single changes
 *  @param n       changes that @p best has
 *  @param best    what the first of them are added to */
static me_status extend(me_fit_run *r, me_fit_trial *trials, int32_t n,
                        me_fit_trial best, me_diag *diag, bool *found_out)
{
    me_status status = ME_OK;
    bool is_less = true;
    for (int32_t n_together = n + 1;
         status == ME_OK && is_less && !*found_out &&
         n_together <= r->bounds.together;
         n_together++) {
        int32_t n_trials = 0;
        for (int32_t i = 0; i < r->n_singles; i++) {
            trials[n_trials] = (me_fit_trial){.end = ME_FIT_REFUSED};
            n_trials +=
                r->singles[i].end != ME_FIT_REFUSED &&
                        me_fit_changes_join(&best.change, &r->singles[i].change,
                                            &trials[n_trials].change)
                    ? 1
                    : 0;
        }
        r->fit.n_together = n_together;
        status = me_fit_try(r, trials, n_trials, diag, found_out);
        const me_fit_trial *least = least_of(trials, n_trials);
        is_less = least != NULL && least->bytes < best.bytes;
        if (is_less) {
            best = *least;
        }
    }
    return status;
}

/** From the pair that takes least on, unless it takes more than a change alone;
 *  then from the change: each may be in the way of what the other needs. */
me_status me_fit_try_more(me_fit_run *run, me_diag *diag, bool *found_out)
{
    me_fit_run *r = run;
    me_fit_trial *trials =
        me_alloc((size_t)r->n_singles, sizeof *trials, "fit.trials");
    me_status status = me_transport_agree(
        r->transport, trials == NULL ? me_fit_no_memory(diag) : ME_OK, diag);
    const me_fit_trial *least = least_of(r->singles, r->n_singles);
    if (status == ME_OK && trials != NULL && least != NULL) {
        if (r->has_pair && r->pair.bytes < least->bytes) {
            status = extend(r, trials, 2, r->pair, diag, found_out);
        }
        if (status == ME_OK && !*found_out) {
            status = extend(r, trials, 1, *least, diag, found_out);
        }
    }
    me_free(trials);
    return status;
}
