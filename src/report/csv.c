/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/assert.h"
#include "report/format.h"
#include "report/report_schema.h"
#include "report/units.h"
#include "track/result_schema.h"

#include <inttypes.h>
#include <string.h>

enum {
    COLUMNS_MAX = 64
};

/** What a line is made of. */
enum {
    FROM_PLACE,
    FROM_RESULT,
    FROM_PEAK,
    FROM_STAGE,
    FROM_STEP,
    FROM_TIME,
    SOURCES
};

static const me_schema *const sources[SOURCES] = {
    [FROM_PLACE] = &me_place_schema, [FROM_RESULT] = &me_result_schema,
    [FROM_PEAK] = &me_peak_schema,   [FROM_STAGE] = &me_stage_time_schema,
    [FROM_STEP] = &me_step_schema,   [FROM_TIME] = &me_time_schema,
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
        ME_ASSERT(layout->columns[i].field != NULL); /* no number is skipped */
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

static void append_number(uint64_t number, me_str *cell)
{
    if (number != ME_BYTES_UNKNOWN) { /* else an empty field */
        me_str_printf(cell, "%" PRIu64, number);
    }
}

/** Empty where there is nothing, or nobody knows. */
static void append_cell(const csv_column *column, const void *record,
                        me_str *cell)
{
    const me_field *field = column->field;
    const void *at = me_field_at(field, record);
    switch ((me_field_kind)field->kind) {
    case ME_FIELD_BYTES:
    case ME_FIELD_COUNT:
        append_number(me_field_bytes(field, record), cell);
        break;
    case ME_FIELD_BY_CATEGORY:
        append_number(((const uint64_t *)at)[column->category], cell);
        break;
    case ME_FIELD_I32:
        me_str_printf(cell, "%" PRId32, *(const int32_t *)at);
        break;
    case ME_FIELD_NAME:
    case ME_FIELD_TEXT:
        me_str_append(cell, *(const char *const *)at == NULL
                                ? ""
                                : *(const char *const *)at);
        break;
    case ME_FIELD_NS:
        me_str_printf(cell, "%.6f", (double)*(const int64_t *)at * 1e-9);
        break;
    case ME_FIELD_NONE:
    case ME_FIELD_U32:
    case ME_FIELD_PARENT:
    case ME_FIELD_INDEX:
    case ME_FIELD_BOOL:
    case ME_FIELD_CATEGORY:
    case ME_FIELD_RECORD:
    case ME_FIELD_ITEMS:
    case ME_FIELD_ROWS:
    case ME_FIELD_KINDS: ME_ASSERT(false); break; /* have no column yet */
    }
}

static me_status print_row(const csv_layout *layout,
                           const void *const records[SOURCES], FILE *stream)
{
    me_str cell = {0};
    me_str line = {0};
    for (size_t i = 0; i < layout->n_columns; i++) {
        const csv_column *column = &layout->columns[i];
        cell.length = 0;
        me_str_append(&cell, "");
        if (records[column->source] != NULL) {
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

static me_status print_titles(const csv_layout *layout, FILE *stream)
{
    me_str line = {0};
    for (size_t i = 0; i < layout->n_columns; i++) {
        me_str_append(&line, i == 0 ? "" : ",");
        append_title(&layout->columns[i], &line);
    }
    me_str_append(&line, "\n");
    (void)fputs(me_str_text(&line), stream);
    const me_status status = me_str_status(&line);
    me_str_fini(&line);
    return status;
}

me_status me_csv_print(const me_report *report, FILE *stream, me_diag *diag)
{
    const me_step_time *step = report->time.step;
    csv_layout layout = {.n_columns = 0};
    lay_out(&layout);
    me_status status = print_titles(&layout, stream);
    for (int32_t i = 0; status == ME_OK && i < report->world_size; i++) {
        const me_report_rank *rank = &report->ranks[i];
        const me_rank_result *result = report->results[rank->result];
        const void *const records[SOURCES] = {
            [FROM_PLACE] = &rank->place,
            [FROM_RESULT] = result,
            [FROM_PEAK] = me_rank_result_peak(result),
            [FROM_STAGE] = step == NULL ? NULL : &step->stages[rank->place.pp],
            [FROM_STEP] = step,
            [FROM_TIME] = &report->time,
        };
        status = print_row(&layout, records, stream);
    }
    return status == ME_OK
               ? ME_OK
               : me_fail(diag, status, "no memory for the CSV report");
}
