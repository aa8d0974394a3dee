/**
 * @file
 * Whether this process was started by an MPI launcher. Initialising MPI in a
 * process that was not costs hundreds of milliseconds and brings nothing.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_COLLECTIVES_LAUNCHER_H
#define MEMEST_COLLECTIVES_LAUNCHER_H

#include <stdbool.h>

/**
 * Does the environment hold what mpirun, mpiexec or srun leave there for
 * MPI_Init? SLURM's own variables do not count: a batch script has them too,
 * and srun without an MPI plug-in starts processes that cannot find each
 * other. Local.
 */
bool me_launcher_is_present(void);

#endif /* MEMEST_COLLECTIVES_LAUNCHER_H */
