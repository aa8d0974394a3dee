/* SPDX-License-Identifier: BSD-3-Clause */
/* What is written is nothing that is read, and no two things are written to
 * one file. */
#include "app/apart.h"
#include "base/input.h"
#include "base/outfile.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/memest-test-XXXXXX";
static char old_folder[4096];

static void make_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    (void)state;
    if (getcwd(old_folder, sizeof old_folder) == NULL ||
        mkdtemp(folder) == NULL || chdir(folder) != 0) {
        return -1;
    }
    make_file("job.cfg", "");
    make_file("included.cfg", "");
    return symlink("job.cfg", "link.cfg") == 0 &&
                   symlink("nothere", "dangles") == 0 &&
                   link("job.cfg", "hard") == 0
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink("job.cfg");
    (void)unlink("included.cfg");
    (void)unlink("link.cfg");
    (void)unlink("dangles");
    (void)unlink("hard");
    return chdir(old_folder) == 0 ? rmdir(folder) : -1;
}

static void expect(const me_cli *cli, const char *says)
{
    me_diag diag = {.status = ME_OK};
    const me_status status = me_outputs_keep_apart(cli, &diag);
    assert_int_equal(status, says == NULL ? ME_OK : ME_ERR_CONFIG);
    if (says != NULL && strstr(diag.text, says) == NULL) {
        fail_msg("'%s' does not say '%s'", diag.text, says);
    }
}

static void test_apart__outputs(void **state)
{
    (void)state;
    expect(&(me_cli){.output = "a", .events = "b", .log_file = "c"}, NULL);
    expect(&(me_cli){.output = "/dev/null", .events = "/dev/null"}, NULL);
    expect(&(me_cli){.output = "-", .log_file = "-"}, NULL);
    expect(&(me_cli){.output = "a", .events = "a"},
           "--output a and --events a are one file");
    expect(&(me_cli){.output = "a", .events = "./a"}, "are one file");
    expect(&(me_cli){.output = "a", .log_file = "a"}, "are one file");
    expect(&(me_cli){.events = "job.cfg", .log_file = "link.cfg"},
           "are one file");
    expect(&(me_cli){.output = "dangles", .events = "nothere"},
           "--output dangles and --events nothere are one file");
    expect(&(me_cli){.output = "nothere", .jsonl = "./dangles"},
           "are one file");
    expect(&(me_cli){.output = "dangles", .events = "other"}, NULL);
}

/* What stdout goes to: only a log of messages may be appended to it. */
static void test_apart__stdout(void **state)
{
    (void)state;
    static const char says[] = "is the file that stdout goes to";
    const me_cli uses[] = {{.events = "out"},
                           {.jsonl = "out"},
                           {.log_file = "out"},
                           {.output = "other", .jsonl = "out"}};
    for (int appends = 0; appends < 2; appends++) {
        const int old = dup(STDOUT_FILENO);
        const int now = open(
            "out", O_WRONLY | O_CREAT | (appends == 1 ? O_APPEND : 0), 0600);
        assert_true(old >= 0 && now >= 0);
        (void)fflush(stdout);
        me_diag diag[4] = {{.status = ME_OK}};
        me_status status[4];
        (void)dup2(now, STDOUT_FILENO);
        for (size_t i = 0; i < 4; i++) {
            status[i] = me_outputs_keep_apart(&uses[i], &diag[i]);
        }
        (void)dup2(old, STDOUT_FILENO);
        (void)close(now);
        (void)close(old);
        assert_non_null(strstr(diag[0].text, says));
        assert_non_null(strstr(diag[1].text, says));
        assert_int_equal(strstr(diag[2].text, says) == NULL, appends);
        assert_string_equal(diag[3].text, "");
        assert_int_equal(status[0], ME_ERR_CONFIG);
        assert_int_equal(status[1], ME_ERR_CONFIG);
        assert_int_equal(status[2], appends == 1 ? ME_OK : ME_ERR_CONFIG);
        assert_int_equal(status[3], ME_OK);
    }
    expect(&(me_cli){.jsonl = "out"}, NULL);
    (void)unlink("out");
}

/* Its shell reads a script, not memest. */
static void test_apart__words_of_the_job(void **state)
{
    (void)state;
    static const char *const words[] = {"bash", "./job.cfg", "--seed", "7"};
    static const char says[] = "is a file that the job is read from";
    expect(&(me_cli){.script = "job.cfg", .output = "hard"}, says);
    expect(&(me_cli){.script = "job.cfg", .log_file = "a"}, NULL);
    expect(
        &(me_cli){.launch_argv = words, .launch_argc = 4, .events = "job.cfg"},
        says);
    expect(&(me_cli){.launch_argv = words, .launch_argc = 4, .output = "7"},
           NULL);
}

