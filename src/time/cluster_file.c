/* SPDX-License-Identifier: BSD-3-Clause */
/* A machine's file: nodes, links and what joins which GPUs. */
#include "base/conf.h"
#include "base/statement.h"
#include "time/cluster.h"

#include <stdio.h>
#include <string.h>

enum {
    NO_LINK = ME_LINK_KINDS
};

/** NCCL's graph/tuning.cc, baseLatencies of the protocol Simple. */
static const double BASE_S = 8.4e-6;

/** The file that is read. */
typedef struct reader {
    const char *path;
    me_diag *diag;
    me_cluster *cluster;
} reader;

/** A number above 0. */
static me_status need_number(const reader *r, const config_setting_t *group,
                             const char *what, const char *key, double *out)
{
    const config_setting_t *one = config_setting_get_member(group, key);
    double value = 0;
    if (!me_conf_number(one, &value) || !(value > 0) || value > 1e6) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->path,
                          me_conf_line(one == NULL ? group : one),
                          "%s%s must be a number above 0 and at most 1e6", what,
                          key);
    }
    *out = value;
    return ME_OK;
}

/** A slower link's times would not go into 64 bits of nanoseconds. */
static const double LEAST_GBS = 1e-3;

static bool is_printable(const char *text)
{
    while (*text >= ' ' && *text <= '~') {
        text++;
    }
    return *text == '\0';
}

static me_status need_text(const reader *r, const config_setting_t *group,
                           const char *what, const char *key,
                           char text_out[ME_CLUSTER_TEXT])
{
    const config_setting_t *one = config_setting_get_member(group, key);
    const char *text = one == NULL ? NULL : config_setting_get_string(one);
    if (text == NULL || text[0] == '\0' || strlen(text) >= ME_CLUSTER_TEXT ||
        !is_printable(text)) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->path,
                          me_conf_line(one == NULL ? group : one),
                          "%s%s must be a string of 1 to %d printable ASCII "
                          "characters",
                          what, key, ME_CLUSTER_TEXT - 1);
    }
    (void)snprintf(text_out, ME_CLUSTER_TEXT, "%s", text);
    return ME_OK;
}

/** Every key is one of @p known, a space around each. */
static me_status check_keys(const reader *r, const config_setting_t *group,
                            const char *what, const char *known)
{
    const int n = config_setting_length(group);
    for (int i = 0; i < n; i++) {
        const config_setting_t *one =
            config_setting_get_elem(group, (unsigned)i);
        char key[64] = "";
        (void)snprintf(key, sizeof key, " %.60s ", config_setting_name(one));
        if (strstr(known, key) == NULL) {
            return me_fail_at(
                r->diag, ME_ERR_CONFIG, r->path, me_conf_line(one),
                "%s%.60s is no key of a machine; these are:%.*s", what,
                config_setting_name(one), (int)strlen(known) - 1, known);
        }
    }
    return ME_OK;
}

static int find_kind(const char *name)
{
    int kind = 0;
    while (kind < ME_LINK_KINDS &&
           strcmp(me_link_kind_name((me_link_kind)kind), name) != 0) {
        kind++;
    }
    return kind;
}

/** How fast a link is: a number of its own, or the card's rates. */
static me_status read_speed(const reader *r, const config_setting_t *group,
                            const char *what, bool is_nvlink,
                            me_cluster_link *link)
{
    const bool has_own = config_setting_get_member(group, "gbs") != NULL;
    const config_setting_t *sheet =
        config_setting_get_member(group, "sheet_gbs");
    double gbs = 0;
    me_status status = ME_OK;
    if (sheet != NULL && (has_own || !is_nvlink)) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->path, me_conf_line(sheet),
                          "%ssheet_gbs is for nvlink without gbs", what);
    }
    link->is_cards = is_nvlink && !has_own;
    link->scale = 1;
    if (!link->is_cards || sheet != NULL) {
        status = need_number(r, group, what,
                             sheet != NULL ? "sheet_gbs" : "gbs", &gbs);
    }
    if (status == ME_OK && gbs > 0 && gbs < LEAST_GBS) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->path, me_conf_line(group),
                          "%s%s = %g: must be at least %g", what,
                          sheet != NULL ? "sheet_gbs" : "gbs", gbs, LEAST_GBS);
    }
    link->bytes = gbs * 1e9;
    return status;
}

