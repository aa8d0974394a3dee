/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "collectives/call_replay.h"
#include "collectives/digest_map.h"

/** Memory that lives as long as the replay. */
static void *own(me_call_replay *replay, size_t count, size_t size)
{
    if (replay->n_blocks == replay->block_capacity) {
        const size_t capacity = replay->block_capacity * 2 + 64;
        void **blocks = me_realloc(replay->blocks, capacity, sizeof(void *),
                                   "replay.blocks");
        if (blocks == NULL) {
            return NULL;
        }
        replay->blocks = blocks;
        replay->block_capacity = capacity;
    }
    void *block = me_alloc(count, size, "replay");
    if (block != NULL) {
        replay->blocks[replay->n_blocks++] = block;
    }
    return block;
}

static me_status reserve_runner(me_call_replay *replay, int class)
{
    const int rank = replay->classes->first[class];
    me_runner *runner = &replay->runners[class];
    runner->lanes = &replay->lanes[replay->roster->program_of[rank]];
    const me_call_log *log = runner->lanes->log;
    const size_t n_comms = log->n_comms;
    const size_t n_channels = log->n_channels;
    const size_t n_streams = runner->lanes->n_streams;
    const size_t n_lanes = runner->lanes->n_lanes;
    uint32_t *words = own(
        replay, n_lanes + 2 * n_streams + n_comms + n_channels, sizeof *words);
    runner->party = own(replay, n_comms, sizeof *runner->party);
    runner->partners = own(replay, n_channels, sizeof *runner->partners);
    if (words == NULL || runner->party == NULL || runner->partners == NULL) {
        return ME_ERR_NOMEM;
    }
    runner->cursor = words;
    runner->begun = runner->cursor + n_lanes;
    runner->resume = runner->begun + n_streams;
    runner->made = runner->resume + n_streams;
    runner->sent = runner->made + n_comms;
    return ME_OK;
}

static const me_place *place_of(const me_call_replay *replay, int class,
                                const struct ncclComm *comm)
{
    const int rank = replay->classes->first[class];
    return &replay->roster->places[comm->group.kind][rank];
}

/** The digests have matched, so every channel has an opposite. */
static void find_partners(me_call_replay *replay, int class)
{
    me_runner *runner = &replay->runners[class];
    const me_call_log *log = runner->lanes->log;
    for (uint32_t i = 0; i < log->n_channels; i++) {
        const me_channel *channel = &log->channels[i];
        const struct ncclComm *comm = log->comms[channel->comm];
        const int peer =
            me_place_peer(place_of(replay, class, comm), channel->offset);
        const int other = replay->classes->class_of[peer];
        const me_program *program = me_roster_program(replay->roster, peer);
        const int other_comm =
            me_program_find_comm(program, comm->group.kind, comm->instance);
        const int32_t back =
            channel->offset == 0 ? 0 : comm->group.count - channel->offset;
        runner->partners[i] =
            (me_partner){.class = other,
                         .channel = me_call_log_find_channel(
                             replay->runners[other].lanes->log,
                             (uint32_t)other_comm, !channel->is_send, back)};
    }
}

/** The distinct classes of the group of @p class, once each. */
static me_status fill_party(me_call_replay *replay, int class,
                            const struct ncclComm *comm, me_party *party)
{
    const me_comm_group *group = &place_of(replay, class, comm)->group;
    const size_t most = (size_t)(group->count < replay->classes->count
                                     ? group->count
                                     : replay->classes->count);
    party->classes = own(replay, most, sizeof *party->classes);
    party->comms = own(replay, most, sizeof *party->comms);
    if (party->classes == NULL || party->comms == NULL) {
        return ME_ERR_NOMEM;
    }
    for (int i = 0; i < group->count; i++) {
        const int rank = me_comm_group_member(group, i);
        const int other = replay->classes->class_of[rank];
        if (replay->runners[other].is_queued) {
            continue; // borrowed here as a mark
        }
        replay->runners[other].is_queued = true;
        party->classes[party->count] = other;
        party->comms[party->count++] =
            me_program_find_comm(me_roster_program(replay->roster, rank),
                                 comm->group.kind, comm->instance);
    }
    for (int i = 0; i < party->count; i++) {
        replay->runners[party->classes[i]].is_queued = false;
    }
    party->n_last = party->count;
    return ME_OK;
}

static me_status find_parties(me_call_replay *replay, me_digest_map *map,
                              int class)
{
    me_runner *runner = &replay->runners[class];
    const me_call_log *log = runner->lanes->log;
    for (uint32_t i = 0; i < log->n_comms; i++) {
        const struct ncclComm *comm = log->comms[i];
        if (comm->calls == 0) {
            continue;
        }
        const me_place *place = place_of(replay, class, comm);
        const int leader = me_comm_group_member(&place->group, 0);
        me_digest key = {0};
        me_digest_add(&key, (uint64_t)comm->group.kind);
        me_digest_add(&key, comm->instance);
        me_digest_add(&key, replay->classes->set_of[comm->group.kind][leader]);
        runner->party[i] = me_digest_map_get(map, key, replay->n_parties);
        if (runner->party[i] < replay->n_parties) {
            continue;
        }
        const me_status status = fill_party(
            replay, class, comm, &replay->parties[replay->n_parties++]);
        if (status != ME_OK) {
            return status;
        }
    }
    return ME_OK;
}

static me_status queue_programs(me_call_replay *replay,
                                const me_call_log *const *logs)
{
    const int n = replay->roster->n_programs;
    replay->lanes = own(replay, (size_t)n, sizeof *replay->lanes);
    if (replay->lanes == NULL) {
        return ME_ERR_NOMEM;
    }
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < n; i++) {
        if (logs[i] != NULL) {
            status = me_lanes_init(logs[i], &replay->lanes[i]);
        }
    }
    return status;
}

static me_status connect_runners(me_call_replay *replay)
{
    const int n = replay->classes->count;
    size_t most = 0;
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < n; i++) {
        status = reserve_runner(replay, i);
        if (status == ME_OK) {
            most += replay->runners[i].lanes->log->n_comms;
        }
    }
    if (status != ME_OK) {
        return status;
    }
    me_digest_map map = {0};
    replay->parties = own(replay, most, sizeof *replay->parties);
    status =
        replay->parties == NULL ? ME_ERR_NOMEM : me_digest_map_init(&map, most);
    for (int i = 0; status == ME_OK && i < n; i++) {
        find_partners(replay, i);
        status = find_parties(replay, &map, i);
    }
    me_digest_map_fini(&map);
    return status;
}

me_status me_call_replay_init(const me_roster *roster,
                              const me_classes *classes,
                              const me_call_log *const *logs,
                              me_call_replay *replay_out)
{
    *replay_out = (me_call_replay){.roster = roster, .classes = classes};
    const size_t n = (size_t)classes->count;
    const me_status status = queue_programs(replay_out, logs);
    replay_out->runners = own(replay_out, n, sizeof *replay_out->runners);
    replay_out->queue = own(replay_out, n, sizeof *replay_out->queue);
    if (status != ME_OK || replay_out->runners == NULL ||
        replay_out->queue == NULL) {
        return ME_ERR_NOMEM;
    }
    return connect_runners(replay_out);
}

void me_call_replay_fini(me_call_replay *replay)
{
    for (int i = 0; replay->lanes != NULL && i < replay->roster->n_programs;
         i++) {
        me_lanes_fini(&replay->lanes[i]);
    }
    for (size_t i = 0; i < replay->n_blocks; i++) {
        me_free(replay->blocks[i]);
    }
    me_free(replay->blocks);
    *replay = (me_call_replay){0};
}
