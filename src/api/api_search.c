/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/api_private.h"
#include "base/alloc.h"
#include "search/search_report.h"

struct memest_found {
    me_transport *transport;
    me_search_run *run;
};

/** Whose hook is called. */
typedef struct listener {
    memest_candidate_hook *hook;
    void *self;
} listener;

static const me_search_found *found_of(const memest_found *f)
{
    return me_search_run_found(f->run);
}

static memest_candidate candidate_of(const me_candidate *c)
{
    const me_search_result *r = &c->result;
    memest_candidate whole = {
        .assignments = c->assignments,
        .schedule = c->choice->name,
        .layout = c->layout,
        .reason = c->end == ME_SEARCH_REFUSED ? c->reason : NULL,
        .world_size = c->world,
    };
    if (c->end != ME_SEARCH_SIMULATED) {
        return whole;
    }
    whole.fits = r->fits;
    whole.risk = (memest_risk)r->risk;
    whole.worst_rank = r->worst_rank;
    whole.worst_bytes = r->worst_bytes;
    whole.capacity_bytes = r->capacity_bytes;
    whole.requested_bytes = r->requested_bytes;
    whole.allocated_bytes = r->allocated_bytes;
    whole.reserved_bytes = r->reserved_bytes;
    whole.device_bytes = r->device_bytes;
    whole.has_step = r->step_ns > 0;
    whole.is_lower_bound = r->is_lower_step;
    whole.step = 1e-9 * (double)r->step_ns;
    whole.tokens_per_second = me_search_tokens(r);
    return whole;
}

static bool tell_hook(void *self, const me_candidate *candidate, uint32_t done,
                      uint32_t count)
{
    const listener *l = self;
    memest_candidate whole = candidate_of(candidate);
    whole.struct_size = sizeof whole;
    return l->hook(l->self, &whole, done, count) == 0;
}

static me_status search(memest_found *f, const memest_job *job,
                        const memest_search_options *asked, me_diag *diag)
{
    listener l = {.hook = asked->hook, .self = asked->hook_self};
    const me_search_request request = {
        .space = {.spaces = asked->spaces,
                  .n_spaces = asked->n_spaces,
                  .gpus = asked->gpus},
        .schedules = asked->schedules,
        .n_schedules = asked->n_schedules,
        .strict = asked->strict,
        .threads = asked->threads,
        .budget_seconds = asked->budget_seconds,
        .log_path = asked->jsonl,
        .listener = {.decided = asked->hook == NULL ? NULL : tell_hook,
                     .self = &l},
    };
    const me_status status = me_transport_local_create(&f->transport);
    return status != ME_OK ? me_fail(diag, status, "no host memory to search")
                           : me_search_run_create(f->transport, &request,
                                                  job->config, diag, &f->run);
}

memest_status memest_search(const memest_job *job,
                            const memest_search_options *options,
                            memest_found **found_out, memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    const uint64_t lost = me_alloc_lost();
    memest_search_options asked;
    if (!me_api_read(options, &asked, sizeof asked)) {
        return me_api_status(
            me_fail(diag, ME_ERR_CONFIG,
                    "struct_size of the options is too small: begin with "
                    "MEMEST_INIT(memest_search_options)"));
    }
    memest_found *f = me_alloc(1, sizeof *f, "api.search");
    if (f == NULL) {
        return me_api_status(
            me_fail(diag, ME_ERR_NOMEM, "no host memory to search"));
    }
    const me_status status =
        me_alloc_check(lost, search(f, job, &asked, diag), diag);
    if (status != ME_OK) {
        memest_found_destroy(f);
        return me_api_status(status);
    }
    *found_out = f;
    return MEMEST_OK;
}

void memest_found_destroy(memest_found *found)
{
    if (found != NULL) {
        me_search_run_destroy(found->run);
        me_transport_destroy(found->transport);
        me_free(found);
    }
}

bool memest_found_count(const memest_found *found,
                        memest_found_counts *counts_out)
{
    const me_search_found *f = found_of(found);
    const memest_found_counts whole = {
        .candidates = f->candidates->count,
        .undecided = f->counts[ME_SEARCH_UNDECIDED],
        .refused = f->counts[ME_SEARCH_REFUSED],
        .too_large = f->counts[ME_SEARCH_TOO_LARGE],
        .behind = f->counts[ME_SEARCH_BEHIND],
        .simulated = f->counts[ME_SEARCH_SIMULATED],
        .fit = f->n_fit,
        .cannot_say = f->n_open,
    };
    return me_api_fill(counts_out, &whole, sizeof whole);
}

size_t memest_found_n_rows(const memest_found *found)
{
    return found_of(found)->n_rows;
}

bool memest_found_row(const memest_found *found, size_t index,
                      memest_candidate *row_out)
{
    if (index >= found_of(found)->n_rows) {
        return false;
    }
    const me_search_row *row = &found_of(found)->rows[index];
    memest_candidate whole = candidate_of(row->front.candidate);
    whole.flags = row->flags;
    whole.place = row->front.place;
    whole.is_tie = row->front.is_tie;
    whole.is_equal = row->front.is_equal;
    return me_api_fill(row_out, &whole, sizeof whole);
}

memest_status memest_found_text(const memest_found *found, memest_format format,
                                char **text_out, size_t *length_out,
                                memest_error *error)
{
    me_diag *diag = me_api_diag(error);
    const uint64_t lost = me_alloc_lost();
    me_str text = {0};
    me_status status =
        format != MEMEST_FORMAT_TEXT && format != MEMEST_FORMAT_JSON &&
                format != MEMEST_FORMAT_CSV
            ? me_fail(diag, ME_ERR_CONFIG,
                      "a search is not written in format %d", (int)format)
            : me_search_append(found_of(found), (me_format)format, diag, &text);
    return me_api_text(me_alloc_check(lost, status, diag), &text, diag,
                       text_out, length_out);
}
