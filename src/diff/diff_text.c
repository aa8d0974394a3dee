/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "diff/diff.h"
#include "report/table.h"

#include <inttypes.h>
#include <string.h>

enum {
    SHOWN_ROWS = 24,
    SHOWN_PARTS = 10,
    NAME_BYTES = 90
};

static const double mib = 1048576.0;

static void append_mib(me_str *text, uint64_t bytes)
{
    me_str_printf(text, "%.3f", (double)bytes / mib);
}

static void append_change(me_str *text, int64_t bytes)
{
    if (bytes == 0) {
        me_str_append(text, "0");
    } else if (bytes > -1024 && bytes < 1024) {
        me_str_printf(text, "%+" PRId64 " B", bytes);
    } else {
        me_str_printf(text, "%+.3f", (double)bytes / mib);
    }
}

/** A quantity of a rank. */
typedef struct row {
    const me_diff *diff;
    int32_t rank;
    me_quantity quantity;
    uint64_t a;
    uint64_t b;
} row;

static void get_rank(const void *item, me_str *cell)
{
    const row *r = item;
    if (r->rank < 0) {
        me_str_append(cell, "-");
    } else {
        me_str_printf(cell, "%d", (int)r->rank);
    }
}

static void get_quantity(const void *item, me_str *cell)
{
    me_str_append(cell, me_quantity_text(((const row *)item)->quantity));
}

static void get_a(const void *item, me_str *cell)
{
    append_mib(cell, ((const row *)item)->a);
}

static void get_b(const void *item, me_str *cell)
{
    append_mib(cell, ((const row *)item)->b);
}

static void get_change(const void *item, me_str *cell)
{
    const row *r = item;
    if (r->a != r->b && me_diff_beyond(r->diff, r->a, r->b) == 0) {
        me_str_append(cell, "as rounded");
        return;
    }
    append_change(cell, (int64_t)(r->b - r->a));
    if (r->a > 0 && r->a != r->b) {
        me_str_printf(cell, " (%+.2f %%)",
                      100.0 * ((double)r->b - (double)r->a) / (double)r->a);
    }
}

static me_status print_rows(const row *rows, uint32_t n, me_str *text)
{
    static const me_column columns[] = {
        {.title = "rank", .is_number = true, .get = get_rank},
        {.title = "bytes", .get = get_quantity},
        {.title = "first", .unit = "MiB", .is_number = true, .get = get_a},
        {.title = "second", .unit = "MiB", .is_number = true, .get = get_b},
        {.title = "second less first", .is_number = true, .get = get_change},
    };
    return me_table_print(ME_TABLE(columns, rows, n), text);
}

/** Ranks whose rows are shown: all, or those that differ, the first of them. */
static me_status print_ranks(const me_diff *diff, me_str *text)
{
    row *rows = me_alloc((size_t)diff->n_pairs * ME_QUANTITY_COUNT,
                         sizeof *rows, "diff.rows");
    uint32_t n = 0;
    uint32_t n_equal = 0;
    if (rows == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < diff->n_pairs; i++) {
        const me_diff_pair *p = &diff->pairs[i];
        for (int q = 0; q < ME_QUANTITY_COUNT; q++) {
            if (!p->a->has[q] || !p->b->has[q]) {
                continue;
            }
            rows[n] = (row){diff, p->rank, (me_quantity)q, p->a->bytes[q],
                            p->b->bytes[q]};
            if (diff->n_pairs > 4 &&
                me_diff_beyond(diff, rows[n].a, rows[n].b) == 0) {
                n_equal++;
            } else {
                n++;
            }
        }
    }
    me_status status = ME_OK;
    if (n > 0) {
        status = print_rows(rows, n < SHOWN_ROWS ? n : SHOWN_ROWS, text);
    }
    if (n > SHOWN_ROWS) {
        me_str_printf(text, "  and %u more that differ (--format json)\n",
                      (unsigned)(n - SHOWN_ROWS));
    }
    if (n_equal > 0) {
        me_str_printf(text, "  %u numbers of %u ranks are equal%s\n",
                      (unsigned)n_equal, (unsigned)diff->n_pairs,
                      diff->a->rounding + diff->b->rounding > 0
                          ? ", as far as they are printed"
                          : "");
    }
    me_free(rows);
    return status;
}

