/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/roster.h"

#include "base/alloc.h"
#include "collectives/digest_map.h"
#include "collectives/roster_wire.h"

#include <string.h>

static void free_program(me_program *program)
{
    me_free(program->comms);
    me_free(program->channels);
}

void me_roster_fini(me_roster *roster)
{
    for (int i = 0; i < roster->n_programs; i++) {
        free_program(&roster->programs[i]);
    }
    for (int kind = 0; kind < ME_GROUP_COUNT; kind++) {
        me_free(roster->places[kind]);
    }
    me_free(roster->programs);
    me_free(roster->program_of);
    *roster = (me_roster){0};
}

const me_program *me_roster_program(const me_roster *roster, int rank)
{
    return &roster->programs[roster->program_of[rank]];
}

int me_program_find_comm(const me_program *program, me_group_kind kind,
                         int instance)
{
    for (uint32_t i = 0; i < program->n_comms; i++) {
        if (program->comms[i].kind == kind &&
            program->comms[i].instance == instance) {
            return (int)i;
        }
    }
    return -1;
}

int me_place_peer(const me_place *place, int32_t offset)
{
    const int64_t index = ((int64_t)place->index + offset) % place->group.count;
    return me_comm_group_member(&place->group, (int)index);
}

/** Keep @p program unless an equal one is known; its number either way. */
static int keep_program(me_roster *roster, me_digest_map *map,
                        me_program *program)
{
    const int number =
        me_digest_map_get(map, program->digest, roster->n_programs);
    if (number < roster->n_programs) {
        free_program(program);
    } else {
        roster->programs[roster->n_programs++] = *program;
    }
    return number;
}

/** One process's logs and ranks. */
static me_status read_process(me_roster *roster, me_digest_map *map,
                              int process, me_reader *reader)
{
    const int n_logs = me_reader_get_int(reader);
    int *numbers = me_alloc((size_t)n_logs, sizeof *numbers, "roster.numbers");
    if (numbers == NULL) {
        return ME_ERR_NOMEM;
    }
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < n_logs; i++) {
        me_program program = {.process = process, .log = i};
        status = me_program_read(reader, &program);
        if (status == ME_OK) {
            numbers[i] = keep_program(roster, map, &program);
        }
    }
    const int n_ranks = me_reader_get_int(reader);
    for (int i = 0; status == ME_OK && i < n_ranks; i++) {
        const int rank = me_reader_get_int(reader);
        const int log = me_reader_get_int(reader);
        if (rank < 0 || rank >= roster->world_size || log < 0 ||
            log >= n_logs || roster->program_of[rank] >= 0) {
            status = ME_ERR_INTERNAL;
        } else {
            roster->program_of[rank] = numbers[log];
        }
    }
    me_free(numbers);
    return reader->is_short && status == ME_OK ? ME_ERR_INTERNAL : status;
}

static int count_logs(const me_blob *blobs, int n_processes)
{
    int count = 0;
    for (int i = 0; i < n_processes; i++) {
        me_reader reader = {.bytes = blobs[i].bytes, .size = blobs[i].size};
        count += me_reader_get_int(&reader);
    }
    return count;
}

static me_status read_all(me_roster *roster, const me_blob *blobs,
                          int n_processes, me_diag *diag)
{
    const size_t world_size = (size_t)roster->world_size;
    const int n_logs = count_logs(blobs, n_processes);
    me_digest_map map = {0};
    roster->program_of =
        me_alloc(world_size, sizeof *roster->program_of, "roster.ranks");
    roster->programs =
        me_alloc((size_t)n_logs, sizeof *roster->programs, "roster.programs");
    me_status status = me_digest_map_init(&map, (size_t)n_logs);
    if (roster->program_of == NULL || roster->programs == NULL) {
        status = ME_ERR_NOMEM;
    }
    for (int i = 0; status == ME_OK && i < roster->world_size; i++) {
        roster->program_of[i] = -1;
    }
    for (int i = 0; status == ME_OK && i < n_processes; i++) {
        me_reader reader = {.bytes = blobs[i].bytes, .size = blobs[i].size};
        status = read_process(roster, &map, i, &reader);
    }
    me_digest_map_fini(&map);
    if (status != ME_OK) {
        return me_fail(diag, status,
                       "process list of the check: %s (a rank twice, outside "
                       "of the world of %d, or without a log)",
                       me_status_text(status), roster->world_size);
    }
    for (int i = 0; i < roster->world_size; i++) {
        if (roster->program_of[i] < 0) {
            return me_fail(diag, ME_ERR_INTERNAL,
                           "rank %d of %d is simulated by nobody", i,
                           roster->world_size);
        }
    }
    return ME_OK;
}

