/* SPDX-License-Identifier: BSD-3-Clause */
#include "search/search_run.h"

#include "base/alloc.h"
#include "base/log.h"
#include "run/agree.h"
#include "run/job_machine.h"
#include "search/bound.h"
#include "search/rules.h"
#include "search/search_private.h"
#include "search/search_queue.h"
#include "search/space_agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ME_VERSION
#    define ME_VERSION "unknown"
#endif

static const char weighing_name[] = "candidates weighed";

static me_status read_choices(me_search_run *s, me_diag *diag)
{
    const me_search_request *r = &s->request;
    const size_t n = r->n_schedules == 0 ? 1 : r->n_schedules;
    s->choices = me_alloc(n, sizeof *s->choices, "search.choices");
    if (s->choices == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no host memory to search");
    }
    me_status status = ME_OK;
    for (size_t i = 0; status == ME_OK && i < r->n_schedules; i++) {
        status =
            me_schedule_choice_parse(r->schedules[i], diag, &s->choices[i]);
        for (size_t j = 0; status == ME_OK && j < i; j++) {
            if (strcmp(s->choices[i].name, s->choices[j].name) == 0) {
                status =
                    me_fail(diag, ME_ERR_CONFIG, "--schedule %s is there twice",
                            s->choices[i].name);
            }
        }
    }
    s->candidates.choices = s->choices;
    s->candidates.n_choices = n;
    return status;
}

/** Does an axis change what a rank may hold? */
static bool varies_device(const me_space *space)
{
    for (uint32_t i = 0; i < space->n_axes; i++) {
        if (strncmp(space->axes[i].name, "device.", strlen("device.")) == 0 ||
            strncmp(space->axes[i].name, "machine.", strlen("machine.")) == 0) {
            return true;
        }
    }
    return false;
}

/** Card and limit are those of any candidate. */
static me_status read_card(me_search_run *s, me_config *config, me_diag *diag)
{
    const me_status status = me_job_card_make(config, diag, &s->card);
    const uint64_t limit = config->device.memory_limit_bytes;
    s->has_bounds = status == ME_OK && !varies_device(s->space);
    s->capacity_bytes = s->card.card.total_bytes;
    if (s->capacity_bytes == 0) {
        s->capacity_bytes = limit;
    }
    return status;
}

static me_status keep_reason(me_candidate *candidate, me_diag *why,
                             me_diag *diag)
{
    char line[ME_DIAG_LINE];
    me_diag_line(why, line);
    candidate->end = ME_SEARCH_REFUSED;
    candidate->reason = me_strdup(line, "search.reason");
    return candidate->reason != NULL
               ? ME_OK
               : me_fail(diag, ME_ERR_NOMEM, "no host memory to search");
}

static void rule_out(const me_search_run *s, me_candidate *candidate)
{
    if (s->capacity_bytes != 0 && candidate->bound.bytes > s->capacity_bytes) {
        candidate->end = ME_SEARCH_TOO_LARGE;
    }
}

static void set_bound(const me_search_run *s, const me_config *config,
                      const me_probe *probe, me_candidate *candidate)
{
    candidate->bound = me_search_bound_of(config, &s->card, probe);
    rule_out(s, candidate);
}

/** By arithmetic: what the framework refuses, and what is too large. */
static me_status weigh(me_search_run *s, me_candidate *candidate, me_diag *diag)
{
    me_diag why = {.status = ME_OK};
    me_config *config = NULL;
    me_status status = me_candidate_finish(candidate, s->job, &why, &config);
    if (status == ME_OK && s->card.card.name[0] == '\0') {
        status = read_card(s, config, &why);
    }
    if (status == ME_OK && s->has_bounds) {
        set_bound(s, config, NULL, candidate);
    }
    me_config_destroy(config);
    if (me_candidate_is_reason(status)) {
        return keep_reason(candidate, &why, diag);
    }
    if (status != ME_OK) {
        *diag = why;
    }
    return status;
}

