/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs leave of the environment, by their manuals. */
#include "script/inherit.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WORDS_MAX = 8,
    WORD_BYTES = 64
};

/** The variables that every case begins with; others may be there. */
static void set_up(void)
{
    (void)unsetenv("D");
    (void)unsetenv("E");
    (void)setenv("A", "1", 1);
    (void)setenv("AB", "2", 1);
    (void)setenv("C", "3", 1);
    (void)setenv("SLURM_NTASKS", "8", 1);
    (void)setenv("APPTAINERENV_D", "4", 1);
    (void)setenv("SINGULARITYENV_D", "0", 1);
    (void)setenv("SINGULARITYENV_HOME", "/nowhere", 1);
}

/** A, AB, C, D and E as they are: `A=1 C=3`. */
static void describe(char text[256])
{
    static const char *const names[] = {"A", "AB", "C", "D", "E"};
    text[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        const size_t n = strlen(text);
        if (value != NULL) {
            (void)snprintf(text + n, 256 - n, "%s%s=%s", n == 0 ? "" : " ",
                           names[i], value);
        }
    }
}

/** Follow a program's words; @p command is split at blanks. */
static void follow(me_inherit *inherit, const char *command)
{
    char text[WORDS_MAX][WORD_BYTES] = {""};
    char *words[WORDS_MAX] = {text[0]};
    int count = 0;
    while (*command != '\0') {
        const size_t n = strcspn(command, " ");
        assert_true(count < WORDS_MAX && n < WORD_BYTES);
        (void)snprintf(text[count], WORD_BYTES, "%.*s", (int)n, command);
        words[count] = text[count];
        count++;
        command += n + (command[n] == ' ');
    }
    me_inherit_begin(inherit, words[0]);
    for (int at = 1; at < count;) {
        at += me_inherit_option(inherit, words[0], count - at, words + at);
    }
    assert_null(inherit->wrong);
    me_inherit_apply(inherit);
}

static void test_programs(void **state)
{
    (void)state;

    static const struct {
        const char *command;
        const char *left;
    } cases[] = {
        {"numactl -C 0", "A=1 AB=2 C=3"},
        {"docker run image", ""},
        {"docker run -e A image", "A=1"},
        {"docker run -e none image", ""},
        {"docker run -it -e A=5 image", "A=5"},
        {"docker run -ite A=5 image", "A=5"},
        {"docker run -eA=5 image", "A=5"},
        {"docker run --env=A=5 --env C image", "A=5 C=3"},
        {"docker run -v -e", ""},
        {"podman run -e A* image", "A=1 AB=2"},
        {"podman run --env-host -e C=9 image", "A=1 AB=2 C=9"},
        {"nerdctl exec name", ""},
        {"enroot start -e A image", "A=1"},
        {"apptainer exec image", "A=1 AB=2 C=3 D=4"},
        {"apptainer exec -e image", "D=4"},
        {"singularity exec -C --env D=7,E=8 image", "D=7 E=8"},
        {"singularity exec --cleanenv image", "D=4"},
        {"nsys profile -e A=5,E=6", "A=5 AB=2 C=3 E=6"},
        {"xvfb-run -e A=5", "A=1 AB=2 C=3"},
        {"strace -e A=5 -E C=6", "A=1 AB=2 C=6"},
        {"micromamba run --clean-env -e E=1", "E=1"},
        {"bsub -e A=5 -env all,E=1", "A=1 AB=2 C=3 E=1"},
        {"bsub -env none", ""},
        {"sudo -u me", ""},
        {"sudo -E", "A=1 AB=2 C=3"},
        {"doas -u me", ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_inherit inherit = {.is_clean = false};
        char left[256];
        set_up();
        follow(&inherit, cases[i].command);
        describe(left);
        if (strcmp(left, cases[i].left) != 0) {
            fail_msg("%s: '%s', not '%s'", cases[i].command, left,
                     cases[i].left);
        }
        assert_string_equal(getenv("SLURM_NTASKS"), "8");
        assert_string_not_equal(getenv("HOME"), "/nowhere");
    }
}

static void test_lists(void **state)
{
    (void)state;

    static const struct {
        const char *list;
        const char *left;
    } cases[] = {
        {"ALL", "A=1 AB=2 C=3"},
        {"NONE", ""},
        {"NIL", ""},
        {"A", "A=1"},
        {"A=7,C", "A=7 C=3"},
        {"all,A=7", "A=7 AB=2 C=3"},
        {"C,ALL", "A=1 AB=2 C=3"},
        {"ALLES", ""},
        {"E=1,ALL", "A=1 AB=2 C=3 E=1"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_inherit inherit = {.is_clean = false};
        char left[256];
        set_up();
        me_inherit_list(&inherit, cases[i].list);
        me_inherit_apply(&inherit);
        describe(left);
        if (strcmp(left, cases[i].left) != 0) {
            fail_msg("%s: '%s', not '%s'", cases[i].list, left, cases[i].left);
        }
    }
}

static void write_file(char path[32], const char *text)
{
    (void)snprintf(path, 32, "/tmp/inherit-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static void test_files(void **state)
{
    (void)state;

    static const struct {
        const char *command; /**< the file's name behind it */
        const char *text;
        const char *left;
    } cases[] = {
        {"docker run --env-file", "# E=0\n\nE=\"5\"\r\nC\nnone\nD=a=b",
         "C=3 D=a=b E=\"5\""},
        {"docker run -e E=6 --env-file", "E=5\n", "E=6"},
        {"apptainer exec -e --env-file", "export E='5 6'\n", "D=4 E=5 6"},
        {"uv run --env-file", "A=9\nE=\"5\"\n", "A=1 AB=2 C=3 E=5"},
        {"docker run --env-file", "", ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_inherit inherit = {.is_clean = false};
        char command[128];
        char path[32];
        char left[256];
        set_up();
        write_file(path, cases[i].text);
        (void)snprintf(command, sizeof command, "%s %s image", cases[i].command,
                       path);
        follow(&inherit, command);
        assert_int_equal(unlink(path), 0);
        describe(left);
        if (strcmp(left, cases[i].left) != 0) {
            fail_msg("%s: '%s', not '%s'", cases[i].command, left,
                     cases[i].left);
        }
    }
}

static void test_file_that_is_not_there(void **state)
{
    (void)state;
    char option[] = "--env-file=/no/such/file";
    char *words[] = {option, NULL};
    me_inherit inherit = {.is_clean = false};
    assert_int_equal(me_inherit_option(&inherit, "docker", 1, words), 1);
    assert_string_equal(inherit.wrong, "/no/such/file");
    me_inherit_apply(&inherit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_file_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
