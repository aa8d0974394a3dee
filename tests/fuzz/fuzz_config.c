/* links: config base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files: no crash, one line of error, and a job that was read
 * prints as a file that reads back equal. */
#include "config/file.h"
#include "config/options.h"
#include "support/same_job.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_dump(const me_config *config)
{
    me_str text = {0};
    me_config_dump(config, &text);
    me_config *back = me_config_create();
    if (back == NULL ||
        me_config_read_text(back, "dump", me_str_text(&text), text.length,
                            NULL) != ME_OK ||
        !is_same_job(config, back)) {
        abort();
    }
    me_config_destroy(back);
    me_str_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    me_diag diag = {0};
    me_config *config = me_config_create();
    if (config == NULL) {
        return 0;
    }
    const me_status status = me_config_read_text(
        config, "fuzz/job.cfg", (const char *)data, size, &diag);
    if (status == ME_OK) {
        check_dump(config);
        if (me_config_finish(config, 4, &diag) == ME_OK) {
            check_dump(config);
        }
    } else if (diag.text[0] == '\0' || strchr(diag.text, '\n') != NULL) {
        abort();
    }
    me_config_destroy(config);
    return 0;
}
