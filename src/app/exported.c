/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/exported.h"

#include "base/parse.h"
#include "config/launch_ranks.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): POSIX's
extern char **environ;

/** In a step of Slurm's, as under `srun -n 1 memest`, the variables of the job
 *  that the step is of: srun(1), "output environment variables", of which some
 *  are the step's. */
void me_exported_restore_job(void)
{
    const char *nodes = getenv("SLURM_JOB_NUM_NODES");
    const char *each = getenv("SLURM_NTASKS_PER_NODE");
    const char *tasks = getenv("SLURM_STEP_NUM_TASKS");
    uint64_t n_nodes = 0;
    uint64_t n_each = 0;
    char text[24];
    if (tasks == NULL || nodes == NULL) {
        return;
    }
    if (each == NULL) {
        if (strcmp(tasks, "1") == 0) {
            (void)unsetenv("SLURM_NTASKS"); // 1, which is the step's
            (void)unsetenv("SLURM_NPROCS");
            (void)setenv("SLURM_NNODES", nodes, 1);
        }
        return;
    }
    if (me_parse_u64(nodes, &n_nodes) != ME_OK ||
        me_parse_u64(each, &n_each) != ME_OK || n_nodes > UINT32_MAX ||
        n_each > UINT32_MAX) {
        return;
    }
    (void)snprintf(text, sizeof text, "%" PRIu64, n_nodes * n_each);
    (void)setenv("SLURM_NTASKS", text, 1);
    (void)setenv("SLURM_NPROCS", text, 1);
    (void)setenv("SLURM_NNODES", nodes, 1);
}

/** Slurm's variables are of a job, not left over from one. */
static bool is_in_job(void)
{
    return getenv("SLURM_JOB_ID") != NULL ||
           getenv("SLURM_STEP_NUM_TASKS") != NULL;
}

/** Does what the user's shell exports of it count? @param of_srun  do those of
 *  Slurm count outside of a job? */
static bool is_exported(const char *variable, bool of_srun)
{
    static const char *const beginnings[] = {"PYTORCH_", "NCCL_", "NVTE_",
                                             "TORCH_NCCL_"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        if (strncmp(variable, beginnings[i], strlen(beginnings[i])) == 0) {
            return true;
        }
    }
    char name[64];
    const int length = (int)strcspn(variable, "=");
    (void)snprintf(name, sizeof name, "%.*s", length, variable);
    return (strncmp(variable, "SLURM_", 6) != 0 || of_srun || is_in_job()) &&
           me_launch_says_ranks(name);
}

me_status me_exported_find(me_arena *arena, bool of_srun, me_diag *diag,
                           const char *const **variables_out, int *count_out)
{
    size_t most = 0;
    int count = 0;
    while (environ[most] != NULL) {
        most++;
    }
    const char **variables = me_arena_alloc(arena, most + 1, sizeof *variables);
    for (size_t i = 0; variables != NULL && i < most; i++) {
        if (is_exported(environ[i], of_srun)) {
            variables[count++] = environ[i];
        }
    }
    if (variables == NULL) {
        return me_fail(diag, ME_ERR_NOMEM, "no memory for variables");
    }
    *variables_out = variables;
    *count_out = count;
    return ME_OK;
}

/** An empty one does not, and WORLD_SIZE not where a launcher sets it anew. */
static bool counts(const char *name, const char *value, const me_config *config)
{
    uint64_t ranks = 0;
    if (strcmp(name, "WORLD_SIZE") != 0) {
        return value[0] != '\0';
    }
    return me_parse_u64(value, &ranks) == ME_OK &&
           ranks == (uint64_t)config->parallel.world_size;
}

me_status me_exported_say(const char *const *words, int count,
                          me_config *config, me_diag *diag)
{
    me_status status = ME_OK;
    for (int i = 0; status == ME_OK && i < count; i++) {
        const char *word = words[i];
        const size_t length = strcspn(word, "=");
        char name[128];
        (void)snprintf(name, sizeof name, "%.*s", (int)length, word);
        const char *shell = getenv(name);
        const char *used = me_config_variable(config, name);
        if (shell != NULL && used != NULL && strcmp(shell, used) == 0 &&
            strcmp(word + length + 1, shell) == 0 &&
            counts(name, shell, config)) {
            status = me_config_assume(config, diag,
                                      "%.200s, which this shell exports", word);
        }
    }
    return status;
}
