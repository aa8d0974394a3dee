/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/classes.h"

#include "base/alloc.h"
#include "collectives/digest_map.h"

#include <string.h>

/** What one refinement works with. */
typedef struct scratch {
    me_digest_map map;
    int *next;        /* of each rank */
    uint64_t *stamps; /* of each class: the group that counted it last */
    uint64_t stamp;
} scratch;

/** A hash of the set of classes in a group, whatever the order. */
static uint64_t hash_set(const me_classes *classes, const me_comm_group *group,
                         scratch *s)
{
    uint64_t sum = 0;
    s->stamp++;
    for (int i = 0; i < group->count; i++) {
        const int class = classes->class_of[me_comm_group_member(group, i)];
        if (s->stamps[class] != s->stamp) {
            s->stamps[class] = s->stamp;
            sum += me_digest_mix((uint64_t) class + 1);
        }
    }
    return sum;
}

static void hash_sets(const me_roster *roster, me_classes *classes, scratch *s)
{
    for (int kind = 0; kind < ME_GROUP_COUNT; kind++) {
        const me_place *places = roster->places[kind];
        for (int rank = 0; places != NULL && rank < roster->world_size;
             rank++) {
            if (places[rank].index == 0) {
                classes->set_of[kind][rank] =
                    hash_set(classes, &places[rank].group, s);
            }
        }
    }
}

static me_digest sign_rank(const me_roster *roster, const me_classes *classes,
                           int rank)
{
    const me_program *program = me_roster_program(roster, rank);
    me_digest digest = {0};
    me_digest_add(&digest, (uint64_t)classes->class_of[rank]);
    for (uint32_t i = 0; i < program->n_comms; i++) {
        const me_comm_summary *comm = &program->comms[i];
        const me_place *place = &roster->places[comm->kind][rank];
        if (comm->calls > 0) {
            const int leader = me_comm_group_member(&place->group, 0);
            me_digest_add(&digest, classes->set_of[comm->kind][leader]);
        }
    }
    for (uint32_t i = 0; i < program->n_channels; i++) {
        const me_channel *channel = &program->channels[i];
        const me_group_kind kind = program->comms[channel->comm].kind;
        const int peer =
            me_place_peer(&roster->places[kind][rank], channel->offset);
        me_digest_add(&digest, (uint64_t)classes->class_of[peer]);
    }
    return digest;
}

/** Split classes whose ranks differ; how many there are then. */
static int refine(const me_roster *roster, me_classes *classes, scratch *s)
{
    hash_sets(roster, classes, s);
    me_digest_map_clear(&s->map);
    int count = 0;
    for (int rank = 0; rank < roster->world_size; rank++) {
        const me_digest digest = sign_rank(roster, classes, rank);
        s->next[rank] = me_digest_map_get(&s->map, digest, count);
        count += s->next[rank] == count;
    }
    memcpy(classes->class_of, s->next,
           (size_t)roster->world_size * sizeof *s->next);
    return count;
}

static me_status reserve(const me_roster *roster, me_classes *classes,
                         scratch *s)
{
    const size_t n = (size_t)roster->world_size;
    classes->class_of = me_alloc(n, sizeof *classes->class_of, "classes.of");
    classes->first = me_alloc(n, sizeof *classes->first, "classes.first");
    s->next = me_alloc(n, sizeof *s->next, "classes.next");
    // Programs that no rank runs have numbers as well.
    const size_t n_ids = n + (size_t)roster->n_programs;
    s->stamps = me_alloc(n_ids, sizeof *s->stamps, "classes.stamps");
    if (classes->class_of == NULL || classes->first == NULL ||
        s->next == NULL || s->stamps == NULL) {
        return ME_ERR_NOMEM;
    }
    for (int kind = 0; kind < ME_GROUP_COUNT; kind++) {
        if (roster->places[kind] == NULL) {
            continue;
        }
        classes->set_of[kind] = me_alloc(n, sizeof(uint64_t), "classes.sets");
        if (classes->set_of[kind] == NULL) {
            return ME_ERR_NOMEM;
        }
    }
    return me_digest_map_init(&s->map, n);
}

me_status me_classes_init(const me_roster *roster, me_classes *classes_out)
{
    *classes_out = (me_classes){0};
    scratch s = {0};
    const me_status status = reserve(roster, classes_out, &s);
    if (status == ME_OK) {
        memcpy(classes_out->class_of, roster->program_of,
               (size_t)roster->world_size * sizeof *roster->program_of);
        int before = 0;
        do {
            before = classes_out->count;
            classes_out->count = refine(roster, classes_out, &s);
        } while (classes_out->count != before);
        hash_sets(roster, classes_out, &s);
        for (int rank = roster->world_size; rank-- > 0;) {
            classes_out->first[classes_out->class_of[rank]] = rank;
        }
    }
    me_digest_map_fini(&s.map);
    me_free(s.next);
    me_free(s.stamps);
    return status;
}

void me_classes_fini(me_classes *classes)
{
    me_free(classes->class_of);
    me_free(classes->first);
    for (int kind = 0; kind < ME_GROUP_COUNT; kind++) {
        me_free(classes->set_of[kind]);
    }
    *classes = (me_classes){0};
}
