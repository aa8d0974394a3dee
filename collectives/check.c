/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/check.h"

#include "base/alloc.h"
#include "collectives/classes.h"
#include "collectives/match.h"
#include "collectives/replay.h"
#include "collectives/roster.h"

#include <inttypes.h>

static const uint64_t default_max_calls = UINT64_C(20000000);

/* Bring the logs of the programs of some ranks to process 0, in `logs_out` as
 * me_roster_fetch() does. Collective. */
// NOLINTNEXTLINE(readability-function-size): the ranks are an array and a count
static me_status fetch_ranks(me_transport *transport, const me_check_part *part,
                             const me_roster *roster, const int *ranks,
                             int n_ranks, me_diag *diag,
                             me_call_log ***logs_out)
{
    bool *is_wanted =
        me_alloc((size_t)roster->n_programs, sizeof *is_wanted, "check.wanted");
    me_status status = ME_OK;
    if (is_wanted == NULL) {
        status = me_fail(diag, ME_ERR_NOMEM, "no host memory for %d logs",
                         roster->n_programs);
    }
    for (int i = 0; status == ME_OK && i < n_ranks; i++) {
        is_wanted[roster->program_of[ranks[i]]] = true;
    }
    status = me_transport_agree(transport, status, diag);
    if (status == ME_OK) {
        status =
            me_roster_fetch(transport, part, roster, is_wanted, diag, logs_out);
    }
    me_free(is_wanted);
    return status;
}

/* Compare digests; fetch calls only to say what differs. */
static me_status check_match(me_transport *transport, const me_check_part *part,
                             const me_roster *roster, me_diag *diag)
{
    const me_mismatch mismatch = me_match(roster);
    if (!mismatch.is_found) {
        return ME_OK;
    }
    me_call_log **logs = NULL;
    me_status status =
        fetch_ranks(transport, part, roster, mismatch.ranks, 2, diag, &logs);
    if (status == ME_OK) {
        if (logs != NULL) {
            status = me_mismatch_explain(roster, &mismatch, logs, diag);
        }
        status = me_transport_agree(transport, status, diag);
    }
    me_roster_free_logs(roster, logs);
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
                      me_call_log *const *logs, me_diag *diag)
{
    me_replay replay = {0};
    me_status status = me_replay_init(roster, classes, logs, &replay);
    if (status != ME_OK) {
        (void)me_fail(diag, status,
                      "no host memory to replay %" PRIu64 " calls",
                      count_calls(roster, classes));
    } else if (!me_replay_run(&replay)) {
        status = me_replay_explain(&replay, diag);
    }
    me_replay_fini(&replay);
    return status;
}

static me_status fetch_and_play(me_transport *transport,
                                const me_check_part *part,
                                const me_roster *roster,
                                const me_classes *classes, me_diag *diag)
{
    me_call_log **logs = NULL;
    me_status status = fetch_ranks(transport, part, roster, classes->first,
                                   classes->count, diag, &logs);
    if (status == ME_OK) {
        if (logs != NULL) {
            status = play(roster, classes, logs, diag);
        }
        status = me_transport_agree(transport, status, diag);
    }
    me_roster_free_logs(roster, logs);
    return status;
}

static me_status check_waits(me_transport *transport, const me_check_part *part,
                             const me_roster *roster, me_diag *diag,
                             me_check_report *report)
{
    me_classes classes = {0};
    me_status status = me_classes_init(roster, &classes);
    if (status != ME_OK) {
        (void)me_fail(diag, status,
                      "no host memory for the classes of %d ranks",
                      roster->world_size);
    }
    status = me_transport_agree(transport, status, diag);
    if (status == ME_OK) {
        const uint64_t most = part->max_replayed_calls == 0
                                  ? default_max_calls
                                  : part->max_replayed_calls;
        const uint64_t calls = count_calls(roster, &classes);
        report->n_programs = roster->n_programs;
        report->n_classes = classes.count;
        report->is_replayed = calls <= most;
        report->replayed_calls = report->is_replayed ? calls : 0;
        if (report->is_replayed) {
            status = fetch_and_play(transport, part, roster, &classes, diag);
        }
    }
    me_classes_fini(&classes);
    return status;
}

me_status me_collectives_check(me_transport *transport,
                               const me_check_part *part, me_diag *diag,
                               me_check_report *report_out)
{
    me_roster roster = {0};
    me_check_report report = {0};
    me_status status = me_roster_init(transport, part, diag, &roster);
    if (status == ME_OK) {
        status = check_match(transport, part, &roster, diag);
    }
    if (status == ME_OK) {
        status = check_waits(transport, part, &roster, diag, &report);
    }
    if (status == ME_OK && report_out != NULL) {
        *report_out = report;
    }
    me_roster_fini(&roster);
    return status;
}
