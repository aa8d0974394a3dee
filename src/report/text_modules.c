/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/size.h"
#include "report/quantity.h"
#include "report/table.h"
#include "report/text.h"
#include "track/fold.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t nobody = UINT32_MAX;

/** A line: one module, or like ones that are equal with all inside them. */
typedef struct module_row {
    me_module_result module; /**< the first of them, with the largest peaks */
    char *label;             /**< owned; NULL: the module's own name */
    int64_t parent;          /**< row; -1: none */
    uint64_t instances;
} module_row;

typedef struct module_view {
    const me_rank_result *result;
    uint32_t *first_child; /**< by module */
    uint32_t *next;        /**< sibling, by module */
    uint32_t first_top;
    module_row *rows;
    size_t n_rows;
} module_view;

static const char *own_name(const me_module_result *module)
{
    const char *dot = strrchr(module->name, '.');
    return dot == NULL ? module->name : dot + 1;
}

static bool is_numbered(const me_module_result *module)
{
    const char *name = own_name(module);
    return *name != '\0' && strspn(name, "0123456789") == strlen(name);
}

static const me_module_result *module_at(const module_view *view, uint32_t i)
{
    return &view->result->modules[i];
}

/** Whether everything inside the two is equal but for peaks and numbers. */
static bool is_same(const module_view *view, uint32_t a, uint32_t b)
{
    const me_module_result *x = module_at(view, a);
    const me_module_result *y = module_at(view, b);
    if (x->parameter_bytes != y->parameter_bytes ||
        x->parameters != y->parameters ||
        x->activation_bytes != y->activation_bytes) {
        return false;
    }
    uint32_t c = view->first_child[a];
    uint32_t d = view->first_child[b];
    while (c != nobody && d != nobody) {
        if (strcmp(own_name(module_at(view, c)),
                   own_name(module_at(view, d))) != 0 ||
            !is_same(view, c, d)) {
            return false;
        }
        c = view->next[c];
        d = view->next[d];
    }
    return c == d;
}

/** How many siblings from @p first on make one line. */
static size_t run_length(const module_view *view, uint32_t first)
{
    size_t length = 1;
    if (!is_numbered(module_at(view, first))) {
        return length;
    }
    for (uint32_t i = view->next[first];
         i != nobody && is_numbered(module_at(view, i)) &&
         is_same(view, first, i);
         i = view->next[i]) {
        length++;
    }
    return length;
}

/** "0-7" for a run of siblings; NULL without memory. */
static char *run_label(const module_view *view, uint32_t first, size_t length)
{
    const char **names = me_alloc(length, sizeof *names, "text.names");
    if (names == NULL) {
        return NULL;
    }
    uint32_t at = first;
    for (size_t i = 0; i < length; i++) {
        names[i] = own_name(module_at(view, at));
        at = view->next[at];
    }
    me_str label = {0};
    const me_status status = me_path_fold(names, length, &label);
    me_free(names);
    if (status != ME_OK) {
        me_str_fini(&label);
        return NULL;
    }
    return label.text;
}

/** Unknown gives way to known. */
static void raise_known(uint64_t *peak, uint64_t by)
{
    if (by != ME_BYTES_UNKNOWN) {
        *peak = *peak == ME_BYTES_UNKNOWN ? by : me_max_u64(*peak, by);
    }
}

static void fill_row(const module_view *view, const uint32_t *instances,
                     size_t n_instances, module_row *row)
{
    row->module = *module_at(view, instances[0]);
    row->instances = n_instances;
    for (size_t i = 1; i < n_instances; i++) {
        const me_module_result *module = module_at(view, instances[i]);
        raise_known(&row->module.forward_peak_bytes,
                    module->forward_peak_bytes);
        raise_known(&row->module.backward_peak_bytes,
                    module->backward_peak_bytes);
    }
}

static me_status add_siblings(module_view *view, uint32_t *firsts,
                              size_t n_firsts, int64_t parent);

/**
 * A line for @p length siblings in each of @p n_firsts equal families, and
 * lines for what is inside. @p firsts moves on past them.
 */
