/* SPDX-License-Identifier: BSD-3-Clause */
/* Containers, profilers and their like: their options are many and say nothing of
 * memory but by the variables that what they start has. */
#include "base/parse.h"
#include "script/act_private.h"
#include "script/guise.h"
#include "script/inherit.h"

#include <stdio.h>
#include <string.h>

/** Can this word be what a container or a profiler starts? @p next NULL: it is the
 *  last. */
static bool is_started(const char *word, const char *next)
{
    switch (me_guise_find(word)) {
    case ME_GUISE_LAUNCH: return me_guise_may_start(word, next);
    case ME_GUISE_COUNT:
    case ME_GUISE_AROUND:
    case ME_GUISE_REMOTE:
    case ME_GUISE_SHELL: return true;
    case ME_GUISE_WORK: return strcmp(me_guise_base(word), "env") == 0;
    case ME_GUISE_UNKNOWN:
    case ME_GUISE_SBATCH:
    case ME_GUISE_NOTHING:
    case ME_GUISE_QUIET:
    case ME_GUISE_CARDS:
    case ME_GUISE_HOSTS:
    case ME_GUISE_HOSTNAME:
    case ME_GUISE_WRITE: break;
    }
    return me_ends_with(word, ".sh");
}

static int start(me_inherit *inherit, bool is_container, char **argv)
{
    static char bash[] = "bash";
    if (inherit->wrong != NULL) {
        return me_guise_fail(inherit->wrong,
                             "cannot be read: variables of a container or an "
                             "environment stand in it (--env-file)");
    }
    me_inherit_apply(inherit);
    if (is_container && strcmp(me_guise_base(argv[0]), "sh") == 0) {
        argv[0] = bash; // which takes functions from outside
    }
    return me_guise_start(argv);
}

int me_guise_around(int argc, char **argv)
{
    const char *program = me_guise_base(argv[0]);
    const bool is_container = me_guise_is_container(argv[0]);
    me_inherit inherit = {.is_clean = false};
    if (is_container) {
        me_guise_enter_container();
    }
    me_inherit_begin(&inherit, program);
    for (int at = 1; at < argc;) {
        if (is_started(argv[at], at + 1 < argc ? argv[at + 1] : NULL)) {
            return start(&inherit, is_container, argv + at);
        }
        at += me_inherit_option(&inherit, program, argc - at, argv + at);
    }
    return me_guise_nothing(argc, argv);
}
