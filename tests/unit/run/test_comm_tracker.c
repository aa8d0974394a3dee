/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that PyTorch was recorded with, set-up and two iterations: names,
 * process groups and sizes, in their order. */
#include "support/watch.h"
#include "track/comm_tracker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES = 160,
    PATH_BYTES = 512,
    MOST_SETS = 4,
    ITERATIONS = 2
};

/** A job and rank of the table, and how many rows it has there. */
typedef struct recording {
    const char *job; /**< of tests/jobs */
    int32_t rank;
    uint32_t rows;
    const char *sets[MOST_SETS];
} recording;

#define SHORT_TEXT "torch.input_shape=(2, 64)"
#define SHORT_PIPELINE                                                         \
    "torch.input_shape=(2, 8, 1024)", "train.global_batch_size=8"

static const recording recordings[] = {
    {"ddp2_buf", 0, 11, {NULL}},
    {"ddp2_tf", 0, 13, {SHORT_TEXT}},
    {"ddp2_tf_unused", 0, 18, {SHORT_TEXT}},
    {"ddp2_tf_static", 0, 7, {SHORT_TEXT}},
    {"fsdp2_tf_clip", 0, 33, {SHORT_TEXT}},
    {"fsdp2_tf_mp", 0, 31, {SHORT_TEXT}},
    {"hsdp4_tf_clip", 0, 43, {SHORT_TEXT}},
    {"tp2_tf", 0, 92, {SHORT_TEXT}},
    {"tp2_tf_sp_clip", 0, 296, {SHORT_TEXT}},
    {"tp2_lm_lp", 0, 128, {SHORT_TEXT}},
    {"tp2_fsdp2_lm_clip", 0, 124, {SHORT_TEXT}},
    {"tp2_ddp_tf", 0, 102, {SHORT_TEXT, "parallel.world_size=4"}},
    {"tp2_ddp_tf", 3, 102, {SHORT_TEXT, "parallel.world_size=4"}},
    {"pp4_1f1b", 0, 21, {SHORT_PIPELINE}},
    {"pp4_1f1b", 1, 41, {SHORT_PIPELINE}},
    {"pp4_1f1b", 3, 21, {SHORT_PIPELINE}},
    {"pp4_int1f1b", 1, 81, {SHORT_PIPELINE}},
    {"pp4_gpipe", 2, 41, {SHORT_PIPELINE}},
    {"tp2_fsdp2_lm_gs", 0, 124, {SHORT_TEXT}},
    {"tp2_tf", 1, 92, {SHORT_TEXT}},
};

/** One rank that runs, and what the table says of it. */
typedef struct tracking {
    const recording *recording;
    int32_t iteration;
    me_comm_tracker *tracker;
    uint32_t at; /**< of the rows, those of all iterations together */
} tracking;

static me_status begin(void *self, me_engine *e, me_diag *diag)
{
    (void)diag;
    tracking *t = self;
    t->tracker = me_comm_tracker_create(e, t->iteration);
    assert_non_null(t->tracker);
    return ME_OK;
}

static me_status end(void *self, me_diag *diag)
{
    (void)self;
    (void)diag;
    return ME_OK;
}

/** What the table has as the row: job, rank, iteration, operation, group,
 *  ranks, bytes. */
static void print_row(const recording *of, const me_comm_row *row,
                      char line[LINE_BYTES])
{
    char iteration[16] = "setup";
    char bytes[32] = "-";
    if (row->iteration >= 0) {
        (void)snprintf(iteration, sizeof iteration, "%d", (int)row->iteration);
    }
    if (row->op.has_bytes) {
        (void)snprintf(bytes, sizeof bytes, "%llu",
                       (unsigned long long)row->op.bytes);
    }
    (void)snprintf(line, LINE_BYTES, "%s\t%d\t%s\t%s\t%s\t%d\t%s\n", of->job,
                   (int)of->rank, iteration, row->op.name,
                   me_group_kind_name(row->op.group), (int)row->op.group_size,
                   bytes);
}

