/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/log.h"
#include "base/outfile.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/* From now on in this process no file without a name is given one, as on a file
 * system that has none. */
static bool refuse_names(void)
{
    static struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the call's number */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_linkat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0],
                                 .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* A child that waits with a file half written, until a signal ends it. */
static _Noreturn void write_for_ever(int ready)
{
    me_outfile *file = NULL;
    me_outfile_guard_signals();
    if (me_outfile_create(path, NULL, &file) != ME_OK) {
        _exit(1);
    }
    (void)fputs("half", me_outfile_stream(file));
    (void)fflush(me_outfile_stream(file));
    if (write(ready, "!", 1) != 1) {
        _exit(1);
    }
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

/* Files that are there while a child writes, and once the signal has ended it. */
static void end_with(int signal_number, bool has_names, unsigned counts_out[2])
{
    int ends[2];
    char byte = '\0';
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        (void)signal(signal_number, SIG_DFL);
        if (!has_names && !refuse_names()) {
            _exit(1);
        }
        write_for_ever(ends[1]);
    }
    assert_true(child > 0);
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    (void)close(ends[0]);
    counts_out[0] = count_files();
    assert_int_equal(kill(child, signal_number), 0);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), signal_number);
    counts_out[1] = count_files();
}

/* SIGKILL as well, which comes a few milliseconds behind a launcher's SIGTERM. */
static void test_outfile__has_no_name_until_it_is_whole(void **state)
{
    (void)state;
    static const int signals[] = {SIGKILL, SIGTERM, SIGINT};
    const int unnamed = open(folder, O_TMPFILE | O_WRONLY, 0600);
    if (unnamed < 0) {
        skip(); /* the file system has none */
    }
    (void)close(unnamed);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        unsigned counts[2] = {1, 1};
        end_with(signals[i], true, counts);
        assert_int_equal(counts[0], 0);
        assert_int_equal(counts[1], 0);
        put("old", true);
        end_with(signals[i], true, counts);
        assert_int_equal(counts[0], 1);
        assert_int_equal(counts[1], 1);
        expect_text("old");
        assert_int_equal(unlink(path), 0);
    }
}

static bool can_refuse_names(void)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        _exit(refuse_names() ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void test_outfile__a_signal_takes_it(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT,  SIGHUP, SIGQUIT,
                                  SIGXCPU, SIGUSR1, SIGPIPE};
    if (!can_refuse_names()) {
        skip();
    }
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        unsigned counts[2] = {0, 1};
        end_with(signals[i], false, counts);
        assert_int_equal(counts[0], 1);
        assert_int_equal(counts[1], 0);
    }
}

/* Where no file can do without a name one with a name is written. */
static void test_outfile__writes_where_all_have_names(void **state)
{
    (void)state;
    if (!can_refuse_names()) {
        skip();
    }
    int status = 0;
    put("old", true);
    assert_int_equal(chmod(path, 0640), 0);
    const pid_t child = fork();
    if (child == 0) {
        me_outfile *file = NULL;
        const bool is_begun =
            refuse_names() && me_outfile_create(path, NULL, &file) == ME_OK;
        if (!is_begun) {
            _exit(1);
        }
        (void)fputs("new", me_outfile_stream(file));
        const me_status done = me_outfile_commit(file, NULL);
        me_outfile_destroy(file);
        _exit(done == ME_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect_text("new");
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
    assert_int_equal(count_files(), 1);
}

/* Of a name that is too long for another one beside it to be made. */
static void test_outfile__refuses_a_long_name_at_once(void **state)
{
    (void)state;
    char name[TEXT_MAX + 64];
    me_outfile *file = NULL;
    me_diag diag = {.status = ME_OK};
    (void)snprintf(name, sizeof name, "%s/%0250d", folder, 0);
    assert_int_equal(me_outfile_create(name, &diag, &file), ME_ERR_IO);
    assert_non_null(strstr(diag.text, "File name too long"));
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
        cmocka_unit_test_setup_teardown(
            test_outfile__has_no_name_until_it_is_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outfile__a_signal_takes_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_outfile__writes_where_all_have_names, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_outfile__refuses_a_long_name_at_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