static void get_part_change(const void *item, me_str *cell)
{
    append_change(cell, me_part_change(item));
}

static void append_part(me_str *cell, const me_part *part)
{
    if (part == NULL) {
        me_str_append(cell, "-");
        return;
    }
    append_mib(cell, part->bytes);
    if (part->key != 0) { // blocks
        me_str_printf(cell, " in %" PRIu64, part->count);
    }
}

static void get_part_a(const void *item, me_str *cell)
{
    append_part(cell, ((const me_part_pair *)item)->a);
}

static void get_part_b(const void *item, me_str *cell)
{
    append_part(cell, ((const me_part_pair *)item)->b);
}

static void append_name(me_str *cell, const char *name)
{
    const size_t length = strlen(name);
    me_str_append_n(cell, name, length < NAME_BYTES ? length : NAME_BYTES);
    me_str_append(cell, length > NAME_BYTES ? "..." : "");
}

static void get_part_name(const void *item, me_str *cell)
{
    const char *name = me_part_named(item)->name;
    if (name[0] == '\0') {
        me_str_append(cell, "(no stack)");
    } else {
        append_name(cell, name);
    }
}

static me_status print_division(const me_diff_pair *pair, me_division division,
                                me_str *text)
{
    static const me_column columns[] = {
        {.title = "first", .unit = "MiB", .is_number = true, .get = get_part_a},
        {.title = "second",
         .unit = "MiB",
         .is_number = true,
         .get = get_part_b},
        {.title = "second less first",
         .is_number = true,
         .get = get_part_change},
        {.title = "what", .get = get_part_name},
    };

    me_part_pair *parts = NULL;
    uint32_t n = 0;
    if (pair->a->divisions[division].count == 0 ||
        pair->b->divisions[division].count == 0) {
        return ME_OK; // only one of them has it
    }
    me_status status = me_diff_parts(pair, division, &parts, &n);
    if (status != ME_OK) {
        return status;
    }
    me_str_append(text, "\n");
    if (pair->rank >= 0) {
        me_str_printf(text, "rank %d, ", (int)pair->rank);
    }
    me_str_append(text, me_division_text(division));
    if (n == 0) {
        me_str_append(text, ": 0 bytes differ\n");
    } else {
        me_str_append(text, ", the largest differences\n");
        status = me_table_print(
            ME_TABLE(columns, parts, n < SHOWN_PARTS ? n : SHOWN_PARTS), text);
    }
    if (n > SHOWN_PARTS) {
        me_str_printf(text, "  and %u more\n", (unsigned)(n - SHOWN_PARTS));
    }
    me_free(parts);
    return status;
}

static const char *find_value(const me_profile *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_options; i++) {
        if (strcmp(p->options[i].name, name) == 0) {
            return p->options[i].value;
        }
    }
    return NULL;
}

static void print_option(const char *name, const char *a, const char *b,
                         me_str *text)
{
    me_str_printf(text, "  %s: %s -> %s\n", name, a == NULL ? "(default)" : a,
                  b == NULL ? "(default)" : b);
}

/** Options of the jobs that have another value. */
static void print_options(const me_diff *diff, me_str *text)
{
    if (!diff->a->has_options || !diff->b->has_options) {
        return;
    }
    me_str_append(text, "\nwhat the jobs differ in\n");
    const size_t before = text->length;
    for (uint32_t i = 0; i < diff->a->n_options; i++) {
        const me_profile_option *o = &diff->a->options[i];
        const char *other = find_value(diff->b, o->name);
        if (other == NULL || strcmp(other, o->value) != 0) {
            print_option(o->name, o->value, other, text);
        }
    }
    for (uint32_t i = 0; i < diff->b->n_options; i++) {
        const me_profile_option *o = &diff->b->options[i];
        if (find_value(diff->a, o->name) == NULL) {
            print_option(o->name, NULL, o->value, text);
        }
    }
    if (text->length == before) {
        me_str_append(text, "  nothing\n");
    }
}

