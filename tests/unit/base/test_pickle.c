/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs by hand, from the descriptions in Python's pickletools. */
#include "base/pickle.h"
#include "support/test.h"

#include <string.h>

static const char *const keys[] = {"a", "b", "7"};

/* "f" says the class: "x" is left out. */
static uint8_t class_of(const char *key, const char *text)
{
    if (strcmp(key, "f") != 0) {
        return ME_PICKLE_NO_CLASS;
    }
    return text[0] == 'x' ? ME_PICKLE_LEFT_OUT : text[0] == 'y' ? 1 : 2;
}

static const me_pickle_wanted wanted = {
    .keys = keys, .n_keys = 3, .class_of = class_of, .cut_items = 2};

/* The JSON of a pickle, or its error. */
static void read_pickle(const char *bytes, size_t length, char json_out[512])
{
    FILE *pickle = tmpfile();
    FILE *json = NULL;
    me_diag diag = {0};
    assert_non_null(pickle);
    assert_int_equal(fwrite(bytes, 1, length, pickle), length);
    rewind(pickle);
    const me_status status =
        me_pickle_to_json(pickle, "p", &wanted, &diag, &json);
    if (status == ME_OK) {
        json_out[fread(json_out, 1, 511, json)] = '\0';
        (void)fclose(json);
    } else {
        assert_int_equal(status, ME_ERR_SYNTAX);
        (void)snprintf(json_out, 512, "%s", diag.text);
    }
    (void)fclose(pickle);
}

#define ASSERT_JSON(bytes, expected)                                           \
    do {                                                                       \
        char json[512];                                                        \
        read_pickle("\x80\x04" bytes, sizeof("\x80\x04" bytes) - 1, json);     \
        assert_string_equal(json, expected);                                   \
    } while (0)

#define ASSERT_REFUSED(bytes, words)                                           \
    do {                                                                       \
        char json[512];                                                        \
        read_pickle("\x80\x04" bytes, sizeof("\x80\x04" bytes) - 1, json);     \
        assert_non_null(strstr(json, words));                                  \
    } while (0)

static void test_pickle__numbers(void **state)
{
    (void)state;
    ASSERT_JSON("](K\xffM\x01\x02J\xff\xff\xff\xff\x8a\x00\x8a\x01\x80"
                "\x8a\x06\x00\x00\x00\x00\x00\x7f"
                "e.",
                "[255,513,-1,0,-128,139637976727552]");
    ASSERT_JSON("](\x88\x89NG\x3f\xf8\x00\x00\x00\x00\x00\x00"
                "G\x7f\xf0\x00\x00\x00\x00\x00\x00"
                "e.",
                "[true,false,null,1.5,null]");
    ASSERT_REFUSED("]\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01"
                   "a.",
                   "more than 64 bits");
}

static void test_pickle__containers(void **state)
{
    (void)state;
    // keys that nobody asked for are left out, with what they hold
    ASSERT_JSON("}(\x8c\x01"
                "a]K\x01"
                "a\x8c\x01"
                "x]K\x02"
                "aK\x07}u.",
                "{\"a\":[1],\"7\":{}}");
    ASSERT_JSON("}\x8c\x01"
                "b)s\x8c\x01"
                "aK\x05\x85s.",
                "{\"b\":[],\"a\":[5]}");
    ASSERT_JSON("](K\x01K\x02\x86(K\x01K\x02K\x03K\x04t\x8c\x02\"\ne.",
                "[[1,2],[1,2,3,4],\"\\u0022\\u000a\"]");
}

/* What is put aside comes back as it was then, also from several places. */
static void test_pickle__memo(void **state)
{
    (void)state;
    ASSERT_JSON("]\x94(\x8c\x01z\x94]\x94K\x01"
                "ah\x02h\x01h\x02"
                "e.",
                "[\"z\",[1],[1],\"z\",[1]]");
    ASSERT_JSON("]q\x00(X\x01\x00\x00\x00yq\x01h\x01"
                "e.",
                "[\"y\",\"y\"]");
    ASSERT_REFUSED("]h\x00"
                   "a.",
                   "not put aside");
    ASSERT_REFUSED("]q\x05.", "out of turn");
}

/* Lists of objects with the key "f" are cut to two of a class. */
static void test_pickle__cut(void **state)
{
    (void)state;
    ASSERT_JSON("](K\x01K\x02K\x03"
                "e.",
                "[1,2,3]");
    // objects of the classes 1, left out, 1, 2, 1, 1; then a list in the list
    ASSERT_JSON("](}(U\x01"
                "fU\x01yU\x01"
                "aK\x01u}U\x01"
                "fU\x01xs}\x94(U\x01"
                "fU\x01yu}(U\x01"
                "bK\x02U\x01"
                "fU\x01zu}U\x01"
                "fU\x01ysh\x00"
                "e]}U\x01"
                "fU\x01ysaa.",
                "[{\"a\":1},{},{\"b\":2},[{}]]");
}

static void test_pickle__refused(void **state)
{
    (void)state;
    ASSERT_REFUSED("cos\nsystem\n(\x8c\x04harmtR.", "GLOBAL");
    ASSERT_REFUSED("\x8c\x02os\x8c\x06system\x93.", "STACK_GLOBAL");
    ASSERT_REFUSED("]\x94h\x00"
                   "a.",
                   "changes");
    ASSERT_REFUSED("]]\x94"
                   "ah\x00K\x01"
                   "a.",
                   "changes");
    ASSERT_REFUSED("K\x01.", "no dictionary");
    ASSERT_REFUSED("e.", "no mark");
    ASSERT_REFUSED("](K\x01", "ends too early");
    ASSERT_REFUSED("}(]K\x01u.", "a key is no text");
    ASSERT_REFUSED("}(K\x01u.", "a key has no value");
    ASSERT_REFUSED("](\x80\x04"
                   "e.",
                   "byte 0 alone");
    ASSERT_REFUSED("\xff.", "no operation");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pickle__numbers),
        cmocka_unit_test(test_pickle__containers),
        cmocka_unit_test(test_pickle__memo),
        cmocka_unit_test(test_pickle__cut),
        cmocka_unit_test(test_pickle__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
