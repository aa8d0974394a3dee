/* SPDX-License-Identifier: BSD-3-Clause */
/* One job under several schedules and settings. */
#include <inttypes.h>
#include <memest/memest.h>
#include <stdio.h>

static const char *const schedules[] = {"gpipe", "1f1b", "interleaved:2"};
static const char *const variants[] = {
    "larger:train.micro_batch_size=2",
    "odd:parallel.tensor=3",
};

enum {
    N_SCHEDULES = sizeof schedules / sizeof schedules[0],
    N_VARIANTS = sizeof variants / sizeof variants[0]
};

static void print_row(const memest_compare_row *row)
{
    if (row->reason != NULL) {
        printf("-  %-14s %-7s cannot run: %s\n", row->schedule, row->variant,
               row->reason);
        return;
    }
    printf("%d%s %-14s %-7s %" PRIu64 " requested, %" PRIu64
           " reserved on rank %d, %.2f micro-batches in flight, %s",
           row->place, row->is_tie ? "=" : " ", row->schedule, row->variant,
           row->requested_bytes, row->reserved_bytes, row->worst_rank,
           (double)row->in_flight / row->chunks,
           row->place > 0 ? "fits" : "does not fit, or nobody knows");
    if (row->has_step) {
        printf(", %s%.1f ms a step, %.0f %% of it bubble",
               row->host_lacks == NULL ? "" : ">=", 1e3 * row->step,
               1e2 * row->bubble / row->forward_backward);
    }
    printf("\n");
}

static void print(const memest_comparison *comparison)
{
    const size_t n = memest_comparison_n_rows(comparison);
    for (size_t i = 0; i < n; i++) {
        memest_compare_row row = MEMEST_INIT(memest_compare_row);
        if (memest_comparison_row(comparison, i, &row)) {
            print_row(&row);
        }
    }
    const memest_report *first = memest_comparison_report(comparison, 0);
    memest_verdict verdict = MEMEST_INIT(memest_verdict);
    memest_peak peak = MEMEST_INIT(memest_peak);
    if (first != NULL && memest_report_verdict(first, &verdict) &&
        memest_report_peak(first, verdict.worst_rank, &peak)) {
        printf("first of %zu: its worst rank peaks in a %s, %s\n", n,
               peak.phase, peak.module);
    }
}

static memest_status run(const memest_job *job, memest_error *error)
{
    memest_comparison *comparison = NULL;
    memest_compare_options options = MEMEST_INIT(memest_compare_options);
    options.schedules = schedules;
    options.n_schedules = N_SCHEDULES;
    options.variants = variants;
    options.n_variants = N_VARIANTS;
    const memest_status status =
        memest_compare(job, &options, &comparison, error);
    if (status == MEMEST_OK) {
        print(comparison);
    }
    memest_comparison_destroy(comparison);
    return status;
}

int main(void)
{
    static const char job_text[] =
        "model = { num_layers = 8; hidden_size = 1024;\n"
        "          num_attention_heads = 16; seq_length = 1024;\n"
        "          vocab_size = 32000; };\n"
        "parallel = { world_size = 8; tensor = 2; pipeline = 4; };\n"
        "train = { micro_batch_size = 1; global_batch_size = 16; };\n"
        "device = { name = \"h100-80gb\"; };\n";
    memest_error *error = memest_error_create();
    memest_job *job = memest_job_create();
    if (error == NULL || job == NULL) {
        return 1;
    }
    memest_status status = memest_job_read_text(job, "compare.c", job_text,
                                                sizeof job_text - 1, error);
    if (status == MEMEST_OK) {
        status = run(job, error);
    }
    if (status != MEMEST_OK) {
        fprintf(stderr, "compare: %s:%d: %s\n", memest_error_file(error),
                memest_error_line(error), memest_error_text(error));
    }
    memest_job_destroy(job);
    memest_error_destroy(error);
    return status == MEMEST_OK ? 0 : 1;
}