static me_status read_link(const reader *r, const config_setting_t *group)
{
    const char *name = config_setting_name(group);
    const int kind = find_kind(name);
    char what[96] = "";
    (void)snprintf(what, sizeof what, "links.%.60s.", name);
    if (kind == NO_LINK || config_setting_is_group(group) == 0) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->path, me_conf_line(group),
                          "links.%.60s is no kind of link; nvlink, "
                          "pcie_switch, host_bridge, socket and network are",
                          name);
    }
    me_cluster_link *link = &r->cluster->links[kind];
    double latency_us = 0;
    double shared = 0;
    me_status status =
        check_keys(r, group, what, " gbs sheet_gbs latency_us shared source ");
    if (status == ME_OK) {
        status = read_speed(r, group, what, kind == ME_LINK_NVLINK, link);
    }
    if (status == ME_OK) {
        status = need_number(r, group, what, "latency_us", &latency_us);
    }
    if (status == ME_OK) {
        status = need_text(r, group, what, "source", link->source);
    }
    if (status == ME_OK && config_setting_get_member(group, "shared") != NULL) {
        status = need_number(r, group, what, "shared", &shared);
    }
    if (status == ME_OK &&
        (shared != (double)(int32_t)shared || (shared > 0 && link->is_cards))) {
        status =
            me_fail_at(r->diag, ME_ERR_CONFIG, r->path, me_conf_line(group),
                       "%sshared must be a whole number of links, of a "
                       "kind with gbs",
                       what);
    }
    link->step_s = latency_us * 1e-6;
    link->shared = (int32_t)shared;
    link->is_there = status == ME_OK;
    return status;
}

static me_status read_links(const reader *r, const config_setting_t *root)
{
    const config_setting_t *links = config_setting_get_member(root, "links");
    if (links == NULL || config_setting_is_group(links) == 0) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->path, me_conf_line(links),
                          "links must be a group, a group in it for each kind "
                          "of link");
    }
    me_status status = ME_OK;
    const int n = config_setting_length(links);
    for (int i = 0; i < n && status == ME_OK; i++) {
        status = read_link(r, config_setting_get_elem(links, (unsigned)i));
    }
    return status;
}

/** GPU numbers of an array. @return their set, 0 if it is none */
static uint32_t read_gpus(const reader *r, const config_setting_t *array,
                          uint8_t gpus[ME_CLUSTER_GPUS], int *n_out)
{
    const int n = array == NULL ? 0 : config_setting_length(array);
    uint32_t set = 0;
    if (n < 1 || n > ME_CLUSTER_GPUS || config_setting_is_array(array) == 0) {
        return 0;
    }
    for (int i = 0; i < n; i++) {
        const config_setting_t *one =
            config_setting_get_elem(array, (unsigned)i);
        double number = -1;
        const bool is_number = me_conf_number(one, &number) && number >= 0 &&
                               number < r->cluster->gpus;
        const int gpu = is_number ? (int)number : 0;
        if (!is_number || number != (double)gpu ||
            (set >> (unsigned)gpu & 1U) != 0) {
            return 0;
        }
        gpus[i] = (uint8_t)gpu;
        set |= 1U << (unsigned)gpu;
    }
    *n_out = n;
    return set;
}

/** Pairs within a list of GPUs that nothing nearer joins. */
static me_status join(const reader *r, const config_setting_t *array, int kind)
{
    uint8_t gpus[ME_CLUSTER_GPUS];
    int n = 0;
    if (read_gpus(r, array, gpus, &n) == 0 || n < 2) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->path, me_conf_line(array),
                          "pairs: gpus must be lists of two or more different "
                          "numbers from 0 to %d, such as ([0, 1], [2, 3])",
                          (int)r->cluster->gpus - 1);
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            uint8_t *pair = &r->cluster->pairs[gpus[i]][gpus[j]];
            *pair = kind < *pair ? (uint8_t)kind : *pair;
        }
    }
    return ME_OK;
}

