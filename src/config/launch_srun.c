/* SPDX-License-Identifier: BSD-3-Clause */
/* Slurm 26.05: _opt_verify() and _set_ntasks() of srun, gres_job_state_validate()
 * and gres_step_state_validate(). */
#include "config/launch_srun.h"

#include "config/launch_hosts.h"

/** Nodes of an srun: its -N, else those of the job, else of its -w. */
static uint64_t nodes_of_step(const me_launch_ranks *r)
{
    if (r->srun.nodes != 0 || r->slurm.nodes != 0) {
        return r->srun.nodes != 0 ? r->srun.nodes : r->slurm.nodes;
    }
    return r->node_list == NULL ? 0 : me_host_list_count(r->node_list);
}

me_rank_counts me_srun_step(const me_launch_ranks *ranks)
{
    me_rank_counts step = ranks->srun;
    step.nodes = nodes_of_step(ranks);
    if (step.per_node == 0) {
        step.per_node = ranks->slurm.per_node;
    }
    if (step.ranks == 0 && (ranks->srun.nodes == 0 || step.per_node == 0)) {
        step.ranks = ranks->slurm.ranks;
    }
    return step;
}

/** Does it allocate what it runs on? */
static bool is_direct(const me_launch_ranks *r)
{
    return r->slurm.nodes == 0 && r->slurm.ranks == 0;
}

static bool is_too_many(uint64_t count)
{
    return count > ME_RANKS_MOST;
}

static me_status refuse(me_diag *diag, const char *option, uint64_t number,
                        const char *why)
{
    return me_fail(diag, ME_ERR_CONFIG, "srun %s %llu: %s", option,
                   (unsigned long long)number, why);
}

/** GPUs of a task beside other numbers, as Slurm checks them before it allocates
 *  anything. */
static me_status check_gpus_of_task(const me_launch_ranks *r, me_diag *diag)
{
    static const char option[] = "--gpus-per-task";
    const me_rank_counts step = me_srun_step(r);
    const uint64_t tasks = me_rank_counts_ranks(&step);
    const uint64_t each = r->task_gpus;
    if (each == 0 || !is_direct(r)) {
        return ME_OK;
    }
    if (r->all_gpus == 0 && tasks == 0) {
        return refuse(diag, option, each,
                      "Slurm refuses it without --gpus or -n, which say the "
                      "number of tasks: give -n");
    }
    if (r->all_gpus % each != 0) {
        return refuse(diag, option, each,
                      "Slurm refuses it beside a --gpus that is no multiple "
                      "of it");
    }
    if (r->all_gpus != 0 && tasks != 0 && r->all_gpus / each != tasks) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "srun --gpus %llu --gpus-per-task %llu: Slurm refuses "
                       "them beside %llu tasks: give -n %llu",
                       (unsigned long long)r->all_gpus,
                       (unsigned long long)each, (unsigned long long)tasks,
                       (unsigned long long)(r->all_gpus / each));
    }
    return r->gpus.count != 0 && r->srun.per_node != 0 &&
                   r->gpus.count != each * r->srun.per_node
               ? refuse(diag, option, each,
                        "Slurm refuses it beside other GPUs of a node than "
                        "--ntasks-per-node times it")
               : ME_OK;
}

/** srun(1), --ntasks-per-gpu: at least as many tasks as the GPUs have. */
static me_status settle_tasks_of_gpus(me_launch_ranks *r, me_config *config,
                                      me_diag *diag)
{
    const me_rank_counts step = me_srun_step(r);
    const uint64_t said = me_rank_counts_ranks(&step);
    const uint64_t nodes = step.nodes == 0 ? 1 : step.nodes;
    const uint64_t gpus =
        r->all_gpus != 0 ? r->all_gpus : r->gpus.count * nodes;
    if (r->per_gpu == 0 || (step.ranks == 0 && step.per_node != 0)) {
        return ME_OK;
    }
    if ((gpus == 0 && said == 0) || is_too_many(gpus)) {
        return me_config_leave_world_open(
            config, diag,
            "srun --ntasks-per-gpu %llu: memest cannot tell how many GPUs "
            "there are: give --gpus or --ntasks, or memest's --world-size",
            (unsigned long long)r->per_gpu);
    }
    if (gpus * r->per_gpu <= said) {
        return ME_OK;
    }
    r->srun.ranks = gpus * r->per_gpu;
    return r->all_gpus != 0 || nodes == 1
               ? ME_OK
               : me_config_assume(config, diag,
                                  "srun starts %llu tasks, one or more for "
                                  "each GPU of all nodes; versions of Slurm "
                                  "such as 22.05 count those of one node",
                                  (unsigned long long)r->srun.ranks);
}

/** One task on each node, of a number that GPUs of a node tell, or nobody. */
static me_status settle_nodes_of_gpus(me_launch_ranks *r, me_config *config,
                                      me_diag *diag)
{
    const me_rank_counts step = me_srun_step(r);
    const uint64_t of_node = r->gpus.count;
    if (!is_direct(r) || r->torchrun.is_used || r->all_gpus <= 1 ||
        me_rank_counts_ranks(&step) != 0 || is_too_many(r->all_gpus)) {
        return ME_OK;
    }
    if (of_node != 0) {
        r->srun.nodes = (r->all_gpus + of_node - 1) / of_node;
        return ME_OK;
    }
    return me_config_leave_world_open(
        config, diag,
        "srun --gpus %llu without -n starts one task on each node, of which "
        "nobody says how many there are: give -n %llu for a rank on each GPU, "
        "or memest's --world-size",
        (unsigned long long)r->all_gpus, (unsigned long long)r->all_gpus);
}

