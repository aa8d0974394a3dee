/* SPDX-License-Identifier: BSD-3-Clause */
/* What is opened: regular files alone, and nobody waits for a writer. */
#include "base/alloc.h"
#include "base/input.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/memest-test-XXXXXX";
static char path[96];

static int setup(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(folder); /* fails if anything is left */
}

static void write_file(const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* Read @p length bytes, and keep the text that they are. */
static me_status read_bytes(const char *bytes, size_t length, me_diag *diag,
                            me_str *text)
{
    write_file(bytes, length);
    const me_status status = me_input_read(path, 1 << 20, diag, text);
    assert_int_equal(unlink(path), 0);
    return status;
}

static void test_input__no_pipe_or_folder(void **state)
{
    (void)state;
    me_diag diag = {.status = ME_OK};
    FILE *file = NULL;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(me_input_open(path, &diag, &file), ME_ERR_IO);
    assert_string_equal(diag.text, "is not a regular file");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(me_input_open(path, &diag, &file), ME_ERR_IO);
    assert_non_null(strstr(diag.text, "cannot open: No such file"));
    assert_int_equal(me_input_open(folder, &diag, &file), ME_ERR_IO);
    assert_non_null(strstr(diag.text, "is a directory"));
    assert_int_equal(me_input_open("/dev/zero", &diag, &file), ME_ERR_IO);
    assert_string_equal(diag.text, "is not a regular file");
    assert_null(file);
}

static void test_input__text(void **state)
{
    (void)state;
    me_diag diag = {.status = ME_OK};
    me_str text = {0};
    assert_int_equal(read_bytes("\xEF\xBB\xBF"
                                "a\n",
                                5, &diag, &text),
                     ME_OK);
    assert_string_equal(me_str_text(&text), "a\n");
    me_str_fini(&text);
    assert_int_equal(read_bytes("a\n\0b", 4, &diag, &text), ME_ERR_SYNTAX);
    assert_int_equal(diag.line, 2);
    assert_string_equal(diag.text, "binary file: it has a NUL byte");
    me_str_fini(&text);
}

static void test_input__limit(void **state)
{
    (void)state;
    const size_t max_bytes = 1 << 20;
    char *bytes = malloc(max_bytes + 1);
    assert_non_null(bytes);
    memset(bytes, 'x', max_bytes + 1);
    me_diag diag = {.status = ME_OK};
    me_str text = {0};
    assert_int_equal(read_bytes(bytes, max_bytes, &diag, &text), ME_OK);
    assert_int_equal(text.length, max_bytes);
    me_str_fini(&text);
    assert_int_equal(read_bytes(bytes, max_bytes + 1, &diag, &text), ME_ERR_IO);
    assert_non_null(strstr(diag.text, "is over 1 MiB"));
    me_str_fini(&text);
    free(bytes);
}

/* Bytes stand in for files that are not there, by any spelling of their path; the
 * folders above them are there as well. */
static void expect_read(const char *expected)
{
    me_str text = {0};
    me_str_append(&text, "<");
    assert_int_equal(me_input_read(path, 1 << 20, NULL, &text), ME_OK);
    assert_string_equal(me_str_text(&text), expected);
    me_str_fini(&text);
}

/* A command is about one text of a file, whatever becomes of the file. */
static void test_input__reads_once(void **state)
{
    (void)state;
    me_str text = {0};
    me_input_keep_texts();
    (void)unlink(path);
    assert_int_equal(me_input_read(path, 1 << 20, NULL, &text), ME_ERR_IO);
    me_str_fini(&text);
    write_file("first", 5);
    expect_read("<first");
    write_file("other", 5);
    expect_read("<first");
    me_input_drop_texts();
    expect_read("<other");
    assert_int_equal(unlink(path), 0);
}

/* What is there and cannot be read is no answer about it. */
static void test_input__lost_files(void **state)
{
    (void)state;
    const uint64_t before = me_alloc_lost();
    struct rlimit limits;
    me_str text = {0};
    me_diag diag = {.status = ME_OK};
    write_file("first", 5);
    assert_int_equal(me_input_read("no/where", 1 << 20, NULL, &text),
                     ME_ERR_IO);
    assert_int_equal(me_alloc_check(before, ME_OK, &diag), ME_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limits), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = limits.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const me_status status = me_input_read(path, 1 << 20, NULL, &text);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limits), 0);
    me_str_fini(&text);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(status, ME_ERR_IO);
    assert_int_equal(me_alloc_check(before, ME_ERR_CONFIG, &diag),
                     ME_ERR_CONFIG);
    assert_int_equal(me_alloc_check(before, ME_OK, &diag), ME_ERR_IO);
    assert_non_null(strstr(diag.text, "could not be read"));
}

