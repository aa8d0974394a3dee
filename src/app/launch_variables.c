/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/launch_variables.h"

#include "app/launch_files.h"
#include "config/hub_cache.h"
#include "config/launch_ranks.h"
#include "run/environment_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_BYTES = 128 /* longer ones are of no variable that counts */
};

/** Which task of an array it is, which reports say. */
static bool is_of_array(const char *name)
{
    return strcmp(name, "SLURM_ARRAY_TASK_ID") == 0 ||
           strcmp(name, "SLURM_ARRAY_TASK_COUNT") == 0;
}

bool me_launch_variable_counts(const char *variable)
{
    char name[NAME_BYTES];
    const size_t length = strcspn(variable, "=");
    if (me_launch_is_of_files(variable) || variable[length] == '\0' ||
        length >= sizeof name) {
        return false;
    }
    memcpy(name, variable, length);
    name[length] = '\0';
    if (variable[length + 1] == '\0') {
        return me_launch_needs_number(name);
    }
    const me_variable_rule *rule = me_variable_rule_find(name);
    if (me_hub_is_variable(name)) { // what memest has itself need not be told
        const char *own = getenv(name);
        return own == NULL || strcmp(own, variable + length + 1) != 0;
    }
    return me_launch_says_ranks(name) || is_of_array(name) ||
           (rule != NULL && rule->kind != ME_VARIABLE_NO_EFFECT);
}

static bool has(const me_script_launch *launch, const char *variable)
{
    for (int i = 0; i < launch->n_variables; i++) {
        if (strcmp(launch->variables[i], variable) == 0) {
            return true;
        }
    }
    return false;
}

/** The first that counts of @p a and that @p b has not as well. */
static const char *find_other(const me_script_launch *a,
                              const me_script_launch *b)
{
    static const char cards[] = "CUDA_VISIBLE_DEVICES=";
    for (int i = 0; i < a->n_variables; i++) {
        const char *variable = a->variables[i];
        if (strncmp(variable, cards, sizeof cards - 1) != 0 &&
            !has(b, variable) && me_launch_variable_counts(variable)) {
            return variable;
        }
    }
    return NULL;
}

const char *me_launch_variables_differ(const me_script_launch *a,
                                       const me_script_launch *b)
{
    const char *variable = find_other(a, b);
    return variable != NULL ? variable : find_other(b, a);
}
