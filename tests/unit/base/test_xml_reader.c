/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/str.h"
#include "base/xml_reader.h"
#include "support/test.h"

#include <string.h>

/* What is read, in a word a token: +name, attribute=value, 'text', -name. */
static me_status read_text(const char *text, me_diag *diag, me_str *words)
{
    me_xml_reader r = me_xml_begin("a.xml", text, strlen(text));
    char shown[64];
    me_status status = me_xml_next(&r, diag);
    while (status == ME_OK && r.kind != ME_XML_END) {
        me_xml_copy(r.kind == ME_XML_TEXT ? r.text : r.name, shown,
                    sizeof shown);
        me_str_printf(words,
                      r.kind == ME_XML_TEXT   ? "'%s' "
                      : r.kind == ME_XML_OPEN ? "+%s "
                                              : "-%s ",
                      shown);
        for (size_t i = 0; r.kind == ME_XML_OPEN && i < r.n_attributes; i++) {
            me_xml_copy(r.attributes[i].name, shown, sizeof shown);
            me_str_printf(words, "%s=", shown);
            me_xml_copy(r.attributes[i].value, shown, sizeof shown);
            me_str_printf(words, "%s ", shown);
        }
        status = me_xml_next(&r, diag);
    }
    return status;
}

static void test_xml__tokens(void **state)
{
    (void)state;
    me_str words = {0};
    me_diag diag = {.status = ME_OK};
    assert_int_equal(
        read_text("<?xml version='1.0'?>\n<!-- <a> -->\n"
                  "<!DOCTYPE a SYSTEM \"x>y\">\n<a b = \"1 &lt;&amp;&quot; 2\""
                  " c='d\"'><e/>one<!-- two -->\n three</a >\n<!-- end -->\n",
                  &diag, &words),
        ME_OK);
    assert_string_equal(me_str_text(&words),
                        "+a b=1 <&\" 2 c=d\" +e -e 'one' 'three' -a ");
    me_str_fini(&words);
}

static void test_xml__refuses(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int line;
        const char *says;
    } cases[] = {
        {"", 1, "ends too early"},
        {"\n<a>\n<b>\n", 4, "ends too early"},
        {"<a></b>", 1, "ends that is not open"},
        {"</a>", 1, "ends that is not open"},
        {"<a/><b/>", 1, "second root"},
        {"a", 1, "text stands outside"},
        {"<a/>b", 1, "text stands outside"},
        {"<a b></a>", 1, "name=\"value\""},
        {"<a b=c></a>", 1, "name=\"value\""},
        {"<a\nb='c>", 2, "value has no end"},
        {"<a b='<'>", 1, "value has no end"},
        {"<a", 1, "a tag has no end"},
        {"<a /", 1, "a tag has no end"},
        {"<a>< b>", 1, "a tag has no name"},
        {"<!-- ->", 1, "has no end"},
        {"<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", 1, "declares its own type"},
        {"<!DOCTYPE a", 1, "type does not end"},
        {"<!DOCTYPE a 'b", 1, "type does not end"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        me_str words = {0};
        me_diag diag = {.status = ME_OK};
        assert_int_equal(read_text(cases[i].text, &diag, &words),
                         ME_ERR_SYNTAX);
        if (strstr(diag.text, cases[i].says) == NULL ||
            diag.line != cases[i].line) {
            fail_msg("'%s': %d: '%s' does not say '%s'", cases[i].text,
                     diag.line, diag.text, cases[i].says);
        }
        me_str_fini(&words);
    }
}

static void test_xml__limits(void **state)
{
    (void)state;
    me_str text = {0};
    me_str words = {0};
    me_diag diag = {.status = ME_OK};
    for (int i = 0; i < 1000; i++) {
        me_str_append(&text, "<a>");
    }
    assert_int_equal(read_text(me_str_text(&text), &diag, &words),
                     ME_ERR_SYNTAX);
    assert_non_null(strstr(diag.text, "nested too deep"));
    me_str_fini(&text);
    me_str_append(&text, "<a");
    for (int i = 0; i < 100; i++) {
        me_str_append(&text, " b='c'");
    }
    assert_int_equal(read_text(me_str_text(&text), &diag, &words),
                     ME_ERR_SYNTAX);
    assert_non_null(strstr(diag.text, "over 64 attributes"));
    me_str_fini(&text);
    me_str_fini(&words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xml__tokens),
        cmocka_unit_test(test_xml__refuses),
        cmocka_unit_test(test_xml__limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
