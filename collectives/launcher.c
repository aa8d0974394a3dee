/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/launcher.h"

#include <stddef.h>
#include <stdlib.h>

bool me_launcher_is_present(void)
{
    static const char *const variables[] = {
        "OMPI_COMM_WORLD_SIZE", // Open MPI
        "PMIX_RANK",            // PMIx: Open MPI, srun --mpi=pmix, prte
        "PMIX_NAMESPACE",
        "PMI_RANK", // PMI-1 and PMI-2: MPICH, Intel MPI, srun --mpi=pmi2
        "PMI_SIZE",
        "PMI_FD",
        "MPI_LOCALNRANKS",     // Hydra
        "MV2_COMM_WORLD_SIZE", // MVAPICH
        "PALS_RANKID",         // Cray
    };
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        if (getenv(variables[i]) != NULL) {
            return true;
        }
    }
    return false;
}
