/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/launch_task.h"

#include "config/config_private.h"
#include "config/launch_ranks.h"

#include <string.h>

/** Variables that say ranks, of a batch system among others. @return false: no
 *  memory */
static bool take_variables(me_launch_ranks *r, const char *const *variables,
                           me_arena *arena)
{
    for (; *variables != NULL; variables++) {
        char *name = me_arena_strdup(arena, *variables);
        char *equals = name == NULL ? NULL : strchr(name, '=');
        if (name == NULL) {
            return false;
        }
        if (equals != NULL) {
            *equals = '\0';
            (void)me_launch_ranks_variable(r, name, equals + 1);
        }
    }
    return true;
}

/** Where the number that an option says goes; NULL: it says none. */
static uint64_t *count_of(me_launch_ranks *r, me_wrapper_use use)
{
    me_rank_counts *said = r->torchrun.is_used ? &r->torchrun : &r->mpirun;
    return use == ME_WRAPPER_RANKS          ? &said->ranks
           : use == ME_WRAPPER_NODES        ? &said->nodes
           : use == ME_WRAPPER_PER_NODE     ? &said->per_node
           : use == ME_WRAPPER_SETS         ? &r->steps.sets
           : use == ME_WRAPPER_PER_SET      ? &r->steps.per_set
           : use == ME_WRAPPER_SETS_OF_HOST ? &r->steps.sets_of_host
                                            : NULL;
}

/** @return false: who reads the launch says what is wrong */
static bool take_options(me_launch_ranks *r, const me_wrapper *wrapper,
                         int argc, const char *const *argv)
{
    me_diag why = {.status = ME_OK};
    for (int at = 0; at < argc && argv[at][0] == '-';) {
        const char *value = NULL;
        const char *name = argv[at++];
        const me_wrapper_option *option =
            me_wrapper_option_of(wrapper, name, &value);
        if (option == NULL) {
            continue;
        }
        if (value == NULL && option->n_values > 0) {
            if (option->n_values > argc - at) {
                return false;
            }
            value = argv[at];
            at += option->n_values;
        }
        uint64_t *count = count_of(r, option->use);
        if (option->use == ME_WRAPPER_ONE_PER_NODE) {
            r->mpirun.per_node = 1;
        } else if (count == NULL) {
            (void)me_launch_ranks_option(r, wrapper, option, name,
                                         value == NULL ? "" : value);
        } else if (me_launch_ranks_count(r, name, value, &why, count) !=
                   ME_OK) {
            return false;
        }
    }
    return true;
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/** Slots of the first node and of all, which fill one node after the other. */
static me_host_slots find_slots(const me_launch_ranks *r, uint64_t ranks,
                                me_arena *arena)
{
    const me_rank_counts *job = &r->slurm;
    if (me_launch_hosts_are_named(&r->hosts)) {
        return me_mpirun_slots(&r->hosts, arena);
    }
    if (job->nodes == 0 && job->ranks == 0) {
        return (me_host_slots){.first = ranks}; // here, on all cores
    }
    const uint64_t all =
        job->ranks != 0 ? job->ranks : job->nodes * job->per_node;
    return (me_host_slots){.first = job->per_node != 0 ? job->per_node
                                    : job->nodes != 0
                                        ? divide_up(all, job->nodes)
                                        : 0,
                           .all = all};
}

static uint64_t at_most(uint64_t count, uint64_t most)
{
    return count < most ? count : most;
}

/** Hydra goes round its hosts again where they are full. */
static uint64_t fill_first(const me_host_slots *slots, uint64_t ranks,
                           bool is_hydra)
{
    const bool is_over = slots->all != 0 && ranks > slots->all;
    return !is_over   ? at_most(slots->first, ranks)
           : is_hydra ? ranks / slots->all * slots->first +
                            at_most(ranks % slots->all, slots->first)
                      : 0;
}

static me_launch_task count(me_launch_ranks *r, bool is_mpirun,
                            me_config *config)
{
    me_diag why = {.status = ME_OK};
    me_rank_counts *said = &r->mpirun;
    const uint64_t per_node = said->per_node; // by an option, no mean of hosts
    r->slurm.ranks = r->slurm.ranks == 0 ? r->slurm_nprocs : r->slurm.ranks;
    const me_status status =
        is_mpirun
            ? me_mpirun_settle(&r->hosts, r->slurm.nodes, said, config, &why)
            : me_launch_steps_settle(&r->steps, said, config, &why);
    if (status != ME_OK || config->own->world_is_open != NULL) {
        return (me_launch_task){.ranks = 0};
    }
    me_launch_task task = {.ranks = me_rank_counts_ranks(said)};
    if (!is_mpirun) {
        task.local = said->nodes != 0 && said->per_node == 0
                         ? divide_up(task.ranks, said->nodes)
                         : at_most(said->per_node, task.ranks);
        return task;
    }
    task.ranks = task.ranks == 0 ? me_rank_counts_ranks(&r->slurm) : task.ranks;
    const me_host_slots slots = find_slots(r, task.ranks, config->own->text);
    task.local = per_node != 0
                     ? at_most(per_node, task.ranks)
                     : fill_first(&slots, task.ranks, r->hosts.is_hydra);
    task.slots = slots.all;
    return task;
}

/** torchrun, and what counts as it does: a process a card. */
static me_launch_task count_started(me_launch_ranks *r, me_config *config)
{
    me_diag why = {.status = ME_OK};
    if (me_launch_ranks_settle(r, config, &why) != ME_OK ||
        config->own->world_is_open != NULL) {
        return (me_launch_task){.ranks = 0};
    }
    const me_rank_counts *said = &r->torchrun;
    const uint64_t ranks = me_rank_counts_ranks(said);
    me_launch_task task = {.ranks = ranks == 0 ? 1 : ranks};
    task.local = said->per_node != 0 ? said->per_node
                 : said->nodes > 1   ? divide_up(task.ranks, said->nodes)
                                     : task.ranks;
    return task;
}

static bool starts_a_rank_a_card(me_wrapper_kind kind)
{
    return kind == ME_WRAPPER_TORCHRUN || kind == ME_WRAPPER_DEEPSPEED ||
           kind == ME_WRAPPER_ACCELERATE;
}

me_launch_task me_launch_task_read(const me_wrapper *wrapper, int argc,
                                   const char *const *argv,
                                   const char *const *variables)
{
    const bool is_started = starts_a_rank_a_card(wrapper->kind);
    me_launch_ranks ranks = {
        .mpirun = {.is_used = !is_started},
        .torchrun = {.is_used = is_started},
        .deepspeed = {.is_used = wrapper->kind == ME_WRAPPER_DEEPSPEED},
        .accelerate = {.is_used = wrapper->kind == ME_WRAPPER_ACCELERATE},
    };
    me_launch_task task = {.ranks = 0};
    me_config *config = me_config_create();
    const bool is_mpirun = wrapper->kind == ME_WRAPPER_MPIRUN;
    if (!is_mpirun && !is_started) {
        ranks.steps.kind = wrapper->kind;
    }
    if (config != NULL &&
        take_variables(&ranks, variables, config->own->text) &&
        take_options(&ranks, wrapper, argc, argv)) {
        task = is_started ? count_started(&ranks, config)
                          : count(&ranks, is_mpirun, config);
    }
    me_config_destroy(config);
    return task;
}
