/* SPDX-License-Identifier: BSD-3-Clause */
#include "script/batch.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** A file with a text; its name until the next call. */
static const char *file_of(const char *text)
{
    static char path[64];
    (void)snprintf(path, sizeof path, "/tmp/memest-test-batch-%d",
                   (int)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void test_reads_lines_up_to_the_first_command(void **state)
{
    (void)state;
    static me_batch batch;
    const char *path = file_of("#!/bin/bash\n"
                               "#SBATCH -N2 --ntasks-per-node 8 # cards\n"
                               "# a comment\n"
                               "\n"
                               "##SBATCH --nodes=7\n"
                               "#SBATCH --job-name=\"two words\" --exclusive\n"
                               "#SBATCH --unknown 5 --gres='gpu:h100:8'\r\n"
                               "echo\n"
                               "#SBATCH --nodes=9\n");
    batch = (me_batch){.nodes = 0};
    assert_true(me_batch_is_file(path));
    me_batch_read_file(&batch, path);
    (void)unlink(path);
    assert_int_equal(batch.nodes, 2);
    assert_int_equal(batch.tasks_per_node, 8);
    assert_string_equal(batch.name, "two words");
    assert_string_equal(batch.gres, "gpu:h100:8");
    assert_string_equal(batch.wrong, "");
}

static void test_other_files_have_none(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "#!/bin/bash\n", "ls\n#SBATCH -N 2",
                                        "# SBATCH -N 2\n", "\n\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *path = file_of(texts[i]);
        assert_false(me_batch_is_file(path));
        (void)unlink(path);
    }
    assert_false(me_batch_is_file("/no/such/file"));
}

static void test_words_end_at_the_script(void **state)
{
    (void)state;
    static me_batch batch;
    batch = (me_batch){.nodes = 0};
    static const char *const words[] = {
        "--parsable", "-n", "4", "--gpus=a100:4", "-W", "job.sh", "-N", "9"};
    assert_int_equal(me_batch_read_words(&batch, 8, words), 5);
    assert_true(batch.is_parsable);
    assert_int_equal(batch.tasks, 4);
    assert_int_equal(batch.nodes, 0);
    assert_string_equal(batch.gpus, "a100:4");
    static const char *const range[] = {"--nodes=2-4"};
    assert_int_equal(me_batch_read_words(&batch, 1, range), 1);
    assert_string_equal(batch.wrong,
                        "--nodes 2-4: must be a whole number: of a "
                        "range the one that will run");
}

static void test_variables_of_sbatch_win_over_the_file(void **state)
{
    (void)state;
    static me_batch batch;
    batch = (me_batch){.gres = "gpu:a100:4", .nodes = 2};
    setenv("SBATCH_GRES", "gpu:h100:8", 1);
    setenv("SBATCH_PARTITION", "hopper", 1);
    me_batch_read_environment(&batch);
    assert_string_equal(batch.gres, "gpu:h100:8");
    assert_string_equal(batch.partition, "hopper");
    assert_int_equal(batch.nodes, 2);
    unsetenv("SBATCH_GRES");
    unsetenv("SBATCH_PARTITION");
}

static void expect(const char *name, const char *value)
{
    const char *is = getenv(name);
    if (is == NULL || strcmp(is, value) != 0) {
        fail_msg("%s is %s, not %s", name, is == NULL ? "not there" : is,
                 value);
    }
}

static void set_variables(me_batch *batch)
{
    me_batch_job job;
    if (!me_batch_settle(batch, &job)) {
        fail_msg("%s", batch->wrong);
    }
    me_batch_set_variables(batch, &job);
}

static void test_memory_has_variables(void **state)
{
    (void)state;
    static me_batch batch;
    batch = (me_batch){.nodes = 0};
    static const char *const words[] = {"--mem=1T", "--mem-per-gpu", "64G"};
    assert_int_equal(me_batch_read_words(&batch, 3, words), 3);
    setenv("SBATCH_MEM_PER_NODE", "2T", 1);
    me_batch_read_environment(&batch);
    unsetenv("SBATCH_MEM_PER_NODE");
    setenv("SLURM_MEM_PER_CPU", "1", 1);
    set_variables(&batch);
    expect("SLURM_MEM_PER_NODE", "2097152");
    expect("SLURM_MEM_PER_GPU", "65536");
    assert_null(getenv("SLURM_MEM_PER_CPU"));
}

/** Jobs as a slurmctld of Slurm 22.05 with two nodes of eight GPUs took them:
 *  SLURM_NNODES, SLURM_NTASKS (0: not set), SLURM_GPUS_ON_NODE. */
static const struct {
    const char *options;
    uint32_t nodes; /**< 0: the job is refused */
    uint32_t tasks;
    uint32_t gpus;
    bool is_guess; /**< of the nodes, which the scheduler chose */
} jobs[] = {
    {"--gpus=16 --gpus-per-task=1", 2, 16, 8, true},
    {"--gpus=16 --gpus-per-task=2", 2, 8, 8, true},
    {"--gpus=16 --gpus-per-task=1 -N 2 -c 2", 2, 16, 8, false},
    {"--gpus-per-task=1 -n 4", 1, 4, 4, false},
    {"--gpus-per-task=1 -n 16", 2, 16, 8, true},
    {"--gpus-per-task=1 --ntasks-per-node=8 -N 2", 2, 16, 8, false},
    {"--gpus-per-task=4 --ntasks-per-node=2 -N 2", 2, 4, 8, false},
    {"-N 2 --gpus-per-task=1", 2, 2, 1, false},
    {"-N 2 --gpus-per-node=8 --gpus-per-task=1", 0, 0, 0, false},
    {"-N 2 --gres=gpu:8 --gpus-per-task=1", 0, 0, 0, false},
    {"-N 2 --gpus-per-task=1 -c 2", 0, 0, 0, false},
    {"--gpus-per-task=1", 0, 0, 0, false},
    {"--gres=gpu:h100:4 --gpus-per-task=1", 0, 0, 0, false},
    {"--gpus=16 --gpus-per-task=3", 0, 0, 0, false},
    {"--gpus=16 --gpus-per-node=8", 2, 0, 8, false},
    {"--gpus=16 --gpus-per-node=8 --gpus-per-task=1", 2, 16, 8, false},
    {"-N 2 --gpus-per-node=8 --ntasks-per-gpu=1", 2, 16, 8, false},
    {"--gpus-per-node=8 --ntasks-per-gpu=1", 1, 8, 8, false},
    {"--gpus=16 --ntasks-per-gpu=1", 2, 16, 8, true},
    {"--gpus=4 --ntasks-per-gpu=1", 1, 4, 4, false},
    {"--gpus=8 --ntasks-per-tres=1", 1, 8, 8, false},
    {"--gpus=16 -N 2", 2, 0, 8, false},
    {"--gpus=16", 2, 0, 8, true},
    {"-n 16 --gpus-per-node=8", 1, 16, 8, false},
    {"-N 2 -n 3", 2, 3, 0, false},
    {"--ntasks-per-node=8", 1, 8, 0, false},
    {"--ntasks-per-node=8 -n 16", 2, 16, 0, false},
    {"-w node1,node2 --ntasks-per-node=4", 2, 8, 0, false},
    {"-w node[1-2]", 2, 0, 0, false},
    {"--tres-per-task=gres/gpu:1 --gpus=8", 1, 8, 8, false}, // 23.11 on
    {"-N2-2 --ntasks-per-node=4", 2, 8, 0, false},
    {"-N 2 --ntasks-per-gpu=1 --gpus-per-node=4 --ntasks-per-node=4", 0, 0, 0,
     false},
    {"--ntasks-per-gpu=1 --gpus-per-task=1 --gpus=8", 0, 0, 0, false},
};

static void test_works_out_nodes_and_tasks(void **state)
{
    (void)state;
    static me_batch batch;
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        me_batch_job job;
        char text[256];
        (void)snprintf(text, sizeof text, "#SBATCH %s\n", jobs[i].options);
        const char *path = file_of(text);
        batch = (me_batch){.nodes = 0};
        me_batch_read_file(&batch, path);
        (void)unlink(path);
        assert_string_equal(batch.wrong, "");
        const bool is_fine = me_batch_settle(&batch, &job);
        if (is_fine != (jobs[i].nodes != 0)) {
            fail_msg("%s: %s", jobs[i].options, batch.wrong);
        }
        if (is_fine &&
            (job.nodes != jobs[i].nodes || job.gpus_per_node != jobs[i].gpus ||
             job.has_tasks != (jobs[i].tasks != 0) ||
             (job.has_tasks && job.tasks != jobs[i].tasks) ||
             job.is_nodes_guess != jobs[i].is_guess)) {
            fail_msg("%s: %u nodes, %u tasks, %u GPUs", jobs[i].options,
                     job.nodes, job.tasks, (unsigned)job.gpus_per_node);
        }
    }
}

