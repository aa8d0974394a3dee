/* SPDX-License-Identifier: BSD-3-Clause */
/* Who starts a command as another user: sudo(8), doas(1), su(1), runuser(1). */
#include "base/parse.h"
#include "script/act_private.h"
#include "script/guise.h"
#include "script/inherit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/** `-s`, `-i`: a shell, which reads its input where no command follows. */
static bool is_for_shell(const char *word)
{
    const size_t n = strcspn(word, letters_with_value);
    return word[1] == '-' ? me_names_have("--shell --login", word, strlen(word))
                          : strcspn(word, "si") < n;
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

/** `-D FOLDER`, `--chdir=FOLDER`. @p next NULL: there is no next word */
static void take_folder(const char *word, const char *next,
                        const char **folder_out)
{
    static const char name[] = "--chdir";
    const size_t length = sizeof name - 1;
    if (word[1] != '-') {
        const size_t n = strcspn(word + 1, letters_with_value) + 1;
        if (word[n] == 'D') {
            *folder_out = word[n + 1] != '\0' ? word + n + 1 : next;
        }
    } else if (strncmp(word, name, length) == 0 &&
               (word[length] == '\0' || word[length] == '=')) {
        *folder_out = word[length] == '=' ? word + length + 1 : next;
    }
}

static int act_sudo(int argc, char **argv)
{
    const char *program = me_guise_base(argv[0]);
    const bool is_sudo = strcmp(program, "sudo") == 0;
    int at = 1;
    bool is_shell = false;
    const char *folder = NULL;
    me_inherit inherit = {.is_clean = false};
    me_inherit_begin(&inherit, program);
    for (bool is_end = false; !is_end && at < argc && argv[at][0] == '-';) {
        const int n = takes_next(argv[at]) ? 2 : 1;
        is_end = strcmp(argv[at], "--") == 0;
        is_shell |= is_for_shell(argv[at]);
        if (is_sudo) {
            take_kept(&inherit, argv[at]);
            take_folder(argv[at], argv[at + 1], &folder);
        }
        at += n;
    }
    for (; is_sudo && at < argc && strchr(argv[at], '=') != NULL; at++) {
        me_str_append_n(&inherit.sets, argv[at], strlen(argv[at]) + 1);
    }
    if (at >= argc && !(is_shell && me_guise_has_input())) {
        return me_guise_nothing(argc, argv);
    }
    char **command = at < argc ? argv + at : me_guise_input_shell();
    return folder != NULL && chdir(folder) != 0
               ? me_guise_fail(folder, "no such folder, which sudo goes to")
               : me_guise_start_with(&inherit, command);
}

/** What the words of su and runuser say. */
typedef struct su {
    char *command;   /**< of -c; NULL: none */
    bool is_login;   /**< the environment is another's */
    bool is_kept;    /**< … but for what -m says */
    bool names_user; /**< runuser's -u: a command follows, no shell's words */
    int n_words;     /**< that are no options: user, then the shell's */
} su;

/** The value of an option of su's, in the same word or the next. */
static char *value_of(char **argv, int argc, int *at)
{
    char *word = argv[*at];
    char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    if (equals != NULL) {
        return equals + 1;
    }
    if (word[1] != '-' && word[2] != '\0') {
        return word + 2;
    }
    *at += *at + 1 < argc ? 1 : 0;
    return argv[*at];
}

/** One option. @param at  its place, then that of its last word */
static void take_option(su *s, char **argv, int argc, int *at)
{
    static const char with_value[] =
        "-s --shell -g --group -G --supp-group -w --whitelist-environment "
        "-u --user -c --command --session-command";
    const char *word = argv[*at];
    const size_t n = word[1] == '-' ? strcspn(word, "=") : 2;
    if (strcmp(word, "-") == 0 || me_names_have("-l --login", word, n)) {
        s->is_login = true;
    } else if (me_names_have("-m -p --preserve-environment", word, n)) {
        s->is_kept = true;
    } else if (me_names_have(with_value, word, n)) {
        s->names_user |= me_names_have("-u --user", word, n);
        char *value = value_of(argv, argc, at);
        if (me_names_have("-c --command --session-command", word, n)) {
            s->command = value;
        }
    }
}

/** su lets options stand anywhere before `--`; a command behind runuser's -u is
 *  left alone. What is no option is moved to the front. @return the words left */
static char **read_su(su *s, int argc, char **argv)
{
    int at = 1;
    for (; at < argc; at++) {
        if (strcmp(argv[at], "--") == 0 ||
            (s->names_user && argv[at][0] != '-')) {
            at += argv[at][0] == '-';
            break;
        }
        if (argv[at][0] == '-') {
            take_option(s, argv, argc, &at);
        } else {
            argv[1 + s->n_words++] = argv[at];
        }
    }
    for (; at < argc; at++) {
        argv[1 + s->n_words++] = argv[at];
    }
    argv[1 + s->n_words] = NULL;
    return argv + 1;
}

/** A shell of another user's, which reads a command, a script or its input. */
static int act_su(int argc, char **argv)
{
    enum {
        ROOM = 1 << 14
    };

    static char shell[] = "bash";
    static char option[] = "-c";
    static char *words[ROOM];
    su s = {.n_words = 0};
    char **rest = read_su(&s, argc, argv);
    me_inherit inherit = {.is_clean = s.is_login && !s.is_kept};
    int n = 0;
    if (argc >= ROOM - 4) {
        return me_guise_nothing(argc, argv);
    }
    if (s.names_user) {
        return s.n_words == 0 ? me_guise_nothing(argc, argv)
                              : me_guise_start_with(&inherit, rest);
    }
    words[n++] = shell;
    if (s.command != NULL) {
        words[n++] = option;
        words[n++] = s.command;
    }
    for (int i = 1; i < s.n_words; i++) { // behind the user's name
        words[n++] = rest[i];
    }
    return me_guise_start_with(&inherit, words);
}

int me_guise_as(int argc, char **argv)
{
    return me_names_have("su runuser", me_guise_base(argv[0]),
                         strlen(me_guise_base(argv[0])))
               ? act_su(argc, argv)
               : act_sudo(argc, argv);
}
