/* SPDX-License-Identifier: BSD-3-Clause */
/* `memest track` with one request for host memory failing, in growing steps:
 * each time it must say so and leave nothing behind. */
#include "app/estimate_command.h"
#include "app/track_command.h"
#include "base/alloc.h"
#include "support/test.h"

#include <string.h>
#include <unistd.h>

#define REPORT "track_faults.report"

enum {
    STEP = 12, /* each step is a 12th of the way longer */
    MOST = 1000000
};

/* @return requests that were made */
static uint64_t run(const me_cli *cli, uint64_t nth, int *code_out,
                    me_diag *diag)
{
    me_transport *transport = NULL;
    assert_int_equal(me_transport_local_create(&transport), ME_OK);
    if (nth % 2 == 0) {
        me_alloc_fail_at(nth);
    } else {
        me_alloc_fail_once(nth);
    }
    *code_out = me_track(transport, cli, diag);
    const uint64_t requests = me_alloc_count();
    me_alloc_fail_at(0);
    me_transport_destroy(transport);
    return requests;
}

/* @return whether the request number @p nth was made, and so failed */
static bool fail_at(const me_cli *cli, uint64_t nth)
{
    int code = ME_EXIT_OK;
    me_diag diag = {0};
    const bool has_failed = run(cli, nth, &code, &diag) >= nth;
    if (has_failed &&
        (code != ME_EXIT_INTERNAL || diag.status != ME_ERR_NOMEM ||
         diag.text[0] == '\0' || access(REPORT, F_OK) == 0)) {
        fail_msg("request %llu failed: exit code %d, status \"%s\", \"%s\"",
                 (unsigned long long)nth, code, me_status_text(diag.status),
                 diag.text);
    }
    if (!has_failed && code != ME_EXIT_OK) {
        fail_msg("no request failed: exit code %d, \"%s\"", code, diag.text);
    }
    return has_failed;
}

static void sweep(const char *model, const char *tool, const char *format)
{
    const me_cli cli = {.command = "track",
                        .model = model,
                        .tool = tool,
                        .format = format,
                        .output = REPORT,
                        .tabulate = true,
                        .depth = 9,
                        .rank = -1,
                        .iteration = -1};
    uint64_t nth = 1;
    (void)unlink(REPORT);
    while (nth < MOST && fail_at(&cli, nth)) {
        nth += 1 + nth / STEP;
    }
    assert_in_range(nth, 100, MOST - 1);
    (void)unlink(REPORT);
}

static void test_mem(void **state)
{
    (void)state;
    static const char model[] =
        SOURCE_DIR "/tests/trackers/mem_tracker_checkpoint.cfg";
    sweep(model, "mem", "text");
    sweep(model, "mem", "json");
    sweep(model, "mod", "text");
}

/* Checkpoints of both kinds in another. */
static void test_nested(void **state)
{
    (void)state;
    sweep(SOURCE_DIR "/tests/golden/torch_checkpoints/job.cfg", "mem", "text");
}

static void test_fsdp2(void **state)
{
    (void)state;
    sweep(SOURCE_DIR "/tests/trackers/fsdp2_checkpoint.cfg", "fsdp2", "json");
}

static void test_memory(void **state)
{
    (void)state;
    static const char model[] = SOURCE_DIR "/tests/trackers/memory_tracker.cfg";
    sweep(model, "memory", "text");
    sweep(model, "memory", "json");
}

static void test_comm(void **state)
{
    (void)state;
    static const char model[] = SOURCE_DIR "/tests/jobs/tp2_lm_lp.cfg";
    sweep(model, "comm", "text");
    sweep(model, "comm", "json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mem),   cmocka_unit_test(test_nested),
        cmocka_unit_test(test_fsdp2), cmocka_unit_test(test_memory),
        cmocka_unit_test(test_comm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
