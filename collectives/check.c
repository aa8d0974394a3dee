/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/check.h"

#include "base/alloc.h"
#include "collectives/call_replay.h"
#include "collectives/classes.h"
#include "collectives/match.h"
#include "collectives/roster.h"

#include <inttypes.h>

/** What every step of a check needs. */
typedef struct check {
    me_transport *transport;
    const me_check_part *part;
    me_diag *diag;
    me_roster roster;
    me_check_report report;
} check;

/** Bring the logs of the programs of some ranks to process 0, in `logs_out` as
 * me_roster_fetch() does. Collective. */
static me_status fetch_ranks(const check *c, const int *ranks, int n_ranks,
                             me_roster_logs *logs_out)
{
    bool *is_wanted = me_alloc((size_t)c->roster.n_programs, sizeof *is_wanted,
                               "check.wanted");
    me_status status = ME_OK;
    if (is_wanted == NULL) {
        status = me_fail(c->diag, ME_ERR_NOMEM, "no host memory for %d logs",
                         c->roster.n_programs);
    }
    for (int i = 0; status == ME_OK && i < n_ranks; i++) {
        is_wanted[c->roster.program_of[ranks[i]]] = true;
    }
    status = me_transport_agree(c->transport, status, c->diag);
    if (status == ME_OK) {
        status = me_roster_fetch(c->transport, c->part, &c->roster, is_wanted,
                                 c->diag, logs_out);
    }
    me_free(is_wanted);
    return status;
}

/** Compare digests; fetch calls only to say what differs. */
static me_status check_match(const check *c)
{
    const me_mismatch mismatch = me_match(&c->roster);
    if (!mismatch.is_found) {
        return ME_OK;
    }
    me_roster_logs fetched = {.logs = NULL};
    me_status status = fetch_ranks(c, mismatch.ranks, 2, &fetched);
    if (status == ME_OK) {
        if (fetched.logs != NULL) {
            status = me_mismatch_explain(&c->roster, &mismatch, fetched.logs,
                                         c->diag);
        }
        status = me_transport_agree(c->transport, status, c->diag);
    }
    me_roster_logs_fini(&fetched);
    return status;
}

static uint64_t count_calls(const me_roster *roster, const me_classes *classes)
{
    uint64_t sum = 0;
    for (int i = 0; i < classes->count; i++) {
        sum += me_roster_program(roster, classes->first[i])->n_calls;
    }
    return sum;
}

static me_status play(const me_roster *roster, const me_classes *classes,
                      const me_call_log *const *logs, me_diag *diag)
{
    me_call_replay replay = {0};
    me_status status = me_call_replay_init(roster, classes, logs, &replay);
    if (status != ME_OK) {
        (void)me_fail(diag, status,
                      "no host memory to replay %" PRIu64 " calls",
                      count_calls(roster, classes));
    } else if (!me_call_replay_run(&replay)) {
        status = me_call_replay_explain(&replay, diag);
    }
    me_call_replay_fini(&replay);
    return status;
}

static me_status fetch_and_play(const check *c, const me_classes *classes)
{
    me_roster_logs fetched = {.logs = NULL};
    me_status status = fetch_ranks(c, classes->first, classes->count, &fetched);
    if (status == ME_OK) {
        if (fetched.logs != NULL) {
            status = play(&c->roster, classes, fetched.logs, c->diag);
        }
        status = me_transport_agree(c->transport, status, c->diag);
    }
    me_roster_logs_fini(&fetched);
    return status;
}

static me_status check_waits(check *c)
{
    me_classes classes = {0};
    me_status status = me_classes_init(&c->roster, &classes);
    if (status != ME_OK) {
        (void)me_fail(c->diag, status,
                      "no host memory for the classes of %d ranks",
                      c->roster.world_size);
    }
    status = me_transport_agree(c->transport, status, c->diag);
    if (status == ME_OK) {
        const uint64_t most = c->part->max_replayed_calls == 0
                                  ? ME_CHECK_MAX_CALLS
                                  : c->part->max_replayed_calls;
        const uint64_t calls = count_calls(&c->roster, &classes);
        c->report = (me_check_report){.n_programs = c->roster.n_programs,
                                      .n_classes = classes.count,
                                      .is_replayed = calls <= most};
        if (c->report.is_replayed) {
            c->report.replayed_calls = calls;
            status = fetch_and_play(c, &classes);
        }
    }
    me_classes_fini(&classes);
    return status;
}

const char *me_check_unchecked(const me_check_report *report)
{
    return report->is_replayed
               ? NULL
               : "too many collective calls to search for waits that never end";
}

me_status me_collectives_check(me_transport *transport,
                               const me_check_part *part, me_diag *diag,
                               me_check_report *report_out)
{
    check c = {.transport = transport, .part = part, .diag = diag};
    me_status status = me_roster_init(transport, part, diag, &c.roster);
    if (status == ME_OK) {
        status = check_match(&c);
    }
    if (status == ME_OK) {
        status = check_waits(&c);
    }
    if (status == ME_OK && report_out != NULL) {
        *report_out = c.report;
    }
    me_roster_fini(&c.roster);
    return status;
}
