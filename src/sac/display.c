/* SPDX-License-Identifier: BSD-3-Clause */
#include "sac/display.h"

#include "base/tabulate.h"
#include "sac/tradeoff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_BYTES = 64,
    MOST_DIGITS = 17,   /**< that tell any two doubles apart */
    PLAIN_EXPONENT = 16 /**< Python's repr() has an exponent from here on */
};

/** What a module is printed with. */
typedef struct printer {
    const me_sac_stats *stats;
    const me_sac_greedy *greedy;
    me_tabulate table;
    uint64_t total_bytes;
    double total_ms;
    uint64_t discarded; /**< so far, bytes */
    double recomputed;  /**< so far, milliseconds */
} printer;

/** One row of the second table. */
typedef struct step {
    int32_t op;
    const me_sac_candidate *candidate; /**< NULL: always stored or recomputed */
    bool is_stored;
    bool is_recomputed;
} step;

/** Python's repr() of a float that is not negative: as few digits as tell it
 *  apart. */
static void format_double(double value, char text[NUMBER_BYTES])
{
    int digits = 1;
    do {
        (void)snprintf(text, NUMBER_BYTES, "%.*e", digits - 1, value);
    } while (digits++ < MOST_DIGITS && strtod(text, NULL) != value);
    digits--;
    const char *e = strchr(text, 'e');
    const int exponent = e != NULL ? (int)strtol(e + 1, NULL, 10) : 0;
    if (exponent < -4 || exponent >= PLAIN_EXPONENT) {
        return;
    }
    const int behind = digits - 1 - exponent;
    (void)snprintf(text, NUMBER_BYTES, "%.*f", behind > 1 ? behind : 1, value);
}

static const char *word(bool value)
{
    return value ? "True" : "False";
}

static void add_headers(me_tabulate *table, const char *const *headers,
                        uint32_t count)
{
    me_tabulate_fini(table);
    table->n_columns = count;
    for (uint32_t i = 0; i < count; i++) {
        me_tabulate_add(table, headers[i]);
    }
}

static void tabulate_ops(printer *p)
{
    static const char *const headers[] = {
        "Op Idx",    "Op Name", "Runtimes(ms)",   "Memory (B)",
        "View-like", "Random",  "Saved Autograd", "In-place"};
    add_headers(&p->table, headers, sizeof headers / sizeof headers[0]);
    for (uint32_t i = 0; i < p->stats->n_ops; i++) {
        const me_sac_op *op = &p->stats->ops[i];
        me_tabulate_printf(&p->table, "%u", i);
        me_tabulate_add(&p->table, op->name);
        me_tabulate_printf(&p->table, "%.4f", op->runtime_ms);
        me_tabulate_printf(&p->table, "%llu", (unsigned long long)op->bytes);
        me_tabulate_add(&p->table, word(op->is_view_like));
        me_tabulate_add(&p->table, word(op->is_random));
        me_tabulate_add(&p->table, word(op->is_saved));
        if (op->in_place_of >= 0) {
            me_tabulate_printf(&p->table, "%d", (int)op->in_place_of);
        } else {
            me_tabulate_add(&p->table, "None");
        }
    }
}

/** "{1, 2}". */
static void write_numbers(const me_int_set *set, me_str *text)
{
    uint32_t position = 0;
    int32_t op = 0;
    const char *before = "{";
    while (me_int_set_next(set, &position, &op)) {
        me_str_printf(text, "%s%d", before, (int)op);
        before = ", ";
    }
    me_str_append(text, "}");
}

/** Has an operation of @p set from @p first up to @p op the same name? */
static bool is_named_before(const printer *p, const me_int_set *set,
                            int32_t first, int32_t op)
{
    for (int32_t i = first; i < op; i++) {
        if (me_int_set_has(set, i) &&
            strcmp(p->stats->ops[i].name, p->stats->ops[op].name) == 0) {
            return true;
        }
    }
    return false;
}

/** "{'addmm', 'relu_'}": no member is before the one that leads the group. */
static void write_names(const printer *p, const me_int_set *set, int32_t first,
                        me_str *text)
{
    const char *before = "{";
    uint32_t left = set->used;
    for (int32_t op = first; left > 0; op++) {
        if (!me_int_set_has(set, op)) {
            continue;
        }
        left--;
        if (!is_named_before(p, set, first, op)) {
            me_str_printf(text, "%s'%s'", before, p->stats->ops[op].name);
            before = ", ";
        }
    }
    me_str_append(text, "}");
}

