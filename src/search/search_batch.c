/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/log.h"
#include "base/workers.h"
#include "collectives/wire.h"
#include "search/evaluate.h"
#include "search/search_log.h"
#include "search/search_private.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    /** Candidates that are simulated before the next are ruled out: the same for
     *  any number of processes, so that what is ruled out is the same. */
    BATCH = 32,
    SMALL_BATCH = 8 /**< of all ranks */
};

/** What became of a candidate of a batch. */
typedef struct outcome {
    me_status status;
    me_diag diag;
    me_search_result result;
    me_search_bound bound; /**< of a screen */
    bool is_over;          /**< likewise: it does not fit */
} outcome;

double me_search_seconds(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static me_status agree(const me_search_run *s, me_status status, me_diag *diag)
{
    return me_transport_agree(s->transport, status, diag);
}

/** Does one that fits beat whatever the candidate could be? */
static bool is_behind(const me_search_run *s, const me_candidate *candidate)
{
    if (!s->has_bounds || candidate->bound.step_ns == 0) {
        return false;
    }
    const me_search_score best =
        me_search_score_bound(candidate, s->capacity_bytes);
    const me_candidates *c = &s->candidates;
    for (uint32_t i = 0; i < s->n_order; i++) {
        const me_candidate *other = &c->items[s->order[i]];
        if (me_candidate_fits(other)) {
            const me_search_score score = me_search_score_of(other);
            if (me_search_beats(&score, &best)) {
                return true;
            }
        }
    }
    return false;
}

/** A candidate whose step is known. */
typedef struct screened {
    int64_t step_ns;
    uint32_t index;
} screened;

/** A batch that this process has its part of. */
typedef struct batch {
    const me_search_run *search;
    uint32_t indices[BATCH];
    uint32_t count;
    outcome outcomes[BATCH];
    bool is_screen; /**< the ranks that stand for stages alone */
} batch;

/** By the log. */
static bool is_known(const me_search_run *s, uint32_t index)
{
    return s->candidates.items[index].known != ME_SEARCH_UNDECIDED;
}

static bool is_mine(const me_search_run *s, uint32_t i)
{
    return i % (uint32_t)me_transport_size(s->transport) ==
           (uint32_t)me_transport_rank(s->transport);
}

/** Is the time over that there is? */
static bool is_late(const me_search_run *s)
{
    const double budget = s->request.budget_seconds;
    return budget > 0 && me_search_seconds() - s->began >= budget;
}

/** The bounds made nearer by what stands for the stages. */
static bool screen(const me_search_run *s, const me_candidate *candidate,
                   outcome *o)
{
    me_run_sight sight;
    o->bound = candidate->bound;
    o->status = me_candidate_screen(candidate, s->job, s->request.strict,
                                    &o->diag, &sight);
    if (o->status == ME_OK) {
        const me_verdict *v = &sight.verdict;
        o->bound.step_ns = sight.step_ns == 0 ? INT64_MAX : sight.step_ns;
        o->is_over = v->risk == ME_RISK_DOES_NOT_FIT;
        if (v->capacity_bytes == s->capacity_bytes &&
            v->worst_bytes > o->bound.bytes) {
            o->bound.bytes = v->worst_bytes;
        }
    }
    return o->status == ME_OK || me_candidate_is_reason(o->status);
}

static bool simulate_task(void *self, uint32_t task)
{
    batch *b = self;
    const me_search_run *s = b->search;
    outcome *o = &b->outcomes[task];
    const me_candidate *candidate = &s->candidates.items[b->indices[task]];
    if (!is_mine(s, task) || candidate->known != ME_SEARCH_UNDECIDED) {
        return true;
    }
    if (is_late(s)) {
        o->status = ME_ERR_STOPPED;
        return true;
    }
    if (b->is_screen) {
        return screen(s, candidate, o);
    }
    me_transport *alone = NULL;
    o->status = me_transport_local_create(&alone);
    if (o->status == ME_OK) {
        o->status = me_candidate_simulate(
            candidate, s->job, alone, s->request.strict, &o->diag, &o->result);
    }
    me_transport_destroy(alone);
    return o->status == ME_OK || me_candidate_is_reason(o->status);
}

static void put_result(me_writer *w, const me_search_result *r)
{
#define ME_SEARCH_PUT(type, member) me_writer_put(w, (uint64_t)r->member, 8);
    ME_SEARCH_RESULT_LIST(ME_SEARCH_PUT)
#undef ME_SEARCH_PUT
}

static me_search_result get_result(me_reader *reader)
{
    return (me_search_result){
#define ME_SEARCH_GET(type, member) .member = (type)me_reader_get(reader, 8),
        ME_SEARCH_RESULT_LIST(ME_SEARCH_GET)
#undef ME_SEARCH_GET
    };
}

/** What this process's candidates became, and whether time is up on process 0. */
static void put_outcomes(const batch *b, me_writer *w)
{
    const me_search_run *s = b->search;
    me_writer_put(w, is_late(s), 1);
    for (uint32_t i = 0; i < b->count; i++) {
        if (is_mine(s, i) && !is_known(s, b->indices[i])) {
            const outcome *o = &b->outcomes[i];
            char line[ME_DIAG_LINE] = "";
            me_diag_line(&o->diag, line);
            const size_t length = o->status == ME_OK ? 0 : strlen(line);
            if (b->is_screen) {
                me_writer_put(w, o->bound.bytes, 8);
                me_writer_put(w, (uint64_t)o->bound.step_ns, 8);
                me_writer_put(w, o->is_over, 1);
            } else {
                put_result(w, &o->result);
            }
            me_writer_put_int(w, (int)o->status);
            me_writer_put(w, length, 4);
            me_writer_put_bytes(w, line, length);
        }
    }
}

/** What a screen has shown. @return what becomes of the candidate by it */
static me_search_end get_screen(me_candidate *candidate, me_reader *reader)
{
    candidate->bound.bytes = me_reader_get(reader, 8);
    candidate->bound.step_ns = (int64_t)me_reader_get(reader, 8);
    return me_reader_get(reader, 1) != 0 ? ME_SEARCH_TOO_LARGE
                                         : ME_SEARCH_UNDECIDED;
}

static me_status get_outcome(const batch *b, me_candidate *candidate,
                             me_reader *reader, me_diag *diag)
{
    me_search_end end = ME_SEARCH_SIMULATED;
    if (b->is_screen) {
        end = get_screen(candidate, reader);
    } else {
        candidate->result = get_result(reader);
    }
    const me_status status = (me_status)me_reader_get_int(reader);
    const size_t length = (size_t)me_reader_get(reader, 4);
    if (reader->is_short || length > me_reader_rest(reader)) {
        return me_fail(diag, ME_ERR_INTERNAL, "a part of a search is cut");
    }
    candidate->end = status == ME_OK            ? end
                     : status == ME_ERR_STOPPED ? ME_SEARCH_UNDECIDED
                                                : ME_SEARCH_REFUSED;
    if (candidate->end == ME_SEARCH_REFUSED) {
        candidate->reason = me_alloc(length + 1, 1, "search.reason");
        if (candidate->reason == NULL) {
            return me_fail(diag, ME_ERR_NOMEM, "no host memory to search");
        }
        memcpy(candidate->reason, reader->bytes + reader->at, length);
    }
    reader->at += length;
    return ME_OK;
}

/** Every process has all outcomes, and process 0's word on the time. */
static me_status get_outcomes(me_search_run *s, const batch *b,
                              const me_blob *blobs, me_diag *diag,
                              bool *stops_out)
{
    const uint32_t n = (uint32_t)me_transport_size(s->transport);
    me_status status = ME_OK;
    for (uint32_t process = 0; process < n && status == ME_OK; process++) {
        me_reader reader = {.bytes = blobs[process].bytes,
                            .size = blobs[process].size};
        const bool is_over = me_reader_get(&reader, 1) != 0;
        *stops_out = *stops_out || (process == 0 && is_over);
        for (uint32_t i = process; i < b->count && status == ME_OK; i += n) {
            me_candidate *candidate = &s->candidates.items[b->indices[i]];
            if (is_known(s, b->indices[i])) {
                candidate->end =
                    b->is_screen ? ME_SEARCH_UNDECIDED : candidate->known;
            } else {
                status = get_outcome(b, candidate, &reader, diag);
            }
            *stops_out = *stops_out || (!b->is_screen &&
                                        candidate->end == ME_SEARCH_UNDECIDED);
        }
    }
    return status;
}

static me_status exchange(me_search_run *s, const batch *b, me_diag *diag,
                          bool *stops_out)
{
    me_writer w = {.size = 0};
    me_blob *blobs = NULL;
    put_outcomes(b, &w);
    me_status status = agree(s, w.status, diag);
    if (status == ME_OK) {
        status = me_transport_all_gather(s->transport, w.bytes, w.size, diag,
                                         &blobs);
    }
    me_writer_fini(&w);
    if (status == ME_OK) {
        status = agree(s, get_outcomes(s, b, blobs, diag, stops_out), diag);
    }
    me_blobs_free(blobs, me_transport_size(s->transport));
    return status;
}

/** What is new, on process 0. */
static me_status write_down(const me_search_run *s, const batch *b,
                            me_diag *diag)
{
    me_status status = ME_OK;
    for (uint32_t i = 0; status == ME_OK && s->log != NULL && i < b->count;
         i++) {
        if (!is_known(s, b->indices[i])) {
            status = me_search_log_add(
                s->log, s->log_path, &s->candidates.items[b->indices[i]], diag);
        }
    }
    return status;
}

/** Tell of the batch. @return false: stop */
static bool tell(me_search_run *s, const batch *b)
{
    const me_search_listener *l = &s->request.listener;
    bool goes_on = true;
    for (uint32_t i = 0; i < b->count; i++) {
        const me_candidate *c = &s->candidates.items[b->indices[i]];
        if (c->end == ME_SEARCH_UNDECIDED) {
            continue;
        }
        s->n_done++;
        me_log(ME_LOG_DEBUG,
               "search: %s: step %lld ns, bound %lld; %llu bytes, bound %llu",
               c->layout, (long long)c->result.step_ns,
               (long long)c->bound.step_ns,
               (unsigned long long)c->result.requested_bytes,
               (unsigned long long)c->bound.bytes);
        if (l->decided != NULL && me_transport_rank(s->transport) == 0) {
            goes_on = l->decided(l->self, c, s->n_done, s->candidates.count) &&
                      goes_on;
        }
    }
    return goes_on;
}

/** A listener is asked on process 0 alone. */
static me_status agree_to_stop(const me_search_run *s, bool goes_on,
                               me_diag *diag, bool *stops)
{
    const unsigned char own = goes_on ? 0 : 1;
    me_blob *blobs = NULL;
    const me_status status =
        me_transport_all_gather(s->transport, &own, sizeof own, diag, &blobs);
    if (status == ME_OK) {
        *stops = *stops || blobs[0].bytes[0] != 0;
    }
    me_blobs_free(blobs, me_transport_size(s->transport));
    return status;
}

/** Every process does its part, and has what came of all. */
static me_status run_tasks(me_search_run *s, batch *b, me_diag *diag,
                           bool *stops_out)
{
    me_status status = ME_OK;
    memset(b->outcomes, 0, sizeof b->outcomes);
    me_workers_run(s->request.threads, b->count, simulate_task, b);
    for (uint32_t i = 0; status == ME_OK && i < b->count; i++) {
        const me_status own = b->outcomes[i].status;
        if (own != ME_OK && own != ME_ERR_STOPPED &&
            !me_candidate_is_reason(own)) {
            *diag = b->outcomes[i].diag;
            status = own == ME_ERR_IO ? ME_ERR_CONFIG : own;
        }
    }
    status = agree(s, status, diag);
    return status == ME_OK ? exchange(s, b, diag, stops_out) : status;
}

/** All ranks of all of a batch. */
static me_status run_batch(me_search_run *s, batch *b, me_diag *diag,
                           bool *stops_out)
{
    me_status status = run_tasks(s, b, diag, stops_out);
    if (status == ME_OK) {
        status = agree(s, write_down(s, b, diag), diag);
    }
    return status == ME_OK ? agree_to_stop(s, tell(s, b), diag, stops_out)
                           : status;
}

static int compare_steps(const void *a, const void *b)
{
    const screened *x = a;
    const screened *y = b;
    return x->step_ns != y->step_ns
               ? (x->step_ns < y->step_ns ? -1 : 1)
               : (x->index > y->index) - (x->index < y->index);
}

/** What is left of a batch once its steps are known, the fastest first. */
static uint32_t sort_screened(const me_search_run *s, const batch *b,
                              screened list[BATCH])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        const me_candidate *c = &s->candidates.items[b->indices[i]];
        if (c->end == ME_SEARCH_UNDECIDED) {
            list[n++] = (screened){c->bound.step_ns, b->indices[i]};
        }
    }
    if (n > 1) {
        qsort(list, n, sizeof *list, compare_steps);
    }
    return n;
}

