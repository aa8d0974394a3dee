/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/mem_text.h"

#include "base/alloc.h"
#include "base/parse.h"
#include "base/tabulate.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const device_names[] = {
    [ME_MEM_CUDA] = "cuda:0", [ME_MEM_CPU] = "cpu"};

static const struct {
    const char *name;
    double divisor;
} known_units[] = {
    {"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};

me_status me_mem_units_find(const char *units, me_diag *diag,
                            me_mem_format *format)
{
    for (size_t i = 0; i < sizeof known_units / sizeof known_units[0]; i++) {
        if (strcmp(known_units[i].name, units) == 0) {
            format->units = known_units[i].name;
            format->divisor = known_units[i].divisor;
            return ME_OK;
        }
    }
    return me_fail(diag, ME_ERR_CONFIG, "--units %s: B, KiB, MiB and GiB are",
                   units);
}

enum {
    NUMBER_BYTES = 40,
    STATE_BYTES = 64
};

/** Python's round(bytes / divisor, 2), printed as Python prints a float. */
static void write_number(char *text, const me_mem_format *f, uint64_t bytes)
{
    if (f->divisor <= 1) {
        (void)snprintf(text, NUMBER_BYTES, "%llu", (unsigned long long)bytes);
        return;
    }
    (void)snprintf(text, NUMBER_BYTES, "%.2f", (double)bytes / f->divisor);
    const size_t length = strlen(text);
    if (text[length - 1] == '0') {
        text[length - 1] = '\0';
    }
}

/** Nothing is printed of a device whose total rounds to 0. */
static bool is_shown(const me_mem_format *f, const me_mem_device *d)
{
    char text[NUMBER_BYTES];
    write_number(text, f, d->total);
    return strtod(text, NULL) > 0;
}

static void append_device(me_str *text, const me_mem_tracker *t,
                          const me_mem_device *d, const me_mem_format *f)
{
    const me_mem_labels *labels = me_mem_tracker_labels(t);
    char number[NUMBER_BYTES];
    for (uint32_t i = 0; i < me_mem_tracker_shown(t); i++) {
        write_number(number, f, d->by_category[i]);
        me_str_printf(text, "\t%s: %s %s\n", labels->categories[i], number,
                      f->units);
    }
    write_number(number, f, d->total);
    me_str_printf(text, "\tTotal: %s %s\n", number, f->units);
}

static void append_plain(me_str *text, const me_mem_tracker *t,
                         const me_mem_snapshot *s, const me_mem_format *f)
{
    for (int i = 0; i < ME_MEM_DEVICES; i++) {
        if (is_shown(f, &s->device[i])) {
            me_str_printf(text, "Device: %s\n", device_names[i]);
            append_device(text, t, &s->device[i], f);
        }
    }
}

/** @param state  NULL: the table has no column of states */
static void header(me_tabulate *b, const me_mem_tracker *t, const char *state)
{
    const me_mem_labels *labels = me_mem_tracker_labels(t);
    b->n_columns = me_mem_tracker_shown(t) + (state != NULL ? 3 : 2);
    if (state != NULL) {
        me_tabulate_add(b, state);
    }
    me_tabulate_add(b, "Device");
    for (uint32_t i = 0; i < me_mem_tracker_shown(t); i++) {
        me_tabulate_add(b, labels->categories[i]);
    }
    me_tabulate_add(b, "Total");
}

static void cell(me_tabulate *b, const me_mem_format *f, uint64_t bytes)
{
    char number[NUMBER_BYTES];
    write_number(number, f, bytes);
    me_tabulate_printf(b, "%s %s", number, f->units);
}

/** A row a device; only the first one names the state. */
static void add_rows(me_tabulate *b, const me_mem_tracker *t,
                     const me_mem_snapshot *s, const me_mem_format *f,
                     const char *state)
{
    bool is_first = true;
    for (int d = 0; d < ME_MEM_DEVICES; d++) {
        if (!is_shown(f, &s->device[d])) {
            continue;
        }
        if (state != NULL) {
            me_tabulate_add(b, is_first ? state : "");
        }
        me_tabulate_add(b, device_names[d]);
        for (uint32_t i = 0; i < me_mem_tracker_shown(t); i++) {
            cell(b, f, s->device[d].by_category[i]);
        }
        cell(b, f, s->device[d].total);
        is_first = false;
    }
}

void me_mem_snapshot_append(me_str *text, const me_mem_tracker *t,
                            const me_mem_snapshot *snapshot,
                            const me_mem_format *f)
{
    if (snapshot->device[ME_MEM_CUDA].total == 0 &&
        snapshot->device[ME_MEM_CPU].total == 0) {
        me_str_append(text, "No memory tracked.\n");
        return;
    }
    if (!f->tabulates) {
        append_plain(text, t, snapshot, f);
        return;
    }
    me_tabulate b = {.n_columns = 0};
    header(&b, t, NULL);
    add_rows(&b, t, snapshot, f, NULL);
    me_tabulate_append_rst(&b, text);
    me_tabulate_fini(&b);
}

/** Digits compare as numbers, other letters without case. */
static int compare_names(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        if (isdigit((unsigned char)*a) != 0 &&
            isdigit((unsigned char)*b) != 0) {
            char *end_a = NULL;
            char *end_b = NULL;
            const unsigned long long x = strtoull(a, &end_a, 10);
            const unsigned long long y = strtoull(b, &end_b, 10);
            if (x != y) {
                return x < y ? -1 : 1;
            }
            a = end_a;
            b = end_b;
            continue;
        }
        const int x = tolower((unsigned char)*a++);
        const int y = tolower((unsigned char)*b++);
        if (x != y) {
            return x < y ? -1 : 1;
        }
    }
    return (*a != '\0') - (*b != '\0');
}

static int compare_modules(const void *a, const void *b)
{
    const me_mem_module *x = *(const me_mem_module *const *)a;
    const me_mem_module *y = *(const me_mem_module *const *)b;
    const int order = compare_names(x->fqn, y->fqn);
    return order != 0 ? order : (x > y) - (x < y);
}

const me_mem_module **me_mem_sorted(const me_mem_tracker *t,
                                    uint32_t *count_out)
{
    const me_mem_module *modules = me_mem_tracker_modules(t, count_out);
    const me_mem_module **sorted = me_alloc(
        (size_t)*count_out + 1, sizeof(me_mem_module *), "mem_text.modules");
    for (uint32_t i = 0; sorted != NULL && i < *count_out; i++) {
        sorted[i] = &modules[i];
    }
    if (sorted != NULL && *count_out > 0) {
        qsort(sorted, *count_out, sizeof(me_mem_module *), compare_modules);
    }
    return sorted;
}

static void append_module(me_str *text, const me_mem_tracker *t,
                          const me_mem_module *m, const me_mem_format *f)
{
    const me_mem_labels *labels = me_mem_tracker_labels(t);
    for (uint32_t i = 0; i < m->n_order; i++) {
        const uint32_t state = m->order[i];
        me_str_printf(text, "%s\n", labels->states[state]);
        for (uint32_t k = 0; k < m->states[state].count; k++) {
            me_str_printf(text, "# %u:\n", k + 1);
            append_plain(text, t, &m->states[state].snapshots[k], f);
        }
    }
    me_str_append(text, "\n");
}

static void tabulate_module(me_str *text, const me_mem_tracker *t,
                            const me_mem_module *m, const me_mem_format *f)
{
    const me_mem_labels *labels = me_mem_tracker_labels(t);
    me_tabulate b = {.n_columns = 0};
    header(&b, t, "State & Call");
    for (uint32_t i = 0; i < m->n_order; i++) {
        const uint32_t state = m->order[i];
        for (uint32_t k = 0; k < m->states[state].count; k++) {
            char name[STATE_BYTES];
            (void)snprintf(name, sizeof name, "%s # %u", labels->states[state],
                           k + 1);
            add_rows(&b, t, &m->states[state].snapshots[k], f, name);
        }
    }
    me_tabulate_append_rst(&b, text);
    me_tabulate_fini(&b);
}

me_status me_mem_modules_append(me_str *text, const me_mem_tracker *t,
                                const me_mem_format *f)
{
    uint32_t count = 0;
    const me_mem_module **modules = me_mem_sorted(t, &count);
    const me_status status = modules == NULL ? ME_ERR_NOMEM : ME_OK;
    for (uint32_t i = 0; modules != NULL && i < count; i++) {
        if (!me_path_is_within(modules[i]->fqn, f->depth)) {
            continue;
        }
        me_str_printf(text, "Module:  %s\n", modules[i]->fqn);
        if (f->tabulates) {
            tabulate_module(text, t, modules[i], f);
        } else {
            append_module(text, t, modules[i], f);
        }
    }
    me_free(modules);
    return status;
}
