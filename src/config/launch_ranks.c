/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/launch_ranks.h"

#include "base/parse.h"
#include "config/options.h"
#include "config/site.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST = 1 << 24,   /**< ranks or nodes */
    HOSTS_MOST = 512, /**< that are counted */
};

/** A variable whose value is a number. */
typedef struct counted {
    const char *name;
    size_t offset; /**< of a uint64_t in me_launch_ranks */
} counted;

/** sbatch(1), "output environment variables"; srun takes its own options from
 * them. */
static const counted counts[] = {
    {"SLURM_NTASKS", offsetof(me_launch_ranks, slurm.ranks)},
    {"SLURM_NPROCS", offsetof(me_launch_ranks, slurm.ranks)},
    {"SLURM_NNODES", offsetof(me_launch_ranks, slurm.nodes)},
    {"SLURM_JOB_NUM_NODES", offsetof(me_launch_ranks, slurm.nodes)},
    {"SLURM_NTASKS_PER_NODE", offsetof(me_launch_ranks, slurm.per_node)},
    {"SLURM_GPUS_ON_NODE", offsetof(me_launch_ranks, gpus.count)},
    {"SLURM_NTASKS_PER_GPU", offsetof(me_launch_ranks, per_gpu)},
};

/** MEMEST_GRES and MEMEST_CONSTRAINT are what a batch script says, for which
 * Slurm has no variable. */
static const struct {
    const char *name;
    const char *option;
} asked[] = {
    {"SLURM_GPUS_PER_NODE", "--gpus-per-node"},
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
        char type[ME_SLURM_TYPE];
        if (ranks->gpus.type[0] == '\0' &&
            me_slurm_constraint_read(value, type)) {
            memcpy(ranks->gpus.type, type, sizeof type);
        }
        return;
    }
    const size_t length = strcspn(option, "=");
    const bool is_gres = strncmp(option, "--gres", length) == 0 && length == 6;
    const bool is_of_node =
        is_gres ||
        (strncmp(option, "--gpus-per-node", length) == 0 && length == 15);
    if (!me_slurm_gpus_read(value, is_gres, &gpus)) {
        return;
    }
    if (gpus.type[0] != '\0') {
        if (ranks->asked_type[0] != '\0' &&
            strcmp(ranks->asked_type, gpus.type) != 0) {
            memcpy(ranks->other_type, gpus.type, sizeof gpus.type);
        }
        memcpy(ranks->asked_type, gpus.type, sizeof gpus.type);
        memcpy(ranks->gpus.type, gpus.type, sizeof gpus.type);
    }
    if (strncmp(option, "-G", 2) == 0 ||
        (strncmp(option, "--gpus", length) == 0 && length == 6)) {
        ranks->all_gpus = gpus.count;
    }
    if (is_of_node && gpus.count > 0 && gpus.count <= MOST) {
        ranks->gpus.count = gpus.count;
    }
}

void me_launch_ranks_hosts(me_launch_ranks *ranks, const char *value)
{
    me_launch_hosts *hosts = &ranks->hosts;
    if (hosts->n_lists < ME_HOST_LISTS) {
        hosts->lists[hosts->n_lists] = value;
    }
    hosts->n_lists++;
}

void me_launch_ranks_map(me_launch_ranks *ranks, const char *value)
{
    static const char ppr[] = "ppr:";
    static const char node[] = "node";
    if (strncmp(value, ppr, sizeof ppr - 1) != 0) {
        return;
    }
    const char *number = value + sizeof ppr - 1;
    const size_t length = strcspn(number, ":");
    const char *resource = number + length + (number[length] == ':' ? 1 : 0);
    char digits[24];
    uint64_t count = 0;
    (void)snprintf(digits, sizeof digits, "%.*s", (int)length, number);
    const bool is_node = strcspn(resource, ":,") == sizeof node - 1 &&
                         strncmp(resource, node, sizeof node - 1) == 0;
    if (is_node && length < sizeof digits &&
        me_parse_u64(digits, &count) == ME_OK && count > 0 && count <= MOST) {
        ranks->mpirun.per_node = count;
    } else {
        ranks->hosts.resource = value;
    }
}

void me_launch_ranks_partition(me_launch_ranks *ranks, const char *name)
{
    ranks->partition = name;
}

