/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/front.h"

#include "base/alloc.h"
#include "report/job_report.h"

#include <stdlib.h>

me_search_score me_search_score_of(const me_candidate *candidate)
{
    const me_search_result *r = &candidate->result;
    return (me_search_score){
        .step_ns = r->step_ns == 0 ? INT64_MAX : r->step_ns,
        .room_bytes = (int64_t)r->capacity_bytes - (int64_t)r->worst_bytes,
        .world = candidate->world,
    };
}

me_search_score me_search_score_bound(const me_candidate *candidate,
                                      uint64_t capacity_bytes)
{
    return (me_search_score){
        .step_ns = candidate->bound.step_ns,
        .room_bytes = (int64_t)capacity_bytes - (int64_t)candidate->bound.bytes,
        .world = candidate->world,
    };
}

me_search_score me_search_score_sure(const me_candidate *candidate)
{
    me_search_score score = me_search_score_of(candidate);
    if (candidate->result.is_lower_step) {
        score.step_ns = INT64_MAX;
    }
    return score;
}

bool me_search_beats(const me_search_score *a, const me_search_score *b)
{
    const bool is_no_worse = a->step_ns <= b->step_ns &&
                             a->room_bytes >= b->room_bytes &&
                             a->world <= b->world;
    return is_no_worse &&
           (a->step_ns < b->step_ns || a->room_bytes > b->room_bytes ||
            a->world < b->world);
}

bool me_candidate_fits(const me_candidate *candidate)
{
    return candidate->end == ME_SEARCH_SIMULATED && candidate->result.fits &&
           !candidate->result.is_open;
}

static int compare_scores(const me_search_score *a, const me_search_score *b)
{
    if (a->step_ns != b->step_ns) {
        return a->step_ns < b->step_ns ? -1 : 1;
    }
    if (a->room_bytes != b->room_bytes) {
        return a->room_bytes > b->room_bytes ? -1 : 1;
    }
    return (a->world > b->world) - (a->world < b->world);
}

/** Is its step a lower bound, which is in no order to others? */
static bool has_bound(const me_front_row *row)
{
    return row->candidate->result.is_lower_step;
}

static int compare_rows(const void *a, const void *b)
{
    const me_candidate *x = ((const me_front_row *)a)->candidate;
    const me_candidate *y = ((const me_front_row *)b)->candidate;
    const me_search_score s = me_search_score_of(x);
    const me_search_score t = me_search_score_of(y);
    if (has_bound(a) != has_bound(b)) {
        return has_bound(a) ? 1 : -1;
    }
    const int order = compare_scores(&s, &t);
    return order != 0 ? order : (x > y) - (x < y);
}

static bool is_beaten(const me_candidates *c, const me_candidate *candidate)
{
    const me_search_score score = me_search_score_of(candidate);
    for (uint32_t i = 0; i < c->count; i++) {
        if (me_candidate_fits(&c->items[i])) {
            const me_search_score other = me_search_score_sure(&c->items[i]);
            if (me_search_beats(&other, &score)) {
                return true;
            }
        }
    }
    return false;
}

static void give_places(me_front_row *rows, uint32_t n)
{
    int64_t fastest = 0;
    int32_t place = 0;
    for (uint32_t i = 0; i < n; i++) {
        const me_search_score s = me_search_score_of(rows[i].candidate);
        if (i > 0) {
            const me_search_score before =
                me_search_score_of(rows[i - 1].candidate);
            const bool is_equal =
                compare_scores(&before, &s) == 0 &&
                has_bound(&rows[i - 1]) == has_bound(&rows[i]);
            rows[i].is_equal = is_equal;
            rows[i - 1].is_equal = rows[i - 1].is_equal || is_equal;
        }
        if (s.step_ns == INT64_MAX || has_bound(&rows[i])) {
            continue;
        }
        if (place > 0 &&
            (double)s.step_ns < (double)fastest * (1.0 + ME_TIME_TIE)) {
            rows[i].is_tie = true;
            rows[i - 1].is_tie = true;
        } else {
            fastest = s.step_ns;
            place++;
        }
        rows[i].place = place;
    }
}

me_status me_front_create(const me_candidates *candidates, me_diag *diag,
                          me_front_row **rows_out, uint32_t *n_rows_out)
{
    const me_candidates *c = candidates;
    me_front_row *rows = me_alloc(c->count, sizeof *rows, "front");
    if (rows == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory for the front");
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        if (me_candidate_fits(&c->items[i]) && !is_beaten(c, &c->items[i])) {
            rows[n++] = (me_front_row){.candidate = &c->items[i]};
        }
    }
    if (n > 1) {
        qsort(rows, n, sizeof *rows, compare_rows);
    }
    give_places(rows, n);
    *rows_out = rows;
    *n_rows_out = n;
    return ME_OK;
}
