/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/torchtitan/toml.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static me_arena *arena(void)
{
    me_arena *made = me_arena_create(UINT64_C(1) << 20, "test");
    assert_non_null(made);
    return made;
}

/** The message as it is printed. */
static const char *shown(const me_diag *diag)
{
    static char text[ME_DIAG_TEXT + ME_DIAG_WHERE + 16];
    if (diag->line > 0) {
        (void)snprintf(text, sizeof text, "%s:%d: %s", diag->where, diag->line,
                       diag->text);
    } else {
        (void)snprintf(text, sizeof text, "%s%s%s", diag->where,
                       diag->where[0] == '\0' ? "" : ": ", diag->text);
    }
    return text;
}

static const char tables[] = "top = 1 # a comment\n"
                             "\n"
                             "[a]\n"
                             "text = \"x \\\"y\\\" \\\\\"\n"
                             "plain = 'c:\\dir'\n"
                             "whole = 1_000\r\n"
                             "negative = -1\n"
                             "[a.b]\n"
                             "decimal = 3.5e-4\n"
                             "yes = true\n"
                             "no = false\n"
                             "list = [\"p\", # in it\n"
                             "  'q',\n"
                             "]\n"
                             "nested = [[1, 2], []]\n"
                             "[c]\n"
                             "hex = 0x1F_ff\n"
                             "octal = 0o17\n"
                             "binary = 0b1_0\n"
                             "zero = 0\n"
                             "part = 0.5\n"
                             "most = -inf\n"
                             "none = nan\n"
                             "[ d . 'e' ]\n"
                             "f.g = 1\n"
                             "\"f\" . h = 2\n"
                             "i = { j = 3, k.l = 4, m = {}, n = [5,\n6] }\n"
                             "[d.f.o]\n"
                             "long = \"\"\"\n"
                             "one\n"
                             "  \\u00e9\\t\\\n"
                             "   two\"\"\"\"\n"
                             "raw = '''\\n'''\n"
                             "[d]\n"
                             "p = ''";

static void test_toml__tables_and_values(void **state)
{
    (void)state;

    static const struct {
        const char *table, *key;
        me_toml_type type;
        const char *text;
        int line;
    } expected[] = {
        {"", "top", ME_TOML_WHOLE, "1", 1},
        {"a", "text", ME_TOML_TEXT, "x \"y\" \\", 4},
        {"a", "plain", ME_TOML_TEXT, "c:\\dir", 5},
        {"a", "whole", ME_TOML_WHOLE, "1000", 6},
        {"a", "negative", ME_TOML_WHOLE, "-1", 7},
        {"a.b", "decimal", ME_TOML_DECIMAL, "3.5e-4", 9},
        {"a.b", "yes", ME_TOML_BOOL, "true", 10},
        {"a.b", "no", ME_TOML_BOOL, "false", 11},
        {"a.b", "list", ME_TOML_LIST, "p,q", 12},
        {"a.b", "nested", ME_TOML_LIST, "1,2,", 15},
        {"c", "hex", ME_TOML_WHOLE, "8191", 17},
        {"c", "octal", ME_TOML_WHOLE, "15", 18},
        {"c", "binary", ME_TOML_WHOLE, "2", 19},
        {"c", "zero", ME_TOML_WHOLE, "0", 20},
        {"c", "part", ME_TOML_DECIMAL, "0.5", 21},
        {"c", "most", ME_TOML_DECIMAL, "-inf", 22},
        {"c", "none", ME_TOML_DECIMAL, "nan", 23},
        {"d.e.f", "g", ME_TOML_WHOLE, "1", 25},
        {"d.e.f", "h", ME_TOML_WHOLE, "2", 26},
        {"d.e.i", "j", ME_TOML_WHOLE, "3", 27},
        {"d.e.i.k", "l", ME_TOML_WHOLE, "4", 27},
        {"d.e.i", "n", ME_TOML_LIST, "5,6", 27},
        {"d.f.o", "long", ME_TOML_TEXT, "one\n  \u00e9\ttwo\"", 30},
        {"d.f.o", "raw", ME_TOML_TEXT, "\\n", 34},
        {"d", "p", ME_TOML_TEXT, "", 36},
    };

    enum {
        N = sizeof expected / sizeof expected[0]
    };

    me_arena *memory = arena();
    me_diag diag = {0};
    me_toml toml;
    assert_int_equal(
        me_toml_read(memory, "f.toml", tables, sizeof tables - 1, &diag, &toml),
        ME_OK);
    assert_int_equal(toml.count, N);
    for (uint32_t i = 0; i < N; i++) {
        assert_string_equal(toml.values[i].table, expected[i].table);
        assert_string_equal(toml.values[i].key, expected[i].key);
        assert_int_equal(toml.values[i].type, expected[i].type);
        assert_string_equal(toml.values[i].text, expected[i].text);
        assert_int_equal(toml.values[i].line, expected[i].line);
    }
    me_arena_destroy(memory);
}

