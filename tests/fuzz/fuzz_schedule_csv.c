/* links: parallel base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Schedule files: no crash, one line of error; and an order that was read,
 * written out, reads back to the same text, and ends or is refused. */
#include "base/str.h"
#include "parallel/schedule_csv.h"
#include "parallel/schedule_lower.h"
#include "parallel/schedule_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written_out(const me_pipeline_order *order,
                              bool has_transfers)
{
    const me_csv_options options = {.has_transfers = has_transfers,
                                    .dialect = ME_CSV_TODAY};
    me_str text = {0};
    me_str again = {0};
    me_schedule_csv_write(order, &text);
    me_pipeline_order *back = NULL;
    if (me_schedule_csv_read(me_str_text(&text), text.length, &options, NULL,
                             &back) != ME_OK) {
        abort();
    }
    me_schedule_csv_write(back, &again);
    if (strcmp(me_str_text(&text), me_str_text(&again)) != 0 ||
        back->placement != order->placement) {
        abort();
    }
    me_pipeline_order_destroy(back);
    me_str_fini(&text);
    me_str_fini(&again);
}

static void check_course(const me_pipeline_order *order)
{
    me_ticks ticks = {
        .forward = 1, .input_gradient = 1, .weight_gradient = 1, .transfer = 1};
    const me_timeline_model model = me_ticks_model(&ticks);
    me_timeline *timeline = NULL;
    me_pipeline_order *lowered = NULL;
    const bool ends =
        me_timeline_create(order, &model, NULL, &timeline) == ME_OK;
    if (ends) {
        me_str text = {0};
        me_schedule_text_steps(order, &text);
        (void)me_schedule_text_time(order, timeline, 1, &text);
        me_str_fini(&text);
    }
    const bool is_lowered =
        me_pipeline_order_lower(order, NULL, &lowered) == ME_OK;
    if (is_lowered != ends) {
        abort();
    }
    me_pipeline_order_destroy(lowered);
    me_timeline_destroy(timeline);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int i = 0; i < 2; i++) {
        const me_csv_options options = {.has_transfers = i == 1};
        me_diag diag = {0};
        me_pipeline_order *order = NULL;
        if (me_schedule_csv_read((const char *)data, size, &options, &diag,
                                 &order) == ME_OK) {
            check_written_out(order, i == 1);
            if (i == 0) {
                check_course(order);
            }
        } else if (diag.text[0] == '\0' || strchr(diag.text, '\n') != NULL) {
            abort();
        }
        me_pipeline_order_destroy(order);
    }
    return 0;
}
