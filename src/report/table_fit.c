/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables that are printed on a terminal narrower than they are. */
#include "base/text_wrap.h"
#include "report/table.h"

#include <string.h>

enum {
    BETWEEN = 2,     /* columns, and before the first one */
    TREE_STEP = 2,   /* a row inside of another is further to the right by it */
    LEAST_CELL = 24, /* letters that a cell keeps */
    WRAPPED = 24,    /* a wider last column goes on in further lines */
    BELOW = 6        /* columns in front of what stands below its row */
};

static void make_ascii(me_str *cell)
{
    for (size_t i = 0; i < cell->length; i++) {
        if (cell->text[i] < ' ' || cell->text[i] > '~') {
            cell->text[i] = '?';
        }
    }
}

static size_t depth_of(const me_table *table, size_t row)
{
    size_t depth = 0;
    int64_t parent =
        table->parent == NULL ? -1 : table->parent(table->rows, row);
    for (; parent >= 0; depth++) {
        parent = table->parent(table->rows, (size_t)parent);
    }
    return depth;
}

static me_status measure(const me_table *table, me_table_column *column)
{
    me_status status = ME_OK;
    const me_column *shown = &column->shown;
    const size_t unit = shown->unit == NULL ? 0 : 1 + strlen(shown->unit);
    column->width = strlen(shown->title) + unit;
    for (size_t i = 0; i < table->n_rows && status == ME_OK; i++) {
        me_str cell = {0};
        me_table_cell(table, i, column, &cell);
        const size_t indent =
            shown->is_tree ? TREE_STEP * depth_of(table, i) : 0;
        const size_t width = indent + cell.length;
        column->width = width > column->width ? width : column->width;
        status = me_str_status(&cell);
        me_str_fini(&cell);
    }
    // an empty column takes a place, as libsmartcols has it
    column->width = column->width == 0 ? 1 : column->width;
    return status;
}

static bool may_shrink(const me_table_shape *shape, size_t i)
{
    const me_column *shown = &shape->columns[i].shown;
    return !shown->is_number && !shown->is_tree;
}

static size_t width_of(const me_table_shape *shape)
{
    size_t width = 0;
    for (size_t i = 0; i < shape->n_columns; i++) {
        width += BETWEEN + shape->columns[i].width;
    }
    return width;
}

/** Whether cells of the last column may go on in further lines. */
static bool last_may_wrap(const me_table_shape *shape)
{
    const size_t last = shape->n_columns - 1;
    return may_shrink(shape, last) && shape->columns[last].width > WRAPPED;
}

/** Whether a column has names of words to paste. */
static bool is_name(const me_table_shape *shape, size_t i)
{
    return shape->ends_in_shell && i > 0 && i + 2 == shape->n_columns &&
           may_shrink(shape, i);
}

/** The width that a column can do with in a line. */
static size_t least_of(const me_table_shape *shape, size_t i)
{
    const size_t width = shape->columns[i].width;
    if (i + 1 == shape->n_columns) {
        return last_may_wrap(shape) ? 0 : width;
    }
    if (is_name(shape, i)) {
        return shape->name_begins > 0 ? 0 : width;
    }
    return may_shrink(shape, i) && width > LEAST_CELL ? LEAST_CELL : width;
}

static size_t least_width(const me_table_shape *shape)
{
    size_t width = 0;
    for (size_t i = 0; i < shape->n_columns; i++) {
        width += BETWEEN + least_of(shape, i);
    }
    return width;
}

static void leave_out(me_table_shape *shape, size_t column)
{
    const char *title = shape->columns[column].shown.title;
    const bool is_first = shape->left_out.length == 0;
    if (*title != '\0') { // a column without one only draws another's numbers
        me_str_printf(&shape->left_out, "%s%s", is_first ? "" : ", ", title);
    }
    shape->n_columns--;
    memmove(&shape->columns[column], &shape->columns[column + 1],
            (shape->n_columns - column) * sizeof *shape->columns);
}

bool me_table_can_spare(const me_table *table, const char *title)
{
    const char *titles = table->narrow == NULL ? "" : table->narrow;
    const size_t length = strlen(title);
    while (*titles != '\0') {
        const size_t n = strcspn(titles, ";");
        if (n == length && memcmp(titles, title, n) == 0) {
            return true;
        }
        titles += n + 1;
    }
    return false;
}

/** Names of words to paste go below their rows where they would have no room even
 *  without all that the table can do without. */
static void place_names(const me_table *table, size_t width,
                        me_table_shape *shape)
{
    size_t least = least_width(shape);
    for (size_t i = 0; i < shape->n_columns; i++) {
        if (me_table_can_spare(table, shape->columns[i].shown.title)) {
            least -= BETWEEN + least_of(shape, i);
        }
    }
    if (least > width && is_name(shape, shape->n_columns - 2)) {
        shape->name_begins = 1; // where is known when all columns are
    }
}

