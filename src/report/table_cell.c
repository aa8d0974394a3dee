/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/assert.h"
#include "report/table.h"
#include "report/units.h"

#include <inttypes.h>

/** A field that is a column. */
typedef struct found_field {
    const me_field *field;
    const void *record; /**< it is of; NULL: there is none */
} found_field;

/** Take one off @p skip for each column of the schema, until it is 0 and the
 *  next one is found. */
static bool find_column(const me_schema *schema, const void *record,
                        bool is_last, size_t *skip, found_field *found)
{
    for (size_t i = 0; i < schema->n_fields; i++) {
        const me_field *field = &schema->fields[i];
        if (field->title == NULL) {
            continue;
        }
        if (field->kind == ME_FIELD_RECORD) {
            const void *within =
                record == NULL ? NULL : me_field_at(field, record);
            if (find_column(field->of, within, is_last, skip, found)) {
                return true;
            }
        } else if (field->is_last == is_last && (*skip)-- == 0) {
            *found = (found_field){field, record};
            return true;
        }
    }
    return false;
}

/** Column @p i of the schema's; its field is NULL if there are not as many. */
static found_field find_field(const me_table *table, size_t i,
                              const void *record)
{
    found_field found = {.field = NULL};
    if (table->schema != NULL &&
        !find_column(table->schema, record, false, &i, &found)) {
        (void)find_column(table->schema, record, true, &i, &found);
    }
    return found;
}

static size_t count_before(const me_table *table)
{
    return table->n_columns - table->n_after;
}

static size_t count_fields(const me_table *table)
{
    size_t count = 0;
    while (find_field(table, count, NULL).field != NULL) {
        count++;
    }
    return count;
}

size_t me_table_n_columns(const me_table *table)
{
    return table->n_columns + count_fields(table);
}

me_column me_table_column(const me_table *table, size_t i)
{
    const size_t before = count_before(table);
    if (i < before) {
        return table->columns[i];
    }
    const me_field *field = find_field(table, i - before, NULL).field;
    if (field == NULL) {
        return table->columns[i - count_fields(table)];
    }
    return (me_column){.title = field->title,
                       .unit = field->unit,
                       .is_number = field->kind != ME_FIELD_NAME &&
                                    field->kind != ME_FIELD_TEXT};
}

static void append_text(const char *text, me_str *cell)
{
    me_str_append(cell, text == NULL || *text == '\0' ? "-" : text);
}

/** "-" where there is nothing, or nobody knows. */
static void append_field(const found_field *found, me_str *cell)
{
    const me_field *field = found->field;
    const void *record = found->record;
    if (record == NULL || !me_field_is_there(field, record)) {
        me_str_append(cell, "-");
        return;
    }
    const void *at = me_field_at(field, record);
    switch ((me_field_kind)field->kind) {
    case ME_FIELD_BYTES:
        me_gib_append(cell, me_field_bytes(field, record));
        break;
    case ME_FIELD_COUNT:
        me_count_append(cell, me_field_bytes(field, record));
        break;
    case ME_FIELD_I32:
        me_str_printf(cell, "%" PRId32, *(const int32_t *)at);
        break;
    case ME_FIELD_NS: /* in milliseconds */
        me_str_printf(cell, "%.2f", (double)*(const int64_t *)at * 1e-6);
        break;
    case ME_FIELD_NAME:
    case ME_FIELD_TEXT: append_text(*(const char *const *)at, cell); break;
    case ME_FIELD_NONE:
    case ME_FIELD_U32:
    case ME_FIELD_PARENT:
    case ME_FIELD_INDEX:
    case ME_FIELD_BOOL:
    case ME_FIELD_CATEGORY:
    case ME_FIELD_BY_CATEGORY:
    case ME_FIELD_RECORD:
    case ME_FIELD_ITEMS:
    case ME_FIELD_ROWS:
    case ME_FIELD_KINDS: ME_ASSERT(false); break; /* have no cell yet */
    }
}

void me_table_cell(const me_table *table, size_t row, size_t column,
                   me_str *cell)
{
    const void *record = (const char *)table->rows + row * table->row_bytes;
    const size_t before = count_before(table);
    const found_field found = column < before
                                  ? (found_field){.field = NULL}
                                  : find_field(table, column - before, record);
    if (found.field != NULL) {
        append_field(&found, cell);
    } else {
        me_table_column(table, column).get(record, cell);
    }
}
