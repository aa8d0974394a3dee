/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "report/links_table.h"
#include "report/table.h"
#include "report/text.h"

/** A line: groups of one kind that cross the same. */
typedef struct use_row {
    const me_cluster *cluster;
    const me_link_use *use;
} use_row;

static const me_link_path *path_of(const void *row)
{
    return &((const use_row *)row)->use->path;
}

static void get_group(const void *row, me_str *cell)
{
    me_str_append(cell, me_group_kind_name(((const use_row *)row)->use->group));
}

static void get_groups(const void *row, me_str *cell)
{
    me_str_printf(cell, "%d", (int)((const use_row *)row)->use->groups);
}

static void get_ranks(const void *row, me_str *cell)
{
    me_str_printf(cell, "%d", (int)path_of(row)->size);
}

static void get_nodes(const void *row, me_str *cell)
{
    me_str_printf(cell, "%d", (int)path_of(row)->nodes);
}

static void get_links(const void *row, me_str *cell)
{
    const char *comma = "";
    for (int kind = 0; kind < ME_LINK_KINDS; kind++) {
        const int n = (int)me_link_use_links(((const use_row *)row)->use)[kind];
        if (n > 0) {
            me_str_printf(cell, "%s%d %s", comma, n,
                          me_link_kind_name((me_link_kind)kind));
            comma = ", ";
        }
    }
}

static void get_slowest(const void *row, me_str *cell)
{
    me_str_append(cell, me_link_kind_name(
                            me_link_use_slowest(((const use_row *)row)->use)));
}

static void get_rate(const void *row, me_str *cell)
{
    const use_row *r = row;
    const double rate = me_link_use_rate(r->cluster, r->use);
    if (rate > 0) {
        me_str_printf(cell, "%.1f", rate * 1e-9);
    } else {
        me_str_append(cell, "card's");
    }
}

static const me_column columns[] = {
    {"group", NULL, false, false, get_group},
    {"groups", NULL, true, false, get_groups},
    {"ranks", NULL, true, false, get_ranks},
    {"nodes", NULL, true, false, get_nodes},
    {"crosses", NULL, false, false, get_links},
    {"slowest", NULL, false, false, get_slowest},
    {"GB/s", NULL, true, false, get_rate},
};

static me_status append_uses(const me_report *report, me_str *text)
{
    const me_link_uses *uses = report->links;
    use_row *rows = me_alloc((size_t)uses->n_items, sizeof *rows, "text.links");
    if (rows == NULL) {
        return ME_ERR_NOMEM;
    }
    size_t n_rows = 0;
    for (int32_t i = 0; i < uses->n_items; i++) {
        if (me_link_use_matters(report, &uses->items[i])) {
            rows[n_rows++] = (use_row){uses->cluster, &uses->items[i]};
        }
    }
    me_status status = ME_OK;
    if (n_rows == 0) {
        me_str_append(text, "  no group of two ranks or more calls anything\n");
    } else {
        status = me_table_print(ME_TABLE(columns, rows, n_rows), text);
    }
    me_free(rows);
    return status;
}

static void append_kind(const me_cluster_link *link, me_link_kind kind,
                        me_str *text)
{
    me_str_printf(text, "  %s: ", me_link_kind_name(kind));
    if (link->is_cards) {
        me_str_append(text, "the card's rates");
        if (link->scale < 1 || link->scale > 1) {
            me_str_printf(text, " times %.2f", link->scale);
        }
    } else if (link->shared > 0) {
        me_str_printf(text, "%d of %.1f GB/s that a node's ranks share",
                      (int)link->shared, link->bytes * 1e-9);
    } else {
        me_str_printf(text, "%.1f GB/s", link->bytes * 1e-9);
    }
    me_str_printf(text, ", %.1f us a step: %s\n", link->step_s * 1e6,
                  link->source);
}

me_status me_text_links(const me_report *report, me_str *text)
{
    const me_link_uses *uses = report->links;
    if (uses == NULL || uses->cluster == NULL) {
        return ME_OK;
    }
    const me_cluster_layout *layout = &uses->cluster->layout;
    const int32_t n_ranks = layout->world < layout->gpus_per_node
                                ? layout->world
                                : layout->gpus_per_node;
    me_str_printf(text,
                  "\nLinks: %s, %d %s with %d rank%s each, %s; by what each "
                  "group's ring (pipeline: transfers) crosses\n",
                  uses->cluster->name, (int)me_cluster_nodes(layout),
                  me_cluster_nodes(layout) == 1 ? "node" : "nodes",
                  (int)n_ranks, me_plural((uint64_t)n_ranks),
                  layout->is_cyclic ? "dealt in turn" : "in order");
    const me_status status = append_uses(report, text);
    for (int kind = 0; kind < ME_LINK_KINDS; kind++) {
        if (me_link_kind_matters(report, (me_link_kind)kind)) {
            append_kind(&uses->cluster->links[kind], (me_link_kind)kind, text);
        }
    }
    return status;
}
