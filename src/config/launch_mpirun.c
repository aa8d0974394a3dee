/* SPDX-License-Identifier: BSD-3-Clause */
/* mpirun(1) of Open MPI, mpiexec of MPICH. */
#include "config/launch_mpirun.h"

#include "base/parse.h"
#include "config/config_private.h"
#include "config/launch_hosts.h"

#include <stdio.h>
#include <string.h>

void me_launch_hosts_add(me_launch_hosts *hosts, const char *list)
{
    if (hosts->n_lists < ME_HOST_LISTS) {
        hosts->lists[hosts->n_lists] = list;
    }
    hosts->n_lists++;
}

void me_launch_hosts_file(me_launch_hosts *hosts, const char *option,
                          const char *path)
{
    hosts->file = path;
    hosts->is_hydra = strcmp(option, "-f") == 0;
}

void me_launch_hosts_map(me_launch_hosts *hosts, me_rank_counts *counts,
                         const char *value)
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
        me_parse_u64(digits, &count) == ME_OK && count > 0 &&
        count <= ME_RANKS_MOST) {
        counts->per_node = count;
    } else {
        hosts->resource = value;
    }
}

static me_status fail(const me_launch_hosts *hosts, me_diag *diag)
{
    const bool is_map = hosts->resource != NULL;
    return me_fail(diag, ME_ERR_CONFIG,
                   "mpirun %s %.60s: memest cannot tell how many ranks that "
                   "are: give mpirun's -n",
                   is_map ? "--map-by" : "--host",
                   is_map ? hosts->resource : hosts->lists[0]);
}

/** Hosts of the lists. @return false: nobody can tell */
static bool read_lists(const me_launch_hosts *hosts, me_host_pool *pool)
{
    me_diag why = {.status = ME_OK};
    bool is_fine = hosts->n_lists <= ME_HOST_LISTS;
    for (uint32_t i = 0; is_fine && i < hosts->n_lists; i++) {
        is_fine = me_host_pool_add_list(pool, hosts->lists[i], &why) == ME_OK;
    }
    return is_fine && me_host_pool_slots(pool) <= ME_RANKS_MOST;
}

/** A host that is named once and has no number of slots: Open MPI takes its
 *  cores, which memest does not see. */
static const me_host *find_unsaid(const me_host_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        if (!pool->hosts[i].has_number && pool->hosts[i].mentions == 1) {
            return &pool->hosts[i];
        }
    }
    return NULL;
}

/** Hosts of the file; the world stays open where it tells too little. */
static me_status read_file(const me_launch_hosts *hosts,
                           const me_rank_counts *counts, me_host_pool *pool,
                           bool *is_open_out, me_config *config, me_diag *diag)
{
    me_diag why = {.status = ME_OK};
    const bool is_batch = hosts->file == NULL;
    const char *file = is_batch ? hosts->batch_file : hosts->file;
    const me_status status = me_host_pool_read(pool, file, &why);
    const me_host *unsaid =
        is_batch || hosts->is_hydra ? NULL : find_unsaid(pool);
    if (status != ME_OK && status != ME_ERR_IO) {
        return me_fail_at(diag, status, why.where, why.line, "%s", why.text);
    }
    *is_open_out = true;
    if (status == ME_ERR_IO) {
        return me_config_leave_world_open(
            config, diag,
            "mpirun's host file %.120s: %.80s; it says how many ranks there "
            "are: give mpirun's -n, or memest's --world-size",
            file, why.text);
    }
    if (hosts->n_lists > 0) {
        return me_config_leave_world_open(
            config, diag,
            "mpirun --host %.60s and --hostfile %.60s: memest cannot tell how "
            "many ranks that are: give mpirun's -n, or memest's --world-size",
            hosts->lists[0], file);
    }
    if (unsaid != NULL && counts->per_node == 0) {
        return me_config_leave_world_open(
            config, diag,
            "mpirun starts a rank on each core of %.*s, since %.120s has no "
            "slots=N for it: give mpirun's -n, or memest's --world-size",
            (int)unsaid->length, unsaid->name, file);
    }
    *is_open_out = false;
    return ME_OK;
}

