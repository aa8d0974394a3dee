/* SPDX-License-Identifier: BSD-3-Clause */
#include "alloc/card.h"
#include "base/data_files.h"
#include "support/test.h"

#include <string.h>

static void test_cards__finds_by_name(void **state)
{
    (void)state;
    me_str path = {0};
    assert_int_equal(me_data_find(&me_data_cards, "a100-40gb", NULL, &path),
                     ME_OK);
    assert_non_null(strstr(me_str_text(&path), "configs/cards/a100-40gb.cfg"));
    me_str_fini(&path);
    assert_int_equal(me_data_find(&me_data_cards, "dir/any", NULL, &path),
                     ME_OK);
    assert_string_equal(me_str_text(&path), "dir/any");
    me_str_fini(&path);
}

static void test_cards__names_what_is_there(void **state)
{
    (void)state;
    me_diag diag = {0};
    me_str path = {0};
    assert_int_equal(me_data_find(&me_data_cards, "x9000", &diag, &path),
                     ME_ERR_CONFIG);
    assert_non_null(strstr(diag.text, "x9000"));
    assert_non_null(strstr(diag.text, "h100-80gb, h20-96gb, h200-141gb"));
    me_str_fini(&path);
}

/* Every file can be read, its context follows the rule or was measured, and
 * it says what it does not know. */
static bool check_card(void *self, const char *name, const char *path)
{
    unsigned *n = self;
    me_device_card card;
    me_diag diag = {0};
    me_str unknown = {0};
    if (me_device_card_load(path, &diag, &card) != ME_OK) {
        print_error("%s: %s\n", name, diag.text);
        return true;
    }
    const uint64_t rule = me_device_context_bytes(
        card.multiprocessors, card.threads_per_multiprocessor);
    const uint64_t off = card.context_bytes > rule ? card.context_bytes - rule
                                                   : rule - card.context_bytes;
    const unsigned n_unknown = me_device_card_not_measured(&card, &unknown);
    me_str_fini(&unknown);
    (*n)++;
    return off > UINT64_C(2) << 20 ||
           (n_unknown == 0) != (card.like[0] == '\0') ||
           card.total_bytes < UINT64_C(20) << 30;
}

static void test_cards__all_make_sense(void **state)
{
    (void)state;
    unsigned n = 0;
    bool is_wrong = true;
    assert_int_equal(me_data_visit(&me_data_cards, check_card, &n, &is_wrong),
                     ME_OK);
    assert_false(is_wrong);
    assert_true(n >= 7);
}

static void test_cards__stand_in_knows_what_was_seen(void **state)
{
    (void)state;
    me_str path = {0};
    me_device_card like;
    assert_int_equal(me_data_find(&me_data_cards, "h200-141gb", NULL, &path),
                     ME_OK);
    assert_int_equal(me_device_card_load(me_str_text(&path), NULL, &like),
                     ME_OK);
    me_str_fini(&path);
    const me_seen_card seen = {.name = "NVIDIA GX1", .total_bytes = 77};
    const me_device_card card = me_device_card_stand_in(&like, &seen);
    assert_string_equal(card.name, "NVIDIA GX1");
    assert_string_equal(card.like, "NVIDIA H200");
    assert_int_equal(card.total_bytes, 77);
    assert_int_equal(card.multiprocessors, like.multiprocessors);
    me_str unknown = {0};
    assert_true(me_device_card_not_measured(&card, &unknown) > 5);
    assert_null(strstr(me_str_text(&unknown), "total_bytes"));
    assert_non_null(strstr(me_str_text(&unknown), "multiprocessors"));
    me_str_fini(&unknown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cards__finds_by_name),
        cmocka_unit_test(test_cards__names_what_is_there),
        cmocka_unit_test(test_cards__all_make_sense),
        cmocka_unit_test(test_cards__stand_in_knows_what_was_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
