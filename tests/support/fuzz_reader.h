/**
 * @file
 * Fuzzing of a reader that turns a text into a job: no crash, one line of error,
 * and lists that can be printed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_TESTS_SUPPORT_FUZZ_READER_H
#define MEMEST_TESTS_SUPPORT_FUZZ_READER_H

#include "base/str.h"
#include "config/config.h"
#include "support/fuzz.h"

typedef me_status fuzz_read(me_config *config, const char *where,
                            const char *text, size_t length, me_diag *diag);

static inline void check_printable(const me_flag_list *list)
{
    for (int32_t i = 0; i < list->count; i++) {
        for (const char *c = list->flags[i].flag; *c != '\0'; c++) {
            if (*c < ' ' || *c > '~') {
                abort();
            }
        }
    }
}

static inline void fuzz_reader(fuzz_read *read, const uint8_t *data,
                               size_t size)
{
    me_diag diag = {0};
    me_str text = {0};
    me_config *config = me_config_create();
    if (config == NULL) {
        return;
    }
    me_str_append_n(&text, (const char *)data, size);
    if (read(config, "fuzz", me_str_text(&text), text.length, &diag) != ME_OK) {
        fuzz_check_line(diag.text);
    }
    check_printable(&config->modelled);
    check_printable(&config->no_effect);
    check_printable(&config->not_modelled);
    me_config_destroy(config);
    me_str_fini(&text);
}

#endif /* MEMEST_TESTS_SUPPORT_FUZZ_READER_H */
