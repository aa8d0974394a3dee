/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "collectives/call_replay.h"

/** One rank that waits, and for whom. */
typedef struct wait {
    int rank;
    int awaited;
    const me_call *call;
    const me_place *place; /* of the rank, in the call's group */
} wait;

static const me_runner *runner_of(const me_call_replay *replay, int rank)
{
    return &replay->runners[replay->classes->class_of[rank]];
}

/** The earliest step in program order that has not ended; it has begun. */
static uint32_t first_open_step(const me_runner *runner)
{
    uint32_t first = UINT32_MAX;
    for (uint32_t i = 0; i < runner->lanes->n_streams; i++) {
        const uint32_t head = me_runner_head(runner, i);
        first = head < first ? head : first;
    }
    return first;
}

/** What @p number waits behind on its own rank; itself if it has begun. */
static uint32_t step_before(const me_runner *runner, uint32_t number)
{
    const me_step *step = &runner->lanes->steps[number];
    const me_call *calls = runner->lanes->log->calls;
    if (me_step_is_wait(runner->lanes, step)) {
        const uint32_t head = me_runner_head(runner, calls[step->first].stream);
        return head != number
                   ? head
                   : me_runner_head(runner, (uint32_t)calls[step->first].peer);
    }
    for (uint32_t i = step->first; i < step->end; i++) {
        if (calls[i].kind == ME_CALL_WAIT) {
            continue;
        }
        const uint32_t on_stream = me_runner_head(runner, calls[i].stream);
        const uint32_t on_comm =
            me_runner_head(runner, me_lanes_of_comm(runner->lanes, &calls[i]));
        if (on_stream != number || on_comm != number) {
            return on_stream != number ? on_stream : on_comm;
        }
    }
    return number;
}

/** The step that has begun and holds up @p number. Every turn goes to an
 * earlier step. */
static uint32_t find_blocker(const me_runner *runner, uint32_t number)
{
    for (;;) {
        const uint32_t before = step_before(runner, number);
        if (before >= number) {
            return number;
        }
        number = before;
    }
}

/** The step with the call that would answer @p w on the awaited rank. */
static uint32_t find_answer(const me_call_replay *replay, const wait *w)
{
    const me_runner *runner = runner_of(replay, w->rank);
    const me_runner *other = runner_of(replay, w->awaited);
    const me_call_log *log = other->lanes->log;
    const bool is_p2p = me_call_is_p2p(w->call);
    const struct ncclComm *comm = runner->lanes->log->comms[w->call->comm];
    const int other_comm =
        me_program_find_comm(me_roster_program(replay->roster, w->awaited),
                             comm->group.kind, comm->instance);
    for (uint32_t i = 0; i < other->lanes->n_steps; i++) {
        const me_step *step = &other->lanes->steps[i];
        for (uint32_t j = step->first; j < step->end; j++) {
            const me_call *call = &log->calls[j];
            if (call->kind == ME_CALL_WAIT || call->comm != other_comm ||
                call->seq != w->call->seq || me_call_is_p2p(call) != is_p2p) {
                continue;
            }
            if (!is_p2p ||
                call->channel == runner->partners[w->call->channel].channel) {
                return i;
            }
        }
    }
    return first_open_step(other);
}

/** The member that has not come to a collective. */
static int find_missing(const me_call_replay *replay, const wait *w,
                        const struct ncclComm *comm)
{
    for (int i = 0; i < w->place->group.count; i++) {
        const int rank = me_comm_group_member(&w->place->group, i);
        const int other =
            me_program_find_comm(me_roster_program(replay->roster, rank),
                                 comm->group.kind, comm->instance);
        if (other >= 0 &&
            runner_of(replay, rank)->made[other] <= w->call->seq) {
            return rank;
        }
    }
    return w->rank;
}

/** For whom @p rank waits in the step that holds up @p step. */
static wait wait_of(const me_call_replay *replay, int rank, uint32_t step)
{
    const me_runner *runner = runner_of(replay, rank);
    const me_step *open = &runner->lanes->steps[find_blocker(runner, step)];
    const me_call *calls = runner->lanes->log->calls;
    uint32_t at = open->first;
    while (at + 1 < open->end &&
           me_call_replay_can_end(replay, runner, &calls[at])) {
        at++;
    }
    wait w = {.rank = rank, .call = &calls[at]};
    const struct ncclComm *comm = runner->lanes->log->comms[w.call->comm];
    w.place = &replay->roster->places[comm->group.kind][rank];
    w.awaited = me_call_is_p2p(w.call) ? me_place_peer(w.place, w.call->peer)
                                       : find_missing(replay, &w, comm);
    return w;
}

static void print_wait(me_str *str, const wait *w)
{
    me_str_printf(str, "rank %d waits in ", w->rank);
    me_call_print(w->call, str);
    me_str_append(str, w->call->kind == ME_CALL_SEND   ? " to "
                       : w->call->kind == ME_CALL_RECV ? " from "
                                                       : " for ");
    me_str_printf(str, "rank %d (", w->awaited);
    me_comm_group_print(&w->place->group, str);
    me_str_append(str, ")");
}

/** Print the waits of the cycle, beginning with its lowest rank. */
static void print_cycle(me_str *str, const wait *waits, int count)
{
    enum {
        ROOM = 360
    };

    int low = 0;
    for (int i = 0; i < count; i++) {
        low = waits[i].rank < waits[low].rank ? i : low;
    }
    me_str_append(str, "NCCL would hang: ");
    for (int i = 0; i < count; i++) {
        if (str->length > ROOM && i + 1 < count) {
            me_str_printf(str, "; ... %d more ranks", count - i - 1);
            i = count - 1;
        }
        me_str_append(str, i == 0 ? "" : "; ");
        print_wait(str, &waits[(low + i) % count]);
    }
}

/** Follow the waits from the lowest rank that is stuck until a rank comes up
 * again. Fills @p seen (of each rank: place in @p waits + 1). */
static int follow(const me_call_replay *replay, wait *waits, int *seen,
                  int *length_out)
{
    int rank = 0;
    while (first_open_step(runner_of(replay, rank)) == UINT32_MAX) {
        rank++;
    }
    uint32_t step = first_open_step(runner_of(replay, rank));
    int count = 0;
    while (seen[rank] == 0 && step != UINT32_MAX) {
        waits[count] = wait_of(replay, rank, step);
        seen[rank] = ++count;
        step = find_answer(replay, &waits[count - 1]);
        rank = waits[count - 1].awaited;
    }
    *length_out = count;
    return seen[rank] == 0 ? 0 : seen[rank] - 1;
}

me_status me_call_replay_explain(const me_call_replay *replay, me_diag *diag)
{
    const size_t n = (size_t)replay->roster->world_size;
    wait *waits = me_alloc(n, sizeof *waits, "stall.waits");
    int *seen = me_alloc(n, sizeof *seen, "stall.seen");
    me_str str = {0};
    me_status status = ME_ERR_NOMEM;
    if (waits != NULL && seen != NULL) {
        int length = 0;
        const int from = follow(replay, waits, seen, &length);
        print_cycle(&str, waits + from, length - from);
        status = me_str_status(&str);
    }
    status = status == ME_OK
                 ? me_fail(diag, ME_ERR_MISMATCH, "%s", me_str_text(&str))
                 : me_fail(diag, status, "no host memory for a message");
    me_str_fini(&str);
    me_free(waits);
    me_free(seen);
    return status;
}
