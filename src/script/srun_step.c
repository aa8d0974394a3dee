/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/srun_step.h"

#include "base/parse.h"
#include "base/str.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** In front of a name: its value outside of the step. */
#define OUTSIDE "MEMEST_OUTSIDE_"
/** The same, of a name that was not set. */
#define ABSENT  "MEMEST_ABSENT_"

/** Options of srun's that say GPUs. */
static const char *const of_gpus[] = {"gpus", "gpus-per-node", "gpus-per-task",
                                      "tres-per-task", "gres"};

/** srun(1), "input environment variables", as far as they count. */
static const struct {
    const char *name;
    const char *option;
} inputs[] = {
    {"SLURM_NPROCS", "ntasks"},
    {"SLURM_NTASKS", "ntasks"},
    {"SLURM_NNODES", "nodes"},
    {"SLURM_JOB_NUM_NODES", "nodes"},
    {"SLURM_NTASKS_PER_NODE", "ntasks-per-node"},
    {"SLURM_NTASKS_PER_GPU", "ntasks-per-gpu"},
    {"SLURM_NTASKS_PER_TRES", "ntasks-per-tres"},
    {"SLURM_CPUS_PER_TASK", "cpus-per-task"},
    {"SRUN_CPUS_PER_TASK", "cpus-per-task"},
};

void me_step_take(me_step *step, const char *name, const char *value)
{
    me_batch_take(&step->said, name, value == NULL ? "" : value);
    step->says_gpus |= me_is_one_of(name, strlen(name), of_gpus,
                                    sizeof of_gpus / sizeof *of_gpus);
}

/** What the job, or whoever calls, says where the words do not. */
static me_batch job_around(void)
{
    me_batch job = {.nodes = 0};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const char *value = getenv(inputs[i].name);
        if (value != NULL && value[0] != '\0') {
            me_batch_take(&job, inputs[i].option, value);
        }
    }
    return job;
}

static uint32_t first_of(uint32_t said, uint32_t otherwise)
{
    return said != 0 ? said : otherwise;
}

/** Nodes, tasks and GPUs of the step, as me_srun_step() has them. */
static bool settle(const me_step *step, me_batch *merged, me_batch_job *out)
{
    const me_batch around = job_around();
    const me_batch *said = &step->said;
    *merged = *said;
    merged->nodes = first_of(said->nodes, around.nodes);
    merged->tasks_per_node =
        first_of(said->tasks_per_node, around.tasks_per_node);
    merged->cpus_per_task = first_of(said->cpus_per_task, around.cpus_per_task);
    const bool is_by_node = said->nodes != 0 && merged->tasks_per_node != 0;
    merged->tasks = first_of(said->tasks, is_by_node ? 0 : around.tasks);
    merged->tasks_per_gpu = 0; // of a step: at least as many, below
    if (merged->tasks == 0 && merged->tasks_per_node == 0) {
        merged->gpus_per_task[0] = '\0'; // srun starts a task on each node
        merged->tres_per_task[0] = '\0';
    }
    if (said->wrong[0] != '\0' || !me_batch_settle(merged, out)) {
        return false;
    }
    const uint64_t least = out->gpus_per_node * out->nodes *
                           first_of(said->tasks_per_gpu, around.tasks_per_gpu);
    out->tasks = least > out->tasks ? (uint32_t)least : out->tasks;
    out->nodes = out->tasks < out->nodes ? out->tasks : out->nodes;
    return true;
}

/** Set a variable of the step, having kept what it was outside; @p value NULL:
 *  it is not set. */
static void set(const char *name, const char *value)
{
    char kept[96];
    const char *before = getenv(name);
    (void)snprintf(kept, sizeof kept, ABSENT "%s", name);
    const bool was_absent = getenv(kept) != NULL;
    if (before == NULL && !was_absent) {
        (void)setenv(kept, "", 1);
    }
    (void)snprintf(kept, sizeof kept, OUTSIDE "%s", name);
    if (before != NULL && !was_absent) {
        (void)setenv(kept, before, 0);
    }
    if (value != NULL) {
        (void)setenv(name, value, 1);
    } else {
        (void)unsetenv(name);
    }
}

static void set_number(const char *name, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    set(name, text);
}

/** `0,1,2`. */
static void set_list(const char *name, uint64_t count)
{
    enum {
        MOST = 4096
    };

    me_str list = {0};
    for (uint64_t i = 0; i < count && i < MOST; i++) {
        me_str_printf(&list, "%s%" PRIu64, i == 0 ? "" : ",", i);
    }
    if (strncmp(name, "SLURM_", 6) == 0) {
        set(name, me_str_text(&list));
    } else {
        (void)setenv(name, me_str_text(&list), 1); // counts for the launch
    }
    me_str_fini(&list);
}

static void set_gpus(const me_step *step, const me_batch_job *job)
{
    const uint64_t count = job->gpus_per_node;
    const uint64_t of_task = me_batch_count_task_gpus(&step->said);
    if (!step->says_gpus || count == 0 || count > 64) {
        return;
    }
    set_number("SLURM_GPUS_ON_NODE", count);
    set_list("SLURM_STEP_GPUS", count);
    // --gpus-per-task binds each task to its own
    set_list("CUDA_VISIBLE_DEVICES",
             of_task != 0 && of_task < count ? of_task : count);
}

