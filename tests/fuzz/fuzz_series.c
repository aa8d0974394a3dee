/* links: report track base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Series of operations: no crash, one line of error, and one that was read is
 * written so that it reads back equal. */
#include "report/op_series_report.h"
#include "support/fuzz.h"

static void check_saved(const me_op_series *s)
{
    me_str text = {0};
    me_op_series back = {0};
    if (me_op_series_save(&text, s) != ME_OK) {
        abort();
    }
    const char *path =
        fuzz_file(".back.json", (const uint8_t *)text.text, text.length);
    if (me_op_series_load(path, NULL, &back) != ME_OK ||
        back.n_rows != s->n_rows) {
        abort();
    }
    for (uint32_t i = 0; i < s->n_rows; i++) {
        if (strcmp(back.rows[i].name, s->rows[i].name) != 0 ||
            back.rows[i].memory.reserved != s->rows[i].memory.reserved) {
            abort();
        }
    }
    (void)unlink(path);
    me_op_series_fini(&back);
    me_str_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(".json", data, size);
    me_diag diag = {.status = ME_OK};
    me_op_series series = {0};
    const me_status status = me_op_series_load(path, &diag, &series);
    (void)unlink(path);
    if (status == ME_OK) {
        me_str text = {0};
        if (me_op_series_summary(&text, &series, 20) != ME_OK) {
            abort();
        }
        me_str_fini(&text);
        check_saved(&series);
    } else {
        fuzz_check_line(diag.text);
    }
    me_op_series_fini(&series);
    return 0;
}
