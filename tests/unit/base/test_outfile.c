/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/log.h"
#include "base/outfile.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TEXT_MAX = 256
};

static char folder[64];
static char path[96];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/memest-test-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/report.txt", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder); /* fails if anything is left beside */
}

static void expect_text(const char *expected)
{
    char text[TEXT_MAX];
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    text[fread(text, 1, TEXT_MAX - 1, stream)] = '\0';
    (void)fclose(stream);
    assert_string_equal(text, expected);
}

static void put(const char *text, bool is_committed)
{
    me_outfile *file = NULL;
    assert_int_equal(me_outfile_create(path, NULL, &file), ME_OK);
    (void)fputs(text, me_outfile_stream(file));
    if (is_committed) {
        assert_int_equal(me_outfile_commit(file, NULL), ME_OK);
    }
    me_outfile_destroy(file);
}

static void test_outfile__replaces_when_committed(void **state)
{
    (void)state;
    put("first", true);
    expect_text("first");
    assert_int_equal(chmod(path, 0640), 0);
    put("second", false);
    expect_text("first");
    put("third", true);
    expect_text("third");
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
}

static void test_outfile__takes_back(void **state)
{
    (void)state;
    me_outfile *file = NULL;
    assert_int_equal(me_outfile_create(path, NULL, &file), ME_OK);
    (void)fputs("head and more", me_outfile_stream(file));
    assert_int_equal(me_outfile_truncate(file, 4, NULL), ME_OK);
    (void)fputs("!", me_outfile_stream(file));
    assert_int_equal(me_outfile_commit(file, NULL), ME_OK);
    me_outfile_destroy(file);
    expect_text("head!");
}