static me_status read_pair(const reader *r, const config_setting_t *entry)
{
    const char *name = NULL;
    const config_setting_t *lists = NULL;
    if (config_setting_is_group(entry) != 0) {
        (void)config_setting_lookup_string(entry, "link", &name);
        lists = config_setting_get_member(entry, "gpus");
    }
    const int kind = name == NULL ? NO_LINK : find_kind(name);
    if (kind >= ME_LINK_NETWORK || !r->cluster->links[kind].is_there) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->path, me_conf_line(entry),
                          "pairs: link '%.60s' is none of a node that links "
                          "describes",
                          name == NULL ? "" : name);
    }
    if (lists == NULL || config_setting_is_list(lists) == 0) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->path, me_conf_line(entry),
                          "pairs: gpus must be a list, such as ([0, 1], [2, "
                          "3])");
    }
    me_status status = check_keys(r, entry, "pairs.", " link gpus ");
    const int n = config_setting_length(lists);
    for (int i = 0; i < n && status == ME_OK; i++) {
        status = join(r, config_setting_get_elem(lists, (unsigned)i), kind);
    }
    return status;
}

static me_status check_joined(const reader *r)
{
    const me_cluster *c = r->cluster;
    for (int i = 0; i < c->gpus; i++) {
        for (int j = 0; j < i; j++) {
            if (c->pairs[i][j] == NO_LINK) {
                return me_fail_at(r->diag, ME_ERR_CONFIG, r->path, 0,
                                  "pairs: no link joins GPUs %d and %d", j, i);
            }
        }
    }
    return ME_OK;
}

static me_status read_pairs(const reader *r, const config_setting_t *root)
{
    memset(r->cluster->pairs, NO_LINK, sizeof r->cluster->pairs);
    const config_setting_t *pairs = config_setting_get_member(root, "pairs");
    const bool is_list = pairs != NULL && config_setting_is_list(pairs) != 0;
    if (!is_list && (pairs != NULL || r->cluster->gpus > 1)) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->path, me_conf_line(pairs),
                          "pairs must be a list of groups with link and gpus");
    }
    me_status status = ME_OK;
    const int n = is_list ? config_setting_length(pairs) : 0;
    for (int i = 0; i < n && status == ME_OK; i++) {
        status = read_pair(r, config_setting_get_elem(pairs, (unsigned)i));
    }
    return status == ME_OK ? check_joined(r) : status;
}

/** Which GPU each rank of a node has. */
static me_status read_order(const reader *r, const config_setting_t *root)
{
    me_cluster *c = r->cluster;
    for (int i = 0; i < ME_CLUSTER_GPUS; i++) {
        c->order[i] = (uint8_t)i;
    }
    const config_setting_t *order =
        config_setting_get_member(root, "gpu_order");
    int n = 0;
    if (order != NULL &&
        (read_gpus(r, order, c->order, &n) == 0 || n != c->gpus)) {
        return me_fail_at(r->diag, ME_ERR_CONFIG, r->path, me_conf_line(order),
                          "gpu_order must have each of the %d GPUs once",
                          (int)c->gpus);
    }
    return ME_OK;
}

/** Memory of a node's host, which need not be said. */
static me_status read_host(const reader *r, const config_setting_t *root)
{
    double gib = 0;
    const me_status status = config_setting_get_member(root, "host_gib") == NULL
                                 ? ME_OK
                                 : need_number(r, root, "", "host_gib", &gib);
    r->cluster->host_bytes = (uint64_t)(gib * (double)(UINT64_C(1) << 30));
    return status;
}

