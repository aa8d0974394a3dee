/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/log.h"
#include "base/workers.h"
#include "search/evaluate.h"
#include "search/search_log.h"
#include "search/search_private.h"
#include "search/search_queue.h"

#include <string.h>
#include <time.h>

double me_search_seconds(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** What was decided of a candidate, for those that are the very same job: all of it
 *  but what a log has of them. */
static me_status decide_like(me_search_run *s, uint32_t index, me_diag *diag)
{
    const me_candidate *c = &s->candidates.items[index];
    for (uint32_t i = c->next_like; i != 0;) {
        me_candidate *like = &s->candidates.items[i];
        like->end = c->end;
        like->bound = c->bound;
        like->result = c->result;
        if (c->reason != NULL && like->reason == NULL) {
            like->reason = me_strdup(c->reason, "search.reason");
            if (like->reason == NULL) {
                return me_fail(diag, ME_ERR_NOMEM, "no host memory to search");
            }
        }
        i = like->next_like;
    }
    return ME_OK;
}

/** How many candidates are the job of one. */
static uint32_t count_like(const me_search_run *s, uint32_t index)
{
    uint32_t n = 1;
    for (uint32_t i = s->candidates.items[index].next_like; i != 0;
         i = s->candidates.items[i].next_like) {
        n++;
    }
    return n;
}

/** The candidate is behind others. */
static void put_behind(me_search_run *s, uint32_t index)
{
    me_units_done done = me_search_kept_of(s, index);
    me_units_done_fini(&done);
    s->candidates.items[index].end = ME_SEARCH_BEHIND;
    s->n_done += count_like(s, index);
}

/** Does one that fits beat whatever the candidate could be? */
static bool is_behind(const me_search_run *s, const me_candidate *candidate)
{
    if (!s->has_bounds || candidate->bound.step_ns == 0) {
        return false;
    }
    const me_search_score best =
        me_search_score_bound(candidate, s->capacity_bytes);
    for (uint32_t i = 0; i < s->n_fits; i++) {
        const me_search_score score =
            me_search_score_sure(&s->candidates.items[s->fits[i]]);
        if (me_search_beats(&score, &best)) {
            return true;
        }
    }
    return false;
}

/** A screen under way. */
typedef struct screening {
    const me_search_run *search;
    me_candidate sight; /**< with the bounds as near as they are by now */
    bool is_over;       /**< it does not fit */
} screening;

/** One that dies does not fit, whatever the others do, and were it by less than
 *  the estimate is sure of; unless what is left out could turn that over. */
static bool is_over(const me_verdict *v)
{
    return v->risk == ME_RISK_DOES_NOT_FIT ||
           (v->risk == ME_RISK_COIN_FLIP && v->oom_rank >= 0);
}

/** Could it still be in the front, by the stages so far? */
static bool goes_on(void *self, const me_verdict *verdict)
{
    screening *x = self;
    const me_verdict *v = verdict;
    me_search_bound *bound = &x->sight.bound;
    x->is_over = is_over(v);
    if (v->capacity_bytes == x->search->capacity_bytes &&
        v->worst_bytes > bound->bytes) {
        bound->bytes = v->worst_bytes;
    }
    return !x->is_over && !is_behind(x->search, &x->sight);
}

/** The bounds made nearer by what stands for the stages. */
static bool screen(const me_search_run *s, const me_candidate *candidate,
                   me_search_outcome *o)
{
    screening x = {.search = s, .sight = *candidate};
    const double began = me_log_cpu_seconds();
    me_run_sight sight = {.is_whole = false};
    o->status = me_candidate_screen(candidate, s->job, s->request.strict,
                                    &(me_screen_watcher){goes_on, &x, &o->done},
                                    &o->diag, &sight);
    o->bound = x.sight.bound;
    if (o->status == ME_OK && sight.is_whole) {
        o->bound.step_ns = sight.step_ns == 0 ? INT64_MAX : sight.step_ns;
    }
    o->is_over = x.is_over;
    me_log(ME_LOG_DEBUG,
           "search: stages of %s: %s; step %lld ns, bound %lld; %llu bytes, "
           "bound %llu; %.3f s",
           candidate->layout,
           x.is_over        ? "too large"
           : sight.is_whole ? "all"
                            : "behind",
           (long long)o->bound.step_ns, (long long)candidate->bound.step_ns,
           (unsigned long long)o->bound.bytes,
           (unsigned long long)candidate->bound.bytes,
           me_log_cpu_seconds() - began);
    return o->status == ME_OK || me_candidate_is_reason(o->status);
}

static me_run_options options_of(const me_search_run *s, uint32_t threads)
{
    return (me_run_options){
        .strict = s->request.strict,
        .threads = threads == 0 ? 1 : threads,
        .events_iteration = ME_STEADY_ITERATION,
        .keeps_totals = true,
    };
}

static bool simulate_task(void *self, uint32_t task)
{
    me_search_batch *b = self;
    const me_search_run *s = b->search;
    me_search_outcome *o = &b->outcomes[task];
    const me_candidate *candidate = &s->candidates.items[b->indices[task]];
    if (!me_search_is_mine(s, task) ||
        candidate->known != ME_SEARCH_UNDECIDED) {
        return true;
    }
    if (me_search_is_late(s)) {
        o->status = ME_ERR_STOPPED;
        return true;
    }
    if (b->is_screen) {
        return screen(s, candidate, o);
    }
    me_transport *alone = NULL;
    o->status = me_transport_local_create(&alone);
    if (o->status == ME_OK) {
        const me_run_options options = options_of(s, 1);
        o->status = me_candidate_simulate(candidate, s->job, alone, &options,
                                          &o->diag, &o->result);
    }
    me_transport_destroy(alone);
    return o->status == ME_OK || me_candidate_is_reason(o->status);
}

/** What is new of a candidate and those like it, on process 0. */
static me_status write_down(const me_search_run *s, uint32_t index,
                            me_diag *diag)
{
    me_status status = ME_OK;
    const me_candidate *c = &s->candidates.items[index];
    for (; status == ME_OK && s->log != NULL && c != NULL;
         c = c->next_like == 0 ? NULL : &s->candidates.items[c->next_like]) {
        if (c->known == ME_SEARCH_UNDECIDED) {
            status = me_search_log_add(s->log, s->log_path, c, diag);
        }
    }
    return status;
}

/** Tell of a candidate and those like it. @return false: stop */
static bool tell(me_search_run *s, uint32_t index)
{
    const me_search_listener *l = &s->request.listener;
    bool goes_on = true;
    const me_candidate *c = &s->candidates.items[index];
    for (; c != NULL && c->end != ME_SEARCH_UNDECIDED;
         c = c->next_like == 0 ? NULL : &s->candidates.items[c->next_like]) {
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

/** What came of the tasks of all processes, on all. */
static me_status join_tasks(me_search_run *s, const me_search_batch *b,
                            me_diag *diag, bool *stops_out)
{
    me_status status = ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < b->count; i++) {
        const me_status own = b->outcomes[i].status;
        if (own != ME_OK && own != ME_ERR_STOPPED &&
            !me_candidate_is_reason(own)) {
            *diag = b->outcomes[i].diag;
            status = own == ME_ERR_IO ? ME_ERR_CONFIG : own;
        }
    }
    status = me_transport_agree(s->transport, status, diag);
    return status == ME_OK ? me_search_exchange(s, b, diag, stops_out) : status;
}

/** Each process takes its candidates of the batch. */
static me_status run_tasks(me_search_run *s, me_search_batch *b, me_diag *diag,
                           bool *stops_out)
{
    memset(b->outcomes, 0, sizeof b->outcomes);
    me_workers_run(s->request.threads, b->count, simulate_task, b);
    return join_tasks(s, b, diag, stops_out);
}

/** What is decided is written and told. */
static me_status tell_batch(me_search_run *s, const me_search_batch *b,
                            me_diag *diag, bool *stops_out)
{
    me_status status = ME_OK;
    bool goes_on = true;
    for (uint32_t i = 0; status == ME_OK && i < b->count; i++) {
        if (me_candidate_fits(&s->candidates.items[b->indices[i]])) {
            s->fits[s->n_fits++] = b->indices[i];
        }
        status = decide_like(s, b->indices[i], diag);
        if (status == ME_OK) {
            status = write_down(s, b->indices[i], diag);
        }
    }
    status = me_transport_agree(s->transport, status, diag);
    for (uint32_t i = 0; status == ME_OK && i < b->count; i++) {
        goes_on = tell(s, b->indices[i]) && goes_on;
    }
    return status == ME_OK ? agree_to_stop(s, goes_on, diag, stops_out)
                           : status;
}

/** All ranks of all of a batch. */
static me_status run_batch(me_search_run *s, me_search_batch *b, me_diag *diag,
                           bool *stops_out)
{
    const me_status status = run_tasks(s, b, diag, stops_out);
    return status == ME_OK ? tell_batch(s, b, diag, stops_out) : status;
}

/** All ranks of one, whose programs the processes share. */
static me_status run_together(me_search_run *s, uint32_t index, me_diag *diag,
                              bool *stops_out)
{
    me_search_batch b = {.search = s, .indices = {index}, .count = 1};
    me_search_outcome *o = &b.outcomes[0];
    if (!me_search_is_known(s, index)) {
        me_run_options options = options_of(s, s->request.threads);
        me_units_done done = me_search_kept_of(s, index);
        options.done = &done;
        o->status =
            me_candidate_simulate(&s->candidates.items[index], s->job,
                                  s->transport, &options, &o->diag, &o->result);
        me_units_done_fini(&done);
    }
    const me_status status = join_tasks(s, &b, diag, stops_out);
    return status == ME_OK ? tell_batch(s, &b, diag, stops_out) : status;
}

/** Screen a batch; what is left of it comes back with the step that it takes. */
static me_status screen_batch(me_search_run *s, me_search_batch *b,
                              me_search_queue *queue, me_diag *diag,
                              bool *stops_out)
{
    b->is_screen = true;
    const me_status status = run_tasks(s, b, diag, stops_out);
    b->is_screen = false;
    for (uint32_t i = 0; i < b->count; i++) {
        me_search_keep(s, b->indices[i], &b->outcomes[i].done);
    }
    for (uint32_t i = 0; status == ME_OK && i < b->count; i++) {
        const uint32_t index = b->indices[i];
        me_candidate *c = &s->candidates.items[index];
        if (c->end != ME_SEARCH_UNDECIDED) {
            s->n_done += count_like(s, index);
            continue;
        }
        c->is_screened = true;
        if (c->known == ME_SEARCH_SIMULATED) {
            c->bound.step_ns = me_search_score_of(c).step_ns;
        }
        me_search_queue_push(queue, (me_search_entry){c->bound, index});
    }
    return status;
}

/** Is a bound so near to the lowest of a batch that it probably comes before the
 *  lowest one's step, which is about a percent above its bound? Others wait, since
 *  what that one beats need not be screened. */
static bool is_near(int64_t step_ns, int64_t lowest_ns)
{
    return step_ns - lowest_ns <= lowest_ns / 100;
}

/** The next that nothing rules out: one that was screened, or some that were not
 *  and come before any that was. */
static void fill_batch(me_search_run *s, me_search_queue *queue,
                       me_search_batch *b)
{
    b->count = 0;
    bool is_full = false;
    int64_t lowest_ns = 0;
    while (!is_full && queue->count > 0) {
        const uint32_t index = queue->items[0].index;
        const me_candidate *c = &s->candidates.items[index];
        if (b->count > 0 &&
            (c->is_screened || !is_near(c->bound.step_ns, lowest_ns))) {
            return;
        }
        me_search_queue_pop(queue);
        if (is_behind(s, c)) {
            put_behind(s, index);
            continue;
        }
        lowest_ns = b->count == 0 ? c->bound.step_ns : lowest_ns;
        b->indices[b->count++] = index;
        is_full = c->is_screened || b->count == ME_SEARCH_BATCH;
    }
}

/** One that was screened is simulated by all processes together. */
static me_status take_batch(me_search_run *s, me_search_batch *b,
                            me_search_queue *queue, me_diag *diag,
                            bool *stops_out)
{
    if (!s->has_bounds) {
        return run_batch(s, b, diag, stops_out);
    }
    return s->candidates.items[b->indices[0]].is_screened
               ? run_together(s, b->indices[0], diag, stops_out)
               : screen_batch(s, b, queue, diag, stops_out);
}

/** Batch by batch. */
static me_status decide(me_search_run *s, me_search_queue *queue, me_diag *diag)
{
    me_search_batch b = {.search = s};
    bool stops = false;
    me_status status = ME_OK;
    while (status == ME_OK && !stops) {
        fill_batch(s, queue, &b);
        if (b.count == 0) {
            break;
        }
        status = take_batch(s, &b, queue, diag, &stops);
        me_log(ME_LOG_INFO, "search: %u of %u decided, %.3f s",
               (unsigned)s->n_done, (unsigned)s->candidates.count,
               me_log_cpu_seconds());
    }
    for (uint32_t i = 0; status == ME_OK && i < s->n_order; i++) {
        me_candidate *left = &s->candidates.items[s->order[i]];
        if (left->end == ME_SEARCH_UNDECIDED && is_behind(s, left)) {
            left->end = ME_SEARCH_BEHIND;
        }
        status = decide_like(s, s->order[i], diag);
    }
    return status;
}

me_status me_search_decide(me_search_run *run, me_diag *diag)
{
    me_search_run *s = run;
    me_search_queue queue = {.count = 0};
    s->fits = me_alloc(s->n_order, sizeof *s->fits, "search.fits");
    me_status status = s->fits == NULL
                           ? ME_ERR_NOMEM
                           : me_search_queue_init(s->n_order, &queue);
    if (status != ME_OK) {
        (void)me_fail(diag, status, "no host memory to search");
    }
    status = me_transport_agree(s->transport, status, diag);
    for (uint32_t i = 0; status == ME_OK && i < s->n_order; i++) {
        const uint32_t index = s->order[i];
        me_search_queue_push(
            &queue, (me_search_entry){s->candidates.items[index].bound, index});
    }
    if (status == ME_OK) {
        status = decide(s, &queue, diag);
    }
    me_search_queue_fini(&queue);
    return status;
}