static void test_input__stand_ins(void **state)
{
    (void)state;
    static const char *const same[] = {"no/where/a.model", "./no/where/a.model",
                                       "no//where/./a.model"};
    static const char *const folders[] = {"no/where", "no/where/", "./no",
                                          "no//where"};
    static const char *const others[] = {"no/where/a.mode",
                                         "no/where/a.model/",
                                         "no/where/b",
                                         "no/wher",
                                         "",
                                         "where"};
    me_diag diag = {.status = ME_OK};
    char bytes[8] = "";
    FILE *file = NULL;
    assert_int_equal(me_input_stand_in("no/where/a.model", "a\0b", 3, &diag),
                     ME_OK);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        assert_true(me_input_is_file(same[i]));
        assert_true(me_input_is_there(same[i]));
        assert_false(me_input_is_folder(same[i]));
        assert_int_equal(me_input_open(same[i], &diag, &file), ME_OK);
        assert_int_equal(fread(bytes, 1, sizeof bytes, file), 3);
        assert_memory_equal(bytes, "a\0b", 3);
        assert_int_equal(fclose(file), 0);
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        assert_true(me_input_is_folder(folders[i]));
        assert_true(me_input_is_there(folders[i]));
        assert_false(me_input_is_file(folders[i]));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(me_input_is_there(others[i]));
    }
    me_input_stand_ins_end();
    assert_false(me_input_is_there("no/where/a.model"));
    assert_true(me_input_is_folder(folder));
}

/* Relative names are those of the folder of a launch first, of what a script wrote
 * there as well. */
static void test_input__enters_a_folder(void **state)
{
    (void)state;
    char name[256];
    char line[8] = "";
    me_diag diag = {.status = ME_OK};
    FILE *file = NULL;
    (void)snprintf(name, sizeof name, "%s/entered", folder);
    file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs("in", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_false(me_input_is_file("entered"));
    assert_int_equal(me_input_enter(folder, &diag), ME_OK);
    assert_true(me_input_is_file("entered"));
    assert_true(me_input_is_there("./entered"));
    assert_true(me_input_is_folder("."));
    assert_false(me_input_is_there("nowhere"));
    assert_false(me_input_is_there(""));
    assert_int_equal(me_input_open("entered", &diag, &file), ME_OK);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "in");
    assert_int_equal(fclose(file), 0);
    (void)snprintf(name, sizeof name, "%s/new/file", folder);
    assert_int_equal(me_input_stand_in(name, "a", 1, &diag), ME_OK);
    assert_true(me_input_is_file("new/file"));
    assert_true(me_input_is_folder("new"));
    me_input_stand_ins_end();
    assert_false(me_input_is_file("entered"));
    (void)snprintf(name, sizeof name, "%s/entered", folder);
    assert_int_equal(unlink(name), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_input__no_pipe_or_folder),
        cmocka_unit_test(test_input__text),
        cmocka_unit_test(test_input__limit),
        cmocka_unit_test(test_input__reads_once),
        cmocka_unit_test(test_input__lost_files),
        cmocka_unit_test(test_input__stand_ins),
        cmocka_unit_test(test_input__enters_a_folder),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