static me_status read_root(const reader *r, const config_setting_t *root)
{
    me_cluster *c = r->cluster;
    double gpus = 0;
    double base_us = BASE_S * 1e6;
    me_status status = check_keys(
        r, root, "",
        " machine gpus host_gib gpu_order collective_us links pairs ");
    if (status == ME_OK) {
        status = need_text(r, root, "", "machine", c->name);
    }
    if (status == ME_OK) {
        status = need_number(r, root, "", "gpus", &gpus);
    }
    if (status == ME_OK &&
        (gpus > ME_CLUSTER_GPUS || gpus != (double)(int32_t)gpus)) {
        status = me_fail_at(
            r->diag, ME_ERR_CONFIG, r->path,
            me_conf_line(config_setting_get_member(root, "gpus")),
            "gpus = %g: must be a whole number from 1 to %d, those of a node",
            gpus, ME_CLUSTER_GPUS);
    }
    c->gpus = (int32_t)gpus;
    if (status == ME_OK &&
        config_setting_get_member(root, "collective_us") != NULL) {
        status = need_number(r, root, "", "collective_us", &base_us);
    }
    c->base_s = base_us * 1e-6;
    if (status == ME_OK) {
        status = read_host(r, root);
    }
    if (status == ME_OK) {
        status = read_order(r, root);
    }
    if (status == ME_OK) {
        status = read_links(r, root);
    }
    return status == ME_OK ? read_pairs(r, root) : status;
}

static me_status read_machine(const config_t *file, const char *where,
                              me_diag *diag, me_cluster *cluster_out)
{
    me_cluster cluster = {.gpus = 0};
    const reader r = {.path = where, .diag = diag, .cluster = &cluster};
    const me_status status = read_root(&r, config_root_setting(file));
    if (status == ME_OK) {
        *cluster_out = cluster;
    }
    return status;
}

me_status me_cluster_read(const char *text, const char *where, me_diag *diag,
                          me_cluster *cluster_out)
{
    config_t file;
    config_init(&file);
    me_status status =
        me_conf_read(where, "a machine", text, strlen(text), diag, &file);
    if (status == ME_OK) {
        status = read_machine(&file, where, diag, cluster_out);
    }
    config_destroy(&file);
    return status;
}

me_status me_cluster_load(const char *path, me_diag *diag,
                          me_cluster *cluster_out)
{
    config_t file;
    config_init(&file);
    me_status status = me_conf_load(path, "a machine", diag, &file);
    if (status == ME_OK) {
        status = read_machine(&file, path, diag, cluster_out);
    }
    config_destroy(&file);
    return status;
}

static void state_link(const me_cluster_link *link, const char *kind,
                       me_str *statement)
{
    char name[64];
    (void)snprintf(name, sizeof name, "machine.links.%s", kind);
    if (!link->is_there) {
        return;
    }
    me_statement_add(statement, name, "%s%.17g bytes a second, %.17g s a step",
                     link->is_cards ? "the card's, " : "", link->bytes,
                     link->step_s);
    (void)snprintf(name, sizeof name, "machine.links.%s.scale", kind);
    me_statement_add(statement, name, "%.17g", link->scale);
    (void)snprintf(name, sizeof name, "machine.links.%s.shared", kind);
    me_statement_add(statement, name, "%d", (int)link->shared);
}

void me_cluster_state(const me_cluster *cluster, me_str *statement)
{
    char name[64];
    me_statement_add(statement, "machine.gpus", "%d", (int)cluster->gpus);
    for (int32_t i = 0; i < cluster->gpus; i++) {
        char kinds[ME_CLUSTER_GPUS + 1] = "";
        for (int32_t j = 0; j < cluster->gpus; j++) {
            kinds[j] = (char)('0' + cluster->pairs[i][j]);
        }
        (void)snprintf(name, sizeof name, "machine.order, place %d", (int)i);
        me_statement_add(statement, name, "GPU %d", (int)cluster->order[i]);
        (void)snprintf(name, sizeof name, "machine.pairs of GPU %d", (int)i);
        me_statement_add(statement, name, "kinds %s", kinds);
    }
    for (int kind = 0; kind < ME_LINK_KINDS; kind++) {
        state_link(&cluster->links[kind], me_link_kind_name((me_link_kind)kind),
                   statement);
    }
    me_statement_add(statement, "machine.base_us", "%.17g",
                     1e6 * cluster->base_s);
}