bool me_launch_ranks_variable(me_launch_ranks *ranks, const char *name,
                              const char *value)
{
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint64_t count = 0;
        if (strcmp(name, counts[i].name) == 0) {
            if (me_parse_u64(value, &count) == ME_OK && count <= MOST) {
                *(uint64_t *)(void *)((char *)ranks + counts[i].offset) = count;
            }
            return true;
        }
    }
    if (strcmp(name, "SLURM_JOB_PARTITION") == 0) {
        me_launch_ranks_partition(ranks, value);
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

static uint64_t ranks_of(const me_rank_counts *said)
{
    if (said->ranks != 0) {
        return said->ranks;
    }
    if (said->nodes == 0 && said->per_node == 0) {
        return 0;
    }
    // At most 2^48: both are at most 2^24.
    return (said->nodes == 0 ? 1 : said->nodes) *
           (said->per_node == 0 ? 1 : said->per_node);
}

/** What an srun starts: its options, or the allocation's where it has none. */
static me_rank_counts step_of(const me_launch_ranks *r)
{
    me_rank_counts step = r->srun;
    if (step.nodes == 0) {
        step.nodes = r->slurm.nodes;
    }
    if (step.ranks == 0 && step.per_node == 0) {
        step.ranks = r->slurm.ranks;
        step.per_node = r->slurm.per_node;
    }
    return step;
}

/** One of the hosts of a list: `name` or `name:slots`. */
typedef struct host {
    const char *name;
    size_t length;
    uint64_t slots; /**< 0: no number */
} host;

static host read_host(const char *text)
{
    char digits[24];
    host h = {.name = text, .length = strcspn(text, ":,"), .slots = 1};
    const char *slots = text + h.length + (text[h.length] == ':' ? 1 : 0);
    const size_t length = strcspn(slots, ",");
    (void)snprintf(digits, sizeof digits, "%.*s", (int)length, slots);
    if (text[h.length] == ':' &&
        (length >= sizeof digits || me_parse_u64(digits, &h.slots) != ME_OK ||
         h.slots > MOST)) {
        h.slots = 0;
    }
    return h;
}

/** Different hosts and all their slots, one each time that a host is named
 *  without a number. @return false: nobody can tell */
static bool count_hosts(const me_launch_hosts *hosts, uint64_t *count_out,
                        uint64_t *slots_out)
{
    host known[HOSTS_MOST];
    uint64_t count = 0;
    *slots_out = 0;
    for (uint32_t i = 0; i < hosts->n_lists && i < ME_HOST_LISTS; i++) {
        for (const char *at = hosts->lists[i]; *at != '\0';) {
            const host h = read_host(at);
            uint64_t k = 0;
            while (k < count &&
                   (known[k].length != h.length ||
                    strncmp(known[k].name, h.name, h.length) != 0)) {
                k++;
            }
            if (h.slots == 0 || k == HOSTS_MOST) {
                return false;
            }
            known[k] = h;
            count += k == count ? 1 : 0;
            *slots_out += h.slots;
            at += strcspn(at, ",");
            at += *at == ',';
        }
    }
    *count_out = count;
    return hosts->n_lists <= ME_HOST_LISTS && *slots_out <= MOST;
}

/** Open MPI starts a process on each slot, or as many as are said on each node;
 *  without hosts on one node, unless Slurm gives more. */
static me_status settle_mpirun(me_launch_ranks *r, me_config *config,
                               me_diag *diag)
{
    me_rank_counts *m = &r->mpirun;
    uint64_t hosts = 0;
    uint64_t slots = 0;
    if (!m->is_used || m->ranks != 0) {
        return ME_OK;
    }
    if (r->hosts.resource != NULL || !count_hosts(&r->hosts, &hosts, &slots)) {
        const bool is_map = r->hosts.resource != NULL;
        return me_fail(
            diag, ME_ERR_CONFIG,
            "mpirun %s %.60s: memest cannot tell how many ranks that "
            "are: give mpirun's -n",
            is_map ? "--map-by" : "--host",
            is_map ? r->hosts.resource : r->hosts.lists[0]);
    }
    if (m->per_node == 0) {
        m->ranks = slots;
        m->per_node = hosts > 0 && slots % hosts == 0 ? slots / hosts : 0;
        return ME_OK;
    }
    m->nodes = hosts > 0 ? hosts : r->slurm.nodes;
    return m->nodes != 0
               ? ME_OK
               : me_config_assume(config, diag,
                                  "mpirun starts %llu ranks on one node, since "
                                  "no --host names more",
                                  (unsigned long long)m->per_node);
}

/** srun(1), --ntasks-per-gpu: the tasks follow from the GPUs where no number of
 *  tasks is given. */
static me_status settle_tasks_of_gpus(me_launch_ranks *r, me_diag *diag)
{
    const me_rank_counts step = step_of(r);
    const uint64_t nodes = step.nodes == 0 ? 1 : step.nodes;
    const uint64_t gpus =
        r->all_gpus != 0 ? r->all_gpus : r->gpus.count * nodes;
    if (!r->srun.is_used || r->per_gpu == 0 || step.ranks != 0 ||
        step.per_node != 0) {
        return ME_OK;
    }
    if (gpus == 0 || gpus > MOST) {
        return me_fail(
            diag, ME_ERR_CONFIG,
            "srun --ntasks-per-gpu %llu: memest cannot tell how many "
            "GPUs there are: give --gpus or --ntasks",
            (unsigned long long)r->per_gpu);
    }
    r->srun.ranks = gpus * r->per_gpu;
    return ME_OK;
}

static me_status set_number(me_config *config, const char *option,
                            uint64_t number, me_diag *diag)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return me_config_set(config, option, text, diag);
}

