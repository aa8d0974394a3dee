/* SPDX-License-Identifier: BSD-3-Clause */
#include "track/fold.h"

#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** A part of a path between its dots. */
typedef struct part {
    const char *text;
    size_t length;
    bool is_number; /**< of at most 9 digits */
    uint32_t number;
} part;

enum {
    DIGITS_MAX = 9
};

static part read_part(const char *text)
{
    part p = {.text = text, .length = strcspn(text, ".")};
    p.is_number = p.length > 0 && p.length <= DIGITS_MAX &&
                  strspn(text, "0123456789") == p.length;
    for (size_t i = 0; p.is_number && i < p.length; i++) {
        p.number = p.number * 10 + (uint32_t)(text[i] - '0');
    }
    return p;
}

/** The rest of a path after @p p; NULL at its end. */
static const char *after(const part *p)
{
    return p->text[p->length] == '.' ? p->text + p->length + 1 : NULL;
}

static int compare_text(const part *a, const part *b)
{
    const size_t shorter = a->length < b->length ? a->length : b->length;
    const int order = memcmp(a->text, b->text, shorter);
    return order != 0 ? order
                      : (a->length > b->length) - (a->length < b->length);
}

int me_path_compare(const char *a, const char *b)
{
    int by_number = 0; // decides between paths that are alike
    while (a != NULL && b != NULL) {
        const part x = read_part(a);
        const part y = read_part(b);
        if (x.is_number != y.is_number) {
            return x.is_number ? -1 : 1;
        }
        if (!x.is_number) {
            const int order = compare_text(&x, &y);
            if (order != 0) {
                return order;
            }
        } else if (by_number == 0) {
            by_number = (x.number > y.number) - (x.number < y.number);
        }
        a = after(&x);
        b = after(&y);
    }
    if (a != NULL || b != NULL) {
        return a == NULL ? -1 : 1;
    }
    return by_number;
}

bool me_path_is_like(const char *a, const char *b)
{
    while (a != NULL && b != NULL) {
        const part x = read_part(a);
        const part y = read_part(b);
        if (x.is_number != y.is_number ||
            (!x.is_number && compare_text(&x, &y) != 0)) {
            return false;
        }
        a = after(&x);
        b = after(&y);
    }
    return a == NULL && b == NULL;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void me_ranges_append(me_str *str, const uint32_t *numbers, size_t count,
                      size_t ranges_max)
{
    size_t n_ranges = 0;
    size_t i = 0;
    while (i < count) {
        if (ranges_max != 0 && n_ranges == ranges_max) {
            me_str_append(str, ",...");
            return;
        }
        size_t last = i;
        while (last + 1 < count && numbers[last + 1] <= numbers[last] + 1) {
            last++;
        }
        me_str_printf(str, i == 0 ? "%u" : ",%u", (unsigned)numbers[i]);
        if (numbers[last] > numbers[i]) {
            me_str_printf(str, "-%u", (unsigned)numbers[last]);
        }
        n_ranges++;
        i = last + 1;
    }
}

/** Part number @p index of @p path, which has that many. */
static part nth_part(const char *path, size_t index)
{
    part p = read_part(path);
    while (index-- > 0) {
        p = read_part(after(&p));
    }
    return p;
}

me_status me_path_fold(const char *const *paths, size_t count, me_str *name)
{
    uint32_t *numbers = me_alloc(count, sizeof *numbers, "fold.numbers");
    if (numbers == NULL) {
        return ME_ERR_NOMEM;
    }
    const char *rest = paths[0];
    for (size_t index = 0; rest != NULL; index++) {
        const part first = read_part(rest);
        if (index > 0) {
            me_str_append(name, ".");
        }
        if (first.is_number) {
            for (size_t i = 0; i < count; i++) {
                numbers[i] = nth_part(paths[i], index).number;
            }
            qsort(numbers, count, sizeof *numbers, compare_numbers);
            me_ranges_append(name, numbers, count, 0);
        } else {
            me_str_append_n(name, first.text, first.length);
        }
        rest = after(&first);
    }
    me_free(numbers);
    return me_str_status(name);
}
