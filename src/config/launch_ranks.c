/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/launch_ranks.h"

#include "base/parse.h"
#include "config/config_private.h"
#include "config/launch_hosts.h"
#include "config/launch_srun.h"
#include "config/options.h"
#include "config/site.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST = ME_RANKS_MOST
};

/** A variable whose value is a number. */
typedef struct counted {
    const char *name;
    size_t offset; /**< of a uint64_t in me_launch_ranks */
} counted;

/** sbatch(1), "output environment variables"; srun takes its own options from
 * them. Behind them Torque's, LSF's and what memest sets for a batch script. */
static const counted counts[] = {
    {"SLURM_NTASKS", offsetof(me_launch_ranks, slurm.ranks)},
    {"SLURM_NPROCS", offsetof(me_launch_ranks, slurm_nprocs)},
    {"SLURM_STEP_NUM_TASKS", offsetof(me_launch_ranks, step_tasks)},
    {"SLURM_NNODES", offsetof(me_launch_ranks, slurm.nodes)},
    {"SLURM_JOB_NUM_NODES", offsetof(me_launch_ranks, slurm.nodes)},
    {"SLURM_NTASKS_PER_NODE", offsetof(me_launch_ranks, slurm.per_node)},
    {"SLURM_GPUS_ON_NODE", offsetof(me_launch_ranks, gpus.count)},
    {"SLURM_CPUS_ON_NODE", offsetof(me_launch_ranks, cpus)},
    {"SLURM_NTASKS_PER_GPU", offsetof(me_launch_ranks, per_gpu)},
    {"SLURM_NTASKS_PER_TRES", offsetof(me_launch_ranks, per_gpu)},
    {"PBS_NP", offsetof(me_launch_ranks, slurm.ranks)},
    {"PBS_NUM_NODES", offsetof(me_launch_ranks, slurm.nodes)},
    {"PBS_NUM_PPN", offsetof(me_launch_ranks, slurm.per_node)},
    {"LSB_DJOB_NUMPROC", offsetof(me_launch_ranks, slurm.ranks)},
    {"MEMEST_ASSUMED_NODES", offsetof(me_launch_ranks, assumed_nodes)},
};

/** A variable whose text is kept as it is. */
static const counted texts[] = {
    {"SLURM_JOB_PARTITION", offsetof(me_launch_ranks, partition)},
    {"SLURM_MEM_PER_NODE", offsetof(me_launch_ranks, job_memory.of_node)},
    {"SLURM_MEM_PER_GPU", offsetof(me_launch_ranks, job_memory.of_gpu)},
    {"SLURM_MEM_PER_CPU", offsetof(me_launch_ranks, job_memory.of_cpu)},
    {"PBS_NODEFILE", offsetof(me_launch_ranks, hosts.batch_file)},
    {"PET_NNODES", offsetof(me_launch_ranks, pet_nodes)},
    {"PET_NPROC_PER_NODE", offsetof(me_launch_ranks, pet_per_node)},
};

/** MEMEST_GRES and MEMEST_CONSTRAINT are what a batch script says, for which
 * Slurm has no variable. */
static const struct {
    const char *name;
    const char *option;
} asked[] = {
    {"SLURM_GPUS_PER_NODE", "--gpus-per-node"},
    {"SLURM_TRES_PER_TASK", "--tres-per-task"},
    {"SLURM_GPUS_PER_TASK", "--gpus-per-task"},
    {"SLURM_GPUS", "--gpus"},
    {"MEMEST_GRES", "--gres"},
    {"MEMEST_CONSTRAINT", "--constraint"},
};

/** `-C h100` or `--constraint=h100`: the card where nothing better says it. */
static bool is_constraint(const char *option)
{
    return strncmp(option, "-C", 2) == 0 ||
           strncmp(option, "--constraint", 12) == 0;
}

