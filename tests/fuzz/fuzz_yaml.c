/* links: config base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs in YAML: no crash, one line of error, and lists that can be printed. */
#include "base/clean.h"
#include "config/megatron/megatron_yaml.h"
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    me_diag diag = {0};
    me_config *config = me_config_create();
    if (config == NULL) {
        return 0;
    }
    if (me_megatron_read_yaml(config, "fuzz.yaml", (const char *)data, size,
                              &diag) != ME_OK &&
        (diag.text[0] == '\0' || strchr(diag.text, '\n') != NULL)) {
        abort();
    }
    for (int32_t i = 0; i < config->not_modelled.count; i++) {
        if (!me_text_is_clean(config->not_modelled.flags[i].flag)) {
            abort();
        }
    }
    me_config_destroy(config);
    return 0;
}
