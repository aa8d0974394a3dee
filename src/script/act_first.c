/* SPDX-License-Identifier: BSD-3-Clause */
/* What launchers tell the first of their tasks: mpirun(1) of Open MPI, Hydra's
 * PMI, PALS' mpiexec, jsrun(1), flux-run(1), torchrun, deepspeed. */
#include "base/parse.h"
#include "config/launch_task.h"
#include "script/act_private.h"
#include "script/guise.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** What a variable says. */
typedef enum said {
    FIRST, /**< 0: a rank, the first */
    RANKS,
    LOCAL, /**< ranks of its node */
    NODES, /**< where each has as many ranks */
    SLOTS
} said;

typedef struct row {
    me_wrapper_kind kind;
    const char *name;
    said says;
    const char *not_of; /**< programs that are another MPI's; NULL: none */
} row;

static const char of_hydra[] = "mpiexec.hydra mpirun.mpich mpiexec.mpich";
static const char of_open_mpi[] =
    "mpirun.openmpi mpiexec.openmpi orterun prterun prun";

/** mpirun may be anybody's: a script takes those of its own. */
static const row rows[] = {
    {ME_WRAPPER_MPIRUN, "OMPI_COMM_WORLD_RANK", FIRST, of_hydra},
    {ME_WRAPPER_MPIRUN, "OMPI_COMM_WORLD_LOCAL_RANK", FIRST, of_hydra},
    {ME_WRAPPER_MPIRUN, "OMPI_COMM_WORLD_NODE_RANK", FIRST, of_hydra},
    {ME_WRAPPER_MPIRUN, "OMPI_COMM_WORLD_SIZE", RANKS, of_hydra},
    {ME_WRAPPER_MPIRUN, "OMPI_COMM_WORLD_LOCAL_SIZE", LOCAL, of_hydra},
    {ME_WRAPPER_MPIRUN, "OMPI_UNIVERSE_SIZE", SLOTS, of_hydra},
    {ME_WRAPPER_MPIRUN, "PMIX_RANK", FIRST, of_hydra},
    {ME_WRAPPER_MPIRUN, "PMI_RANK", FIRST, of_open_mpi},
    {ME_WRAPPER_MPIRUN, "PMI_SIZE", RANKS, of_open_mpi},
    {ME_WRAPPER_MPIRUN, "PMI_LOCAL_RANK", FIRST, of_open_mpi},
    {ME_WRAPPER_MPIRUN, "PMI_LOCAL_SIZE", LOCAL, of_open_mpi},
    {ME_WRAPPER_MPIRUN, "MPI_LOCALRANKID", FIRST, of_open_mpi},
    {ME_WRAPPER_MPIRUN, "MPI_LOCALNRANKS", LOCAL, of_open_mpi},
    {ME_WRAPPER_MPIRUN, "PALS_RANKID", FIRST, of_open_mpi},
    {ME_WRAPPER_MPIRUN, "PALS_LOCAL_RANKID", FIRST, of_open_mpi},
    {ME_WRAPPER_MPIRUN, "PALS_LOCAL_SIZE", LOCAL, of_open_mpi},
    {ME_WRAPPER_JSRUN, "OMPI_COMM_WORLD_RANK", FIRST, NULL},
    {ME_WRAPPER_JSRUN, "OMPI_COMM_WORLD_LOCAL_RANK", FIRST, NULL},
    {ME_WRAPPER_JSRUN, "OMPI_COMM_WORLD_SIZE", RANKS, NULL},
    {ME_WRAPPER_JSRUN, "OMPI_COMM_WORLD_LOCAL_SIZE", LOCAL, NULL},
    {ME_WRAPPER_JSRUN, "JSM_NAMESPACE_RANK", FIRST, NULL},
    {ME_WRAPPER_JSRUN, "JSM_NAMESPACE_LOCAL_RANK", FIRST, NULL},
    {ME_WRAPPER_JSRUN, "JSM_NAMESPACE_SIZE", RANKS, NULL},
    {ME_WRAPPER_JSRUN, "JSM_NAMESPACE_LOCAL_SIZE", LOCAL, NULL},
    {ME_WRAPPER_FLUX, "FLUX_TASK_RANK", FIRST, NULL},
    {ME_WRAPPER_FLUX, "FLUX_TASK_LOCAL_ID", FIRST, NULL},
    {ME_WRAPPER_FLUX, "FLUX_JOB_SIZE", RANKS, NULL},
    {ME_WRAPPER_APRUN, "ALPS_APP_PE", FIRST, NULL},
    {ME_WRAPPER_TORCHRUN, "RANK", FIRST, NULL},
    {ME_WRAPPER_TORCHRUN, "LOCAL_RANK", FIRST, NULL},
    {ME_WRAPPER_TORCHRUN, "GROUP_RANK", FIRST, NULL},
    {ME_WRAPPER_TORCHRUN, "WORLD_SIZE", RANKS, NULL},
    {ME_WRAPPER_TORCHRUN, "LOCAL_WORLD_SIZE", LOCAL, NULL},
    {ME_WRAPPER_TORCHRUN, "GROUP_WORLD_SIZE", NODES, NULL},
    {ME_WRAPPER_ACCELERATE, "RANK", FIRST, NULL}, // through torchrun's code
    {ME_WRAPPER_ACCELERATE, "LOCAL_RANK", FIRST, NULL},
    {ME_WRAPPER_ACCELERATE, "GROUP_RANK", FIRST, NULL},
    {ME_WRAPPER_ACCELERATE, "WORLD_SIZE", RANKS, NULL},
    {ME_WRAPPER_ACCELERATE, "LOCAL_WORLD_SIZE", LOCAL, NULL},
    {ME_WRAPPER_ACCELERATE, "GROUP_WORLD_SIZE", NODES, NULL},
    {ME_WRAPPER_DEEPSPEED, "RANK", FIRST, NULL},
    {ME_WRAPPER_DEEPSPEED, "LOCAL_RANK", FIRST, NULL},
    {ME_WRAPPER_DEEPSPEED, "WORLD_SIZE", RANKS, NULL},
    {ME_WRAPPER_DEEPSPEED, "LOCAL_SIZE", LOCAL, NULL},
    {ME_WRAPPER_DEEPSPEED, "CROSS_RANK", FIRST, NULL},
    {ME_WRAPPER_DEEPSPEED, "CROSS_SIZE", NODES, NULL},
};

