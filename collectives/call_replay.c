/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/call_replay.h"

static void wake(me_call_replay *replay, int class)
{
    me_runner *runner = &replay->runners[class];
    if (runner->is_queued) {
        return;
    }
    runner->is_queued = true;
    const int n = replay->classes->count;
    replay->queue[(replay->queue_head + replay->queue_length++) % n] = class;
}

uint32_t me_runner_head(const me_runner *runner, uint32_t lane)
{
    const me_lanes *lanes = runner->lanes;
    const uint32_t at = lanes->start[lane] + runner->cursor[lane];
    return at < lanes->start[lane + 1] ? lanes->queue[at] : UINT32_MAX;
}

/** NCCL drops collectives of nothing, and they hold nobody up. */
static bool is_dropped(const me_call *call)
{
    return call->count == 0 && !me_call_is_p2p(call);
}

bool me_call_replay_can_end(const me_call_replay *replay,
                            const me_runner *runner, const me_call *call)
{
    if (call->kind == ME_CALL_WAIT || is_dropped(call)) {
        return true;
    }
    if (me_call_is_p2p(call)) {
        const me_partner partner = runner->partners[call->channel];
        return replay->runners[partner.class].sent[partner.channel] > call->seq;
    }
    return replay->parties[runner->party[call->comm]].ended > call->seq;
}

/** The class has begun one more collective of the party. */
static void join(me_call_replay *replay, me_party *party, uint32_t made)
{
    if (made != party->ended + 1 || --party->n_last > 0) {
        return;
    }
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < party->count; i++) {
        const uint32_t other =
            replay->runners[party->classes[i]].made[party->comms[i]];
        if (other < least) {
            least = other;
            party->n_last = 0;
        }
        party->n_last += other == least;
    }
    party->ended = least;
    for (int i = 0; i < party->count; i++) {
        wake(replay, party->classes[i]);
    }
}

static bool is_at_head(const me_runner *runner, uint32_t number)
{
    const me_step *step = &runner->lanes->steps[number];
    for (uint32_t i = step->first; i < step->end; i++) {
        const me_call *call = &runner->lanes->log->calls[i];
        if (call->kind != ME_CALL_WAIT &&
            (me_runner_head(runner, call->stream) != number ||
             me_runner_head(runner, me_lanes_of_comm(runner->lanes, call)) !=
                 number)) {
            return false;
        }
    }
    return true;
}

static void begin_step(me_call_replay *replay, me_runner *runner,
                       const me_step *step)
{
    for (uint32_t i = step->first; i < step->end; i++) {
        const me_call *call = &runner->lanes->log->calls[i];
        if (call->kind == ME_CALL_WAIT) {
            continue;
        }
        if (me_call_is_p2p(call)) {
            runner->sent[call->channel]++;
            wake(replay, runner->partners[call->channel].class);
        } else {
            const uint32_t made = ++runner->made[call->comm];
            join(replay, &replay->parties[runner->party[call->comm]], made);
        }
    }
}

static void pop(me_runner *runner, uint32_t lane, uint32_t number)
{
    if (me_runner_head(runner, lane) == number) {
        runner->cursor[lane]++;
    }
}

static void end_step(me_runner *runner, uint32_t number)
{
    const me_step *step = &runner->lanes->steps[number];
    for (uint32_t i = step->first; i < step->end; i++) {
        const me_call *call = &runner->lanes->log->calls[i];
        if (call->kind != ME_CALL_WAIT) {
            pop(runner, call->stream, number);
            pop(runner, me_lanes_of_comm(runner->lanes, call), number);
        }
    }
}

/** Go on with the step at the head of a stream; has anything moved? */
static bool advance(me_call_replay *replay, me_runner *runner, uint32_t stream)
{
    const uint32_t number = me_runner_head(runner, stream);
    if (number == UINT32_MAX) {
        return false;
    }
    const me_step *step = &runner->lanes->steps[number];
    const me_call *calls = runner->lanes->log->calls;
    if (me_step_is_wait(runner->lanes, step)) {
        const bool is_over =
            runner->cursor[calls[step->first].peer] >= step->position;
        runner->cursor[stream] += is_over;
        return is_over;
    }
    if (calls[step->first].stream != stream) {
        return false; // it goes on from the stream of its first call
    }
    const bool is_new = runner->begun[stream] != number + 1;
    if (is_new) {
        if (!is_at_head(runner, number)) {
            return false;
        }
        runner->begun[stream] = number + 1;
        runner->resume[stream] = step->first;
        begin_step(replay, runner, step);
    }
    uint32_t at = runner->resume[stream];
    while (at < step->end &&
           me_call_replay_can_end(replay, runner, &calls[at])) {
        at++;
    }
    runner->resume[stream] = at;
    if (at < step->end) {
        return is_new;
    }
    end_step(runner, number);
    return true;
}

static bool has_ended(const me_runner *runner)
{
    for (uint32_t i = 0; i < runner->lanes->n_streams; i++) {
        if (me_runner_head(runner, i) != UINT32_MAX) {
            return false;
        }
    }
    return true;
}

bool me_call_replay_run(me_call_replay *replay)
{
    const int n = replay->classes->count;
    for (int i = 0; i < n; i++) {
        wake(replay, i);
    }
    while (replay->queue_length > 0) {
        me_runner *runner = &replay->runners[replay->queue[replay->queue_head]];
        replay->queue_head = (replay->queue_head + 1) % n;
        replay->queue_length--;
        runner->is_queued = false;
        bool has_moved = true;
        while (has_moved) {
            has_moved = false;
            for (uint32_t i = 0; i < runner->lanes->n_streams; i++) {
                has_moved = advance(replay, runner, i) || has_moved;
            }
        }
    }
    for (int i = 0; i < n; i++) {
        if (!has_ended(&replay->runners[i])) {
            return false;
        }
    }
    return true;
}
