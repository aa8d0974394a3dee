/* links: config base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* torchtitan's TOML: no crash, one line of error, and lists that can be
 * printed. */
#include "base/str.h"
#include "config/torchtitan/torchtitan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_printable(const me_flag_list *list)
{
    for (int32_t i = 0; i < list->count; i++) {
        for (const char *c = list->flags[i].flag; *c != '\0'; c++) {
            if (*c < ' ' || *c > '~') {
                abort();
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    me_diag diag = {0};
    me_str text = {0};
    me_config *config = me_config_create();
    if (config == NULL) {
        return 0;
    }
    me_str_append_n(&text, (const char *)data, size);
    if (me_torchtitan_read(config, "fuzz.toml", me_str_text(&text), text.length,
                           &diag) != ME_OK &&
        (diag.text[0] == '\0' || strchr(diag.text, '\n') != NULL)) {
        abort();
    }
    check_printable(&config->modelled);
    check_printable(&config->no_effect);
    check_printable(&config->not_modelled);
    me_config_destroy(config);
    me_str_fini(&text);
    return 0;
}
