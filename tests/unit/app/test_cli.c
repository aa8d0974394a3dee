/* SPDX-License-Identifier: BSD-3-Clause */
#include "app/cli.h"
#include "support/test.h"

#include <string.h>

enum {
    WORDS_MAX = 24
};

/** Parse `memest` and the words up to a NULL. */
static me_status parse(const char *const *words, me_diag *diag, me_cli *cli)
{
    static char text[WORDS_MAX][64];
    char *argv[WORDS_MAX + 1] = {memcpy(text[0], "memest", sizeof "memest")};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++) {
        assert_true(argc < WORDS_MAX);
        assert_true(strlen(words[argc - 1]) < sizeof text[0]);
        memcpy(text[argc], words[argc - 1], strlen(words[argc - 1]) + 1);
        argv[argc] = text[argc];
    }
    *diag = (me_diag){.status = ME_OK};
    return me_cli_parse(argc, argv, diag, cli);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_cli__defaults(void **state)
{
    (void)state;
    me_cli cli;
    me_diag diag;

    assert_int_equal(parse(WORDS("-m", "a.cfg"), &diag, &cli), ME_OK);
    assert_string_equal(cli.command, "estimate");
    assert_string_equal(cli.model, "a.cfg");
    assert_string_equal(cli.format, "text");
    assert_int_equal(cli.world_size, 0);
    assert_int_equal(cli.rank, -1);
    assert_int_equal(cli.iteration, -1);
    assert_int_equal(cli.launch_argc, 0);
    assert_false(cli.strict || cli.no_fold || cli.require_fit || cli.help);
}

static void test_cli__flags(void **state)
{
    (void)state;
    me_cli cli;
    me_diag diag;

    assert_int_equal(parse(WORDS("--world-size", "8", "--strict", "check",
                                 "--format=json", "-m", "a.cfg"),
                           &diag, &cli),
                     ME_OK);
    assert_string_equal(cli.command, "check");
    assert_int_equal(cli.world_size, 8);
    assert_string_equal(cli.format, "json");
    assert_string_equal(cli.model, "a.cfg");
    assert_int_equal(parse(WORDS("--format", "json", "train.sh"), &diag, &cli),
                     ME_OK);
    assert_string_equal(cli.command, "estimate");
    assert_string_equal(cli.script, "train.sh");

    assert_int_equal(
        parse(WORDS("check", "--model=a.cfg", "--set", "a=1", "--set", "b=2",
                    "--world-size", "16", "--events", "e.tsv", "--rank", "3",
                    "--strict", "--format", "json", "-o", "out"),
              &diag, &cli),
        ME_OK);
    assert_string_equal(cli.command, "check");
    assert_string_equal(cli.model, "a.cfg");
    assert_int_equal(cli.n_sets, 2);
    assert_string_equal(cli.sets[1], "b=2");
    assert_int_equal(cli.world_size, 16);
    assert_int_equal(cli.rank, 3);
    assert_true(cli.strict);
    assert_string_equal(cli.output, "out");
}

/* What follows -- is the launch command, whatever it looks like. */
static void test_cli__launch_command(void **state)
{
    (void)state;
    me_cli cli;
    me_diag diag;

    assert_int_equal(
        parse(WORDS("--strict", "--", "torchrun", "--model", "x"), &diag, &cli),
        ME_OK);
    assert_null(cli.model);
    assert_int_equal(cli.launch_argc, 3);
    assert_string_equal(cli.launch_argv[1], "--model");
}

