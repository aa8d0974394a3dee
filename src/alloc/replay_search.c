/* SPDX-License-Identifier: BSD-3-Clause */
/* The search's way through the calls: forward, back to where another choice is
 * made, and on. */
#include "alloc/replay_search_internal.h"
#include "base/alloc.h"

#include <string.h>

enum {
    MAX_JUMPS = 128, /* back, without getting any further */
    RETURNED_PER_RELEASE = 32
};

static void add_segment(me_search *s, uint64_t address)
{
    if (s->n_numbers == MAX_SEGMENTS) {
        s->is_full = true;
        return;
    }
    uint32_t at = s->n_segments++;
    while (at > 0 && s->segments[at - 1].address > address) {
        s->segments[at] = s->segments[at - 1];
        at--;
    }
    s->segments[at] = (segment){address, s->n_numbers++};
}

/** The driver may put another segment there, so ids say nothing any more. */
static void drop_segment(me_search *s, uint64_t address, uint64_t bytes)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n_segments; i++) {
        if (s->segments[i].address != address) {
            s->segments[kept++] = s->segments[i];
        }
    }
    s->n_segments = kept;
    s->result->n_steps += s->calls->n_ids / 16;
    for (uint32_t id = 0; id < s->calls->n_ids; id++) {
        if (s->places[id] >= address && s->places[id] - address < bytes) {
            me_search_move_id(s, id, 0);
        }
    }
}

static void on_trace(void *self, const me_pool_trace *entry)
{
    me_search *s = self;
    if (entry->action == ME_POOL_TRACE_ALLOC) {
        s->given = entry->address;
    } else if (entry->action == ME_POOL_TRACE_SEGMENT_ALLOC) {
        add_segment(s, entry->address);
    } else if (entry->action == ME_POOL_TRACE_SEGMENT_FREE) {
        drop_segment(s, entry->address, entry->bytes);
    }
}

static me_status do_alloc(me_search *s, const me_replay_call *call)
{
    live *l = &s->lives[call->id];
    if (l->is_live) {
        return ME_ERR_SYNTAX;
    }
    s->expected = s->places[call->id];
    s->given = 0;
    const me_status status =
        me_pool_alloc(s->pool, call->bytes, call->stream, &l->block);
    l->is_live = true;
    s->n_lives++;
    if (status != ME_OK || s->given == 0 || s->is_conflict || s->is_full) {
        return status;
    }
    if (s->expected != 0 && s->expected != s->given) {
        me_search_blame(s, s->expected);
        me_search_blame(s, s->given);
    } else if (s->expected == 0 && me_search_is_owned(s, s->given)) {
        me_search_blame(s, s->given);
    } else if (s->expected == 0) {
        me_search_move_id(s, call->id, s->given);
    } else {
        s->n_returned++;
    }
    return ME_OK;
}

static me_status do_free(me_search *s, const me_replay_call *call)
{
    live *l = &s->lives[call->id];
    const bool is_request = call->kind == ME_STREAM_FREE_REQUESTED;
    if (!l->is_live || (is_request && l->is_pending)) {
        return ME_ERR_SYNTAX;
    }
    if (is_request) {
        l->epoch = me_pool_free_requested(s->pool, l->block);
        l->is_pending = true;
        s->n_pending++;
        return ME_OK;
    }
    if (l->is_pending) {
        me_pool_free_completed(s->pool, l->block, l->epoch);
        s->n_pending--;
    } else {
        me_pool_free(s->pool, l->block);
    }
    *l = (live){0};
    s->n_lives--;
    return ME_OK;
}

static bool is_released(const me_search *s)
{
    for (uint32_t i = 0; i < s->result->n_released; i++) {
        if (s->result->released[i] == s->call) {
            return true;
        }
    }
    return false;
}

