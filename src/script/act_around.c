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
    case ME_GUISE_AS:
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

/** Letters of sudo(8) that have a value; doas(1)'s -C and -u are the same. */
static const char letters_with_value[] = "CDRTUghprtu";

/** A letter of an option, or a long one's value as the next word? */
static bool takes_next(const char *word)
{
    static const char names[] =
        "--close-from --chdir --chroot --command-timeout --other-user --group "
        "--host --prompt --role --type --user";
    if (word[1] == '-') {
        return me_names_have(names, word, strlen(word));
    }
    const size_t n = strcspn(word + 1, letters_with_value) + 1;
    return word[n] != '\0' && word[n + 1] == '\0';
}

/** An option of sudo's that keeps variables. */
static void take_kept(me_inherit *inherit, const char *word)
{
    static const char list[] = "--preserve-env=";
    static char all[] = "-E";
    char *const option[] = {all, NULL};
    const size_t n = strcspn(word, letters_with_value);
    const bool is_letter = word[1] != '-' && memchr(word, 'E', n) != NULL;
    if (strncmp(word, list, sizeof list - 1) == 0) {
        me_inherit_list(inherit, word + sizeof list - 1);
    } else if (is_letter || strcmp(word, "--preserve-env") == 0) {
        (void)me_inherit_option(inherit, "sudo", 1, option);
    }
}

int me_guise_as(int argc, char **argv)
{
    const char *program = me_guise_base(argv[0]);
    const bool is_sudo = strcmp(program, "sudo") == 0;
    int at = 1;
    me_inherit inherit = {.is_clean = false};
    me_inherit_begin(&inherit, program);
    for (bool is_end = false; !is_end && at < argc && argv[at][0] == '-';) {
        const int n = takes_next(argv[at]) ? 2 : 1;
        is_end = strcmp(argv[at], "--") == 0;
        if (is_sudo) {
            take_kept(&inherit, argv[at]);
        }
        at += n;
    }
    for (; is_sudo && at < argc && strchr(argv[at], '=') != NULL; at++) {
        me_str_append_n(&inherit.sets, argv[at], strlen(argv[at]) + 1);
    }
    if (at >= argc) {
        return me_guise_nothing(argc, argv);
    }
    return start(&inherit, false, argv + at);
}
