/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/site.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** MEMEST_SITE is a file of this text. */
static void write_site(const char *text)
{
    char path[] = "/tmp/memest-site-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    setenv("MEMEST_SITE", path, 1);
}

static void remove_site(void)
{
    unlink(getenv("MEMEST_SITE"));
    unsetenv("MEMEST_SITE");
}

static void test_finds_partitions(void **state)
{
    (void)state;
    me_diag diag = {.status = ME_OK};
    me_site_partition p;
    write_site("partitions = ( { name = \"a\"; card = \"a100-80gb\"; },\n"
               " { name = \"h\"; card = \"h100-80gb\"; gpus_per_node = 8; "
               "default = true; } );\n");
    assert_int_equal(me_site_partition_find("a", &diag, &p), ME_OK);
    assert_string_equal(p.card, "a100-80gb");
    assert_int_equal(p.gpus_per_node, 0);
    assert_int_equal(me_site_partition_find(NULL, &diag, &p), ME_OK);
    assert_string_equal(p.name, "h");
    assert_int_equal(p.gpus_per_node, 8);
    assert_int_equal(me_site_partition_find("b", &diag, &p), ME_OK);
    assert_string_equal(p.card, "");
    remove_site();
}

static void test_refuses_what_is_wrong(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"partitions = ( { name = \"a\"; } );", "without a name and a card"},
        {"partitions = ( { name = \"a\"; crad = \"b\"; } );", "'crad'"},
        {"partitions = ( { name = 3; card = \"b\"; } );", "'name'"},
        {"partitions = ( { name = \"a\"; card = \"b\"; gpus_per_node = 0; } );",
         "'gpus_per_node'"},
        {"partitions = ( { name = \"a\"; card = \"b\"; gpus_per_node = 1.5; } );",
         "'gpus_per_node'"},
        {"partitions = ( { name = \"a\"; card = \"b\"; default = 1; } );",
         "'default'"},
        {"partitions = ( 3 );", "without a name and a card"},
        {"partition = ();", "a site's file is partitions"},
        {"partitions = ();\nother = 1;", "a site's file is partitions"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        me_diag diag = {.status = ME_OK};
        me_site_partition p;
        write_site(cases[i].text);
        assert_int_equal(me_site_partition_find("a", &diag, &p), ME_ERR_CONFIG);
        if (strstr(diag.text, cases[i].said) == NULL) {
            fail_msg("%s: '%s'", cases[i].text, diag.text);
        }
        assert_string_not_equal(diag.where, "");
        assert_non_null(strstr(diag.text, "MEMEST_SITE: "));
        remove_site();
    }
}

static void test_needs_no_file(void **state)
{
    (void)state;
    me_diag diag = {.status = ME_OK};
    me_site_partition p;
    assert_int_equal(me_site_partition_find("a", &diag, &p), ME_OK);
    assert_string_equal(p.card, "");
    setenv("MEMEST_SITE", "/nowhere/site.cfg", 1);
    assert_int_equal(me_site_partition_find("a", &diag, &p), ME_ERR_IO);
    assert_string_equal(diag.where, "/nowhere/site.cfg");
    assert_string_equal(diag.text,
                        "MEMEST_SITE: cannot open: No such file or directory");
    unsetenv("MEMEST_SITE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_partitions),
        cmocka_unit_test(test_refuses_what_is_wrong),
        cmocka_unit_test(test_needs_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
