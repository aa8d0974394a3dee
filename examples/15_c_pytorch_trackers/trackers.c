/* SPDX-License-Identifier: BSD-3-Clause */
/* MemTracker and MemoryTracker of PyTorch on a small model. */
#include <inttypes.h>
#include <memest/memest.h>
#include <stdio.h>

enum {
    RANK = 0,
    LIMIT_BYTES = 130 << 20,
    N_LARGEST = 3
};

static void print_categories(const memest_tracker *tracker)
{
    memest_snapshot peak = MEMEST_INIT(memest_snapshot);
    if (!memest_tracker_peak(tracker, MEMEST_PLACE_GPU, &peak)) {
        return;
    }
    printf("peak: %" PRIu64 " bytes\n", peak.total_bytes);
    for (size_t i = 0; i < peak.n_categories; i++) {
        printf("  %-10s %" PRIu64 "\n",
               memest_tracker_category_name(tracker, i),
               peak.category_bytes[i]);
    }
}

static void print_modules(const memest_tracker *tracker)
{
    for (size_t i = 0; i < memest_tracker_n_modules(tracker); i++) {
        memest_tracked_module module = MEMEST_INIT(memest_tracked_module);
        if (!memest_tracker_module(tracker, i, &module)) {
            continue;
        }
        printf("%s: %" PRIu64 " bytes of parameters, %" PRIu64
               " of output; states",
               module.name, module.parameter_bytes, module.output_bytes);
        for (size_t s = 0; s < module.n_states; s++) {
            memest_snapshot then = MEMEST_INIT(memest_snapshot);
            if (memest_tracker_module_snapshot(tracker, i, s, 0,
                                               MEMEST_PLACE_GPU, &then)) {
                printf("%s %s %" PRIu64, s == 0 ? "" : ",",
                       memest_tracker_state_name(tracker, i, s),
                       then.total_bytes);
            }
        }
        printf("\n");
    }
}

/** Enough is enough: what a hook does not return 0 for ends the run. */
static int check_limit(void *self, const memest_block_event *event)
{
    const memest_tracker *tracker = self;
    memest_snapshot now = MEMEST_INIT(memest_snapshot);
    (void)event;
    return memest_tracker_current(tracker, MEMEST_PLACE_GPU, &now) &&
           now.total_bytes > LIMIT_BYTES;
}

static memest_status run_mem(const memest_job *job, memest_error *error)
{
    memest_tracker *tracker = NULL;
    memest_tracker_options options = MEMEST_INIT(memest_tracker_options);
    options.tool = MEMEST_TOOL_MEM;
    options.iteration = 1;
    memest_status status = memest_tracker_create(&options, &tracker, error);
    if (status == MEMEST_OK) {
        status = memest_track(job, RANK, tracker, NULL, 0, error);
    }
    if (status == MEMEST_OK) {
        print_categories(tracker);
        print_modules(tracker);
        memest_observer observer = MEMEST_INIT(memest_observer);
        const memest_observer *observers[] = {&observer};
        observer.self = tracker;
        observer.alloc = check_limit;
        status = memest_track(job, RANK, tracker, observers, 1, error);
    }
    if (status == MEMEST_ERR_STOPPED) {
        printf("stopped: %s\n", memest_error_text(error));
        status = MEMEST_OK;
    }
    memest_tracker_destroy(tracker);
    return status;
}

static memest_status run_memory(const memest_job *job, memest_error *error)
{
    memest_tracker *tracker = NULL;
    memest_tracker_options options = MEMEST_INIT(memest_tracker_options);
    options.tool = MEMEST_TOOL_MEMORY;
    options.iteration = 1;
    memest_status status = memest_tracker_create(&options, &tracker, error);
    if (status == MEMEST_OK) {
        status = memest_track(job, RANK, tracker, NULL, 0, error);
    }
    if (status == MEMEST_OK) {
        const memest_series *series = memest_tracker_series(tracker);
        printf("%zu operations, the largest\n",
               memest_series_n_operations(series));
        memest_growth growth = MEMEST_INIT(memest_growth);
        for (size_t i = 0;
             i < N_LARGEST && memest_series_top(series, i, &growth); i++) {
            printf("%zu. %s: %" PRId64 " bytes\n", i + 1, growth.name,
                   growth.bytes);
        }
    }
    memest_tracker_destroy(tracker);
    return status;
}

int main(void)
{
    static const char job_text[] =
        "framework = \"torch\";\n"
        "torch = { input_shape = \"(256, 1024)\"; };\n"
        "module = {\n"
        "  class_name = \"Mlp\";\n"
        "  up = { class = \"Linear\"; in_features = 1024;\n"
        "         out_features = 4096; };\n"
        "  act = { class = \"GELU\"; };\n"
        "  down = { class = \"Linear\"; in_features = 4096;\n"
        "           out_features = 1024; };\n"
        "};\n";
    memest_error *error = memest_error_create();
    memest_job *job = memest_job_create();
    if (error == NULL || job == NULL) {
        return 1;
    }
    memest_status status = memest_job_read_text(job, "trackers.c", job_text,
                                                sizeof job_text - 1, error);
    if (status == MEMEST_OK) {
        status = run_mem(job, error);
    }
    if (status == MEMEST_OK) {
        status = run_memory(job, error);
    }
    if (status != MEMEST_OK) {
        fprintf(stderr, "trackers: %s:%d: %s\n", memest_error_file(error),
                memest_error_line(error), memest_error_text(error));
    }
    memest_job_destroy(job);
    memest_error_destroy(error);
    return status == MEMEST_OK ? 0 : 1;
}
