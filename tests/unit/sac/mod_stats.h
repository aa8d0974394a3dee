/**
 * @file
 * A recorded table of what PyTorch's tools know of each module, read into a graph.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_UNIT_SAC_MOD_STATS_H
#define MEMEST_TESTS_UNIT_SAC_MOD_STATS_H

#include "sac/graph.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOD_STATS_FIELDS = 21,
    MOD_STATS_LINE = 1024,
    MOD_STATS_MOST = 2000
};

/** Modules with names of their own. */
typedef struct mod_stats {
    uint32_t n;
    me_sac_module modules[MOD_STATS_MOST];
    char names[MOD_STATS_MOST][64];
} mod_stats;

/** Whole numbers of the table, in its order; the others are texts or times. */
static inline uint64_t *mod_stats_field(me_sac_module *m, int field)
{
    switch (field) {
    case 1: return &m->param_bytes;
    case 2: return &m->grad_bytes;
    case 3: return &m->grad_total_bytes;
    case 4: return &m->act_fw_bytes;
    case 5: return &m->act_bw_bytes;
    case 7: return &m->act_total_bytes;
    case 8: return &m->input_bytes;
    case 9: return &m->output_bytes;
    case 14: return &m->sac_bytes;
    default: return NULL;
    }
}

/** Numbers of a list such as "0.5,2"; none of "-". @return how many */
static inline uint32_t mod_stats_list(const char *text, double *numbers)
{
    uint32_t n = 0;
    char *end = NULL;
    for (const char *at = text; strcmp(text, "-") != 0; at = end + 1) {
        assert_in_range(n, 0, ME_SAC_SEGMENTS - 1);
        numbers[n++] = strtod(at, &end);
        assert_true(end != at);
        if (*end != ',') {
            break;
        }
    }
    return n;
}

static inline void mod_stats_read_line(mod_stats *stats, char **fields)
{
    me_sac_module *m = &stats->modules[stats->n];
    char *name = stats->names[stats->n++];
    *m = (me_sac_module){.fqn = name};
    assert_in_range(strlen(fields[0]), 1, sizeof stats->names[0] - 1);
    memcpy(name, fields[0], strlen(fields[0]) + 1);
    for (int i = 1; i < MOD_STATS_FIELDS; i++) {
        uint64_t *field = mod_stats_field(m, i);
        if (field != NULL) {
            *field = strtoull(fields[i], NULL, 10);
        }
    }
    m->act_grad_bytes = strtoll(fields[6], NULL, 10);
    m->fw_ms = strtod(fields[10], NULL);
    m->bw_ms = strtod(fields[11], NULL);
    m->is_leaf = strcmp(fields[12], "1") == 0;
    m->sac_ms = strtod(fields[13], NULL);
    m->n_segments = mod_stats_list(fields[16], m->slopes);
    assert_int_equal(m->n_segments, strtoul(fields[15], NULL, 10));
    assert_int_equal(mod_stats_list(fields[17], m->intercepts), m->n_segments);
    m->fw_pre_order = (uint32_t)strtoul(fields[19], NULL, 10);
    m->fw_post_order = (uint32_t)strtoul(fields[20], NULL, 10);
}

/** Read the table of @p path into @p stats, which then has as many modules. */
static inline void mod_stats_read(mod_stats *stats, const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[MOD_STATS_LINE];
    stats->n = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        char *fields[MOD_STATS_FIELDS] = {line};
        int n = 1;
        for (char *at = line; *at != '\0'; at++) {
            if (*at == '\t' && n < MOD_STATS_FIELDS) {
                *at = '\0';
                fields[n++] = at + 1;
            }
        }
        assert_int_equal(n, MOD_STATS_FIELDS);
        if (line[0] != '#') {
            mod_stats_read_line(stats, fields);
        }
    }
    assert_int_equal(fclose(file), 0);
}

static inline me_sac_graph *mod_stats_graph(const mod_stats *stats)
{
    me_diag diag = {0};
    me_sac_graph *graph = NULL;
    if (me_sac_graph_create(stats->modules, stats->n, &diag, &graph) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    return graph;
}

#endif /* MEMEST_TESTS_UNIT_SAC_MOD_STATS_H */
