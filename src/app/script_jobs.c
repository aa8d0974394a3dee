/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/script_jobs.h"

#include "app/launch_files.h"
#include "app/launch_variables.h"
#include "base/log.h"
#include "base/parse.h"
#include "config/launch_command.h"
#include "config/wrappers.h"

#include <inttypes.h>
#include <string.h>

/** Without the hosts' names, do two lists of mpirun's `--host` say the same? */
static bool have_same_slots(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        a += strcspn(a, ":,");
        b += strcspn(b, ":,");
        const size_t n = strcspn(a, ",");
        if (n != strcspn(b, ",") || strncmp(a, b, n) != 0) {
            return false;
        }
        a += n + (a[n] == ',');
        b += n + (b[n] == ',');
    }
    return *a == *b;
}

/** Do two words that differ say where mpirun starts as many ranks? */
static bool are_hosts(const me_script_launch *a, const me_script_launch *b,
                      int i)
{
    static const char *const options[] = {"-host", "--host", "-H", "-hosts"};
    const me_wrapper *first = me_wrapper_find(a->argv[0]);
    return first != NULL && first->kind == ME_WRAPPER_MPIRUN && i > 0 &&
           me_is_one_of(a->argv[i - 1], strlen(a->argv[i - 1]), options, 4) &&
           have_same_slots(a->argv[i], b->argv[i]);
}

/** Two launches of one job: those of its nodes, or after a restart, differ in
 *  where they meet. */
static bool is_same_job(const me_script_launch *a, const me_script_launch *b)
{
    static const char *const own[] = {
        "--node_rank", "--node-rank", "--machine_rank", "--rdzv_id",
        "--rdzv-id", "--rdzv_endpoint", "--rdzv-endpoint", "--master_port",
        "--master-port", "--master_addr", "--master-addr",
        // srun's: where a step of the job runs, and what it prints
        "-w", "--nodelist", "-r", "--relative", "-o", "--output", "-e",
        "--error", "-J", "--job-name"};

    enum {
        N_OWN = sizeof own / sizeof *own
    };

    bool is_same = a->argc == b->argc && me_launch_means_same(a, b) &&
                   me_launch_variables_differ(a, b) == NULL;
    for (int i = 0; is_same && i < a->argc; i++) {
        const char *word = a->argv[i];
        const char *before = i == 0 ? "" : a->argv[i - 1];
        const bool is_letter = word[0] == '-' && word[1] != '-';
        const size_t n = is_letter && strlen(word) > 2 ? 2 : strcspn(word, "=");
        is_same = strcmp(word, b->argv[i]) == 0 || are_hosts(a, b, i) ||
                  me_is_one_of(before, strlen(before), own, N_OWN) ||
                  (me_is_one_of(word, n, own, N_OWN) &&
                   strncmp(word, b->argv[i], n) == 0);
    }
    return is_same;
}

/** The jobs among the launches: those of scripts that are modelled, or all
 *  where none is. */
static uint32_t find_jobs(const me_script *script,
                          const me_script_launch **jobs)
{
    uint32_t count = 0;
    for (int needs_known = 1; count == 0 && needs_known >= 0; needs_known--) {
        for (uint32_t i = 0; i < script->n_launches; i++) {
            const me_script_launch *launch = &script->launches[i];
            bool is_new = needs_known == 0 ||
                          me_launch_names_job(launch->argc, launch->argv);
            for (uint32_t j = 0; is_new && j < count; j++) {
                is_new = !is_same_job(launch, jobs[j]);
            }
            if (is_new) {
                jobs[count++] = launch;
            }
        }
    }
    return count;
}

static void tell_words(const char *name, uint32_t number,
                       const me_script_launch *launch)
{
    me_str text = {0};
    for (int i = 0; i < launch->argc; i++) {
        me_str_append(&text, i == 0 ? "" : " ");
        me_str_append_clean(&text, launch->argv[i], strlen(launch->argv[i]));
    }
    me_log(ME_LOG_INFO, "%s: launch %" PRIu32 ": %s", name, number,
           me_str_text(&text));
    me_str_fini(&text);
}

