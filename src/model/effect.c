/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/effect.h"

#include <string.h>

static const char *const names[] = {
#define ME_REACH_NAME(constant, name) [constant] = (name),
    ME_REACH_LIST(ME_REACH_NAME)
#undef ME_REACH_NAME
};

enum {
    N_NAMES = sizeof names / sizeof names[0]
};

const char *me_reach_name(me_reach reach)
{
    return names[reach];
}

bool me_reach_find(const char *name, me_reach *reach_out)
{
    for (int i = 0; i < N_NAMES; i++) {
        if (strcmp(names[i], name) == 0) {
            *reach_out = (me_reach)i;
            return true;
        }
    }
    return false;
}