/** Does the group that member 0 names have @p place in it? */
static bool is_consistent(const me_place *places, int rank, int world_size)
{
    const me_place *place = &places[rank];
    if (place->index >= place->group.count ||
        !me_comm_group_is_valid(&place->group, 1 << 30) ||
        me_comm_group_member(&place->group, place->index) != rank) {
        return false;
    }
    const int first = me_comm_group_member(&place->group, 0);
    if (first < 0 || first >= world_size) {
        return false;
    }
    const me_place *leader = &places[first];
    return leader->index == 0 && leader->group.count == place->group.count &&
           me_comm_group_member(&leader->group, place->index) == rank &&
           (leader != place ||
            me_comm_group_is_valid(&place->group, world_size));
}

static me_status no_room(const me_roster *roster, me_diag *diag)
{
    return me_fail(diag, ME_ERR_NOMEM,
                   "no host memory for the groups of %d ranks",
                   roster->world_size);
}

static me_status look_up_places(me_roster *roster, const me_check_part *part,
                                me_group_kind kind, me_diag *diag)
{
    me_place *places =
        me_alloc((size_t)roster->world_size, sizeof *places, "roster.places");
    roster->places[kind] = places;
    if (places == NULL) {
        return no_room(roster, diag);
    }
    for (int rank = 0; rank < roster->world_size; rank++) {
        me_place *place = &places[rank];
        place->index = part->group_of(part->self, rank, kind, &place->group);
        place->group.kind = kind;
        if (place->index == ME_GROUP_HAS_NO_LIST) {
            return no_room(roster, diag);
        }
    }
    for (int rank = 0; rank < roster->world_size; rank++) {
        if (places[rank].index >= 0 &&
            !is_consistent(places, rank, roster->world_size)) {
            return me_fail(diag, ME_ERR_INTERNAL,
                           "rank %d and the others of its %s group name "
                           "different members",
                           rank, me_group_kind_name(kind));
        }
    }
    return ME_OK;
}

/** Every communicator must be as large as the group it stands for. */
static me_status check_sizes(const me_roster *roster, me_diag *diag)
{
    for (int rank = 0; rank < roster->world_size; rank++) {
        const me_program *program = me_roster_program(roster, rank);
        for (uint32_t i = 0; i < program->n_comms; i++) {
            const me_comm_summary *comm = &program->comms[i];
            const me_place *place = &roster->places[comm->kind][rank];
            if (place->index < 0 || place->group.count != comm->count) {
                return me_fail(diag, ME_ERR_INTERNAL,
                               "rank %d has a communicator of %d for its %s "
                               "group of %d",
                               rank, comm->count,
                               me_group_kind_name(comm->kind),
                               place->index < 0 ? 0 : place->group.count);
            }
        }
    }
    return ME_OK;
}

static me_status look_up_groups(me_roster *roster, const me_check_part *part,
                                me_diag *diag)
{
    for (int i = 0; i < roster->n_programs; i++) {
        const me_program *program = &roster->programs[i];
        for (uint32_t j = 0; j < program->n_comms; j++) {
            const me_comm_summary *comm = &program->comms[j];
            if (roster->instances[comm->kind] <= comm->instance) {
                roster->instances[comm->kind] = comm->instance + 1;
            }
        }
    }
    me_status status = ME_OK;
    for (int kind = 0; status == ME_OK && kind < ME_GROUP_COUNT; kind++) {
        if (roster->instances[kind] > 0) {
            status = look_up_places(roster, part, (me_group_kind)kind, diag);
        }
    }
    return status == ME_OK ? check_sizes(roster, diag) : status;
}

me_status me_roster_init(me_transport *transport, const me_check_part *part,
                         me_diag *diag, me_roster *roster_out)
{
    *roster_out = (me_roster){.world_size = part->world_size};
    me_writer writer = {0};
    me_blob *blobs = NULL;
    me_status status = me_part_write(&writer, part, diag);
    status = me_transport_agree(transport, status, diag);
    if (status == ME_OK) {
        status = me_transport_all_gather(transport, writer.bytes, writer.size,
                                         diag, &blobs);
    }
    if (status == ME_OK) {
        status =
            read_all(roster_out, blobs, me_transport_size(transport), diag);
        if (status == ME_OK) {
            status = look_up_groups(roster_out, part, diag);
        }
        status = me_transport_agree(transport, status, diag);
    }
    me_blobs_free(blobs, me_transport_size(transport));
    me_writer_fini(&writer);
    return status;
}
