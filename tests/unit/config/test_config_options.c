/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/alloc.h"
#include "base/parse.h"
#include "job.h"
#include "support/same_job.h"

#include <stdio.h>
#include <stdlib.h>

static void test_options__table_is_sound(void **state)
{
    (void)state;
    size_t count = 0;
    const me_option *options = me_options(&count);
    me_config *config = me_config_create();
    assert_non_null(config);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(me_option_find(options[i].name), &options[i]);
        assert_true(options[i].help[strlen(options[i].help) - 1] == '.');
        me_str text = {0};
        me_option_format(&options[i], config, &text);
        if (options[i].type != ME_OPTION_DOUBLE) {
            assert_string_equal(me_str_text(&text), options[i].default_text);
        }
        me_str_fini(&text);
    }
    me_config_destroy(config);
}

static void test_options__refuse_wrong_values(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"model.num_layers", "0", "whole number from 1"},
        {"model.num_layers", "-1", "whole number from 1"},
        {"model.num_layers", "many", "model.num_layers = many"},
        {"model.num_layers", "", "whole number"},
        {"parallel.tensor", "99999999999999999999", "whole number from 1"},
        {"device.memory", "80GB", "KiB, MiB, GiB or TiB"},
        {"device.memory", "1023KiB", "= 1023KiB: must be at least 1MiB"},
        {"device.memory_limit", "1KiB", "= 1KiB: must be at least 1MiB"},
        {"device.host_memory", "0TiB", "= 0TiB: must be at least 1MiB"},
        {"device.memory_limit", "0", "= 0: must be at least 1MiB"},
        {"train.params_dtype", "bf16", "one of float32, bfloat16, float16"},
        {"model.qk_layernorm", "yes", "true or false"},
        {"model.attention_dropout", "1.5", "a number from 0 to 1"},
        {"model.attention_dropout", "nan", "a number from 0 to 1"},
        {"name", "a\nb", "printable text"},
        {"model.num_layer", "4", "did you mean model.num_layers?"},
        {"nothing.like_it", "4", "unknown option 'nothing.like_it'"},
    };
    me_config *config = me_config_create();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        me_diag diag = {0};
        assert_int_equal(me_config_set(config, cases[i][0], cases[i][1], &diag),
                         ME_ERR_CONFIG);
        assert_non_null(strstr(diag.text, cases[i][2]));
        assert_null(strchr(diag.text, '\n'));
    }
    me_diag diag = {0};
    assert_int_equal(me_config_set_assignment(config, "parallel.tensor", &diag),
                     ME_ERR_CONFIG);
    assert_int_equal(me_config_set_assignment(config, "=2", &diag),
                     ME_ERR_CONFIG);
    me_config_destroy(config);
}

static void test_options__remember_what_was_set(void **state)
{
    (void)state;
    me_config *config = me_config_create();
    assert_false(me_config_is_set(config, "parallel.tensor"));
    assert_int_equal(
        me_config_set_assignment(config, "parallel.tensor=1", NULL), ME_OK);
    assert_true(me_config_is_set(config, "parallel.tensor"));
    assert_int_equal(
        me_config_set_assignment(config, "device.alloc_conf=a:b,c=d", NULL),
        ME_OK);
    assert_string_equal(config->device.alloc_conf, "a:b,c=d");
    me_config *copy = me_config_clone(config);
    assert_non_null(copy);
    assert_true(is_same_job(config, copy));
    assert_true(me_config_is_set(copy, "parallel.tensor"));
    assert_int_equal(me_config_set(copy, "parallel.tensor", "2", NULL), ME_OK);
    assert_false(is_same_job(config, copy));
    me_config_destroy(copy);
    me_config_destroy(config);
}

/* A value for an option, drawn from a seed. */
static void draw_value(const me_option *option, unsigned *seed, char *value,
                       size_t size)
{
    *seed = *seed * 1664525u + 1013904223u;
    const unsigned r = *seed >> 8;
    size_t n_words = 0;
    switch (option->type) {
    case ME_OPTION_INT:
    case ME_OPTION_COUNT:
        (void)snprintf(value, size, "%.0f",
                       option->min + r % (option->max < 100000
                                              ? (unsigned)option->max - 1
                                              : 100000));
        break;
    case ME_OPTION_SIZE:
        (void)snprintf(value, size, "%u%s",
                       r % 2 == 0 ? 1 + r % 3000
                                  : ME_LEAST_MEMORY_BYTES + r % 3000,
                       r % 2 == 0 ? "MiB" : "");
        break;
    case ME_OPTION_BOOL:
        (void)snprintf(value, size, "%s", r % 2 == 0 ? "true" : "false");
        break;
    case ME_OPTION_DOUBLE:
        (void)snprintf(value, size, "0.%u", r % 1000000);
        break;
    case ME_OPTION_ENUM:
        while (option->words[n_words].word != NULL) {
            n_words++;
        }
        (void)snprintf(value, size, "%s", option->words[r % n_words].word);
        break;
    case ME_OPTION_STRING:
        (void)snprintf(value, size, "a \"%u\" \\ # /* // @include \xc3\xa9", r);
        break;
    }
}

