/* links: base */
/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts grow byte by byte and in pieces, and must come out the same. */
#include "base/str.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    me_str whole = {0};
    me_str pieces = {0};
    me_str_append_n(&whole, (const char *)data, size);
    for (size_t at = 0; at < size;) {
        size_t step = data[at] % 7 + 1U;
        step = step > size - at ? size - at : step;
        me_str_append_n(&pieces, (const char *)data + at, step);
        at += step;
    }
    const int is_equal =
        whole.length == size && pieces.length == size &&
        memcmp(me_str_text(&whole), me_str_text(&pieces), size) == 0;
    me_str_fini(&whole);
    me_str_fini(&pieces);
    if (!is_equal) {
        abort();
    }
    return 0;
}
