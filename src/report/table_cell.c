/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/assert.h"
#include "report/quantity.h"
#include "report/table.h"
#include "track/result.h"

#include <inttypes.h>

/** Add the fields with a title, of records within as well. */
static size_t add_fields(const me_schema *schema, const me_field *within,
                         bool is_last, me_table_column *columns, size_t n)
{
    for (size_t i = 0; i < schema->n_fields; i++) {
        const me_field *field = &schema->fields[i];
        if (field->title == NULL) {
            continue;
        }
        if (field->kind == ME_FIELD_RECORD) {
            n = add_fields(field->of, field, is_last, columns, n);
        } else if (field->is_last == is_last) {
            ME_ASSERT(n < ME_TABLE_COLUMNS_MAX);
            columns[n++] = (me_table_column){
                .shown = {.title = field->title,
                          .unit = field->unit,
                          .is_number = field->kind != ME_FIELD_NAME &&
                                       field->kind != ME_FIELD_TEXT},
                .field = field,
                .within = within};
        }
    }
    return n;
}

size_t me_table_lay_out(const me_table *table,
                        me_table_column columns[ME_TABLE_COLUMNS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i <= table->n_columns; i++) {
        if (i == table->n_columns - table->n_after && table->schema != NULL) {
            n = add_fields(table->schema, NULL, false, columns, n);
            n = add_fields(table->schema, NULL, true, columns, n);
        }
        if (i < table->n_columns) {
            ME_ASSERT(n < ME_TABLE_COLUMNS_MAX);
            columns[n++] = (me_table_column){.shown = table->columns[i]};
        }
    }
    return n;
}

/** "-" for what is unknown or "" in text, nothing where it is exact. */
static void append_name(const char *name, bool is_exact, me_str *text)
{
    const char *none = is_exact ? "" : "-";
    me_str_append(text, name == NULL || *name == '\0' ? none : name);
}

static void append_number(uint64_t number, bool is_gib, bool is_exact,
                          me_str *text)
{
    if (!is_exact) {
        (is_gib ? me_gib_append : me_count_append)(text, number);
    } else if (number != ME_BYTES_UNKNOWN) {
        me_str_printf(text, "%" PRIu64, number);
    }
}

void me_field_append(const me_field *field, const void *record, bool is_exact,
                     me_str *text)
{
    if (record == NULL) {
        append_name(NULL, is_exact, text);
        return;
    }
    const void *at = me_field_at(field, record);
    switch (field->kind) {
    case ME_FIELD_BYTES:
    case ME_FIELD_COUNT:
        append_number(me_field_bytes(field, record),
                      field->kind == ME_FIELD_BYTES, is_exact, text);
        break;
    case ME_FIELD_I32:
        me_str_printf(text, "%" PRId32, *(const int32_t *)at);
        break;
    case ME_FIELD_NS:
        me_str_printf(text, is_exact ? "%.6f" : "%.2f",
                      (double)*(const int64_t *)at * (is_exact ? 1e-9 : 1e-6));
        break;
    case ME_FIELD_NAME:
    case ME_FIELD_TEXT:
        append_name(*(const char *const *)at, is_exact, text);
        break;
    default: ME_ASSERT(false); break; // no other kind has a cell yet
    }
}

void me_table_cell(const me_table *table, size_t row,
                   const me_table_column *column, me_str *cell)
{
    const void *record = (const char *)table->rows + row * table->row_bytes;
    if (column->field == NULL) {
        column->shown.get(record, cell);
    } else {
        me_field_append(column->field,
                        column->within == NULL
                            ? record
                            : me_field_at(column->within, record),
                        false, cell);
    }
}
