/* SPDX-License-Identifier: BSD-3-Clause */
/* links: script base */
#include "script/record.h"
#include "support/fuzz.h"

static me_status tell(void *self, const char *words, size_t length,
                      me_diag *diag)
{
    size_t *n_records = self;
    (void)diag;
    if (length == 0 || words[length - 1] != '\0') {
        abort();
    }
    (*n_records)++;
    return ME_OK;
}

/** Whatever a script writes to the pipe of records, in whatever pieces: records
 *  end with a NUL, and the same bytes give the same records. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t told[2] = {0, 0};
    me_status ends[2] = {ME_OK, ME_OK};
    for (int i = 0; i < 2; i++) {
        me_record_reader reader = {.filled = 0};
        me_diag diag = {.status = ME_OK};
        const size_t step = i == 0 || size == 0 ? size : 1 + data[0] % 7U;
        for (size_t at = 0; at < size && ends[i] == ME_OK; at += step) {
            const size_t n = size - at < step ? size - at : step;
            ends[i] = me_record_take(&reader, (const char *)data + at, n, tell,
                                     &told[i], &diag);
        }
        if (ends[i] != ME_OK) {
            fuzz_check_line(diag.text);
        }
        me_record_reader_fini(&reader);
    }
    if (ends[0] != ends[1] || told[0] != told[1]) {
        abort();
    }
    return 0;
}