enum {
    USUAL_GPUS = 8 /**< of a node */
};

/** deepspeed and accelerate start a process on each GPU that they find. */
static me_status settle_every_gpu(me_launch_ranks *r, me_config *config,
                                  me_diag *diag)
{
    if (!r->wants_every_gpu || r->torchrun.per_node != 0 ||
        r->torchrun.ranks != 0) {
        return ME_OK;
    }
    r->torchrun.per_node = r->gpus.count == 0 ? USUAL_GPUS : r->gpus.count;
    return r->gpus.count != 0
               ? ME_OK
               : me_config_assume(config, diag,
                                  "the launcher finds %d GPUs on a node: its "
                                  "--num_gpus or --num_processes says "
                                  "otherwise",
                                  USUAL_GPUS);
}

static me_status settle_torchrun(const me_launch_ranks *r, me_config *config,
                                 me_diag *diag)
{
    const uint64_t said = ranks_of(&r->torchrun);
    const uint64_t ranks = said == 0 ? 1 : said;
    const me_rank_counts outer = r->srun.is_used ? step_of(r) : r->mpirun;
    const uint64_t n_torchruns = ranks_of(&outer);
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

static me_status settle_world_size(const me_launch_ranks *r, me_config *config,
                                   me_diag *diag)
{
    if (r->torchrun.is_used) {
        return settle_torchrun(r, config, diag);
    }
    const me_rank_counts step = step_of(r);
    const uint64_t of_mpirun = ranks_of(&r->mpirun);
    const uint64_t candidates[] = {
        r->environment.ranks,
        r->mpirun.is_used && of_mpirun == 0 ? r->slurm.ranks : of_mpirun,
        r->srun.is_used ? ranks_of(&step) : 0,
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
static me_status settle_gpus_per_node(const me_launch_ranks *r,
                                      me_config *config, me_diag *diag)
{
    const uint64_t candidates[] = {r->torchrun.per_node, r->mpirun.per_node,
                                   r->srun.per_node, r->gpus.count,
                                   r->slurm.per_node};
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
    if (r->gpus.type[0] != '\0' || (r->partition == NULL && !r->srun.is_used)) {
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
static me_status settle_card(const me_launch_ranks *r, me_config *config,
                             me_diag *diag)
{
    if (r->gpus.type[0] == '\0') {
        return ME_OK;
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

me_status me_launch_ranks_settle(me_launch_ranks *ranks, me_config *config,
                                 me_diag *diag)
{
    me_status status = settle_mpirun(ranks, config, diag);
    if (status == ME_OK) {
        status = settle_tasks_of_gpus(ranks, diag);
    }
    if (status == ME_OK) {
        status = settle_partition(ranks, config, diag);
    }
    if (status == ME_OK) {
        status = settle_every_gpu(ranks, config, diag);
    }
    if (status == ME_OK) {
        status = settle_world_size(ranks, config, diag);
    }
    if (status == ME_OK) {
        status = settle_gpus_per_node(ranks, config, diag);
    }
    return status == ME_OK ? settle_card(ranks, config, diag) : status;
}
