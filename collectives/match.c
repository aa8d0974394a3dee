/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/match.h"

#include <inttypes.h>

/** The digest and number of a program's collectives on a communicator; a
 * communicator that a program does not make has none. */
static me_comm_summary collectives_of(const me_program *program,
                                      me_group_kind kind, int instance)
{
    const int comm = me_program_find_comm(program, kind, instance);
    return comm < 0 ? (me_comm_summary){0} : program->comms[comm];
}

static bool is_equal_sequence(const me_roster *roster, int a, int b,
                              me_group_kind kind, int instance)
{
    if (roster->program_of[a] == roster->program_of[b]) {
        return true;
    }
    const me_comm_summary x =
        collectives_of(me_roster_program(roster, a), kind, instance);
    const me_comm_summary y =
        collectives_of(me_roster_program(roster, b), kind, instance);
    return x.calls == y.calls && me_digest_is_equal(x.digest, y.digest);
}

/** Every member is compared with the first one. */
static me_mismatch match_collectives(const me_roster *roster,
                                     me_group_kind kind, int rank)
{
    const me_place *place = &roster->places[kind][rank];
    if (place->index <= 0) {
        return (me_mismatch){0};
    }
    const int first = me_comm_group_member(&place->group, 0);
    for (int i = 0; i < roster->instances[kind]; i++) {
        if (!is_equal_sequence(roster, first, rank, kind, i)) {
            return (me_mismatch){.is_found = true,
                                 .ranks = {first, rank},
                                 .kind = kind,
                                 .instance = i};
        }
    }
    return (me_mismatch){0};
}

static int32_t opposite(int32_t offset, int count)
{
    return offset == 0 ? 0 : count - offset;
}

static bool is_answered(const me_roster *roster, int rank,
                        const me_program *program, const me_channel *channel)
{
    const me_comm_summary *comm = &program->comms[channel->comm];
    const me_place *place = &roster->places[comm->kind][rank];
    const int peer = me_place_peer(place, channel->offset);
    const me_program *other = me_roster_program(roster, peer);
    const int other_comm =
        me_program_find_comm(other, comm->kind, comm->instance);
    const me_channel *answer =
        other_comm < 0
            ? NULL
            : me_program_find_channel(other, other_comm, !channel->is_send,
                                      opposite(channel->offset, comm->count));
    return answer != NULL && answer->calls == channel->calls &&
           me_digest_is_equal(answer->digest, channel->digest);
}

static me_mismatch match_channels(const me_roster *roster, int rank)
{
    const me_program *program = me_roster_program(roster, rank);
    for (uint32_t i = 0; i < program->n_channels; i++) {
        const me_channel *channel = &program->channels[i];
        if (is_answered(roster, rank, program, channel)) {
            continue;
        }
        const me_comm_summary *comm = &program->comms[channel->comm];
        const int peer =
            me_place_peer(&roster->places[comm->kind][rank], channel->offset);
        const bool is_send = channel->is_send;
        return (me_mismatch){
            .is_found = true,
            .is_p2p = true,
            .ranks = {is_send ? rank : peer, is_send ? peer : rank},
            .kind = comm->kind,
            .instance = comm->instance,
            .offset = is_send ? channel->offset
                              : opposite(channel->offset, comm->count)};
    }
    return (me_mismatch){0};
}

me_mismatch me_match(const me_roster *roster)
{
    for (int rank = 0; rank < roster->world_size; rank++) {
        for (int kind = 0; kind < ME_GROUP_COUNT; kind++) {
            if (roster->places[kind] == NULL) {
                continue;
            }
            const me_mismatch found =
                match_collectives(roster, (me_group_kind)kind, rank);
            if (found.is_found) {
                return found;
            }
        }
        const me_mismatch found = match_channels(roster, rank);
        if (found.is_found) {
            return found;
        }
    }
    return (me_mismatch){0};
}

/** Walks one sequence of a log: the collectives of a communicator, or the
 * sends or receives of one channel. */