static void take_pool(const me_host_pool *pool, me_rank_counts *counts)
{
    if (counts->per_node != 0) {
        counts->nodes = pool->count;
        return;
    }
    counts->ranks = me_host_pool_slots(pool);
    counts->per_node = pool->count > 0 && counts->ranks % pool->count == 0
                           ? counts->ranks / pool->count
                           : 0;
}

/** Where -n says the ranks, hosts say how many of them a node has: mpirun fills
 *  one's slots after the other's. What cannot be read changes no number. */
static void fill_hosts(const me_launch_hosts *hosts, me_host_pool *pool,
                       me_rank_counts *counts)
{
    me_diag why = {.status = ME_OK};
    const bool is_read =
        hosts->n_lists > 0
            ? hosts->file == NULL && read_lists(hosts, pool)
            : hosts->file != NULL && !hosts->is_hydra &&
                  me_host_pool_read(pool, hosts->file, &why) == ME_OK;
    if (!is_read || counts->per_node != 0 || hosts->placing != NULL ||
        hosts->resource != NULL || find_unsaid(pool) != NULL ||
        pool->count == 0) {
        return;
    }
    const uint64_t each = me_host_pool_slots_each(pool);
    if (counts->ranks <= me_host_pool_slots(pool) && counts->ranks >= each) {
        counts->per_node = each;
    }
}

bool me_launch_hosts_are_named(const me_launch_hosts *hosts)
{
    return hosts->n_lists > 0 || hosts->file != NULL ||
           hosts->batch_file != NULL || hosts->placing != NULL ||
           hosts->resource != NULL;
}

me_host_slots me_mpirun_slots(const me_launch_hosts *hosts, me_arena *arena)
{
    me_diag why = {.status = ME_OK};
    me_host_pool pool = {.arena = arena};
    const bool is_batch = hosts->file == NULL;
    const char *file = is_batch ? hosts->batch_file : hosts->file;
    const bool is_read =
        hosts->n_lists > 0
            ? hosts->file == NULL && read_lists(hosts, &pool)
            : file != NULL && me_host_pool_read(&pool, file, &why) == ME_OK;
    const bool is_said = (is_batch && hosts->n_lists == 0) || hosts->is_hydra ||
                         find_unsaid(&pool) == NULL;
    return is_read && is_said && pool.count > 0 && hosts->placing == NULL &&
                   hosts->resource == NULL
               ? (me_host_slots){pool.hosts[0].slots, me_host_pool_slots(&pool)}
               : (me_host_slots){0, 0};
}

me_status me_mpirun_settle(const me_launch_hosts *hosts, uint64_t nodes_here,
                           me_rank_counts *counts, me_config *config,
                           me_diag *diag)
{
    me_host_pool pool = {.arena = config->own->text};
    const bool is_batch = hosts->batch_file != NULL && hosts->n_lists == 0;
    if (!counts->is_used) {
        return ME_OK;
    }
    if (counts->ranks != 0) {
        fill_hosts(hosts, &pool, counts);
        return ME_OK;
    }
    if (hosts->placing != NULL) {
        return me_config_leave_world_open(
            config, diag,
            "mpirun %.60s says how many ranks there are, and is not read: give "
            "mpirun's -n, or memest's --world-size",
            hosts->placing);
    }
    if (hosts->resource != NULL) {
        return fail(hosts, diag);
    }
    if (hosts->file != NULL || is_batch) {
        bool is_open = false;
        const me_status status =
            read_file(hosts, counts, &pool, &is_open, config, diag);
        if (status != ME_OK || is_open) {
            return status;
        }
    } else if (!read_lists(hosts, &pool)) {
        return fail(hosts, diag);
    }
    if (pool.count > 0) {
        take_pool(&pool, counts);
        return ME_OK;
    }
    counts->nodes = counts->per_node == 0 ? 0 : nodes_here;
    return counts->per_node == 0 || nodes_here != 0
               ? ME_OK
               : me_config_assume(config, diag,
                                  "mpirun starts %llu ranks on one node, since "
                                  "no --host names more",
                                  (unsigned long long)counts->per_node);
}
