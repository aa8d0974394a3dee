/* SPDX-License-Identifier: BSD-3-Clause */
/* What shows that a job's code is not Megatron-LM core_v0.19.0, but a fork or an
 * earlier version, which may lack what validate_args() asserts today. */
#include "base/parse.h"
#include "config/config_private.h"
#include "config/megatron/megatron_arguments.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/** Parts of the names of forks' folders. */
static const char *const forks[] = {
    "llm-jp",
    "megatron-deepspeed",
    "pai-megatron",
    "mindspeed",
    "zero-bubble",
    "megatron-llama",
    "megablocks",
    "bigcode",
    "megatron-lm-llama",
};

/** What stands before the number of a version, of which 19 is the one that is
 *  modelled. */
static const char *const versions[] = {"core_v0.", "core_r0.", "core-v0."};

me_status me_megatron_keep_sign(me_config *config, const char *sign,
                                me_diag *diag)
{
    if (config->own->fork_sign != NULL) {
        return ME_OK;
    }
    config->own->fork_sign = me_arena_strdup(config->own->text, sign);
    return config->own->fork_sign != NULL
               ? ME_OK
               : me_fail(diag, ME_ERR_NOMEM, "no memory for a job's signs");
}

/** The first sign that is no script's name, which has a line of its own. */
static me_status say_sign(me_config *config, const char *sign, me_diag *diag)
{
    const bool is_first = config->own->fork_sign == NULL;
    const me_status status = me_megatron_keep_sign(config, sign, diag);
    return status != ME_OK || !is_first
               ? status
               : me_config_assume(config, diag,
                                  "the code is that of core_v0.19.0, though "
                                  "%.80s is of a fork or an earlier version",
                                  sign);
}

static bool names_version(const char *folder)
{
    bool is_other = false;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        const char *at = strstr(folder, versions[i]);
        if (at != NULL) {
            at += strlen(versions[i]);
            const size_t n = strspn(at, "0123456789");
            is_other =
                is_other || (n > 0 && (n != 2 || strncmp(at, "19", 2) != 0));
        }
    }
    return is_other;
}

/** Pai-Megatron-Patch's copies bear their day: Megatron-LM-240405. */
static bool names_day(const char *folder)
{
    static const char before[] = "Megatron-LM-";
    const char *day = folder + sizeof before - 1;
    return strncasecmp(folder, before, sizeof before - 1) == 0 &&
           strspn(day, "0123456789") == 6 && day[6] == '\0';
}

static bool names_fork(const char *folder)
{
    bool is_one = false;
    for (size_t i = 0; i < sizeof forks / sizeof forks[0]; i++) {
        const size_t n = strlen(forks[i]);
        for (const char *at = folder; !is_one && strlen(at) >= n; at++) {
            is_one = strncasecmp(at, forks[i], n) == 0;
        }
    }
    return is_one;
}

me_status me_megatron_look_at_folder(me_config *config, const char *path,
                                     me_diag *diag)
{
    me_status status = ME_OK;
    for (const char *end = strchr(path, '/'); status == ME_OK && end != NULL;
         path = end + 1, end = strchr(path, '/')) {
        char folder[128];
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(end - path), path);
        if (names_version(folder) || names_day(folder) || names_fork(folder)) {
            status = say_sign(config, folder, diag);
        }
    }
    return status;
}

me_status me_megatron_look_at_flags(me_config *config, const me_flag_uses *uses,
                                    me_diag *diag)
{
    // flags of slime's, miles' and trainers with a file stand beside those of a
    // recent Megatron-LM
    if (config->own->has_leaves ||
        me_flag_use_find(uses, "--hf-checkpoint") != NULL ||
        me_flag_use_find(uses, "--actor-num-nodes") != NULL) {
        return ME_OK;
    }
    for (int i = 0; i < uses->count; i++) {
        const me_flag_use *use = &uses->uses[i];
        const bool is_word = use->spelling != NULL && use->word != NULL;
        if (use->flag.is_of_fork || is_word) {
            char sign[128];
            (void)snprintf(sign, sizeof sign, "%.80s%s%.40s", use->name,
                           is_word ? " " : "", is_word ? use->word : "");
            return say_sign(config, sign, diag);
        }
    }
    return config->own->takes_unknown
               ? me_megatron_keep_sign(config, "--unknown warn", diag)
               : ME_OK;
}

me_status me_megatron_pass(me_config *config, const char *stops, me_diag *diag)
{
    return config->own->fork_sign == NULL
               ? me_fail(diag, ME_ERR_CONFIG,
                         "%s (--unknown warn goes on, as a fork or an "
                         "earlier version of Megatron-LM may)",
                         stops)
               : me_config_assume(config, diag,
                                  "core_v0.19.0 stops there: %s; a fork or an "
                                  "earlier version, which %.80s is of, goes on "
                                  "with the same memory",
                                  stops, config->own->fork_sign);
}
