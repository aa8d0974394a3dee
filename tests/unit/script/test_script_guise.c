/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/wrappers.h"
#include "script/act_private.h"
#include "script/guise.h"
#include "support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void test_finds_names_and_paths(void **state)
{
    (void)state;

    static const struct {
        const char *word;
        me_guise_kind kind;
    } cases[] = {
        {"torchrun", ME_GUISE_LAUNCH},
        {"/opt/conda/bin/python3.12", ME_GUISE_LAUNCH},
        {"python3.99", ME_GUISE_LAUNCH},
        {"python3.x", ME_GUISE_UNKNOWN},
        {"pretrain_gpt.py", ME_GUISE_UNKNOWN},
        {"srun", ME_GUISE_COUNT},
        {"flux", ME_GUISE_COUNT},
        {"/usr/bin/ssh", ME_GUISE_REMOTE},
        {"sudo", ME_GUISE_AS},
        {"/usr/bin/rm", ME_GUISE_NOTHING},
        {"rm ", ME_GUISE_UNKNOWN},
        {"awk", ME_GUISE_WORK},
        {"[", ME_GUISE_WORK},
        {"./bash", ME_GUISE_SHELL},
        {"", ME_GUISE_UNKNOWN},
        {"folder/", ME_GUISE_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (me_guise_find(cases[i].word) != cases[i].kind) {
            fail_msg("%s is of kind %d", cases[i].word,
                     (int)me_guise_find(cases[i].word));
        }
    }
}

/** Does what a row names start another command? A launch command behind `--` may
 *  begin with it then. */
static bool is_starter(me_guise_kind kind)
{
    return kind == ME_GUISE_AROUND || kind == ME_GUISE_AS ||
           kind == ME_GUISE_REMOTE || kind == ME_GUISE_SBATCH;
}

/** Each name stands once, and is found as what its row says. */
static void check_row(const me_guise *row)
{
    for (const char *at = row->names; *at != '\0';) {
        char name[64];
        const size_t n = strcspn(at, " ");
        assert_true(n > 0 && n < sizeof name);
        (void)snprintf(name, sizeof name, "%.*s", (int)n, at);
        if (me_guise_find(name) != row->kind) {
            fail_msg("%s stands in two rows", name);
        }
        if (row->kind == ME_GUISE_COUNT && me_wrapper_find(name) == NULL) {
            fail_msg("%s starts ranks that nobody counts", name);
        }
        if (is_starter(row->kind) && me_wrapper_find(name) == NULL) {
            fail_msg("%s is read in a script, and not behind --", name);
        }
        at += n;
        at += *at == ' ';
    }
}

static void test_rows_agree(void **state)
{
    (void)state;
    size_t count = 0;
    const me_guise *rows = me_guise_rows(&count);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        check_row(&rows[i]);
    }
}

static void test_containers_start_some(void **state)
{
    (void)state;

    static const struct {
        const char *word;
        const char *next;
        bool is_started;
    } cases[] = {
        {"torchrun", NULL, true},  {"/usr/bin/env", NULL, true},
        {"awk", "-f", false},      {"bash", NULL, true},
        {"sbatch", NULL, false},   {"rm", "-r", false},
        {"train.sh", NULL, true},  {"train.py", NULL, false},
        {"megatron", NULL, false}, {"megatron", "train", false},
        {"swift", "sft", true},    {"mkdir", "x", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (me_guise_is_started(cases[i].word, cases[i].next) !=
            cases[i].is_started) {
            fail_msg("%s is taken for the other", cases[i].word);
        }
    }
}

static void test_python_trains_with_a_script(void **state)
{
    (void)state;

    static const struct {
        const char *words[6];
        bool trains;
    } cases[] = {
        {{"python"}, false},
        {{"python", "-"}, false},
        {{"python", "-", "train.py"}, false},
        {{"python", "-c", "print(1)"}, false},
        {{"python", "-uc", "print(1)"}, false},
        {{"python", "-cprint(1)", "train.py"}, false},
        {{"python", "-V"}, false},
        {{"python", "-Wignore", "-X", "dev", "-c", "1"}, false},
        {{"python", "-m", "json.tool"}, false},
        {{"python", "-m", "pip"}, false},
        {{"python", "-mpip"}, false},
        {{"python", "train.py"}, true},
        {{"python", "-u", "train.py", "-c"}, true},
        {{"python", "-W", "-c", "train.py"}, true},
        {{"python", "-X", "dev", "train.py"}, true},
        {{"python", "--check-hash-based-pycs", "always", "train.py"}, true},
        {{"python", "-um", "torch.distributed.run"}, true},
        {{"python", "-mtorchrun"}, true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int argc = 0;
        while (argc < 6 && cases[i].words[argc] != NULL) {
            argc++;
        }
        if (me_python_trains(argc, cases[i].words) != cases[i].trains) {
            fail_msg("case %zu", i);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_names_and_paths),
        cmocka_unit_test(test_rows_agree),
        cmocka_unit_test(test_containers_start_some),
        cmocka_unit_test(test_python_trains_with_a_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