void me_launch_ranks_gpus(me_launch_ranks *ranks, const char *option,
                          const char *value)
{
    me_slurm_gpus gpus = {.count = 0};
    if (is_constraint(option)) {
        if (ranks->gpus.type[0] == '\0' && ranks->status == ME_OK) {
            ranks->status = me_slurm_constraint_read(value, ranks->gpus.type);
        }
        return;
    }
    const size_t length = strcspn(option, "=");
    const bool is_tres = strncmp(option, "--tres-per-task", 15) == 0;
    const bool is_of_task =
        is_tres || strncmp(option, "--gpus-per-task", 15) == 0;
    if (is_tres && (value = me_slurm_tres_gpus(value)) == NULL) {
        return;
    }
    const bool is_gres = strncmp(option, "--gres", length) == 0 && length == 6;
    const bool is_of_node =
        is_gres ||
        (strncmp(option, "--gpus-per-node", length) == 0 && length == 15);
    if (!me_slurm_gpus_read(value, is_gres || is_tres, &gpus)) {
        return;
    }
    if (gpus.type[0] != '\0') {
        if (ranks->asked_type[0] != '\0' &&
            strcmp(ranks->asked_type, gpus.type) != 0) {
            memcpy(ranks->other_type, gpus.type, sizeof gpus.type);
        }
        memcpy(ranks->asked_type, gpus.type, sizeof gpus.type);
        memcpy(ranks->mixed_type, gpus.other, sizeof gpus.other);
        memcpy(ranks->gpus.type, gpus.type, sizeof gpus.type);
    }
    if (strncmp(option, "-G", 2) == 0 ||
        (strncmp(option, "--gpus", length) == 0 && length == 6)) {
        ranks->all_gpus = gpus.count;
    }
    if (is_of_task) {
        ranks->task_gpus = gpus.count;
    }
    if (is_of_node && gpus.count > 0 && gpus.count <= MOST) {
        ranks->gpus.count = gpus.count;
    }
}

void me_launch_ranks_partition(me_launch_ranks *ranks, const char *name)
{
    ranks->partition = name;
}

/** Does a word of a list stand for a device that one before it stands for? @p
 *  length of what counts of it */
static bool is_repeated(const char *list, const char *word, size_t length)
{
    for (const char *at = list; at < word; at += strcspn(at, ",") + 1) {
        const char *other = at + strspn(at, " ");
        if (other < word && strncmp(other, word, length) == 0 &&
            strchr(", ", other[length]) != NULL) {
            return true;
        }
    }
    return false;
}

/** Devices of a list, as torch.cuda counts them (_parse_visible_devices()): up to
 *  the first that is none, such as -1; none where one is there twice. 0: it hides
 *  none, or all. */
static uint64_t count_visible(const char *list)
{
    static const char *const prefixes[] = {"GPU-", "MIG-"};
    const char *prefix = NULL;
    uint64_t count = 0;
    for (size_t i = 0; i < 2; i++) {
        prefix = strncmp(list, prefixes[i], 4) == 0 ? prefixes[i] : prefix;
    }
    for (const char *at = list; *at != '\0';) {
        const char *word = prefix == NULL ? at + strspn(at, " ") : at;
        const size_t n =
            prefix == NULL ? strspn(word, "0123456789") : strcspn(word, ",");
        if (n == 0 || (prefix != NULL && strncmp(word, prefix, 4) != 0)) {
            break;
        }
        if (is_repeated(list, word, n)) {
            return 0;
        }
        count++;
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return count;
}

bool me_launch_ranks_variable(me_launch_ranks *ranks, const char *name,
                              const char *value)
{
    if (me_launch_alone_variable(&ranks->alone, name, value)) {
        return true;
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        if (strcmp(name, counts[i].name) == 0) {
            me_launch_alone_count(
                &ranks->alone, counts[i].name, value,
                (uint64_t *)(void *)((char *)ranks + counts[i].offset));
            return true;
        }
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(name, texts[i].name) == 0) {
            *(const char **)(void *)((char *)ranks + texts[i].offset) = value;
            return true;
        }
    }
    if (strcmp(name, "LSB_MCPU_HOSTS") == 0) {
        ranks->slurm.per_node = me_lsf_slots_each(value);
        return true;
    }
    if (strcmp(name, "CUDA_VISIBLE_DEVICES") == 0) {
        ranks->visible = count_visible(value);
        return true;
    }
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        if (strcmp(name, asked[i].name) == 0) {
            me_launch_ranks_gpus(ranks, asked[i].option, value);
            ranks->asked_type[0] = '\0'; // options of srun win
            ranks->other_type[0] = '\0';
            return true;
        }
    }
    return false;
}