static void test_cli__errors_name_the_flag(void **state)
{
    static const struct {
        const char *words[5];
        const char *named;
    } cases[] = {
        {{"--formt", "json"}, "--formt"},
        {{"--world-size", "-3"}, "--world-size"},
        {{"--world-size", "8x"}, "--world-size"},
        {{"--world-size", "99999999999999999999"}, "--world-size"},
        {{"--model"}, "--model"},
        {{"estimat"}, "estimat"},
        {{"replay"}, "FILE|-"},
        {{"replay", "--format", "json"}, "FILE|-"},
        {{"replay", "a.tsv", "b.tsv"}, "b.tsv"},
        {{"replay", "a.tsv", "--rank", "0"}, "--rank: memest replay takes"},
        {{"replay", "a.tsv", "-m", "x"}, "--model"},
        {{"replay", "a.tsv", "--", "x"}, "launch command"},
        {{"options", "--strict"}, "--strict"},
        {{"options", "a", "b"}, "b"},
        {{"--strict", "options"}, "--strict: memest options"},
        {{"list"}, "models|cards|machines|architectures"},
        {{"list", "cards", "--device", "x"}, "--device"},
        {{"schedule", "1f1b", "--model", "x"}, "--model"},
        {{"schedule", "--pp", "4"}, "FILE.csv"},
        {{"check", "--pp", "4"}, "--pp"},
        {{"--rank", "1"}, "--rank has no effect by itself"},
        {{"--iteration", "1"}, "give one of --events with it"},
        {{"--iteration", "1", "--dump", "plan"}, "--iteration"},
        {{"--events", "x", "--dump", "plan"}, "--events has no effect with"},
        {{"--no-fold", "--dump", "plan"}, "--no-fold has no effect with"},
        {{"--model", "a", "--model", "b"}, "--model is given twice"},
        {{"help", "us"}, "us: no such command"},
        {{"help", "us"}, "diff, list, options are"},
        {{"check", "--dump", "plan"}, "--dump: memest check"},
        {{"track", "--top", "3"}, "--top has no effect with --tool mem"},
        {{"track", "--tool", "mod", "--tabulate"}, "with mem fsdp2 sac it has"},
        {{"--course"}, "--course: --format must be json or html, not text"},
    };

    (void)state;
    me_cli cli;
    me_diag diag;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(cases[i].words, &diag, &cli), ME_ERR_CONFIG);
        if (strstr(diag.text, cases[i].named) == NULL ||
            strchr(diag.text, '\n') != NULL) {
            fail_msg("%s", diag.text);
        }
    }
}

static void test_cli__a_command_reads_its_file_anywhere(void **state)
{
    static const struct {
        const char *words[7];
        const char *operand;
    } cases[] = {
        {{"replay", "a.tsv", "--format", "csv"}, "a.tsv"},
        {{"replay", "--format", "csv", "-", "-o", "x"}, "-"},
        {{"replay", "--help"}, NULL},
        {{"options", "-o", "x"}, NULL},
        {{"list", "models", "--format", "json"}, "models"},
    };

    (void)state;
    me_cli cli;
    me_diag diag;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(cases[i].words, &diag, &cli), ME_OK);
        if (cases[i].operand == NULL) {
            assert_null(cli.operand);
        } else {
            assert_string_equal(cli.operand, cases[i].operand);
        }
    }
}

static void test_cli__help_names_every_flag(void **state)
{
    static const char *const flags[] = {"--model",  "--set",     "--world-size",
                                        "--events", "--no-fold", "--strict"};
    (void)state;
    me_str text = {0};

    const me_cli cli = {.command = "estimate"};
    me_cli_help(&cli, &text);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        assert_non_null(strstr(me_str_text(&text), flags[i]));
    }
    me_str_fini(&text);
}

/* One command's help has its own flags alone, however it is asked for. */
static void test_cli__help_of_a_command(void **state)
{
    (void)state;
    static const char *const words[][3] = {{"schedule", "--help"},
                                           {"help", "schedule"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        me_cli cli;
        me_diag diag;
        me_str text = {0};
        assert_int_equal(parse(words[i], &diag, &cli), ME_OK);
        assert_true(cli.help);
        me_cli_help(&cli, &text);
        assert_non_null(strstr(me_str_text(&text), "memest schedule NAME"));
        assert_non_null(strstr(me_str_text(&text), "--microbatches"));
        assert_null(strstr(me_str_text(&text), "--model"));
        me_str_fini(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli__defaults),
        cmocka_unit_test(test_cli__flags),
        cmocka_unit_test(test_cli__launch_command),
        cmocka_unit_test(test_cli__errors_name_the_flag),
        cmocka_unit_test(test_cli__a_command_reads_its_file_anywhere),
        cmocka_unit_test(test_cli__help_names_every_flag),
        cmocka_unit_test(test_cli__help_of_a_command),
    };
    return cmocka_run_group_tests_name("cli", tests, NULL, NULL);
}
