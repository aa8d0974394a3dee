/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/json_reader.h"
#include "base/str.h"
#include "support/test.h"

#include <stdlib.h>
#include <string.h>

enum {
    MANY = 200000 /* more than the reader's buffer */
};

static FILE *file_of(const char *text, size_t length)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    rewind(file);
    return file;
}

/* All tokens of a text as words: { } [ ] k:KEY s:STRING n:NUMBER t f 0. */
static me_status read_all(const char *text, size_t n_head, me_diag *diag,
                          me_str *words)
{
    static const char *const names[] = {
        [ME_JSON_OBJECT] = "{",  [ME_JSON_OBJECT_END] = "}",
        [ME_JSON_ARRAY] = "[",   [ME_JSON_ARRAY_END] = "]",
        [ME_JSON_KEY] = "k:",    [ME_JSON_STRING] = "s:",
        [ME_JSON_NUMBER] = "n:", [ME_JSON_TRUE] = "t",
        [ME_JSON_FALSE] = "f",   [ME_JSON_NULL] = "0",
    };
    FILE *file = file_of(text + n_head, strlen(text) - n_head);
    me_json_reader *reader = me_json_reader_create(text, n_head, file, "text");
    assert_non_null(reader);
    me_json_token token = {0};
    me_status status = me_json_next(reader, diag, &token);
    while (status == ME_OK && token.kind != ME_JSON_END) {
        me_str_append(words, names[token.kind]);
        if (token.kind >= ME_JSON_KEY && token.kind <= ME_JSON_NUMBER) {
            me_str_append(words, token.text);
        }
        me_str_append(words, " ");
        status = me_json_next(reader, diag, &token);
    }
    me_json_reader_destroy(reader);
    (void)fclose(file);
    return status;
}

static void test_json_reader__tokens(void **state)
{
    (void)state;
    static const char text[] =
        " {\"a\": [1, -2.5e+3, \"x\\n\\u0041\\u00e9\", {}, []],\n"
        "  \"b\\\"\": true, \"c\":{\"d\":null}, \"e\": false }\n";
    for (size_t n_head = 0; n_head < sizeof text; n_head++) {
        me_str words = {0};
        assert_int_equal(read_all(text, n_head, NULL, &words), ME_OK);
        assert_string_equal(me_str_text(&words),
                            "{ k:a [ n:1 n:-2.5e+3 s:x\nA\xEF\xBF\xBD { } [ ] "
                            "] k:b\" t k:c { k:d 0 } k:e f } ");
        me_str_fini(&words);
    }
}

static void test_json_reader__refuses(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *says;
        int line;
    } cases[] = {
        {"", "ends too early", 1},
        {"{", "ends too early", 1},
        {"[1,\n2", "ends too early", 2},
        {"[1,]", "a value was expected", 1},
        {"{\"a\":1,}", "a key was expected", 1},
        {"{\"a\" 1}", "no colon", 1},
        {"{1:2}", "a key was expected", 1},
        {"[1 2]", "a comma was expected", 1},
        {"[1}", "a comma was expected", 1},
        {"[]\n\n[]", "something follows", 3},
        {"[01]", "a value was expected", 1},
        {"[1.]", "a value was expected", 1},
        {"[-]", "a value was expected", 1},
        {"[1e]", "a value was expected", 1},
        {"[nul]", "a value was expected", 1},
        {"[\"a]", "no end", 1},
        {"[\"\n\"]", "control character", 1},
        {"[\"\\x\"]", "unknown escape", 1},
        {"[\"\\u12g4\"]", "four hexadecimal digits", 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_diag diag = {0};
        me_str words = {0};
        assert_int_equal(read_all(cases[i].text, 0, &diag, &words),
                         ME_ERR_SYNTAX);
        if (strstr(diag.text, cases[i].says) == NULL) {
            print_error("%s: %s\n", cases[i].text, diag.text);
        }
        assert_non_null(strstr(diag.text, cases[i].says));
        assert_int_equal(diag.line, cases[i].line);
        me_str_fini(&words);
    }
}

/* A string that spans several buffers is read over; what is kept of it is
 * marked as cut. Too deep a text is refused and does no harm. */
static void test_json_reader__long_and_deep(void **state)
{
    (void)state;
    char *text = calloc(1, MANY + 8);
    assert_non_null(text);
    memset(text, 'a', MANY);
    memcpy(text, "[\"", 2);
    memcpy(text + MANY - 4, "\",7]", 5);
    FILE *file = file_of(text, strlen(text));
    me_json_reader *reader = me_json_reader_create("", 0, file, "text");
    assert_non_null(reader);
    me_json_token token;
    assert_int_equal(me_json_next(reader, NULL, &token), ME_OK);
    assert_int_equal(me_json_next(reader, NULL, &token), ME_OK);
    assert_int_equal(token.kind, ME_JSON_STRING);
    assert_true(token.is_cut);
    assert_int_equal(me_json_next(reader, NULL, &token), ME_OK);
    uint64_t number = 0;
    assert_true(me_json_whole_number(&token, &number));
    assert_int_equal(number, 7);
    assert_false(token.is_cut);
    me_json_reader_destroy(reader);
    (void)fclose(file);

    memset(text, '[', MANY);
    text[MANY] = '\0';
    me_diag diag = {0};
    me_str words = {0};
    assert_int_equal(read_all(text, 0, &diag, &words), ME_ERR_SYNTAX);
    assert_non_null(strstr(diag.text, "too deep"));
    me_str_fini(&words);
    free(text);
}

static void test_json_reader__skips(void **state)
{
    (void)state;
    static const char text[] =
        "[{\"a\": [1, {\"b\": 2}]}, 3, 9223372036854775808]";
    FILE *file = file_of(text, strlen(text));
    me_json_reader *reader = me_json_reader_create("", 0, file, "text");
    assert_non_null(reader);
    me_json_token token;
    uint64_t number = 0;
    assert_int_equal(me_json_next(reader, NULL, &token), ME_OK);
    assert_int_equal(me_json_next(reader, NULL, &token), ME_OK);
    assert_int_equal(token.kind, ME_JSON_OBJECT);
    assert_int_equal(me_json_skip(reader, NULL, &token), ME_OK);
    assert_int_equal(me_json_next(reader, NULL, &token), ME_OK);
    assert_true(me_json_whole_number(&token, &number));
    assert_int_equal(number, 3);
    assert_int_equal(me_json_skip(reader, NULL, &token), ME_OK);
    assert_int_equal(me_json_next(reader, NULL, &token), ME_OK);
    assert_false(me_json_whole_number(&token, &number));
    me_json_reader_destroy(reader);
    (void)fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_reader__tokens),
        cmocka_unit_test(test_json_reader__refuses),
        cmocka_unit_test(test_json_reader__long_and_deep),
        cmocka_unit_test(test_json_reader__skips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