bool me_launch_says_ranks(const char *name)
{
    me_launch_ranks ranks = {.gpus = {.count = 0}};
    return me_launch_needs_number(name) ||
           me_launch_ranks_variable(&ranks, name, "");
}

/** What mpirun starts, or a launcher that stands in its place. */
static me_status settle_mpirun(me_launch_ranks *r, me_config *config,
                               me_diag *diag)
{
    if (r->steps.kind != ME_WRAPPER_PLAIN) {
        return me_launch_steps_settle(&r->steps, &r->mpirun, config, diag);
    }
    const me_status status =
        me_mpirun_settle(&r->hosts, r->slurm.nodes, &r->mpirun, config, diag);
    return status != ME_OK || !r->mpirun.is_used || r->torchrun.is_used ||
                   me_rank_counts_ranks(&r->mpirun) != 0 ||
                   me_rank_counts_ranks(&r->slurm) != 0
               ? status
               : me_config_leave_world_open(
                     config, diag,
                     "mpirun starts a rank on each slot or core that it finds, "
                     "which nobody says: give its -n, or memest's "
                     "--world-size");
}

static me_status set_number(me_config *config, const char *option,
                            uint64_t number, me_diag *diag)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return me_config_set(config, option, text, diag);
}

/** A variable of torchrun's, which its own option goes before: a number, or what
 *  the launcher counts. */
static me_status take_pet(me_launch_ranks *r, bool is_nodes, me_config *config,
                          me_diag *diag)
{
    static const char *const all[] = {"gpu", "auto"};
    const uint64_t here = r->visible != 0 ? r->visible : r->gpus.count;
    const char *name = is_nodes ? "PET_NNODES" : "PET_NPROC_PER_NODE";
    const char *value = is_nodes ? r->pet_nodes : r->pet_per_node;
    value = is_nodes && value != NULL ? me_launch_range_end(value) : value;
    uint64_t *count = is_nodes ? &r->torchrun.nodes : &r->torchrun.per_node;
    if (*count != 0 || value == NULL || value[0] == '\0') {
        return ME_OK;
    }
    if (!is_nodes && here != 0 && me_is_one_of(value, strlen(value), all, 2)) {
        *count = here;
        return ME_OK;
    }
    if (me_parse_u64(value, count) != ME_OK || *count == 0 || *count > MOST) {
        *count = 0;
        return me_config_leave_world_open(
            config, diag,
            "%s=%.60s: memest cannot tell how many ranks torchrun starts: give "
            "its --nnodes and --nproc-per-node, or memest's --world-size",
            name, value);
    }
    return ME_OK;
}

static me_status settle_pet(me_launch_ranks *r, me_config *config,
                            me_diag *diag)
{
    if (!r->torchrun.is_used || r->deepspeed.is_used || r->accelerate.is_used) {
        return ME_OK;
    }
    me_status status = take_pet(r, true, config, diag);
    status = status == ME_OK ? take_pet(r, false, config, diag) : status;
    return status == ME_OK
               ? me_rank_counts_check_cards(&r->torchrun, r->visible, diag)
               : status;
}

/** What deepspeed, accelerate and torchrun's variables start. */
static me_status settle_launchers(me_launch_ranks *r, me_config *config,
                                  me_diag *diag)
{
    const me_gpus_here here = {.visible = r->visible, .of_node = r->gpus.count};
    const char *before = config->own->world_is_open;
    me_rank_counts *started = &r->torchrun;
    const me_status status =
        r->accelerate.is_used
            ? me_accelerate_settle(&r->accelerate, &here, started, config, diag)
        : r->deepspeed.is_used
            ? me_deepspeed_settle(&r->deepspeed, &here, started, config, diag)
            : settle_pet(r, config, diag);
    if (config->own->world_is_open != before) {
        *started = (me_rank_counts){.is_used = true}; // half is nothing
    }
    return status;
}