static bool counts(me_wrapper_kind kind)
{
    return kind == ME_WRAPPER_MPIRUN || kind == ME_WRAPPER_JSRUN ||
           kind == ME_WRAPPER_FLUX || kind == ME_WRAPPER_TORCHRUN ||
           kind == ME_WRAPPER_ACCELERATE || kind == ME_WRAPPER_DEEPSPEED;
}

static uint64_t number_of(said says, const me_launch_task *task)
{
    switch (says) {
    case FIRST: return 0;
    case RANKS: return task->ranks;
    case LOCAL: return task->local;
    case NODES: return task->local == 0 ? 0 : task->ranks / task->local;
    case SLOTS: return task->slots;
    }
    return 0;
}

void me_guise_set_first(const me_wrapper *wrapper, int argc, char **argv)
{
    const char *program = me_guise_base(argv[0]);
    me_launch_task task = {.ranks = 0};
    if (counts(wrapper->kind)) {
        const char *const *words = (const char *const *)(argv + 1);
        const int own = me_wrapper_subcommand(wrapper, argc - 1, words);
        task = me_launch_task_read(wrapper, argc - 1 - own, words + own,
                                   (const char *const *)environ);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        const uint64_t number = number_of(r->says, &task);
        char text[24];
        (void)snprintf(text, sizeof text, "%" PRIu64, number);
        if (r->kind != wrapper->kind ||
            (r->not_of != NULL &&
             me_names_have(r->not_of, program, strlen(program)))) {
            continue;
        }
        if (r->says == FIRST || number != 0) {
            (void)setenv(r->name, text, 1);
        } else {
            (void)unsetenv(r->name); // of whoever starts memest
        }
    }
}
