/**
 * @file
 * Options of sbatch: those of `#SBATCH` lines and of its command line, and the
 * variables that Slurm sets for a job that asks for them. sbatch(1).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_SCRIPT_BATCH_H
#define MEMEST_SCRIPT_BATCH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ME_BATCH_TEXT = 256,
    ME_BATCH_SIZE = 32,
    ME_BATCH_LIST = 64 /**< of nodes, or of what each has */
};

/** What a job asks for; 0 or "": it does not say. */
typedef struct me_batch {
    uint32_t nodes;
    uint32_t tasks;
    uint32_t tasks_per_node;
    uint32_t tasks_per_gpu;
    uint32_t cpus_per_task;
    uint32_t first_of_array;
    char array[ME_BATCH_TEXT]; /**< `0-3%1`; "": none */
    bool is_array;
    bool is_parsable;
    char gres[ME_BATCH_TEXT];
    char gpus[ME_BATCH_TEXT];
    char constraint[ME_BATCH_TEXT];
    char gpus_per_node[ME_BATCH_TEXT];
    char gpus_per_task[ME_BATCH_TEXT];
    char tres_per_task[ME_BATCH_TEXT]; /**< `gres/gpu:1` says the same */
    char mem[ME_BATCH_SIZE];           /**< `512G` of a node; or … */
    char mem_per_gpu[ME_BATCH_SIZE];
    char mem_per_cpu[ME_BATCH_SIZE];
    char name[ME_BATCH_TEXT];
    char partition[ME_BATCH_TEXT];
    char account[ME_BATCH_TEXT];
    char folder[ME_BATCH_TEXT];    /**< where it runs */
    char exported[8192];           /**< --export's list */
    char wrapped[8192];            /**< a command in place of a file */
    char node_list[ME_BATCH_TEXT]; /**< `node[1-4]`: as many nodes */
    char wrong[ME_BATCH_TEXT]; /**< an option that decides nothing, and why */
} me_batch;

/** What Slurm makes of it. */
typedef struct me_batch_job {
    uint32_t nodes;
    uint32_t tasks;
    bool has_tasks;         /**< something says them, so SLURM_NTASKS is set */
    bool is_nodes_guess;    /**< GPUs are shared out as most nodes have them */
    uint64_t gpus_per_node; /**< 0: nothing says GPUs */
    char gpus_per_task[ME_BATCH_TEXT]; /**< `[TYPE:]N`; "": not said */
} me_batch_job;

/** Does a file have `#SBATCH` lines in front of its commands? */
bool me_batch_is_file(const char *path);

/** Why sbatch takes no such file (get_script_buffer()); NULL: it takes
 *  it. */
const char *me_batch_file_refusal(const char *path);

/** Take the options of a file's `#SBATCH` lines. */
void me_batch_read_file(me_batch *batch, const char *path);

/** Take one option by its whole name; others than sbatch's say nothing. @p value
 *  "": it has none. */
void me_batch_take(me_batch *batch, const char *name, const char *value);

/** Take those that sbatch's own variables say, such as SBATCH_GRES: they win
 *  over the file, the command line over them. */
void me_batch_read_environment(me_batch *batch);

/** Take the options of a command line, up to the first other word. @return its
 *  place, or @p argc */
int me_batch_read_words(me_batch *batch, int argc, const char *const *argv);

/**
 * Nodes and tasks of a job, as slurmctld works them out of nodes, tasks and GPUs
 * (gres_job_state_validate(), beside what sbatch counts itself).
 *
 * @return false: Slurm would refuse the job, and `wrong` and `why` say it
 */
bool me_batch_settle(me_batch *batch, me_batch_job *job_out);

/** GPUs of a task, of --gpus-per-task, else of --tres-per-task; 0: not said. */
uint64_t me_batch_count_task_gpus(const me_batch *batch);

/** The nodes of a job as Slurm writes them, `node[1-4]`. */
void me_batch_node_list(uint32_t nodes, char text[ME_BATCH_LIST]);

/** Tasks of each node, times @p times, as Slurm writes them: `8(x2)`, `3,2(x2)`
 *  (uint16_array_to_str()). */
void me_batch_per_node(const me_batch_job *job, uint64_t times,
                       char text[ME_BATCH_LIST]);

/** The partition that is asked for, or ME_SLURM_NO_PARTITION; borrowed. */
const char *me_batch_partition(const me_batch *batch);

/** Set the variables that Slurm would. */
void me_batch_set_variables(const me_batch *batch, const me_batch_job *job);

#endif /* MEMEST_SCRIPT_BATCH_H */