static me_status settle_torchrun(const me_launch_ranks *r, me_config *config,
                                 me_diag *diag)
{
    const uint64_t said = me_rank_counts_ranks(&r->torchrun);
    const uint64_t ranks = said == 0 ? 1 : said;
    if (said == 0 && config->own->world_is_open != NULL) {
        return ME_OK;
    }
    const me_rank_counts outer = r->srun.is_used ? me_srun_step(r) : r->mpirun;
    const uint64_t n_torchruns = me_rank_counts_ranks(&outer);
    const uint64_t n_nodes = r->torchrun.nodes == 0 ? 1 : r->torchrun.nodes;
    if (outer.is_used && n_torchruns > 1 && n_torchruns != n_nodes) {
        const me_status status = me_config_assume(
            config, diag,
            "one job of %llu ranks is estimated, of %llu torchrun processes "
            "that the launch command starts for --nnodes %llu",
            (unsigned long long)ranks, (unsigned long long)n_torchruns,
            (unsigned long long)n_nodes);
        if (status != ME_OK) {
            return status;
        }
    }
    return set_number(config, "parallel.world_size", ranks, diag);
}

static me_status settle_world_size(me_launch_ranks *r, me_config *config,
                                   me_diag *diag)
{
    if (r->is_open) {
        return ME_OK;
    }
    if (r->torchrun.is_used) {
        return settle_torchrun(r, config, diag);
    }
    if (r->environment.ranks == 0 && r->srun.ranks == 0 &&
        r->mpirun.ranks == 0 && r->alone.wrong != NULL) {
        return me_launch_alone_say_wrong(&r->alone, config, diag);
    }
    if (!r->srun.is_used && !r->mpirun.is_used && r->environment.ranks == 0) {
        return me_launch_alone_settle(&r->alone, r->step_tasks, &r->slurm,
                                      config, diag);
    }
    const me_rank_counts step = me_srun_step(r);
    const uint64_t of_mpirun = me_rank_counts_ranks(&r->mpirun);
    const uint64_t candidates[] = {
        r->environment.ranks,
        r->mpirun.is_used && of_mpirun == 0 ? me_rank_counts_ranks(&r->slurm)
                                            : of_mpirun,
        r->srun.is_used ? me_rank_counts_ranks(&step) : 0,
    };
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        if (candidates[i] != 0) {
            return set_number(config, "parallel.world_size", candidates[i],
                              diag);
        }
    }
    return ME_OK;
}

/** Of a node, by the innermost launcher that says it. */
static me_status settle_gpus_per_node(me_launch_ranks *r, me_config *config,
                                      me_diag *diag)
{
    const me_rank_counts step = me_srun_step(r);
    const bool is_limit = step.nodes * r->srun.per_node < step.ranks;
    const uint64_t shared = me_shared_ranks(r);
    const uint64_t candidates[] = {
        r->torchrun.per_node,
        r->mpirun.per_node,
        is_limit && step.nodes != 0 ? 0 : r->srun.per_node,
        shared,
        r->gpus.count,
        r->slurm.per_node};
    if (shared == 1) { // any other 1 says nothing of a node
        return set_number(config, "device.gpus_per_node", shared, diag);
    }
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        if (candidates[i] > 1) {
            return set_number(config, "device.gpus_per_node", candidates[i],
                              diag);
        }
    }
    return ME_OK;
}

/** What the site's file says of the partition, where the job asks for no type;
 *  of a list of partitions nobody knows which it will be. */
