/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/launch_alone.h"

#include "base/parse.h"
#include "config/config_private.h"

#include <string.h>

/** Open MPI, those with PMI (MPICH, Intel MPI, srun --mpi=pmi2), MVAPICH, IBM's
 *  jsrun. */
static const char *const mpi_sizes[] = {
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "JSM_NAMESPACE_SIZE",
};

bool me_launch_needs_number(const char *name)
{
    static const char *const numbers[] = {"WORLD_SIZE", "NPROC_PER_NODE",
                                          "NNODES"};
    return me_is_one_of(name, strlen(name), numbers,
                        sizeof numbers / sizeof *numbers);
}

void me_launch_alone_count(me_launch_alone *alone, const char *name,
                           const char *value, uint64_t *count_out)
{
    uint64_t count = 0;
    if (me_parse_u64(value, &count) == ME_OK && count <= ME_RANKS_MOST) {
        *count_out = count;
    } else if (value[0] != '\0' && alone->wrong == NULL) {
        alone->wrong = name;
        alone->wrong_value = value;
    }
}

me_status me_launch_alone_say_wrong(const me_launch_alone *alone,
                                    me_config *config, me_diag *diag)
{
    return alone->wrong == NULL
               ? ME_OK
               : me_config_leave_world_open(
                     config, diag,
                     "%s=%.60s: must be a whole number, which says how many "
                     "ranks there are: unset it, or give memest's --world-size",
                     alone->wrong, alone->wrong_value);
}

bool me_launch_alone_variable(me_launch_alone *alone, const char *name,
                              const char *value)
{
    alone->is_in_slurm |= strncmp(name, "SLURM_", 6) == 0;
    for (size_t i = 0; i < sizeof mpi_sizes / sizeof *mpi_sizes; i++) {
        uint64_t count = 0;
        if (strcmp(name, mpi_sizes[i]) != 0) {
            continue;
        }
        me_launch_alone_count(alone, mpi_sizes[i], value, &count);
        if (count > alone->mpi_tasks) {
            alone->mpi_tasks = count;
            alone->mpi_variable = mpi_sizes[i];
        }
        return true;
    }
    return false;
}

me_status me_launch_alone_settle(const me_launch_alone *alone,
                                 uint64_t step_tasks, const me_rank_counts *job,
                                 me_config *config, me_diag *diag)
{
    const uint64_t job_tasks =
        alone->is_in_slurm ? me_rank_counts_ranks(job) : 0;
    if (alone->is_empty) {
        return me_config_leave_world_open(
            config, diag,
            "WORLD_SIZE is empty, and no launcher says how many ranks there "
            "are: give it a number, or memest's --world-size");
    }
    if (step_tasks > 1 || alone->mpi_tasks > 1) {
        const bool is_step = step_tasks > 1;
        config->own->tasks_around = is_step ? step_tasks : alone->mpi_tasks;
        config->own->tasks_variable =
            is_step ? "SLURM_STEP_NUM_TASKS" : alone->mpi_variable;
        return ME_OK;
    }
    return job_tasks <= 1
               ? ME_OK
               : me_config_leave_world_open(
                     config, diag,
                     "nothing starts the script more than once, and Slurm's "
                     "job has %llu tasks: put srun or torchrun in front of it, "
                     "or give WORLD_SIZE or memest's --world-size",
                     (unsigned long long)job_tasks);
}
