/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that start others elsewhere: on other machines, which is this one
 * here, or in containers, whose folders are not here. */
#include "base/parse.h"
#include "base/str.h"
#include "script/act_private.h"
#include "script/guise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** One of ssh's like. */
typedef struct remote {
    const char *names;
    const char *letters; /**< of options that have a value */
    int n_hosts;         /**< words in front of the command */
    const char *sends; /**< a letter without which it reads no commands from its
                              input; "": none is needed; NULL: it never does */
    const char *mute; /**< letters with which it starts no shell on its input */
} remote;

/** By their manuals. */
static const remote remotes[] = {
    {"ssh", "BbcDEeFIiJLlmOopPQRSWw", 1, "", "nNfGVOQW"},
    {"pdsh", "wxgGltufRjI", 0, "", "qVL"},
    {"clush", "wxgXltufoO", 0, "", "n"},
    {"pssh parallel-ssh", "hHlpotxeX", 0, "I", ""},
    {"tmux", "cefFLnNstSxy", 1, NULL, ""}, // its own command stands for a host
};

/** Does tmux start what follows, or type it? */
static bool starts(const remote *r, const char *command)
{
    static const char own[] = "new-session new new-window neww split-window "
                              "splitw respawn-pane respawn-window send-keys "
                              "send";
    return r == NULL || strcmp(r->names, "tmux") != 0 ||
           me_names_have(own, command, strlen(command));
}

/** Keys that end what tmux types. */
static bool is_enter(const remote *r, const char *word)
{
    static const char keys[] = "Enter C-m C-j KPEnter";
    return strcmp(r->names, "tmux") == 0 &&
           me_names_have(keys, word, strlen(word));
}

static const remote *find(const char *word)
{
    const char *name = me_guise_base(word);
    for (size_t i = 0; i < sizeof remotes / sizeof remotes[0]; i++) {
        if (me_names_have(remotes[i].names, name, strlen(name))) {
            return &remotes[i];
        }
    }
    return NULL;
}

/** One option. @param sends  set if it makes the input commands
 *  @param mute  set if no shell is started then
 *  @return its words */
static int read_option(const remote *r, const char *word, bool *sends,
                       bool *mute)
{
    size_t n = 0;
    if (word[1] == '-') {
        return 1;
    }
    for (bool is_end = false; !is_end && word[n + 1] != '\0';) {
        const char letter = word[++n];
        *mute |= strchr(r->mute, letter) != NULL;
        *sends |= r->sends != NULL && strchr(r->sends, letter) != NULL;
        is_end = strchr(r->letters, letter) != NULL;
    }
    const bool has_value = n > 0 && strchr(r->letters, word[n]) != NULL;
    return has_value && word[n + 1] == '\0' ? 2 : 1;
}

/** @param shell_out  without a command: does it start a shell on its input?
 *  @return where its command begins; argc or more: it has none */
static int find_command(const remote *r, int argc, char **argv, bool *shell_out)
{
    bool sends = r->sends != NULL && r->sends[0] == '\0';
    bool mute = false;
    int n_hosts = r->n_hosts;
    int at = 1;
    *shell_out = false;
    while (at < argc && (argv[at][0] == '-' || n_hosts > 0)) {
        const bool is_option = argv[at][0] == '-';
        if (!is_option && !starts(r, argv[at])) {
            return argc;
        }
        n_hosts -= is_option ? 0 : 1;
        at += is_option ? read_option(r, argv[at], &sends, &mute) : 1;
    }
    *shell_out = sends && !mute && n_hosts == 0;
    return at;
}

int me_guise_remote(int argc, char **argv)
{
    static char bash[] = "bash";
    static char option[] = "-c";
    const remote *r = find(argv[0]);
    bool is_shell = false;
    const int at = r == NULL ? argc : find_command(r, argc, argv, &is_shell);
    if (at >= argc && is_shell && me_guise_has_input()) {
        me_guise_enter_elsewhere();
        return me_guise_start(me_guise_input_shell());
    }
    if (r == NULL || at >= argc) {
        return me_guise_nothing(argc, argv);
    }
    me_str command = {0};
    for (int i = at; i < argc && !is_enter(r, argv[i]); i++) {
        me_str_printf(&command, "%s%s", i == at ? "" : " ", argv[i]);
    }
    if (me_str_status(&command) != ME_OK) {
        return 1;
    }
    char *words[] = {bash, option, command.text, NULL};
    if (strcmp(r->names, "tmux") != 0) {
        me_guise_enter_elsewhere();
    }
    return me_guise_start(words); // which holds the text until it ends
}

void me_guise_enter_elsewhere(void)
{
    char function[4096];
    char own[3072];
    if (me_guise_path_of(".other", own, sizeof own)) {
        (void)snprintf(function, sizeof function,
                       "() { builtin cd \"$@\" 2>/dev/null || %s cd \"$@\"; }",
                       own);
        (void)setenv("BASH_FUNC_cd%%", function, 1);
    }
}

bool me_guise_is_container(const char *word)
{
    static const char names[] = "docker podman podman-hpc nerdctl "
                                "nvidia-docker singularity apptainer enroot "
                                "shifter sarus charliecloud ch-run kubectl oc";
    const char *name = me_guise_base(word);
    return me_names_have(names, name, strlen(name));
}