static me_status settle_partition(me_launch_ranks *r, me_config *config,
                                  me_diag *diag)
{
    me_site_partition partition;
    const bool is_default = r->partition == NULL ||
                            strcmp(r->partition, ME_SLURM_NO_PARTITION) == 0;
    if ((r->gpus.type[0] != '\0' &&
         strchr(r->gpus.type, ME_SLURM_EITHER) == NULL) ||
        (r->partition == NULL && !r->srun.is_used)) {
        return ME_OK;
    }
    const me_status status = me_site_partition_find(
        is_default ? NULL : r->partition, diag, &partition);
    if (status != ME_OK || partition.card[0] == '\0') {
        return status;
    }
    memcpy(r->gpus.type, partition.card, sizeof r->gpus.type);
    if (r->gpus.count == 0) {
        r->gpus.count = partition.gpus_per_node;
    }
    return me_config_assume(config, diag,
                            "card %s, since the site's file gives it to "
                            "partition %s",
                            partition.card, partition.name);
}

/** The card that Slurm gives; a type that no card has is refused where the card
 *  is read, unless --device names another. */
static me_status settle_card(me_launch_ranks *r, me_config *config,
                             me_diag *diag)
{
    if (r->gpus.type[0] == '\0') {
        return ME_OK;
    }
    if (r->mixed_type[0] != '\0') {
        return me_fail(diag, ME_ERR_CONFIG,
                       "the job asks for GPUs of two types, %s among others: "
                       "memest takes a job whose ranks have one card",
                       r->mixed_type);
    }
    if (r->other_type[0] != '\0') {
        return me_fail(diag, ME_ERR_CONFIG,
                       "srun asks for GPUs of two types, %s being the last: "
                       "give one",
                       r->other_type);
    }
    me_str name = {0};
    (void)me_slurm_card_find(r->gpus.type, &name);
    me_status status = me_str_status(&name);
    status = status == ME_OK ? me_config_set(config, "device.name",
                                             me_str_text(&name), diag)
                             : me_fail(diag, status, "no memory for a card");
    me_str_fini(&name);
    return status;
}

/** What the job may have of a node's memory. Nobody knows how much `--mem=0` is,
 *  which is all. */
static me_status settle_memory(me_launch_ranks *r, me_config *config,
                               me_diag *diag)
{
    const me_slurm_memory *said = &r->memory;
    if (said->of_node == NULL && said->of_gpu == NULL && said->of_cpu == NULL) {
        said = &r->job_memory;
    }
    const uint64_t bytes =
        me_slurm_memory_of_node(said, r->gpus.count, r->cpus);
    return bytes == 0 ? ME_OK
                      : set_number(config, "device.host_memory", bytes, diag);
}

/** Options of srun's that say tasks and are not read; nodes of a batch script
 *  that are a guess. */
static me_status say_unread(me_launch_ranks *r, me_config *config,
                            me_diag *diag)
{
    if (r->unread != NULL && !r->torchrun.is_used) {
        return me_launch_unread_fail(r->unread, diag);
    }
    return r->assumed_nodes == 0
               ? ME_OK
               : me_config_assume(config, diag,
                                  "the GPUs of --gpus are on %llu nodes, %d on "
                                  "each, since no --nodes says it",
                                  (unsigned long long)r->assumed_nodes,
                                  ME_USUAL_GPUS);
}

me_status me_launch_ranks_settle(me_launch_ranks *ranks, me_config *config,
                                 me_diag *diag)
{
    static me_status (*const steps[])(me_launch_ranks *, me_config *,
                                      me_diag *) = {
        settle_mpirun,        me_srun_settle,      settle_partition,
        settle_launchers,     me_srun_settle_step, settle_world_size,
        settle_gpus_per_node, settle_card,         settle_memory,
        me_srun_say_tasks,    say_unread,
    };
    if (ranks->slurm.ranks == 0) {
        ranks->slurm.ranks = ranks->slurm_nprocs;
    }
    me_status status = ranks->status == ME_OK ? ME_OK
                                              : me_fail(diag, ranks->status,
                                                        "no memory for a card");
    for (size_t i = 0; status == ME_OK && i < sizeof steps / sizeof *steps;
         i++) {
        status = steps[i](ranks, config, diag);
    }
    return status;
}
