/* SPDX-License-Identifier: BSD-3-Clause */
/* mpirun's application contexts, which a word `:` parts, as one. */
#include "config/launch_contexts.h"
#include "script/act_private.h"

#include <string.h>

enum {
    ARENA_BYTES = 64 << 20
};

/** Words that may be changed, with the NULL that ends them. They live as long as
 *  the process, which becomes what they start. */
static char **copy_words(me_arena *arena, const me_argument_words *words)
{
    char **argv = me_arena_alloc(arena, (size_t)words->argc + 1, sizeof *argv);
    bool is_whole = argv != NULL;
    for (int i = 0; is_whole && i < words->argc; i++) {
        const size_t bytes = strlen(words->argv[i]) + 1;
        argv[i] = me_arena_alloc(arena, bytes, 1);
        is_whole = argv[i] != NULL;
        if (is_whole) {
            memcpy(argv[i], words->argv[i], bytes);
        }
    }
    return is_whole ? argv : NULL;
}

char **me_guise_join(int argc, char **argv, int *argc_out)
{
    me_argument_words words = {argc, (const char *const *)argv};
    me_arena *arena = me_arena_create(ARENA_BYTES, "script.contexts");
    me_diag diag = {.status = ME_OK};
    const me_status status =
        arena == NULL
            ? me_fail(&diag, ME_ERR_NOMEM, "no memory for a command's words")
            : me_launch_contexts_join(arena, &words, &diag);
    *argc_out = words.argc;
    if (status == ME_OK && words.argv == (const char *const *)argv) {
        me_arena_destroy(arena);
        return argv;
    }
    char **joined = status == ME_OK ? copy_words(arena, &words) : NULL;
    if (joined == NULL) {
        (void)me_guise_fail(argv[0], status == ME_OK ? "no memory for its words"
                                                     : diag.text);
        me_arena_destroy(arena);
    }
    return joined;
}
