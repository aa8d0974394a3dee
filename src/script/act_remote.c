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
} remote;

static const remote remotes[] = {
    {"ssh", "BbcDEeFIiJLlmOopPQRSWw", 1}, {"pdsh", "wxgGltufRjI", 0},
    {"clush", "wxgXltufoO", 0},           {"pssh parallel-ssh", "hHlpotxeX", 0},
    {"tmux", "cefFLnNstSxy", 1}, // its own command stands for a host
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

int me_guise_remote(int argc, char **argv)
{
    static char bash[] = "bash";
    static char option[] = "-c";
    const remote *r = find(argv[0]);
    int n_hosts = r == NULL ? 0 : r->n_hosts;
    int at = 1;
    while (r != NULL && at < argc && (argv[at][0] == '-' || n_hosts > 0)) {
        const bool is_option = argv[at][0] == '-';
        const bool has_value = is_option && argv[at][1] != '\0' &&
                               argv[at][2] == '\0' &&
                               strchr(r->letters, argv[at][1]) != NULL;
        if (!is_option && !starts(r, argv[at])) {
            return me_guise_nothing(argc, argv);
        }
        n_hosts -= is_option ? 0 : 1;
        at += has_value ? 2 : 1;
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
