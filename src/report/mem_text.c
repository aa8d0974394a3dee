/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/mem_text.h"

#include "base/alloc.h"

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
    NUMBER_BYTES = 40
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

/** A table as the Python package tabulate prints one in its format "rst". */
enum {
    COLUMNS = ME_MEM_MAX_CATEGORIES + 3,
    CELL_BYTES = 64
};

typedef struct table {
    char (*rows)[COLUMNS][CELL_BYTES];
    uint32_t n_rows;
    uint32_t capacity;
    uint32_t n_columns;
    bool is_out_of_memory;
} table;

static char (*add_row(table *b))[CELL_BYTES]
{
    if (b->n_rows == b->capacity) {
        void *larger = me_grow(b->rows, b->n_rows, &b->capacity,
                               sizeof *b->rows, "mem_text.table");
        if (larger == NULL) {
            b->is_out_of_memory = true;
            return NULL;
        }
        b->rows = larger;
    }
    memset(b->rows[b->n_rows], 0, sizeof *b->rows);
    return b->rows[b->n_rows++];
}

static void rule(me_str *text, const table *b, const size_t *widths)
{
    for (uint32_t c = 0; c < b->n_columns; c++) {
        me_str_append(text, c == 0 ? "" : "  ");
        for (size_t i = 0; i < widths[c]; i++) {
            me_str_append(text, "=");
        }
    }
    me_str_append(text, "\n");
}

/** The last cell of a line that says something ends it. */
static void line(me_str *text, const table *b, uint32_t r, const size_t *widths)
{
    uint32_t last = b->n_columns - 1;
    while (last > 0 && b->rows[r][last][0] == '\0') {
        last--;
    }
    for (uint32_t c = 0; c < last; c++) {
        me_str_printf(text, "%-*s  ", (int)widths[c], b->rows[r][c]);
    }
    me_str_printf(text, "%s\n", b->rows[r][last]);
}

/** The first row is the header, which has two columns of air. */
static void append_table(me_str *text, const table *b)
{
    size_t widths[COLUMNS] = {0};
    for (uint32_t r = 0; r < b->n_rows; r++) {
        for (uint32_t c = 0; c < b->n_columns; c++) {
            const size_t width = strlen(b->rows[r][c]) + (r == 0 ? 2 : 0);
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    rule(text, b, widths);
    for (uint32_t r = 0; r < b->n_rows; r++) {
        line(text, b, r, widths);
        if (r == 0) {
            rule(text, b, widths);
        }
    }
    rule(text, b, widths);
}

/** @param state  NULL: the table has no column of states */
static void header(table *b, const me_mem_tracker *t, const char *state)
{
    const me_mem_labels *labels = me_mem_tracker_labels(t);
    char(*row)[CELL_BYTES] = add_row(b);
    if (row == NULL) {
        return;
    }
    uint32_t c = 0;
    if (state != NULL) {
        (void)snprintf(row[c++], CELL_BYTES, "%s", state);
    }
    (void)snprintf(row[c++], CELL_BYTES, "Device");
    for (uint32_t i = 0; i < me_mem_tracker_shown(t); i++) {
        (void)snprintf(row[c++], CELL_BYTES, "%s", labels->categories[i]);
    }
    (void)snprintf(row[c++], CELL_BYTES, "Total");
    b->n_columns = c;
}

static void cell(char *to, const me_mem_format *f, uint64_t bytes)
{
    char number[NUMBER_BYTES];
    write_number(number, f, bytes);
    (void)snprintf(to, CELL_BYTES, "%s %s", number, f->units);
}

/** A row a device; only the first one names the state. */
static void add_rows(table *b, const me_mem_tracker *t,
                     const me_mem_snapshot *s, const me_mem_format *f,
                     const char *state)
{
    bool is_first = true;
    for (int d = 0; d < ME_MEM_DEVICES; d++) {
        if (!is_shown(f, &s->device[d])) {
            continue;
        }
        char(*row)[CELL_BYTES] = add_row(b);
        if (row == NULL) {
            return;
        }
        uint32_t c = 0;
        if (state != NULL) {
            (void)snprintf(row[c++], CELL_BYTES, "%s", is_first ? state : "");
        }
        (void)snprintf(row[c++], CELL_BYTES, "%s", device_names[d]);
        for (uint32_t i = 0; i < me_mem_tracker_shown(t); i++) {
            cell(row[c++], f, s->device[d].by_category[i]);
        }
        cell(row[c], f, s->device[d].total);
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
    table b = {.rows = NULL};
    header(&b, t, NULL);
    add_rows(&b, t, snapshot, f, NULL);
    append_table(text, &b);
    me_free(b.rows);
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

bool me_mem_is_within(const me_mem_module *m, uint32_t depth)
{
    uint32_t names = 1;
    for (const char *c = m->fqn; *c != '\0'; c++) {
        names += *c == '.' ? 1 : 0;
    }
    return names <= depth;
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

static me_status tabulate_module(me_str *text, const me_mem_tracker *t,
                                 const me_mem_module *m, const me_mem_format *f)
{
    const me_mem_labels *labels = me_mem_tracker_labels(t);
    table b = {.rows = NULL};
    header(&b, t, "State & Call");
    for (uint32_t i = 0; i < m->n_order; i++) {
        const uint32_t state = m->order[i];
        for (uint32_t k = 0; k < m->states[state].count; k++) {
            char name[CELL_BYTES];
            (void)snprintf(name, sizeof name, "%s # %u", labels->states[state],
                           k + 1);
            add_rows(&b, t, &m->states[state].snapshots[k], f, name);
        }
    }
    append_table(text, &b);
    me_free(b.rows);
    return b.is_out_of_memory ? ME_ERR_NOMEM : ME_OK;
}

me_status me_mem_modules_append(me_str *text, const me_mem_tracker *t,
                                const me_mem_format *f)
{
    uint32_t count = 0;
    const me_mem_module **modules = me_mem_sorted(t, &count);
    me_status status = modules == NULL ? ME_ERR_NOMEM : ME_OK;
    for (uint32_t i = 0; status == ME_OK && i < count; i++) {
        if (!me_mem_is_within(modules[i], f->depth)) {
            continue;
        }
        me_str_printf(text, "Module:  %s\n", modules[i]->fqn);
        if (f->tabulates) {
            status = tabulate_module(text, t, modules[i], f);
        } else {
            append_module(text, t, modules[i], f);
        }
    }
    me_free(modules);
    return status;
}