static me_status do_call(me_search *s)
{
    const me_replay_call *call = &s->calls->calls[s->call];
    s->result->n_steps++;
    if (s->n_pending == 0) {
        s->quiet_call = s->call;
        s->quiet_chosen = s->n_chosen;
    }
    if (call->kind == ME_STREAM_EMPTY_CACHE || is_released(s)) {
        const me_status status = me_pool_empty_cache(s->pool);
        if (status != ME_OK || call->kind == ME_STREAM_EMPTY_CACHE) {
            return status;
        }
    }
    return call->kind == ME_STREAM_ALLOC ? do_alloc(s, call) : do_free(s, call);
}

/** What agrees with the most calls so far. */
static me_status keep_best(me_search *s)
{
    me_search_result *result = s->result;
    if (s->call <= result->n_calls) {
        return ME_OK;
    }
    uint16_t *grown = me_realloc(result->chosen, (size_t)s->n_chosen + 1,
                                 sizeof *grown, "alloc.chosen");
    if (grown == NULL) {
        return ME_ERR_NOMEM;
    }
    result->chosen = grown;
    if (s->n_chosen > 0) {
        memcpy(grown, s->chosen, s->n_chosen * sizeof *grown);
    }
    result->n_chosen = s->n_chosen;
    result->n_calls = s->call;
    s->best_quiet_call = s->quiet_call;
    s->best_quiet_chosen = s->quiet_chosen;
    return ME_OK;
}

static me_status begin_anew(me_search *s)
{
    me_search_drop_decisions(s, 0);
    s->n_jumps = 0;
    s->blame = (decision_set){0};
    return me_search_go_back(s, 0);
}

/** No choices agree with the call behind the best ones: cached segments must have
 * gone back, as by empty_cache(), and at the latest at the last call before it
 * with no free under way, since empty_cache() waits for all. */
static me_status release(me_search *s)
{
    me_search_result *result = s->result;
    if (result->n_released == 0) {
        s->sure_chosen = s->best_quiet_chosen;
        s->sure_calls = result->n_calls;
    }
    result->released[result->n_released++] = s->best_quiet_call;
    s->released_at = result->n_calls;
    s->n_fixed_before = s->n_fixed;
    s->n_fixed = s->best_quiet_chosen;
    return begin_anew(s);
}

/** Segments that went back explain a recording only if all of it agrees, and
 * enough of it that it cannot be by chance. */
static void end_with(me_search *s, me_search_verdict verdict)
{
    me_search_result *result = s->result;
    const bool is_chance =
        s->n_returned < (uint64_t)RETURNED_PER_RELEASE * result->n_released;
    result->verdict = verdict == ME_SEARCH_AGREES && is_chance
                          ? ME_SEARCH_CONTRADICTS
                          : verdict;
    if (result->verdict != ME_SEARCH_AGREES && result->n_released > 0) {
        result->n_released = 0;
        result->n_chosen = s->sure_chosen;
        result->n_calls = s->sure_calls;
    }
}

/** The release did not help, so it is not what happened: all over again, with no
 * bound but that on all work. */
static me_status take_back_release(me_search *s)
{
    s->result->n_released--;
    s->is_thorough = true;
    s->n_fixed = s->n_fixed_before;
    return begin_anew(s);
}

/** Back to where the contradiction can come from; or the end. */
static me_status resolve(me_search *s, bool *is_ended)
{
    me_search_result *result = s->result;
    s->n_jumps = s->call > result->n_calls ? 0 : s->n_jumps + 1;
    const me_status status = keep_best(s);
    if (status != ME_OK) {
        return status;
    }
    s->is_conflict = false;
    if ((s->is_thorough || s->n_jumps < MAX_JUMPS) &&
        (me_search_decide_anew(s) || me_search_decide_last(s))) {
        return me_search_go_back(s, s->decisions[s->n_decisions - 1].call);
    }
    if (!s->is_thorough && s->released_at < result->n_calls &&
        result->n_released < ME_SEARCH_MAX_RELEASED) {
        return release(s);
    }
    if (!s->is_thorough && s->released_at == result->n_calls) {
        return take_back_release(s);
    }
    *is_ended = true;
    end_with(s, ME_SEARCH_CONTRADICTS);
    return ME_OK;
}

