/**
 * @file
 * What the first task that a launcher starts is told of how many there are. Open
 * MPI's mpirun(1), Hydra's mpiexec, torchrun, deepspeed, accelerate.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_CONFIG_LAUNCH_TASK_H
#define MEMEST_CONFIG_LAUNCH_TASK_H

#include "config/wrappers.h"

#include <stdint.h>

/** Numbers of tasks; 0: nobody can tell. */
typedef struct me_launch_task {
    uint64_t ranks; /**< in all */
    uint64_t local; /**< on the first one's node */
    uint64_t slots; /**< that the job has room for */
} me_launch_task;

/**
 * Count as the launcher does, by its options and the variables of the batch
 * system around it. Host files are read. Local.
 *
 * @param wrapper    the launcher
 * @param argc       of @p argv
 * @param argv       its options, behind its name
 * @param variables  of the environment, `NAME=VALUE`, NULL behind the last
 */
me_launch_task me_launch_task_read(const me_wrapper *wrapper, int argc,
                                   const char *const *argv,
                                   const char *const *variables);

#endif /* MEMEST_CONFIG_LAUNCH_TASK_H */
