/**
 * @file
 * What every process knows of every rank before a check: which program it
 * runs, the digests of that program, and the groups it is in.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_ROSTER_H
#define MEMEST_COLLECTIVES_ROSTER_H

#include "collectives/call_log_impl.h"
#include "collectives/check.h"

/** A communicator of a program. */
typedef struct me_comm_summary {
    me_group_kind kind;
    int instance; /**< which one of its kind */
    int count;    /**< members */
    uint32_t calls;
    me_digest digest;
} me_comm_summary;

/** A log, without its calls. Equal logs are one program. */
typedef struct me_program {
    me_digest digest;
    uint64_t n_calls;
    me_comm_summary *comms;
    uint32_t n_comms;
    me_channel *channels; /**< sorted by communicator, direction, offset */
    uint32_t n_channels;
    int process; /**< who has a log of it, and which; the first one */
    int log;
} me_program;

/** A rank's place in its group of one kind. */
typedef struct me_place {
    me_comm_group group;
    int index; /**< -1: in no group of that kind */
} me_place;

typedef struct me_roster {
    int world_size;
    me_program *programs;
    int n_programs;
    int *program_of;                  /**< of each rank */
    me_place *places[ME_GROUP_COUNT]; /**< of each rank; NULL: kind unused */
    int instances[ME_GROUP_COUNT];    /**< most communicators of that kind */
} me_roster;

/**
 * Exchange summaries and look up the groups. Collective; all processes return
 * the same.
 *
 * @param roster_out  to be given back with me_roster_fini(), also on failure
 */
me_status me_roster_init(me_transport *transport, const me_check_part *part,
                         me_diag *diag, me_roster *roster_out);

/** Give back what the roster holds; one that is all zero is allowed. Local. */
void me_roster_fini(me_roster *roster);

/** The program of @p rank. Local. */
const me_program *me_roster_program(const me_roster *roster, int rank);

/** The program's communicator of that kind and instance, or -1. Local. */
int me_program_find_comm(const me_program *program, me_group_kind kind,
                         int instance);

/** The program's channel, or NULL. Local. */
const me_channel *me_program_find_channel(const me_program *program, int comm,
                                          bool is_send, int32_t offset);

/** The rank that is @p offset members after that of @p place. Local. */
int me_place_peer(const me_place *place, int32_t offset);

/** Logs of programs, on process 0. */
typedef struct me_roster_logs {
    const me_call_log **logs; /**< one a program, NULL where not wanted; NULL on
                                   other processes */
    me_call_log *
        *own; /**< of them, those that are no process's own part; owned */
    int count;
} me_roster_logs;

/**
 * Bring the logs of some programs to process 0, which alone has nothing to bring:
 * it looks at its own. Collective.
 *
 * @param part       what @p logs_out may borrow logs of
 * @param is_wanted  for each program; the same on all processes
 * @param logs_out   to be given back with me_roster_logs_fini()
 */
me_status me_roster_fetch(me_transport *transport, const me_check_part *part,
                          const me_roster *roster, const bool *is_wanted,
                          me_diag *diag, me_roster_logs *logs_out);

/** Give back what me_roster_fetch() made. Local. */
void me_roster_logs_fini(me_roster_logs *logs);

#endif /* MEMEST_COLLECTIVES_ROSTER_H */
