/* SPDX-License-Identifier: BSD-3-Clause */
/* deepspeed/launcher/runner.py: fetch_hostfile(), parse_resource_filter(),
 * main(). */
#include "config/launch_deepspeed.h"

#include "base/parse.h"
#include "config/config_private.h"
#include "config/launch_hosts.h"

#include <stdio.h>
#include <string.h>

enum {
    SLOTS_MOST = 1 << 10 /**< of a host that a filter may name */
};

static const char usual_file[] = "/job/hostfile";

/** The hosts of a command, and where they are from. */
typedef struct resources {
    me_host_pool pool;
    const char *file;
    bool is_here;   /**< the file, which was read */
    bool is_usual;  /**< nobody named the file */
    bool is_filter; /**< something is included or excluded */
} resources;

me_status me_gpus_here_count(const me_gpus_here *here, me_config *config,
                             me_diag *diag, uint64_t *count_out)
{
    *count_out = here->visible != 0   ? here->visible
                 : here->of_node != 0 ? here->of_node
                                      : ME_USUAL_GPUS;
    return here->visible != 0 || here->of_node != 0
               ? ME_OK
               : me_config_assume(config, diag,
                                  "the launcher finds %d GPUs on a node: its "
                                  "--num_gpus or --num_processes says "
                                  "otherwise",
                                  ME_USUAL_GPUS);
}

/** What stops the command before it starts anything. */
static me_status check_options(const me_deepspeed_said *said,
                               const me_rank_counts *counts, me_diag *diag)
{
    if (said->include != NULL && said->exclude != NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "deepspeed --include %.60s and --exclude %.60s: one "
                       "excludes the other",
                       said->include, said->exclude);
    }
    if ((said->include != NULL || said->exclude != NULL) &&
        (counts->nodes != 0 || counts->per_node != 0)) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "deepspeed --%s %.60s: not beside --num_nodes or "
                       "--num_gpus",
                       said->include != NULL ? "include" : "exclude",
                       said->include != NULL ? said->include : said->exclude);
    }
    return ME_OK;
}

/** The slots of a filter's `NAME:0,2`, each once. @return how many; 0: it is no
 *  list, or of a slot that @p most forbids */
static uint64_t count_slots(const char *text, size_t length, uint64_t most)
{
    bool is_named[SLOTS_MOST] = {false};
    uint64_t count = 0;
    for (size_t at = 0; at <= length;) {
        char digits[24];
        uint64_t slot = 0;
        size_t n = 0;
        while (at + n < length && text[at + n] != ',') {
            n++;
        }
        (void)snprintf(digits, sizeof digits, "%.*s", (int)n, text + at);
        if (n >= sizeof digits || me_parse_u64(digits, &slot) != ME_OK ||
            slot >= SLOTS_MOST || slot >= most) {
            return 0;
        }
        count += is_named[slot] ? 0 : 1;
        is_named[slot] = true;
        at += n + 1;
    }
    return count;
}

/** One of a filter's hosts. What is included begins with no slots. */
static me_status filter_host(resources *r, const char *option, const char *spec,
                             size_t length, uint64_t *slots_of, me_diag *diag)
{
    const bool is_include = strcmp(option, "--include") == 0;
    const char *colon = memchr(spec, ':', length);
    const size_t name = colon == NULL ? length : (size_t)(colon - spec);
    const me_host *h = me_host_pool_find(&r->pool, spec, name);
    if (h == NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       r->is_here ? "deepspeed %s %.*s: %s names no such host"
                                  : "deepspeed %s %.*s: its host file %s is "
                                    "not here: say the slots of each host, "
                                    "NAME:0,1",
                       option, (int)length, spec, r->file);
    }
    uint64_t *slots = &slots_of[h - r->pool.hosts];
    if (colon == NULL) {
        *slots = is_include ? h->slots : 0;
        return ME_OK;
    }
    const uint64_t n = count_slots(colon + 1, length - name - 1,
                                   is_include ? SLOTS_MOST : h->slots);
    if (n == 0) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "deepspeed %s %.*s: must be NAME:SLOT,SLOT of the %llu "
                       "slots that the host has",
                       option, (int)length, spec, (unsigned long long)h->slots);
    }
    *slots = is_include ? *slots + n : h->slots - n;
    return ME_OK;
}

/** Hosts that are left without slots are left out. */
static me_status filter(resources *r, const me_deepspeed_said *said,
                        me_config *config, me_diag *diag)
{
    const bool is_include = said->include != NULL;
    const char *text = is_include ? said->include : said->exclude;
    const char *option = is_include ? "--include" : "--exclude";
    me_status status = ME_OK;
    uint64_t *slots =
        me_arena_alloc(config->own->text, r->pool.count + 1, sizeof *slots);
    if (slots == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for hosts");
    }
    for (uint32_t i = 0; i < r->pool.count; i++) {
        slots[i] = is_include ? 0 : r->pool.hosts[i].slots;
    }
    while (status == ME_OK && text != NULL && *text != '\0') {
        const size_t length = strcspn(text, "@");
        status = filter_host(r, option, text, length, slots, diag);
        text += length;
        text += *text == '@';
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->pool.count; i++) {
        if (slots[i] > 0) {
            r->pool.hosts[count] = r->pool.hosts[i];
            r->pool.hosts[count++].slots = slots[i];
        }
    }
    r->pool.count = count;
    return status == ME_OK && count == 0
               ? me_fail(diag, ME_ERR_CONFIG, "deepspeed %s leaves no GPU",
                         option)
               : status;
}

