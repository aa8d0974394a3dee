/* SPDX-License-Identifier: BSD-3-Clause */
/* slurmctld's arithmetic of nodes, tasks and GPUs. */
#include "config/launch_hosts.h"
#include "config/rank_counts.h"
#include "config/slurm.h"
#include "script/batch.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST = 1 << 20 /**< nodes or tasks */
};

/** What options say of GPUs; 0: nothing. */
typedef struct gpus_said {
    uint64_t all;
    uint64_t per_node;
    uint64_t per_task;
} gpus_said;

static uint64_t count_of(const char *text, bool needs_gpu)
{
    me_slurm_gpus gpus = {.count = 0};
    return me_slurm_gpus_read(text, needs_gpu, &gpus) && gpus.count <= MOST
               ? gpus.count
               : 0;
}

/** GPUs of a task as `[TYPE:]N`, of --gpus-per-task, else of --tres-per-task. */
static void copy_task_gpus(const me_batch *batch, char text[ME_BATCH_TEXT])
{
    const char *tres = me_slurm_tres_gpus(batch->tres_per_task);
    const bool is_tres = batch->gpus_per_task[0] == '\0' && tres != NULL;
    (void)snprintf(text, ME_BATCH_TEXT, "%.*s",
                   is_tres ? (int)strcspn(tres, ",") : ME_BATCH_TEXT - 1,
                   is_tres ? tres : batch->gpus_per_task);
}

uint64_t me_batch_count_task_gpus(const me_batch *batch)
{
    char text[ME_BATCH_TEXT];
    copy_task_gpus(batch, text);
    return count_of(text, false);
}

static gpus_said gpus_of(const me_batch *batch)
{
    const uint64_t per_node = count_of(batch->gpus_per_node, false);
    return (gpus_said){.all = count_of(batch->gpus, false),
                       .per_node = per_node != 0 ? per_node
                                                 : count_of(batch->gres, true),
                       .per_task = me_batch_count_task_gpus(batch)};
}

static uint32_t divide_up(uint64_t a, uint64_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

/** Nodes where neither -N nor -w says them. */
static uint32_t guess_nodes(const me_batch *batch, const gpus_said *gpus,
                            uint32_t tasks, bool *is_guess_out)
{
    const uint64_t all =
        gpus->all != 0 ? gpus->all : gpus->per_task * (uint64_t)tasks;
    if (gpus->all != 0 && gpus->per_node != 0) {
        return divide_up(gpus->all, gpus->per_node);
    }
    if (batch->tasks_per_node > 0 && tasks > 0) {
        return divide_up(tasks, batch->tasks_per_node);
    }
    *is_guess_out = all > ME_USUAL_GPUS && gpus->per_node == 0;
    return *is_guess_out ? divide_up(all, ME_USUAL_GPUS) : 1;
}

/** Tasks that GPUs of a task or tasks of a GPU give; 0: they do not. */
static uint64_t tasks_of_gpus(const me_batch *batch, const gpus_said *gpus,
                              uint32_t nodes)
{
    if (batch->tasks_per_gpu > 0) {
        const uint64_t all =
            gpus->all != 0 ? gpus->all : gpus->per_node * (uint64_t)nodes;
        return all * batch->tasks_per_gpu;
    }
    return gpus->per_task != 0 && gpus->all != 0 ? gpus->all / gpus->per_task
                                                 : 0;
}

static bool refuse(me_batch *batch, const char *wrong, const char *why)
{
    (void)snprintf(batch->wrong, sizeof batch->wrong, "%.120s: %s", wrong, why);
    return false;
}

/** GPUs of a task need a number of tasks, or of all GPUs. */
static bool check_gpus(me_batch *batch, const gpus_said *gpus, uint32_t nodes)
{
    char text[ME_BATCH_TEXT];
    char wrong[ME_BATCH_TEXT];
    copy_task_gpus(batch, text);
    (void)snprintf(wrong, sizeof wrong, "--gpus-per-task %.60s", text);
    if (gpus->per_task == 0 || batch->tasks > 0 || batch->tasks_per_gpu > 0) {
        return true;
    }
    if (gpus->all % gpus->per_task != 0) {
        return refuse(batch, wrong, "--gpus must be a multiple of it");
    }
    if (gpus->all == 0 && batch->tasks_per_node == 0 &&
        (nodes == 0 || gpus->per_node != 0 || batch->cpus_per_task > 0)) {
        return refuse(batch, wrong,
                      "Slurm wants --ntasks or --gpus beside it, which say "
                      "the number of tasks");
    }
    return true;
}

/** What sbatch refuses side by side (_validate_ntasks_per_gpu()). */
static bool check_exclusive(me_batch *batch)
{
    const bool has_per_gpu = batch->tasks_per_gpu > 0;

    const struct {
        bool is_there;
        const char *wrong;
        const char *other;
    } rows[] = {
        {has_per_gpu && batch->tasks_per_node > 0, "--ntasks-per-gpu",
         "Slurm refuses it beside --ntasks-per-node"},
        {has_per_gpu && me_batch_count_task_gpus(batch) != 0,
         "--ntasks-per-gpu",
         "Slurm refuses it beside --gpus-per-task and --tres-per-task"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].is_there) {
            return refuse(batch, rows[i].wrong, rows[i].other);
        }
    }
    return true;
}

/** GPUs of a node by whatever option says it; 0: none does. */
static uint64_t gpus_of_node(const gpus_said *gpus, const me_batch_job *job)
{
    if (gpus->per_node != 0) {
        return gpus->per_node;
    }
    return gpus->all != 0 ? divide_up(gpus->all, job->nodes)
                          : gpus->per_task * divide_up(job->tasks, job->nodes);
}

bool me_batch_settle(me_batch *batch, me_batch_job *job_out)
{
    const gpus_said gpus = gpus_of(batch);
    const uint64_t listed =
        batch->nodes != 0 ? batch->nodes : me_host_list_count(batch->node_list);
    const uint32_t nodes = listed <= MOST ? (uint32_t)listed : 0;
    const uint32_t asked = nodes == 0 ? 1 : nodes;
    me_batch_job job = {.tasks = batch->tasks};
    if (!check_exclusive(batch) || !check_gpus(batch, &gpus, nodes)) {
        return false;
    }
    if (job.tasks == 0 && batch->tasks_per_node > 0) {
        job.tasks = asked * batch->tasks_per_node;
    } else if (job.tasks == 0) {
        const uint64_t tasks = tasks_of_gpus(batch, &gpus, asked);
        job.tasks = tasks <= MOST ? (uint32_t)tasks : 0;
    }
    if (job.tasks == 0 && gpus.per_task != 0) {
        job.tasks = nodes; // a task a node
    }
    job.has_tasks = job.tasks != 0;
    job.nodes = nodes != 0
                    ? nodes
                    : guess_nodes(batch, &gpus, job.tasks, &job.is_nodes_guess);
    job.tasks = job.has_tasks ? job.tasks : job.nodes;
    job.gpus_per_node = gpus_of_node(&gpus, &job);
    copy_task_gpus(batch, job.gpus_per_task);
    *job_out = job;
    return true;
}