static void test_numbers_are_above_0(void **state)
{
    (void)state;
    static me_batch batch;
    static const char *const words[] = {"-N0", "-n0", "--ntasks-per-node=0"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        batch = (me_batch){.nodes = 0};
        assert_int_equal(me_batch_read_words(&batch, 1, &words[i]), 1);
        assert_non_null(strstr(batch.wrong, "must be above 0"));
    }
    static const char *const first[] = {"--array=0-3"};
    batch = (me_batch){.nodes = 0};
    assert_int_equal(me_batch_read_words(&batch, 1, first), 1);
    assert_string_equal(batch.wrong, "");
}

static void test_refuses_what_is_no_batch_script(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *why; /**< NULL: it is one */
    } files[] = {
        {"#!/bin/bash\n#SBATCH -N 2\n", NULL},
        {"#SBATCH -N 2\n", "its first line must begin with #!"},
        {"\n#!/bin/bash\n#SBATCH -N 2\n", "its first line must begin"},
        {"\xef\xbb\xbf#!/bin/bash\n#SBATCH -N 2\n", "its first line must"},
        {"#!/bin/bash\r\n#SBATCH -N 2\r\n", "line ends"},
    };

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *path = file_of(files[i].text);
        const char *why = me_batch_file_refusal(path);
        assert_true(me_batch_is_file(path));
        (void)unlink(path);
        if (files[i].why == NULL
                ? why != NULL
                : why == NULL || strstr(why, files[i].why) == NULL) {
            fail_msg("%s: %s", files[i].text, why);
        }
    }
}