static me_status add_run(module_view *view, uint32_t *firsts, size_t n_firsts,
                         size_t length, int64_t parent)
{
    const size_t count = n_firsts * length;
    uint32_t *instances = me_alloc(count, sizeof *instances, "text.instances");
    if (instances == NULL) {
        return ME_ERR_NOMEM;
    }
    module_row *row = &view->rows[view->n_rows];
    row->parent = parent;
    row->label = length > 1 ? run_label(view, firsts[0], length) : NULL;
    if (length > 1 && row->label == NULL) {
        me_free(instances);
        return ME_ERR_NOMEM;
    }
    for (size_t i = 0; i < n_firsts; i++) {
        for (size_t j = 0; j < length; j++) {
            instances[i * length + j] = firsts[i];
            firsts[i] = view->next[firsts[i]];
        }
    }
    fill_row(view, instances, count, row);
    const int64_t index = (int64_t)view->n_rows++;
    for (size_t i = 0; i < count; i++) {
        instances[i] = view->first_child[instances[i]];
    }
    const me_status status = add_siblings(view, instances, count, index);
    me_free(instances);
    return status;
}

static me_status add_siblings(module_view *view, uint32_t *firsts,
                              size_t n_firsts, int64_t parent)
{
    me_status status = ME_OK;
    while (status == ME_OK && firsts[0] != nobody) {
        status = add_run(view, firsts, n_firsts, run_length(view, firsts[0]),
                         parent);
    }
    return status;
}

static void get_name(const void *row, me_str *cell)
{
    const module_row *r = row;
    me_str_append(cell, r->label == NULL ? own_name(&r->module) : r->label);
}

static void get_instances(const void *row, me_str *cell)
{
    const module_row *r = row;
    if (r->instances > 1) {
        me_str_printf(cell, "x%" PRIu64, r->instances);
    }
}

static int64_t get_parent(const void *rows, size_t i)
{
    return ((const module_row *)rows)[i].parent;
}

static const me_column module_columns[] = {
    {"module", NULL, false, true, get_name},
    {"", NULL, false, false, get_instances},
};

static const me_schema row_schema = ME_SCHEMA(
    module_row,
    {ME_WITHIN("module", module_row, module, me_module_schema), .title = ""});

/** Children in the order they were made. */
static void link_children(module_view *view)
{
    const uint32_t count = view->result->n_modules;
    view->first_top = nobody;
    for (uint32_t i = 0; i < count; i++) {
        view->first_child[i] = nobody;
    }
    for (uint32_t i = count; i-- > 0;) {
        const uint32_t parent = module_at(view, i)->parent;
        uint32_t *first =
            parent == nobody ? &view->first_top : &view->first_child[parent];
        view->next[i] = *first;
        *first = i;
    }
}

static me_status print_rows(const module_view *view, me_table_printer print,
                            me_str *text)
{
    return print(
        &(me_table){.columns = module_columns,
                    .n_columns = sizeof module_columns / sizeof *module_columns,
                    .schema = &row_schema,
                    .rows = view->rows,
                    .n_rows = view->n_rows,
                    .row_bytes = sizeof *view->rows,
                    .narrow = "parameters;parameters;",
                    .parent = get_parent},
        text);
}

me_status me_modules_table(const me_report *report, me_table_printer print,
                           me_str *text)
{
    module_view view = {.result = me_report_worst(report)};
    const uint32_t count = view.result->n_modules;
    me_status status = ME_ERR_NOMEM;
    view.first_child = me_alloc(count, sizeof *view.first_child, "text.first");
    view.next = me_alloc(count, sizeof *view.next, "text.next");
    view.rows = me_alloc(count, sizeof *view.rows, "text.module_rows");
    if (view.first_child != NULL && view.next != NULL && view.rows != NULL) {
        link_children(&view);
        uint32_t top = view.first_top;
        status = add_siblings(&view, &top, 1, -1);
    }
    if (status == ME_OK) {
        status = print_rows(&view, print, text);
    }
    for (size_t i = 0; i < view.n_rows; i++) {
        me_free(view.rows[i].label);
    }
    me_free(view.rows);
    me_free(view.next);
    me_free(view.first_child);
    return status;
}

me_status me_text_modules(const me_report *report, me_str *text)
{
    if (me_report_worst(report)->n_modules == 0) {
        return ME_OK;
    }
    me_str_printf(text,
                  "\nModules of rank %d in iteration %d: the rank's peak "
                  "while each ran, parameters and the activation of one "
                  "micro-batch of each\n",
                  (int)report->verdict.worst_rank, ME_STEADY_ITERATION);
    return me_modules_table(report, me_table_print, text);
}