/** The next row of the table that is of the job and rank. */
static bool next_row(FILE *file, const recording *of, char line[LINE_BYTES])
{
    char prefix[LINE_BYTES];
    (void)snprintf(prefix, sizeof prefix, "%s\t%d\t", of->job, (int)of->rank);
    while (fgets(line, LINE_BYTES, file) != NULL) {
        if (strncmp(line, prefix, strlen(prefix)) == 0) {
            return true;
        }
    }
    return false;
}

/** Set-up is told with each iteration, and checked with the first. */
static bool is_checked(const tracking *t, const me_comm_row *row)
{
    return row->iteration == t->iteration ||
           (row->iteration < 0 && t->iteration == 0);
}

static void check_iteration(tracking *t, FILE *file)
{
    uint32_t count = 0;
    const me_comm_row *rows = me_comm_tracker_rows(t->tracker, &count);
    for (uint32_t i = 0; i < count; i++) {
        char want[LINE_BYTES] = "none";
        char line[LINE_BYTES];
        if (!is_checked(t, &rows[i])) {
            continue;
        }
        print_row(t->recording, &rows[i], line);
        if (!next_row(file, t->recording, want) || strcmp(line, want) != 0) {
            fail_msg("row %u\nmemest  %sPyTorch %s", t->at, line, want);
        }
        t->at++;
    }
}

static void check_sums(const me_comm_tracker *t)
{
    uint32_t n_rows = 0;
    uint32_t n_sums = 0;
    const me_comm_row *rows = me_comm_tracker_rows(t, &n_rows);
    const me_comm_sum *sums = me_comm_tracker_sums(t, &n_sums);
    uint64_t counts[2] = {0};
    uint64_t bytes[2] = {0};
    for (uint32_t i = 0; i < n_rows; i++) {
        counts[0]++;
        bytes[0] += rows[i].op.bytes;
    }
    for (uint32_t i = 0; i < n_sums; i++) {
        counts[1] += sums[i].count;
        bytes[1] += sums[i].bytes;
        for (uint32_t k = 0; k < i; k++) {
            assert_false(sums[k].iteration == sums[i].iteration &&
                         sums[k].group == sums[i].group &&
                         strcmp(sums[k].name, sums[i].name) == 0);
        }
    }
    assert_int_equal(counts[0], counts[1]);
    assert_int_equal(bytes[0], bytes[1]);
}

static FILE *open_table(void)
{
    FILE *file = fopen(SOURCE_DIR "/tests/golden/trackers/comm_jobs.tsv", "r");
    assert_non_null(file);
    return file;
}

static void check_recording(const recording *r)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, SOURCE_DIR "/tests/jobs/%s.cfg", r->job);
    tracking t = {.recording = r};
    FILE *file = open_table();
    for (; t.iteration < ITERATIONS; t.iteration++) {
        test_job job;
        const me_watcher watcher = {.begin = begin, .end = end, .self = &t};
        test_job_watch_rank(path, r->sets, r->rank, &watcher, &job);
        check_iteration(&t, file);
        check_sums(t.tracker);
        me_comm_tracker_destroy(t.tracker);
        test_job_fini(&job);
    }
    char more[LINE_BYTES];
    assert_false(next_row(file, r, more));
    (void)fclose(file);
    assert_int_equal(t.at, r->rows);
}

static void test_recordings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof recordings / sizeof *recordings; i++) {
        check_recording(&recordings[i]);
    }
}

/* Every row of the table is of a recording above. */
static void test_whole_table(void **state)
{
    (void)state;
    FILE *file = open_table();
    char line[LINE_BYTES];
    uint32_t rows = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        rows += line[0] != '#';
    }
    (void)fclose(file);
    for (size_t i = 0; i < sizeof recordings / sizeof *recordings; i++) {
        rows -= recordings[i].rows;
    }
    assert_int_equal(rows, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recordings),
        cmocka_unit_test(test_whole_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
