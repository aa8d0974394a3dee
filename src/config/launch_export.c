/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/launch_export.h"

#include "base/parse.h"
#include "config/slurm_options.h"
#include "config/wrappers.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/** The value of --export among srun's options; NULL: it has none. */
static const char *list_of_options(int argc, const char *const *argv)
{
    me_slurm_words words = {
        .program = ME_SLURM_SRUN, .argc = argc, .argv = argv};
    const char *list = NULL;
    while (words.at < argc) {
        const me_slurm_read read = me_slurm_words_next(&words);
        if (read == ME_SLURM_OPTION && strcmp(words.name, "export") == 0) {
            list = words.value;
        } else if (read != ME_SLURM_OPTION && read != ME_SLURM_FOREIGN) {
            break;
        }
    }
    return list;
}

/** The value that words in front of srun give a variable, or NULL. */
static const char *value_of(int argc, const char *const *argv, const char *name)
{
    const size_t n = strlen(name);
    const char *value = NULL;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=') {
            value = argv[i] + n + 1;
        }
    }
    return value;
}

static bool passes(const char *list, const char *name, size_t length)
{
    bool is_passed = false;
    while (*list != '\0') {
        const size_t n = strcspn(list, ",");
        is_passed |= (n == 3 && strncasecmp(list, "all", n) == 0) ||
                     (n == length && strncmp(list, name, n) == 0);
        list += n + (list[n] == ',');
    }
    return is_passed;
}

static bool is_srun(const char *word)
{
    const me_wrapper *wrapper = me_wrapper_find(word);
    return wrapper != NULL && wrapper->kind == ME_WRAPPER_SRUN;
}

bool me_launch_export_loses(int argc, const char *const *argv, int at)
{
    const char *name = argv[at];
    int srun = at + 1;
    while (srun < argc && !is_srun(argv[srun]) &&
           !me_ends_with(argv[srun], ".py")) {
        srun++;
    }
    if (srun >= argc || !is_srun(argv[srun]) ||
        strncmp(name, "SLURM", 5) == 0) {
        return false;
    }
    const char *list = list_of_options(argc - srun - 1, argv + srun + 1);
    list = list != NULL ? list : value_of(srun, argv, "SRUN_EXPORT_ENV");
    list = list != NULL ? list : value_of(srun, argv, "SLURM_EXPORT_ENV");
    return list != NULL && !passes(list, name, strcspn(name, "="));
}
