/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/schedule.h"

#include "config/source.h"
#include "parallel/schedule_csv.h"

me_status me_schedule_named(const char *where, const char *name, me_diag *diag,
                            const me_schedule **schedule_out)
{
    const me_schedule *schedule = me_schedule_find(name);
    if (schedule != NULL) {
        *schedule_out = schedule;
        return ME_OK;
    }
    me_str names = {0};
    for (uint32_t i = 0; (schedule = me_schedule_at(i)) != NULL; i++) {
        me_str_printf(&names, "%s%s", i == 0 ? "" : ", ", schedule->name);
    }
    const me_status status =
        me_fail(diag, ME_ERR_CONFIG, "%s: no schedule is called \"%s\": %s",
                where, name, me_str_text(&names));
    me_str_fini(&names);
    return status;
}

me_status me_schedule_file_read(const char *path, bool has_transfers,
                                me_diag *diag, me_pipeline_order **order_out)
{
    me_str bytes = {0};
    me_status status = me_source_read_file(path, diag, &bytes);
    if (status == ME_OK) {
        status = me_schedule_csv_read(
            me_str_text(&bytes), bytes.length,
            &(me_csv_options){.where = path, .has_transfers = has_transfers},
            diag, order_out);
    }
    me_str_fini(&bytes);
    return status;
}
