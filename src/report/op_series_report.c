/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/op_series_report.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double BYTES_OF_MB = 1048576.0;

/** As Python prints a float: the fewest digits that give it back. */
static void append_float(me_str *text, double value)
{
    char digits[40];
    for (int precision = 1; precision <= 17; precision++) {
        (void)snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) {
            break;
        }
    }
    if (strchr(digits, 'e') != NULL && value > -1e16 && value < 1e16 &&
        (value >= 1e-4 || value <= -1e-4)) {
        (void)snprintf(digits, sizeof digits, "%.0f", value);
    }
    const bool is_whole = strpbrk(digits, ".e") == NULL;
    me_str_printf(text, "%s%s", digits, is_whole ? ".0" : "");
}

static int compare_growths(const void *a, const void *b)
{
    const me_op_growth *x = a;
    const me_op_growth *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return (x->at > y->at) - (x->at < y->at);
}

me_status me_op_series_growths(const me_op_series *s,
                               me_op_growth **growths_out, uint32_t *count_out)
{
    const uint32_t count = s->n_rows == 0 ? 0 : s->n_rows - 1;
    me_op_growth *growths =
        me_alloc((size_t)count + 1, sizeof *growths, "op_series");
    if (growths == NULL) {
        return ME_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        growths[i] = (me_op_growth){
            .name = s->rows[i + 1].name,
            .bytes = (int64_t)s->rows[i + 1].memory.allocated -
                     (int64_t)s->rows[i].memory.allocated,
            .at = i + 1,
        };
    }
    qsort(growths, count, sizeof *growths, compare_growths);
    *growths_out = growths;
    *count_out = count;
    return ME_OK;
}

me_status me_op_series_summary(me_str *text, const me_op_series *s,
                               uint32_t top)
{
    static const char rule[] =
        "------------------------------------------------\n";
    uint32_t count = 0;
    me_op_growth *growths = NULL;
    const me_status status = me_op_series_growths(s, &growths, &count);
    if (status != ME_OK) {
        return status;
    }
    me_str_append(text, rule);
    me_str_printf(text, "The number of alloc retries are: %" PRIu64 "\n",
                  s->num_alloc_retries);
    me_str_printf(text, "Top %u ops that generates memory are:\n", top);
    for (uint32_t i = 0; i < count && i < top; i++) {
        me_str_printf(text, "%s: ", growths[i].name);
        append_float(text, (double)growths[i].bytes / BYTES_OF_MB);
        me_str_append(text, "MB\n");
    }
    me_str_append(text, rule);
    me_free(growths);
    return me_str_status(text);
}