/** This machine alone. CUDA_VISIBLE_DEVICES counts where no option does. */
static me_status take_localhost(resources *r, const me_gpus_here *here,
                                const me_rank_counts *counts, me_config *config,
                                me_diag *diag)
{
    static const char name[] = "localhost";
    me_gpus_here found = *here;
    me_host *h = me_host_pool_take(&r->pool, name, sizeof name - 1);
    if (h == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for hosts");
    }
    if (r->is_filter) {
        found.visible = 0;
    }
    if (counts->per_node != 0) {
        h->slots = counts->per_node;
        return ME_OK;
    }
    return me_gpus_here_count(&found, config, diag, &h->slots);
}

/** Hosts of --include where no file is here: those with their slots, or this
 *  machine. @return whether all of them tell how many slots they have */
static bool take_included(resources *r, const char *include)
{
    bool is_told = *include != '\0';
    while (is_told && *include != '\0') {
        const size_t length = strcspn(include, "@");
        const char *colon = memchr(include, ':', length);
        const size_t name = colon == NULL ? 0 : (size_t)(colon - include);
        const uint64_t n =
            colon == NULL
                ? 0
                : count_slots(colon + 1, length - name - 1, SLOTS_MOST);
        me_host *h = n == 0 ? NULL : me_host_pool_take(&r->pool, include, name);
        is_told = h != NULL;
        if (is_told) {
            h->slots += n;
        }
        include += length;
        include += *include == '@';
    }
    return is_told;
}

/** Without the file its nodes are those that --num_nodes says. */
static me_status assume_nodes(const resources *r, me_rank_counts *counts,
                              uint64_t per_node, me_config *config,
                              me_diag *diag)
{
    counts->per_node = per_node;
    return me_config_assume(config, diag,
                            "deepspeed's host file %.120s, which is not here, "
                            "has the %llu nodes of --num_nodes",
                            r->file, (unsigned long long)counts->nodes);
}

static void take_pool(const me_host_pool *pool, me_rank_counts *counts)
{
    counts->ranks = me_host_pool_slots(pool);
    counts->nodes = pool->count;
    counts->per_node = me_host_pool_slots_each(pool);
}

/** --num_nodes takes the first hosts, --num_gpus as many GPUs of each. */
static void apply_numbers(me_host_pool *pool, const me_rank_counts *counts)
{
    if (counts->nodes != 0 && counts->nodes < pool->count) {
        pool->count = (uint32_t)counts->nodes;
    }
    for (uint32_t i = 0; counts->per_node != 0 && i < pool->count; i++) {
        pool->hosts[i].slots = counts->per_node;
    }
}

/** Read the file if it is here. Each host stands in it once, with its slots. */
static me_status read_file(resources *r, me_diag *why, me_diag *diag)
{
    const me_status status = me_host_pool_read(&r->pool, r->file, why);
    r->is_here = status != ME_ERR_IO;
    if (status != ME_OK && r->is_here) {
        return me_fail_at(diag, status, why->where, why->line, "%s", why->text);
    }
    for (uint32_t i = 0; i < r->pool.count; i++) {
        const me_host *h = &r->pool.hosts[i];
        if (!h->has_number || h->mentions > 1) {
            return me_fail_at(diag, ME_ERR_CONFIG, r->file, 0,
                              "%.*s %s, where deepspeed wants one line '%.*s "
                              "slots=N'",
                              (int)h->length, h->name,
                              h->has_number ? "comes twice" : "has no slots",
                              (int)h->length, h->name);
        }
    }
    return ME_OK;
}

/** A file that somebody named is not here, and nothing else says all. */
static me_status leave_open(const resources *r, const me_rank_counts *counts,
                            const me_diag *why, me_config *config,
                            me_diag *diag)
{
    return me_config_leave_world_open(
        config, diag,
        "deepspeed --hostfile %.120s: %.80s; it says how many ranks there are: "
        "give --num_nodes%s, or memest's --world-size",
        r->file, why->text, counts->per_node == 0 ? " and --num_gpus" : "");
}

me_status me_deepspeed_settle(const me_deepspeed_said *said,
                              const me_gpus_here *here, me_rank_counts *counts,
                              me_config *config, me_diag *diag)
{
    me_diag why = {.status = ME_OK};
    resources r = {.pool = {.arena = config->own->text},
                   .file =
                       said->host_file == NULL ? usual_file : said->host_file,
                   .is_usual = said->host_file == NULL,
                   .is_filter = said->include != NULL || said->exclude != NULL};
    me_status status = check_options(said, counts, diag);
    if (status == ME_OK) {
        status = read_file(&r, &why, diag);
    }
    if (status != ME_OK) {
        return status;
    }
    if (!r.is_here && said->include != NULL &&
        take_included(&r, said->include)) {
        r.is_filter = false;
    } else if (!r.is_here && !r.is_usual &&
               (counts->per_node == 0 || counts->nodes == 0)) {
        return leave_open(&r, counts, &why, config, diag);
    } else if (!r.is_here) {
        r.pool.count = 0; // of an --include that tells too little
        status = take_localhost(&r, here, counts, config, diag);
        if (status == ME_OK && (counts->nodes > 1 || !r.is_usual)) {
            return assume_nodes(&r, counts, r.pool.hosts[0].slots, config,
                                diag);
        }
    }
    if (status == ME_OK && r.is_filter) {
        status = filter(&r, said, config, diag);
    }
    if (status == ME_OK) {
        apply_numbers(&r.pool, counts);
        take_pool(&r.pool, counts);
    }
    return status;
}
