/* links: track base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever bytes are taken for a result are those that it is written as. */
#include "base/alloc.h"
#include "track/result.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    me_diag diag = {0};
    me_rank_result *result = NULL;
    if (me_rank_result_decode(data, size, &diag, &result) != ME_OK) {
        if (result != NULL || diag.text[0] == '\0') {
            abort();
        }
        return 0;
    }
    unsigned char *bytes = NULL;
    size_t written = 0;
    if (me_rank_result_encode(result, &bytes, &written) != ME_OK ||
        written != size || memcmp(bytes, data, size) != 0) {
        abort();
    }
    me_free(bytes);
    me_rank_result_destroy(result);
    return 0;
}