/** One call, with what follows from it. */
static me_status step(me_search *s, uint64_t max_steps, bool *is_ended)
{
    me_status status = ME_OK;
    if (me_search_is_checkpoint_due(s)) {
        status = me_search_keep_checkpoint(s);
    }
    if (status == ME_OK) {
        status = do_call(s);
    }
    if (s->is_lost) {
        return ME_ERR_NOMEM;
    }
    if (status != ME_OK) {
        return status;
    }
    if (s->is_full || s->result->n_steps > max_steps) {
        *is_ended = true;
        status = keep_best(s);
        end_with(s, ME_SEARCH_GIVEN_UP);
        return status;
    }
    if (s->is_conflict) {
        return resolve(s, is_ended);
    }
    s->call++;
    return ME_OK;
}

/** Whether the lowest address of the driver's model was right each time. */
static bool is_as_modelled(const me_search_result *result)
{
    bool is_lowest = result->n_released == 0;
    for (uint32_t i = 0; i < result->n_chosen && is_lowest; i++) {
        is_lowest = result->chosen[i] == 0;
    }
    return is_lowest;
}

static me_status run(me_search *s, uint64_t max_steps)
{
    me_status status = ME_OK;
    bool is_ended = false;
    while (status == ME_OK && !is_ended && s->call < s->calls->n_calls) {
        status = step(s, max_steps, &is_ended);
    }
    if (status == ME_OK && !is_ended) {
        status = keep_best(s);
        end_with(s, is_as_modelled(s->result) ? ME_SEARCH_NOTHING
                                              : ME_SEARCH_AGREES);
    }
    return status;
}

static me_status begin(me_search *s, const me_pool_options *options)
{
    me_pool_options o = *options;
    o.choose = me_search_choose;
    o.choose_self = s;
    o.on_trace = on_trace;
    o.trace_self = s;
    o.counts_bytes_alone = true;
    const uint32_t n = s->calls->n_ids;
    s->order = me_order_create(MAX_SEGMENTS);
    s->lives = me_alloc(n, sizeof *s->lives, "alloc.lives");
    s->places = me_alloc(n, sizeof *s->places, "alloc.places");
    s->decisions =
        me_alloc(MAX_DECISIONS, sizeof *s->decisions, "alloc.decisions");
    if (s->order == NULL || s->lives == NULL || s->places == NULL ||
        s->decisions == NULL) {
        return ME_ERR_NOMEM;
    }
    return me_pool_create(&o, &s->pool);
}

static void end(me_search *s)
{
    if (s->decisions != NULL) {
        me_search_drop_decisions(s, 0);
    }
    me_search_drop_checkpoints(s);
    me_id_map_fini(&s->owned);
    me_order_destroy(s->order);
    me_pool_destroy(s->pool);
    me_free(s->decisions);
    me_free(s->lives);
    me_free(s->places);
    me_free(s->moves);
    me_free(s->chosen);
    me_free(s);
}

me_status me_replay_search(const me_pool_options *options,
                           const me_replay_calls *calls, uint64_t max_steps,
                           me_search_result *result_out)
{
    *result_out = (me_search_result){0};
    me_search *s = me_alloc(1, sizeof *s, "alloc.search");
    if (s == NULL) {
        return ME_ERR_NOMEM;
    }
    s->calls = calls;
    s->result = result_out;
    me_status status = begin(s, options);
    if (status == ME_OK) {
        status = run(s, max_steps);
    }
    end(s);
    // A call that makes no sense is the replay's to report.
    return status == ME_ERR_NOMEM ? status : ME_OK;
}

void me_search_result_fini(me_search_result *result)
{
    me_free(result->chosen);
    *result = (me_search_result){0};
}

const char *me_search_verdict_name(me_search_verdict verdict)
{
    static const char *const names[] = {
#define ME_SEARCH_VERDICT_NAME(constant, name) name,
        ME_SEARCH_VERDICT_LIST(ME_SEARCH_VERDICT_NAME)
#undef ME_SEARCH_VERDICT_NAME
    };
    return names[verdict];
}