/* Files that are named, whether or not this job comes to read them. */
static void test_apart__named(void **state)
{
    (void)state;
    static const char says[] = "is a file that the job is read from";
    static const char *const words[] = {"torchrun", "train.py",
                                        "--yaml-cfg=job.cfg"};
    expect(&(me_cli){.sets = {"moe.tokens=job.cfg"},
                     .n_sets = 1,
                     .output = "link.cfg"},
           says);
    expect(&(me_cli){.sets = {"moe.tokens=a"}, .n_sets = 1, .output = "a"},
           NULL);
    expect(&(me_cli){.launch_argv = words, .launch_argc = 3, .output = "hard"},
           says);
    (void)setenv("MEMEST_SITE", "job.cfg", 1);
    expect(&(me_cli){.output = "./job.cfg"}, says);
    expect(&(me_cli){.output = "a"}, NULL);
    (void)unsetenv("MEMEST_SITE");
}

/* Nor what the script reads, nor what that reads. */
static void test_apart__sourced_scripts(void **state)
{
    (void)state;
    static const char says[] = "is what --output would write over";
    static const char *const words[] = {"bash", "-x", "job.sh"};
    make_file("inner.sh", "export A=1\n");
    make_file("outer.sh", "echo . x; [ -f x ] && . ./inner.sh\n");
    make_file("job.sh", "#!/bin/bash\n"
                        "HERE=$(dirname \"$0\")\n"
                        "if true; then source \"$HERE/outer.sh\"; fi\n"
                        "# sourced.sh\n");
    make_file("loop.sh", "source ./loop.sh; eval 'source ./inner.sh'\n");
    expect(&(me_cli){.script = "job.sh", .output = "outer.sh"}, says);
    expect(&(me_cli){.script = "job.sh", .output = "./inner.sh"}, says);
    expect(
        &(me_cli){.launch_argv = words, .launch_argc = 3, .output = "inner.sh"},
        says);
    expect(&(me_cli){.script = "job.sh", .output = "sourced.sh"}, NULL);
    expect(&(me_cli){.script = "loop.sh", .output = "a"}, NULL);
    expect(&(me_cli){.script = "loop.sh", .output = "inner.sh"}, says);
    (void)unlink("inner.sh");
    (void)unlink("outer.sh");
    (void)unlink("job.sh");
    (void)unlink("loop.sh");
}

static void expect_read(const char *path, bool may_be_read)
{
    static const char says[] = "--output would write over";
    FILE *file = NULL;
    me_diag diag = {.status = ME_OK};
    const me_status status = me_input_open(path, &diag, &file);
    if (may_be_read) {
        assert_int_equal(status, ME_OK);
        assert_int_equal(fclose(file), 0);
    } else {
        assert_int_equal(status, ME_ERR_CONFIG);
        assert_non_null(strstr(diag.text, says));
    }
}

/* Everything that is read afterwards in this process is held to it. */
static void test_apart__inputs(void **state)
{
    (void)state;
    expect(&(me_cli){.output = "job.cfg"}, NULL);
    expect_read("included.cfg", true);
    expect_read("job.cfg", false);
    expect_read("./job.cfg", false);
    expect_read("link.cfg", false);
    expect_read("hard", false);
    expect(&(me_cli){.output = "new.cfg"}, NULL);
    expect_read("job.cfg", true);
}

/* Who passes a refusal over, as a comparison does with a setting that cannot be
 * read, does not write over the file either. */
static void test_apart__a_refused_file_is_not_written(void **state)
{
    (void)state;
    me_outfile *file = NULL;
    me_diag diag = {.status = ME_OK};
    expect(&(me_cli){.output = "included.cfg"}, NULL);
    expect_read("included.cfg", false);
    assert_int_equal(me_outfile_create("./included.cfg", &diag, &file),
                     ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "--output would write over"));
    assert_int_equal(me_outfile_create("new.cfg", NULL, &file), ME_OK);
    me_outfile_destroy(file);
    expect(&(me_cli){.output = "included.cfg"}, NULL); /* forgotten */
    assert_int_equal(me_outfile_create("included.cfg", NULL, &file), ME_OK);
    me_outfile_destroy(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_apart__outputs),
        cmocka_unit_test(test_apart__stdout),
        cmocka_unit_test(test_apart__words_of_the_job),
        cmocka_unit_test(test_apart__named),
        cmocka_unit_test(test_apart__sourced_scripts),
        cmocka_unit_test(test_apart__inputs),
        cmocka_unit_test(test_apart__a_refused_file_is_not_written),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
