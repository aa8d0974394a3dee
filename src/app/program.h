/**
 * @file
 * From a plan to the program of one rank: the engine's own configuration.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_APP_PROGRAM_H
#define MEMEST_APP_PROGRAM_H

#include "plan/plan.h"
#include "train/megatron/megatron.h"

/** A rank's program and what it points to. */
typedef struct me_program {
    me_megatron_config config;
    me_communicators comm;
    me_gpt_spec *chunks; /**< owned */
} me_program;

/** @return ME_OK or ME_ERR_NOMEM; @p program_out is for me_program_fini() */
me_status me_program_init(const me_plan *plan, int32_t rank,
                          me_program *program_out);

/** Give back what me_program_init() made. */
void me_program_fini(me_program *program);

#endif /* MEMEST_APP_PROGRAM_H */