/** Columns that the table can do without, while it is too wide. */
static void leave_columns_out(const me_table *table, size_t width,
                              me_table_shape *shape)
{
    const char *title = table->narrow == NULL ? "" : table->narrow;
    while (*title != '\0' && least_width(shape) > width) {
        const size_t length = strcspn(title, ";");
        for (size_t i = 0; i < shape->n_columns; i++) {
            const char *its = shape->columns[i].shown.title;
            if (strlen(its) == length && memcmp(its, title, length) == 0) {
                leave_out(shape, i);
                break;
            }
        }
        title += length + 1;
    }
}

/** The widest column of text that may lose a letter; none: the last. */
static size_t find_widest(const me_table_shape *shape)
{
    const size_t last = shape->n_columns - 1;
    size_t found = last;
    for (size_t i = 0; i < last; i++) {
        const size_t width = shape->columns[i].width;
        if (least_of(shape, i) < width &&
            (found == last || width > shape->columns[found].width)) {
            found = i;
        }
    }
    return found;
}

/** What is in the last column goes on in further lines before others lose
 *  letters: below itself where it has half of the width, else below its row. */
static void shrink(size_t width, me_table_shape *shape)
{
    const size_t last = shape->n_columns - 1;
    const bool wraps = last_may_wrap(shape) ||
                       (may_shrink(shape, last) && least_width(shape) > width);
    size_t used = width_of(shape);
    if (wraps) {
        used -= shape->columns[last].width;
        shape->last_begins = used;
        shape->further = used <= width / 2 ? used : BELOW;
    }
    if (wraps && shape->name_begins > 0) {
        shape->further = BELOW;
        shape->name_begins = used - BETWEEN - shape->columns[last - 1].width;
        return;
    }
    while (used > width && find_widest(shape) < last) {
        shape->columns[find_widest(shape)].width--;
        shape->last_begins -= wraps ? 1 : 0;
        used--;
    }
}

me_status me_table_fit(const me_table *table, size_t width,
                       me_table_shape *shape_out)
{
    me_table_shape *shape = shape_out;
    *shape = (me_table_shape){.ends_in_shell = table->ends_in_shell};
    shape->n_columns = me_table_lay_out(table, shape->columns);
    if (width == 0) {
        return ME_OK;
    }
    me_status status = ME_OK;
    for (size_t i = 0; i < shape->n_columns && status == ME_OK; i++) {
        status = measure(table, &shape->columns[i]);
    }
    if (status != ME_OK || width_of(shape) <= width) {
        return status;
    }
    place_names(table, width, shape);
    leave_columns_out(table, width, shape);
    if (width_of(shape) > width && shape->n_columns > 0) {
        shrink(width, shape);
    }
    return me_str_status(&shape->left_out);
}

/** @p cell with dots in place of its middle. */
static void shorten(size_t width, me_str *cell)
{
    const size_t kept = width - 2;
    const size_t tail = kept - kept / 3;
    memmove(cell->text + kept / 3 + 2, cell->text + cell->length - tail, tail);
    memcpy(cell->text + kept / 3, "..", 2);
    cell->length = width;
    cell->text[width] = '\0';
}

void me_table_text_cell(const me_table *table, size_t row,
                        const me_table_shape *shape, size_t column,
                        me_str *cell)
{
    const me_table_column *its = &shape->columns[column];
    me_table_cell(table, row, its, cell);
    make_ascii(cell);
    const bool is_whole = its->width == 0 || cell->length <= its->width;
    if (me_str_status(cell) == ME_OK && may_shrink(shape, column) &&
        !is_whole) {
        shorten(its->width, cell);
    }
}

/** The length of a line without the blanks at its end. */
static size_t trimmed(const char *line, size_t length)
{
    while (length > 0 && line[length - 1] == ' ') {
        length--;
    }
    return length;
}

/** A part of a line below it. */
static void append_below(const char *part, size_t length,
                         void (*wrap)(const char *, size_t, size_t, me_str *),
                         me_str *text)
{
    me_str below = {.columns = text->columns};
    me_str_printf(&below, "%*s%.*s", BELOW, "", (int)trimmed(part, length),
                  part);
    wrap(me_str_text(&below), below.length, BELOW, text);
    me_str_fini_piece(&below, text);
}

void me_table_text_line(const char *line, size_t length,
                        const me_table_shape *shape, me_str *text)
{
    void (*const wrap)(const char *, size_t, size_t, me_str *) =
        shape->ends_in_shell ? me_text_wrap_shell : me_text_wrap_line;
    length = trimmed(line, length);
    if (shape->further == BELOW && length > text->columns) {
        const size_t last = shape->last_begins;
        const size_t name = shape->name_begins;
        me_str_append_n(text, line, trimmed(line, name > 0 ? name : last));
        me_str_append(text, "\n");
        if (name > 0) {
            append_below(line + name, last - name, me_text_wrap_line, text);
        }
        append_below(line + last, length - last, wrap, text);
    } else if (shape->further > 0) {
        wrap(line, length, shape->further, text);
    } else {
        me_str_append_n(text, line, length);
        me_str_append(text, "\n");
    }
}

void me_table_text_end(const me_table_shape *shape, me_str *text)
{
    if (shape->left_out.length > 0) {
        me_str_printf(text, "  (left out, for lack of room: %s)\n",
                      me_str_text(&shape->left_out));
    }
}