/** What the job's own variables would be, of an srun that makes one. */
static void set_job(const me_step *step, const me_batch_job *job)
{
    static const char *const numbers[] = {"SLURM_JOB_ID", "SLURM_JOBID"};
    const me_batch *said = &step->said;
    char list[ME_BATCH_LIST];
    char cpus[ME_BATCH_LIST];
    const uint64_t each = first_of(said->cpus_per_task, 1);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        set(numbers[i], "1");
    }
    me_batch_node_list(job->nodes, list);
    set("SLURM_JOB_NODELIST", list);
    set("SLURM_NODELIST", list);
    set("SLURMD_NODENAME", "node1");
    set("SLURM_CLUSTER_NAME", "cluster");
    set_number("SLURM_JOB_NUM_NODES", job->nodes);
    set("SLURM_JOB_NAME", said->name[0] != '\0' ? said->name : step->name);
    set("SLURM_JOB_PARTITION", me_batch_partition(said));
    set("SLURM_JOB_ACCOUNT", said->account[0] != '\0' ? said->account : NULL);
    me_batch_per_node(job, each, cpus);
    set("SLURM_JOB_CPUS_PER_NODE", cpus);
    set_number("SLURM_CPUS_ON_NODE",
               each * ((job->tasks + job->nodes - 1) / job->nodes));
}

/** What options say of tasks has a variable of its own. */
static void set_said(const me_batch *said)
{
    const struct {
        const char *name;
        uint32_t number;
    } rows[] = {
        {"SLURM_NTASKS_PER_NODE", said->tasks_per_node},
        {"SLURM_NTASKS_PER_GPU", said->tasks_per_gpu},
        {"SLURM_NTASKS_PER_TRES", said->tasks_per_gpu},
        {"SLURM_CPUS_PER_TASK", said->cpus_per_task},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].number != 0) {
            set_number(rows[i].name, rows[i].number);
        }
    }
}

/** Numbers of nodes and tasks, the job's own names of them among them. */
static void set_counts(const me_batch_job *job)
{
    static const char *const of_nodes[] = {"SLURM_NNODES",
                                           "SLURM_STEP_NUM_NODES"};
    static const char *const of_tasks[] = {"SLURM_NTASKS", "SLURM_NPROCS",
                                           "SLURM_STEP_NUM_TASKS"};
    static const char *const each[] = {"SLURM_TASKS_PER_NODE",
                                       "SLURM_STEP_TASKS_PER_NODE"};
    char text[ME_BATCH_LIST];
    for (size_t i = 0; i < sizeof of_nodes / sizeof *of_nodes; i++) {
        set_number(of_nodes[i], job->nodes);
    }
    for (size_t i = 0; i < sizeof of_tasks / sizeof *of_tasks; i++) {
        set_number(of_tasks[i], job->tasks);
    }
    me_batch_per_node(job, 1, text);
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        set(each[i], text);
    }
    set_list("SLURM_GTIDS", (job->tasks + job->nodes - 1) / job->nodes);
}

/** The first nodes of the job's list, as many as the step has. */
static void set_nodes(const me_batch *said, const me_batch_job *job)
{
    char list[ME_BATCH_LIST];
    const char *whole = getenv("SLURM_JOB_NODELIST");
    const char *all = getenv("SLURM_JOB_NUM_NODES");
    uint64_t n_all = 0;
    if (said->node_list[0] != '\0') {
        set("SLURM_STEP_NODELIST", said->node_list);
    } else if (whole != NULL && all != NULL &&
               me_parse_u64(all, &n_all) == ME_OK && n_all == job->nodes) {
        set("SLURM_STEP_NODELIST", whole);
    } else {
        me_batch_node_list(job->nodes, list);
        set("SLURM_STEP_NODELIST", list);
    }
}

void me_step_set_variables(const me_step *step)
{
    static const char *const zeros[] = {"SLURM_PROCID", "SLURM_LOCALID",
                                        "SLURM_NODEID", "SLURM_STEP_ID",
                                        "SLURM_STEPID"};
    static me_batch merged;
    me_batch_job job;
    const bool is_direct = getenv("SLURM_JOB_ID") == NULL;
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        set(zeros[i], "0");
    }
    if (!settle(step, &merged, &job)) {
        return;
    }
    if (is_direct) {
        set_job(step, &job);
    }
    set_nodes(&step->said, &job);
    set_counts(&job);
    set_said(&step->said);
    set_gpus(step, &job);
}

void me_step_forget(void)
{
    static const char *const marks[] = {OUTSIDE, ABSENT};
    me_str gone = {0};
    for (char **at = environ; *at != NULL; at++) {
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
            if (strncmp(*at, marks[i], strlen(marks[i])) == 0) {
                me_str_append_n(&gone, *at, strcspn(*at, "="));
                me_str_append_n(&gone, "", 1);
            }
        }
    }
    for (size_t at = 0; at < gone.length; at += strlen(gone.text + at) + 1) {
        (void)unsetenv(gone.text + at);
    }
    me_str_fini(&gone);
}

const char *me_step_variable_outside(const char *variable)
{
    static const size_t outside = sizeof OUTSIDE - 1;
    char kept[96];
    if (strncmp(variable, OUTSIDE, outside) == 0) {
        return variable + outside;
    }
    const int length = (int)strcspn(variable, "=");
    if (length > 60) {
        return variable;
    }
    (void)snprintf(kept, sizeof kept, ABSENT "%.*s", length, variable);
    if (getenv(kept) != NULL) {
        return NULL;
    }
    (void)snprintf(kept, sizeof kept, OUTSIDE "%.*s", length, variable);
    return getenv(kept) != NULL ? NULL : variable;
}
