/* SPDX-License-Identifier: BSD-3-Clause */
#include "parallel/moe_layers.h"
#include "support/test.h"

#include <string.h>

enum {
    LAYERS = 6
};

static void test_moe_layers__reads(void **state)
{
    (void)state;

    static const char *const cases[][2] = {
        {"1", "111111"},
        {"2", "101010"},
        {"6", "100000"},
        {" 3", "100100"},
        {"[0,1,1,0,1,1]", "011011"},
        {"([0]*1+[1]*5)", "011111"},
        {"[1]*6", "111111"},
        {"([0,1]*2)+[1]*2", "010111"},
        {"([0]+[1]*2)*2", "011011"},
        {"[1]*0+[0]*6", "000000"},
        {"3*[1,0]", "101010"},
        {"[1,0,0,0,0,0,]", "100000"},
        {"(([1]))+([0]*(1+2**2))", "100000"},
        {"+6", "100000"},
        {"2*[1,0]*1+[+1,0*9]", "101010"},
        {"([1]*99999999)*0+[1]*+6", "111111"},
        {"(([1]*1000)*1000)*0+(2+0)*[0,1,(1)]", "011011"},
        {"[0**0,0**5,1**9,00,2**0,0]", "101010"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_diag diag = {.status = ME_OK};
        bool layers[LAYERS] = {false};
        char text[LAYERS + 1] = "";
        assert_int_equal(me_moe_layers_read(cases[i][0], LAYERS, &diag, layers),
                         ME_OK);
        for (int k = 0; k < LAYERS; k++) {
            text[k] = layers[k] ? '1' : '0';
        }
        assert_string_equal(text, cases[i][1]);
    }
}

static void test_moe_layers__refuses(void **state)
{
    (void)state;

    static const char *const unreadable[] = {
        "",
        "0",
        "-1",
        "x",
        "1x",
        "[0,1",
        "[2]*6",
        "[1]*",
        "[1]*6]",
        "([1]*6",
        "[1]+",
        "[1]*6+[x]",
        "1 2",
        "[1 1]",
        "[1, 0, 0, 0, 0, 0]",
        " [1]*6",
        "[1]*6 ",
        "[1]*06",
        "[1]*[6]",
        "[1]+6",
        "+[1]*6",
        "[1]**6",
        "[,]*6",
        "[1,,1]",
        "[[1]]*6",
        "[1],[1]",
        "[1]*6()",
        "(6)",
        "((((((((((((((((((",
    };
    static const char *const long_or_short[] = {
        "[]", "[1]*5", "[1]*7", "[1]*99999", "(([1]*1000)*1000)*1000"};
    me_diag diag = {.status = ME_OK};
    bool layers[LAYERS] = {false};
    for (unsigned i = 0; i < sizeof unreadable / sizeof unreadable[0]; i++) {
        assert_int_equal(
            me_moe_layers_read(unreadable[i], LAYERS, &diag, layers),
            ME_ERR_CONFIG);
        if (strstr(diag.text, "must be a number of layers") == NULL) {
            fail_msg("%s: %s", unreadable[i], diag.text);
        }
    }
    for (unsigned i = 0; i < sizeof long_or_short / sizeof long_or_short[0];
         i++) {
        assert_int_equal(
            me_moe_layers_read(long_or_short[i], LAYERS, &diag, layers),
            ME_ERR_CONFIG);
        if (strstr(diag.text, "is not as long as model.num_layers = 6") ==
            NULL) {
            fail_msg("%s: %s", long_or_short[i], diag.text);
        }
    }
}

/* Each end of a period has no window; a list may be longer than the model. */
static void test_moe_layers__windows(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *windows; /**< NULL: it is refused */
    } cases[] = {
        {"", "111111"},
        {"1", "000000"},
        {"2", "101010"},
        {"4", "111011"},
        {"7", "111111"},
        {"[1,0,0,1,1,0]", "100110"},
        {"[0]+[1]*9", "011111"},
        {"[1,0]*2", NULL},
        {"0", NULL},
        {"a", NULL},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_diag diag = {.status = ME_OK};
        bool layers[LAYERS] = {false};
        char found[LAYERS + 1] = "";
        const me_status status =
            me_window_layers_read(cases[i].text, LAYERS, &diag, layers);
        for (int l = 0; l < LAYERS; l++) {
            found[l] = layers[l] ? '1' : '0';
        }
        if (cases[i].windows == NULL) {
            assert_int_equal(status, ME_ERR_CONFIG);
            assert_non_null(strstr(diag.text, "model.window_attn_skip_freq"));
        } else {
            assert_int_equal(status, ME_OK);
            assert_string_equal(found, cases[i].windows);
        }
    }
}

/* The layers without rotary embedding: a period that divides the layers, or a
 * list for all of them. */
static void test_moe_layers__reads_layers_without_rope(void **state)
{
    static const struct {
        const char *text;
        const char *lacking; /**< NULL: refused */
    } cases[] = {
        {"", "000000"},
        {"0", "000000"},
        {"1", "111111"},
        {"2", "010101"},
        {"3", "001001"},
        {"6", "000001"},
        {"[1,0,0,1,1,0]", "100110"},
        {"([0]*2+[1])*2", "001001"},
        {"4", NULL},
        {"[0,1]", NULL},
        {"[0]*7", NULL},
        {"a", NULL},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_diag diag = {.status = ME_OK};
        bool layers[LAYERS] = {false};
        char found[LAYERS + 1] = "";
        const me_status status =
            me_no_rope_layers_read(cases[i].text, LAYERS, &diag, layers);
        for (int l = 0; l < LAYERS; l++) {
            found[l] = layers[l] ? '1' : '0';
        }
        if (cases[i].lacking == NULL) {
            assert_int_equal(status, ME_ERR_CONFIG);
            assert_non_null(strstr(diag.text, "model.no_rope_freq"));
        } else {
            assert_int_equal(status, ME_OK);
            assert_string_equal(found, cases[i].lacking);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moe_layers__reads),
        cmocka_unit_test(test_moe_layers__refuses),
        cmocka_unit_test(test_moe_layers__windows),
        cmocka_unit_test(test_moe_layers__reads_layers_without_rope),
    };
    return cmocka_run_group_tests_name("moe_layers", tests, NULL, NULL);
}
