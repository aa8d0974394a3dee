/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/tabulate.h"
#include "support/faults.h"
#include "support/test.h"

static const char *const header[] = {"Name", "Count", "Part", "Mixed",
                                     "Flag", "Large", "Empty"};
static const char *const cells[] = {
    "a",         "1",     "0.5000",   "1",    "True",
    "1.80e+308", "",      "",         "-20",  "1e-07",
    "x",         "False", "2.00e+00", "",     "longer name",
    "300",       "nan",   "",         "True", "",
    "3"};

enum {
    COLUMNS = sizeof header / sizeof header[0],
    CELLS = sizeof cells / sizeof cells[0]
};

static me_tabulate example(void)
{
    me_tabulate table = {.n_columns = COLUMNS};
    for (int i = 0; i < COLUMNS; i++) {
        me_tabulate_add(&table, header[i]);
    }
    for (int i = 0; i < CELLS; i++) {
        me_tabulate_add(&table, cells[i]);
    }
    return table;
}

/* As tabulate 0.10 prints the same cells. */
static void test_tabulate__aligns_numbers(void **state)
{
    (void)state;
    me_tabulate table = example();
    me_str text = {0};
    me_tabulate_append_rst(&table, &text);
    assert_string_equal(
        me_str_text(&text),
        "===========  =======  =======  =======  ======  =========  =======\n"
        "Name           Count     Part  Mixed    Flag    Large        Empty\n"
        "===========  =======  =======  =======  ======  =========  =======\n"
        "a                  1    0.5    1        True    1.80e+308\n"
        "..               -20    1e-07  x        False   2.00e+00\n"
        "longer name      300  nan               True                     3\n"
        "===========  =======  =======  =======  ======  =========  =======\n");
    me_str_fini(&text);
    me_tabulate_fini(&table);
}

static void test_tabulate__fills_a_first_cell(void **state)
{
    (void)state;
    me_tabulate table = {.n_columns = 2};
    me_str text = {0};
    me_tabulate_add(&table, "");
    me_tabulate_add(&table, "x");
    me_tabulate_add(&table, "");
    me_tabulate_printf(&table, "%.2f", 1.25);
    me_tabulate_append_rst(&table, &text);
    assert_string_equal(me_str_text(&text), "====  ====\n"
                                            "..       x\n"
                                            "====  ====\n"
                                            "..    1.25\n"
                                            "====  ====\n");
    me_str_fini(&text);
    me_tabulate_fini(&table);
}

static void test_tabulate__is_plain(void **state)
{
    (void)state;
    me_tabulate table = {.n_columns = 2};
    me_str text = {0};
    me_tabulate_add(&table, "ab");
    me_tabulate_add(&table, "c");
    me_tabulate_add(&table, "");
    me_tabulate_add(&table, "1.50");
    me_tabulate_append_plain(&table, &text);
    assert_string_equal(me_str_text(&text), "ab\tc   \n  \t1.50\n");
    me_str_fini(&text);
    me_tabulate_fini(&table);
}

static me_status print(void *context)
{
    (void)context;
    me_tabulate table = example();
    me_str text = {0};
    me_tabulate_append_rst(&table, &text);
    me_tabulate_append_plain(&table, &text);
    const me_status status = me_str_status(&text);
    me_str_fini(&text);
    me_tabulate_fini(&table);
    return status;
}

static void test_tabulate__fails_without_memory(void **state)
{
    (void)state;
    me_sweep_faults(print, NULL, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tabulate__aligns_numbers),
        cmocka_unit_test(test_tabulate__fills_a_first_cell),
        cmocka_unit_test(test_tabulate__is_plain),
        cmocka_unit_test(test_tabulate__fails_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
