/* SPDX-License-Identifier: BSD-3-Clause */
/* `memest track` with one request for host memory failing, in growing steps:
 * each time it must say so and leave nothing behind. */
#include "app/track_command.h"
#include "support/command_faults.h"

#define REPORT "track_faults.report"

enum {
    STEP = 12, /* each step is a 12th of the way longer */
    MOST = 1000000
};

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
    assert_in_range(command_sweep(me_track, &cli, STEP, MOST), 100, MOST - 1);
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
