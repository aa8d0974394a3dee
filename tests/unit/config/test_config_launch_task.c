/* SPDX-License-Identifier: BSD-3-Clause */
/* How many tasks a launcher starts, and how many of them on its first node. */
#include "config/launch_task.h"
#include "support/test.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    WORDS_MAX = 16
};

static const struct {
    const char *command; /**< words with a blank between them */
    const char *variables;
    uint64_t ranks;
    uint64_t local;
    uint64_t slots;
} rows[] = {
    {"mpirun -np 8", "", 8, 8, 0},
    {"mpirun -n 8 -N 4", "", 8, 4, 0},
    {"mpirun -np 2 --pernode", "", 2, 1, 0},
    {"mpirun -np 2 -npernode 4", "", 2, 2, 0},
    {"mpirun -np 8 --map-by ppr:2:node", "", 8, 2, 0},
    {"mpirun -np 8 --map-by ppr:2:socket", "", 8, 0, 0},
    {"mpirun -x A=b --mca btl tcp -np 8", "", 8, 8, 0},
    {"mpirun -H a:6,b:2", "", 8, 6, 8},
    {"mpirun -np 4 -H a:6,b:2", "", 4, 4, 8},
    {"mpirun -np 7 -H a:6,b:2", "", 7, 6, 8},
    {"mpirun -np 16 -H a:6,b:2", "", 16, 0, 8}, // refused, or shared out
    {"mpirun -np 8 --hostfile /nowhere", "", 8, 0, 0},
    {"mpirun --hostfile /nowhere", "", 0, 0, 0},
    {"mpirun -np x", "", 0, 0, 0},
    {"mpirun", "", 0, 0, 0},
    {"mpirun", "SLURM_NNODES=2 SLURM_NTASKS=8", 8, 4, 8},
    {"mpirun -np 6", "SLURM_NNODES=2 SLURM_NTASKS=8", 6, 4, 8},
    {"mpirun -np 3", "SLURM_NNODES=2 SLURM_NPROCS=7", 3, 3, 7},
    {"mpirun --npernode 1", "SLURM_NNODES=2 SLURM_NTASKS=16", 2, 1, 16},
    {"mpirun", "LSB_DJOB_NUMPROC=8", 8, 0, 8},
    {"mpiexec -n 8 -ppn 4", "", 8, 4, 0},
    {"jsrun -n 4 -a 2 -r 2", "", 8, 4, 0},
    {"jsrun -p 6", "", 6, 0, 0},
    {"flux -N 2 -n 8", "", 8, 4, 0},
    {"flux -N 2 --tasks-per-node 3", "", 6, 3, 0},
    {"torchrun", "", 1, 1, 0},
    {"torchrun --nnodes 2 --nproc-per-node=4 --no-python", "", 8, 4, 0},
    {"torchrun --standalone --nproc_per_node 8", "", 8, 8, 0},
    {"torchrun --nnodes=1:4 --nproc-per-node=8", "", 0, 0, 0},
    {"torchrun --nnodes 2", "PET_NPROC_PER_NODE=4", 8, 4, 0},
    {"torchrun --nproc-per-node gpu", "", 0, 0, 0},
    {"deepspeed --num_nodes 2 --num_gpus 4", "", 8, 4, 0},
};

/** The words of a text, which is changed. @return how many */
static int split(char *text, const char *words[WORDS_MAX])
{
    int count = 0;
    for (char *c = text; *c != '\0';) {
        assert_true(count < WORDS_MAX - 1);
        words[count++] = c;
        c += strcspn(c, " ");
        if (*c == ' ') {
            *c++ = '\0';
        }
    }
    words[count] = NULL;
    return count;
}

static void test_task__counted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char command[128];
        char variables[128];
        const char *argv[WORDS_MAX];
        const char *environment[WORDS_MAX];
        (void)snprintf(command, sizeof command, "%s", rows[i].command);
        (void)snprintf(variables, sizeof variables, "%s", rows[i].variables);
        const int argc = split(command, argv);
        (void)split(variables, environment);
        const me_launch_task task = me_launch_task_read(
            me_wrapper_find(argv[0]), argc - 1, argv + 1, environment);
        if (task.ranks != rows[i].ranks || task.local != rows[i].local ||
            task.slots != rows[i].slots) {
            fail_msg("%s, %s: %llu ranks, %llu of the first node, %llu slots",
                     rows[i].command, rows[i].variables,
                     (unsigned long long)task.ranks,
                     (unsigned long long)task.local,
                     (unsigned long long)task.slots);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_task__counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
