/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/nearest.h"

#include <stdint.h>
#include <string.h>

enum {
    WORD_MAX = 95
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t me_edit_distance(const char *a, const char *b)
{
    const size_t n = strlen(a);
    const size_t m = strlen(b);
    if (n > WORD_MAX || m > WORD_MAX) {
        return SIZE_MAX;
    }
    // Rows i - 2, i - 1 and i of the table of prefix distances.
    size_t rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= m; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= n; i++) {
        const size_t *before = rows[(i + 1) % 3];
        const size_t *above = rows[(i - 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const size_t changed = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = smaller(changed, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
                a[i - 2] == b[j - 1]) {
                row[j] = smaller(row[j], before[j - 2] + 1);
            }
        }
    }
    return rows[n % 3][m];
}

me_nearest me_nearest_begin(const char *word)
{
    const size_t length = strlen(word);
    const size_t edits = length / 3 > 1 ? length / 3 : 1;
    return (me_nearest){.word = word, .best = edits + 1};
}

bool me_nearest_offer(me_nearest *nearest, const char *known)
{
    const size_t n = strlen(nearest->word);
    const size_t m = strlen(known);
    if ((n > m ? n - m : m - n) >= nearest->best) {
        return false; // no need to count: so many are missing
    }
    const size_t distance = me_edit_distance(nearest->word, known);
    if (distance >= nearest->best) {
        return false;
    }
    nearest->best = distance;
    return true;
}
