/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that a script wrote: what of them a launch takes along. */
#include "script/carry.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/memest-carry-XXXXXX";

/** A file's name below the folder. */
static const char *name_of(const char *name)
{
    static char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *bytes, size_t length)
{
    FILE *file = fopen(name_of(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    (void)state;
    me_str begin = {0};
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    assert_int_equal(mkdir(name_of("before"), 0700), 0);
    write_file("before/tokenizer.json", "{}", 2);
    // Until the clock of the files has gone on.
    struct stat old;
    struct timespec now = {0};
    assert_int_equal(stat(name_of("before/tokenizer.json"), &old), 0);
    do {
        assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &now), 0);
    } while (now.tv_sec < old.st_ctim.tv_sec ||
             (now.tv_sec == old.st_ctim.tv_sec &&
              now.tv_nsec <= old.st_ctim.tv_nsec));
    me_carry_begin(&begin);
    char *value = strchr(begin.text, '=');
    assert_non_null(value);
    *value = '\0';
    assert_int_equal(setenv(begin.text, value + 1, 1), 0);
    me_str_fini(&begin);
    assert_int_equal(mkdir(name_of("model"), 0700), 0);
    write_file("model/tokenizer.model", "a\0b\1\1\2c", 7);
    write_file("model/config.json", "{}", 2);
    write_file("model/weights.safetensors", "x", 1);
    write_file("data", "a\0b", 3);
    write_file("hosts", "a slots=2\n", 10);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    static const char *const files[] = {"before/tokenizer.json",
                                        "model/tokenizer.model",
                                        "model/config.json",
                                        "model/weights.safetensors",
                                        "data",
                                        "hosts",
                                        "settings.yaml",
                                        "link"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)unlink(name_of(files[i]));
    }
    (void)rmdir(name_of("before"));
    (void)rmdir(name_of("model"));
    return rmdir(folder);
}

/** Files of a launch with one word: the record's words, `;` between the names. */
static void take(const char *word, me_words *record, me_str *names)
{
    me_str words = {0};
    me_str_append_n(&words, word, strlen(word) + 1);
    me_carry_files(&words, record);
    me_str_fini(&words);
    size_t at = 0;
    for (uint32_t i = 0; i < record->count; i++) {
        const char *text = record->text.text + at;
        assert_int_equal(strncmp(text, ME_CARRY_FILE, strlen(ME_CARRY_FILE)),
                         0);
        const char *path = text + strlen(ME_CARRY_FILE) + strlen(folder) + 1;
        me_str_printf(names, "%.*s;", (int)strcspn(path, "\n"), path);
        at += strlen(text) + 1;
    }
}

static void check_names(const char *before, const char *name,
                        const char *expected, const char *other)
{
    char word[256];
    me_words record = {.count = 0};
    me_str names = {0};
    (void)snprintf(word, sizeof word, "%s%s", before, name_of(name));
    take(word, &record, &names);
    if (strcmp(me_str_text(&names), expected) != 0 &&
        (other == NULL || strcmp(me_str_text(&names), other) != 0)) {
        fail_msg("%s: %s", word, me_str_text(&names));
    }
    me_str_fini(&names);
    me_words_fini(&record);
}

static void test_carry__what_is_taken(void **state)
{
    (void)state;
    char yaml[256];
    check_names("", "hosts", "hosts;", NULL);
    check_names("--hostfile=", "hosts", "hosts;", NULL);
    check_names("@", "hosts", "hosts;", NULL);
    check_names("a.b.path=", "model/config.json", "model/config.json;", NULL);
    check_names("", "data", "", NULL); // binary, and no model's
    check_names("", "before/tokenizer.json", "", NULL);
    check_names("", "before", "", NULL);
    check_names("", "nowhere", "", NULL);
    check_names("", "model/", "model//config.json;model//tokenizer.model;",
                "model//tokenizer.model;model//config.json;");
    (void)snprintf(yaml, sizeof yaml, "hosts: '%s'\n", name_of("hosts"));
    write_file("settings.yaml", yaml, strlen(yaml));
    check_names("", "settings.yaml", "settings.yaml;hosts;", NULL);
}

static void test_carry__bytes(void **state)
{
    (void)state;
    me_words record = {.count = 0};
    me_str names = {0};
    me_str bytes = {0};
    take(name_of("model/tokenizer.model"), &record, &names);
    assert_int_equal(record.count, 1);
    me_carry_decode(strchr(record.text.text, '\n') + 1, &bytes);
    assert_int_equal(bytes.length, 7);
    assert_memory_equal(bytes.text, "a\0b\1\1\2c", 7);
    me_str_fini(&bytes);
    me_str_fini(&names);
    me_words_fini(&record);
}

static void test_carry__links(void **state)
{
    (void)state;
    char target[160];
    char word[256];
    char expected[256];
    me_str text = {0};
    (void)snprintf(target, sizeof target, "%s", name_of("before"));
    assert_int_equal(symlink(target, name_of("link")), 0);
    (void)snprintf(word, sizeof word, "--tokenizer-model=%s/tokenizer.json",
                   name_of("link"));
    (void)snprintf(expected, sizeof expected,
                   "--tokenizer-model=%s/tokenizer.json", target);
    me_carry_word(word, &text);
    assert_string_equal(me_str_text(&text), expected);
    me_str_fini(&text);
    me_carry_word(expected, &text);
    assert_string_equal(me_str_text(&text), expected);
    me_str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_carry__what_is_taken),
        cmocka_unit_test(test_carry__bytes),
        cmocka_unit_test(test_carry__links),
    };
    return cmocka_run_group_tests_name("carry", tests, setup, teardown);
}