/** Screen a batch; then simulate it in small ones, each behind what the one before
 *  has shown. */
static me_status screen_batch(me_search_run *s, batch *b, me_diag *diag,
                              bool *stops_out)
{
    screened list[BATCH];
    b->is_screen = true;
    me_status status = run_tasks(s, b, diag, stops_out);
    b->is_screen = false;
    const uint32_t n = status == ME_OK ? sort_screened(s, b, list) : 0;
    for (uint32_t i = 0; i < b->count && status == ME_OK; i++) {
        s->n_done +=
            s->candidates.items[b->indices[i]].end != ME_SEARCH_UNDECIDED;
    }
    for (uint32_t i = 0; status == ME_OK && !*stops_out && i < n;) {
        b->count = 0;
        for (; i < n && b->count < SMALL_BATCH; i++) {
            me_candidate *c = &s->candidates.items[list[i].index];
            if (is_behind(s, c)) {
                c->end = ME_SEARCH_BEHIND;
                s->n_done++;
            } else {
                b->indices[b->count++] = list[i].index;
            }
        }
        status = b->count == 0 ? ME_OK : run_batch(s, b, diag, stops_out);
    }
    return status;
}

/** The next of the order that nothing rules out. */
static void fill_batch(me_search_run *s, uint32_t *next, batch *b)
{
    b->count = 0;
    while (b->count < BATCH && *next < s->n_order) {
        const uint32_t index = s->order[(*next)++];
        me_candidate *candidate = &s->candidates.items[index];
        if (is_behind(s, candidate)) {
            candidate->end = ME_SEARCH_BEHIND;
            s->n_done++;
        } else {
            b->indices[b->count++] = index;
        }
    }
}

me_status me_search_decide(me_search_run *run, me_diag *diag)
{
    me_search_run *s = run;
    batch b = {.search = s};
    uint32_t next = 0;
    bool stops = false;
    me_status status = ME_OK;
    while (status == ME_OK && !stops) {
        fill_batch(s, &next, &b);
        if (b.count == 0) {
            break;
        }
        status = s->has_bounds ? screen_batch(s, &b, diag, &stops)
                               : run_batch(s, &b, diag, &stops);
        me_log(ME_LOG_INFO, "search: %u of %u decided, %.3f s",
               (unsigned)s->n_done, (unsigned)s->candidates.count,
               me_log_cpu_seconds());
    }
    for (uint32_t i = 0; status == ME_OK && i < s->n_order; i++) {
        me_candidate *left = &s->candidates.items[s->order[i]];
        if (left->end == ME_SEARCH_UNDECIDED && is_behind(s, left)) {
            left->end = ME_SEARCH_BEHIND;
        }
    }
    return status;
}