static void add_text(me_tabulate *table, me_str *text)
{
    me_tabulate_add(table, me_str_text(text));
    if (me_str_status(text) != ME_OK) {
        table->status = me_str_status(text);
    }
    me_str_fini(text);
}

static void add_step(printer *p, const step *s)
{
    me_int_set members = {.slots = NULL};
    me_sac_greedy_add_group(p->greedy, s->op, &members);
    uint64_t bytes = 0;
    double runtime_ms = 0;
    if (s->candidate != NULL) {
        bytes = s->candidate->bytes;
        runtime_ms = s->candidate->runtime_ms;
    } else {
        me_sac_sum(p->stats, &members, &bytes, &runtime_ms);
    }
    p->discarded += bytes;
    p->recomputed += runtime_ms;
    me_str text = {0};
    write_numbers(&members, &text);
    add_text(&p->table, &text);
    write_names(p, &members, s->op, &text);
    add_text(&p->table, &text);
    me_tabulate_printf(&p->table, "%.4f",
                       (double)p->discarded / (double)p->total_bytes);
    me_tabulate_printf(&p->table, "%llu", (unsigned long long)p->discarded);
    me_tabulate_printf(&p->table, "%.4f", p->recomputed / p->total_ms);
    char number[NUMBER_BYTES];
    format_double(p->recomputed, number);
    me_tabulate_add(&p->table, number);
    if (s->candidate != NULL) {
        me_tabulate_printf(&p->table, "%.2e", s->candidate->bytes_per_ms);
    } else {
        me_tabulate_add(&p->table, "nan");
    }
    me_tabulate_add(&p->table, word(s->is_stored));
    me_tabulate_add(&p->table, word(s->is_recomputed));
    if (me_int_set_status(&members) != ME_OK) {
        p->table.status = me_int_set_status(&members);
    }
    me_int_set_fini(&members);
}

static void tabulate_steps(printer *p)
{
    static const char *const headers[] = {"Op Id(s)",
                                          "Op Name(s)",
                                          "Discarded Mem (%)",
                                          "Discarded Mem (B)",
                                          "Recomp time (%)",
                                          "Recomp time (ms)",
                                          "MSPS",
                                          "Always Stored",
                                          "Always Recomputed"};
    add_headers(&p->table, headers, sizeof headers / sizeof headers[0]);
    uint32_t position = 0;
    step s = {.is_recomputed = true};
    while (me_int_set_next(&p->greedy->recomputed, &position, &s.op)) {
        add_step(p, &s);
    }
    for (uint32_t i = 0; i < p->greedy->n_candidates; i++) {
        const me_sac_candidate *candidate = &p->greedy->candidates[i];
        add_step(p, &(step){.op = candidate->op, .candidate = candidate});
    }
    position = 0;
    s = (step){.is_stored = true};
    while (me_int_set_next(&p->greedy->stored, &position, &s.op)) {
        add_step(p, &s);
    }
}

static void append_table(const printer *p, bool tabulates, me_str *text)
{
    if (tabulates) {
        me_tabulate_append_rst(&p->table, text);
    } else {
        me_tabulate_append_plain(&p->table, text);
    }
}

me_status me_sac_display_append(me_str *text, const me_sac_stats *stats,
                                const me_sac_greedy *greedy, bool tabulates,
                                me_diag *diag)
{
    const me_status status = me_sac_tradeoff_check(stats, diag);
    if (status != ME_OK) {
        return status;
    }
    printer p = {.stats = stats,
                 .greedy = greedy,
                 .total_bytes = me_sac_stats_bytes(stats),
                 .total_ms = me_sac_stats_runtime_ms(stats)};
    char total_ms[NUMBER_BYTES];
    format_double(p.total_ms, total_ms);
    me_str_printf(text,
                  "Module: %s\nTotal Memory: %llu B Total Runtime: %s ms Store "
                  "Random: %s\n",
                  stats->fqn, (unsigned long long)p.total_bytes, total_ms,
                  word(stats->stores_random));
    tabulate_ops(&p);
    append_table(&p, tabulates, text);
    me_str_printf(text, "AC Trade-off for Module: %s MSPS = Memory/Runtime\n",
                  stats->fqn);
    tabulate_steps(&p);
    append_table(&p, tabulates, text);
    me_tabulate_fini(&p.table);
    return me_str_status(text) == ME_OK
               ? ME_OK
               : me_fail(diag, me_str_status(text),
                         "no memory for the operations of %s", stats->fqn);
}
