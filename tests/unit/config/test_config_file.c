/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/data_files.h"
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
    const char *text;
    me_status status;
    int line;
    const char *part;
} wrong_files[] = {
    {"launch = { flags = {}; };", ME_ERR_CONFIG, 1,
     "launch.flags: the groups of launch are"},
    {"launch = {\n vocabulary = { tokens = 3; };\n};", ME_ERR_CONFIG, 2,
     "launch.vocabulary is { tokens = N; source"},
    {"launch = { vocabulary = { tokens = 3; source = \"x\"; type = \"t\"; "
     "from = \"f\"; }; };",
     ME_ERR_CONFIG, 1, "launch.vocabulary is"},
    {"launch = { vocabulary = { tokens = 0; source = \"known\"; type = \"t\"; "
     "from = \"f\"; }; };",
     ME_ERR_CONFIG, 1, "launch.vocabulary is"},
    {"launch = { not_modelled = 3; };", ME_ERR_CONFIG, 1,
     "launch.not_modelled: the groups"},
    {"launch = {\n environment = { a = { name = \"x\"; }; }; };", ME_ERR_CONFIG,
     2, "an entry is { name = \"…\"; value = \"…\"; }"},
    {"launch = { assumptions = { a = 3; }; };", ME_ERR_CONFIG, 1,
     "an entry is { text = \"…\"; }"},
    {"launch = { assumptions = { a = { text = \"x\"; rests_on = 3; }; }; };",
     ME_ERR_CONFIG, 1, "launch.assumptions: an entry is"},
    {"launch = { assumptions = { a = { text = \"x\"; rests_on = { o = "
     "\"model.layers=1\"; }; }; }; };",
     ME_ERR_CONFIG, 1, "launch.assumptions: an entry is"},
    {"launch = { not_modelled = { a = { flag = \"x\"; b = 1; }; }; };",
     ME_ERR_CONFIG, 1, "launch.not_modelled: an entry is"},
    {"model = {\n num_layer = 4;\n};", ME_ERR_CONFIG, 2,
     "unknown option 'model.num_layer': did you mean model.num_layers?"},
    {"model = {\n num_layers = 4;\n num_layers = 8;\n};", ME_ERR_SYNTAX, 3,
     "duplicate setting name at or before 'num_layers = 8"},
    {"model = {\n num_layers = \"4\";\n};", ME_ERR_CONFIG, 2,
     "model.num_layers is text in quotes: must be a whole number"},
    {"model = {\n num_layers = 0;\n};", ME_ERR_CONFIG, 2,
     "model.num_layers = 0: must be a whole number from 1"},
    {"model = {\n num_layers = -4;\n};", ME_ERR_CONFIG, 2,
     "model.num_layers = -4"},
    {"model = {\n num_layers = 4294967300;\n};", ME_ERR_CONFIG, 2,
     "model.num_layers = 4294967300"},
    {"model = {\n num_layers = 99999999999999999999;\n};", ME_ERR_SYNTAX, 2,
     "more than 64 bits"},
    {"model = {\n num_layers = 4.5;\n};", ME_ERR_CONFIG, 2, "a decimal"},
    {"model = {\n num_layers = [4];\n};", ME_ERR_SYNTAX, 2,
     "lists and arrays are not used"},
    {"model = {\n num_layers = {};\n};", ME_ERR_CONFIG, 2, "a group"},
    {"model = {\n num_layers = 0x10;\n};", ME_ERR_SYNTAX, 2, "hexadecimal"},
    {"device = { memory = \"80GB\"; };", ME_ERR_CONFIG, 1,
     "device.memory = 80GB: must be bytes"},
    {"model = {\n num_layers = 4;\n", ME_ERR_SYNTAX, 3, "is the file whole"},
    {"name = \"abc\n", ME_ERR_SYNTAX, 1, "string is not closed"},
    {"/* abc\n\n", ME_ERR_SYNTAX, 1, "comment is not closed"},
    {"model = 4;", ME_ERR_CONFIG, 1, "unknown option 'model'"},
    {"tensor = 4;", ME_ERR_CONFIG, 1, "did you mean parallel.tensor?"},
    {"\n@include \"/no/such/file.cfg\"\n", ME_ERR_IO, 0, "cannot open"},
    {"@include \"/\"\n", ME_ERR_IO, 0, "is a directory"},
    {"@include \"/dev/zero\"\n", ME_ERR_IO, 0, "is not a regular file"},
    {"model = {\n@include \"a.cfg\"\n};", ME_ERR_SYNTAX, 2,
     "outside of groups"},
    {"@included", ME_ERR_SYNTAX, 1, "write @include"},
    {"a = 1;\n\"text\"", ME_ERR_SYNTAX, 2, "must follow a '='"},
    {"a={a={a={a={a={a={a={a={a={a={a={a={a={a={a={a={a={", ME_ERR_SYNTAX, 1,
     "nested too deep"},
    {"@", ME_ERR_SYNTAX, 1, "stray '@'"},
};

static void test_file__errors_name_file_line_and_key(void **state)
{
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong_files); i++) {
        me_diag diag = {0};
        me_config *config = me_config_create();
        const me_status status =
            me_config_read_text(config, "x/job.cfg", wrong_files[i].text,
                                strlen(wrong_files[i].text), &diag);
        if (strstr(diag.text, wrong_files[i].part) == NULL) {
            fail_msg("case %zu: %s", i, diag.text);
        }
        assert_int_equal(status, wrong_files[i].status);
        assert_int_equal(diag.line, wrong_files[i].line);
        assert_true(diag.where[0] != '\0');
        me_config_destroy(config);
    }
}