static void test_reads_the_first_component(void **state)
{
    (void)state;
    static me_batch batch;
    const char *path = file_of("#SBATCH -N 1\n#SBATCH hetjob\n#SBATCH -N 2\n");
    batch = (me_batch){.nodes = 0};
    me_batch_read_file(&batch, path);
    (void)unlink(path);
    assert_string_equal(batch.wrong, "");
    assert_int_equal(batch.nodes, 1);
}

static void test_sets_what_slurm_would(void **state)
{
    (void)state;
    static me_batch batch;
    batch = (me_batch){.nodes = 2, .tasks_per_node = 8, .gres = "gpu:h100:4"};
    set_variables(&batch);
    expect("SLURM_NNODES", "2");
    expect("SLURM_NTASKS", "16");
    expect("SLURM_NTASKS_PER_NODE", "8");
    expect("SLURM_TASKS_PER_NODE", "8(x2)");
    expect("SLURM_JOB_NODELIST", "node[1-2]");
    expect("SLURM_GPUS_ON_NODE", "4");
    expect("SLURM_JOB_GPUS", "0,1,2,3");
    expect("SLURM_PROCID", "0");
    batch = (me_batch){.nodes = 2, .tasks_per_node = 4, .gpus_per_task = "2"};
    set_variables(&batch);
    expect("SLURM_GPUS_ON_NODE", "8");
    batch = (me_batch){.tasks = 12, .tasks_per_node = 4, .gpus = "h100:12"};
    set_variables(&batch);
    expect("SLURM_NNODES", "3");
    expect("SLURM_GPUS_ON_NODE", "4");
    batch = (me_batch){.nodes = 2, .tasks_per_gpu = 1, .gpus_per_node = "4"};
    set_variables(&batch);
    expect("SLURM_NTASKS", "8");
    batch = (me_batch){.nodes = 2, .tasks_per_gpu = 2, .gpus = "h100:8"};
    set_variables(&batch);
    expect("SLURM_NTASKS", "16");
    batch = (me_batch){.first_of_array = 7, .is_array = true};
    set_variables(&batch);
    assert_null(getenv("SLURM_NTASKS"));
    expect("SLURM_TASKS_PER_NODE", "1");
    expect("SLURM_JOB_NODELIST", "node1");
    expect("SLURM_ARRAY_TASK_ID", "7");
    assert_null(getenv("SLURM_NTASKS_PER_NODE"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_lines_up_to_the_first_command),
        cmocka_unit_test(test_other_files_have_none),
        cmocka_unit_test(test_words_end_at_the_script),
        cmocka_unit_test(test_variables_of_sbatch_win_over_the_file),
        cmocka_unit_test(test_memory_has_variables),
        cmocka_unit_test(test_sets_what_slurm_would),
        cmocka_unit_test(test_works_out_nodes_and_tasks),
        cmocka_unit_test(test_numbers_are_above_0),
        cmocka_unit_test(test_refuses_what_is_no_batch_script),
        cmocka_unit_test(test_reads_the_first_component),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
