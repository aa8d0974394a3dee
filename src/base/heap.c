/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"

#ifdef __linux__
#    include <features.h>
#endif
#ifdef __GLIBC__
#    include <malloc.h>

enum {
    KEPT_BYTES = 64 << 20,
    OWN_PAGES_BYTES = 32 << 20 /* glibc's most: larger ones are mapped alone */
};

void me_heap_keep(void)
{
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    (void)mallopt(M_MMAP_THRESHOLD, OWN_PAGES_BYTES);
}
#else
void me_heap_keep(void)
{
}
#endif
