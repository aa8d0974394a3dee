/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Writable at file scope because a test must reach every caller; not part of
 * any result. Each thread has its own, so that several may use the library. */
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): see above
static _Thread_local uint64_t requests;
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): see above
static _Thread_local uint64_t failing_from;

enum {
    FIRST_ITEMS = 64
};

static bool is_refused(void)
{
    requests++;
    return failing_from != 0 && requests >= failing_from;
}

void *me_alloc(size_t count, size_t size, const char *name)
{
    (void)name;
    if (is_refused()) {
        return NULL;
    }
    return calloc(count == 0 ? 1 : count, size);
}

void *me_realloc(void *items, size_t count, size_t size, const char *name)
{
    (void)name;
    size_t bytes = 0;
    if (is_refused() || __builtin_mul_overflow(count, size, &bytes)) {
        return NULL;
    }
    return realloc(items, bytes == 0 ? 1 : bytes);
}

void *me_grow(void *items, uint32_t count, uint32_t *capacity, size_t size,
              const char *name)
{
    if (count < *capacity) {
        return items;
    }
    if (*capacity > UINT32_MAX / 2) {
        return NULL;
    }
    const uint32_t wanted = *capacity == 0 ? FIRST_ITEMS : *capacity * 2;
    void *larger = me_realloc(items, wanted, size, name);
    *capacity = larger == NULL ? *capacity : wanted;
    return larger;
}

void me_free(void *block)
{
    free(block);
}

char *me_strdup(const char *text, const char *name)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = me_alloc(bytes, 1, name);
    if (copy != NULL) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

void me_alloc_fail_at(uint64_t nth)
{
    requests = 0;
    failing_from = nth;
}

uint64_t me_alloc_count(void)
{
    return requests;
}