static void test_file__binary_is_refused(void **state)
{
    (void)state;
    me_diag diag = {0};
    me_config *config = me_config_create();
    assert_int_equal(me_config_read_text(config, "a.out",
                                         "\n\x7f"
                                         "ELF\0\1",
                                         7, &diag),
                     ME_ERR_SYNTAX);
    assert_int_equal(diag.line, 2);
    assert_non_null(strstr(diag.text, "binary file"));
    me_config_destroy(config);
}

static void test_file__numbers_sizes_and_comments(void **state)
{
    (void)state;
    me_config *config = job_from_text(
        "# one\nname = \"x // y # z\"; // two\n"
        "device : { memory = 85899345920, memory_limit = \"64GiB\" }\n"
        "/* three\n @include \"nothing\" */\n"
        "model = { hidden_dropout = 0; attention_dropout = 1e-1;"
        " num_layers = 12L; rotary_percent = .5; };");
    assert_string_equal(config->name, "x // y # z");
    assert_true(config->device.memory_bytes == UINT64_C(85899345920));
    assert_true(config->device.memory_limit_bytes == UINT64_C(64) << 30);
    assert_int_equal(config->model.num_layers, 12);
    assert_true(config->model.hidden_dropout == 0.0);
    assert_true(config->model.attention_dropout == 0.1);
    assert_true(config->model.rotary_percent == 0.5);
    me_config_destroy(config);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_file__what_a_file_says_beats_its_includes(void **state)
{
    (void)state;
    char folder[] = "/tmp/memest-test-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char base[64];
    char job[64];
    char loop[64];
    (void)snprintf(base, sizeof base, "%s/base.cfg", folder);
    (void)snprintf(job, sizeof job, "%s/job.cfg", folder);
    (void)snprintf(loop, sizeof loop, "%s/loop.cfg", folder);
    write_file(base, "model = { num_layers = 4; hidden_size = 64; };\n");
    write_file(job, "model = { num_layers = 8; };\n@include \"base.cfg\"\n");
    write_file(loop, "@include \"loop.cfg\"\n");
    me_diag diag = {0};
    me_config *config = me_config_create();
    assert_int_equal(me_config_read_file(config, job, &diag), ME_OK);
    assert_int_equal(config->model.num_layers, 8);
    assert_int_equal(config->model.hidden_size, 64);
    assert_int_equal(me_config_read_file(config, loop, &diag), ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "does a file include itself?"));
    assert_int_equal(diag.line, 1);
    me_config_destroy(config);
    (void)unlink(base);
    (void)unlink(job);
    (void)unlink(loop);
    (void)rmdir(folder);
}

static void test_file__models_are_found_by_name(void **state)
{
    (void)state;
    static const char *const names[] = {
        "llama-2-7b",   "llama-2-70b", "llama-3-8b", "llama-3-70b",
        "llama-3-405b", "mistral-7b",  "qwen2.5-7b", "qwen2.5-72b",
        "qwen3-8b",     "gpt-3-175b",  "gpt-3-6.7b",
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        me_diag diag = {0};
        me_config *config = me_config_create();
        assert_int_equal(me_config_read_file(config, names[i], &diag), ME_OK);
        assert_string_equal(config->name, names[i]);
        assert_int_equal(
            me_config_set(config, "train.micro_batch_size", "1", NULL), ME_OK);
        assert_int_equal(me_config_finish(config, 1, &diag), ME_OK);
        assert_int_equal(config->not_modelled.count, 0);
        me_config_destroy(config);
    }
    me_diag diag = {0};
    me_config *config = me_config_create();
    assert_int_equal(me_config_read_file(config, "llama3-8b", &diag),
                     ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "did you mean llama-3-8b?"));
    assert_int_equal(me_config_read_file(config, "nothing.cfg", &diag),
                     ME_ERR_IO);
    assert_int_equal(me_config_read_file(config, "/", &diag), ME_ERR_IO);
    assert_string_equal(diag.text, "is a directory, not a regular file");
    me_config_destroy(config);
}

static void test_file__example_needs_no_processes(void **state)
{
    (void)state;
    for (int32_t processes = 1; processes <= 8; processes *= 2) {
        me_config *config = me_config_create();
        assert_int_equal(
            me_config_read_file(config, SOURCE_DIR "/configs/gpt.cfg", NULL),
            ME_OK);
        assert_int_equal(me_config_finish(config, processes, NULL), ME_OK);
        assert_int_equal(config->parallel.world_size, 8);
        assert_int_equal(config->parallel.data, 2);
        assert_int_equal(config->train.num_microbatches, 4);
        assert_int_equal(config->not_modelled.count, 0);
        assert_int_equal(config->assumptions.count, 0);
        me_config_destroy(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file__errors_name_file_line_and_key),
        cmocka_unit_test(test_file__binary_is_refused),
        cmocka_unit_test(test_file__numbers_sizes_and_comments),
        cmocka_unit_test(test_file__what_a_file_says_beats_its_includes),
        cmocka_unit_test(test_file__models_are_found_by_name),
        cmocka_unit_test(test_file__example_needs_no_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
