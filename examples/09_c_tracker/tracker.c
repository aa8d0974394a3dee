/* SPDX-License-Identifier: BSD-3-Clause */
/* A tracker of one's own: how much is live while each module's forward runs.
 * memest's report says the same, and both are compared. */
#include <inttypes.h>
#include <memest/memest.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_MODULES = 4096,
    MAX_DEPTH = 64,
    RANK = 0,
    STEADY = 1 /**< the iteration that the report's modules are of */
};

/** What is known of a module, by its number. */
typedef struct stats {
    char name[128];
    size_t depth;
    uint64_t peak_bytes; /**< live in the whole rank while its forward ran */
} stats;

typedef struct tracker {
    uint64_t live_bytes;
    uint32_t running[MAX_DEPTH]; /**< forwards that run, outermost first */
    size_t n_running;
    stats modules[MAX_MODULES];
    uint64_t n_allocations; /**< of the steady iteration */
} tracker;

/** What is live now was live while all of these ran. */
static void note_peak(tracker *t)
{
    for (size_t i = 0; i < t->n_running; i++) {
        stats *module = &t->modules[t->running[i]];
        if (t->live_bytes > module->peak_bytes) {
            module->peak_bytes = t->live_bytes;
        }
    }
}

static int pre_forward(void *self, const memest_module_event *event)
{
    tracker *t = self;
    if (event->at.iteration == STEADY && !event->is_backward &&
        event->module < MAX_MODULES && t->n_running < MAX_DEPTH) {
        stats *module = &t->modules[event->module];
        (void)snprintf(module->name, sizeof module->name, "%s", event->path);
        module->depth = event->n_parents;
        t->running[t->n_running++] = event->module;
        note_peak(t);
    }
    return 0;
}

static int post_forward(void *self, const memest_module_event *event)
{
    tracker *t = self;
    if (event->at.iteration == STEADY && !event->is_backward &&
        t->n_running > 0) {
        t->n_running--;
    }
    return 0;
}

static int on_alloc(void *self, const memest_block_event *event)
{
    tracker *t = self;
    t->live_bytes += event->bytes;
    t->n_allocations += event->at.iteration == STEADY;
    note_peak(t);
    return 0;
}

static int on_free(void *self, const memest_block_event *event)
{
    tracker *t = self;
    t->live_bytes -= event->bytes;
    return 0;
}

static memest_status track(const memest_job *job, tracker *t,
                           memest_error *error)
{
    memest_observer observer = MEMEST_INIT(memest_observer);
    observer.self = t;
    observer.pre_forward = pre_forward;
    observer.post_forward = post_forward;
    observer.alloc = on_alloc;
    observer.free_completed = on_free;
    const memest_observer *observers[] = {&observer};
    return memest_observe(job, RANK, observers, 1, error);
}

static const stats *find(const tracker *t, const char *name)
{
    for (size_t i = 0; i < MAX_MODULES; i++) {
        if (strcmp(t->modules[i].name, name) == 0) {
            return &t->modules[i];
        }
    }
    return NULL;
}

/** Lists of modules never run by themselves, only what is in them.
 *  @return modules whose peak is not the report's */
static size_t compare(const tracker *t, const memest_report *report)
{
    size_t n_different = 0;
    for (size_t i = 0; i < memest_report_n_modules(report, RANK); i++) {
        memest_module module = MEMEST_INIT(memest_module);
        if (!memest_report_module(report, RANK, i, &module) ||
            module.forward_peak_bytes == MEMEST_BYTES_UNKNOWN) {
            continue;
        }
        const stats *own = find(t, module.name);
        if (own == NULL) {
            continue;
        }
        n_different += own->peak_bytes != module.forward_peak_bytes;
        printf("%*s%s %" PRIu64 "\n", (int)(2 * own->depth), "", module.name,
               own->peak_bytes);
    }
    return n_different;
}

static memest_status run(const memest_job *job, tracker *t, size_t *n_different,
                         memest_error *error)
{
    memest_report *report = NULL;
    memest_status status = track(job, t, error);
    if (status == MEMEST_OK) {
        status = memest_estimate(job, NULL, &report, error);
    }
    if (status == MEMEST_OK) {
        *n_different = compare(t, report);
        printf("%" PRIu64 " allocations, %zu modules that the report has "
               "otherwise\n",
               t->n_allocations, *n_different);
    }
    memest_report_destroy(report);
    return status;
}

int main(void)
{
    static const char job_text[] =
        "model = { num_layers = 2; hidden_size = 256;\n"
        "          num_attention_heads = 4; seq_length = 128;\n"
        "          vocab_size = 1000; };\n"
        "parallel = { world_size = 2; tensor = 2; };\n"
        "train = { micro_batch_size = 1; global_batch_size = 4; };\n"
        "recompute = { granularity = \"selective\"; };\n";
    static tracker t;
    size_t n_different = 0;
    memest_error *error = memest_error_create();
    memest_job *job = memest_job_create();
    if (error == NULL || job == NULL) {
        return 1;
    }
    memest_status status = memest_job_read_text(job, "tracker.c", job_text,
                                                sizeof job_text - 1, error);
    if (status == MEMEST_OK) {
        status = run(job, &t, &n_different, error);
    }
    if (status != MEMEST_OK) {
        fprintf(stderr, "tracker: %s:%d: %s\n", memest_error_file(error),
                memest_error_line(error), memest_error_text(error));
    }
    memest_job_destroy(job);
    memest_error_destroy(error);
    return status == MEMEST_OK && n_different == 0 ? 0 : 1;
}
