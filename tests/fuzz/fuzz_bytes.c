/* links: base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers and sizes as text: no crash, and what is read is what was written. */
#include "base/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[256];
    if (size >= sizeof text) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    uint64_t bytes = 0;
    uint64_t number = 0;
    double value = 0.0;
    const me_status as_bytes = me_parse_bytes(text, &bytes);
    const me_status as_number = me_parse_u64(text, &number);
    const me_status as_double = me_parse_double(text, &value);
    if (as_number == ME_OK &&
        (as_bytes != ME_OK || bytes != number || as_double != ME_OK)) {
        abort();
    }
    if (as_bytes == ME_OK) {
        char again[32];
        uint64_t back = 0;
        (void)snprintf(again, sizeof again, "%llu", (unsigned long long)bytes);
        if (me_parse_bytes(again, &back) != ME_OK || back != bytes) {
            abort();
        }
    }
    return 0;
}
