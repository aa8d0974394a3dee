/* SPDX-License-Identifier: BSD-3-Clause */
/* jsrun(1) of IBM's Job Step Manager; flux-run(1), and jobspec_create() of
 * flux-core's cli/base.py; aprun(1) of Cray's ALPS; blaunch(1) of LSF. */
#include "config/launch_steps.h"

#include <stddef.h>

/** Tasks of so many resource sets, each of one where -a does not say it. */
static void take_sets(const me_launch_steps *steps, me_rank_counts *counts)
{
    const uint64_t per_set = steps->per_set == 0 ? 1 : steps->per_set;
    if (counts->ranks == 0) {
        counts->ranks = steps->sets * per_set;
    }
    counts->per_node = steps->sets_of_host * per_set;
}

/** One launcher: how it is called, its ranks where no option says them, and what
 *  to give where nobody knows. */
typedef struct row {
    me_wrapper_kind kind;
    const char *name;
    uint64_t usual; /**< 0: as many as the allocation has room for */
    const char *instead;
} row;

static const row rows[] = {
    {ME_WRAPPER_JSRUN, "jsrun", 0, "its -n and -a, or -p"},
    {ME_WRAPPER_FLUX, "flux run", 1, "its -n"},
    {ME_WRAPPER_APRUN, "aprun", 1, "its -n"},
    {ME_WRAPPER_BLAUNCH, "blaunch", 0, "the command of torchrun or mpirun"},
};

static const row *find(me_wrapper_kind kind)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].kind == kind) {
            return &rows[i];
        }
    }
    return NULL;
}

me_status me_launch_steps_settle(const me_launch_steps *steps,
                                 me_rank_counts *counts, me_config *config,
                                 me_diag *diag)
{
    const row *launcher = find(steps->kind);
    if (launcher == NULL) {
        return ME_OK;
    }
    if (launcher->kind == ME_WRAPPER_JSRUN) {
        take_sets(steps, counts);
    }
    const uint64_t said = me_rank_counts_ranks(counts);
    const bool is_told =
        said != 0 && (counts->ranks != 0 || launcher->usual != 0);
    if ((is_told || launcher->usual != 0) &&
        (steps->unread == NULL || counts->ranks != 0)) {
        counts->ranks = is_told ? said : launcher->usual;
        return ME_OK;
    }
    *counts = (me_rank_counts){.is_used = true}; // half is nothing
    if (steps->unread != NULL) {
        return me_config_leave_world_open(
            config, diag,
            "%s %.60s says how many ranks there are, and is not read: give "
            "%s, or memest's --world-size",
            launcher->name, steps->unread, launcher->instead);
    }
    return me_config_leave_world_open(
        config, diag,
        "%s starts as many ranks as its job has room for, which nobody says: "
        "give %s, or memest's --world-size",
        launcher->name, launcher->instead);
}