typedef struct walk {
    const me_call_log *log;
    int comm;         /* -1: the program does not make it */
    uint32_t channel; /* UINT32_MAX: collectives, or no such channel */
    bool is_p2p;
    uint32_t at;
} walk;

static const me_call *next_call(walk *w)
{
    while (w->at < w->log->n_calls) {
        const me_call *call = &w->log->calls[w->at++];
        if (call->kind == ME_CALL_WAIT || call->comm != w->comm ||
            me_call_is_p2p(call) != w->is_p2p) {
            continue;
        }
        if (!w->is_p2p || call->channel == w->channel) {
            return call;
        }
    }
    return NULL;
}

static walk begin_walk(const me_roster *roster, const me_mismatch *m, int side,
                       const me_call_log *const *logs)
{
    const int number = roster->program_of[m->ranks[side]];
    const int size = roster->places[m->kind][m->ranks[side]].group.count;
    walk w = {.log = logs[number],
              .comm = me_program_find_comm(&roster->programs[number], m->kind,
                                           m->instance),
              .channel = UINT32_MAX,
              .is_p2p = m->is_p2p};
    if (m->is_p2p && w.comm >= 0) {
        const bool is_send = side == 0;
        w.channel = me_call_log_find_channel(
            w.log, (uint32_t)w.comm, is_send,
            is_send ? m->offset : opposite(m->offset, size));
    }
    return w;
}

static bool is_same_call(const me_call *x, const me_call *y, bool is_p2p)
{
    if (x == NULL || y == NULL) {
        return x == y;
    }
    return x->count == y->count && x->dtype == y->dtype &&
           (is_p2p ||
            (x->kind == y->kind && x->op == y->op && x->peer == y->peer));
}

static void print_side(me_str *str, int rank, const me_call *call,
                       const char *none)
{
    me_str_printf(str, "rank %d makes ", rank);
    if (call == NULL) {
        me_str_append(str, none);
    } else {
        me_call_print(call, str);
    }
}

static void print_mismatch(me_str *str, const me_roster *roster,
                           const me_mismatch *m, const me_call *calls[2],
                           uint64_t number)
{
    const int *ranks = m->ranks;
    me_str_printf(str, "ranks %d and %d of ", ranks[0], ranks[1]);
    me_comm_group_print(&roster->places[m->kind][ranks[0]].group, str);
    if (m->instance > 0) {
        me_str_printf(str, " (communicator %d)", m->instance + 1);
    }
    if (m->is_p2p) {
        me_str_printf(
            str, " disagree on message %" PRIu64 " from rank %d to rank %d: ",
            number, ranks[0], ranks[1]);
    } else {
        me_str_printf(str, " disagree on collective %" PRIu64 ": ", number);
    }
    print_side(str, ranks[0], calls[0], m->is_p2p ? "no ncclSend" : "no more");
    me_str_append(str, ", ");
    print_side(str, ranks[1], calls[1], m->is_p2p ? "no ncclRecv" : "no more");
}

me_status me_mismatch_explain(const me_roster *roster,
                              const me_mismatch *mismatch,
                              const me_call_log *const *logs, me_diag *diag)
{
    walk a = begin_walk(roster, mismatch, 0, logs);
    walk b = begin_walk(roster, mismatch, 1, logs);
    const me_call *calls[2] = {NULL, NULL};
    uint64_t number = 0;
    do {
        calls[0] = next_call(&a);
        calls[1] = next_call(&b);
        number++;
    } while (calls[0] != NULL && calls[1] != NULL &&
             is_same_call(calls[0], calls[1], mismatch->is_p2p));
    me_str str = {0};
    print_mismatch(&str, roster, mismatch, calls, number);
    me_status status = me_str_status(&str);
    status = status == ME_OK
                 ? me_fail(diag, ME_ERR_MISMATCH, "%s", me_str_text(&str))
                 : me_fail(diag, status, "no host memory for a message");
    me_str_fini(&str);
    return status;
}
