/* SPDX-License-Identifier: BSD-3-Clause */
/* A job is described, estimated, read and asked for its verdict. */
#include <inttypes.h>
#include <memest/memest.h>
#include <stdio.h>
#include <string.h>

static const double gib = 1024.0 * 1024.0 * 1024.0;

/** Llama 3 8B of configs/models, spread over eight ranks. */
static memest_status describe(memest_job *job, memest_error *error)
{
    static const char *const options[][2] = {
        {"parallel.world_size", "8"},      {"parallel.tensor", "2"},
        {"parallel.pipeline", "2"},        {"train.micro_batch_size", "1"},
        {"train.global_batch_size", "16"}, {"optimizer.distributed", "true"},
        {"device.name", "h100-80gb"},
    };
    memest_status status = memest_job_read_file(job, "llama-3-8b", error);
    for (size_t i = 0;
         status == MEMEST_OK && i < sizeof options / sizeof options[0]; i++) {
        status = memest_job_set(job, options[i][0], options[i][1], error);
    }
    return status;
}

/** A line a rank: where it stands, its four kinds of bytes, where the peak is. */
static void print_ranks(const memest_report *report)
{
    printf(
        "rank class stage requested allocated  reserved    device  peak, GiB\n");
    for (int32_t i = 0; i < memest_report_world_size(report); i++) {
        memest_rank rank = MEMEST_INIT(memest_rank);
        memest_peak peak = MEMEST_INIT(memest_peak);
        if (memest_report_rank(report, i, &rank) &&
            memest_report_peak(report, i, &peak)) {
            printf("%4d %5d %5d %9.3f %9.3f %9.3f %9.3f  %s%s%s\n", i,
                   rank.class_id, rank.pp, (double)peak.requested_bytes / gib,
                   (double)peak.allocated_bytes / gib,
                   (double)peak.reserved_bytes / gib,
                   (double)peak.device_bytes / gib, peak.phase,
                   peak.module[0] == '\0' ? "" : " of ", peak.module);
        }
    }
}

/** What is live at a rank's peak; adds up to it. */
static void print_categories(const memest_report *report, int32_t rank)
{
    printf("\nat the peak of rank %d:\n", rank);
    for (int i = 0; i < MEMEST_CATEGORY_COUNT; i++) {
        const memest_category category = (memest_category)i;
        printf("%-16s %12" PRIu64 "\n", memest_category_name(category),
               memest_report_peak_category_bytes(report, rank, category));
    }
}

/** What the parts of the first layer keep for the backward of a micro-batch. */
static void print_layer(const memest_report *report, int32_t rank)
{
    static const char layer[] = "decoder.layers.0.";
    printf("\nactivations of %s of rank %d:\n", layer, rank);
    for (size_t i = 0; i < memest_report_n_modules(report, rank); i++) {
        memest_module module = MEMEST_INIT(memest_module);
        if (memest_report_module(report, rank, i, &module) &&
            strncmp(module.name, layer, sizeof layer - 1) == 0) {
            printf("%-30s %12" PRIu64 "\n", module.name + sizeof layer - 1,
                   module.activation_bytes);
        }
    }
}

static memest_status print(const memest_report *report, memest_error *error)
{
    memest_verdict verdict = MEMEST_INIT(memest_verdict);
    char *json = NULL;
    size_t length = 0;
    print_ranks(report);
    print_categories(report, 0);
    print_layer(report, 0);
    if (memest_report_verdict(report, &verdict)) {
        printf("\nrank %d is the worst: %.3f of %.3f GiB, %s\n",
               verdict.worst_rank, (double)verdict.worst_bytes / gib,
               (double)verdict.capacity_bytes / gib,
               verdict.lets_go ? "go" : "do not start it");
    }
    const memest_status status =
        memest_report_text(report, MEMEST_FORMAT_JSON, &json, &length, error);
    if (status == MEMEST_OK) {
        printf("the report as JSON has %zu bytes\n", length);
    }
    memest_text_destroy(json);
    return status;
}

int main(void)
{
    memest_error *error = memest_error_create();
    memest_job *job = memest_job_create();
    memest_report *report = NULL;
    if (error == NULL || job == NULL) {
        return 1;
    }
    memest_status status = describe(job, error);
    if (status == MEMEST_OK) {
        status = memest_estimate(job, NULL, &report, error);
    }
    if (status == MEMEST_OK) {
        status = print(report, error);
    }
    if (status != MEMEST_OK) {
        fprintf(stderr, "estimate: %s\n", memest_error_text(error));
    }
    memest_report_destroy(report);
    memest_job_destroy(job);
    memest_error_destroy(error);
    return status == MEMEST_OK ? 0 : 1;
}