/** Again, by what its layers were seen to take. */
static me_status weigh_again(me_search_run *s, uint32_t index, me_diag *diag)
{
    me_candidate *candidate = &s->candidates.items[index];
    const me_probes *probes = &s->probes[ME_PROBE_LAYER];
    const uint32_t probe = probes->of[index];
    if (candidate->end != ME_SEARCH_UNDECIDED || probe == UINT32_MAX) {
        return ME_OK;
    }
    me_config *config = NULL;
    const me_status status =
        me_candidate_finish(candidate, s->job, diag, &config);
    if (status == ME_OK) {
        set_bound(s, config, &probes->items[probe], candidate);
    }
    me_config_destroy(config);
    return status;
}

/** By layers that were probed. */
static me_status weigh_layers(me_search_run *s, me_diag *diag)
{
    me_status status = ME_OK;
    const uint32_t n = s->candidates.count;
    me_search_prepares(s, weighing_name, true, n);
    for (uint32_t i = 0; status == ME_OK && i < n; i++) {
        status = weigh_again(s, i, diag);
        me_search_prepares(s, weighing_name, false, n);
    }
    return status;
}

/** What a rank holds beside its allocator is there when the most is requested. */
static me_status weigh_places(me_search_run *s, me_diag *diag)
{
    const me_probes *probes = &s->probes[ME_PROBE_PLACE];
    (void)diag;
    for (uint32_t i = 0; i < s->candidates.count; i++) {
        me_candidate *c = &s->candidates.items[i];
        const uint32_t probe = probes->of[i];
        if (c->end == ME_SEARCH_UNDECIDED && probe != UINT32_MAX &&
            c->bound.bytes > 0) {
            c->bound.bytes += probes->items[probe].outside_bytes;
            rule_out(s, c);
        }
    }
    return ME_OK;
}

/** For qsort(). */
static int compare_entries(const void *a, const void *b)
{
    return me_search_entry_is_before(a, b)   ? -1
           : me_search_entry_is_before(b, a) ? 1
                                             : 0;
}

/** Those with the least bounds come first. */
static me_status make_order(me_search_run *s, me_diag *diag)
{
    const me_candidates *c = &s->candidates;
    me_search_entry *list = me_alloc(c->count, sizeof *list, "search.order");
    s->order = me_alloc(c->count, sizeof *s->order, "search.order");
    if (list == NULL || s->order == NULL) {
        me_free(list);
        return me_fail(diag, ME_ERR_NOMEM, "no host memory to search");
    }
    uint32_t n_open = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->items[i].end == ME_SEARCH_UNDECIDED) {
            n_open++;
            if (!c->items[i].is_like) {
                list[s->n_order++] = (me_search_entry){c->items[i].bound, i};
            }
        }
    }
    if (s->n_order > 1) {
        qsort(list, s->n_order, sizeof *list, compare_entries);
    }
    for (uint32_t i = 0; i < s->n_order; i++) {
        s->order[i] = list[i].index;
    }
    me_free(list);
    s->n_done = c->count - n_open;
    me_log(ME_LOG_INFO, "search: %u candidates, %u to decide, %u jobs, %.3f s",
           (unsigned)c->count, (unsigned)n_open, (unsigned)s->n_order,
           me_log_cpu_seconds());
    return ME_OK;
}

/** What is wrong with every candidate alike is wrong with the job. */
static me_status check_reasons(const me_search_run *s, me_diag *diag)
{
    const me_candidates *c = &s->candidates;
    for (uint32_t i = 0; i < c->count; i++) {
        if (c->items[i].end != ME_SEARCH_REFUSED) {
            return ME_OK;
        }
    }
    return c->count == 0 ? me_fail(diag, ME_ERR_CONFIG,
                                   "the space has no candidate: give --space "
                                   "words that go with the job")
                         : me_fail(diag, ME_ERR_CONFIG,
                                   "the framework refuses all %u candidates, "
                                   "the first since %s",
                                   (unsigned)c->count, c->items[0].reason);
}