me_status me_srun_settle(me_launch_ranks *ranks, me_config *config,
                         me_diag *diag)
{
    if (!ranks->srun.is_used) {
        return ME_OK;
    }
    me_status status = check_gpus_of_task(ranks, diag);
    if (status == ME_OK) {
        status = settle_tasks_of_gpus(ranks, config, diag);
    }
    return status == ME_OK ? settle_nodes_of_gpus(ranks, config, diag) : status;
}

me_status me_srun_settle_step(me_launch_ranks *ranks, me_config *config,
                              me_diag *diag)
{
    const me_rank_counts step = me_srun_step(ranks);
    if (!ranks->srun.is_used || ranks->torchrun.is_used ||
        ranks->mpirun.is_used || ranks->environment.ranks != 0 ||
        ranks->step_tasks != 1 || step.ranks != 0 || step.per_node != 0) {
        return ME_OK;
    }
    ranks->srun.is_used = false; // what it starts nobody knows
    return me_config_leave_world_open(
        config, diag,
        "memest runs in a step of one task, where Slurm does not say how many "
        "tasks the job has: give srun's -n, or memest's --world-size, start "
        "memest without srun, or submit with --ntasks-per-node");
}

/** Nothing says a number of tasks, and a node has several GPUs. */
static me_status say_one_each(const me_launch_ranks *r,
                              const me_rank_counts *step, me_config *config,
                              me_diag *diag)
{
    const uint64_t nodes = step->nodes == 0 ? 1 : step->nodes;
    const bool has_gpus = r->gpus.count > 1 || r->all_gpus > nodes;
    if ((!has_gpus && !is_direct(r)) || step->ranks != 0 ||
        step->per_node != 0 ||
        (step->nodes == 0 && r->all_gpus != 0 && r->gpus.count == 0)) {
        return ME_OK;
    }
    if (!has_gpus && step->nodes == 0) {
        return me_config_assume(config, diag,
                                "srun outside of a job starts one task, since "
                                "neither -n nor -N says more: for one in a "
                                "batch script give that script");
    }
    return me_config_assume(config, diag,
                            "srun starts one task on each of %llu node%s, "
                            "since neither -n nor --ntasks-per-node says more",
                            (unsigned long long)nodes, nodes == 1 ? "" : "s");
}

me_status me_srun_say_tasks(me_launch_ranks *ranks, me_config *config,
                            me_diag *diag)
{
    const me_launch_ranks *r = ranks;
    const me_rank_counts step = me_srun_step(r);
    const uint64_t tasks = me_rank_counts_ranks(&step);
    if (!r->srun.is_used || r->torchrun.is_used) {
        return ME_OK;
    }
    if (r->srun.ranks != 0 || r->slurm.ranks == 0 || r->srun.per_node == 0 ||
        step.nodes == 0 || step.nodes * r->srun.per_node == r->slurm.ranks) {
        return say_one_each(r, &step, config, diag);
    }
    return step.ranks != 0
               ? me_config_assume(config, diag,
                                  "srun starts the %llu tasks of SLURM_NTASKS: "
                                  "beside it --ntasks-per-node %llu is at most "
                                  "a limit",
                                  (unsigned long long)tasks,
                                  (unsigned long long)r->srun.per_node)
               : me_config_assume(config, diag,
                                  "srun starts the %llu tasks of its -N and "
                                  "--ntasks-per-node; versions of Slurm before "
                                  "these win start SLURM_NTASKS = %llu",
                                  (unsigned long long)tasks,
                                  (unsigned long long)r->slurm.ranks);
}

/** Ranks of a node where nodes share them alike; 0: nobody says so. */
static uint64_t evenly(const me_rank_counts *said)
{
    return said->nodes > 1 && said->per_node == 0 &&
                   said->ranks % said->nodes == 0
               ? said->ranks / said->nodes
               : 0;
}

/** One rank on each of several nodes, where the launcher says so. */
static bool is_one_each(const me_rank_counts *said)
{
    return said->per_node == 1 && me_rank_counts_ranks(said) > 1 &&
           (said->nodes == 0 || said->nodes == me_rank_counts_ranks(said));
}

uint64_t me_shared_ranks(const me_launch_ranks *r)
{
    const me_rank_counts step = me_srun_step(r);
    if (r->torchrun.is_used) {
        return is_one_each(&r->torchrun) ? 1 : 0;
    }
    if (r->environment.ranks != 0 || (!r->mpirun.is_used && !r->srun.is_used)) {
        return 0;
    }
    const me_rank_counts *said = r->mpirun.is_used ? &r->mpirun : &step;
    const uint64_t own = is_one_each(said) ? 1 : evenly(said);
    return own != 0 || !r->mpirun.is_used ? own : evenly(&r->slurm);
}
