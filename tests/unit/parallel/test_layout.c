/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/str.h"
#include "parallel/layout.h"
#include "parallel/stage_layers.h"
#include "support/faults.h"
#include "support/test.h"

#include <string.h>

/** The stages of a layout as text: "3 2 0" is three layers, two, none. */
static void assert_stages(const char *text, const char *expected)
{
    me_diag diag = {0};
    me_layout layout;
    const me_status status = me_layout_init(text, &diag, &layout);
    if (status != ME_OK) {
        fail_msg("%s: %s", text, diag.text);
    }
    me_str stages = {0};
    for (int32_t v = 0; v < layout.n_stages; v++) {
        me_str_printf(&stages, "%s%d", v == 0 ? "" : " ",
                      layout.first_layer[v + 1] - layout.first_layer[v]);
    }
    assert_string_equal(me_str_text(&stages), expected);
    me_str_fini(&stages);
    me_layout_fini(&layout);
}

static void test_layout__stages(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"EL", "0"},
        {"EtttL", "3"},
        {"E|L", "0 0"},
        {"Et*3|t*2L", "3 2"},
        {"Et*3|(tt|)*2,L", "3 2 2 0"},
        {"E,t,t|t,,t|,L", "2 2 0"},
        {"E|t*1,2|L", "0 12 0"},
        {"E|*3tL", "0 0 0 1"},
        {"E(t|tt)*3|L", "1 3 3 2 0"},
        {"E(t*2|)*3,t*0,L", "2 2 2 0"},
        {"E(t*0)*1000000|L", "0 0"},
        {"|Ett|L|", "0 2 0 0"},
        {"(E)*1(t|)*2L", "1 1 0"},
        /* The stack of 61 layers in the guide of Megatron-LM, 16 ranks of two
         * chunks, without its m. */
        {"Et*3|(tt|)*29,|L", "3 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 "
                             "2 2 2 2 2 2 0 0"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_stages(cases[i][0], cases[i][1]);
    }
}

static void test_layout__says_what_is_wrong(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *part;
    } cases[] = {
        {"", "0 E and 0 L"},
        {"ttt", "0 E and 0 L"},
        {"EEtL", "2 E and 1 L"},
        {"EtL|L", "1 E and 2 L"},
        {"E*2tL", "2 E and 1 L"},
        {"tE|L", "begins with t and ends with L"},
        {"E|Lt", "begins with E and ends with t"},
        {"Etx|L", "x at character 3 is not known"},
        {"E t|L", "  at character 2 is not known"},
        {"E,\xc3\xa9|L", "a byte at character 3 is not known"},
        {"Ed|L", "d at character 2"},
        {"E*|L", "a number must follow the * at character 2"},
        {"E|t*-1|L", "a number must follow the * at character 4"},
        {"*3E|L", "* at character 1 has nothing to repeat"},
        {"E(*2t)*2L", "* at character 3 has nothing to repeat"},
        {"Et*2*3L", "* at character 5 repeats what is repeated"},
        {"E(t)*2*3L", "* at character 7 repeats what is repeated"},
        {"E(t|L", "( at character 2 is not closed"},
        {"E(tt|)L", "*n must follow the group that ends at character 6"},
        {"E()*3L", ") at character 3"},
        {"Et)*3L", ") at character 3"},
        {"E((t|)*2t|)*3L", "( at character 3 is inside of another group"},
        {"Et*1048577L", "the number at character 4 is over 1048576"},
        {"Et*99999999999999999999L", "the number at character 4 is over"},
        {"E(t*1000|)*1048576,L", "more than 1048576 layers and stages"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_diag diag = {0};
        me_layout layout;
        assert_int_equal(me_layout_init(cases[i].text, &diag, &layout),
                         ME_ERR_CONFIG);
        if (strstr(diag.text, cases[i].part) == NULL) {
            fail_msg("%s: %s", cases[i].text, diag.text);
        }
        me_layout_fini(&layout);
    }
}

static void test_layout__has_one_stage_of_multi_token_layers(void **state)
{
    (void)state;
    me_diag diag = {0};
    me_layout layout;
    assert_int_equal(me_layout_init("Et|m|L", &diag, &layout), ME_OK);
    assert_int_equal(layout.mtp_stage, 1);
    me_layout_fini(&layout);
    assert_int_equal(me_layout_init("Et|m|mL", &diag, &layout), ME_ERR_CONFIG);
    assert_string_equal(diag.text,
                        "pipeline layout: m at character 6 is in another "
                        "stage than the first m: one stage must have all");
    assert_int_equal(me_layout_init("Et|mtL", &diag, &layout), ME_ERR_CONFIG);
    assert_string_equal(diag.text,
                        "pipeline layout: t at character 5 comes after m: "
                        "decoder layers must come first");
    assert_int_equal(me_layout_init("Ett|t,m*2L", &diag, &layout), ME_OK);
    assert_int_equal(layout.n_mtp_layers, 2);
    assert_int_equal(layout.mtp_stage, 1);
    assert_int_equal(me_layout_n_layers(&layout), 3);
    me_layout_fini(&layout);
}

