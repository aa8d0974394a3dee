/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/assert.h"
#include "report/format.h"
#include "report/table.h"

#include <string.h>

/** What a line is made of. */
static const me_schema *const sources[] = {
    &me_place_schema,      &me_result_schema, &me_peak_schema,
    &me_stage_time_schema, &me_step_schema,   &me_time_schema,
};

enum {
    COLUMNS_MAX = 64,
    SOURCES = sizeof sources / sizeof *sources
};

typedef struct csv_column {
    const me_field *field;
    int source;
    unsigned category; /**< of a BY_CATEGORY */
} csv_column;

typedef struct csv_layout {
    csv_column columns[COLUMNS_MAX];
    size_t n_columns;
} csv_layout;

/** Each field is where its number says; one by category takes as many columns
 *  as there are categories. */
static void place_field(csv_layout *layout, const me_field *field, int source)
{
    const unsigned width =
        field->kind == ME_FIELD_BY_CATEGORY ? ME_CATEGORY_COUNT : 1;
    for (unsigned i = 0; field->csv > 0 && i < width; i++) {
        const size_t at = (size_t)field->csv - 1 + i;
        ME_ASSERT(at < COLUMNS_MAX && layout->columns[at].field == NULL);
        layout->columns[at] = (csv_column){field, source, i};
        layout->n_columns =
            at + 1 > layout->n_columns ? at + 1 : layout->n_columns;
    }
}

static void lay_out(csv_layout *layout)
{
    for (int source = 0; source < SOURCES; source++) {
        for (size_t i = 0; i < sources[source]->n_fields; i++) {
            place_field(layout, &sources[source]->fields[i], source);
        }
    }
    for (size_t i = 0; i < layout->n_columns; i++) {
        ME_ASSERT(layout->columns[i].field != NULL); // no number is skipped
    }
}

static void append_title(const csv_column *column, me_str *line)
{
    const char *key = column->field->key;
    if (column->field->kind == ME_FIELD_BY_CATEGORY) {
        me_str_printf(line, "peak_%s_bytes",
                      me_category_name((me_category)column->category));
    } else if (column->field->kind == ME_FIELD_NS) {
        me_str_append_n(line, key, strlen(key) - strlen("_ns"));
        me_str_append(line, "_seconds");
    } else {
        me_str_append(line, key);
    }
}

/** Empty where there is nothing, or nobody knows. */
static void append_cell(const csv_column *column, const void *record,
                        me_str *cell)
{
    const me_field *field = column->field;
    me_field one = *field;
    if (field->kind == ME_FIELD_BY_CATEGORY) {
        one.kind = ME_FIELD_BYTES;
        one.offset += column->category * sizeof(uint64_t);
    }
    me_field_append(&one, record, true, cell);
}

/** A line of records; NULL: that of the titles. */
static me_status print_row(const csv_layout *layout,
                           const void *const records[SOURCES], FILE *stream)
{
    me_str cell = {0};
    me_str line = {0};
    for (size_t i = 0; i < layout->n_columns; i++) {
        const csv_column *column = &layout->columns[i];
        cell.length = 0;
        me_str_append(&cell, "");
        if (records == NULL) {
            append_title(column, &cell);
        } else {
            append_cell(column, records[column->source], &cell);
        }
        me_str_append(&line, i == 0 ? "" : ",");
        me_str_append_csv(&line, me_str_text(&cell), cell.length);
    }
    me_str_append(&line, "\n");
    (void)fputs(me_str_text(&line), stream);
    const me_status status = me_str_status(&cell) == ME_OK
                                 ? me_str_status(&line)
                                 : me_str_status(&cell);
    me_str_fini(&cell);
    me_str_fini(&line);
    return status;
}

me_status me_csv_print(const me_report *report, FILE *stream, me_diag *diag)
{
    const me_step_time *step = report->time.step;
    csv_layout layout = {.n_columns = 0};
    lay_out(&layout);
    me_status status = print_row(&layout, NULL, stream);
    for (int32_t i = 0; status == ME_OK && i < report->world_size; i++) {
        const me_report_rank *rank = &report->ranks[i];
        const me_rank_result *result = report->results[rank->result];
        // in the order of the sources
        const void *const records[SOURCES] = {
            &rank->place,
            result,
            me_rank_result_peak(result),
            step == NULL ? NULL : &step->stages[rank->place.pp],
            step,
            &report->time,
        };
        status = print_row(&layout, records, stream);
    }
    return status == ME_OK
               ? ME_OK
               : me_fail(diag, status, "no memory for the CSV report");
}
