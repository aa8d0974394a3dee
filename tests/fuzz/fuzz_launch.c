/* links: config base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Launch commands, one word a line: no crash, and each flag in one list. */
#include "config/launch.h"
#include "config/options.h"

#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 4096,
    WORDS_MAX = 512
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_once(const me_config *config)
{
    const me_flag_list *const lists[] = {&config->modelled, &config->no_effect,
                                         &config->not_modelled};
    for (size_t i = 0; i < 3; i++) {
        for (int32_t k = 0; k < lists[i]->count; k++) {
            const char *flag = lists[i]->flags[k].flag;
            int n_found = 0;
            for (size_t j = 0; j < 3; j++) {
                for (int32_t l = 0; l < lists[j]->count; l++) {
                    n_found += strcmp(lists[j]->flags[l].flag, flag) == 0;
                }
            }
            if (n_found != 1) {
                abort();
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TEXT_MAX];
    const char *words[WORDS_MAX];
    if (size >= sizeof text) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    int count = 0;
    for (char *c = text; *c != '\0' && count < WORDS_MAX;) {
        words[count++] = c;
        c += strcspn(c, "\n");
        if (*c == '\n') {
            *c++ = '\0';
        }
    }
    me_diag diag = {0};
    me_config *config = me_config_create();
    if (config == NULL) {
        return 0;
    }
    const me_status status = me_config_read_launch(config, count, words, &diag);
    if (status == ME_OK) {
        check_once(config);
        (void)!me_config_finish(config, 4, &diag);
    } else if (diag.text[0] == '\0' || strchr(diag.text, '\n') != NULL) {
        abort();
    }
    me_config_destroy(config);
    return 0;
}
