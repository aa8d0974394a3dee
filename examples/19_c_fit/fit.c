/* SPDX-License-Identifier: BSD-3-Clause */
/* What would make a job fit, and the job with the first of it. */
#include <inttypes.h>
#include <memest/memest.h>
#include <stdio.h>
#include <string.h>

static const char *const words[] = {"torchrun",
                                    "--nproc-per-node",
                                    "2",
                                    "pretrain_gpt.py",
                                    "--num-layers",
                                    "2",
                                    "--hidden-size",
                                    "512",
                                    "--num-attention-heads",
                                    "8",
                                    "--seq-length",
                                    "512",
                                    "--max-position-embeddings",
                                    "512",
                                    "--vocab-size",
                                    "32000",
                                    "--micro-batch-size",
                                    "4",
                                    "--global-batch-size",
                                    "8",
                                    "--bf16"};

enum {
    N_WORDS = sizeof words / sizeof words[0],
    OPTION_BYTES = 256
};

static void print_change(const memest_fit_change *change)
{
    printf("%d%s %s: rank %d takes %" PRIu64 " bytes", change->place,
           change->is_tie ? "=" : "", change->name, change->worst_rank,
           change->worst_bytes);
    if (change->has_step) {
        printf(", a step %s%.1f ms", change->is_lower_bound ? ">=" : "",
               1e3 * change->step);
    }
    printf("%s: %s\n", change->changes_numerics ? ", other losses" : "",
           change->flags);
}

/** "KEY=VALUE,KEY=VALUE": no value of this job's changes has a comma. */
static memest_status set_all(memest_job *job, const char *assignments,
                             memest_error *error)
{
    memest_status status = MEMEST_OK;
    while (*assignments != '\0' && status == MEMEST_OK) {
        char option[OPTION_BYTES];
        const size_t length = strcspn(assignments, ",");
        (void)snprintf(option, sizeof option, "%.*s", (int)length, assignments);
        char *equals = strchr(option, '=');
        if (equals == NULL) {
            break;
        }
        *equals = '\0';
        status = memest_job_set(job, option, equals + 1, error);
        assignments += length + (assignments[length] == ',');
    }
    return status;
}

static memest_status try_again(memest_job *job, const memest_fit_change *change,
                               memest_error *error)
{
    memest_report *report = NULL;
    memest_verdict verdict = MEMEST_INIT(memest_verdict);
    memest_status status = set_all(job, change->assignments, error);
    if (status == MEMEST_OK) {
        status = memest_estimate(job, NULL, &report, error);
    }
    if (status == MEMEST_OK && memest_report_verdict(report, &verdict)) {
        printf("again, with %s: %s, and it %s\n", change->name,
               verdict.worst_bytes == change->worst_bytes ? "the same bytes"
                                                          : "other bytes",
               verdict.lets_go ? "fits" : "does not fit");
    }
    memest_report_destroy(report);
    return status;
}

static memest_status run(memest_job *job, memest_error *error)
{
    memest_fitting *fitting = NULL;
    memest_fit_change change = MEMEST_INIT(memest_fit_change);
    memest_verdict verdict = MEMEST_INIT(memest_verdict);
    memest_status status = memest_fit(job, NULL, &fitting, error);
    if (status != MEMEST_OK) {
        return status;
    }
    if (memest_report_verdict(memest_fitting_report(fitting), &verdict)) {
        printf("%s: rank %d takes %" PRIu64 " bytes of %" PRIu64 "\n",
               verdict.lets_go ? "fits" : "does not fit", verdict.worst_rank,
               verdict.worst_bytes, verdict.capacity_bytes);
    }
    for (size_t i = 0; memest_fitting_change(fitting, i, &change); i++) {
        print_change(&change);
    }
    if (memest_fitting_change(fitting, 0, &change)) {
        status = try_again(job, &change, error);
    }
    memest_fitting_destroy(fitting);
    return status;
}

int main(void)
{
    memest_error *error = memest_error_create();
    memest_job *job = memest_job_create();
    if (error == NULL || job == NULL) {
        return 1;
    }
    memest_status status = memest_job_read_launch(job, N_WORDS, words, error);
    if (status == MEMEST_OK) {
        status = memest_job_set(job, "device.memory_limit", "900MiB", error);
    }
    if (status == MEMEST_OK) {
        status = run(job, error);
    }
    if (status != MEMEST_OK) {
        fprintf(stderr, "fit: %s\n", memest_error_text(error));
    }
    memest_job_destroy(job);
    memest_error_destroy(error);
    return status == MEMEST_OK ? 0 : 1;
}
