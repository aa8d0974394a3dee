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

static void test_sets_what_slurm_would(void **state)
{
    (void)state;
    static me_batch batch;
    batch = (me_batch){.nodes = 2, .tasks_per_node = 8, .gres = "gpu:h100:4"};
    me_batch_set_variables(&batch);
    expect("SLURM_NNODES", "2");
    expect("SLURM_NTASKS", "16");
    expect("SLURM_NTASKS_PER_NODE", "8");
    expect("SLURM_TASKS_PER_NODE", "8(x2)");
    expect("SLURM_JOB_NODELIST", "node[1-2]");
    expect("SLURM_GPUS_ON_NODE", "4");
    expect("SLURM_JOB_GPUS", "0,1,2,3");
    expect("SLURM_PROCID", "0");
    batch = (me_batch){.nodes = 2, .tasks_per_node = 4, .gpus_per_task = "2"};
    me_batch_set_variables(&batch);
    expect("SLURM_GPUS_ON_NODE", "8");
    batch = (me_batch){.tasks = 12, .tasks_per_node = 4, .gpus = "h100:12"};
    me_batch_set_variables(&batch);
    expect("SLURM_NNODES", "3");
    expect("SLURM_GPUS_ON_NODE", "4");
    batch = (me_batch){.nodes = 2, .tasks_per_gpu = 1, .gpus_per_node = "4"};
    me_batch_set_variables(&batch);
    expect("SLURM_NTASKS", "8");
    batch = (me_batch){.nodes = 2, .tasks_per_gpu = 2, .gpus = "h100:8"};
    me_batch_set_variables(&batch);
    expect("SLURM_NTASKS", "16");
    batch = (me_batch){.first_of_array = 7, .is_array = true};
    me_batch_set_variables(&batch);
    expect("SLURM_NTASKS", "1");
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
        cmocka_unit_test(test_sets_what_slurm_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
