/* links: run config base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Variants and schedules of a comparison: no crash, one line of error, and
 * names that can be printed. An odd first byte is a schedule. */
#include "base/clean.h"
#include "config/file.h"
#include "run/variant.h"
#include "support/fuzz.h"

static void run_variant(const char *text)
{
    me_diag diag = {.status = ME_OK};
    me_variant variant = {.n_sets = 0};
    if (me_variant_parse(text, &diag, &variant) == ME_OK) {
        me_config *config = me_config_create();
        if (!me_text_is_clean(variant.name) ||
            !me_text_is_clean(variant.assignments)) {
            abort();
        }
        if (config != NULL &&
            me_variant_apply(&variant, config, &diag) != ME_OK) {
            fuzz_check_line(diag.text);
        }
        me_config_destroy(config);
    } else {
        fuzz_check_line(diag.text);
    }
    me_variant_fini(&variant);
}

static void run_schedule(const char *text)
{
    me_diag diag = {.status = ME_OK};
    me_schedule_choice choice = {.chunks = 0};
    if (me_schedule_choice_parse(text, &diag, &choice) == ME_OK) {
        if (!me_text_is_clean(choice.name)) {
            abort();
        }
    } else {
        fuzz_check_line(diag.text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    char *text = fuzz_text(data + 1, size - 1);
    if (data[0] % 2 == 0) {
        run_variant(text);
    } else {
        run_schedule(text);
    }
    free(text);
    return 0;
}