/** Files, and the message. */
static const struct {
    const char *text, *message;
} refused[] = {
    {"a = ", "f.toml:1: is no value: a text in quotes, a number, true or "
             "false, or a list of those"},
    {"\na = 1979-05-27", "f.toml:2: is no value: a text in quotes, a "
                         "number, true or false, or a list of those"},
    {"a = 0x", "f.toml:1: is no value: a text in quotes, a number, true "
               "or false, or a list of those"},
    {"a = 0b12", "f.toml:1: is no value: a text in quotes, a number, true "
                 "or false, or a list of those"},
    {"a = 0x1_", "f.toml:1: is no value: a text in quotes, a number, true "
                 "or false, or a list of those"},
    {"a = 0x10000000000000000",
     "f.toml:1: is no value: a text in quotes, a number, true or false, or "
     "a list of those"},
    {"a = 016", "f.toml:1: a number has no zeros in front"},
    {"a = -01.5", "f.toml:1: a number has no zeros in front"},
    {"a = tru", "f.toml:1: is no value: a text in quotes, a number, true "
                "or false, or a list of those"},
    {"a = \"x", "f.toml:1: text in quotes is not closed on its line"},
    {"a = \"\"\"x\ny\"\"", "f.toml:2: text in three quotes is not closed"},
    {"a = \"\\x\"", "f.toml:1: after a backslash only b, t, n, f, r, u, U, "
                    "\" and \\ are read"},
    {"a = \"\\u12\"", "f.toml:1: \\u has four hexadecimal digits, \\U eight"},
    {"a = \"\\ud800\"",
     "f.toml:1: \\u and \\U name a character of Unicode, not NUL"},
    {"a = {b = 1", "f.toml:1: an inline table goes on with ',' or ends with "
                   "'}', on its line"},
    {"a = {b = 1,}", "f.toml:1: expected key = value, or a table in brackets"},
    {"a = {b = 1\n}", "f.toml:1: an inline table goes on with ',' or ends "
                      "with '}', on its line"},
    {"a = {b = {c = {d = {e = {f = {g = {h = {i = {}}}}}}}}}",
     "f.toml:1: inline tables are nested too deep"},
    {"a = [{b = 1}]", "f.toml:1: a table in a list is not read: torchtitan "
                      "has no list of tables"},
    {"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q = 1",
     "f.toml:1: a name has over 16 parts"},
    {"a..b = 1", "f.toml:1: expected key = value, or a table in brackets"},
    {"a. = 1", "f.toml:1: expected key = value, or a table in brackets"},
    {"\"a.b\" = 1", "f.toml:1: a name in quotes has letters, digits, _ and "
                    "- as the others have"},
    {"\"\"\"a\"\"\" = 1", "f.toml:1: a name stands in one quote"},
    {"a.b = 1\n[a]", "f.toml:2: [a] stands in line 1 already"},
    {"a.b = 1\n[c]\n[a.b]", "f.toml:3: [a.b] is a key with a value in line 1"},
    {"a = 1\na.b = 1", "f.toml:2: [a] is a key with a value in line 1"},
    {"a.b = 1\na = 1", "f.toml:2: [a] stands in line 1 already"},
    {"a = {}\na.b = 1", "f.toml:2: [a] stands in line 1 already"},
    {"a = {}\n[a.b]", "f.toml:2: [a] stands in line 1 already"},
    {"[a]\n[b]\na = 1\n[a.c]\n[a.c.d]\n[c]\n[a.c]",
     "f.toml:7: [a.c] stands in line 4 already"},
    {"[a.b]\n[a]\nb = 1", "f.toml:3: [a.b] stands in line 1 already"},
    {"[a.b]\n[a]\nb.c = 1", "f.toml:3: [a.b] stands in line 1 already"},
    {"[a]\nb.c = 1\n[d]\n[a.b]", "f.toml:4: [a.b] stands in line 2 already"},
    {"a 1", "f.toml:1: expected key = value, or a table in brackets"},
    {"a = 1 2", "f.toml:1: nothing may follow a value on its line"},
    {"a = [1 2]", "f.toml:1: a list goes on with ',' or ends with ']'"},
    {"a = [[[[[[[[[[1]]]]]]]]]]", "f.toml:1: lists are nested too deep"},
    {"[[a]]", "f.toml:1: [[…]], an array of tables, is not read: torchtitan "
              "has no list of tables"},
    {"[a", "f.toml:1: a table is a name in brackets, as [training]"},
    {"[a] b = 1", "f.toml:1: nothing may follow a table's name on its line"},
    {"[t]\na = 1\na = 2", "f.toml:3: a of [t] stands in line 2 already"},
    {"[t]\n[u]\n[t]", "f.toml:3: [t] stands in line 1 already"},
    {"[t]\na = 1\n[t.a]", "f.toml:3: [t.a] is a key with a value in line 2"},
    {"a = 1\n[a.b]", "f.toml:2: [a] is a key with a value in line 1"},
};

static void test_toml__what_is_refused(void **state)
{
    (void)state;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        me_arena *memory = arena();
        me_diag diag = {0};
        me_toml toml;
        assert_int_equal(me_toml_read(memory, "f.toml", refused[i].text,
                                      strlen(refused[i].text), &diag, &toml),
                         ME_ERR_SYNTAX);
        assert_string_equal(shown(&diag), refused[i].message);
        me_arena_destroy(memory);
    }
}

static void test_toml__a_nul_byte(void **state)
{
    (void)state;
    me_arena *memory = arena();
    me_diag diag = {0};
    me_toml toml;
    assert_int_equal(
        me_toml_read(memory, "f.toml", "a = 1\0b", 7, &diag, &toml),
        ME_ERR_SYNTAX);
    assert_string_equal(shown(&diag),
                        "f.toml:1: binary file: it has a NUL byte");
    me_arena_destroy(memory);
}

static void test_toml__no_memory(void **state)
{
    (void)state;
    me_arena *memory = me_arena_create(1024, "test");
    assert_non_null(memory);
    me_diag diag = {0};
    me_toml toml;
    assert_int_equal(me_toml_read(memory, "f.toml", "a = 1", 5, &diag, &toml),
                     ME_ERR_NOMEM);
    me_arena_destroy(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_toml__tables_and_values),
        cmocka_unit_test(test_toml__what_is_refused),
        cmocka_unit_test(test_toml__a_nul_byte),
        cmocka_unit_test(test_toml__no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