static void print_call(me_str *text, int64_t bytes)
{
    if (bytes == 0) {
        me_str_append(text, "its end");
    } else {
        me_str_printf(text, "%s of %" PRId64 " bytes",
                      bytes > 0 ? "an allocation" : "a free",
                      bytes > 0 ? bytes : -bytes);
    }
}

static void print_calls(const me_diff *diff, me_str *text)
{
    const me_diff_calls *c = &diff->calls;
    if (!c->is_known) {
        return;
    }
    me_str_printf(text,
                  "\n%s of the %s has %u allocations and frees: ", c->iteration,
                  c->is_of_b ? "second" : "first", (unsigned)c->n_calls);
    if (c->n_equal == c->n_calls) {
        me_str_printf(text,
                      "all of them stand in the other one in the same order, "
                      "from number %u on\n",
                      (unsigned)c->at);
        return;
    }
    me_str_printf(text,
                  "at most %u of them stand in the other one in one go, from "
                  "number %u on; then comes ",
                  (unsigned)c->n_equal, (unsigned)c->at);
    print_call(text, c->found);
    me_str_append(text, " in place of ");
    print_call(text, c->wanted);
    me_str_append(text, "\n");
}

static void print_source(const char *place, const me_profile *p, me_str *text)
{
    me_str_printf(text, "%s ", place);
    me_str_append_clean(text, p->name, strlen(p->name));
    if (p->n_ranks == 1 && p->ranks[0].rank >= 0) {
        me_str_printf(text, ": %s, rank %d\n", p->source,
                      (int)p->ranks[0].rank);
    } else {
        me_str_printf(text, ": %s, %u rank%s\n", p->source,
                      (unsigned)p->n_ranks, p->n_ranks == 1 ? "" : "s");
    }
}

static void print_guess(const me_profile *guessed, me_str *text)
{
    if (guessed != NULL) {
        me_str_append_clean(text, guessed->name, strlen(guessed->name));
        me_str_append(text, " does not say whose memory it shows: taken for "
                            "rank 0 (--rank says another)\n");
    }
}

/** Each ends with its last iteration; a run may have made more or fewer. */
static void print_ends(const me_diff *diff, me_str *text)
{
    const uint32_t a = diff->a->n_iterations;
    const uint32_t b = diff->b->n_iterations;
    if (a != 0 && b != 0 && a != b) {
        me_str_printf(text,
                      "the first ends with iteration %u, the second with "
                      "iteration %u: what is there then, and what is reserved, "
                      "may differ by that\n",
                      (unsigned)a - 1, (unsigned)b - 1);
    }
}

me_status me_diff_text(const me_diff *diff, me_str *text)
{
    print_source("first: ", diff->a, text);
    print_source("second:", diff->b, text);
    print_guess(diff->guessed, text);
    if (diff->n_alone[0] + diff->n_alone[1] > 0) {
        me_str_printf(text,
                      "ranks that only one has: %u of the first, %u of the "
                      "second\n",
                      (unsigned)diff->n_alone[0], (unsigned)diff->n_alone[1]);
    }
    print_ends(diff, text);
    print_options(diff, text);
    me_str_append(text, "\n");
    me_status status = print_ranks(diff, text);
    const me_diff_pair *worst = me_diff_worst(diff);
    for (int d = 0; status == ME_OK && d < ME_DIVISION_COUNT; d++) {
        status = print_division(worst, (me_division)d, text);
    }
    print_calls(diff, text);
    return status == ME_OK ? me_str_status(text) : status;
}
