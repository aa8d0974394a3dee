/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/table.h"
#include "support/test.h"

typedef struct row {
    const char *name;
    int32_t number;
    const char *what;
} row;

static void get_name(const void *record, me_str *cell)
{
    me_str_append(cell, ((const row *)record)->name);
}

static void get_number(const void *record, me_str *cell)
{
    me_str_printf(cell, "%d", (int)((const row *)record)->number);
}

static void get_what(const void *record, me_str *cell)
{
    me_str_append(cell, ((const row *)record)->what);
}

static const me_column columns[] = {
    {"name", NULL, false, false, get_name},
    {"number", NULL, true, false, get_number},
    {"what it is", NULL, false, false, get_what},
};

static const row rows[] = {
    {"decoder.layers.0.self_attention.core_attention", 1, "first"},
    {"output_layer", 20, "the last of the words that stand in a row of some"},
};

static void check(unsigned width, const char *narrow, bool ends_in_shell,
                  const char *expected)
{
    me_str text = {.columns = width};
    me_table table = *ME_TABLE(columns, rows, 2);
    table.narrow = narrow;
    table.ends_in_shell = ends_in_shell;
    assert_int_equal(me_table_print(&table, &text), ME_OK);
    assert_string_equal(me_str_text(&text), expected);
    me_str_fini(&text);
}

static void test_table__is_whole_where_there_is_room(void **state)
{
    (void)state;
    static const char whole[] =
        "  name                                            number  what it is\n"
        "  decoder.layers.0.self_attention.core_attention       1  first\n"
        "  output_layer                                        20  the last of "
        "the words that stand in a row of some\n";
    check(0, "number;", false, whole);
    check(107, "number;", false, whole);
}

static void test_table__its_last_column_goes_on_below(void **state)
{
    (void)state;
    check(80, "number;", false,
          "  name                                            number  what it "
          "is\n"
          "  decoder.layers.0.self_attention.core_attention       1  first\n"
          "  output_layer                                        20\n"
          "      the last of the words that stand in a row of some\n");
    check(50, NULL, true,
          "  name                                    number\n"
          "      what it is\n"
          "  decoder.laye..attention.core_attention       1\n"
          "      first\n"
          "  output_layer                                20\n"
          "      the last of the words that stand in a row \\\n"
          "      of some\n");
}

static void test_table__loses_what_it_can_do_without(void **state)
{
    (void)state;
    check(30, "no such;number;", false,
          "  name\n"
          "      what it is\n"
          "  decoder...n.core_attention\n"
          "      first\n"
          "  output_layer\n"
          "      the last of the words that stand in a row of some\n"
          "  (left out, for lack of room: number)\n");
}

/* Names of words to paste stay whole: other columns go, or the names below. */
static void test_table__keeps_names_of_words_to_paste(void **state)
{
    (void)state;
    static const me_column pasted[] = {
        {"number", NULL, true, false, get_number},
        {"name", NULL, false, false, get_name},
        {"words", NULL, false, false, get_what},
    };

    static const struct {
        unsigned width;
        const char *expected;
    } cases[] = {
        {58, "  number  name\n"
             "      words\n"
             "       1  decoder.layers.0.self_attention.core_attention\n"
             "      first\n"
             "      20  output_layer\n"
             "      the last of the words that stand in a row of some\n"},
        {52, "  name\n"
             "      words\n"
             "  decoder.layers.0.self_attention.core_attention\n"
             "      first\n"
             "  output_layer\n"
             "      the last of the words that stand in a row of \\\n"
             "      some\n"
             "  (left out, for lack of room: number)\n"},
        {46, "  number\n"
             "      name\n"
             "      words\n"
             "       1\n"
             "      decoder.layers.0.self_attention.core_attention\n"
             "      first\n"
             "      20\n"
             "      output_layer\n"
             "      the last of the words that stand in a \\\n"
             "      row of some\n"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_str text = {.columns = cases[i].width};
        me_table table = *ME_TABLE(pasted, rows, 2);
        table.narrow = "number;";
        table.ends_in_shell = true;
        assert_int_equal(me_table_print(&table, &text), ME_OK);
        assert_string_equal(me_str_text(&text), cases[i].expected);
        me_str_fini(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table__is_whole_where_there_is_room),
        cmocka_unit_test(test_table__its_last_column_goes_on_below),
        cmocka_unit_test(test_table__loses_what_it_can_do_without),
        cmocka_unit_test(test_table__keeps_names_of_words_to_paste),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