/* Chunk k of rank r is stage k p + r of the text. */
static void test_layout__splits_over_ranks_and_chunks(void **state)
{
    (void)state;
    me_layout layout;
    assert_int_equal(me_layout_init("E|t|tt|ttt|t*4|L", NULL, &layout), ME_OK);
    const me_layer_split split = {.n_layers = 10,
                                  .pipeline = 3,
                                  .chunks = 2,
                                  .is_tied = true,
                                  .layout = &layout};
    assert_int_equal(me_layer_split_check(&split, NULL), ME_OK);
    static const int32_t expected[][2] = {{0, 0}, {0, 1}, {1, 2},
                                          {3, 3}, {6, 4}, {10, 0}};
    for (int32_t v = 0; v < 6; v++) {
        const me_stage stage = me_layer_split_stage(&split, v % 3, v / 3);
        assert_int_equal(stage.first_layer, expected[v][0]);
        assert_int_equal(stage.n_layers, expected[v][1]);
        assert_int_equal(stage.has_embedding, v == 0);
        assert_int_equal(stage.has_head, v == 5);
        assert_int_equal(stage.has_embedding_copy, v == 5);
    }
    me_layout_fini(&layout);
}

/* The stage of m has an embedding, what follows receives all depths. */
static void test_layout__has_a_stage_for_mtp(void **state)
{
    (void)state;
    me_layout layout;
    assert_int_equal(me_layout_init("Et|t|m||L", NULL, &layout), ME_OK);
    const me_layer_split split = {.n_layers = 2,
                                  .pipeline = 5,
                                  .chunks = 1,
                                  .has_mtp = true,
                                  .layout = &layout};
    assert_int_equal(me_layer_split_mtp_stage(&split), 2);
    for (int32_t rank = 0; rank < 5; rank++) {
        const me_stage stage = me_layer_split_stage(&split, rank, 0);
        assert_int_equal(stage.has_mtp, rank == 2);
        assert_int_equal(stage.is_behind_mtp, rank > 2);
        assert_int_equal(stage.has_embedding_copy, rank == 2);
        assert_int_equal(stage.is_shared_embedding, rank == 0 || rank == 2);
    }
    me_layout_fini(&layout);
}

static void test_layout__must_fit_the_split(void **state)
{
    (void)state;
    me_layout layout;
    assert_int_equal(me_layout_init("Et|t|t|tL", NULL, &layout), ME_OK);

    const struct {
        me_layer_split split;
        const char *text;
    } bad[] = {
        {{.n_layers = 4, .pipeline = 3, .chunks = 1},
         "the pipeline layout has 4 stages, not 3 pipeline ranks x 1 chunks"},
        {{.n_layers = 4, .pipeline = 2, .chunks = 1},
         "the pipeline layout has 4 stages, not 2 pipeline ranks x 1 chunks"},
        {{.n_layers = 5, .pipeline = 4, .chunks = 1},
         "the pipeline layout has 4 layers (t), the model 5"},
        {{.n_layers = 4, .pipeline = 2, .chunks = 2, .first_layers = 1},
         "a pipeline layout says all: layers of the first or last pipeline "
         "rank, and embedding or loss that count as layers, can't be given "
         "with it"},
    };

    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        me_layer_split split = bad[i].split;
        split.layout = &layout;
        me_diag diag = {0};
        assert_int_equal(me_layer_split_check(&split, &diag), ME_ERR_CONFIG);
        assert_string_equal(diag.text, bad[i].text);
    }
    me_layout_fini(&layout);
}

static me_status read_layout(void *context)
{
    (void)context;
    me_layout layout;
    const me_status status = me_layout_init("Et|(t|)*3L", NULL, &layout);
    me_layout_fini(&layout);
    return status;
}

static void test_layout__survives_without_memory(void **state)
{
    (void)state;
    me_sweep_faults(read_layout, NULL, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout__stages),
        cmocka_unit_test(test_layout__says_what_is_wrong),
        cmocka_unit_test(test_layout__has_one_stage_of_multi_token_layers),
        cmocka_unit_test(test_layout__splits_over_ranks_and_chunks),
        cmocka_unit_test(test_layout__has_a_stage_for_mtp),
        cmocka_unit_test(test_layout__must_fit_the_split),
        cmocka_unit_test(test_layout__survives_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
