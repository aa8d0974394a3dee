/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/lost.h"

#include "base/alloc.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

static me_lost_name *find(me_lost_names *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->names[i].name, name) == 0) {
            return &all->names[i];
        }
    }
    if (all->count == ME_LOST_NAMES) {
        return NULL;
    }
    all->names[all->count] = (me_lost_name){.name = name};
    return &all->names[all->count++];
}

static void note(void *self, uint64_t nth, const char *name)
{
    me_lost_name *n = find(self, name);
    if (n == NULL) {
        return;
    }
    if (n->count == n->capacity) {
        const size_t capacity = n->capacity == 0 ? 16 : 2 * n->capacity;
        uint64_t *at = realloc(n->at, capacity * sizeof *at);
        if (at == NULL) {
            return;
        }
        n->at = at;
        n->capacity = capacity;
    }
    n->at[n->count++] = nth;
}

void me_lost_begin(me_lost_names *names)
{
    *names = (me_lost_names){.count = 0};
    me_alloc_fail_at(0);
    me_alloc_watch(note, names);
}

void me_lost_end(void)
{
    me_alloc_watch(NULL, NULL);
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t *me_lost_choose(const me_lost_names *names, size_t each,
                         size_t *count_out)
{
    uint64_t *chosen = calloc(names->count * each + 1, sizeof *chosen);
    size_t n = 0;
    for (size_t i = 0; chosen != NULL && i < names->count; i++) {
        const me_lost_name *name = &names->names[i];
        const size_t k = name->count < each ? name->count : each;
        for (size_t j = 0; j < k; j++) {
            chosen[n++] =
                name->at[k == 1 ? 0 : j * (name->count - 1) / (k - 1)];
        }
    }
    if (chosen != NULL) {
        qsort(chosen, n, sizeof *chosen, compare);
    }
    *count_out = n;
    return chosen;
}

void me_lost_fini(me_lost_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->names[i].at);
    }
    *names = (me_lost_names){.count = 0};
}
