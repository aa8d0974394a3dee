/* links: config base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Launch commands, one word a line: no crash, and each flag in one list. */
#include "config/launch_command.h"
#include "config/options.h"

#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 4096,
    WORDS_MAX = 512
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count_in(const me_flag_list *list, const char *flag)
{
    int n_found = 0;
    for (int32_t i = 0; i < list->count; i++) {
        n_found += strcmp(list->flags[i].flag, flag) == 0;
    }
    return n_found;
}

static void check_once(const me_config *config, const me_flag_list *list)
{
    for (int32_t i = 0; i < list->count; i++) {
        const char *flag = list->flags[i].flag;
        if (count_in(&config->modelled, flag) +
                count_in(&config->no_effect, flag) +
                count_in(&config->not_modelled, flag) !=
            1) {
            abort();
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
        check_once(config, &config->modelled);
        check_once(config, &config->no_effect);
        check_once(config, &config->not_modelled);
        (void)!me_config_finish(config, 4, &diag);
    } else if (diag.text[0] == '\0' || strchr(diag.text, '\n') != NULL) {
        abort();
    }
    me_config_destroy(config);
    return 0;
}
