/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/page.h"
#include "support/test.h"

#include <string.h>

static void test_page__escapes_text(void **state)
{
    (void)state;
    me_str page = {0};
    me_html_append(&page, "<a href='x'>\"&\n\001\177\302\261");
    assert_string_equal(me_str_text(&page), "&lt;a href=&#39;x&#39;&gt;&quot;"
                                            "&amp;\n??\302\261");
    me_str_fini(&page);
}

static void test_page__begins_with_an_escaped_title(void **state)
{
    (void)state;
    me_str page = {0};
    me_page_begin(&page, "</title><b>");
    assert_null(strstr(me_str_text(&page), "</title><b>"));
    assert_non_null(strstr(me_str_text(&page), "<h1>&lt;/title&gt;&lt;b&gt;"));
    assert_non_null(strstr(me_str_text(&page), "default-src 'none'"));
    me_str_fini(&page);
}

typedef struct row {
    const char *name;
    int64_t parent;
} row;

static void get_name(const void *line, me_str *cell)
{
    me_str_append(cell, ((const row *)line)->name);
}

static int64_t get_parent(const void *rows, size_t i)
{
    return ((const row *)rows)[i].parent;
}

static void test_page__indents_rows_of_a_tree(void **state)
{
    (void)state;
    const row rows[] = {{"a", -1}, {"<b>", 0}, {"c", 1}};
    const me_column columns[] = {{"name", NULL, false, true, get_name}};
    me_str page = {0};
    assert_int_equal(me_page_table(&(me_table){.columns = columns,
                                               .n_columns = 1,
                                               .rows = rows,
                                               .n_rows = 3,
                                               .row_bytes = sizeof *rows,
                                               .parent = get_parent},
                                   &page),
                     ME_OK);
    const char *text = me_str_text(&page);
    assert_non_null(strstr(text, "left: 1em\">a<"));
    assert_non_null(strstr(text, "left: 2em\">&lt;b&gt;<"));
    assert_non_null(strstr(text, "left: 3em\">c<"));
    me_str_fini(&page);
}

static void test_page__writes_rows_as_json(void **state)
{
    (void)state;
    me_chart_rows rows = {.count = 0};
    for (int i = 0; i < 2; i++) {
        me_chart_row_begin(&rows);
        me_chart_text(&rows, "a\"\\\n\001<");
        me_chart_number(&rows, i == 0 ? UINT64_MAX : 7);
        me_chart_integer(&rows, -i);
        me_chart_row_end(&rows);
    }
    assert_string_equal(me_str_text(&rows.text),
                        "[\"a\\u0022\\u005c\\n?<\",null,0],\n"
                        "[0,7,-1]");
    assert_int_equal(rows.count, 2);
    me_chart_rows_fini(&rows);
}

/* Differences, indices, and no more cells than differ from those above. */
static void test_page__packs_rows(void **state)
{
    (void)state;

    const struct {
        const char *a;
        const char *b;
        uint64_t number;
        int64_t integer;
    } cells[] = {
        {"x", "x", 1000, -1}, {"x", "x", 1000, -1}, {"x", "y", 900, -1},
        {"y", "z", 900, 3},   {"x", "z", 901, -4},
    };

    me_chart_rows rows = {.count = 0};
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        me_chart_row_begin(&rows);
        me_chart_text(&rows, cells[i].a);
        me_chart_text(&rows, cells[i].b);
        me_chart_number(&rows, cells[i].number);
        me_chart_integer(&rows, cells[i].integer);
        me_chart_row_end(&rows);
    }
    // Texts in the order in which they are written: x, x of the second column
    // (whose first word has to be one), y, z.
    assert_string_equal(me_str_text(&rows.text), "[\"x\",\"x\",1000,-1],\n"
                                                 "[],\n"
                                                 "[0,\"y\",-100],\n"
                                                 "[2,\"z\",0,4],\n"
                                                 "[0,3,1,-7]");
    me_chart_rows_fini(&rows);
}

static void get_shell(const void *line, me_str *cell)
{
    (void)line;
    me_str_append(cell, "--set a=1");
}

/* What is to be pasted is not cut where the page ends: it goes on in the next line,
 * and each of its words is whole. */
static void test_page__breaks_between_words_to_paste(void **state)
{
    (void)state;
    const row rows[] = {{"a", -1}};
    const me_column columns[] = {{"name", NULL, false, false, get_name},
                                 {"flags", NULL, false, false, get_shell}};
    me_str page = {0};
    assert_int_equal(me_page_table(&(me_table){.columns = columns,
                                               .n_columns = 2,
                                               .rows = rows,
                                               .n_rows = 1,
                                               .row_bytes = sizeof *rows,
                                               .ends_in_shell = true},
                                   &page),
                     ME_OK);
    assert_non_null(strstr(me_str_text(&page),
                           "<td>a</td><td class=\"shell\"><span>--set</span> "
                           "<span>a=1</span></td>"));
    me_str_fini(&page);
}

static void test_page__draws_only_what_is_there(void **state)
{
    (void)state;
    if (!me_page_is_available()) {
        skip();
    }
    me_chart_rows rows = {.count = 0};
    me_chart_row_begin(&rows);
    me_chart_text(&rows, "</script>");
    me_chart_row_end(&rows);
    me_chart chart = {.spec = "peaks",
                      .data = "peaks",
                      .columns = "\"category\"",
                      .rows = &rows,
                      .signals = json_pack("{s:i}", "rows", 3)};
    me_str page = {0};
    assert_int_equal(me_page_chart(&page, &chart), ME_OK);
    assert_null(strstr(me_str_text(&page), "</script>\"]"));
    assert_non_null(strstr(me_str_text(&page), "\\u003c/script>\"]"));
    chart.signals = json_pack("{s:i}", "nobody", 3);
    assert_int_equal(me_page_chart(&page, &chart), ME_ERR_INTERNAL);
    chart.signals = NULL;
    chart.spec = "nothing";
    assert_int_equal(me_page_chart(&page, &chart), ME_ERR_INTERNAL);
    me_str_fini(&page);
    me_chart_rows_fini(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page__escapes_text),
        cmocka_unit_test(test_page__begins_with_an_escaped_title),
        cmocka_unit_test(test_page__indents_rows_of_a_tree),
        cmocka_unit_test(test_page__writes_rows_as_json),
        cmocka_unit_test(test_page__packs_rows),
        cmocka_unit_test(test_page__breaks_between_words_to_paste),
        cmocka_unit_test(test_page__draws_only_what_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
