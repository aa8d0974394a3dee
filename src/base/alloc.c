/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/** Writable at file scope because a test must reach every caller; not part of
 * any result. Each thread has its own, so that several may use the library. */
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): see above
static _Thread_local uint64_t requests;
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): see above
static _Thread_local uint64_t failing_from;
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): see above
static _Thread_local uint64_t failing_to;
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): see above
static _Thread_local me_alloc_seen *watcher;
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): see above
static _Thread_local void *watcher_self;
/** Whether anything was lost is asked where results are handed out, which no
 * caller of me_alloc() can be made to tell. */
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): see above
static _Thread_local uint64_t lost;
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): see above
static _Thread_local const char *lost_name;

static const char lost_file[] = "a file";

enum {
    FIRST_ITEMS = 64
};

static bool is_refused(const char *name)
{
    requests++;
    if (watcher != NULL) {
        watcher(watcher_self, requests, name);
    }
    return failing_from != 0 && requests >= failing_from &&
           requests <= failing_to;
}

void me_alloc_lose(const char *name)
{
    lost++;
    lost_name = name;
}

void me_alloc_lose_file(void)
{
    me_alloc_lose(lost_file);
}

static void *granted(void *block, const char *name)
{
    if (block == NULL) {
        me_alloc_lose(name);
    }
    return block;
}

void *me_alloc(size_t count, size_t size, const char *name)
{
    return granted(
        is_refused(name) ? NULL : calloc(count == 0 ? 1 : count, size), name);
}

void *me_realloc(void *items, size_t count, size_t size, const char *name)
{
    size_t bytes = 0;
    if (is_refused(name) || __builtin_mul_overflow(count, size, &bytes)) {
        return granted(NULL, name);
    }
    return granted(realloc(items, bytes == 0 ? 1 : bytes), name);
}

void *me_grow_to(void *items, uint32_t at, uint32_t *capacity, size_t size,
                 const char *name)
{
    uint64_t wanted = *capacity == 0 ? FIRST_ITEMS : *capacity;
    if (at < *capacity) {
        return items;
    }
    while (wanted <= at) {
        wanted *= 2;
    }
    void *larger = wanted > UINT32_MAX
                       ? granted(NULL, name)
                       : me_realloc(items, (size_t)wanted, size, name);
    *capacity = larger == NULL ? *capacity : (uint32_t)wanted;
    return larger;
}

void *me_grow(void *items, uint32_t count, uint32_t *capacity, size_t size,
              const char *name)
{
    if (count < *capacity) {
        return items;
    }
    if (*capacity > UINT32_MAX / 2) {
        return granted(NULL, name);
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

uint64_t me_alloc_lost(void)
{
    return lost;
}

const char *me_alloc_lost_name(void)
{
    return lost_name;
}

void me_alloc_set_lost(uint64_t all, const char *name)
{
    lost = all;
    lost_name = name;
}

me_status me_alloc_check(uint64_t before, me_status status, me_diag *diag)
{
    if (lost == before || status == ME_ERR_NOMEM) {
        return status;
    }
    if (lost_name == lost_file) { // whoever fails says why
        return status != ME_OK
                   ? status
                   : me_fail(diag, ME_ERR_IO,
                             "a file could not be read on the way: too few "
                             "descriptors (ulimit -n), or its disk failed");
    }
    return me_fail(diag, ME_ERR_NOMEM, "no host memory for %s", lost_name);
}

void me_alloc_fail_at(uint64_t nth)
{
    requests = 0;
    failing_from = nth;
    failing_to = UINT64_MAX;
}

void me_alloc_fail_once(uint64_t nth)
{
    me_alloc_fail_at(nth);
    failing_to = nth;
}

uint64_t me_alloc_count(void)
{
    return requests;
}

void me_alloc_watch(me_alloc_seen *seen, void *self)
{
    watcher = seen;
    watcher_self = self;
}