static void test_options__dump_reads_back_equal(void **state)
{
    (void)state;
    const char *given = getenv("MEMEST_SEED");
    const unsigned first =
        given == NULL ? 1 : (unsigned)strtoul(given, NULL, 10);
    size_t count = 0;
    const me_option *options = me_options(&count);
    for (unsigned round = 0; round < 200; round++) {
        unsigned seed = first + round;
        me_config *config = me_config_create();
        for (size_t i = 0; i < count; i++) {
            char value[96];
            draw_value(&options[i], &seed, value, sizeof value);
            if ((seed >> 28) % 3 != 0) {
                assert_int_equal(
                    me_config_set(config, options[i].name, value, NULL), ME_OK);
            }
        }
        me_str text = {0};
        me_config_dump(config, &text);
        me_config *back = job_from_text(me_str_text(&text));
        if (!is_same_job(config, back)) {
            fail_msg("MEMEST_SEED=%u: dump reads back different:\n%s",
                     first + round, me_str_text(&text));
        }
        me_str_fini(&text);
        me_config_destroy(back);
        me_config_destroy(config);
    }
}

static void test_options__finished_dump_finishes_equal(void **state)
{
    (void)state;
    static const char *const jobs[] = {
        "parallel.num_layers_per_virtual_pipeline_stage=2 "
        "parallel.sequence=true",
        "parallel.pipeline_layout=Et*3|t*3|tt|L",
        "parallel.virtual_pipeline=2 recompute.granularity=full "
        "recompute.method=block recompute.num_layers=0",
    };
    for (size_t i = 0; i < COUNT_OF(jobs); i++) {
        me_config *config = job_with(jobs[i]);
        assert_int_equal(me_config_set(config, "parallel.pipeline", "2", NULL),
                         ME_OK);
        assert_int_equal(
            me_config_set(config, "parallel.world_size", "8", NULL), ME_OK);
        assert_int_equal(
            me_config_set(config, "train.global_batch_size", "16", NULL),
            ME_OK);
        assert_int_equal(me_config_finish(config, 1, NULL), ME_OK);
        assert_int_equal(config->parallel.virtual_pipeline, 2);
        me_str text = {0};
        me_config_dump(config, &text);
        me_config *back = job_from_text(me_str_text(&text));
        assert_int_equal(me_config_finish(back, 5, NULL), ME_OK);
        assert_true(is_same_job(config, back));
        assert_int_equal(back->parallel.data, config->parallel.data);
        assert_int_equal(back->train.num_microbatches,
                         config->train.num_microbatches);
        me_str_fini(&text);
        me_config_destroy(back);
        me_config_destroy(config);
    }
}

/* MEMEST_UPDATE_GOLDEN=1 rewrites the page instead. */
static void test_options__page_is_up_to_date(void **state)
{
    (void)state;
    static const char path[] = SOURCE_DIR "/docs/options.md";
    me_str page = {0};
    me_options_markdown(&page);
    assert_int_equal(me_str_status(&page), ME_OK);
    if (getenv("MEMEST_UPDATE_GOLDEN") != NULL) {
        FILE *out = fopen(path, "wb");
        assert_non_null(out);
        assert_int_equal(fwrite(page.text, 1, page.length, out), page.length);
        assert_int_equal(fclose(out), 0);
    }
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    char *text = calloc(page.length + 2, 1);
    assert_non_null(text);
    const size_t length = fread(text, 1, page.length + 1, in);
    (void)fclose(in);
    assert_int_equal(length, page.length);
    assert_string_equal(text, me_str_text(&page));
    free(text);
    me_str_fini(&page);
}

static void test_options__list_has_each_once(void **state)
{
    (void)state;
    me_str list = {0};
    assert_true(me_options_list(NULL, &list));
    size_t count = 0;
    (void)me_options(&count);
    size_t lines = 0;
    for (const char *c = me_str_text(&list); *c != '\0'; c++) {
        lines += *c == '\n';
    }
    assert_int_equal(lines, count);
    me_str_fini(&list);
}

/* Every allocation fails once: no crash, no leak, no job without memory. */
static void test_options__survive_without_memory(void **state)
{
    (void)state;
    bool is_done = false;
    for (uint64_t nth = 1; nth < 500 && !is_done; nth++) {
        me_alloc_fail_at(nth);
        me_config *config = me_config_create();
        me_status status = ME_ERR_NOMEM;
        me_config *copy = NULL;
        if (config != NULL) {
            status = me_config_read_text(config, "job.cfg", JOB_TEXT,
                                         strlen(JOB_TEXT), NULL);
            copy = status == ME_OK ? me_config_clone(config) : NULL;
            status =
                copy == NULL ? ME_ERR_NOMEM : me_config_finish(copy, 4, NULL);
        }
        me_alloc_fail_at(0);
        is_done = status == ME_OK;
        assert_true(is_done || status == ME_ERR_NOMEM);
        me_config_destroy(copy);
        me_config_destroy(config);
    }
    assert_true(is_done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options__table_is_sound),
        cmocka_unit_test(test_options__refuse_wrong_values),
        cmocka_unit_test(test_options__remember_what_was_set),
        cmocka_unit_test(test_options__dump_reads_back_equal),
        cmocka_unit_test(test_options__finished_dump_finishes_equal),
        cmocka_unit_test(test_options__page_is_up_to_date),
        cmocka_unit_test(test_options__list_has_each_once),
        cmocka_unit_test(test_options__survive_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