static me_status read_space(me_search_run *s, me_diag *diag)
{
    me_space_request space = s->request.space;
    space.has_schedules = s->request.n_schedules > 0;
    const me_status status = read_choices(s, diag);
    return status == ME_OK ? me_space_create(s->job, &space, diag, &s->space)
                           : status;
}

static me_status enumerate(me_search_run *s, me_diag *diag)
{
    me_status status =
        me_candidates_fill(s->space, s->job, diag, &s->candidates);
    const uint32_t n = s->candidates.count;
    me_search_prepares(s, weighing_name, true, n);
    for (uint32_t i = 0; status == ME_OK && i < n; i++) {
        status = weigh(s, &s->candidates.items[i], diag);
        me_search_prepares(s, weighing_name, false, n);
    }
    return status == ME_OK ? check_reasons(s, diag) : status;
}

/** Make the bounds nearer by probes of a kind. */
static me_status probe(me_search_run *s, me_probe_kind kind, me_diag *diag)
{
    static me_status (*const weighs[])(me_search_run *, me_diag *) = {
        [ME_PROBE_LAYER] = weigh_layers, [ME_PROBE_PLACE] = weigh_places};
    me_probes *probes = &s->probes[kind];
    probes->kind = kind;
    me_status status = me_transport_agree(
        s->transport, me_probes_find(&s->candidates, s->job, diag, probes),
        diag);
    if (status == ME_OK) {
        status = me_search_probe(s, probes, diag);
    }
    return status == ME_OK
               ? me_transport_agree(s->transport, weighs[kind](s, diag), diag)
               : status;
}

/** The bounds as near as they come. What lies beside the allocator is weighed
 *  where a card's memory is, and not what an allocator may hold of it. */
static me_status probe_all(me_search_run *s, me_diag *diag)
{
    me_status status = ME_OK;
    if (s->has_bounds) {
        status = probe(s, ME_PROBE_LAYER, diag);
    }
    if (status == ME_OK && s->has_bounds) {
        status = me_transport_agree(
            s->transport,
            me_probes_find_like(&s->probes[ME_PROBE_LAYER], s->job, diag,
                                &s->candidates),
            diag);
    }
    return status == ME_OK && s->has_bounds && s->card.card.total_bytes > 0
               ? probe(s, ME_PROBE_PLACE, diag)
               : status;
}

/** What a row says beside its numbers: its flags, and what its plan assumes. */
static me_status explain_row(const me_search_run *s, me_search_row *row,
                             me_diag *diag)
{
    const me_candidate *candidate = row->front.candidate;
    const me_run_options options = {.strict = s->request.strict};
    me_str text = {0};
    me_config *config = NULL;
    me_run *run = NULL;
    me_transport *alone = NULL;
    me_status status = me_transport_local_create(&alone);
    if (status == ME_OK) {
        status = me_candidate_finish(candidate, s->job, diag, &config);
    }
    if (status == ME_OK) {
        status = me_candidate_flags(candidate, config, diag, &text);
    }
    if (status == ME_OK) {
        status = me_run_create(alone, config, &options, diag, &run);
    } else {
        me_config_destroy(config);
    }
    if (status == ME_OK) {
        row->flags = me_strdup(me_str_text(&text), "search.flags");
        status = row->flags == NULL ? ME_ERR_NOMEM : ME_OK;
    }
    me_str_fini(&text);
    row->run = run;
    row->transport = alone;
    return status;
}

static me_status make_rows(me_search_run *s, me_diag *diag)
{
    me_front_row *front = NULL;
    uint32_t n = 0;
    me_status status = me_front_create(&s->candidates, diag, &front, &n);
    if (status == ME_OK) {
        s->rows = me_alloc(n, sizeof *s->rows, "search.rows");
        status = s->rows == NULL ? ME_ERR_NOMEM : ME_OK;
    }
    for (uint32_t i = 0; status == ME_OK && i < n; i++) {
        s->rows[i].front = front[i];
        s->n_rows = i + 1;
        status = explain_row(s, &s->rows[i], diag);
    }
    me_free(front);
    return status;
}

