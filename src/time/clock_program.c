/* SPDX-License-Identifier: BSD-3-Clause */
#include "time/clock_program.h"

#include <string.h>

#define NAME(constant, name) [constant] = (name),

static const char *const part_names[] = {ME_TIME_PART_LIST(NAME)};

const char *me_time_part_name(me_time_part part)
{
    return part_names[part];
}

me_stretch me_stretch_none(void)
{
    me_stretch s = {.compute_ns = 0};
    for (int i = 0; i < ME_CLOCKS; i++) {
        for (int j = 0; j < ME_CLOCKS; j++) {
            s.after[i][j] = i == j ? 0 : ME_TIME_NEVER;
        }
    }
    return s;
}

void me_stretch_run(const me_stretch *stretch, int64_t clocks[ME_CLOCKS])
{
    int64_t before[ME_CLOCKS];
    memcpy(before, clocks, sizeof before);
    for (int i = 0; i < ME_CLOCKS; i++) {
        int64_t latest = ME_TIME_NEVER;
        for (int j = 0; j < ME_CLOCKS; j++) {
            const int64_t after = before[j] + stretch->after[i][j];
            latest = after > latest ? after : latest;
        }
        clocks[i] = latest;
    }
}