static void test_outfile__keeps_a_link(void **state)
{
    (void)state;
    char name[128];
    (void)snprintf(name, sizeof name, "%s/link", folder);
    put("old", true);
    assert_int_equal(symlink(path, name), 0);
    me_outfile *file = NULL;
    assert_int_equal(me_outfile_create(name, NULL, &file), ME_OK);
    (void)fputs("new", me_outfile_stream(file));
    assert_int_equal(me_outfile_commit(file, NULL), ME_OK);
    me_outfile_destroy(file);
    struct stat about;
    assert_int_equal(lstat(name, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    expect_text("new");
    assert_int_equal(unlink(name), 0);
}

/* As a shell does, through a link to a link, each from its own folder. */
static void test_outfile__makes_what_a_link_leads_to(void **state)
{
    (void)state;
    char first[128];
    char second[128];
    (void)snprintf(first, sizeof first, "%s/first", folder);
    (void)snprintf(second, sizeof second, "%s/second", folder);
    (void)unlink(path);
    assert_int_equal(symlink("second", first), 0);
    assert_int_equal(symlink(path, second), 0);
    me_outfile *file = NULL;
    assert_int_equal(me_outfile_create(first, NULL, &file), ME_OK);
    (void)fputs("new", me_outfile_stream(file));
    assert_int_equal(me_outfile_commit(file, NULL), ME_OK);
    me_outfile_destroy(file);
    struct stat about;
    assert_int_equal(lstat(first, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(lstat(second, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    expect_text("new");
    assert_int_equal(unlink(first), 0);
    assert_int_equal(unlink(second), 0);
}

/* What /dev/stdout is in front of a pipe: a link that leads to no path, and yet
 * something is there. */
static void test_outfile__writes_to_a_pipe_under_dev(void **state)
{
    (void)state;
    int ends[2] = {-1, -1};
    char name[64];
    char text[8] = "";
    assert_int_equal(pipe(ends), 0);
    (void)snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
    me_outfile *file = NULL;
    me_diag diag = {0};
    if (me_outfile_create(name, &diag, &file) != ME_OK) {
        fail_msg("%s", diag.text);
    }
    (void)fputs("new", me_outfile_stream(file));
    assert_int_equal(me_outfile_commit(file, NULL), ME_OK);
    me_outfile_destroy(file);
    assert_int_equal(read(ends[0], text, sizeof text - 1), 3);
    assert_string_equal(text, "new");
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
}

/* No link becomes a file, and nothing is written in its place. */
static void test_outfile__refuses_links_in_a_circle(void **state)
{
    (void)state;
    char first[128];
    char second[128];
    (void)snprintf(first, sizeof first, "%s/first", folder);
    (void)snprintf(second, sizeof second, "%s/second", folder);
    assert_int_equal(symlink("second", first), 0);
    assert_int_equal(symlink("first", second), 0);
    me_outfile *file = NULL;
    me_diag diag = {0};
    assert_int_equal(me_outfile_create(first, &diag, &file), ME_ERR_IO);
    assert_non_null(strstr(diag.text, "cannot write"));
    struct stat about;
    assert_int_equal(lstat(first, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(unlink(first), 0);
    assert_int_equal(unlink(second), 0);
}

/* What was written may not be whole. */
static void test_outfile__no_answer_on_a_lost_allocation(void **state)
{
    (void)state;
    put("old", true);
    me_outfile *file = NULL;
    me_diag diag = {0};
    assert_int_equal(me_outfile_create(path, &diag, &file), ME_OK);
    (void)fputs("new", me_outfile_stream(file));
    me_alloc_fail_once(1);
    me_free(me_alloc(1, 1, "a piece of it"));
    me_alloc_fail_at(0);
    assert_int_equal(me_outfile_commit(file, &diag), ME_ERR_NOMEM);
    me_outfile_destroy(file);
    expect_text("old");
}

/* Others write to the file that stdout or stderr goes to: before, and behind. */
static void test_outfile__keeps_what_a_stream_has(void **state)
{
    (void)state;
    static const int streams[] = {STDOUT_FILENO, STDERR_FILENO};
    static const char *const names[] = {"/dev/stdout", "/dev/stderr"};
    for (size_t i = 0; i < 2; i++) {
        const int old = dup(streams[i]);
        const int now = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_true(old >= 0 && now >= 0);
        (void)fflush(NULL);
        (void)dup2(now, streams[i]);
        ssize_t n = write(streams[i], "first\n", 6);
        me_outfile *file = NULL;
        me_status status = me_outfile_create(names[i], NULL, &file);
        if (status == ME_OK) {
            (void)fputs("report\n", me_outfile_stream(file));
            status = me_outfile_commit(file, NULL);
            me_outfile_destroy(file);
        }
        FILE *log = me_output_open(names[i], true);
        if (log != NULL) {
            (void)fputs("message\n", log);
            (void)fclose(log);
        }
        n += write(streams[i], "last\n", 5);
        (void)dup2(old, streams[i]);
        (void)close(now);
        (void)close(old);
        assert_int_equal(status, ME_OK);
        assert_int_equal(n, 11);
        expect_text("first\nreport\nmessage\nlast\n");
    }
}

static void test_outfile__refuses_a_folder(void **state)
{
    (void)state;
    me_outfile *file = NULL;
    me_diag diag = {0};
    assert_int_equal(me_outfile_create(folder, &diag, &file), ME_ERR_IO);
    assert_null(file);
    assert_non_null(strstr(diag.text, "directory"));
}

static void test_outfile__says_when_the_disk_is_full(void **state)
{
    (void)state;
    struct stat about;
    if (stat("/dev/full", &about) != 0) {
        skip();
    }
    me_outfile *file = NULL;
    me_diag diag = {0};
    assert_int_equal(me_outfile_create("/dev/full", &diag, &file), ME_OK);
    for (int i = 0; i < 100000; i++) { /* more than the buffer holds */
        (void)fputs("text", me_outfile_stream(file));
    }
    assert_int_equal(me_outfile_commit(file, &diag), ME_ERR_IO);
    assert_string_equal(diag.text,
                        "cannot write /dev/full: No space left on device");
    me_outfile_destroy(file);
}

/* A child that waits with a file half written, until a signal ends it. */
static _Noreturn void write_for_ever(void)
{
    me_outfile *file = NULL;
    me_outfile_guard_signals();
    if (me_outfile_create(path, NULL, &file) != ME_OK) {
        _exit(1);
    }
    (void)fputs("half", me_outfile_stream(file));
    (void)fflush(me_outfile_stream(file));
    for (;;) {
        (void)pause();
    }
}

static unsigned count_files(void)
{
    unsigned n = 0;
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        n++;
    }
    (void)closedir(directory);
    return n - 2; /* itself and the one above */
}

static void test_outfile__a_signal_takes_it(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT,  SIGHUP, SIGQUIT,
                                  SIGXCPU, SIGUSR1, SIGPIPE};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        const pid_t child = fork();
        if (child == 0) {
            (void)signal(signals[i], SIG_DFL);
            write_for_ever();
        }
        assert_true(child > 0);
        while (count_files() == 0) {
            (void)sched_yield();
        }
        assert_int_equal(kill(child, signals[i]), 0);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signals[i]);
        assert_int_equal(count_files(), 0);
    }
}

/* A named pipe takes a report, and the log, from when somebody reads it. */
static void test_outfile__waits_for_no_reader(void **state)
{
    (void)state;
    me_outfile *file = NULL;
    me_diag diag = {.status = ME_OK};
    char read_back[TEXT_MAX] = "";

    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(me_outfile_create(path, &diag, &file), ME_ERR_IO);
    assert_non_null(strstr(diag.text, "nobody reads this pipe"));
    assert_int_equal(me_log_open(path, &diag), ME_ERR_IO);
    assert_non_null(strstr(diag.text, "nobody reads this pipe"));

    const int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(me_outfile_create(path, &diag, &file), ME_OK);
    (void)fputs("a report", me_outfile_stream(file));
    assert_int_equal(me_outfile_commit(file, &diag), ME_OK);
    me_outfile_destroy(file);
    assert_int_equal(read(reader, read_back, sizeof read_back - 1), 8);
    assert_string_equal(read_back, "a report");
    assert_int_equal(close(reader), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_outfile__replaces_when_committed,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_outfile__takes_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_outfile__makes_what_a_link_leads_to, setup, teardown),
        cmocka_unit_test(test_outfile__writes_to_a_pipe_under_dev),
        cmocka_unit_test_setup_teardown(test_outfile__refuses_links_in_a_circle,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_outfile__keeps_a_link, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_outfile__no_answer_on_a_lost_allocation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outfile__keeps_what_a_stream_has,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_outfile__refuses_a_folder, setup,
                                        teardown),
        cmocka_unit_test(test_outfile__says_when_the_disk_is_full),
        cmocka_unit_test_setup_teardown(test_outfile__waits_for_no_reader,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_outfile__a_signal_takes_it, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