static void count_ends(me_search_run *s)
{
    const me_candidates *c = &s->candidates;
    me_search_found *f = &s->found;
    for (uint32_t i = 0; i < c->count; i++) {
        const me_candidate *candidate = &c->items[i];
        f->counts[candidate->end]++;
        f->n_fit += me_candidate_fits(candidate) ? 1 : 0;
        f->n_open +=
            candidate->end == ME_SEARCH_SIMULATED && candidate->result.is_open
                ? 1
                : 0;
    }
    f->version = ME_VERSION;
    f->name = s->name;
    f->candidates = c;
    f->rows = s->rows;
    f->n_rows = s->n_rows;
    f->capacity_bytes = s->capacity_bytes;
}

static me_status search(me_search_run *s, me_diag *diag)
{
    me_status status =
        me_input_agree(s->transport, "the space", read_space(s, diag), diag);
    if (status == ME_OK) {
        status = me_space_agree(s->transport, s->space, diag);
    }
    if (status == ME_OK) {
        status = me_input_agree(s->transport, "the candidates",
                                enumerate(s, diag), diag);
    }
    if (status == ME_OK) {
        status = probe_all(s, diag);
    }
    if (status == ME_OK) {
        status = me_transport_agree(s->transport, make_order(s, diag), diag);
    }
    if (status == ME_OK) {
        status = me_search_continue(s, diag);
    }
    if (status == ME_OK) {
        status = me_search_decide(s, diag);
    }
    if (status == ME_OK && me_transport_rank(s->transport) == 0) {
        status = make_rows(s, diag);
        count_ends(s);
    }
    return me_transport_agree(s->transport, status, diag);
}

me_status me_search_run_create(me_transport *transport,
                               const me_search_request *request,
                               const me_config *job, me_diag *diag,
                               me_search_run **run_out)
{
    me_search_run *s = me_alloc(1, sizeof *s, "search");
    me_status status =
        me_transport_agree(transport, s == NULL ? ME_ERR_NOMEM : ME_OK, diag);
    if (s == NULL || status != ME_OK) {
        me_free(s);
        return status;
    }
    s->transport = transport;
    s->request = *request;
    s->job = job;
    s->began = me_search_seconds();
    (void)snprintf(s->name, sizeof s->name, "%s", job->name);
    status = me_transport_agree(transport, me_job_files_check(job, diag), diag);
    if (status == ME_OK) {
        status = search(s, diag);
    }
    s->job = NULL;
    s->request = (me_search_request){.n_schedules = 0}; // the caller's
    if (status != ME_OK) {
        me_search_run_destroy(s);
        return status;
    }
    *run_out = s;
    return ME_OK;
}

const me_search_found *me_search_run_found(const me_search_run *run)
{
    return &run->found;
}

void me_search_run_destroy(me_search_run *run)
{
    me_search_run *s = run;
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; i < s->n_rows; i++) {
        me_run_destroy(s->rows[i].run);
        me_transport_destroy(s->rows[i].transport);
        me_free(s->rows[i].flags);
    }
    if (s->log != NULL) {
        (void)fclose(s->log);
    }
    me_free(s->rows);
    me_free(s->order);
    me_free(s->fits);
    for (uint32_t i = 0; i < s->n_kept; i++) {
        me_units_done_fini(&s->kept[i].done);
    }
    for (int kind = 0; kind < ME_PROBE_KINDS; kind++) {
        me_probes_fini(&s->probes[kind]);
    }
    me_candidates_fini(&s->candidates);
    me_space_destroy(s->space);
    me_free(s->choices);
    me_free(s);
}