static void tell(const char *name, const me_script *script,
                 const me_script_launch *const *jobs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        tell_words(name, i + 1, jobs[i]);
    }
    if (!script->is_replaced) {
        me_log(ME_LOG_INFO,
               "%s: programs that it calls by their paths did not run, since "
               "processes cannot be traced here",
               name);
    }
}

/** Where jobs differ first, for who has to pick one. */
static me_status refuse_many(const char *name,
                             const me_script_launch *const *jobs,
                             uint32_t count, me_diag *diag)
{
    int at = 0;
    while (at < jobs[0]->argc && at < jobs[1]->argc &&
           strcmp(jobs[0]->argv[at], jobs[1]->argv[at]) == 0) {
        at++;
    }
    const char *variable = me_launch_variables_differ(jobs[0], jobs[1]);
    if (at == jobs[0]->argc && at == jobs[1]->argc && variable != NULL) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s launches %" PRIu32 " jobs: give --launch 1 to "
                       "%" PRIu32 "; the first two have the same words, and "
                       "one of them has %.80s",
                       name, count, count, variable);
    }
    if (at == jobs[0]->argc && at == jobs[1]->argc) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "%s launches %" PRIu32 " jobs: give --launch 1 to "
                       "%" PRIu32 "; the first two have the same words, which "
                       "name other files",
                       name, count, count);
    }
    const char *first = at < jobs[0]->argc ? jobs[0]->argv[at] : "nothing";
    const char *second = at < jobs[1]->argc ? jobs[1]->argv[at] : "nothing";
    const char *flag = at > 0 && jobs[0]->argv[at - 1][0] == '-'
                           ? jobs[0]->argv[at - 1]
                           : "what follows";
    return me_fail(diag, ME_ERR_CONFIG,
                   "%s launches %" PRIu32 " jobs: give --launch 1 to %" PRIu32
                   "; the first two differ in %.60s: '%.60s', '%.60s'",
                   name, count, count, flag, first, second);
}

/** `python FILE`, in no launcher: it may be a job that is not modelled, or print
 *  what the script wants to know. */
static bool is_helper(const me_script_launch *launch)
{
    const me_wrapper *first = me_wrapper_find(launch->argv[0]);
    return first != NULL && first->kind == ME_WRAPPER_PYTHON &&
           launch->argc > 1 && strcmp(launch->argv[1], "-m") != 0 &&
           !me_launch_names_job(launch->argc, launch->argv);
}

/** A script that ended before its job: all that it started is what it would have
 *  printed for it, such as its variables. */
static me_status refuse_early_end(const me_script *script, const char *name,
                                  const me_script_launch *launch, me_diag *diag)
{
    me_str words = {0};
    for (int i = 0; i < launch->argc; i++) {
        me_str_append(&words, i == 0 ? "" : " ");
        me_str_append_clean(&words, launch->argv[i], strlen(launch->argv[i]));
    }
    const me_status status = me_fail(
        diag, ME_ERR_CONFIG,
        "%s ended with exit code %d behind '%.200s', a program that prints "
        "nothing here, and launched no job%s%s",
        name, script->exit_code, me_str_text(&words),
        script->last_line[0] == '\0' ? "" : "; it said: ", script->last_line);
    me_str_fini(&words);
    return status;
}

me_status me_script_job_pick(const me_script *script, const char *name,
                             uint32_t asked, me_diag *diag,
                             me_script_job *job_out)
{
    const me_script_launch *jobs[ME_SCRIPT_LAUNCHES_MAX];
    const uint32_t count = find_jobs(script, jobs);
    tell(name, script, jobs, count);
    if (script->exit_code > 0 && count > 0 && is_helper(jobs[0])) {
        return refuse_early_end(script, name, jobs[count - 1], diag);
    }
    if (asked == 0 && count > 1) {
        return refuse_many(name, jobs, count, diag);
    }
    const uint32_t number = asked == 0 ? 1 : asked;
    if (number > count) {
        return me_fail(diag, ME_ERR_CONFIG,
                       "--launch %" PRIu32 ": %s launches %" PRIu32 " job%s",
                       number, name, count, me_plural(count));
    }
    *job_out = (me_script_job){
        .launch = jobs[number - 1], .number = number, .n_jobs = count};
    return ME_OK;
}
