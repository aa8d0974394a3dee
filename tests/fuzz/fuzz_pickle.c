/* links: base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Pickles: no crash, one line of error; of one that is read comes JSON that the
 * reader of JSON takes, and never much more of it than there were bytes. */
#include "base/json_reader.h"
#include "base/pickle.h"
#include "support/fuzz.h"

static const char *const keys[] = {"segments", "device_traces", "action",
                                   "addr",     "size",          "frames"};

/** A class of each file's first letter, some of which are left out. */
static uint8_t class_of(const char *key, const char *text)
{
    return strcmp(key, "filename") == 0
               ? (uint8_t)((unsigned char)text[0] % ME_PICKLE_CLASSES)
               : ME_PICKLE_NO_CLASS;
}

static const me_pickle_wanted wanted = {.keys = keys,
                                        .n_keys = sizeof keys / sizeof keys[0],
                                        .class_of = class_of,
                                        .cut_items = 1};

static void check_json(FILE *json, size_t size)
{
    me_diag diag = {0};
    me_json_reader *reader = me_json_reader_create("", 0, json, "fuzz");
    me_json_token token = {.kind = ME_JSON_NULL};
    me_status status = reader == NULL ? ME_ERR_NOMEM : ME_OK;
    while (status == ME_OK && token.kind != ME_JSON_END) {
        status = me_json_next(reader, &diag, &token);
    }
    if (status == ME_ERR_SYNTAX && strstr(diag.text, "too deep") == NULL) {
        abort();
    }
    if (fseek(json, 0, SEEK_END) != 0 ||
        (size_t)ftell(json) > 32 * size + (1U << 20U) + 2) {
        abort();
    }
    me_json_reader_destroy(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    FILE *pickle = size == 0 ? NULL : fmemopen(text, size, "rb");
    FILE *json = NULL;
    me_diag diag = {0};
    if (pickle != NULL) {
        if (me_pickle_to_json(pickle, "fuzz", &wanted, &diag, &json) == ME_OK) {
            check_json(json, size);
            (void)fclose(json);
        } else {
            fuzz_check_line(diag.text);
        }
        (void)fclose(pickle);
    }
    free(text);
    return 0;
}
